"""How a search of items is asked for: its words, and a cursor that keeps the place in what was found."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from config.core.api.pagination import InvalidCursor
from config.core.api.query_params import Parameter, plain_text
from config.core.clock import utc_now
from pipeline import limits, search

if TYPE_CHECKING:
    from uuid import UUID

_PLACES: Final = 4096
"""More than a search has results."""


def words() -> Parameter:
    plain = plain_text(limits.SEARCH_CHARACTERS)

    def read(text: str) -> str:
        if not search.has_words(plain.read(text)):
            message = "Give at least one word to look for."
            raise ValueError(message)
        return text

    description = (
        "Words of title and text, the last one also as the beginning of a word. Best first unless `order` is given; "
        f"the best {limits.SEARCH_RESULTS:,}, with cursors that last an hour."
    )
    return Parameter(read, description=description, schema=plain.schema)


def place_after(asked_at: datetime, place: int) -> int:
    """When a search was first asked, in milliseconds, and how many of its results were shown, as one number."""
    return math.ceil(asked_at.timestamp() * 1000) * _PLACES + place


def read_place(after: UUID | int | None) -> tuple[datetime, int]:
    """What `place_after` put into a cursor; raises `InvalidCursor` for another list's, and for one that is too old."""
    now = utc_now()
    if after is None:
        return now, 0
    if not isinstance(after, int):
        raise InvalidCursor
    milliseconds, place = divmod(after, _PLACES)
    asked_at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    if now - asked_at > timedelta(seconds=limits.SEARCH_SECONDS):
        raise InvalidCursor
    return asked_at, place
