"""Engine runs over one or several raw items or over a topic, and the briefs that runs share."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class GenerationStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


class GenerationStage(models.TextChoices):
    """How far a run has come."""

    BRIEF = "brief", _("Brief")
    DRAFT = "draft", _("Draft")
    RENDER = "render", _("Render")
    WRITE = "write", _("Write")


class GenerationQueue(models.TextChoices):
    """The queue whose workers a run needs next."""

    GENERATE = "generate", _("AI")
    COMPUTE = "compute", _("Compute")
    RENDER = "render", _("Video")
    REWRITE = "rewrite", _("Rewrite")


class GenerationQuerySet(models.QuerySet[Any]):
    """The filters of runs by status."""

    def open(self) -> Self:
        return self.filter(status__in=[GenerationStatus.QUEUED, GenerationStatus.RUNNING])

    def done(self) -> Self:
        return self.filter(status=GenerationStatus.DONE)

    def ended(self) -> Self:
        return self.filter(status__in=[GenerationStatus.DONE, GenerationStatus.FAILED])


class OwnGenerations(WorkspaceQuerySet[Any], GenerationQuerySet):  # type: ignore[override]
    """The same filters, bound to one workspace."""


class Generation(WorkspaceRow, DueModel):
    """A run that makes one generated item per variant; `answers` keep what was paid for."""

    test = models.BooleanField(default=False)
    engine = models.CharField(max_length=40)
    """The engine's kind, e.g. `short_post`."""
    raw_item = models.ForeignKey(
        "pipeline.RawItem", null=True, on_delete=models.CASCADE, related_name="generations"
    )
    raw_version = models.PositiveIntegerField(null=True)
    topic = models.ForeignKey("pipeline.Topic", null=True, on_delete=models.SET_NULL, related_name="+")
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    persona_version = models.PositiveIntegerField(null=True)
    # Meta declares the index.
    rewrites = models.ForeignKey(
        "pipeline.GeneratedItem", null=True, on_delete=models.CASCADE, related_name="rewrites", db_index=False
    )
    """The item that the run rewrites; `None` for a run that makes new items."""
    variants = models.PositiveSmallIntegerField(default=1)
    status = models.CharField(max_length=10, choices=GenerationStatus, default=GenerationStatus.QUEUED)
    stage = models.CharField(max_length=10, choices=GenerationStage, default=GenerationStage.BRIEF)
    queue = models.CharField(
        max_length=10,
        choices=GenerationQueue,
        default=GenerationQueue.GENERATE,
        # The previous release doesn't write it.
        db_default=GenerationQueue.GENERATE,
    )
    answers = models.JSONField(default=dict)
    """Stored answers by stage, so that a run whose worker was killed never pays for one twice."""
    batch_until = models.DateTimeField(null=True)
    """The run may wait until then for an answer at half the price; `None` if a person waits for the run."""
    progress = models.PositiveSmallIntegerField(default=0, db_default=0)
    """How much of its videos is rendered, in percent."""
    credits_reserved = models.PositiveIntegerField(default=0)
    error = models.JSONField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    finished_at = models.DateTimeField(null=True)

    everywhere: ClassVar = GenerationQuerySet.as_manager()
    begins_with: ClassVar = ("workspace",)
    objects: ClassVar = OwnGenerations.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "generation"
        indexes: ClassVar = [
            *claim_indexes("generation", of="queue"),
            # Counts the videos rendered lately by workspace: those that had the fewest come first.
            models.Index(
                fields=["workspace_id", "finished_at"],
                name="generation_films",
                condition=models.Q(queue=GenerationQueue.RENDER),
            ),
            # The newest rewrite of an item, which its page shows.
            models.Index(
                fields=["rewrites", "-id"],
                name="generation_rewrites",
                condition=models.Q(rewrites__isnull=False),
            ),
        ]
        constraints: ClassVar = [
            # If two people ask for a rewrite at the same moment, one of them gets it.
            models.UniqueConstraint(
                fields=["rewrites"],
                condition=models.Q(
                    rewrites__isnull=False, status__in=[GenerationStatus.QUEUED, GenerationStatus.RUNNING]
                ),
                name="generation_rewrite_once",
            )
        ]


class GenerationInput(WorkspaceRow):
    """One of the raw items of a digest's run, whose `raw_item` is empty."""

    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="inputs")
    # Meta declares the index.
    raw_item = models.ForeignKey(
        "pipeline.RawItem", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    raw_version = models.PositiveIntegerField()
    position = models.PositiveSmallIntegerField()

    class Meta(WorkspaceRow.Meta):
        db_table = "generation_input"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["generation", "raw_item"], name="generation_input_once")
        ]
        # Finds what was made from a raw item, and whether a digest contains it.
        indexes: ClassVar = [models.Index(fields=["raw_item"], name="generation_input_of")]


class SharedBrief(WorkspaceRow):
    """A model's brief of one content, shared by runs.

    The run that asks writes the row before the call; the row is deleted with the raw item's content.
    """

    raw_item = models.ForeignKey("pipeline.RawItem", on_delete=models.CASCADE, related_name="briefs")
    key = models.CharField(max_length=64)
    """Hash of what is read and how: the text, the reader, the model, the prompt's version."""
    content = models.JSONField(null=True)
    """The brief; `None` until the model has answered."""
    usage = models.JSONField(null=True)
    refusal = models.JSONField(null=True)
    """`{"code", "message"}` if the model can't work with this content; valid for the runs that existed then."""
    refused_at = models.DateTimeField(null=True)
    asked_by = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    asked_until = models.DateTimeField(null=True)
    """Until then, by the database's clock, no other run asks: a lease, or a wait that the service asked for."""
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "shared_brief"
        constraints: ClassVar = [
            # Two runs that start reading at the same moment use the same row.
            models.UniqueConstraint(fields=["raw_item", "key"], name="shared_brief_once"),
        ]
