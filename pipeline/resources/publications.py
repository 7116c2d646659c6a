"""Publications, and the attempts to make one public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import (
    Answer,
    ObjectField,
    RowSerializer,
    TextOrNull,
    computed,
)
from pipeline.models import AttemptStatus, BodyFormat, LatePolicy, PublicationStatus
from pipeline.models import Publication as PublicationRow
from pipeline.states import UNSENT_PUBLICATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

ERROR_CLASSES: Final = ("retry", "account", "content", "unknown")
_CLASSES_OF_OLD_ERRORS: Final = {
    "TryLater": "retry",
    "Refused": "content",
    "NeedsReconnect": "account",
    "OutcomeUnknown": "unknown",
}
"""Maps the class names in errors stored by earlier releases to today's classes."""


class PublicationError(Answer):
    code = serializers.CharField()
    message = serializers.CharField()
    action = serializers.CharField(help_text="What to do about it.")
    retryable = serializers.BooleanField()
    platform_status = serializers.IntegerField(allow_null=True)
    platform_message = serializers.CharField(allow_null=True)
    class_ = serializers.ChoiceField(choices=ERROR_CLASSES)


def _current_error(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a stored error; those of earlier releases lack what today's have."""
    if error is None:
        return None
    error_class = error.get("class", "")
    return {
        "action": "",
        "platform_message": None,
        **error,
        "class": _CLASSES_OF_OLD_ERRORS.get(error_class, error_class),
    }


class ScheduledFor(Answer):
    """What was asked for: a time on the clocks of a zone."""

    local_time = serializers.CharField()
    timezone = serializers.CharField()


def _scheduled_for(local_time: str, zone: str) -> dict[str, str] | None:
    return {"local_time": local_time, "timezone": zone} if local_time else None


class WaitsFor(Answer):
    code = serializers.ChoiceField(choices=("gap", "daily_cap", "outlet_rests", "moved_to_slot"))
    message = serializers.CharField()
    until = MomentField()


def _overdue_seconds(status: str, step: str, due_at: datetime | None, *, now: datetime) -> int:
    is_open = status in UNSENT_PUBLICATIONS and step != PublicationRow.BY_HAND
    return int((now - due_at).total_seconds()) if due_at is not None and is_open and due_at < now else 0


class PublicationInItem(RowSerializer):
    # Without metrics, which change without the item changing.
    id = PublicIdField("pub")
    version = serializers.IntegerField()
    revision = serializers.IntegerField()
    outlet = PublicIdField("out", source="outlet_id")
    platform = serializers.CharField()
    status = serializers.ChoiceField(choices=PublicationStatus.values)
    external_id = TextOrNull()
    url = TextOrNull()
    attempts = serializers.IntegerField(source="attempt_count")
    error = computed(PublicationError(allow_null=True), _current_error, "error")
    due_at = MomentField(allow_null=True, help_text="The promise.")
    scheduled_for = computed(
        ScheduledFor(
            allow_null=True,
            help_text="The time on a clock that was asked for; due_at follows where the rules of its zone change.",
        ),
        _scheduled_for,
        "local_time",
        "zone",
    )
    late_policy = serializers.ChoiceField(choices=LatePolicy.values)
    max_lateness_minutes = serializers.IntegerField(allow_null=True)
    overdue_seconds = computed(
        serializers.IntegerField(help_text="How late it is; a post by hand is never late."),
        _overdue_seconds,
        "status",
        "step",
        "due_at",
    )
    waits_for = WaitsFor(allow_null=True, help_text="Why it is published later than scheduled.")
    next_attempt_at = MomentField(allow_null=True)
    published_at = MomentField(allow_null=True)
    test = serializers.BooleanField()
    created_at = MomentField()
    updated_at = MomentField()


class Publication(PublicationInItem):
    generated_item = PublicIdField("gen", source="item_id")
    metrics = ObjectField(allow_null=True)


class RehearsedMedia(Answer):
    url = serializers.CharField()
    mime_type = serializers.CharField()
    bytes = serializers.IntegerField()
    alt_text = serializers.CharField(allow_blank=True)


class FittingStep(Answer):
    code = serializers.CharField()
    message = serializers.CharField()


class Receipt(Answer):
    """What was handed to the platform, as it was fitted for it."""

    title = serializers.CharField(allow_blank=True)
    body = serializers.CharField(allow_blank=True)
    body_format = serializers.ChoiceField(choices=BodyFormat.values)
    parts = serializers.ListField(child=serializers.CharField(allow_blank=True))
    steps = FittingStep(many=True)
    disclosure = ObjectField()
    media = RehearsedMedia(many=True)
    settings = ObjectField()


class LateAnswer(RowSerializer):
    """The platform has the post, and said so when the attempt was closed already."""

    external_id = TextOrNull()
    url = TextOrNull()
    at = computed(MomentField(), str, "at")


class Attempt(RowSerializer):
    """One call that may have made a publication public."""

    id = PublicIdField("att")
    publication = PublicIdField("pub", source="publication_id")
    number = serializers.IntegerField()
    revision = serializers.IntegerField(help_text="Of the item, as it was sent.")
    status = serializers.ChoiceField(choices=AttemptStatus.values)
    error = computed(PublicationError(allow_null=True), _current_error, "error")
    receipt = Receipt(allow_null=True)
    late_answer = LateAnswer(allow_null=True)
    started_at = MomentField()
    finished_at = MomentField(allow_null=True)
