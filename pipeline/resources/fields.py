"""Objects that several resources hold: reasons, notes, errors."""

from __future__ import annotations

from typing import Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from config.core.api.fields import MomentField
from config.core.api.row_serializers import Answer
from pipeline import limits, plugins

SOURCE_TYPES: Final = plugins.kinds("sources")
FIRST_POLL_SCHEMA: Final = {
    "oneOf": [
        {"type": "string", "enum": ["none", "all"]},
        {
            "type": "object",
            "properties": {"newest": {"type": "integer", "minimum": 1, "maximum": limits.FEED_ENTRIES}},
            "required": ["newest"],
            "additionalProperties": False,
        },
    ]
}


@extend_schema_field(FIRST_POLL_SCHEMA)
class FirstPoll(serializers.JSONField):
    """How many entries of a source's first poll are worked on."""


class Reason(Answer):
    code = serializers.CharField()
    message = serializers.CharField()
    stage = serializers.CharField(required=False)
    retryable = serializers.BooleanField(required=False, help_text="Whether a retry can succeed.")
    action = serializers.CharField(required=False, help_text="What to do about it.")
    at = MomentField(required=False)
    by = serializers.CharField(required=False)


class RunError(Answer):
    code = serializers.CharField()
    message = serializers.CharField()
    stage = serializers.CharField()
    retryable = serializers.BooleanField(help_text="Whether a retry can succeed.")
    action = serializers.CharField(help_text="What to do about it.")


class Note(Answer):
    code = serializers.CharField()
    message = serializers.CharField()


class ErrorEntry(Answer):
    field = serializers.CharField(allow_null=True)
    code = serializers.CharField()
    message = serializers.CharField()
