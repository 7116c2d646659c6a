"""What people read about an outlet: its account, how it is doing, what it takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pipeline import labels, payloads
from pipeline.labels import HealthBadge
from pipeline.models import OutletStatus
from pipeline.outlets.outlet_client import platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.models import Outlet
    from pipeline.platforms.base import Platform

_RECORD: Final = re.compile(r'(?P<said>[^\n]*:) (?P<name>\S+) TXT "(?P<value>[^"]+)"')
"""A note that ends with a TXT record, as a line of a zone file shows it."""


def health_of(outlet: Outlet, now: datetime) -> HealthBadge:
    """In plain words; the moments stand beside it."""
    said = str((outlet.last_error or {}).get("message", ""))
    if outlet.status == OutletStatus.DISABLED:
        return HealthBadge("", "circle-pause", _("Switched off"), _("Publishing to it is off."))
    if outlet.status == OutletStatus.NEEDS_RECONNECT:
        return HealthBadge("bad", "circle-alert", _("Reconnect needed"), said)
    if outlet.rests_until is not None and outlet.rests_until > now:
        return HealthBadge("warn", "clock", _("Cooldown"), _("Rate limited by the platform"))
    if outlet.expiry_told_at is not None and outlet.expires_at is not None:
        ends = _("Log-in expires soon. Reconnect it.")
        return HealthBadge("warn", "triangle-alert", _("Log-in expires"), ends)
    if outlet.is_simulated:
        return HealthBadge("info", "eye", _("Test channel"), _("For testing and test keys"))
    return HealthBadge("good", "circle-check", _("Connected"), "")


def wants_reconnect(outlet: Outlet) -> bool:
    """Whether logging in again is what mends it, or what keeps it from breaking."""
    if outlet.status == OutletStatus.NEEDS_RECONNECT:
        return True
    return (
        outlet.status == OutletStatus.OK
        and outlet.expiry_told_at is not None
        and outlet.expires_at is not None
    )


def account_of(outlet: Outlet) -> str:
    profile: Mapping[str, Any] = outlet.profile
    return str(profile.get("handle") or profile.get("name") or profile.get("external_id") or "")


def takes(platform: Platform) -> str:
    return ", ".join(str(labels.BUCKETS[bucket]) for bucket in platform.buckets)


@dataclass(frozen=True)
class AccountNote:
    """What a platform says of an account; `name` and `value` of the DNS record that it asks to be published."""

    said: str
    name: str = ""
    value: str = ""


def notes_of(outlet: Outlet) -> list[AccountNote]:
    return [_note(str(note)) for note in outlet.profile.get("notes") or ()]


def _note(said: str) -> AccountNote:
    found = _RECORD.fullmatch(said)
    if found is None:
        return AccountNote(said)
    return AccountNote(found["said"], found["name"], found["value"])


@dataclass(frozen=True)
class Limit:
    bucket: str
    text: str
    files: str


def limits_of(outlet: Outlet) -> list[Limit]:
    """What one post of each bucket may be, as this account's own server has it."""
    told = payloads.outlet(payloads.row_of(outlet), is_default=outlet.is_default)["limits"]
    rules: Mapping[str, Any] = told["buckets"]
    return [
        Limit(str(labels.BUCKETS[bucket]), _text(rules.get(bucket)), _files(rules.get(bucket)))
        for bucket in platform_of(outlet.platform).buckets
    ]


def pace_of(outlet: Outlet) -> tuple[int | None, int | None]:
    """Posts in any 24 hours and minutes between two, with the platform's own and the workspace's caps."""
    told = payloads.outlet(payloads.row_of(outlet), is_default=outlet.is_default)["limits"]
    gap = told["gap_minutes"]
    return told["per_day"], None if gap is None else round(gap)


def _text(rule: Mapping[str, Any] | None) -> str:
    if rule is None or rule["text"]["max"] is None:
        return _("No limit")
    return _("%(most)s %(unit)s") % {"most": f"{rule['text']['max']:,}", "unit": rule["text"]["unit"]}


def _files(rule: Mapping[str, Any] | None) -> str:
    if rule is None:
        return ""
    images, video = rule["images"], rule["video"]
    told = []
    if images:
        told.append(ngettext("%(most)d image", "%(most)d images", images["max"]) % {"most": images["max"]})
    if video:
        told.append(ngettext("%(most)d video", "%(most)d videos", video["max"]) % {"most": video["max"]})
    return _(" or ").join(told)
