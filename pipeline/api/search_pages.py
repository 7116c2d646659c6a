"""Builds the parameter `q`, and pages of search results, whose cursor holds the position in the ranking."""

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

_MAX_POSITIONS: Final = 4096
"""The positions that a cursor can hold: more than any search has results."""


def search_parameter(of: str = "title and text") -> Parameter:
    """Return the parameter `q`; `of` says which texts are searched."""
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


def search_page(
    request: Request,
    query: Mapping[str, Any],
    rows: QuerySet[Any],
    *,
    is_narrowed: bool,
    find: Callable[[QuerySet[Any] | None], Sequence[UUID]],
    read: Callable[[QuerySet[Any], Sequence[UUID]], list[dict[str, Any]]],
) -> Page:
    """Return a page of a search: best first, or by age if `order` is given.

    `find` returns the keys of the rows with the words, best first, among the given rows, or among all for
    `None`; `read` returns the rows of some keys, in their order. `is_narrowed` is `False` if `rows` are all.
    Raises `InvalidCursor` if the cursor is another list's or too old.
    """
    if "order" in query:

        def fetch_by_age(after: UUID | int | None, max_rows: int, *, is_ascending: bool) -> list[Any]:
            keys = sorted(find(rows if is_narrowed else None), reverse=not is_ascending)
            if isinstance(after, UUID):
                keys = [key for key in keys if (key > after if is_ascending else key < after)]
            return read(rows, keys[:max_rows])

        return page_by(request, fetch_by_age, query, key_of=lambda row: row["id"])

    positions: dict[UUID, int] = {}

    def fetch_best(after: UUID | int | None, max_rows: int, *, is_ascending: bool) -> list[Any]:
        del is_ascending
        searched_at, position = _decode_position(after)
        # Rows that were created after the first page would shift the ranking.
        earlier = rows.filter(created_at__lte=searched_at) if position else rows
        keys = find(earlier if position or is_narrowed else None)[position : position + max_rows]
        positions.update(
            (key, _encode_position(searched_at, position + number)) for number, key in enumerate(keys, 1)
        )
        return read(rows, keys)

    return page_by(request, fetch_best, query, key_of=lambda row: positions[row["id"]])


def read_values(fields: Sequence[str]) -> Callable[[QuerySet[Any], Sequence[UUID]], list[dict[str, Any]]]:
    """Return a `read` for `search_page` that reads these fields of each row."""

    def read(rows: QuerySet[Any], keys: Sequence[UUID]) -> list[dict[str, Any]]:
        rows_by_key = {row["id"]: row for row in rows.filter(pk__in=keys).values(*fields)}
        return [rows_by_key[key] for key in keys if key in rows_by_key]

    return read


def _encode_position(searched_at: datetime, position: int) -> int:
    """Return one number for the time of the first page, in milliseconds, and the number of results shown."""
    return math.ceil(searched_at.timestamp() * 1000) * _MAX_POSITIONS + position


def _decode_position(after: UUID | int | None) -> tuple[datetime, int]:
    """Return the values that `_encode_position` put into a cursor; the present and 0 if there is no cursor.

    Raises `InvalidCursor` if the cursor is another list's, or older than `limits.SEARCH_SECONDS`.
    """
    now = utc_now()
    if after is None:
        return now, 0
    if not isinstance(after, int):
        raise InvalidCursor
    milliseconds, position = divmod(after, _MAX_POSITIONS)
    searched_at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    if now - searched_at > timedelta(seconds=limits.SEARCH_SECONDS):
        raise InvalidCursor
    return searched_at, position
