"""The query parameters that filter `GET /v1/generated`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from config.core.api.pagination import PAGING
from config.core.api.query_params import (
    EXCLUSIVE_END_DESCRIPTION,
    Parameter,
    choice,
    choices,
    moment_or_date,
    plain_text,
    public_id,
)
from config.core.datetimes import EMPTY_RANGE_MESSAGE
from config.core.errors import Invalid
from pipeline.api import search_pages
from pipeline.models import Bucket, GeneratedItemStatus
from pipeline.resources import LONG_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping


def _include_parameter() -> Parameter:
    """Return the parameter that names the long fields to show, separated by commas."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in LONG_FIELDS:
                message = f"Name some of: {', '.join(LONG_FIELDS)}, with commas between them."
                raise ValueError(message)
        return names

    pattern = f"^({'|'.join(LONG_FIELDS)})(,({'|'.join(LONG_FIELDS)}))*$"
    return Parameter(
        read,
        description=f"Long fields to show, with commas between them: {', '.join(LONG_FIELDS)}.",
        schema={"type": "string", "pattern": pattern},
    )


def _variant_group_parameter() -> Parameter:
    """Return the parameter that takes a variant group in hexadecimal."""

    def read(text: str) -> UUID:
        # UUID() alone would accept braces, hyphens and the digits of every script.
        if not re.fullmatch(r"[0-9a-f]{32}", text):
            message = "Give a variant's group, 32 hexadecimal digits."
            raise ValueError(message)
        return UUID(hex=text)

    return Parameter(read, schema={"type": "string", "pattern": "^[0-9a-f]{32}$"})


FILTERS: Final[Mapping[str, Parameter]] = {
    **PAGING,
    "q": search_pages.search_parameter(),
    "source": public_id("src").on("source_id"),
    "status": choices(*GeneratedItemStatus.values).on("status__in"),
    "bucket": choice(*Bucket.values).on("bucket"),
    "engine_output": plain_text(60).on("engine_output"),
    "raw_item": public_id("raw"),
    "persona": public_id("per").on("persona_id"),
    "outlet": public_id("out"),
    "variant_group": _variant_group_parameter().on("variant_group"),
    "created_after": moment_or_date().on("created_at__gte"),
    "created_before": moment_or_date(EXCLUSIVE_END_DESCRIPTION).on("created_at__lt"),
    "from": moment_or_date(),
    "to": moment_or_date(EXCLUSIVE_END_DESCRIPTION),
    "updated_after": moment_or_date().on("updated_at__gte"),
    "updated_before": moment_or_date(EXCLUSIVE_END_DESCRIPTION).on("updated_at__lt"),
    "publish_after": moment_or_date().on("publish_at__gte"),
    "publish_before": moment_or_date(EXCLUSIVE_END_DESCRIPTION).on("publish_at__lt"),
    "include": _include_parameter(),
}
_ALIASES: Final[Mapping[str, str]] = {"from": "created_after", "to": "created_before"}
"""Short aliases, named as in `GET /analytics`."""
JOINED_FILTERS: Final = frozenset({"outlet", "raw_item"})
"""Filters that need a join, which `filter_items` makes."""


def expand_aliases(query: dict[str, Any]) -> dict[str, Any]:
    """Rename `from` and `to` in `query` to their long names and return it.

    Raises `Invalid` if both names of one are given, or if `from` isn't before `to`.
    """
    # Only the aliases promise a range; the long names are independent bounds.
    start, end = query.get("from"), query.get("to")
    if start is not None and end is not None and start >= end:
        raise Invalid.one(field="to", code="empty_range", message=EMPTY_RANGE_MESSAGE)
    for short, name in _ALIASES.items():
        if short in query:
            if name in query:
                message = f"Give {short} or {name}: they mean the same."
                raise Invalid.one(field=short, code="conflict", message=message)
            query[name] = query.pop(short)
    return query
