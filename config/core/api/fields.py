"""Fields of bodies, read strictly: nothing is guessed, and unknown names are refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from config.core import ids, limits
from config.core.api.nearest import hint
from config.core.datetimes import as_z, read_moment, why_no_moment
from config.core.errors import Detail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID


_EXAMPLE_CHARACTERS: Final = 60


def unknown_names(
    given: Iterable[str],
    known: Iterable[str],
    *,
    what: str,
    advice: Mapping[str, str] | None = None,
) -> list[Detail]:
    """A detail for each name that isn't known, with the nearest that is: a mistyped filter must not return all.

    `advice` has, by name, what to say in place of that.
    """
    names = sorted(known)
    # Somebody who sends half a million names gets the first few told, at the price of a few.
    return [
        Detail(
            name,
            f"unknown_{what}",
            f"There is no {what} {name}. {(advice or {}).get(name) or hint(name, names)}",
        )
        for name in map(_short, sorted(set(given) - set(names))[: limits.UNKNOWN_NAMES_TOLD])
    ]


def _short(name: str) -> str:
    """A name of half a megabyte isn't told whole, nor compared with those that are known."""
    return name if len(name) <= limits.NAME_CHARACTERS else f"{name[: limits.NAME_CHARACTERS]}…"


_LISTED: Final = {
    "gen": "generated",
    "out": "outlets",
    "per": "personas",
    "pub": "publications",
    "raw": "raw",
    "src": "sources",
    "top": "topics",
}


def where_listed(prefix: str) -> str:
    """Where ids of a kind are to be found, as the end of a sentence."""
    return f"; GET /v1/{_LISTED[prefix]} lists them" if prefix in _LISTED else ""


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it doesn't know."""

    default_error_messages: ClassVar = {"invalid": "Give a JSON object."}

    def to_internal_value(self, data: Any) -> Any:
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
        return unknown_names(data, known, what="field")


class NoFields(StrictSerializer):
    """An empty body or `{}`."""


class BoundedListField(serializers.ListField):
    """Counts before it looks: DRF's own checks every member of a list that is too long to be taken anyway."""

    default_error_messages: ClassVar = {
        "not_a_list": "Give a list{example}.",
        "empty": "Give one entry at least.",
        "max_length": "Give {max_length} entries at most.",
        "min_length": "Give {min_length} entries at least.",
    }

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, str | int) and not isinstance(data, bool):
            written = json.dumps([data], ensure_ascii=False)
            self.fail("not_a_list", example=f": {written}" if len(written) <= _EXAMPLE_CHARACTERS else "")
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
    """Text as it was sent: a number is not text, and white space is the sender's."""

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
    """A whole number, never text or a boolean; to JSON Schema 3.0 is one too."""

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
    """One of a few words; the refusal lists them."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            words = ", ".join(str(word) for word in self.choices)
            message = f"Give one of: {words}."
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
    """A moment with its offset (RFC 3339); a naive one is refused."""

    default_error_messages: ClassVar = {
        "invalid": "Write the moment as RFC 3339 with an offset, such as 2026-11-20T09:30:00Z.",
        "no_such_moment": "{reason}",
    }

    def to_internal_value(self, data: Any) -> datetime:
        moment = read_moment(data) if isinstance(data, str) else None
        if moment is None:
            reason = why_no_moment(data) if isinstance(data, str) else None
            if reason:
                self.fail("no_such_moment", reason=reason)
            self.fail("invalid")
        return moment

    def to_representation(self, value: datetime) -> str:
        return as_z(value)
