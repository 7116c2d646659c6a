"""What was made: generated items, their revisions and their files."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from pipeline.models.generation import Generation, GenerationInput

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler, _AsSqlType


def runs_telling(raw_item_id: UUID, *, workspace_id: UUID | None = None) -> list[UUID]:
    """The runs that are made from this raw item and others."""
    several = GenerationInput.everywhere.filter(raw_item_id=raw_item_id)
    if workspace_id is not None:
        several = several.filter(workspace_id=workspace_id)
    return list(several.values_list("generation_id", flat=True))


def made_of(
    raw_item_id: UUID, *, workspace_id: UUID | None = None, runs: Collection[UUID] | None = None
) -> models.Q:
    """Items that are made of this raw item, of it alone or of several; `runs` are read right away if they aren't given.

    With a subquery in their place PostgreSQL can read neither half of the condition by index.
    """
    if runs is None:
        runs = runs_telling(raw_item_id, workspace_id=workspace_id)
    alone = models.Q(raw_item_id=raw_item_id)
    return alone | models.Q(generation_id__in=runs) if runs else alone


class Bucket(models.TextChoices):
    """What an engine makes: the kind of content that outlets take."""

    VIDEO = "video", _("Video")
    IMAGE = "image", _("Image")
    TEXT = "text", _("Text")
    BLOG = "blog", _("Article")
    NEWSLETTER = "newsletter", _("Newsletter")


class BodyFormat(models.TextChoices):
    TEXT = "text", _("Text")
    MARKDOWN = "markdown", _("Markdown")
    HTML = "html", _("HTML")


class GeneratedItemStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    GENERATING = "generating", _("Generating")
    READY = "ready", _("To review or approved")
    FAILED = "failed", _("Failed")
    REJECTED = "rejected", _("Rejected")
    SCHEDULED = "scheduled", _("Scheduled")
    PUBLISHING = "publishing", _("Publishing")
    PUBLISHED = "published", _("Published")
    PARTIALLY_PUBLISHED = "partially_published", _("Partly published")
    PUBLISH_FAILED = "publish_failed", _("Publishing failed")
    REMOVED = "removed", _("Removed")


class HoldReason(models.TextChoices):
    """Why nothing of an item is sent though it is due."""

    APPROVAL_STALE = "approval_stale", _("Edited after approval")
    SOURCE_CHANGED = "source_changed", _("Source changed")
    SOURCE_WITHDRAWN = "source_withdrawn", _("Source withdrawn")
    INSTRUCTIONS_IN_SOURCE = "instructions_in_source", _("Prompt injection")


class FlagReason(models.TextChoices):
    """What befell an item's source after it was published."""

    SOURCE_CHANGED = "source_changed", _("Source changed")
    SOURCE_WITHDRAWN = "source_withdrawn", _("Source withdrawn")


class Angle(models.TextChoices):
    NUMBER = "number", _("a number")
    CONTRAST = "contrast", _("a contrast")
    QUESTION = "question", _("a question")
    STORY = "story", _("a story")
    HOW_TO = "how-to", _("a how-to")
    MYTH = "myth", _("a myth")
    WARNING = "warning", _("a warning")


class AssetKind(models.TextChoices):
    IMAGE = "image", _("Image")
    VIDEO = "video", _("Video")
    AUDIO = "audio", _("Audio")
    DOCUMENT = "document", _("Document")


class ChecksOutcome(models.Func):
    """What the checks of an item came to: `fw`, `f` or `w` where one failed, or warned; empty where all passed.

    Its text stands in the statement as it does in the index, without parameters: so both databases find it there.
    """

    arity = 1
    output_field = models.CharField()

    def _template(self, find: str, text: str) -> str:
        return "({} || {})".format(
            *(
                f"CASE WHEN {find}({text}, '\"outcome\": \"{outcome}\"') > 0 THEN '{outcome[0]}' ELSE '' END"
                for outcome in ("failed", "warning")
            )
        )

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> _AsSqlType:
        return self.as_sql(
            compiler, connection, template=self._template("INSTR", "%(expressions)s"), **context
        )

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> _AsSqlType:
        text = "(%(expressions)s)::text"
        return self.as_sql(compiler, connection, template=self._template("STRPOS", text), **context)


TO_REVIEW: Final = models.Q(status=GeneratedItemStatus.READY, approved_at=None, deleted_at=None)
"""Ready, and nobody has decided on it."""
IS_APPROVED: Final = models.Q(approved_at__isnull=False)
"""Somebody has approved one of its revisions, as `GeneratedItem.is_approved` says of a row."""
NO_APPROVAL: Final[Mapping[str, Any]] = {"approved_by": "", "approved_at": None, "approved_revision": None}
"""What takes an approval back where it is written."""
APPROVAL_FIELDS: Final = ("approved_at",)
"""What a query reads so that `is_approved_row` and `GeneratedItem.is_approved` can tell."""


def is_approved_row(row: Mapping[str, Any]) -> bool:
    """Say `GeneratedItem.is_approved` of a row of `values()` that has the `APPROVAL_FIELDS`."""
    return row["approved_at"] is not None


class GeneratedItemQuerySet(models.QuerySet[Any]):
    """The notions of a generated item that pages, metrics, mails and doctor share."""

    def live(self) -> Self:
        """Without those of test tokens."""
        return self.filter(test=False)

    def to_review(self) -> Self:
        return self.filter(TO_REVIEW)

    def ready(self) -> Self:
        """Made, and neither published, scheduled nor rejected."""
        return self.filter(status=GeneratedItemStatus.READY, deleted_at=None)

    def decided(self) -> Self:
        """Somebody approved or rejected it."""
        return self.filter(
            models.Q(approved_revision__isnull=False) | models.Q(status=GeneratedItemStatus.REJECTED)
        )

    def failed(self) -> Self:
        """Could not be made."""
        return self.filter(status=GeneratedItemStatus.FAILED, deleted_at=None)

    def in_making(self) -> Self:
        return self.filter(
            status__in=[GeneratedItemStatus.QUEUED, GeneratedItemStatus.GENERATING], deleted_at=None
        )

    def on_hold(self) -> Self:
        return self.exclude(held="")

    def with_newest_rewrite(self) -> Self:
        """Each with `newest_rewrite_id`, of the run that writes its words again, or did last; None for nearly all."""
        runs = Generation.everywhere.filter(rewrites=models.OuterRef("pk")).order_by("-id")
        return self.annotate(newest_rewrite_id=models.Subquery(runs.values("pk")[:1]))

    def flagged(self) -> Self:
        """Published, and made of something that has changed since."""
        return self.exclude(flagged="")


class OwnGeneratedItems(WorkspaceQuerySet[Any], GeneratedItemQuerySet):  # type: ignore[override]
    """The same of one workspace."""


class GeneratedItem(WorkspaceRow):
    """One variant of one engine run; the row holds the newest revision's words."""

    test = models.BooleanField(default=False)
    generation = models.ForeignKey("pipeline.Generation", on_delete=models.PROTECT, related_name="items")
    source = models.ForeignKey("pipeline.Source", null=True, on_delete=models.PROTECT, related_name="+")
    raw_item = models.ForeignKey(
        "pipeline.RawItem", null=True, on_delete=models.SET_NULL, related_name="generated"
    )
    raw_items = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """Ids of the raw items that a digest is made from, in hex and in order; empty where there is one, or none."""
    topic = models.ForeignKey("pipeline.Topic", null=True, on_delete=models.SET_NULL, related_name="+")
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    parent = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")
    """The item that this one was regenerated from."""
    hint = models.CharField(max_length=500, blank=True, db_default="", default="")
    """What whoever regenerated asked of it."""
    bucket = models.CharField(max_length=10, choices=Bucket)
    engine_output = models.CharField(max_length=60)
    engine_version = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=GeneratedItemStatus, default=GeneratedItemStatus.QUEUED)
    held = models.CharField(max_length=30, choices=HoldReason, blank=True)
    """Empty where nothing holds it."""
    flagged = models.CharField(max_length=20, choices=FlagReason, blank=True, db_default="", default="")
    revision = models.PositiveIntegerField(default=0)
    """Rises with every change of the words; 0 until they exist."""
    version = models.PositiveIntegerField(default=1)
    """Rises with every change of the object."""
    variant_group = models.UUIDField()
    variant_index = models.PositiveSmallIntegerField(default=0)
    angle = models.CharField(max_length=20, choices=Angle, blank=True)
    title = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)
    body_format = models.CharField(max_length=10, choices=BodyFormat, default=BodyFormat.TEXT)
    content = models.JSONField(default=dict)
    excerpt = models.CharField(max_length=300, blank=True)
    language = models.CharField(max_length=35, blank=True)
    outlets = models.JSONField(default=list)
    """Public ids of the outlets where it goes by default, in order."""
    overrides = models.JSONField(default=dict)
    """By public id of an outlet: `{"title", "body", "settings"}`."""
    approval_required = models.BooleanField(default=False)
    approved_by = models.CharField(max_length=200, blank=True)
    approved_at = models.DateTimeField(null=True)
    approved_revision = models.PositiveIntegerField(null=True)
    rejection = models.JSONField(null=True)
    """`{"code": "by_person" | "superseded", "message", "by", "at"}`."""
    generator = models.JSONField(default=dict)
    claims = models.JSONField(default=list)
    checks = models.JSONField(default=list)
    """Those of the revision `checks_revision`; read them by `present_checks`."""
    checks_revision = models.PositiveIntegerField(null=True)
    """The revision whose words were checked; 0 where a draft failed before there were any."""
    error = models.JSONField(null=True)
    raw_version = models.PositiveIntegerField(null=True)
    persona_version = models.PositiveIntegerField(null=True)
    publish_at = models.DateTimeField(null=True)
    """The earliest promise of its publications that are still to come."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Made of sample data: of a source or by a series that is one."""
    created_at = models.DateTimeField(default=utc_now)
    ready_at = models.DateTimeField(null=True)
    published_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(default=utc_now)
    deleted_at = models.DateTimeField(null=True)
    newest_rewrite_id: UUID | None
    """Of an item that was read `with_newest_rewrite`."""

    everywhere: ClassVar = GeneratedItemQuerySet.as_manager()
    objects: ClassVar = OwnGeneratedItems.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "generated_item"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "test", "-id"], name="generated_item_list"),  # GET /generated
            models.Index(fields=["workspace", "test", "status", "-id"], name="generated_item_by_status"),
            models.Index(fields=["workspace", "test", "bucket", "-id"], name="generated_item_by_bucket"),
            models.Index(fields=["source", "-id"], name="generated_item_by_source"),
            models.Index(
                fields=["variant_group"], name="generated_item_variants"
            ),  # siblings, when one is published
            # A brand lane's memory: what the persona has said of late.
            models.Index(
                fields=["persona", "-created_at"],
                name="generated_item_said",
                condition=models.Q(revision__gt=0, deleted_at=None),
            ),
            # The first page and the digest: what waits for review, and what could not be made.
            models.Index(
                fields=["workspace", "-id"],
                name="generated_item_waiting",
                condition=models.Q(status="ready", approved_at=None, deleted_at=None, test=False),
            ),
            # The review queue where it is narrowed to what failed a check, or was warned of.
            models.Index(
                models.F("workspace"),
                ChecksOutcome("checks"),
                models.F("id").desc(),
                name="generated_item_checked",
                condition=models.Q(status="ready", approved_at=None, deleted_at=None, test=False),
            ),
            # The review queue of what is held back.
            models.Index(
                fields=["workspace", "-id"],
                name="generated_item_held",
                condition=~models.Q(held="") & models.Q(deleted_at=None, test=False),
            ),
            models.Index(
                fields=["workspace", "-updated_at"],
                name="generated_item_failed",
                condition=models.Q(status="failed", deleted_at=None, test=False),
            ),
            # The first page: what is published and was made of something that has changed since.
            models.Index(
                fields=["workspace", "-id"],
                name="generated_item_flagged",
                condition=~models.Q(flagged="") & models.Q(deleted_at=None, test=False),
            ),
        ]

    @property
    def present_checks(self) -> list[dict[str, Any]]:
        """The checks of the words that it holds; empty where these weren't checked."""
        found: list[dict[str, Any]] = self.checks if self.is_checked else []
        return found

    @property
    def is_checked(self) -> bool:
        return self.checks_revision == self.revision

    @property
    def is_approved(self) -> bool:
        """Whether somebody has approved one of its revisions, this one or one before."""
        return self.approved_at is not None

    @property
    def is_approved_as_it_is(self) -> bool:
        """Whether the approved revision is the newest one."""
        return self.is_approved and self.approved_revision == self.revision

    def approval(self, by: str, at: datetime) -> dict[str, Any]:
        """Return what an approval of its newest revision writes."""
        return {"approved_by": by, "approved_at": at, "approved_revision": self.revision}


class Revision(WorkspaceRow):
    """The words as they were approved or sent; never changed."""

    item = models.ForeignKey(GeneratedItem, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)
    body_format = models.CharField(max_length=10, choices=BodyFormat)
    content = models.JSONField(default=dict)
    overrides = models.JSONField(default=dict)
    made_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "revision"
        constraints: ClassVar = [models.UniqueConstraint(fields=["item", "number"], name="revision_once")]


def unguessable() -> str:
    """128 bits for an address that nobody can guess."""
    return secrets.token_urlsafe(16)


class Asset(WorkspaceRow):
    """A file of a generated item, served at `/media/<secret>/<name>` until it is revoked."""

    item = models.ForeignKey(GeneratedItem, on_delete=models.CASCADE, related_name="assets")
    role = models.CharField(max_length=20)
    position = models.PositiveSmallIntegerField(default=0)
    kind = models.CharField(max_length=10, choices=AssetKind)
    name = models.CharField(max_length=120)
    path = models.CharField(max_length=300)
    secret = models.CharField(max_length=32, unique=True, default=unguessable)
    mime_type = models.CharField(max_length=60)
    bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    width = models.PositiveIntegerField(null=True)
    height = models.PositiveIntegerField(null=True)
    duration = models.FloatField(null=True)
    """Seconds."""
    alt_text = models.TextField(blank=True)
    revoked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "asset"
        indexes: ClassVar = [
            models.Index(fields=["item", "position"], name="asset_of_item")
        ]  # the item's JSON
