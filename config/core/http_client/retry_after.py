"""Reads the response header `Retry-After` (RFC 9110, 10.2.3)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS: Final = re.compile(r"(\d+)(?:\.\d{0,9})?", re.ASCII)
"""Matches seconds, such as `30`, and seconds with a fraction, which the RFC lacks but models' services send."""
_MAX_DIGITS: Final = 9
"""A number with more digits is longer than any wait; Python refuses to read very long ones."""


def read_retry_after(headers: Mapping[str, str], *, now: datetime, longest: timedelta) -> timedelta | None:
    """Return the wait that `Retry-After` names in seconds or as an HTTP date, from zero to `longest`.

    Returns `None` without the header, and for a value that can't be read. A moment that has passed is a wait of
    zero.
    """
    value = next((text.strip() for name, text in headers.items() if name.lower() == "retry-after"), "")
    if seconds := _SECONDS.fullmatch(value):
        return longest if len(seconds[1]) > _MAX_DIGITS else min(timedelta(seconds=float(value)), longest)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        # "-0000" is UTC without a known local zone, for which the parser returns a naive datetime.
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment - now, timedelta(0)), longest)
