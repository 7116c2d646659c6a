"""Fields that several bodies share: addresses, engine names, outlets, personas, objects."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Final, cast

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from config.core import limits as core_limits
from config.core.api.fields import (
    BoundedListField,
    PublicIdField,
    StrictCharField,
    StrictIntegerField,
)
from config.core.api.nearest import hint
from pipeline import limits, plugins
from pipeline.engines.base import Engine
from pipeline.resources import FIRST_POLL_SCHEMA
from pipeline.text.links import has_host


def whole_number_field(maximum: int, minimum: int = 1, **kwargs: Any) -> StrictIntegerField:
    """Return a field for a whole number from `minimum` to `maximum`."""
    return StrictIntegerField(min_value=minimum, max_value=maximum, **kwargs)


# The forms of RFC 4291: eight groups, or fewer with one "::" at the end, at the beginning or in between.
_IPV6_GROUP: Final = "[0-9A-Fa-f]{1,4}"
_IPV6: Final = "|".join(
    [
        f"({_IPV6_GROUP}:){{7}}{_IPV6_GROUP}",
        f"({_IPV6_GROUP}:){{1,7}}:",
        f":((:{_IPV6_GROUP}){{1,7}}|:)",
        *(f"({_IPV6_GROUP}:){{1,{left}}}(:{_IPV6_GROUP}){{1,{7 - left}}}" for left in range(1, 7)),
    ]
)
# For example http://user@news.example:8080/feed?page=2 or https://[2001:db8::1]/. Python and ECMA-262 read the
# pattern alike, so that the OpenAPI document says exactly what is accepted. The numbers are ports up to 65535.
_WEB_ADDRESS: Final = (
    r"^[hH][tT][tT][pP][sS]?://"
    r"([^\s/?#@\[\]\\\u0000-\u0020\u007f]*@)?"
    rf"([^\s/?#@:\[\]\\<>\"^`{{|}}%\u0000-\u0020\u007f]+|\[({_IPV6})\])"
    r"(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}))?"
    r"([/?#][^\s\u0000-\u0020\u007f]*)?$"
)


@extend_schema_field(
    {
        "type": "string",
        "format": "uri",
        "pattern": _WEB_ADDRESS,
        "maxLength": core_limits.URL_CHARACTERS,
    }
)
class WebAddressField(StrictCharField):
    """An absolute http(s) address."""

    default_error_messages: ClassVar = {"invalid_address": "Give an absolute http:// or https:// address."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=core_limits.URL_CHARACTERS, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not text and self.allow_blank:
            return text
        if not re.fullmatch(_WEB_ADDRESS, text) or not has_host(text):
            self.fail("invalid_address")
        return text


def _known_engines() -> list[str]:
    return [engine.name for engine in plugins.every("engines", Engine)]


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "type": "string",
            "description": "A name that GET /engines lists.",
            "examples": ["Short Post"],
            "x-rules": {"enum": _known_engines()},
        },
        "minItems": 1,
        "maxItems": limits.ENGINES_PER_ITEM,
    }
)
class EngineNamesField(BoundedListField):
    """Names of engine outputs, such as `Short Post`."""

    default_error_messages: ClassVar = {"unknown_engine": "There is no engine output {name}. {hint}"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            child=StrictCharField(max_length=60),
            max_length=limits.ENGINES_PER_ITEM,
            allow_empty=False,
            **kwargs,
        )

    def to_internal_value(self, data: Any) -> list[str]:
        names = cast("list[str]", super().to_internal_value(data))
        # The length is that of the list as sent, before duplicates are removed.
        self.run_validators(names)
        known = _known_engines()
        unknown = [name for name in dict.fromkeys(names) if name not in known]
        if unknown:
            template = self.error_messages["unknown_engine"]
            raise serializers.ValidationError(
                [template.format(name=name, hint=hint(name, known)) for name in unknown],
                code="unknown_engine",
            )
        return list(dict.fromkeys(names))


@extend_schema_field(FIRST_POLL_SCHEMA)
class FirstPollField(serializers.Field[Any, Any, Any, Any]):
    default_error_messages: ClassVar = {
        "invalid": 'Give {{"newest": n}} with n from 1 to {most}, "none" or "all".',
    }

    def to_internal_value(self, data: Any) -> Any:
        if data in ("none", "all"):
            return data
        if isinstance(data, dict) and set(data) == {"newest"}:
            newest = data["newest"]
            # For JSON Schema 3.0 is a whole number and true isn't.
            is_number = isinstance(newest, int | float) and not isinstance(newest, bool)
            if is_number and newest == int(newest) and 1 <= newest <= limits.FEED_ENTRIES:
                return {"newest": int(newest)}
        return self.fail("invalid", most=limits.FEED_ENTRIES)

    def to_representation(self, value: Any) -> Any:
        return value


class JsonObjectField(serializers.Field[Any, Any, Any, Any]):
    """Any JSON object, up to a number of bytes."""

    default_error_messages: ClassVar = {
        "not_an_object": "Give a JSON object.",
        "too_large": "It may have {most} bytes of JSON at most.",
    }

    def __init__(self, *, most_bytes: int, **kwargs: Any) -> None:
        self.most_bytes = most_bytes
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_an_object")
        if len(json.dumps(data).encode()) > self.most_bytes:
            self.fail("too_large", most=self.most_bytes)
        return data

    def to_representation(self, value: Any) -> Any:
        return value


OpenObjectField = extend_schema_field({"type": "object", "additionalProperties": True})(JsonObjectField)


def outlet_ids_field(**kwargs: Any) -> BoundedListField:
    """Return a field for a list of outlets' public ids."""
    return BoundedListField(
        child=PublicIdTextField("out"),
        max_length=limits.OUTLETS_PER_ITEM,
        allow_empty=kwargs.pop("allow_empty", True),
        **kwargs,
    )


def persona_id_field(**kwargs: Any) -> PublicIdField:
    """Return an optional field for a persona's public id."""
    message = "Give the id of a persona, per_ and 26 characters: GET /v1/personas lists them, POST /v1/personas makes one."
    return PublicIdField("per", required=False, error_messages={"invalid_id": message}, **kwargs)


class PublicIdTextField(PublicIdField):
    """A public id, checked and kept as its text."""

    def to_internal_value(self, data: Any) -> str:  # type: ignore[override]
        super().to_internal_value(data)
        return str(data)


class PatternField(StrictCharField):
    """Text that matches a pattern from end to end: Python's `$` alone lets a line break pass."""

    default_error_messages: ClassVar = {"pattern": "Give text of the form {pattern}."}

    def __init__(self, pattern: str, **kwargs: Any) -> None:
        self.pattern = pattern
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not re.fullmatch(self.pattern, text):
            self.fail("pattern", pattern=self.pattern)
        return text


@extend_schema_field({"$ref": "#/components/schemas/ContentChanges"})
class ContentChangesField(JsonObjectField):
    """Changes of an item's content; the item's bucket decides which fields it takes."""


@extend_schema_field({"$ref": "#/components/schemas/SourceConfig"})
class ConfigChangesField(JsonObjectField):
    """Changes of a source's settings; the source's type decides which it takes."""
