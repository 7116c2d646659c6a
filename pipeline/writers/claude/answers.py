"""Reads a model's JSON by the schema that it was given: the grammar of structured output is not proof enough."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CHARACTERS = 200_000
"""No answer of ours is longer; what is goes unread."""
_MOST_TOLD = 5
_MAY_BE_MISSING = frozenset({"derived"})
"""What most answers leave empty: without it an answer says the same."""
_TYPES: Mapping[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


class AnswerUnreadable(ValueError):
    """The answer can't be used; `problems` are sentences that the model can be told."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


def parse_answer(text: str, schema: Mapping[str, Any]) -> Any:
    """The answer as the schema describes it, names of an `enum` in the schema's own spelling.

    Understands what our schemas use: `type`, `properties`, `required`, `additionalProperties: false`, `items`,
    `enum`. Raises `AnswerUnreadable`.
    """
    if len(text) > MAX_CHARACTERS:
        raise AnswerUnreadable([f"The answer has over {MAX_CHARACTERS} characters."])
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise AnswerUnreadable(["The answer isn't valid JSON."]) from None
    problems: list[str] = []
    read_value = _read(value, schema, "answer", problems)
    if problems:
        raise AnswerUnreadable(problems[:_MOST_TOLD])
    return read_value


def _read(value: Any, schema: Mapping[str, Any], place: str, problems: list[str]) -> Any:
    wanted: str = schema["type"]
    is_flag = isinstance(value, bool) and wanted != "boolean"
    if not isinstance(value, _TYPES[wanted]) or is_flag:
        problems.append(f"`{place}` has to be of type {wanted}.")
        return value
    if wanted == "object":
        return _read_object(value, schema, place, problems)
    if wanted == "array":
        return [
            _read(member, schema["items"], f"{place}[{index}]", problems)
            for index, member in enumerate(value)
        ]
    if wanted == "string" and "enum" in schema:
        return _read_name(value, schema["enum"], place, problems)
    return value


def _read_object(
    value: Mapping[str, Any], schema: Mapping[str, Any], place: str, problems: list[str]
) -> dict[str, Any]:
    properties = schema["properties"]
    problems.extend(
        f"`{place}.{name}` is missing."
        for name in schema["required"]
        if name not in value and name not in _MAY_BE_MISSING
    )
    if schema.get("additionalProperties") is False:
        problems.extend(f"`{place}` has no field {name[:40]!r}." for name in value if name not in properties)
    return {
        name: _read(value[name], member, f"{place}.{name}", problems)
        for name, member in properties.items()
        if name in value
    }


def _read_name(value: str, names: list[str], place: str, problems: list[str]) -> str:
    """Capitals are not guaranteed by the grammar."""
    for name in names:
        if name.casefold() == value.strip().casefold():
            return name
    problems.append(f"`{place}` has to be one of {', '.join(names)}.")
    return value
