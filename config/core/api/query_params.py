"""Parameters of queries, read strictly, with advice on those that are unknown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.types import OpenApiTypes

from config.core import ids
from config.core.api.fields import unknown_names, where_listed
from config.core.api.nearest import nearest
from config.core.datetimes import read_date_or_moment, why_no_moment
from config.core.errors import Detail, Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from rest_framework.request import Request


@dataclass(frozen=True)
class Parameter:
    """One query parameter: `read` turns text into a value or raises ValueError with the sentence to answer."""

    read: Callable[[str], Any]
    is_repeatable: bool = False
    description: str = ""
    schema: Any = OpenApiTypes.STR
    has_commas: bool = False
    """Whether one text may hold several values of a repeatable one."""


def read_query(request: Request, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The parameters that were given, read; refuses unknown ones and repeated ones that may not be."""
    if not request.META.get("QUERY_STRING"):
        return {}
    given = request.query_params
    unknown = {name: texts[-1] for name, texts in given.lists() if name not in parameters}
    advice = {name: told for name, text in unknown.items() if (told := _advice(name, text, parameters))}
    details = unknown_names(unknown, parameters, what="parameter", advice=advice)
    values: dict[str, Any] = {}
    for name, texts in given.lists():
        parameter = parameters.get(name)
        if parameter is None:
            continue
        if len(texts) > 1 and not parameter.is_repeatable:
            details.append(Detail(name, "repeated", f"{name} may be given once."))
            continue
        parts = [part for text in texts for part in text.split(",")] if parameter.has_commas else texts
        read, faults = _read_each(name, parameter, parts)
        details += faults
        if not faults:
            values[name] = read if parameter.is_repeatable else read[0]
    if details:
        raise Invalid(*details)
    return values


def _read_each(name: str, parameter: Parameter, texts: Sequence[str]) -> tuple[list[Any], list[Detail]]:
    read: list[Any] = []
    faults: list[Detail] = []
    for text in texts:
        if "\x00" in text:
            faults.append(Detail(name, "nul_character", "Text may not hold the NUL character."))
            continue
        try:
            read.append(parameter.read(text))
        except ValueError as error:
            faults.append(Detail(name, "invalid", str(error)))
    return read, faults


_DATED: Final = re.compile(r"\d{4}-\d\d")
_AFTER: Final = frozenset({"after", "min_date"})
_BEFORE: Final = frozenset({"before", "max_date"})
_DAY: Final = frozenset({"date", "day", "on"})
_NUMBERED: Final = frozenset({"page", "offset", "skip", "page_number"})
_OF_PAGES: Final = frozenset({*_NUMBERED, "limit", "cursor", "per_page", "page_size"})
_LONG: Final = frozenset(
    {"period", "range", "days", "last", "date_range", "time_range", "timeframe", "window"}
)
_SORTED: Final = frozenset({"sort", "sort_by", "order_by"})
# In a query a plus sign that isn't written as %2B is a space.
_LOST_PLUS: Final = re.compile(r"\d \d\d:\d\d$", re.ASCII)


def _advice(name: str, text: str, parameters: Mapping[str, Parameter]) -> str:
    """A hint which parameter was probably meant by an unknown one; empty if none fits."""
    if name in _NUMBERED and "cursor" in parameters:
        return "Pages have no numbers: give cursor, with the next_cursor of the page before."
    if name in _OF_PAGES and "cursor" not in parameters:
        return "This answer has no pages: it holds everything that is asked for."
    if name in _SORTED and "order" in parameters:
        return "The order is that in which things were made: order=desc (the default) or order=asc."
    begin, end = (
        next((one for one in names if one in parameters), "")
        for names in (("from", "created_after"), ("to", "created_before"))
    )
    if name in _DAY and begin and end:
        return f"For one day give {begin} with that day and {end} with the next one."
    if _DATED.match(text) and name in _AFTER | _BEFORE:
        wanted = ("from", "created_after") if name in _AFTER else ("to", "created_before")
        own = next((one for one in wanted if one in parameters), None)
        return f"Did you mean {own}?" if own else ""
    words = {one: _allowed_values(parameter) for one, parameter in parameters.items()}
    taking = [one for one, values in words.items() if text in values]
    if len(taking) == 1:
        return f"Did you mean {taking[0]}={text}?"
    if name in _LONG and begin and end:
        return f"Give {begin} and {end}, as dates; {end} is the first day that is no longer in the range."
    near = nearest(name, parameters)
    return f"Did you mean {near}? It is one of: {', '.join(words[near])}." if near and words[near] else ""


def _allowed_values(parameter: Parameter) -> Sequence[str]:
    """The allowed values of a choice; empty for free text."""
    schema = parameter.schema if isinstance(parameter.schema, dict) else {}
    words: Sequence[str] = schema.get("items", schema).get("enum", ())
    return words


def choice(*allowed: str) -> Parameter:
    def read(text: str) -> str:
        if text not in allowed:
            message = f"Give one of: {', '.join(allowed)}."
            raise ValueError(message)
        return text

    return Parameter(read, schema={"type": "string", "enum": list(allowed)})


def choices(*allowed: str) -> Parameter:
    """Several of them, by repeating the parameter or with commas between."""
    one = choice(*allowed)
    schema = {"type": "array", "items": one.schema}
    return Parameter(one.read, is_repeatable=True, has_commas=True, schema=schema)


def public_id(prefix: str) -> Parameter:
    def read(text: str) -> UUID:
        value = ids.decode(prefix, text)
        if value is None:
            message = f"Give an id of the form {prefix}_ and 26 characters{where_listed(prefix)}."
            raise ValueError(message)
        return value

    return Parameter(read, schema={"type": "string", "pattern": f"^{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$"})


DATE_OR_MOMENT: Final = {
    "description": "A date, or an RFC 3339 time with an offset.",
    "anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}],
}
LEAVES_DAY_OUT: Final = (
    "The first date or time that is no longer in the range: a date leaves that whole day out."
)


def why_no_date(text: str) -> str:
    """What to say of a text that is neither a date nor a moment."""
    if _LOST_PLUS.search(text):
        return "In an address a plus sign is written %2B, as in 2026-11-20T09:30:00%2B01:00."
    return why_no_moment(text) or "Give a date (2026-11-20) or a time with an offset (2026-11-20T09:30:00Z)."


def moment_or_date(description: str = "") -> Parameter:
    def read(text: str) -> datetime:
        moment = read_date_or_moment(text)
        if moment is None:
            raise ValueError(why_no_date(text))
        return moment

    return Parameter(read, description=description, schema=DATE_OR_MOMENT)


def plain_text(most: int = 200) -> Parameter:
    def read(text: str) -> str:
        if not 1 <= len(text) <= most:
            message = f"Give 1 to {most} characters."
            raise ValueError(message)
        return text

    return Parameter(read, schema={"type": "string", "minLength": 1, "maxLength": most})
