"""Queues, series, recurrences, plans of a week, and the hold on all publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import Answer, RowSerializer, TextOrNull, computed, given
from pipeline.models import (
    OverlapChoice,
    RecurrenceDecision,
    RecurrenceStatus,
    SeriesIssueDecision,
    SlotGapChoice,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class WeeklySlot(Answer):
    weekday = serializers.IntegerField(help_text="0 is Monday.")
    time = serializers.CharField(help_text="HH:MM on the clocks of `timezone`.")


class Blackout(Answer):
    from_ = serializers.CharField(help_text="YYYY-MM-DDTHH:MM on the clocks of `timezone`.")
    until = serializers.CharField()
    reason = serializers.CharField()


class Queue(RowSerializer):
    id = PublicIdField("que")
    name = serializers.CharField()
    timezone = serializers.CharField()
    slots = WeeklySlot(many=True)
    blackouts = Blackout(many=True, help_text="Periods without slots.")
    on_gap = serializers.ChoiceField(
        choices=SlotGapChoice.values, help_text="For a time that a clock change skips."
    )
    on_overlap = serializers.ChoiceField(
        choices=OverlapChoice.values, help_text="For a time that a clock change repeats."
    )
    default = serializers.BooleanField(source="is_default")
    paused = serializers.BooleanField(source="is_paused")
    outlets = given(serializers.ListField(child=PublicIdField("out"), help_text="Those that use it."))
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()


class SlotTaker(RowSerializer):
    outlet = PublicIdField("out", source="outlet_id")
    publication = PublicIdField("pub", source="id")
    generated_item = PublicIdField("gen", source="item_id")


class SeriesSlot(RowSerializer):
    at = MomentField(source="moment")
    local_time = computed(serializers.CharField(), lambda clock: clock.text, "clock")


class NextSlot(SeriesSlot):
    taken_by = SlotTaker(many=True)


class QueueWithSlots(Queue):
    next_slots = given(NextSlot(many=True))


class Coming(RowSerializer):
    publication = PublicIdField("pub", source="id")
    generated_item = PublicIdField("gen", source="item_id")
    outlet = PublicIdField("out", source="outlet_id")
    due_at = MomentField(allow_null=True)
    then = given(
        serializers.ChoiceField(
            choices=("publishes", "waits", "next_slot", "held"),
            help_text=(
                "What happens when publishing resumes: published at once, at its time, at a later slot, or "
                "not at all."
            ),
        )
    )


class Hold(Answer):
    held = serializers.BooleanField()
    reason = serializers.CharField(allow_null=True)
    by = serializers.CharField(allow_null=True)
    since = MomentField(allow_null=True)
    scheduled = Coming(many=True)
    more = serializers.BooleanField(help_text="More is scheduled than is listed.")


class Series(RowSerializer):
    id = PublicIdField("ser")
    name = serializers.CharField()
    timezone = serializers.CharField()
    slots = WeeklySlot(many=True)
    on_gap = serializers.ChoiceField(choices=SlotGapChoice.values)
    on_overlap = serializers.ChoiceField(choices=OverlapChoice.values)
    window_days = serializers.IntegerField(help_text="How old a raw item in the digest may be.")
    items_least = serializers.IntegerField()
    items_most = serializers.IntegerField()
    sources = serializers.ListField(child=PublicIdField("src"), help_text="Empty: all.")
    persona = PublicIdField("per", source="persona_id", allow_null=True)
    outlets = serializers.ListField(child=PublicIdField("out"))
    paused = serializers.BooleanField(source="is_paused")
    next_at = MomentField(source="due_at", allow_null=True)
    test = serializers.BooleanField()
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()


class SeriesIssue(RowSerializer):
    id = PublicIdField("iss")
    due_at = MomentField()
    decision = serializers.ChoiceField(choices=SeriesIssueDecision.values)
    message = TextOrNull(help_text="Why there is no digest.")
    found = serializers.IntegerField(help_text="How many raw items were available.")
    generated_item = PublicIdField("gen", source="digest_id", allow_null=True)
    by = TextOrNull(help_text="Who requested it; null: it was scheduled.")
    created_at = MomentField()


class SeriesDetail(Series):
    next_slots = given(SeriesSlot(many=True))
    holds_now = given(
        serializers.ListField(
            child=PublicIdField("raw"),
            help_text="What it would include now, in order; with fewer than the minimum, nothing is made.",
        )
    )
    issues = given(SeriesIssue(many=True))


class RecurrenceStopped(Answer):
    code = serializers.CharField()
    message = serializers.CharField(help_text="Why, and what to do.")
    by = serializers.CharField(
        allow_null=True, help_text="Who stopped it; null: it was stopped automatically."
    )
    at = MomentField()


def _stopped(reason: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {**reason, "by": reason["by"] or None} if reason else None


class Recurrence(RowSerializer):
    id = PublicIdField("rec")
    generated_item = PublicIdField("gen", source="item_id")
    every_days = serializers.IntegerField()
    time = serializers.CharField(help_text="HH:MM on the workspace's clocks.")
    status = serializers.ChoiceField(choices=RecurrenceStatus.values)
    stopped = computed(RecurrenceStopped(allow_null=True), _stopped, "reason")
    next_at = MomentField(source="due_at", allow_null=True)
    test = serializers.BooleanField()
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()


class RecurrenceTurn(RowSerializer):
    id = PublicIdField("rct")
    due_at = MomentField()
    decision = serializers.ChoiceField(choices=RecurrenceDecision.values)
    message = TextOrNull(help_text="Why nothing was made.")
    generated_item = PublicIdField("gen", source="item_id", allow_null=True)
    created_at = MomentField()


class RecurrenceDetail(Recurrence):
    turns = given(RecurrenceTurn(many=True))
