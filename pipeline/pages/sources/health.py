"""How a source is doing, and what it reads, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from pipeline import plugins
from pipeline.labels import HealthBadge
from pipeline.models import SourceStatus
from pipeline.pages.sources import lane_cadence
from pipeline.sources.base import Source as SourceKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import Source

ADMITTED: Final = frozenset({"over_burst", "too_old", "before_first_poll"})
"""Decisions that a person may overrule: the entry is kept, and can be worked on after all."""


def health_of(source: Source) -> HealthBadge:
    """In plain words; the moments stand beside it."""
    said = str((source.last_error or {}).get("message", ""))
    if source.status == SourceStatus.PAUSED:
        return HealthBadge("", "circle-pause", _("Paused"), _("Paused until you resume it."))
    if source.status == SourceStatus.GONE:
        return HealthBadge("bad", "circle-alert", _("Gone"), said)
    if source.status == SourceStatus.FAILING:
        return HealthBadge("bad", "circle-alert", _("Failing"), said)
    if source.type == "brand":
        return _health_of_lane(said)
    if not kind_of(source).fetches:
        said = _("Content sent to it is imported at once.")
        if source.last_new_at is not None:
            return HealthBadge("good", "circle-check", _("Active"), said)
        return HealthBadge("info", "webhook", _("Waiting for data"), said)
    if said:
        return HealthBadge("warn", "triangle-alert", _("Last poll failed"), said)
    if source.last_polled_at is None:
        return HealthBadge("info", "clock", _("New"), _("First poll within a minute."))
    return HealthBadge("good", "circle-check", _("Active"), "")


def _health_of_lane(said: str) -> HealthBadge:
    if said:
        return HealthBadge("warn", "triangle-alert", _("No result"), said)
    return HealthBadge("good", "circle-check", _("Active"), "")


def kind_of(source: Source) -> SourceKind:
    return plugins.get("sources", source.type, SourceKind)


def place_of(source: Source) -> str:
    """The address or the name that it reads; of a brand lane, when it makes something."""
    config: Mapping[str, Any] = source.config
    if source.type == "brand":
        return lane_cadence.describe(config)
    for name in ("url", "sitemap", "handle", "channel", "playlist", "username", "hashtag"):
        if config.get(name):
            return str(config[name])
    links = config.get("links") or ()
    return str(links[0]) if links else ""
