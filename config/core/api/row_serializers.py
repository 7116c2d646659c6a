"""Declares each resource once: its columns, its JSON and its part of the OpenAPI document follow from one class.

A field's column is DRF's own `source`, by default the field's name; `source="*"` puts an object of the same row
into another. The JSON is made by a function that is written once from the class, since DRF's own
`to_representation` takes many times as long, and a list shows hundreds of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.datetimes import format_utc
from config.core.ids import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from django.db.models import Model

    Serialize = Callable[..., dict[str, Any]]
    AnyField = serializers.Field[Any, Any, Any, Any]

Declared = TypeVar("Declared", bound="AnyField")

_REQUIRED: Final = object()


class Answer(serializers.Serializer[Any]):
    """An object of API and events, as it is stored or made elsewhere.

    A name that Python reserves is declared with `_` at its end.
    """

    def get_fields(self) -> dict[str, AnyField]:
        return {name.rstrip("_"): each for name, each in super().get_fields().items()}

    @classmethod
    def declared(cls) -> dict[str, AnyField]:
        """Return the fields as they are declared; DRF copies them for each instance, without their functions."""
        return {name.rstrip("_"): each for name, each in cls._declared_fields.items()}


class RowSerializer(Answer):
    """An object of API and events, made of a row: a dict of `.values()`, or any object with these attributes."""

    serialize: ClassVar[Callable[..., dict[str, Any]]]
    """Takes a row and returns its JSON.

    Its keyword arguments are what the `given` fields and the functions of `computed` ones ask for; raises
    `TypeError` if one is missing. Where fields aren't required, those are there that its second argument
    `include` names, or all if it is `None`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.serialize = staticmethod(compile_serializer(cls, None).serialize)

    @classmethod
    def columns(cls, include: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return the columns to read, each once; `include` is that of `serialize`."""
        return compile_serializer(cls, None if include is None else frozenset(include)).columns


def row_of(instance: Model) -> dict[str, Any]:
    """Return an instance's columns as `.values()` would."""
    return {each.attname: getattr(instance, each.attname) for each in instance._meta.concrete_fields}


@dataclass(frozen=True)
class _Computed:
    function: Callable[..., Any]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class _Given:
    default: Any


def computed(declared: Declared, function: Callable[..., Any], *columns: str) -> Declared:
    """Return the field with a value that the function makes of these columns.

    The function gets the columns' values in order, and by its keyword-only parameters values of the context.
    """
    vars(declared)["origin"] = _Computed(function, columns)
    return declared


def given(declared: Declared, default: Any = _REQUIRED) -> Declared:
    """Return the field with a value that the caller gives under the field's name; one with `many=True` gets rows.

    A field that isn't required is left out if it isn't given.
    """
    vars(declared)["origin"] = _Given(default)
    return declared


class TextOrNull(serializers.CharField):
    """A text that is null where its column is empty."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_null=True, **kwargs)

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        return value or None


@extend_schema_field({"type": "object", "additionalProperties": True})
class ObjectField(serializers.JSONField):
    """Any JSON object."""


def text_list(**kwargs: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), **kwargs)


def listing(
    child: type[serializers.Serializer[Any]], name: str | None = None
) -> type[serializers.Serializer[Any]]:
    """Return the serializer of the envelope of a list of these."""
    fields = {
        "data": child(many=True),
        "has_more": serializers.BooleanField(),
        "next_cursor": serializers.CharField(allow_null=True),
    }
    envelope: type[serializers.Serializer[Any]] = type(
        name or f"{child.__name__}List", (serializers.Serializer,), fields
    )
    # Without this, an action named `list` is documented as answering a list of envelopes.
    extend_schema_serializer(many=False)(envelope)
    return envelope


# --- The function that is written from a class ------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiled:
    """What follows from a class: the columns to read, and the function that makes a row's JSON."""

    columns: tuple[str, ...]
    serialize: Serialize


@cache
def compile_serializer(serializer: type[RowSerializer], include: frozenset[str] | None) -> Compiled:
    """Return the columns and the function of a class, with the fields that aren't required as `include` says."""
    source = _Source(include)
    body = source.write_object(serializer)
    columns = tuple(source.columns)
    source.values["read"] = lambda row: {name: getattr(row, name) for name in columns}
    source.values["including"] = lambda names: compile_serializer(serializer, frozenset(names)).serialize
    source.values |= {f"default_{name}": default for name, default in source.parameters.items()}
    parameters = ", ".join(
        name if default is _REQUIRED else f"{name}=default_{name}"
        for name, default in source.parameters.items()
    )
    arguments = ", ".join(f"{name}={name}" for name in source.parameters)
    lines = (
        f"def serialize(row, include=None, {parameters and '*, '}{parameters}):",
        f"    if include is not None: return including(include)(row, {arguments})" if include is None else "",
        "    if row.__class__ is not dict: row = read(row)",
        f"    return {body}",
    )
    # As dataclasses make their methods: the text holds names of declared fields and nothing from outside.
    exec("\n".join(lines), source.values)  # noqa: S102
    return Compiled(columns, source.values["serialize"])


@dataclass
class _Source:
    """Writes an expression for the JSON of a row, and notes what it reads."""

    include: frozenset[str] | None
    columns: dict[str, None] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    """The default of each value of the context that is asked for."""
    computed: dict[_Computed, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=lambda: {"encode": encode, "format_utc": format_utc})
    """What the names in the expression stand for."""

    def write_object(self, serializer: type[RowSerializer]) -> str:
        members = (self._write_member(name, each) for name, each in serializer.declared().items())
        return f"{{{', '.join(filter(None, members))}}}"

    def _write_member(self, name: str, declared: AnyField) -> str:
        origin = vars(declared).get("origin")
        if isinstance(origin, _Given):
            self._ask(name, origin.default if declared.required else None)
            value = self._write_value(name, declared)
            member = f"{name!r}: {value}"
            return member if declared.required else f"**({{}} if {name} is None else {{{member}}})"
        if not declared.required and self.include is not None and name not in self.include:
            return ""
        if isinstance(origin, _Computed):
            return f"{name!r}: {self._write_computed(origin)}"
        if declared.source == "*":
            return f"{name!r}: {self.write_object(type(cast('RowSerializer', declared)))}"
        return f"{name!r}: {self._write_value(self._read(declared.source or name), declared)}"

    def _write_value(self, value: str, declared: AnyField) -> str:
        """Return the expression for the JSON of a field whose value is that of another expression."""
        child = getattr(declared, "child", None)
        if isinstance(child, RowSerializer):
            each = self._call(compile_serializer(type(child), None).serialize, "each")
            rows = f"[{each} for each in {value}]"
            return f"None if {value} is None else {rows}" if declared.allow_null else rows
        if isinstance(declared, TextOrNull):
            return f"{value} or None"
        is_plain = not isinstance(declared, RowSerializer | PublicIdField | MomentField)
        if is_plain or not declared.allow_null:
            return self._write_made(value, declared)
        return f"None if (value := {value}) is None else {self._write_made('value', declared)}"

    def _write_computed(self, origin: _Computed) -> str:
        # What two fields show is computed once: the expression is evaluated from left to right.
        if origin in self.computed:
            return self.computed[origin]
        name = self.computed[origin] = f"computed_{len(self.computed)}"
        return f"({name} := {self._call(origin.function, *map(self._read, origin.columns))})"

    def _write_made(self, value: str, declared: AnyField) -> str:
        if isinstance(declared, RowSerializer):
            return self._call(compile_serializer(type(declared), None).serialize, value)
        if isinstance(declared, PublicIdField):
            return f"encode({declared.prefix!r}, {value})"
        return f"format_utc({value})" if isinstance(declared, MomentField) else value

    def _read(self, column: str) -> str:
        self.columns[column] = None
        return f"row[{column!r}]"

    def _call(self, function: Callable[..., Any], *arguments: str) -> str:
        """Return a call, whose keyword arguments are values of the context; note those."""
        name = f"function_{len(self.values)}"
        self.values[name] = function
        code = getattr(function, "__code__", None)
        names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount] if code else ()
        for each in names:
            self._ask(each, (function.__kwdefaults__ or {}).get(each, _REQUIRED))
        return f"{name}({', '.join([*arguments, *(f'{each}={each}' for each in names)])})"

    def _ask(self, name: str, default: Any) -> None:
        if self.parameters.get(name, _REQUIRED) is _REQUIRED:
            self.parameters[name] = default
