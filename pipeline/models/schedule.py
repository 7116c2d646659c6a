"""When things are published: queues of slots, series, recurring items, plans of a week, and a workspace's hold."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models.publication import OverlapChoice


class SlotGapChoice(models.TextChoices):
    """A slot's time that the clocks skip."""

    SHIFT = "shift", _("Move forward: 02:30 becomes 03:30")
    SKIP = "skip", _("Skip that day")


class PublishQueue(WorkspaceRow):
    """Slots of a week at which outlets publish."""

    name = models.CharField(max_length=120)
    timezone = models.CharField(max_length=64)
    slots = models.JSONField(default=list)
    """`[{"weekday": 0–6 from Monday, "time": "HH:MM"}]` on the clocks of `timezone`, in order."""
    blackouts = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """`[{"from", "until", "reason"}]`, times on the clocks of `timezone`: stretches without slots, in order."""
    on_gap = models.CharField(max_length=6, choices=SlotGapChoice, default=SlotGapChoice.SHIFT)
    on_overlap = models.CharField(max_length=6, choices=OverlapChoice, default=OverlapChoice.FIRST)
    is_default = models.BooleanField(default=False)
    """Of the workspace's outlets that name no other."""
    is_paused = models.BooleanField(default=False)
    """Gives no slots, and what was promised by it waits."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "publish_queue"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace"], condition=models.Q(is_default=True), name="publish_queue_one_default"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["workspace", "-id"], name="publish_queue_list")]


class PublishHold(WorkspaceRow):
    """A row stands while a workspace's people hold all of its publishing."""

    reason = models.CharField(max_length=300)
    set_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "publish_hold"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace"], name="publish_hold_one")]


class SeriesIssueDecision(models.TextChoices):
    MADE = "made", _("Created")
    TOO_FEW = "too_few", _("Not enough stories")
    NO_CREDITS = "no_credits", _("No credits")


class Series(WorkspaceRow, DueModel):
    """`due_at` is its next time; a paused one has none."""

    test = models.BooleanField(default=False)
    name = models.CharField(max_length=120)
    timezone = models.CharField(max_length=64)
    slots = models.JSONField(default=list)
    """`[{"weekday": 0–6 from Monday, "time": "HH:MM"}]` on the clocks of `timezone`, in order."""
    on_gap = models.CharField(max_length=6, choices=SlotGapChoice, default=SlotGapChoice.SHIFT)
    on_overlap = models.CharField(max_length=6, choices=OverlapChoice, default=OverlapChoice.FIRST)
    window_days = models.PositiveSmallIntegerField(default=7)
    """How old a raw item may be that it tells."""
    items_least = models.PositiveSmallIntegerField(default=3)
    items_most = models.PositiveSmallIntegerField(default=7)
    sources = models.JSONField(default=list)
    """Public ids of the sources whose raw items it tells; empty: of all."""
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    outlets = models.JSONField(default=list)
    """Public ids of the outlets where its digests go; empty: the workspace's."""
    is_paused = models.BooleanField(default=False)
    deleted_at = models.DateTimeField(null=True)
    """It can be taken back for a week; then it goes with its log."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "series"
        indexes: ClassVar = [
            *claim_indexes("series"),
            models.Index(fields=["workspace", "test", "-id"], name="series_list"),  # GET /series
        ]


class SeriesIssue(WorkspaceRow):
    """One time of a series: the digest that was made, or why there is none."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="issues")
    due_at = models.DateTimeField()
    """The moment that it was promised for; of one that somebody asked for, when that was."""
    decision = models.CharField(max_length=12, choices=SeriesIssueDecision)
    message = models.CharField(max_length=300, blank=True)
    found = models.PositiveIntegerField()
    """How many raw items could be told."""
    generation = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by = models.CharField(max_length=200, blank=True)
    """Who asked for it; empty where its time came."""
    created_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "series_issue"
        constraints: ClassVar = [
            # Two tasks, or one that was killed and the next, make one digest of one time.
            models.UniqueConstraint(fields=["series", "due_at"], name="series_issue_once")
        ]
        indexes: ClassVar = [models.Index(fields=["series", "-id"], name="series_issue_list")]  # its log


class RecurrenceStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    STOPPED = "stopped", _("Stopped")


class RecurrenceDecision(models.TextChoices):
    MADE = "made", _("Created")
    STILL_WAITING = "still_waiting", _("Previous still in review")
    SOURCE_PAUSED = "source_paused", _("Source paused")
    NO_CREDITS = "no_credits", _("No credits")


class Recurrence(WorkspaceRow, DueModel):
    """`due_at` is its next time; `wake_at` may be earlier, to look whether its source is still there."""

    test = models.BooleanField(default=False)
    item = models.OneToOneField("pipeline.GeneratedItem", on_delete=models.CASCADE, related_name="recurrence")
    every_days = models.PositiveSmallIntegerField()
    time = models.CharField(max_length=5)
    """`HH:MM` on the workspace's clocks."""
    anchor = models.DateField()
    """The day there from which the days are counted: when the item was, or will be, published, or when it was begun."""
    status = models.CharField(max_length=10, choices=RecurrenceStatus, default=RecurrenceStatus.ACTIVE)
    reason = models.JSONField(null=True)
    """`{"code", "message", "by", "at"}` of one that has stopped; `by` is empty where it stopped itself."""
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "recurrence"
        indexes: ClassVar = [
            *claim_indexes("recurrence"),
            models.Index(fields=["workspace", "test", "-id"], name="recurrence_list"),  # GET /recurrences
        ]


class RecurrenceTurn(WorkspaceRow):
    """One time of a recurrence: the item that was made, or why there is none."""

    recurrence = models.ForeignKey(Recurrence, on_delete=models.CASCADE, related_name="turns")
    due_at = models.DateTimeField()
    decision = models.CharField(max_length=15, choices=RecurrenceDecision)
    message = models.CharField(max_length=300, blank=True)
    item = models.ForeignKey(
        "pipeline.GeneratedItem", null=True, on_delete=models.SET_NULL, related_name="turns"
    )
    created_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "recurrence_turn"
        constraints: ClassVar = [
            # Two tasks, or one that was killed and the next, make one item of one time.
            models.UniqueConstraint(fields=["recurrence", "due_at"], name="recurrence_turn_once")
        ]
        indexes: ClassVar = [
            models.Index(fields=["recurrence", "-id"], name="recurrence_turn_list")
        ]  # its log


class WeekPlan(WorkspaceRow):
    """What one plan scheduled, so that one undo can take all of it back."""

    test = models.BooleanField(default=False)
    entries = models.JSONField(default=list)
    """`[{"item", "outlet", "publication", "at", "revision", "set_aside"}]`: public ids, the moment that was promised,
    the revision that was, and the siblings that were set aside for it.
    """
    made_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=now)
    """The moment that stands in all that it wrote: approvals, and siblings that were set aside."""
    undone_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "week_plan"
        # The erasure of a workspace, and the forgetting of old ones.
        indexes: ClassVar = [models.Index(fields=["workspace", "-id"], name="week_plan_list")]
