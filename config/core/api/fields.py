"""Defines the fields of request bodies, which are read strictly: unknown names and other types are refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from config.core import ids, limits
from config.core.api.nearest import hint
from config.core.datetimes import explain_invalid_moment, format_utc, read_moment
from config.core.errors import Detail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID


_MAX_EXAMPLE_CHARACTERS: Final = 60
"""A longer example is left out, because it would repeat the sender's whole text in the message."""


def unknown_names(
    names_given: Iterable[str], known: Iterable[str], *, noun: str, advice: Mapping[str, str] | None = None
) -> list[Detail]:
    """Return a detail for each unknown name, up to a limit, each with the nearest known name or all of them.

    They are refused because a mistyped filter must not return everything. `noun` says what the names are of, such as
    `field`. `advice` replaces the suggestion for the names that it has.
    """
    names = sorted(known)
    # A request with half a million names costs no more than one with a few: only the first are handled.
    return [
        Detail(
            name,
            f"unknown_{noun}",
            f"There is no {noun} {name}. {(advice or {}).get(name) or hint(name, names)}",
        )
        for name in map(_truncate_name, sorted(set(names_given) - set(names))[: limits.UNKNOWN_NAMES_TOLD])
    ]


def _truncate_name(name: str) -> str:
    """Return the name, cut to a length that is cheap to compare and fits a message."""
    return name if len(name) <= limits.NAME_CHARACTERS else f"{name[: limits.NAME_CHARACTERS]}…"


# The list of each kind, by the prefix of its ids.
_LIST_PATHS: Final = {
    "gen": "generated",
    "out": "outlets",
    "per": "personas",
    "pub": "publications",
    "raw": "raw",
    "src": "sources",
    "top": "topics",
}


def where_listed(prefix: str) -> str:
    """Return the end of a sentence that says where ids of this prefix are listed, or an empty text."""
    return f"; GET /v1/{_LIST_PATHS[prefix]} lists them" if prefix in _LIST_PATHS else ""


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it doesn't know."""

    default_error_messages: ClassVar = {"invalid": "Give a JSON object."}

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated values. Raises `ValidationError` for unknown and invalid fields together."""
        problems: dict[str, Any] = {}
        if isinstance(data, dict):
            known = [name for name, field in self.fields.items() if not field.read_only]
            problems = {
                detail.field or "": [serializers.ErrorDetail(detail.message, detail.code)]
                for detail in self.unknown_fields(data, known)
            }
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if isinstance(error.detail, dict):
                raise serializers.ValidationError({**problems, **error.detail}) from error
            raise
        if problems:
            raise serializers.ValidationError(problems)
        return value

    def unknown_fields(self, data: Mapping[str, Any], known: Sequence[str]) -> list[Detail]:
        """Return a detail for each field of `data` that isn't known."""
        return unknown_names(data, known, noun="field")


class Changes(StrictSerializer):
    """Makes a change of the body that creates, which is the other base: any field may be left out.

    A subclass leaves out a field by setting it to None. Objects within the body stay whole, unlike with `partial`.
    """

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for field in fields.values():
            field.required = False
        return fields


class NoFields(StrictSerializer):
    """An empty body or `{}`."""


class BoundedListField(serializers.ListField):
    """Checks the length first: DRF's own validates every member of a list that is too long anyway."""

    default_error_messages: ClassVar = {
        "not_a_list": "Give a list{example}.",
        "empty": "Give one entry at least.",
        "max_length": "Give {max_length} entries at most.",
        "min_length": "Give {min_length} entries at least.",
    }

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, str | int) and not isinstance(data, bool):
            example = json.dumps([data], ensure_ascii=False)
            self.fail("not_a_list", example=f": {example}" if len(example) <= _MAX_EXAMPLE_CHARACTERS else "")
        if not isinstance(data, list):
            self.fail("not_a_list", example="")
        if self.max_length is not None and len(data) > self.max_length:
            self.fail("max_length", max_length=self.max_length)
        return list(super().to_internal_value(data))


class PublicIdField(serializers.CharField):
    """A typed public id; the value is a UUID. An id of another kind can't exist, so it is refused in words."""

    default_error_messages: ClassVar = {
        "invalid_id": "This is not an id of the form {prefix}_ and 26 characters{where}."
    }

    def __init__(self, prefix: str, **kwargs: Any) -> None:
        self.prefix = prefix
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> UUID:  # type: ignore[override]
        value = ids.decode(self.prefix, data) if isinstance(data, str) else None
        if value is None:
            self.fail("invalid_id", prefix=self.prefix, where=where_listed(self.prefix))
        return value

    def to_representation(self, value: Any) -> str:
        return value if isinstance(value, str) else ids.encode(self.prefix, value)


class StrictCharField(serializers.CharField):
    """Text exactly as sent: a number isn't text, and white space isn't trimmed."""

    default_error_messages: ClassVar = {
        "invalid": "Give text.",
        "blank": "Give at least one character, or leave the field out.",
        "max_length": "Give {max_length} characters at most.",
        "min_length": "Give {min_length} characters at least.",
    }

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictIntegerField(serializers.IntegerField):
    """A whole number, never text or a boolean. JSON Schema counts 3.0 as one too."""

    default_error_messages: ClassVar = {
        "invalid": "Give a whole number.",
        "max_value": "Give {max_value} at most.",
        "min_value": "Give {min_value} at least.",
    }

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictChoiceField(serializers.ChoiceField):
    """One of a few words; the error lists them."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            choices = ", ".join(str(choice) for choice in self.choices)
            message = f"Give one of: {choices}."
            raise serializers.ValidationError(message, code="invalid_choice")
        return data


class StrictBooleanField(serializers.BooleanField):
    default_error_messages: ClassVar = {"invalid": "Give true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


@extend_schema_field({"type": "string", "format": "date-time"})
class MomentField(serializers.Field[datetime, str, str, Any]):
    """A moment with its offset (RFC 3339); one without an offset is refused."""

    default_error_messages: ClassVar = {
        "invalid": "Write the moment as RFC 3339 with an offset, such as 2026-11-20T09:30:00Z.",
        "no_such_moment": "{reason}",
    }

    def to_internal_value(self, data: Any) -> datetime:
        moment = read_moment(data) if isinstance(data, str) else None
        if moment is None:
            reason = explain_invalid_moment(data) if isinstance(data, str) else None
            if reason:
                self.fail("no_such_moment", reason=reason)
            self.fail("invalid")
        return moment

    def to_representation(self, value: datetime) -> str:
        return format_utc(value)
