"""Parses a model's JSON and checks it against its schema, which structured output doesn't guarantee."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CHARACTERS = 200_000
"""The longest answer that is parsed; no real one is longer."""
_MAX_PROBLEMS = 5
"""The most problems that the model is told of."""
_OPTIONAL_FIELDS = frozenset({"derived"})
"""Fields that most answers leave empty; an answer without them means the same."""
_TYPES: Mapping[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


class AnswerUnreadable(ValueError):
    """Raised when an answer can't be used; `problems` are sentences for the model."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


def parse_answer(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the answer as the schema describes it, with the values of an `enum` in the schema's spelling.

    Of JSON Schema it supports `type`, `properties`, `required`, `additionalProperties: false`, `items` and `enum`.
    Raises `AnswerUnreadable` if the answer is too long, no JSON, or doesn't match the schema.
    """
    if len(text) > MAX_CHARACTERS:
        raise AnswerUnreadable([f"The answer has over {MAX_CHARACTERS} characters."])
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise AnswerUnreadable(["The answer isn't valid JSON."]) from None
    problems: list[str] = []
    checked_value = _check_value(value, schema, "answer", problems)
    if problems:
        raise AnswerUnreadable(problems[:_MAX_PROBLEMS])
    return checked_value


def _check_value(value: Any, schema: Mapping[str, Any], path: str, problems: list[str]) -> Any:
    """Return the value as the schema describes it, and add sentences about its faults to `problems`."""
    expected_type: str = schema["type"]
    # A Python bool is an int, but a JSON boolean is no number.
    is_misplaced_boolean = isinstance(value, bool) and expected_type != "boolean"
    if not isinstance(value, _TYPES[expected_type]) or is_misplaced_boolean:
        problems.append(f"`{path}` has to be of type {expected_type}.")
        return value
    if expected_type == "object":
        return _check_object(value, schema, path, problems)
    if expected_type == "array":
        return [
            _check_value(member, schema["items"], f"{path}[{index}]", problems)
            for index, member in enumerate(value)
        ]
    if expected_type == "string" and "enum" in schema:
        return _check_enum(value, schema["enum"], path, problems)
    return value


def _check_object(
    value: Mapping[str, Any], schema: Mapping[str, Any], path: str, problems: list[str]
) -> dict[str, Any]:
    """Return the object's known fields as the schema describes them, and add its faults to `problems`."""
    properties = schema["properties"]
    problems.extend(
        f"`{path}.{name}` is missing."
        for name in schema["required"]
        if name not in value and name not in _OPTIONAL_FIELDS
    )
    if schema.get("additionalProperties") is False:
        problems.extend(f"`{path}` has no field {name[:40]!r}." for name in value if name not in properties)
    return {
        name: _check_value(value[name], member, f"{path}.{name}", problems)
        for name, member in properties.items()
        if name in value
    }


def _check_enum(value: str, names: list[str], path: str, problems: list[str]) -> str:
    """Return the value in the schema's spelling, because the grammar doesn't guarantee capitals.

    A value that the schema doesn't name is returned as it is, and added to `problems`.
    """
    for name in names:
        if name.casefold() == value.strip().casefold():
            return name
    problems.append(f"`{path}` has to be one of {', '.join(names)}.")
    return value
