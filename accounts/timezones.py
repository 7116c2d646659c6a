"""Lists and validates the time zones that a workspace may have."""

from __future__ import annotations

import zoneinfo
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from config.core.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping


@cache
def _known_timezones() -> frozenset[str]:
    """Return all IANA names, cached because each call of the library opens some hundred files."""
    return frozenset(zoneinfo.available_timezones())


def is_known(name: str) -> bool:
    """Return whether the name is an IANA time zone, obsolete names included."""
    return name in _known_timezones()


@cache
def _place_names() -> tuple[str, ...]:
    """Return the names of places that aren't obsolete, from the table `zone.tab` of the IANA database."""
    rows = _read_table("zone.tab")
    return tuple(sorted(row.split("\t")[2] for row in rows if not row.startswith("#")))


_OWN_PLACES: Final[Mapping[str, str]] = {
    "Africa/Asmera": "Africa/Asmara",
    "Africa/Timbuktu": "Africa/Bamako",
    "America/Coral_Harbour": "America/Atikokan",
    "America/Virgin": "America/St_Thomas",
    "Antarctica/South_Pole": "Antarctica/McMurdo",
    "Atlantic/Jan_Mayen": "Arctic/Longyearbyen",
    "Pacific/Ponape": "Pacific/Pohnpei",
    "Pacific/Truk": "Pacific/Chuuk",
    "Pacific/Yap": "Pacific/Chuuk",
}
"""The listed place of the same country by an obsolete name that `tzdata.zi` links to another country's place.

From the lines of the file `backward` of the IANA database, before their places were merged.
"""


@cache
def present_names() -> dict[str, str]:
    """Return the present name by each obsolete name of a place, such as `Asia/Kolkata` by `Asia/Calcutta`.

    It is a place of the same country, if one is listed that has the same time.
    """
    places = set(_place_names())
    # A line `L Asia/Kolkata Asia/Calcutta` makes the last name an alias.
    links = [row.split() for row in _read_table("tzdata.zi") if row.startswith("L ")]
    linked = {
        alias: name for _mark, name, alias in links if name in places and "/" in alias and alias not in places
    }
    return {**linked, **_OWN_PLACES}


def _read_table(name: str) -> list[str]:
    return files("tzdata.zoneinfo").joinpath(name).read_text(encoding="utf-8").splitlines()


def timezone_choices(*stored: str) -> list[tuple[str, str]]:
    """Return the time zones as form choices: those in `stored` that aren't listed otherwise, UTC, then places.

    Obsolete names aren't listed, but a row may have one.
    """
    listed = ["UTC", *_place_names()]
    unlisted = [name for name in dict.fromkeys(stored) if name and name not in listed]
    return [(name, name.replace("_", " ")) for name in (*unlisted, *listed)]


def validate_timezone(name: str) -> None:
    """Raise `Invalid` if `name` isn't the name of an IANA time zone."""
    if not is_known(name):
        raise Invalid.one(
            field="timezone",
            code="unknown_timezone",
            message="Give an IANA time zone, such as Europe/Berlin.",
        )
