"""The query parameters by which `GET /v1/generated` narrows its list."""

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
from config.core.datetimes import EMPTY_RANGE
from config.core.errors import Invalid
from pipeline import payloads
from pipeline.api import search_params
from pipeline.models import Bucket, GeneratedItemStatus

if TYPE_CHECKING:
    from collections.abc import Mapping


def _include() -> Parameter:
    known = tuple(payloads.GENERATED_ITEM_LONG_FIELDS)

    def read(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                message = f"Name some of: {', '.join(known)}, with commas between them."
                raise ValueError(message)
        return names

    pattern = f"^({'|'.join(known)})(,({'|'.join(known)}))*$"
    return Parameter(
        read,
        description=f"Long fields to show, with commas between them: {', '.join(known)}.",
        schema={"type": "string", "pattern": pattern},
    )


def _variant_group() -> Parameter:
    def read(text: str) -> UUID:
        # UUID() alone takes braces, hyphens and the digits of every script.
        if not re.fullmatch(r"[0-9a-f]{32}", text):
            message = "Give a variant's group, 32 hexadecimal digits."
            raise ValueError(message)
        return UUID(hex=text)

    return Parameter(read, schema={"type": "string", "pattern": "^[0-9a-f]{32}$"})


FILTERS: Final[Mapping[str, Parameter]] = {
    **PAGING,
    "q": search_params.words(),
    "source": public_id("src"),
    "status": choices(*GeneratedItemStatus.values),
    "bucket": choice(*Bucket.values),
    "engine_output": plain_text(60),
    "raw_item": public_id("raw"),
    "persona": public_id("per"),
    "outlet": public_id("out"),
    "variant_group": _variant_group(),
    "created_after": moment_or_date(),
    "created_before": moment_or_date(EXCLUSIVE_END_DESCRIPTION),
    "from": moment_or_date(),
    "to": moment_or_date(EXCLUSIVE_END_DESCRIPTION),
    "updated_after": moment_or_date(),
    "updated_before": moment_or_date(EXCLUSIVE_END_DESCRIPTION),
    "publish_after": moment_or_date(),
    "publish_before": moment_or_date(EXCLUSIVE_END_DESCRIPTION),
    "include": _include(),
}
_SHORT: Final[Mapping[str, str]] = {"from": "created_after", "to": "created_before"}
"""As `GET /analytics` says it."""
ELSEWHERE: Final = frozenset({"outlet", "raw_item"})
"""Filters by what other tables know of an item."""


def in_full(query: dict[str, Any]) -> dict[str, Any]:
    """The same filters by their long names; raises `Invalid` where one is given by both."""
    start, end = query.get("from"), query.get("to")
    if start is not None and end is not None and start >= end:
        raise Invalid.one(field="to", code="empty_range", message=EMPTY_RANGE)
    for short, name in _SHORT.items():
        if short in query:
            if name in query:
                message = f"Give {short} or {name}: they mean the same."
                raise Invalid.one(field=short, code="conflict", message=message)
            query[name] = query.pop(short)
    return query
