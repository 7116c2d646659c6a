"""Lists and validates the time zones that a workspace may have."""

from __future__ import annotations

import zoneinfo
from functools import cache

from config.core.errors import Invalid


@cache
def _known_timezones() -> frozenset[str]:
    """Return all IANA names, cached because each call of the library opens some hundred files."""
    return frozenset(zoneinfo.available_timezones())


def timezone_choices() -> list[tuple[str, str]]:
    """Return the time zones as form choices: UTC, then those of places."""
    places = sorted(name for name in _known_timezones() if "/" in name and not name.startswith("Etc/"))
    return [("UTC", "UTC"), *((name, name.replace("_", " ")) for name in places)]


def validate_timezone(name: str) -> None:
    """Raise `Invalid` if `name` isn't the name of an IANA time zone."""
    if name not in _known_timezones():
        raise Invalid.one(
            field="timezone",
            code="unknown_timezone",
            message="Give an IANA time zone, such as Europe/Berlin.",
        )
