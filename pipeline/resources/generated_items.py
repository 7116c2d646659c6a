"""Generated items with their files, checks and claims; what blocks one; what a dry run shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

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
from config.core.ids import encode
from pipeline.grounding import find_in_draft
from pipeline.models import BodyFormat, Bucket, GeneratedItemStatus, GenerationStage, OutletStatus
from pipeline.resources.contents import ContentField
from pipeline.resources.fields import ErrorEntry, Note, Reason, RunError
from pipeline.resources.publications import FittingStep, PublicationInItem, RehearsedMedia

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


def asset_address(secret: str, name: str) -> str:
    """Return the address of an item's file."""
    return f"{settings.PUBLIC_URL}/media/{secret}/{name}"


class Asset(RowSerializer):
    id = PublicIdField("ast")
    role = serializers.CharField(
        help_text="`alternative` says the same in another size and is never posted beside the first; "
        "`document` is a PDF of all slides; `hero` is the picture of an article."
    )
    position = serializers.IntegerField()
    kind = serializers.CharField()
    url = computed(serializers.CharField(), asset_address, "secret", "name")
    mime_type = serializers.CharField()
    bytes = serializers.IntegerField()
    width = serializers.IntegerField(allow_null=True)
    height = serializers.IntegerField(allow_null=True)
    duration = serializers.FloatField(allow_null=True, help_text="Seconds.")
    alt_text = serializers.CharField(allow_blank=True)


class Variant(RowSerializer):
    group = computed(
        serializers.CharField(help_text="The same for all variants of one format and one content."),
        lambda group: group.hex,
        "variant_group",
    )
    index = serializers.IntegerField(source="variant_index")
    angle = TextOrNull()


class Approval(RowSerializer):
    required = computed(  # type: ignore[assignment]  # the contract's name
        serializers.BooleanField(
            help_text="Whether the workspace asks for an approval before anything of it is published."
        ),
        lambda *, requires_approval: requires_approval,
    )
    by = TextOrNull(source="approved_by")
    at = MomentField(source="approved_at", allow_null=True)
    revision = serializers.IntegerField(source="approved_revision", allow_null=True)


class Generator(Answer):
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


class Claim(Answer):
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


def claim_map(body: str, claims: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each claim with its places in the source and in the item's present text.

    `draft_start` and `draft_end` are null where the text no longer says it, or says it in other words.
    """
    located = []
    for claim in claims:
        span = find_in_draft(body, claim["text"])
        start, end = span if span is not None else (None, None)
        located.append({"derived": "", **claim, "draft_start": start, "draft_end": end})
    return located


class Check(Answer):
    code = serializers.CharField()
    outcome = serializers.ChoiceField(choices=("passed", "warning", "failed"))
    message = serializers.CharField()


class Provenance(RowSerializer):
    raw_version = serializers.IntegerField(allow_null=True)
    persona_version = serializers.IntegerField(allow_null=True)
    engine_version = serializers.IntegerField()
    parent = PublicIdField(  # type: ignore[assignment]  # the contract's name
        "gen", source="parent_id", allow_null=True, help_text="The item that it was made again from."
    )
    hint = TextOrNull(help_text="What was asked of it.")


class Progress(Answer):
    """How far an item is that is being made; `percent` is of what is drawn and filmed."""

    stage = serializers.ChoiceField(choices=GenerationStage.values)
    percent = serializers.IntegerField()


def _progress(*, progress: tuple[str, int] | None = None) -> dict[str, Any] | None:
    return None if progress is None else {"stage": progress[0], "percent": progress[1]}


def _raw_items(hex_ids: Sequence[str], raw_item_id: UUID | None) -> list[str]:
    inputs = [UUID(hex_id) for hex_id in hex_ids] or ([raw_item_id] if raw_item_id else [])
    return [encode("raw", input_id) for input_id in inputs]


_WAITING: Final = frozenset({GeneratedItemStatus.SCHEDULED, GeneratedItemStatus.PUBLISHING})


def _overdue_seconds(status: str, publish_at: datetime | None, *, now: datetime) -> int:
    is_overdue = publish_at is not None and status in _WAITING and publish_at < now
    return int((now - publish_at).total_seconds()) if publish_at is not None and is_overdue else 0


def _current_error(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the error of a run.

    One stored by an earlier release lacks `retryable`, and nothing speaks against a retry.
    """
    return None if error is None else {"retryable": True, "action": "Try it again.", **error}


class GeneratedItem(RowSerializer):
    # Lists leave out what isn't required, unless `include=` names it.
    id = PublicIdField("gen")
    bucket = serializers.ChoiceField(choices=Bucket.values)
    engine_output = serializers.CharField()
    status = serializers.ChoiceField(choices=GeneratedItemStatus.values)
    revision = serializers.IntegerField(
        help_text="Rises with every change of the words; approvals and publications name it."
    )
    version = serializers.IntegerField(help_text="Rises with every change of the object.")
    variant = Variant(source="*")
    title = serializers.CharField(allow_blank=True)
    body = serializers.CharField(allow_blank=True)
    body_format = serializers.ChoiceField(choices=BodyFormat.values)
    excerpt = serializers.CharField(allow_blank=True)
    language = TextOrNull()
    assets = given(
        Asset(
            many=True,
            help_text="Its files. An address can't be guessed, serves ranges and HEAD, and stays until the file is replaced or "
            "the item deleted.",
        ),
        default=(),
    )
    source = PublicIdField(  # type: ignore[assignment]  # the contract's name
        "src", source="source_id", allow_null=True
    )
    raw_item = PublicIdField("raw", source="raw_item_id", allow_null=True)
    raw_items = computed(
        serializers.ListField(
            child=PublicIdField("raw"),
            help_text="What it is made of; several for a digest, whose raw_item is null.",
        ),
        _raw_items,
        "raw_items",
        "raw_item_id",
    )
    topic = PublicIdField("top", source="topic_id", allow_null=True)
    persona = PublicIdField("per", source="persona_id", allow_null=True)
    outlets = text_list()
    overrides = ObjectField()
    approval = Approval(source="*")
    rejection = Reason(allow_null=True)
    publications = given(PublicationInItem(many=True), default=())
    publish_at = MomentField(allow_null=True, help_text="The earliest scheduled time that is still to come.")
    overdue_seconds = computed(
        serializers.IntegerField(help_text="How late the latest post is; posts by hand aren't counted."),
        _overdue_seconds,
        "status",
        "publish_at",
    )
    held = TextOrNull(
        help_text="Why nothing of it is sent though it is due: source_changed, source_withdrawn, "
        "approval_stale or instructions_in_source (its source holds instructions to an AI, "
        "which weren't used). Approving it releases it.",
    )
    flagged = TextOrNull(
        help_text="What happened to its source after it was published: source_changed or source_withdrawn.",
    )
    generator = computed(Generator(allow_null=True), lambda generator: generator or None, "generator")
    checks_revision = computed(
        serializers.IntegerField(
            allow_null=True,
            help_text="The revision that `checks` belong to: the present one; null where its words weren't checked, "
            "0 where a draft failed before there were any.",
        ),
        lambda checked, revision: checked if checked == revision else None,
        "checks_revision",
        "revision",
    )
    error = computed(RunError(allow_null=True), _current_error, "error")
    progress = computed(
        Progress(
            allow_null=True,
            help_text="While it is being made: the stage of its run, and how much is drawn or filmed.",
        ),
        _progress,
    )
    test = serializers.BooleanField()
    created_at = MomentField()
    ready_at = MomentField(allow_null=True)
    published_at = MomentField(allow_null=True)
    updated_at = MomentField()
    content = ContentField(required=False)
    claims = computed(
        Claim(many=True, required=False, help_text="What it says, and where the source says it."),
        claim_map,
        "body",
        "claims",
    )
    checks = computed(
        Check(many=True, required=False),
        lambda checks, checked, revision: checks if checked == revision else [],
        "checks",
        "checks_revision",
        "revision",
    )
    provenance = Provenance(source="*", required=False)


LONG_FIELDS: Final = tuple(name for name, field in GeneratedItem.declared().items() if not field.required)
"""The fields that lists leave out unless `include=` names them."""


class PublishedItem(GeneratedItem):
    """The item as it is now, and what is to be known of its schedule."""

    notes = given(Note(many=True, help_text="What was changed in the request, such as `time_moved`."))


class ClearingCall(RowSerializer):
    """A call of this API that takes the blocker away; `path` is below the base address."""

    method = serializers.CharField()
    path = serializers.CharField()
    body = ObjectField(allow_null=True)


class Blocker(RowSerializer):
    code = serializers.CharField()
    message = serializers.CharField()
    since = MomentField(allow_null=True)
    until = MomentField(allow_null=True)
    outlet = given(PublicIdField("out", allow_null=True), default=None)
    publication = given(PublicIdField("pub", allow_null=True), default=None)
    clears = ClearingCall(allow_null=True)


class Explanation(Answer):
    """Empty `blockers`: the next look of a worker publishes it."""

    generated_item = PublicIdField("gen")
    status = serializers.ChoiceField(choices=GeneratedItemStatus.values)
    blockers = Blocker(many=True)


class Length(RowSerializer):
    count = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)
    unit = serializers.CharField()


class Rehearsal(Answer):
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


class DryRun(Answer):
    dry_run = serializers.BooleanField()
    generated_item = PublicIdField("gen")
    outlets = Rehearsal(many=True)
    notes = Note(many=True, help_text="What was changed in the request, such as `time_moved`.")
