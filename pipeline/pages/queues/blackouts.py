"""Stretches without slots as people write them: a line for each, `2027-12-24 to 2027-12-26 Holidays`."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DATE: Final = r"(\d{4}-\d{2}-\d{2})(?: (\d{2}:\d{2}))?"
_LINE: Final = re.compile(rf"{_DATE}(?: to {_DATE})?(?: (.*))?", re.ASCII)


def read(text: str) -> list[dict[str, str]] | None:
    """As the stage takes them; a day without a time is meant whole, the last one too. None where a line is no stretch."""
    found = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = _LINE.fullmatch(re.sub(r"\s+", " ", line))
        if match is None:
            return None
        first, begins, last, ends, reason = match.groups()
        try:
            start = datetime.combine(date.fromisoformat(first), time.fromisoformat(begins or "00:00"))
            end = datetime.combine(date.fromisoformat(last or first), time.fromisoformat(ends or "00:00"))
            # A time alone closes the rest of its day.
            until = end if ends else end + timedelta(days=1)
        except (ValueError, OverflowError):
            return None
        found.append({"from": _text(start), "until": _text(until), "reason": reason or ""})
    return found


def written(blackouts: Sequence[Mapping[str, str]]) -> str:
    """As `read` reads it again."""
    return "\n".join(_line(one) for one in blackouts)


def _line(one: Mapping[str, str]) -> str:
    start, until = (datetime.fromisoformat(one[name]) for name in ("from", "until"))
    first = f"{start:%Y-%m-%d}" if start.time() == time.min else f"{start:%Y-%m-%d %H:%M}"
    last = f"{until - timedelta(days=1):%Y-%m-%d}" if until.time() == time.min else f"{until:%Y-%m-%d %H:%M}"
    return " ".join(filter(None, (first if first == last else f"{first} to {last}", one.get("reason", ""))))


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")
