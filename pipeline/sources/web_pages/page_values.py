"""Reads single values of pages and sitemaps: lines, addresses, dates.

The child process uses it, so it needs only Python.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urljoin

MAX_URL_CHARACTERS: Final = 2048
MAX_LINE_CHARACTERS: Final = 2000
EARLIEST_YEAR: Final = 1990

Record = dict[str, Any]

ILLEGAL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def line_of(value: object) -> str:
    """Return a text on one line, cut to `MAX_LINE_CHARACTERS`, or an empty string for any other value."""
    if not isinstance(value, str):
        return ""
    # Cut before it is split, which bounds the work for a text of megabytes.
    start = ILLEGAL_CHARACTERS.sub("", value)[: 10 * MAX_LINE_CHARACTERS]
    return " ".join(start.split())[:MAX_LINE_CHARACTERS]


def web_address(value: object, base: str) -> str:
    """Return the absolute http(s) address, or an empty string if it isn't one or is too long."""
    text = "".join(value[: 4 * MAX_URL_CHARACTERS].split()) if isinstance(value, str) else ""
    try:
        address = urljoin(base, text) if text else ""
    except ValueError:
        return ""
    is_web = address.lower().startswith(("http://", "https://")) and len(address) <= MAX_URL_CHARACTERS
    return ILLEGAL_CHARACTERS.sub("", address) if is_web else ""


def timestamp_of(text: object) -> int | None:
    """Return an ISO date in seconds since 1970, read in UTC unless it names a zone.

    It is `None` for any other value, and for a year before `EARLIEST_YEAR`.
    """
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text[:64].strip())
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return int(moment.timestamp()) if moment.year >= EARLIEST_YEAR else None
