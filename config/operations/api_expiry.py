"""Versions of platforms' APIs that end soon, and ones whose documents nobody has read for long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register  # noqa: A004  Django's name
from django.utils.translation import gettext as _

from config.core.clock import utc_now
from pipeline import plugins
from pipeline.platforms.base import Platform

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from pipeline.platforms.base import Api

ENDS_WITHIN: Final = timedelta(days=60)
"""Time to try the next version, and to change to it."""
REVIEWED_WITHIN: Final = timedelta(days=300)


@dataclass(frozen=True)
class Aging:
    kind: str
    code: str
    said: str
    advice: str


def aging(today: date | None = None) -> list[Aging]:
    """What to do something about, platform by platform; nothing of a version that the operator has set by hand."""
    today = today or utc_now().date()
    found = []
    for platform in plugins.every("platforms", Platform):
        if platform.api is not None:
            found += _of(platform, platform.api, today)
    return found


def _of(platform: Platform, api: Api, today: date) -> list[Aging]:
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
        found.append(Aging(platform.kind, "expires", said % {**given, "day": api.expires_on}, advice))
    if today > api.reviewed_on + REVIEWED_WITHIN:
        said = _("The documents of %(label)s were last read on %(day)s.")
        advice = (
            _("Upgrade; where the platform has a newer version, PLATFORM_VERSIONS=%(kind)s=<it> sets that.")
            % given
        )
        found.append(Aging(platform.kind, "unreviewed", said % {**given, "day": api.reviewed_on}, advice))
    return found


@register()
def platforms_are_current(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    del app_configs
    ids = {"expires": "platforms.W001", "unreviewed": "platforms.W002"}
    return [Warning(one.said, hint=one.advice, id=ids[one.code]) for one in aging()]
