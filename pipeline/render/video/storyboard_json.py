"""Storyboards as JSON, and back: what is read is checked member by member, because people may edit it."""

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
    """It can't be filmed; the message says what to change, and where."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(
            f"{where}: {message}" if where else message, code="bad_storyboard", field="storyboard"
        )
        self.where = where
        self.said = message[:1].upper() + message[1:]


def as_json(board: Storyboard) -> dict[str, Any]:
    """Objects, lists, numbers and texts only."""
    return dict(_plain(board))


def from_json(data: Mapping[str, Any]) -> Storyboard:
    """The storyboard that `as_json` was given. Raises `BadStoryboard`."""
    board = read(data)
    found = storyboard_faults(board)
    if found:
        raise BadStoryboard("", " ".join(found[:5]))
    return board


def read(data: Mapping[str, Any]) -> Storyboard:
    """The same, whether or not it can be filmed. Raises `BadStoryboard` for members that are none."""
    board: Storyboard = _read(Storyboard, data, "storyboard")
    return board


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


@cache
def _fields_of(kind: type) -> dict[str, tuple[Any, bool]]:
    """By name: the type, and whether it has to be there."""
    hints = get_type_hints(kind)
    return {
        one.name: (
            hints[one.name],
            one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING,
        )
        for one in dataclasses.fields(kind)
    }


def _read(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _read_object(kind, value, where)
    origin = get_origin(kind)
    if origin is tuple:
        if not isinstance(value, list):
            raise BadStoryboard(where, "is a list.")
        of = get_args(kind)[0]
        return tuple(_read(of, one, f"{where}[{place}]") for place, one in enumerate(value))
    if origin is Literal:
        if value not in get_args(kind) or isinstance(value, bool):
            raise BadStoryboard(where, f"one of {', '.join(map(str, get_args(kind)))}.")
        return value
    if origin in {Union, types.UnionType}:
        return _read_one_of(get_args(kind), value, where)
    return _read_plain(kind, value, where)


def _read_object(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise BadStoryboard(where, "is an object.")
    known = _fields_of(kind)
    strange = sorted(map(str, value.keys() - known.keys()))
    if strange:
        raise BadStoryboard(where, f"has no member {strange[0]}.")
    absent = sorted(name for name, (_, is_needed) in known.items() if is_needed and name not in value)
    if absent:
        raise BadStoryboard(where, f"lacks {absent[0]}.")
    return kind(**{name: _read(known[name][0], one, f"{where}.{name}") for name, one in value.items()})


def _read_one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """Which of several things, told by its `kind`."""
    named = value.get("kind") if isinstance(value, dict) else None
    for kind in kinds:
        hint = _fields_of(kind).get("kind")
        if hint is not None and named in get_args(hint[0]):
            return _read(kind, value, where)
    raise BadStoryboard(where, "its kind is not known.")


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) < 1e9:
            raise BadStoryboard(where, "is not a number that means anything here.")
        return float(value)
    if kind in {str, int, bool} and type(value) is kind:
        return value
    names = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    raise BadStoryboard(where, f"is {names[kind]}.")
