"""Describes an outlet for its pages: its account, health, buckets and limits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pipeline import labels, resources
from pipeline.labels import HealthBadge
from pipeline.models import OutletStatus
from pipeline.outlets.outlet_client import platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.models import Outlet
    from pipeline.platforms.base import Platform

_NOTE_WITH_TXT_RECORD: Final = re.compile(r'(?P<text>[^\n]*:) (?P<name>\S+) TXT "(?P<value>[^"]+)"')
"""Matches a note that ends with a line of a zone file, such as `Publish: mail.example.org TXT "v=spf1"`."""


def health_of(outlet: Outlet, now: datetime) -> HealthBadge:
    """Return the outlet's health; the page shows the times next to it."""
    message = str((outlet.last_error or {}).get("message", ""))
    if outlet.status == OutletStatus.DISABLED:
        return HealthBadge("", "circle-pause", _("Switched off"), _("Publishing to it is off."))
    if outlet.status == OutletStatus.NEEDS_RECONNECT:
        return HealthBadge("bad", "circle-alert", _("Reconnect needed"), message)
    if outlet.rests_until is not None and outlet.rests_until > now:
        return HealthBadge("warn", "clock", _("Cooldown"), _("Rate limited by the platform"))
    if outlet.expiry_told_at is not None and outlet.expires_at is not None:
        advice = _("Log-in expires soon. Reconnect it.")
        return HealthBadge("warn", "triangle-alert", _("Log-in expires"), advice)
    if outlet.is_simulated:
        return HealthBadge("info", "eye", _("Test channel"), _("For testing and test keys"))
    return HealthBadge("good", "circle-check", _("Connected"), "")


def wants_reconnect(outlet: Outlet) -> bool:
    """Return whether a new log-in would repair the outlet, or keep it from failing soon."""
    if outlet.status == OutletStatus.NEEDS_RECONNECT:
        return True
    return (
        outlet.status == OutletStatus.OK
        and outlet.expiry_told_at is not None
        and outlet.expires_at is not None
    )


def account_of(outlet: Outlet) -> str:
    """Return the account's handle, name or id at the platform, the first that is known, or an empty text."""
    profile: Mapping[str, Any] = outlet.profile
    return str(profile.get("handle") or profile.get("name") or profile.get("external_id") or "")


def bucket_names_of(platform: Platform) -> str:
    """Return the names of the buckets that the platform takes, separated by commas."""
    return ", ".join(str(labels.BUCKETS[bucket]) for bucket in platform.buckets)


@dataclass(frozen=True)
class AccountNote:
    """A note of the platform about an account; `name` and `value` are those of a DNS record to publish, if any."""

    text: str
    name: str = ""
    value: str = ""


def notes_of(outlet: Outlet) -> list[AccountNote]:
    """Return the platform's notes about the outlet's account."""
    return [_parse_note(str(note)) for note in outlet.profile.get("notes") or ()]


def _parse_note(text: str) -> AccountNote:
    match = _NOTE_WITH_TXT_RECORD.fullmatch(text)
    if match is None:
        return AccountNote(text)
    return AccountNote(match["text"], match["name"], match["value"])


@dataclass(frozen=True)
class Limit:
    """How long a post of one bucket may be and which files it may have, as text."""

    bucket: str
    text: str
    files: str


def limits_of(outlet: Outlet) -> list[Limit]:
    """Return the limits of a post in each bucket, as set by the account's own server."""
    limits = resources.Outlet.serialize(outlet, is_default=outlet.is_default)["limits"]
    rules: Mapping[str, Any] = limits["buckets"]
    return [
        Limit(
            str(labels.BUCKETS[bucket]),
            _describe_text_limit(rules.get(bucket)),
            _describe_file_limit(rules.get(bucket)),
        )
        for bucket in platform_of(outlet.platform).buckets
    ]


def pace_of(outlet: Outlet) -> tuple[int | None, int | None]:
    """Return the most posts in any 24 hours, and the least minutes between two posts.

    Both respect the platform's limits and the outlet's settings; `None` stands for no limit.
    """
    limits = resources.Outlet.serialize(outlet, is_default=outlet.is_default)["limits"]
    gap = limits["gap_minutes"]
    return limits["per_day"], None if gap is None else round(gap)


def _describe_text_limit(rule: Mapping[str, Any] | None) -> str:
    if rule is None or rule["text"]["max"] is None:
        return _("No limit")
    return _("%(most)s %(unit)s") % {"most": f"{rule['text']['max']:,}", "unit": rule["text"]["unit"]}


def _describe_file_limit(rule: Mapping[str, Any] | None) -> str:
    if rule is None:
        return ""
    images, video = rule["images"], rule["video"]
    parts = []
    if images:
        parts.append(ngettext("%(most)d image", "%(most)d images", images["max"]) % {"most": images["max"]})
    if video:
        parts.append(ngettext("%(most)d video", "%(most)d videos", video["max"]) % {"most": video["max"]})
    return _(" or ").join(parts)
