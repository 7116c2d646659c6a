"""Deliveries to webhook sources, and what a mapping makes of one."""

from __future__ import annotations

from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import (
    Answer,
    ObjectField,
    RowSerializer,
    TextOrNull,
    computed,
    text_list,
)
from pipeline import limits
from pipeline.models import InboundDeliveryStatus
from pipeline.resources.fields import Note


def _excerpt(excerpt: bytes | None) -> str | None:
    return None if excerpt is None else bytes(excerpt).decode(errors="replace")


class InboundDelivery(RowSerializer):
    id = PublicIdField("ind")
    source = PublicIdField("src", source="source_id")  # type: ignore[assignment]  # the contract's name
    status = serializers.ChoiceField(choices=InboundDeliveryStatus.values)
    reason = Note(allow_null=True, help_text="Why it was refused or ignored, or made nothing.")
    verification = serializers.CharField()
    sender_key = serializers.CharField(allow_null=True, help_text="The sender's own id of it.")
    repeats = serializers.IntegerField(help_text="How many duplicates came under that id.")
    content_type = serializers.CharField()
    headers = ObjectField(source="head", help_text="Those that describe it; none that verifies it.")
    body_bytes = serializers.IntegerField()
    body_excerpt = computed(
        serializers.CharField(
            allow_null=True, help_text=f"At most {limits.INBOUND_EXCERPT} bytes; null where no body is kept."
        ),
        _excerpt,
        "excerpt",
    )
    preset = TextOrNull()
    made = ObjectField(allow_null=True, help_text="The fields that were made, long ones shortened.")
    notes = Note(many=True, help_text="What was left out or cut.")
    raw_item = PublicIdField("raw", source="raw_item_id", allow_null=True)
    test = serializers.BooleanField()
    replayed_at = MomentField(allow_null=True)
    created_at = MomentField()


class MappingTrialPlan(RowSerializer):
    engines = computed(text_list(), lambda engines: [engine.name for engine in engines], "engines")
    variants = serializers.IntegerField()
    credits = serializers.IntegerField(source="price")
    why_not = computed(text_list(), list, "why_not")


class MappingTrial(RowSerializer):
    outcome = serializers.ChoiceField(choices=("taken", "ignored", "failed"))
    reason = Note(allow_null=True)
    raw_item = ObjectField(
        source="fields",
        allow_null=True,
        help_text="The fields that it would have, long ones shortened.",
    )
    preset = TextOrNull()
    notes = computed(Note(many=True), list, "notes")
    plan = MappingTrialPlan(allow_null=True)


class InboundSecret(Answer):
    secret = serializers.CharField(allow_null=True, help_text="Shown only once; null if you gave it.")
