"""Personas, and the topics that they may write about."""

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


class Sections(RowSerializer):
    who_you_are = serializers.CharField(allow_blank=True)
    voice = serializers.CharField(allow_blank=True)
    banned_words = text_list()
    required_structures = serializers.ListField(child=ObjectField())
    reference_posts = text_list()


class Persona(RowSerializer):
    id = PublicIdField("per")
    name = serializers.CharField()
    handle = TextOrNull()
    language = serializers.CharField()
    sections = Sections(source="*")
    approved_lines = text_list(help_text="May be published word for word, without a model.")
    links = text_list()
    brand = ObjectField()
    default = computed(serializers.BooleanField(), lambda *, is_default: is_default)
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()


class Evidence(Answer):
    url = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True)


class Season(Answer):
    from_ = serializers.CharField()
    to = serializers.CharField()


def _season(start: str, end: str) -> dict[str, str] | None:
    return {"from": start, "to": end} if start else None


class Topic(RowSerializer):
    id = PublicIdField("top")
    title = serializers.CharField()
    notes = serializers.CharField(allow_blank=True)
    angles = text_list()
    evidence = Evidence(many=True)
    weight = serializers.IntegerField()
    cooldown_days = serializers.IntegerField()
    max_per_month = serializers.IntegerField(allow_null=True)
    season = computed(Season(allow_null=True), _season, "season_from", "season_to")
    is_active = serializers.BooleanField()
    persona = PublicIdField("per", source="persona_id", allow_null=True)
    source = PublicIdField(  # type: ignore[assignment]  # the API's own name
        "src", source="source_id", allow_null=True, help_text="The source in whose own list it stands."
    )
    last_used_at = MomentField(allow_null=True)
    test = serializers.BooleanField()
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()
