"""Checks that settings name only known plug-ins, and that no platform API version expires soon."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  Django's name
from django.utils.translation import gettext as _

from config.core.clock import utc_now
from pipeline import plugins
from pipeline.platforms.base import Platform
from pipeline.platforms.settings import is_web_address
from pipeline.switches.availability import CAN_BE_DISABLED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from pipeline.platforms.base import Api

EXPIRY_WARNING: Final = timedelta(days=60)
"""The time before its end from which a version is reported, enough to test and set the next one."""
REVIEW_INTERVAL: Final = timedelta(days=300)
"""The time after which the documents of a platform's API have to be read again."""


@register()
def check_disabled_kinds(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Report names in DISABLED_KINDS that are no kinds of plug-ins."""
    del app_configs
    known = {f"{family}/{kind}" for family in CAN_BE_DISABLED for kind in plugins.kinds(family)}
    return [
        Error(
            f"DISABLED_KINDS names {name!r}, which is no kind that can be taken out: it has no effect.",
            hint="Write the family and the kind, such as sources/tiktok; docs/settings.md lists them.",
            id="availability.E001",
        )
        for name in sorted(settings.DISABLED_KINDS - known)
    ]


@register()
def check_platform_settings(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Report settings that name unknown platforms, or give one an invalid address."""
    del app_configs
    known = sorted(platform.kind for platform in plugins.every("platforms", Platform))
    pairs_by_setting = {
        "PLATFORM_ADDRESSES": settings.PLATFORM_ADDRESSES,
        "PLATFORM_VERSIONS": settings.PLATFORM_VERSIONS,
    }
    messages: list[CheckMessage] = [
        Error(
            f"{setting} names {kind!r}, which is no platform: the setting has no effect.",
            hint=f"Use one of {', '.join(known)}.",
            id="platforms.E001",
        )
        for setting, pairs in pairs_by_setting.items()
        for kind in pairs
        if kind not in known
    ]
    messages += [
        Error(
            f"PLATFORM_ADDRESSES gives {kind} an address that is none.",
            hint=f"Set {kind}=https://… without a user and without a fragment, or leave it out.",
            id="platforms.E002",
        )
        for kind, address in settings.PLATFORM_ADDRESSES.items()
        if kind in known and not is_web_address(address)
    ]
    return messages


@dataclass(frozen=True)
class AgingApi:
    """A platform's API that expires soon or wasn't reviewed for long; `code` is `expires` or `unreviewed`."""

    kind: str
    code: str
    message: str
    advice: str


def aging_apis(today: date | None = None) -> list[AgingApi]:
    """Return the APIs whose version expires within `EXPIRY_WARNING`, or wasn't reviewed for `REVIEW_INTERVAL`.

    An API can be both. A version that the operator has set isn't reported as expiring.
    """
    today = today or utc_now().date()
    aging = []
    for platform in plugins.every("platforms", Platform):
        if platform.api is not None:
            aging += _aging_apis_of(platform, platform.api, today)
    return aging


def _aging_apis_of(platform: Platform, api: Api, today: date) -> list[AgingApi]:
    """Return none, one or both of the findings about a platform's API."""
    aging = []
    parameters = {"label": platform.label, "version": api.version, "kind": platform.kind}
    is_default_version = settings.PLATFORM_VERSIONS.get(platform.kind, api.version) == api.version
    if is_default_version and api.expires_on is not None and today >= api.expires_on - EXPIRY_WARNING:
        message = (
            _("%(label)s ended version %(version)s of its API on %(day)s.")
            if today >= api.expires_on
            else _("%(label)s ends version %(version)s of its API on %(day)s.")
        )
        advice = _("Upgrade, or set PLATFORM_VERSIONS=%(kind)s=<a newer version> and try it.") % parameters
        aging.append(
            AgingApi(platform.kind, "expires", message % {**parameters, "day": api.expires_on}, advice)
        )
    if today > api.reviewed_on + REVIEW_INTERVAL:
        message = _("The documents of %(label)s were last read on %(day)s.")
        advice = (
            _("Upgrade; where the platform has a newer version, PLATFORM_VERSIONS=%(kind)s=<it> sets that.")
            % parameters
        )
        aging.append(
            AgingApi(platform.kind, "unreviewed", message % {**parameters, "day": api.reviewed_on}, advice)
        )
    return aging


@register()
def check_api_expiry(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Report the API versions of `aging_apis` as warnings."""
    del app_configs
    ids = {"expires": "platforms.W001", "unreviewed": "platforms.W002"}
    return [Warning(api.message, hint=api.advice, id=ids[api.code]) for api in aging_apis()]
