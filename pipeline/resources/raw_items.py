"""Raw items and what came of them, uploads, and estimates."""

from __future__ import annotations

from django.conf import settings
from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import (
    Answer,
    ObjectField,
    RowSerializer,
    TextOrNull,
    computed,
    given,
    text_list,
)
from pipeline.models import Bucket, RawItemStatus, UploadKind
from pipeline.resources.fields import ErrorEntry, Reason


class NearDuplicate(Answer):
    raw_item = PublicIdField("raw")
    score = serializers.FloatField(help_text="1: the same words.")


class Media(Answer):
    """An address, or the id of an upload."""

    url = serializers.CharField(required=False)
    upload = PublicIdField("upl", required=False)
    type = serializers.CharField(required=False, allow_blank=True)
    author = serializers.CharField(required=False, help_text="Only where it was given, as the licence.")
    licence = serializers.CharField(required=False)


class OutcomeReason(Answer):
    code = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    stage = serializers.CharField(allow_blank=True)


class Outcome(Answer):
    """What came of one engine and variant that was asked for."""

    engine_output = serializers.CharField()
    variant = serializers.IntegerField(help_text="From 0, as in the generated item's variant.index.")
    outcome = serializers.CharField(help_text="pending, made, skipped or failed; there may be more.")
    reason = OutcomeReason(allow_null=True, help_text="Why it was skipped or failed.")
    retryable = serializers.BooleanField(
        allow_null=True, help_text="Of what was skipped or failed: whether a retry can succeed."
    )
    generated_item = PublicIdField("gen", allow_null=True)


class RawItem(RowSerializer):
    id = PublicIdField("raw")
    status = serializers.ChoiceField(choices=RawItemStatus.values)
    reason = Reason(allow_null=True)
    version = serializers.IntegerField()
    content_version = serializers.IntegerField(help_text="Rises with every change of the content.")
    source = PublicIdField("src", source="source_id")  # type: ignore[assignment]  # the contract's name
    external_id = TextOrNull()
    url = TextOrNull()
    title = serializers.CharField(allow_blank=True)
    language = TextOrNull()
    language_guessed = serializers.BooleanField(help_text="The language was guessed from the words.")
    author = TextOrNull()
    published_at = MomentField(allow_null=True)
    media = Media(many=True)
    metadata = ObjectField()
    engines = text_list()
    variants = serializers.IntegerField()
    outcomes = given(Outcome(many=True, help_text="One for each engine and variant that was asked for."))
    persona = PublicIdField("per", source="persona_id", allow_null=True)
    near_duplicate = NearDuplicate(
        allow_null=True,
        help_text="The raw item of the last 90 days whose text it nearly repeats; it blocks nothing.",
    )
    withdrawn_at = MomentField(allow_null=True, help_text="When its source withdrew it.")
    test = serializers.BooleanField()
    deleted_at = MomentField(allow_null=True)
    created_at = MomentField()
    updated_at = MomentField()


class RawItemDetail(RawItem):
    generated = given(serializers.ListField(child=PublicIdField("gen")))
    complete = given(serializers.BooleanField(help_text="Nothing more is made from it unless requested."))


class PushedRawItem(RawItem):
    duplicate = given(serializers.BooleanField())
    revised = given(serializers.BooleanField())


class BatchEntry(Answer):
    index = serializers.IntegerField()
    status = serializers.IntegerField()
    raw_item = PushedRawItem(required=False)
    error = serializers.CharField(required=False)
    detail = ErrorEntry(many=True, required=False)


class Batch(Answer):
    data = BatchEntry(many=True)  # type: ignore[assignment]  # the contract's name


class EngineEstimate(RowSerializer):
    name = serializers.CharField()
    bucket = serializers.ChoiceField(choices=Bucket.values)
    credits = serializers.IntegerField(help_text="Price of one variant.")
    variants = given(serializers.IntegerField())


class Estimate(Answer):
    credits = serializers.IntegerField(help_text="What pushing it would reserve; 0 with a test token.")
    engines = EngineEstimate(many=True)
    not_possible = text_list(help_text="Engines left out, and why.")
    available = serializers.IntegerField(allow_null=True, help_text="Credits left; null where not limited.")


def upload_address(kind: str, secret: str) -> str | None:
    """Return the address of an upload; None for text, as somebody's HTML must not be shown as a page of ours."""
    return None if kind == "text" else f"{settings.PUBLIC_URL}/media/{secret}/{kind}"


class Upload(RowSerializer):
    id = PublicIdField("upl")
    kind = serializers.ChoiceField(choices=UploadKind.values)
    type = serializers.CharField(source="mime_type", help_text="The MIME type, by the bytes.")
    name = serializers.CharField(help_text="What the sender called it.", allow_blank=True)
    url = computed(
        serializers.CharField(allow_null=True, help_text="Null for text."), upload_address, "kind", "secret"
    )
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    width = serializers.IntegerField(allow_null=True)
    height = serializers.IntegerField(allow_null=True)
    test = serializers.BooleanField()
    expires_at = MomentField(allow_null=True)
    created_at = MomentField()
