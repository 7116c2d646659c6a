"""Sources, the log of their entries, the slots of a brand source, and what a preview shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import (
    RowSerializer,
    TextOrNull,
    computed,
    given,
    text_list,
)
from config.core.datetimes import format_utc_or_none
from pipeline.models import (
    BrandPickDecision,
    BrandSlotStatus,
    DecidedBy,
    SourceEntryDecision,
    SourceStatus,
)
from pipeline.resources.contents import ConfigField
from pipeline.resources.fields import SOURCE_TYPES, FirstPoll, Note, Reason
from pipeline.states import POLLED_SOURCES
from pipeline.text.plain_text import seen_text

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.sources.base import Entry

PREVIEW_DECISIONS: Final = tuple(
    "duplicate" if one == "unchanged" else one for one in SourceEntryDecision.values
)
"""The decisions in a preview, where an entry that exists already is a duplicate."""
_MAX_EXCERPT_CHARACTERS: Final = 300


def _next_poll_at(
    source_type: str, status: str, wake_at: datetime | None, due_at: datetime | None
) -> str | None:
    # A brand lane isn't polled; its next slot is shown instead.
    next_at = wake_at or (due_at if source_type == "brand" else None)
    return format_utc_or_none(next_at) if status in POLLED_SOURCES else None


def _interval_minutes(minutes: int | None, seconds: int | None) -> int | None:
    """Return the present wait between two polls; None for a source never polled and without an interval."""
    return minutes or (round(seconds / 60) if seconds else None)


class Health(RowSerializer):
    last_success_at = MomentField(source="last_polled_at", allow_null=True)
    last_new_at = MomentField(allow_null=True)
    next_poll_at = computed(
        MomentField(allow_null=True), _next_poll_at, "type", "status", "wake_at", "due_at"
    )
    interval_minutes = computed(
        serializers.IntegerField(allow_null=True),
        _interval_minutes,
        "poll_interval_minutes",
        "interval_seconds",
    )
    consecutive_failures = serializers.IntegerField(source="failures")
    failing_since = MomentField(allow_null=True)
    error = Reason(source="last_error", allow_null=True)
    notes = computed(Note(many=True), lambda notes: notes or [], "notes")


class Source(RowSerializer):
    id = PublicIdField("src")
    name = serializers.CharField()
    type = serializers.ChoiceField(choices=SOURCE_TYPES)
    config = ConfigField()
    status = serializers.ChoiceField(choices=SourceStatus.values)
    last_error = Reason(allow_null=True)
    engines = text_list()
    variants = serializers.IntegerField()
    persona = PublicIdField("per", source="persona_id", allow_null=True)
    outlets = text_list()
    poll_interval_minutes = serializers.IntegerField(allow_null=True)
    autopilot = serializers.BooleanField()
    first_poll = FirstPoll(allow_null=True)
    max_age_days = serializers.IntegerField(allow_null=True)
    max_burst = serializers.IntegerField(allow_null=True)
    inbound_url = computed(
        serializers.CharField(allow_null=True),
        lambda token: f"{settings.PUBLIC_URL}/hooks/{token}" if token else None,
        "inbound_token",
    )
    last_polled_at = MomentField(allow_null=True)
    next_poll_at = computed(
        MomentField(allow_null=True), _next_poll_at, "type", "status", "wake_at", "due_at"
    )
    health = Health(source="*")
    test = serializers.BooleanField()
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()
    inbound_secret = given(
        serializers.CharField(
            required=False, help_text="Only in the response that created it; never shown again."
        )
    )


class SourceEntry(RowSerializer):
    id = PublicIdField("ent")
    source = PublicIdField("src", source="source_id")  # type: ignore[assignment]  # the contract's name
    external_id = TextOrNull()
    url = TextOrNull()
    title = serializers.CharField(allow_blank=True)
    published_at = MomentField(allow_null=True)
    decision = serializers.ChoiceField(choices=SourceEntryDecision.values)
    decided_by = serializers.ChoiceField(choices=DecidedBy.values)
    code = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    raw_item = PublicIdField("raw", source="raw_item_id", allow_null=True)
    first_seen_at = MomentField()
    decided_at = MomentField()


class PickReason(Reason):
    likeness = serializers.FloatField(required=False, help_text="Of too_near: from 0 to 1.")
    near = PublicIdField("gen", required=False, help_text="Of too_near: what it is like.")


class BrandPick(RowSerializer):
    topic = PublicIdField("top", source="topic_id", allow_null=True)
    title = serializers.CharField(help_text="The topic's, as it was.")
    angle = TextOrNull()
    decision = serializers.ChoiceField(choices=BrandPickDecision.values)
    reason = PickReason(allow_null=True)
    discarded = TextOrNull(source="words", help_text="The words that were discarded.")
    generated_item = PublicIdField("gen", source="item_id", allow_null=True)
    decided_at = MomentField(allow_null=True)


class BrandSlot(RowSerializer):
    id = PublicIdField("slt")
    source = PublicIdField("src", source="source_id")  # type: ignore[assignment]  # the contract's name
    status = serializers.ChoiceField(choices=BrandSlotStatus.values)
    due_at = computed(MomentField(), format_utc_or_none, "due_at")
    eligible = serializers.IntegerField(allow_null=True, help_text="How many topics could have been taken.")
    note = Note(allow_null=True, help_text="Why nothing was made, or soon won't.")
    picks = given(BrandPick(many=True))
    created_at = MomentField()
    ended_at = MomentField(allow_null=True)


def _excerpt(entry: Entry) -> str:
    # The body, which may have 5 MB, is cut before it is parsed: to twenty times the excerpt, because of the markup.
    text = seen_text(entry.body[: _MAX_EXCERPT_CHARACTERS * 20], entry.body_format)
    return " ".join(text.split())[:_MAX_EXCERPT_CHARACTERS]


class PreviewedEntry(RowSerializer):
    external_id = computed(
        serializers.CharField(allow_null=True), lambda entry: entry.external_id or None, "entry"
    )
    url = computed(serializers.CharField(allow_null=True), lambda entry: entry.url or None, "entry")
    title = computed(serializers.CharField(allow_blank=True), lambda entry: entry.title, "entry")
    published_at = computed(
        MomentField(allow_null=True), lambda entry: format_utc_or_none(entry.published_at), "entry"
    )
    excerpt = computed(
        serializers.CharField(allow_blank=True, help_text="Of its text, without markup."), _excerpt, "entry"
    )
    decision = computed(
        serializers.ChoiceField(choices=PREVIEW_DECISIONS),
        lambda decision: "duplicate" if decision == "unchanged" else decision,
        "decision",
    )
    decided_by = serializers.ChoiceField(choices=DecidedBy.values)
    code = serializers.CharField()
    message = serializers.CharField(allow_blank=True)


def notes_as_json(notes: Any) -> list[dict[str, Any]]:
    """Return notes of dataclasses as `Note` describes them."""
    return [asdict(note) for note in notes]


class SourcePreview(RowSerializer):
    title = serializers.CharField(allow_blank=True)
    entries = PreviewedEntry(many=True)
    notes = computed(Note(many=True), notes_as_json, "notes")
    moved_to = TextOrNull()
    price_in_credits = serializers.IntegerField(help_text="Of what the first poll would have made at once.")
