"""How a list is searched: the words that `q` takes, and pages of what was found, by a cursor that keeps the place."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from config.core.api.pagination import InvalidCursor, Page, page_by
from config.core.api.query_params import Parameter, plain_text
from config.core.clock import utc_now
from pipeline import limits, search

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import QuerySet
    from rest_framework.request import Request

_PLACES: Final = 4096
"""More than a search has results."""


def words(of: str = "title and text") -> Parameter:
    """The parameter `q`; `of` says whose words are looked at."""
    plain = plain_text(limits.SEARCH_CHARACTERS)

    def read(text: str) -> str:
        if not search.has_words(plain.read(text)):
            message = "Give at least one word to look for."
            raise ValueError(message)
        return text

    description = (
        f"Words of {of}, the last one also as the beginning of a word. Best first unless `order` is given; "
        f"the best {limits.SEARCH_RESULTS:,}, with cursors that last an hour."
    )
    return Parameter(read, description=description, schema=plain.schema)


def page_found(
    request: Request,
    query: Mapping[str, Any],
    rows: QuerySet[Any],
    *,
    is_narrowed: bool,
    find: Callable[[QuerySet[Any] | None], Sequence[UUID]],
    read: Callable[[QuerySet[Any], Sequence[UUID]], list[dict[str, Any]]],
) -> Page:
    """A page of a search: best first, or by age where `order` is given.

    `find` gives the keys of what has the words, best first, among the rows that it is handed, or among all; `read` gives
    the rows of some keys, in their order.
    """
    if "order" in query:

        def ask(after: UUID | int | None, max_rows: int, *, is_ascending: bool) -> list[Any]:
            keys = sorted(find(rows if is_narrowed else None), reverse=not is_ascending)
            if isinstance(after, UUID):
                keys = [key for key in keys if (key > after if is_ascending else key < after)]
            return read(rows, keys[:max_rows])

        return page_by(request, ask, query, key_of=lambda row: row["id"])

    places: dict[UUID, int] = {}

    def ask_best(after: UUID | int | None, max_rows: int, *, is_ascending: bool) -> list[Any]:
        del is_ascending
        asked_at, place = _read_place(after)
        # What came after the first page would move the others.
        earlier = rows.filter(created_at__lte=asked_at) if place else rows
        keys = find(earlier if place or is_narrowed else None)[place : place + max_rows]
        places.update((key, _place_after(asked_at, place + number)) for number, key in enumerate(keys, 1))
        return read(rows, keys)

    return page_by(request, ask_best, query, key_of=lambda row: places[row["id"]])


def read_values(fields: Sequence[str]) -> Callable[[QuerySet[Any], Sequence[UUID]], list[dict[str, Any]]]:
    """A `read` of `page_found`: these fields of each row."""

    def read(rows: QuerySet[Any], keys: Sequence[UUID]) -> list[dict[str, Any]]:
        found = {row["id"]: row for row in rows.filter(pk__in=keys).values(*fields)}
        return [found[key] for key in keys if key in found]

    return read


def _place_after(asked_at: datetime, place: int) -> int:
    """When a search was first asked, in milliseconds, and how many of its results were shown, as one number."""
    return math.ceil(asked_at.timestamp() * 1000) * _PLACES + place


def _read_place(after: UUID | int | None) -> tuple[datetime, int]:
    """What `_place_after` put into a cursor; raises `InvalidCursor` for another list's, and for one that is too old."""
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
