"""Writes storyboards as JSON and reads them; each member that is read is checked, because people may edit it."""

from __future__ import annotations

import dataclasses
import types
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from pipeline.plugins import Refused
from pipeline.render.video.storyboard import Storyboard, storyboard_faults

if TYPE_CHECKING:
    from collections.abc import Mapping


class BadStoryboard(Refused):
    """The JSON isn't a storyboard that can be filmed; the message says what to change, and `where` is the member."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(
            f"{where}: {message}" if where else message, code="bad_storyboard", field="storyboard"
        )
        self.where = where
        self.said = message[:1].upper() + message[1:]


def as_json(board: Storyboard) -> dict[str, Any]:
    """Return the storyboard as objects, lists, numbers and texts."""
    return dict(_to_plain(board))


def from_json(data: Mapping[str, Any]) -> Storyboard:
    """Return the storyboard from the JSON of `as_json`. Raises `BadStoryboard` if it is wrong or can't be filmed."""
    board = parse(data)
    faults = storyboard_faults(board)
    if faults:
        raise BadStoryboard("", " ".join(faults[:5]))
    return board


def parse(data: Mapping[str, Any]) -> Storyboard:
    """Return the storyboard from JSON, even if it can't be filmed. Raises `BadStoryboard` if a member is wrong."""
    board: Storyboard = _read(Storyboard, data, "storyboard")
    return board


def _to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    return value


@cache
def _field_types(cls: type) -> dict[str, tuple[Any, bool]]:
    """Return a dataclass's fields by name: the type, and whether the field is required."""
    hints = get_type_hints(cls)
    return {
        field.name: (
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(cls)
    }


def _read(expected: Any, value: Any, where: str) -> Any:
    """Return the value as the expected type. Raises `BadStoryboard` if it isn't of that type."""
    if dataclasses.is_dataclass(expected):
        return _read_object(expected, value, where)
    origin = get_origin(expected)
    if origin is tuple:
        if not isinstance(value, list):
            raise BadStoryboard(where, "is a list.")
        item_type = get_args(expected)[0]
        return tuple(_read(item_type, item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is Literal:
        if value not in get_args(expected) or isinstance(value, bool):
            raise BadStoryboard(where, f"one of {', '.join(map(str, get_args(expected)))}.")
        return value
    if origin in {Union, types.UnionType}:
        return _read_union(get_args(expected), value, where)
    return _read_scalar(expected, value, where)


def _read_object(cls: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise BadStoryboard(where, "is an object.")
    fields = _field_types(cls)
    unknown = sorted(map(str, value.keys() - fields.keys()))
    if unknown:
        raise BadStoryboard(where, f"has no member {unknown[0]}.")
    missing = sorted(name for name, (_, is_needed) in fields.items() if is_needed and name not in value)
    if missing:
        raise BadStoryboard(where, f"lacks {missing[0]}.")
    return cls(**{name: _read(fields[name][0], member, f"{where}.{name}") for name, member in value.items()})


def _read_union(classes: tuple[Any, ...], value: Any, where: str) -> Any:
    """Read an object as the class whose `kind` it names."""
    kind_name = value.get("kind") if isinstance(value, dict) else None
    for cls in classes:
        hint = _field_types(cls).get("kind")
        if hint is not None and kind_name in get_args(hint[0]):
            return _read(cls, value, where)
    raise BadStoryboard(where, "its kind is not known.")


def _read_scalar(expected: Any, value: Any, where: str) -> Any:
    if expected is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) < 1e9:
            raise BadStoryboard(where, "is not a number that means anything here.")
        return float(value)
    if expected in {str, int, bool} and type(value) is expected:
        return value
    names = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    raise BadStoryboard(where, f"is {names[expected]}.")
