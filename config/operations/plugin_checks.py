"""System checks of platforms: settings that name plug-ins that there are, and versions of APIs that end soon."""

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

ENDS_WITHIN: Final = timedelta(days=60)
"""Time to try the next version, and to change to it."""
REVIEWED_WITHIN: Final = timedelta(days=300)


@register()
def disabled_kinds_are_known(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
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
def platforms_are_known(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    del app_configs
    known = sorted(one.kind for one in plugins.every("platforms", Platform))
    given = {
        "PLATFORM_ADDRESSES": settings.PLATFORM_ADDRESSES,
        "PLATFORM_VERSIONS": settings.PLATFORM_VERSIONS,
    }
    found: list[CheckMessage] = [
        Error(
            f"{setting} names {kind!r}, which is no platform: the setting has no effect.",
            hint=f"Use one of {', '.join(known)}.",
            id="platforms.E001",
        )
        for setting, pairs in given.items()
        for kind in pairs
        if kind not in known
    ]
    found += [
        Error(
            f"PLATFORM_ADDRESSES gives {kind} an address that is none.",
            hint=f"Set {kind}=https://… without a user and without a fragment, or leave it out.",
            id="platforms.E002",
        )
        for kind, address in settings.PLATFORM_ADDRESSES.items()
        if kind in known and not is_web_address(address)
    ]
    return found


@dataclass(frozen=True)
class AgingApi:
    kind: str
    code: str
    said: str
    advice: str


def aging_apis(today: date | None = None) -> list[AgingApi]:
    """What to do something about, platform by platform; nothing of a version that the operator has set by hand."""
    today = today or utc_now().date()
    found = []
    for platform in plugins.every("platforms", Platform):
        if platform.api is not None:
            found += _of(platform, platform.api, today)
    return found


def _of(platform: Platform, api: Api, today: date) -> list[AgingApi]:
    found = []
    given = {"label": platform.label, "version": api.version, "kind": platform.kind}
    is_ours = settings.PLATFORM_VERSIONS.get(platform.kind, api.version) == api.version
    if is_ours and api.expires_on is not None and today >= api.expires_on - ENDS_WITHIN:
        said = (
            _("%(label)s ended version %(version)s of its API on %(day)s.")
            if today >= api.expires_on
            else _("%(label)s ends version %(version)s of its API on %(day)s.")
        )
        advice = _("Upgrade, or set PLATFORM_VERSIONS=%(kind)s=<a newer version> and try it.") % given
        found.append(AgingApi(platform.kind, "expires", said % {**given, "day": api.expires_on}, advice))
    if today > api.reviewed_on + REVIEWED_WITHIN:
        said = _("The documents of %(label)s were last read on %(day)s.")
        advice = (
            _("Upgrade; where the platform has a newer version, PLATFORM_VERSIONS=%(kind)s=<it> sets that.")
            % given
        )
        found.append(AgingApi(platform.kind, "unreviewed", said % {**given, "day": api.reviewed_on}, advice))
    return found


@register()
def platforms_are_current(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    del app_configs
    ids = {"expires": "platforms.W001", "unreviewed": "platforms.W002"}
    return [Warning(one.said, hint=one.advice, id=ids[one.code]) for one in aging_apis()]
