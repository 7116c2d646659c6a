"""Generated items, their revisions and their files."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from django.db import models
from django.utils.dateparse import parse_datetime

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from pipeline.models.generation import Generation, GenerationInput
from pipeline.models.item_choices import (
    Angle,
    AssetKind,
    BodyFormat,
    FlagReason,
    GeneratedItemStatus,
    HoldReason,
    bucket_choices,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler, _AsSqlType

    from accounts.models import Workspace


def runs_using(raw_item_id: UUID, *, workspace_id: UUID | None = None) -> list[UUID]:
    """Return the ids of the runs that are made from this raw item together with others."""
    inputs = GenerationInput.everywhere.filter(raw_item_id=raw_item_id)
    if workspace_id is not None:
        inputs = inputs.filter(workspace_id=workspace_id)
    return list(inputs.values_list("generation_id", flat=True))


def items_made_from(
    raw_item_id: UUID, *, workspace_id: UUID | None = None, runs: Collection[UUID] | None = None
) -> models.Q:
    """Return the condition for items made from this raw item, alone or with others.

    `runs` are read right away if they aren't given: with a subquery in their place PostgreSQL can read
    neither half of the condition by index.
    """
    if runs is None:
        runs = runs_using(raw_item_id, workspace_id=workspace_id)
    alone = models.Q(raw_item_id=raw_item_id)
    return alone | models.Q(generation_id__in=runs) if runs else alone


class ChecksOutcome(models.Func):
    """A text with an `f` if one of an item's checks failed, and a `w` if one warned; empty if neither did.

    The SQL has no parameters, because both databases use the index only if the expression is written as in it.
    """

    arity = 1
    output_field = models.CharField()

    def _template(self, find: str, text: str) -> str:
        """Return the SQL of the expression; `find` is the database's function for finding a text in another."""
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
"""Matches items that are ready and on which nobody has decided."""
IS_APPROVED: Final = models.Q(approved_at__isnull=False)
"""Matches items of which a revision was approved, as `GeneratedItem.is_approved` does for a row."""
NO_APPROVAL: Final[Mapping[str, Any]] = {"approved_by": "", "approved_at": None, "approved_revision": None}
"""The column values that take an approval back."""
APPROVAL_FIELDS: Final = ("approved_at",)
"""The fields that `is_approved_row` and `GeneratedItem.is_approved` need."""


def approval_values(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column values that restore an approval; `state` is of `GeneratedItem.approval_state`."""
    stored_at = state["approved_at"]
    approved_at = parse_datetime(stored_at) if stored_at else None
    return {name: state[name] for name in NO_APPROVAL} | {"approved_at": approved_at}


def no_words() -> dict[str, Any]:
    """Return the column values that erase an item's content and everything that was derived from it."""
    return {
        "title": "",
        "body": "",
        "content": {},
        "excerpt": "",
        "claims": [],
        "checks": [],
        "checks_revision": None,
        "overrides": {},
        "hint": "",
    }


def is_approved_row(row: Mapping[str, Any]) -> bool:
    """Return `GeneratedItem.is_approved` for a row of `values()` that has the `APPROVAL_FIELDS`."""
    return row["approved_at"] is not None


class GeneratedItemQuerySet(models.QuerySet[Any]):
    """The filters of generated items that pages, metrics, mails and doctor share."""

    def live(self) -> Self:
        """Return the items that weren't made by test tokens."""
        return self.filter(test=False)

    def to_review(self) -> Self:
        return self.filter(TO_REVIEW)

    def ready(self) -> Self:
        """Return the items that were made and are neither published, scheduled nor rejected."""
        return self.filter(status=GeneratedItemStatus.READY, deleted_at=None)

    def unscheduled(self) -> Self:
        """Return the ready items that can be scheduled at once, or once their newest revision is approved."""
        return self.ready().filter(held__in=["", HoldReason.APPROVAL_STALE])

    def decided(self) -> Self:
        """Return the items that somebody approved or rejected."""
        return self.filter(
            models.Q(approved_revision__isnull=False) | models.Q(status=GeneratedItemStatus.REJECTED)
        )

    def failed(self) -> Self:
        """Return the items that could not be made."""
        return self.filter(status=GeneratedItemStatus.FAILED, deleted_at=None)

    def in_making(self) -> Self:
        return self.filter(
            status__in=[GeneratedItemStatus.QUEUED, GeneratedItemStatus.GENERATING], deleted_at=None
        )

    def on_hold(self) -> Self:
        return self.exclude(held="")

    def with_newest_rewrite(self) -> Self:
        """Annotate `newest_rewrite_id`: the id of the newest run that rewrites the item, or `None`."""
        runs = Generation.everywhere.filter(rewrites=models.OuterRef("pk")).order_by("-id")
        return self.annotate(newest_rewrite_id=models.Subquery(runs.values("pk")[:1]))

    def flagged(self) -> Self:
        """Return the items whose source changed or was withdrawn after they were published."""
        return self.exclude(flagged="")


class OwnGeneratedItems(WorkspaceQuerySet[Any], GeneratedItemQuerySet):  # type: ignore[override]
    """The same filters, bound to one workspace."""


class GeneratedItem(WorkspaceRow):
    """One variant of one engine run; the row holds the newest revision's content."""

    test = models.BooleanField(default=False)
    generation = models.ForeignKey("pipeline.Generation", on_delete=models.PROTECT, related_name="items")
    source = models.ForeignKey("pipeline.Source", null=True, on_delete=models.PROTECT, related_name="+")
    raw_item = models.ForeignKey(
        "pipeline.RawItem", null=True, on_delete=models.SET_NULL, related_name="generated"
    )
    raw_items = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """Hex ids of the raw items of a digest, in order; empty if the item is made from one raw item, or from none."""
    topic = models.ForeignKey("pipeline.Topic", null=True, on_delete=models.SET_NULL, related_name="+")
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    parent = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")
    """The item that this one was regenerated from."""
    hint = models.CharField(max_length=500, blank=True, db_default="", default="")
    """The wish of the person who regenerated the item."""
    bucket = models.CharField(max_length=10, choices=bucket_choices)
    engine_output = models.CharField(max_length=60)
    engine_version = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=GeneratedItemStatus, default=GeneratedItemStatus.QUEUED)
    held = models.CharField(max_length=30, choices=HoldReason, blank=True)
    """Empty if it isn't on hold."""
    flagged = models.CharField(max_length=20, choices=FlagReason, blank=True, db_default="", default="")
    revision = models.PositiveIntegerField(default=0)
    """Rises with every change of the content; 0 until it exists."""
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
    """Public ids of the outlets that publish the item by default, in order."""
    overrides = models.JSONField(default=dict)
    """By public id of an outlet: `{"title", "body", "settings"}`."""
    approval_required = models.BooleanField(default=False)
    """The workspace's setting when the item was made, as the previous release shows it; see `lacks_approval`."""
    approved_by = models.CharField(max_length=200, blank=True)
    approved_at = models.DateTimeField(null=True)
    approved_revision = models.PositiveIntegerField(null=True)
    rejection = models.JSONField(null=True)
    """`{"code": "by_person" | "superseded", "message", "by", "at"}`."""
    generator = models.JSONField(default=dict)
    claims = models.JSONField(default=list)
    checks = models.JSONField(default=list)
    """The checks of the revision `checks_revision`; read them by `present_checks`."""
    checks_revision = models.PositiveIntegerField(null=True)
    """The revision that was checked; 0 if a draft failed before there was one."""
    error = models.JSONField(null=True)
    raw_version = models.PositiveIntegerField(null=True)
    persona_version = models.PositiveIntegerField(null=True)
    publish_at = models.DateTimeField(null=True)
    """The earliest time for which one of its publications is still scheduled."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Made from sample data: from a sample source or by a sample series."""
    created_at = models.DateTimeField(default=utc_now)
    ready_at = models.DateTimeField(null=True)
    published_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(default=utc_now)
    deleted_at = models.DateTimeField(null=True)
    newest_rewrite_id: UUID | None
    """Exists only on items that were read with `with_newest_rewrite()`; not a column."""

    everywhere: ClassVar = GeneratedItemQuerySet.as_manager()
    objects: ClassVar = OwnGeneratedItems.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "generated_item"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "test", "-id"], name="generated_item_list"),  # GET /generated
            models.Index(fields=["workspace", "test", "status", "-id"], name="generated_item_by_status"),
            models.Index(fields=["workspace", "test", "bucket", "-id"], name="generated_item_by_bucket"),
            models.Index(fields=["source", "-id"], name="generated_item_by_source"),
            # Read when an item is published: its siblings.
            models.Index(fields=["variant_group"], name="generated_item_variants"),
            # Read by brand lanes: what the persona has said lately.
            models.Index(
                fields=["persona", "-created_at"],
                name="generated_item_said",
                condition=models.Q(revision__gt=0, deleted_at=None),
            ),
            # Read by the first page and the digest: what waits for review.
            models.Index(
                fields=["workspace", "-id"],
                name="generated_item_waiting",
                condition=models.Q(status="ready", approved_at=None, deleted_at=None, test=False),
            ),
            # The review queue, filtered by failed checks or warnings.
            models.Index(
                models.F("workspace"),
                ChecksOutcome("checks"),
                models.F("id").desc(),
                name="generated_item_checked",
                condition=models.Q(status="ready", approved_at=None, deleted_at=None, test=False),
            ),
            # The review queue of items on hold.
            models.Index(
                fields=["workspace", "-id"],
                name="generated_item_held",
                condition=~models.Q(held="") & models.Q(deleted_at=None, test=False),
            ),
            # Read by the first page and the digest: what could not be made.
            models.Index(
                fields=["workspace", "-updated_at"],
                name="generated_item_failed",
                condition=models.Q(status="failed", deleted_at=None, test=False),
            ),
            # Read by the first page: published items whose source has changed since.
            models.Index(
                fields=["workspace", "-id"],
                name="generated_item_flagged",
                condition=~models.Q(flagged="") & models.Q(deleted_at=None, test=False),
            ),
        ]

    @property
    def present_checks(self) -> list[dict[str, Any]]:
        """The checks of the newest revision; empty if it wasn't checked."""
        checks: list[dict[str, Any]] = self.checks if self.is_checked else []
        return checks

    @property
    def is_checked(self) -> bool:
        """True if the item's checks are those of its newest revision."""
        return self.checks_revision == self.revision

    @property
    def is_approved(self) -> bool:
        """True if the newest revision or an earlier one has been approved."""
        return self.approved_at is not None

    @property
    def is_approved_as_it_is(self) -> bool:
        """True if the approved revision is the newest one."""
        return self.is_approved and self.approved_revision == self.revision

    def approval(self, by: str, at: datetime) -> dict[str, Any]:
        """Return the column values that approve the newest revision."""
        return {"approved_by": by, "approved_at": at, "approved_revision": self.revision}

    def approval_state(self) -> dict[str, Any]:
        """Return the approval as JSON, from which `approval_values` restores it."""
        approved_at = self.approved_at.isoformat() if self.approved_at else None
        return {name: getattr(self, name) for name in NO_APPROVAL} | {"approved_at": approved_at}

    def lacks_approval(self, workspace: Workspace) -> bool:
        """Return whether the workspace asks for an approval that the newest revision doesn't have."""
        return workspace.requires_approval and not self.is_approved_as_it_is


class Revision(WorkspaceRow):
    """An item's content as it was approved or sent. A row is never changed."""

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
    """Return 128 random bits, as text for an address that can't be guessed."""
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
    """The duration of audio or video, in seconds."""
    alt_text = models.TextField(blank=True)
    revoked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "asset"
        indexes: ClassVar = [
            models.Index(fields=["item", "position"], name="asset_of_item")
        ]  # the item's JSON
