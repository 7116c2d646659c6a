"""Raw items with their versions and bodies, and uploaded files."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models.generated_item import unguessable
from pipeline.models.item_choices import BodyFormat


class RawItemStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    PROCESSING = "processing", _("Processing")
    PROCESSED = "processed", _("Processed")
    WAITING_QUOTA = "waiting_quota", _("Waiting for credits")
    SKIPPED = "skipped", _("Skipped")
    FAILED = "failed", _("Failed")


class RawItemQuerySet(models.QuerySet[Any]):
    """The filters of raw items that pages, metrics and doctor share."""

    def live(self) -> Self:
        """Return the raw items that weren't made by test tokens."""
        return self.filter(test=False)

    def failed(self) -> Self:
        """Return the raw items from which nothing could be made."""
        return self.filter(status=RawItemStatus.FAILED, deleted_at=None)

    def stuck(self) -> Self:
        """Return the raw items that failed or wait for credits."""
        return self.filter(status__in=[RawItemStatus.FAILED, RawItemStatus.WAITING_QUOTA], deleted_at=None)


class OwnRawItems(WorkspaceQuerySet[Any], RawItemQuerySet):  # type: ignore[override]
    """The same filters, bound to one workspace."""


PASTED_PREFIX: Final = "page:"
UPLOADED_PREFIX: Final = "page:file:"
"""Prefixes of the `external_id` of a raw item that a person made at Create, from text and from a file."""


class RawItem(WorkspaceRow, DueModel):
    """Content that came in; `wake_at` is set only while it waits for credits.

    A deleted one stays as a tombstone with its `dedup_key`.
    """

    test = models.BooleanField(default=False)
    source = models.ForeignKey("pipeline.Source", on_delete=models.PROTECT, related_name="raw_items")
    dedup_key = models.CharField(max_length=600)
    """`x:<source>:<external id>`, `u:<canonical address>` or `h:<content hash>`: the first of them that is known."""
    external_id = models.CharField(max_length=512, blank=True)
    url = models.CharField(max_length=2048, blank=True)
    title = models.CharField(max_length=500, blank=True)
    language = models.CharField(max_length=35, blank=True)
    language_guessed = models.BooleanField(default=False, db_default=False)
    """True if the language was guessed from the text, as nobody declared it."""
    author = models.CharField(max_length=200, blank=True)
    published_at = models.DateTimeField(null=True)
    media = models.JSONField(default=list)
    metadata = models.JSONField(default=dict)
    engines = models.JSONField(default=list)
    """Names of the engine outputs to make from it, already resolved from source and workspace."""
    variants = models.PositiveSmallIntegerField(default=1)
    skipped = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """`[{"engine_output", "variant", "code", "message"}]`: the variants that planning found impossible."""
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    content_hash = models.CharField(max_length=64)
    version = models.PositiveIntegerField(default=1)
    """Rises with every change of the object."""
    content_version = models.PositiveIntegerField(default=1)
    """Rises with every change of the content; names a `RawBody`."""
    status = models.CharField(max_length=15, choices=RawItemStatus, default=RawItemStatus.QUEUED)
    reason = models.JSONField(null=True)
    """`{"code", "message", "stage"}` if it was skipped, failed or waits."""
    near_duplicate = models.JSONField(null=True)
    """`{"raw_item", "score"}` of its closest near duplicate in the 90 days before it, if there is one."""
    withdrawn_at = models.DateTimeField(null=True)
    """The time since which its source no longer lists it, though it lists older ones."""
    request_id = models.CharField(max_length=64, blank=True)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar = RawItemQuerySet.as_manager()
    objects: ClassVar = OwnRawItems.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "raw_item"
        constraints: ClassVar = [
            # If the same content is pushed twice at the same moment, the second finds the first one's row.
            models.UniqueConstraint(fields=["workspace", "test", "dedup_key"], name="raw_item_once"),
        ]
        indexes: ClassVar = [
            *claim_indexes("raw_item"),
            models.Index(fields=["workspace", "test", "-id"], name="raw_item_list"),  # GET /raw
            models.Index(fields=["source", "-id"], name="raw_item_by_source"),  # GET /raw?source=
            # The page of failures: raw items that failed, or wait for credits.
            models.Index(
                fields=["workspace", "-updated_at"],
                name="raw_item_failed",
                condition=models.Q(status__in=["failed", "waiting_quota"], deleted_at=None, test=False),
            ),
        ]


class RawBody(WorkspaceRow):
    """One version of a raw item's content, in a separate table because it may have 5 MiB."""

    raw_item = models.ForeignKey(RawItem, on_delete=models.CASCADE, related_name="bodies")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)
    body_format = models.CharField(max_length=10, choices=BodyFormat, default=BodyFormat.TEXT)
    content_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "raw_body"
        constraints: ClassVar = [models.UniqueConstraint(fields=["raw_item", "number"], name="raw_body_once")]


class RawPrint(WorkspaceRow):
    """A raw item's fingerprint, by which duplicates with another `dedup_key` are found.

    Its id is the raw item's. The table is separate because a raw item's row is written many times, and each
    time with all its indexes.
    """

    test = models.BooleanField(default=False)
    second_key = models.BigIntegerField(null=True)
    """64 bits of a hash of the canonical address, or of source and content if it has no address.

    See `pipeline.ingest.raw_content`.
    """
    bits = models.BigIntegerField(null=True)
    """The SimHash of the text (`pipeline.text.similarity`), or `None` if the text is too short for one."""
    band_0 = models.PositiveIntegerField(null=True)
    band_1 = models.PositiveIntegerField(null=True)
    band_2 = models.PositiveIntegerField(null=True)
    band_3 = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "raw_print"
        constraints: ClassVar = [
            # If two sources bring the same page at the same moment, the second finds the first one's row.
            models.UniqueConstraint(fields=["workspace", "test", "second_key"], name="raw_print_once"),
        ]
        indexes: ClassVar = [
            # Finds for each new raw item those that share a quarter of its bits.
            models.Index(fields=["workspace", f"band_{number}"], name=f"raw_print_band_{number}")
            for number in range(4)
        ]


class UploadKind(models.TextChoices):
    """The kind of a file, as its bytes show."""

    IMAGE = "image", _("Image")
    AUDIO = "audio", _("Audio")
    VIDEO = "video", _("Video")
    TEXT = "text", _("Text")


class Upload(WorkspaceRow):
    """An uploaded file. An unused one is deleted after `expires_at`; a used one has none."""

    test = models.BooleanField(default=False)
    kind = models.CharField(max_length=10, choices=UploadKind)
    mime_type = models.CharField(max_length=60)
    name = models.CharField(max_length=120, blank=True)
    """The sender's name for it: shown to people, trusted for nothing."""
    path = models.CharField(max_length=300)
    secret = models.CharField(max_length=32, unique=True, default=unguessable)
    bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    width = models.PositiveIntegerField(null=True)
    height = models.PositiveIntegerField(null=True)
    seconds = models.FloatField(null=True)
    """The duration of audio or video; `None` for other kinds, and for files uploaded before it was stored."""
    created_by = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "upload"
        indexes: ClassVar = [
            # Sums the unused files of a workspace; the next one finds those that retention deletes.
            models.Index(
                fields=["workspace", "expires_at"],
                name="upload_unused",
                condition=models.Q(expires_at__isnull=False),
            ),
            models.Index(
                fields=["expires_at"],
                name="upload_forgotten",
                condition=models.Q(expires_at__isnull=False),
            ),
        ]


class UploadUse(WorkspaceRow):
    """One use of an upload: by a raw item, or by a persona as its portrait."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="uses")
    raw_item = models.ForeignKey(
        "pipeline.RawItem", null=True, on_delete=models.CASCADE, related_name="upload_uses"
    )
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "upload_use"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(raw_item__isnull=False) ^ models.Q(persona__isnull=False),
                name="upload_use_of_one",
            )
        ]
