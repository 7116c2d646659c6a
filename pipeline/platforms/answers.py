"""Reads what platforms answer over HTTP: JSON that may be none, and how long to wait."""

from __future__ import annotations

import json
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

LONGEST_WAIT = timedelta(hours=24)
"""No platform may park a publication for longer than this."""
_LONGEST_NUMBER = 9


def json_object(body: bytes) -> dict[str, Any] | None:
    """The JSON object that the body holds; None where it holds anything else."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        # Nesting without end is one more way of not being JSON.
        return None
    return answer if isinstance(answer, dict) else None


def retry_after(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """The wait that the header names in seconds or as a date, at most `LONGEST_WAIT`; None without one."""
    value = next((text.strip() for name, text in headers.items() if name.lower() == "retry-after"), "")
    if value.isascii() and value.isdigit():
        wait = LONGEST_WAIT if len(value) > _LONGEST_NUMBER else timedelta(seconds=int(value))
        return min(wait, LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        # "-0000" means UTC without saying where the server is.
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment - now, timedelta(0)), LONGEST_WAIT)
