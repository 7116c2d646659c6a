"""Reads moments as RFC 3339 with an offset, and writes them in UTC with `Z`, as the API does."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final

from django.utils.dateparse import parse_date, parse_datetime

# ASCII, because in Python's patterns `\d` matches the digits of every script.
_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
EMPTY_RANGE_MESSAGE: Final = (
    "`to` is the first date or time that is no longer in the range, so it has to be later than `from`: for one day give the "
    "next one."
)
"""The API's answer to a range whose end isn't after its start."""


def read_moment(text: str) -> datetime | None:
    """Return the moment in UTC, or `None` if the text isn't RFC 3339 with an offset, or names no moment."""
    if not _RFC_3339.fullmatch(text):
        return None
    try:
        moment = parse_datetime(text.upper().replace(" ", "T"))
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def explain_invalid_moment(text: str) -> str | None:
    """Return what is wrong with a well-formed text that names no existing date or time, else `None`."""
    if not (_DATE.fullmatch(text) or _RFC_3339.fullmatch(text)):
        return None
    try:
        date(*(int(part) for part in text[:10].split("-")))
    except ValueError:
        return f"There is no day {text[:10]}."
    hour, minute, second = (
        (int(text[start : start + 2]) for start in (11, 14, 17)) if text[10:] else (0, 0, 0)
    )
    if hour > 23 or minute > 59 or second > 59:
        return f"There is no time {text[11:]}: hours end at 23, minutes and seconds at 59."
    return None


def read_date_or_moment(text: str) -> datetime | None:
    """Return the moment, or for a date its first moment in UTC, or `None` if the text is neither."""
    if _DATE.fullmatch(text):
        try:
            day: date | None = parse_date(text)
        except ValueError:
            return None
        return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None
    return read_moment(text)


def format_utc(moment: datetime) -> str:
    """Return the moment as RFC 3339 in UTC with `Z` and milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_utc_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else format_utc(moment)
