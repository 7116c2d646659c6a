"""The time zones that a workspace may have."""

from __future__ import annotations

import zoneinfo
from functools import cache

from config.core.errors import Invalid


@cache
def _known_timezones() -> frozenset[str]:
    """Read once: each call of the library looks at some hundred files."""
    return frozenset(zoneinfo.available_timezones())


def timezone_choices() -> list[tuple[str, str]]:
    """Every time zone that a workspace may have, for a form."""
    places = sorted(name for name in _known_timezones() if "/" in name and not name.startswith("Etc/"))
    return [("UTC", "UTC"), *((name, name.replace("_", " ")) for name in places)]


def refuse_unknown_timezone(name: str) -> None:
    """Raises `Invalid` for what is no name of an IANA time zone."""
    if name not in _known_timezones():
        raise Invalid.one(
            field="timezone",
            code="unknown_timezone",
            message="Give an IANA time zone, such as Europe/Berlin.",
        )
