"""Describes the API's answers for the OpenAPI document; `pipeline.payloads` makes the answers themselves."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from pipeline import plugins
from pipeline.api.content_schemas import ConfigField, ContentField
from pipeline.api.inputs.fields import SOURCE_TYPES, FirstPollField
from pipeline.models import (
    AttemptStatus,
    BodyFormat,
    BrandPickDecision,
    BrandSlotStatus,
    Bucket,
    DecidedBy,
    GeneratedItemStatus,
    GenerationStage,
    LatePolicy,
    OutletStatus,
    PublicationStatus,
    RawItemStatus,
    SourceEntryDecision,
    SourceStatus,
    UploadKind,
)

PREVIEW_DECISIONS = tuple("duplicate" if one == "unchanged" else one for one in SourceEntryDecision.values)
"""The decisions in a preview, where an entry that exists already is a duplicate."""


@extend_schema_field({"type": "object", "additionalProperties": True})
class ObjectField(serializers.JSONField):
    """Any JSON object."""


class Reason(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    stage = serializers.CharField(required=False)
    retryable = serializers.BooleanField(required=False, help_text="Whether a retry can succeed.")
    action = serializers.CharField(required=False, help_text="What to do about it.")
    at = MomentField(required=False)
    by = serializers.CharField(required=False)


class RunError(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    stage = serializers.CharField()
    retryable = serializers.BooleanField(help_text="Whether a retry can succeed.")
    action = serializers.CharField(help_text="What to do about it.")


def listing(child: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """Return the serializer of the envelope of a list of these."""
    name = f"{child.__name__}List"
    fields = {
        "data": child(many=True),
        "has_more": serializers.BooleanField(),
        "next_cursor": serializers.CharField(allow_null=True),
    }
    envelope: type[serializers.Serializer[Any]] = type(name, (serializers.Serializer,), fields)
    # Without this, an action named `list` is documented as answering a list of envelopes.
    extend_schema_serializer(many=False)(envelope)
    return envelope


def _text_list() -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField())


class Note(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()


class Health(serializers.Serializer[Any]):
    last_success_at = MomentField(allow_null=True)
    last_new_at = MomentField(allow_null=True)
    next_poll_at = MomentField(allow_null=True)
    interval_minutes = serializers.IntegerField(allow_null=True)
    consecutive_failures = serializers.IntegerField()
    failing_since = MomentField(allow_null=True)
    error = Reason(allow_null=True)
    notes = Note(many=True)


class Source(serializers.Serializer[Any]):
    id = PublicIdField("src")
    name = serializers.CharField()
    type = serializers.ChoiceField(choices=SOURCE_TYPES)
    config = ConfigField()
    status = serializers.ChoiceField(choices=SourceStatus.values)
    last_error = Reason(allow_null=True)
    engines = _text_list()
    variants = serializers.IntegerField()
    persona = PublicIdField("per", allow_null=True)
    outlets = _text_list()
    poll_interval_minutes = serializers.IntegerField(allow_null=True)
    autopilot = serializers.BooleanField()
    first_poll = FirstPollField(allow_null=True)
    max_age_days = serializers.IntegerField(allow_null=True)
    max_burst = serializers.IntegerField(allow_null=True)
    inbound_url = serializers.CharField(allow_null=True)
    inbound_secret = serializers.CharField(
        required=False, help_text="Only in the response that created it; never shown again."
    )
    last_polled_at = MomentField(allow_null=True)
    next_poll_at = MomentField(allow_null=True)
    health = Health()
    test = serializers.BooleanField()
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()


class SourceEntry(serializers.Serializer[Any]):
    id = PublicIdField("ent")
    source = PublicIdField("src")  # type: ignore[assignment]  # the contract's name
    external_id = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)
    title = serializers.CharField(allow_blank=True)
    published_at = MomentField(allow_null=True)
    decision = serializers.ChoiceField(choices=SourceEntryDecision.values)
    decided_by = serializers.ChoiceField(choices=DecidedBy.values)
    code = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    raw_item = PublicIdField("raw", allow_null=True)
    first_seen_at = MomentField()
    decided_at = MomentField()


class PickReason(Reason):
    likeness = serializers.FloatField(required=False, help_text="Of too_near: from 0 to 1.")
    near = PublicIdField("gen", required=False, help_text="Of too_near: what it is like.")


class BrandPick(serializers.Serializer[Any]):
    topic = PublicIdField("top", allow_null=True)
    title = serializers.CharField(help_text="The topic's, as it was.")
    angle = serializers.CharField(allow_null=True)
    decision = serializers.ChoiceField(choices=BrandPickDecision.values)
    reason = PickReason(allow_null=True)
    discarded = serializers.CharField(allow_null=True, help_text="The words that were discarded.")
    generated_item = PublicIdField("gen", allow_null=True)
    decided_at = MomentField(allow_null=True)


class BrandSlot(serializers.Serializer[Any]):
    id = PublicIdField("slt")
    source = PublicIdField("src")  # type: ignore[assignment]  # the contract's name
    status = serializers.ChoiceField(choices=BrandSlotStatus.values)
    due_at = MomentField()
    eligible = serializers.IntegerField(allow_null=True, help_text="How many topics could have been taken.")
    note = Note(allow_null=True, help_text="Why nothing was made, or soon won't.")
    picks = BrandPick(many=True)
    created_at = MomentField()
    ended_at = MomentField(allow_null=True)


class PreviewedEntry(serializers.Serializer[Any]):
    external_id = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)
    title = serializers.CharField(allow_blank=True)
    published_at = MomentField(allow_null=True)
    excerpt = serializers.CharField(allow_blank=True, help_text="Of its text, without markup.")
    decision = serializers.ChoiceField(choices=PREVIEW_DECISIONS)
    decided_by = serializers.ChoiceField(choices=DecidedBy.values)
    code = serializers.CharField()
    message = serializers.CharField(allow_blank=True)


class SourcePreview(serializers.Serializer[Any]):
    title = serializers.CharField(allow_blank=True)
    entries = PreviewedEntry(many=True)
    notes = Note(many=True)
    moved_to = serializers.CharField(allow_null=True)
    price_in_credits = serializers.IntegerField(help_text="Of what the first poll would have made at once.")


class NearDuplicate(serializers.Serializer[Any]):
    raw_item = PublicIdField("raw")
    score = serializers.FloatField(help_text="1: the same words.")


class Media(serializers.Serializer[Any]):
    """An address, or the id of an upload."""

    url = serializers.CharField(required=False)
    upload = PublicIdField("upl", required=False)
    type = serializers.CharField(required=False, allow_blank=True)
    author = serializers.CharField(required=False, help_text="Only where it was given, as the licence.")
    licence = serializers.CharField(required=False)


class Upload(serializers.Serializer[Any]):
    id = PublicIdField("upl")
    kind = serializers.ChoiceField(choices=UploadKind.values)
    type = serializers.CharField(help_text="The MIME type, by the bytes.")
    name = serializers.CharField(help_text="What the sender called it.", allow_blank=True)
    url = serializers.CharField(allow_null=True, help_text="Null for text.")
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    width = serializers.IntegerField(allow_null=True)
    height = serializers.IntegerField(allow_null=True)
    test = serializers.BooleanField()
    expires_at = MomentField(allow_null=True)
    created_at = MomentField()


class OutcomeReason(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    stage = serializers.CharField(allow_blank=True)


class Outcome(serializers.Serializer[Any]):
    """What came of one engine and variant that was asked for."""

    engine_output = serializers.CharField()
    variant = serializers.IntegerField(help_text="From 0, as in the generated item's variant.index.")
    outcome = serializers.CharField(help_text="pending, made, skipped or failed; there may be more.")
    reason = OutcomeReason(allow_null=True, help_text="Why it was skipped or failed.")
    retryable = serializers.BooleanField(
        allow_null=True, help_text="Of what was skipped or failed: whether a retry can succeed."
    )
    generated_item = PublicIdField("gen", allow_null=True)


class RawItem(serializers.Serializer[Any]):
    id = PublicIdField("raw")
    status = serializers.ChoiceField(choices=RawItemStatus.values)
    reason = Reason(allow_null=True)
    version = serializers.IntegerField()
    content_version = serializers.IntegerField(help_text="Rises with every change of the content.")
    source = PublicIdField("src")  # type: ignore[assignment]  # the contract's name
    external_id = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)
    title = serializers.CharField(allow_blank=True)
    language = serializers.CharField(allow_null=True)
    language_guessed = serializers.BooleanField(help_text="The language was guessed from the words.")
    author = serializers.CharField(allow_null=True)
    published_at = MomentField(allow_null=True)
    media = Media(many=True)
    metadata = ObjectField()
    engines = _text_list()
    variants = serializers.IntegerField()
    outcomes = Outcome(many=True, help_text="One for each engine and variant that was asked for.")
    persona = PublicIdField("per", allow_null=True)
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
    generated = serializers.ListField(child=PublicIdField("gen"))
    complete = serializers.BooleanField(help_text="Nothing more is made from it unless requested.")


class PushedRawItem(RawItem):
    duplicate = serializers.BooleanField()
    revised = serializers.BooleanField()


class ErrorEntry(serializers.Serializer[Any]):
    field = serializers.CharField(allow_null=True)
    code = serializers.CharField()
    message = serializers.CharField()


class BatchEntry(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    status = serializers.IntegerField()
    raw_item = PushedRawItem(required=False)
    error = serializers.CharField(required=False)
    detail = ErrorEntry(many=True, required=False)


class Batch(serializers.Serializer[Any]):
    data = BatchEntry(many=True)  # type: ignore[assignment]  # the contract's name


ERROR_CLASSES: Final = ("retry", "account", "content", "unknown")


class PublicationError(serializers.Serializer[Any]):
    code = serializers.CharField()
    # The contract's name `class` can't be an attribute of a class body.
    message = serializers.CharField()
    action = serializers.CharField(help_text="What to do about it.")
    retryable = serializers.BooleanField()
    platform_status = serializers.IntegerField(allow_null=True)
    platform_message = serializers.CharField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "class": serializers.ChoiceField(choices=ERROR_CLASSES)}


class ScheduledFor(serializers.Serializer[Any]):
    """What was asked for: a time on the clocks of a zone."""

    local_time = serializers.CharField()
    timezone = serializers.CharField()


class WaitsFor(serializers.Serializer[Any]):
    code = serializers.ChoiceField(choices=("gap", "daily_cap", "outlet_rests", "moved_to_slot"))
    message = serializers.CharField()
    until = MomentField()


class PublicationInItem(serializers.Serializer[Any]):
    id = PublicIdField("pub")
    version = serializers.IntegerField()
    revision = serializers.IntegerField()
    outlet = PublicIdField("out")
    platform = serializers.CharField()
    status = serializers.ChoiceField(choices=PublicationStatus.values)
    external_id = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)
    attempts = serializers.IntegerField()
    error = PublicationError(allow_null=True)
    due_at = MomentField(allow_null=True, help_text="The promise.")
    scheduled_for = ScheduledFor(
        allow_null=True,
        help_text="The time on a clock that was asked for; due_at follows where the rules of its zone change.",
    )
    late_policy = serializers.ChoiceField(choices=LatePolicy.values)
    max_lateness_minutes = serializers.IntegerField(allow_null=True)
    overdue_seconds = serializers.IntegerField(help_text="How late it is; a post by hand is never late.")
    waits_for = WaitsFor(allow_null=True, help_text="Why it is published later than scheduled.")
    next_attempt_at = MomentField(allow_null=True)
    published_at = MomentField(allow_null=True)
    test = serializers.BooleanField()
    created_at = MomentField()
    updated_at = MomentField()


class Publication(PublicationInItem):
    generated_item = PublicIdField("gen")
    metrics = ObjectField(allow_null=True)


class Asset(serializers.Serializer[Any]):
    id = PublicIdField("ast")
    role = serializers.CharField(
        help_text="`alternative` says the same in another size and is never posted beside the first; "
        "`document` is a PDF of all slides; `hero` is the picture of an article."
    )
    position = serializers.IntegerField()
    kind = serializers.CharField()
    url = serializers.CharField()
    mime_type = serializers.CharField()
    bytes = serializers.IntegerField()
    width = serializers.IntegerField(allow_null=True)
    height = serializers.IntegerField(allow_null=True)
    duration = serializers.FloatField(allow_null=True, help_text="Seconds.")
    alt_text = serializers.CharField(allow_blank=True)


class Variant(serializers.Serializer[Any]):
    group = serializers.CharField(help_text="The same for all variants of one format and one content.")
    index = serializers.IntegerField()
    angle = serializers.CharField(allow_null=True)


class Approval(serializers.Serializer[Any]):
    required = serializers.BooleanField(  # type: ignore[assignment]  # the contract's name
        help_text="Whether the workspace asks for an approval before anything of it is published."
    )
    by = serializers.CharField(allow_null=True)
    at = MomentField(allow_null=True)
    revision = serializers.IntegerField(allow_null=True)


class Generator(serializers.Serializer[Any]):
    provider = serializers.CharField()
    model = serializers.CharField()
    offline = serializers.BooleanField(help_text="True: made without AI, sentences taken from the source.")
    prompt_version = serializers.CharField()
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cost_usd = serializers.CharField(
        help_text="What models cost in all, for tries that failed before too, in US dollars."
    )
    credits = serializers.IntegerField()


class Claim(serializers.Serializer[Any]):
    text = serializers.CharField()
    quote = serializers.CharField()
    start = serializers.IntegerField(help_text="In characters of the source's text.")
    end = serializers.IntegerField()
    derived = serializers.CharField(
        allow_blank=True,
        help_text="A number that follows from the source's, such as `43 % = 92 / 214`; it was computed again.",
    )
    draft_start = serializers.IntegerField(
        allow_null=True, help_text="In characters of `body`; null where the words were changed."
    )
    draft_end = serializers.IntegerField(allow_null=True)


class Check(serializers.Serializer[Any]):
    code = serializers.CharField()
    outcome = serializers.ChoiceField(choices=("passed", "warning", "failed"))
    message = serializers.CharField()


class Provenance(serializers.Serializer[Any]):
    raw_version = serializers.IntegerField(allow_null=True)
    persona_version = serializers.IntegerField(allow_null=True)
    engine_version = serializers.IntegerField()
    parent = PublicIdField(  # type: ignore[assignment]  # the contract's name
        "gen", allow_null=True, help_text="The item that it was made again from."
    )
    hint = serializers.CharField(allow_null=True, help_text="What was asked of it.")


class Progress(serializers.Serializer[Any]):
    """How far an item is that is being made; `percent` is of what is drawn and filmed."""

    stage = serializers.ChoiceField(choices=GenerationStage.values)
    percent = serializers.IntegerField()


class GeneratedItem(serializers.Serializer[Any]):
    id = PublicIdField("gen")
    bucket = serializers.ChoiceField(choices=Bucket.values)
    engine_output = serializers.CharField()
    status = serializers.ChoiceField(choices=GeneratedItemStatus.values)
    revision = serializers.IntegerField(
        help_text="Rises with every change of the words; approvals and publications name it."
    )
    version = serializers.IntegerField(help_text="Rises with every change of the object.")
    variant = Variant()
    title = serializers.CharField(allow_blank=True)
    body = serializers.CharField(allow_blank=True)
    body_format = serializers.ChoiceField(choices=BodyFormat.values)
    excerpt = serializers.CharField(allow_blank=True)
    language = serializers.CharField(allow_null=True)
    assets = Asset(
        many=True,
        help_text="Its files. An address can't be guessed, serves ranges and HEAD, and stays until the file is replaced or "
        "the item deleted.",
    )
    source = PublicIdField("src", allow_null=True)  # type: ignore[assignment]  # the contract's name
    raw_item = PublicIdField("raw", allow_null=True)
    raw_items = serializers.ListField(
        child=PublicIdField("raw"),
        help_text="What it is made of; several for a digest, whose raw_item is null.",
    )
    topic = PublicIdField("top", allow_null=True)
    persona = PublicIdField("per", allow_null=True)
    outlets = _text_list()
    overrides = ObjectField()
    approval = Approval()
    rejection = Reason(allow_null=True)
    publications = PublicationInItem(many=True)
    publish_at = MomentField(allow_null=True, help_text="The earliest scheduled time that is still to come.")
    overdue_seconds = serializers.IntegerField(
        help_text="How late the latest post is; posts by hand aren't counted."
    )
    held = serializers.CharField(
        allow_null=True,
        help_text="Why nothing of it is sent though it is due: source_changed, source_withdrawn, "
        "approval_stale or instructions_in_source (its source holds instructions to an AI, "
        "which weren't used). Approving it releases it.",
    )
    flagged = serializers.CharField(
        allow_null=True,
        help_text="What happened to its source after it was published: source_changed or source_withdrawn.",
    )
    generator = Generator(allow_null=True)
    checks_revision = serializers.IntegerField(
        allow_null=True,
        help_text="The revision that `checks` belong to: the present one; null where its words weren't checked, "
        "0 where a draft failed before there were any.",
    )
    error = RunError(allow_null=True)
    progress = Progress(
        allow_null=True,
        help_text="While it is being made: the stage of its run, and how much is drawn or filmed.",
    )
    test = serializers.BooleanField()
    created_at = MomentField()
    ready_at = MomentField(allow_null=True)
    published_at = MomentField(allow_null=True)
    updated_at = MomentField()
    content = ContentField(required=False)
    claims = Claim(many=True, required=False, help_text="What it says, and where the source says it.")
    checks = Check(many=True, required=False)
    provenance = Provenance(required=False)


class ClearingCall(serializers.Serializer[Any]):
    """A call of this API that takes the blocker away; `path` is below the base address."""

    method = serializers.CharField()
    path = serializers.CharField()
    body = ObjectField(allow_null=True)


class Blocker(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    since = MomentField(allow_null=True)
    until = MomentField(allow_null=True)
    outlet = PublicIdField("out", allow_null=True)
    publication = PublicIdField("pub", allow_null=True)
    clears = ClearingCall(allow_null=True)


class Explanation(serializers.Serializer[Any]):
    """Empty `blockers`: the next look of a worker publishes it."""

    generated_item = PublicIdField("gen")
    status = serializers.ChoiceField(choices=GeneratedItemStatus.values)
    blockers = Blocker(many=True)


class Length(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)
    unit = serializers.CharField()


class RehearsedMedia(serializers.Serializer[Any]):
    url = serializers.CharField()
    mime_type = serializers.CharField()
    bytes = serializers.IntegerField()
    alt_text = serializers.CharField(allow_blank=True)


class FittingStep(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()


class Rehearsal(serializers.Serializer[Any]):
    outlet = PublicIdField("out")
    platform = serializers.CharField()
    publish_at = MomentField()
    ok = serializers.BooleanField()
    credentials = serializers.ChoiceField(choices=OutletStatus.values)
    problems = ErrorEntry(many=True)
    length = Length()
    title = serializers.CharField(allow_blank=True)
    body = serializers.CharField(allow_blank=True)
    body_format = serializers.ChoiceField(choices=BodyFormat.values)
    parts = serializers.ListField(
        child=serializers.CharField(allow_blank=True),
        help_text="The posts of a thread; one where it is none.",
    )
    steps = FittingStep(many=True, help_text="What was done to the words so that they fit.")
    disclosure = ObjectField(help_text="The platform's own fields that disclose AI use.")
    content = ContentField(help_text="What would be sent.")
    media = RehearsedMedia(many=True)
    settings = ObjectField()


class DryRun(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    generated_item = PublicIdField("gen")
    outlets = Rehearsal(many=True)
    notes = Note(many=True, help_text="What was changed in the request, such as `time_moved`.")


class PublishedItem(GeneratedItem):
    """The item as it is now, and what is to be known of its schedule."""

    notes = Note(many=True, help_text="What was changed in the request, such as `time_moved`.")


class Receipt(serializers.Serializer[Any]):
    """What was handed to the platform, as it was fitted for it."""

    title = serializers.CharField(allow_blank=True)
    body = serializers.CharField(allow_blank=True)
    body_format = serializers.ChoiceField(choices=BodyFormat.values)
    parts = serializers.ListField(child=serializers.CharField(allow_blank=True))
    steps = FittingStep(many=True)
    disclosure = ObjectField()
    media = RehearsedMedia(many=True)
    settings = ObjectField()


class LateAnswer(serializers.Serializer[Any]):
    """The platform has the post, and said so when the attempt was closed already."""

    external_id = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)
    at = MomentField()


class Attempt(serializers.Serializer[Any]):
    """One call that may have made a publication public."""

    id = PublicIdField("att")
    publication = PublicIdField("pub")
    number = serializers.IntegerField()
    revision = serializers.IntegerField(help_text="Of the item, as it was sent.")
    status = serializers.ChoiceField(choices=AttemptStatus.values)
    error = PublicationError(allow_null=True)
    receipt = Receipt(allow_null=True)
    late_answer = LateAnswer(allow_null=True)
    started_at = MomentField()
    finished_at = MomentField(allow_null=True)


class TextLimit(serializers.Serializer[Any]):
    max = serializers.IntegerField(allow_null=True)
    unit = serializers.CharField()


class TitleLimit(serializers.Serializer[Any]):
    max = serializers.IntegerField(allow_null=True)


class MediaLimit(serializers.Serializer[Any]):
    max = serializers.IntegerField()
    mime_types = _text_list()
    max_bytes = serializers.IntegerField()
    max_seconds = serializers.FloatField(allow_null=True)


class BucketLimits(serializers.Serializer[Any]):
    text = TextLimit()
    title = TitleLimit()
    parts = serializers.IntegerField(help_text="Posts of a thread.")
    images = MediaLimit(allow_null=True)
    video = MediaLimit(allow_null=True)


class OutletLimits(serializers.Serializer[Any]):
    text = TextLimit()
    buckets = serializers.DictField(child=BucketLimits(), help_text="By bucket.")
    per_day = serializers.IntegerField(allow_null=True, help_text="Posts in any 24 hours.")
    gap_minutes = serializers.FloatField(allow_null=True, help_text="The least time between two posts.")


class OutletAccount(serializers.Serializer[Any]):
    """Whose account it is, as the platform says."""

    external_id = serializers.CharField(allow_null=True)
    handle = serializers.CharField(allow_null=True)
    name = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)


class Feeds(serializers.Serializer[Any]):
    atom = serializers.CharField()
    rss = serializers.CharField()
    json = serializers.CharField()


class Outlet(serializers.Serializer[Any]):
    id = PublicIdField("out")
    name = serializers.CharField()
    platform = serializers.ChoiceField(choices=plugins.kinds("platforms"))
    buckets = serializers.ListField(child=serializers.ChoiceField(choices=Bucket.values))
    status = serializers.ChoiceField(choices=OutletStatus.values)
    last_error = Reason(allow_null=True)
    limits = OutletLimits()
    account = OutletAccount(allow_null=True)
    connected_at = MomentField(allow_null=True)
    checked_at = MomentField(allow_null=True)
    expires_at = MomentField(allow_null=True)
    rests_until = MomentField(allow_null=True)
    default = serializers.BooleanField()
    simulated = serializers.BooleanField()
    feeds = Feeds(allow_null=True)
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()


class Sections(serializers.Serializer[Any]):
    who_you_are = serializers.CharField(allow_blank=True)
    voice = serializers.CharField(allow_blank=True)
    banned_words = _text_list()
    required_structures = serializers.ListField(child=ObjectField())
    reference_posts = _text_list()


class Persona(serializers.Serializer[Any]):
    id = PublicIdField("per")
    name = serializers.CharField()
    handle = serializers.CharField(allow_null=True)
    language = serializers.CharField()
    sections = Sections()
    approved_lines = serializers.ListField(
        child=serializers.CharField(), help_text="May be published word for word, without a model."
    )
    links = _text_list()
    brand = ObjectField()
    default = serializers.BooleanField()
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()


class Restriction(serializers.Serializer[Any]):
    code = serializers.CharField()
    field = serializers.CharField(
        allow_null=True, help_text="The setting that can't be used, such as `config.username`."
    )
    reason = serializers.CharField()
    remedy = serializers.CharField()


class _Standing(serializers.Serializer[Any]):
    available = serializers.BooleanField(help_text="Whether it can work on this service.")
    reason = serializers.CharField(allow_null=True, help_text="Why it can't; null where it can.")
    remedy = serializers.CharField(allow_null=True, help_text="What to do about it.")
    restrictions = Restriction(many=True, help_text="What of it can't work, where the rest can.")


class Engine(_Standing):
    name = serializers.CharField()
    bucket = serializers.ChoiceField(choices=Bucket.values)
    credits = serializers.IntegerField(help_text="Price of one variant.")
    made_from = _text_list()
    version = serializers.IntegerField()


class SourceType(_Standing):
    type = serializers.CharField()
    label = serializers.CharField(  # type: ignore[assignment]  # the API's name
        help_text="As people read it."
    )
    fetches = serializers.BooleanField(
        help_text="Whether it is polled; otherwise it receives pushes or runs on a schedule."
    )
    config_schema = ObjectField(help_text="JSON Schema of a source's `config`.")


class EngineEstimate(serializers.Serializer[Any]):
    name = serializers.CharField()
    bucket = serializers.ChoiceField(choices=Bucket.values)
    credits = serializers.IntegerField(help_text="Price of one variant.")
    variants = serializers.IntegerField()


class Estimate(serializers.Serializer[Any]):
    credits = serializers.IntegerField(help_text="What pushing it would reserve; 0 with a test token.")
    engines = EngineEstimate(many=True)
    not_possible = serializers.ListField(
        child=serializers.CharField(), help_text="Engines left out, and why."
    )
    available = serializers.IntegerField(allow_null=True, help_text="Credits left; null where not limited.")


class Event(serializers.Serializer[Any]):
    id = PublicIdField("evt")
    type = serializers.CharField()
    timestamp = MomentField()
    workspace = PublicIdField("ws")
    data = ObjectField()  # type: ignore[assignment]  # the contract's name


@extend_schema_serializer(many=False)
class EventList(serializers.Serializer[Any]):
    data = Event(many=True)  # type: ignore[assignment]  # the contract's name
    has_more = serializers.BooleanField()
    next_cursor = serializers.CharField(
        allow_null=True, help_text="Where to continue; given on the last page too, for the next request."
    )
