"""Reads query parameters strictly, with advice on unknown ones."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.types import OpenApiTypes

from config.core import ids
from config.core.api.fields import unknown_names, where_listed
from config.core.api.nearest import find_nearest
from config.core.datetimes import explain_invalid_moment, read_date_or_moment
from config.core.errors import Detail, Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet
    from django.http import QueryDict
    from rest_framework.request import Request


@dataclass(frozen=True)
class Parameter:
    """A query parameter of a view.

    `read` turns text into a value, or raises `ValueError` with the sentence to answer. `description` and `schema`
    are for the OpenAPI document, `lookup` is for `filter_rows`.
    """

    read: Callable[[str], Any]
    is_repeatable: bool = False
    """True if it may be given several times, or once with several values that commas separate."""
    description: str = ""
    schema: Any = OpenApiTypes.STR
    lookup: str = ""

    def on(self, lookup: str) -> Parameter:
        """Return this parameter as a filter by a lookup of Django's, such as `created_at__gte`."""
        return replace(self, lookup=lookup)


def read_query(request: Request, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the values of the parameters that the request has; a repeatable parameter's value is a list.

    Raises `Invalid` with a detail for each unknown name, wrongly repeated parameter and text that can't be read.
    """
    if not request.META.get("QUERY_STRING"):
        return {}
    given = _texts_by_name(request.query_params, parameters)
    unknown = {name: texts[-1] for name, texts in given.items() if name not in parameters}
    advice = {
        name: advice_text
        for name, text in unknown.items()
        if (advice_text := _advice(name, text, parameters))
    }
    details = unknown_names(unknown, parameters, noun="parameter", advice=advice)
    values: dict[str, Any] = {}
    for name, texts in given.items():
        parameter = parameters.get(name)
        if parameter is None:
            continue
        if len(texts) > 1 and not parameter.is_repeatable:
            details.append(Detail(name, "repeated", f"{name} may be given once."))
            continue
        parts = [part for text in texts for part in text.split(",")] if parameter.is_repeatable else texts
        read_values, problems = _read_each(name, parameter, parts)
        details += problems
        if not problems:
            values[name] = read_values if parameter.is_repeatable else read_values[0]
    if details:
        raise Invalid(*details)
    return values


def filter_rows(
    rows: QuerySet[Any], query: Mapping[str, Any], parameters: Mapping[str, Parameter]
) -> QuerySet[Any]:
    """Return the rows that match the parameters in `query` that have a lookup."""
    for name, value in query.items():
        if lookup := parameters[name].lookup:
            rows = rows.filter(**{lookup: value})
    return rows


def _texts_by_name(query_params: QueryDict, parameters: Mapping[str, Parameter]) -> dict[str, list[str]]:
    """Return what was given for each name; `status[]`, as many clients write it, is `status` if that is repeatable."""
    texts_by_name: dict[str, list[str]] = {}
    for written_name, texts in query_params.lists():
        name = written_name.removesuffix("[]")
        if name not in parameters or not parameters[name].is_repeatable:
            name = written_name
        texts_by_name.setdefault(name, []).extend(texts)
    return texts_by_name


def _read_each(name: str, parameter: Parameter, texts: Sequence[str]) -> tuple[list[Any], list[Detail]]:
    """Return the values of the texts, and a detail for each text that can't be read."""
    read_values: list[Any] = []
    problems: list[Detail] = []
    for text in texts:
        if "\x00" in text:
            problems.append(Detail(name, "nul_character", "Text may not hold the NUL character."))
            continue
        try:
            read_values.append(parameter.read(text))
        except ValueError as error:
            problems.append(Detail(name, "invalid", str(error)))
    return read_values, problems


_DATE_START: Final = re.compile(r"\d{4}-\d\d")
_AFTER_NAMES: Final = frozenset({"after", "min_date"})
_BEFORE_NAMES: Final = frozenset({"before", "max_date"})
_DAY_NAMES: Final = frozenset({"date", "day", "on"})
_PAGE_NUMBER_NAMES: Final = frozenset({"page", "offset", "skip", "page_number"})
_PAGING_NAMES: Final = frozenset({*_PAGE_NUMBER_NAMES, "limit", "cursor", "per_page", "page_size"})
_PERIOD_NAMES: Final = frozenset(
    {"period", "range", "days", "last", "date_range", "time_range", "timeframe", "window"}
)
_SORT_NAMES: Final = frozenset({"sort", "sort_by", "order_by"})
# The space of 2026-11-20T09:30:00 01:00.
_LOST_PLUS: Final = re.compile(r"(?<=\d) (?=\d\d:\d\d$)", re.ASCII)


def _advice(name: str, text: str, parameters: Mapping[str, Parameter]) -> str:
    """Return the advice for an unknown parameter, or an empty text if only the nearest name can be suggested."""
    if name in _PAGE_NUMBER_NAMES and "cursor" in parameters:
        return "Pages have no numbers: give cursor, with the next_cursor of the previous page."
    if name in _PAGING_NAMES and "cursor" not in parameters:
        return "This answer has no pages: it holds everything that is asked for."
    if name in _SORT_NAMES and "order" in parameters:
        return "The order is that in which things were made: order=desc (the default) or order=asc."
    begin, end = (
        next((known_name for known_name in names if known_name in parameters), "")
        for names in (("from", "created_after"), ("to", "created_before"))
    )
    if name in _DAY_NAMES and begin and end:
        return f"For one day give {begin} with that day and {end} with the next one."
    if _DATE_START.match(text) and name in _AFTER_NAMES | _BEFORE_NAMES:
        date_names = ("from", "created_after") if name in _AFTER_NAMES else ("to", "created_before")
        date_name = next((known_name for known_name in date_names if known_name in parameters), None)
        return f"Did you mean {date_name}?" if date_name else ""
    allowed_values = {known_name: _allowed_values(parameter) for known_name, parameter in parameters.items()}
    accepting = [known_name for known_name, values in allowed_values.items() if text in values]
    if len(accepting) == 1:
        return f"Did you mean {accepting[0]}={text}?"
    if name in _PERIOD_NAMES and begin and end:
        return f"Give {begin} and {end}, as dates; {end} is the first day that is no longer in the range."
    meant = find_nearest(name, parameters)
    return (
        f"Did you mean {meant}? It is one of: {', '.join(allowed_values[meant])}."
        if meant and allowed_values[meant]
        else ""
    )


def _allowed_values(parameter: Parameter) -> Sequence[str]:
    """Return the allowed values of a choice; there are none for free text."""
    schema = parameter.schema if isinstance(parameter.schema, dict) else {}
    values: Sequence[str] = schema.get("items", schema).get("enum", ())
    return values


def choice(*allowed: str) -> Parameter:
    """Return a parameter that takes one of these values."""

    def read(text: str) -> str:
        if text not in allowed:
            message = f"Give one of: {', '.join(allowed)}."
            raise ValueError(message)
        return text

    return Parameter(read, schema={"type": "string", "enum": list(allowed)})


def choices(*allowed: str) -> Parameter:
    """Return a parameter that takes several of these values, by repetition or separated by commas."""
    single = choice(*allowed)
    schema = {"type": "array", "items": single.schema}
    return Parameter(single.read, is_repeatable=True, schema=schema)


def flag() -> Parameter:
    """Return a parameter that takes `true` or `false`; its value is a boolean."""
    text = choice("true", "false")
    return replace(text, read=lambda given: text.read(given) == "true")


def public_id(prefix: str) -> Parameter:
    """Return a parameter that takes a public id of this prefix; its value is a UUID."""

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
EXCLUSIVE_END_DESCRIPTION: Final = (
    "The first date or time that is no longer in the range: a date leaves that whole day out."
)


def explain_invalid_date(text: str) -> str:
    """Return what to say about a text that is neither a date nor a moment."""
    return (
        explain_invalid_moment(text)
        or "Give a date (2026-11-20) or a time with an offset (2026-11-20T09:30:00Z)."
    )


def restore_plus(text: str) -> str:
    """Return the text with the plus sign of its offset, which a query without `%2B` has as a space."""
    return _LOST_PLUS.sub("+", text)


def moment_or_date(description: str = "") -> Parameter:
    """Return a parameter that takes a moment, or a date for its first moment in UTC."""

    def read(text: str) -> datetime:
        moment = read_date_or_moment(restore_plus(text))
        if moment is None:
            raise ValueError(explain_invalid_date(text))
        return moment

    return Parameter(read, description=description, schema=DATE_OR_MOMENT)


def plain_text(max_characters: int = 200) -> Parameter:
    """Return a parameter that takes 1 to `max_characters` characters."""

    def read(text: str) -> str:
        if not 1 <= len(text) <= max_characters:
            message = f"Give 1 to {max_characters} characters."
            raise ValueError(message)
        return text

    return Parameter(read, schema={"type": "string", "minLength": 1, "maxLength": max_characters})
