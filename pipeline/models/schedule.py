"""When items are published: queues of slots, series, recurrences, week plans, and a workspace's hold."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models.publication import OverlapChoice


class SlotGapChoice(models.TextChoices):
    """The rule for a slot whose local time the clocks skip."""

    SHIFT = "shift", _("Move forward: 02:30 becomes 03:30")
    SKIP = "skip", _("Skip that day")


class PublishQueue(WorkspaceRow):
    """The weekly slots at which outlets publish."""

    name = models.CharField(max_length=120)
    timezone = models.CharField(max_length=64)
    slots = models.JSONField(default=list)
    """`[{"weekday": 0–6 from Monday, "time": "HH:MM"}]` on the clocks of `timezone`, in order."""
    blackouts = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """`[{"from", "until", "reason"}]`, local times in `timezone`: periods without slots, in order."""
    on_gap = models.CharField(max_length=6, choices=SlotGapChoice, default=SlotGapChoice.SHIFT)
    on_overlap = models.CharField(max_length=6, choices=OverlapChoice, default=OverlapChoice.FIRST)
    is_default = models.BooleanField(default=False)
    """True if the queue serves the workspace's outlets that name no queue."""
    is_paused = models.BooleanField(default=False)
    """True if the queue gives no slots, and the publications in its slots wait."""
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
    """Holds all publishing of a workspace, at its people's request, while the row exists."""

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
    """A digest made at regular times; `due_at` is the next time, and `None` while the series is paused."""

    test = models.BooleanField(default=False)
    name = models.CharField(max_length=120)
    timezone = models.CharField(max_length=64)
    slots = models.JSONField(default=list)
    """`[{"weekday": 0–6 from Monday, "time": "HH:MM"}]` on the clocks of `timezone`, in order."""
    on_gap = models.CharField(max_length=6, choices=SlotGapChoice, default=SlotGapChoice.SHIFT)
    on_overlap = models.CharField(max_length=6, choices=OverlapChoice, default=OverlapChoice.FIRST)
    window_days = models.PositiveSmallIntegerField(default=7)
    """The greatest age in days of a raw item in a digest."""
    items_least = models.PositiveSmallIntegerField(default=3)
    items_most = models.PositiveSmallIntegerField(default=7)
    sources = models.JSONField(default=list)
    """Public ids of the sources whose raw items the series uses; empty for all sources."""
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    outlets = models.JSONField(default=list)
    """Public ids of the outlets that publish the digests; empty for the workspace's default outlets."""
    is_paused = models.BooleanField(default=False)
    deleted_at = models.DateTimeField(null=True)
    """The deletion can be undone for a week; then the series is erased with its log."""
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
    """The scheduled moment, or the moment at which a person requested the issue."""
    decision = models.CharField(max_length=12, choices=SeriesIssueDecision)
    message = models.CharField(max_length=300, blank=True)
    found = models.PositiveIntegerField()
    """The number of raw items that could be used."""
    generation = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by = models.CharField(max_length=200, blank=True)
    """The person who requested the issue; empty for a scheduled one."""
    created_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "series_issue"
        constraints: ClassVar = [
            # Two tasks, or one that was killed and the next, make one digest per time.
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
    """An item that is published again regularly.

    `due_at` is its next time; `wake_at` may be earlier, to check whether its source still exists.
    """

    test = models.BooleanField(default=False)
    item = models.OneToOneField("pipeline.GeneratedItem", on_delete=models.CASCADE, related_name="recurrence")
    every_days = models.PositiveSmallIntegerField()
    time = models.CharField(max_length=5)
    """`HH:MM` in the workspace's time zone."""
    anchor = models.DateField()
    """The local day from which days are counted: when the item was or will be published, or the recurrence began."""
    status = models.CharField(max_length=10, choices=RecurrenceStatus, default=RecurrenceStatus.ACTIVE)
    reason = models.JSONField(null=True)
    """`{"code", "message", "by", "at"}` of a stopped one; `by` is empty if it stopped automatically."""
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
            # Two tasks, or one that was killed and the next, make one item per time.
            models.UniqueConstraint(fields=["recurrence", "due_at"], name="recurrence_turn_once")
        ]
        indexes: ClassVar = [
            models.Index(fields=["recurrence", "-id"], name="recurrence_turn_list")
        ]  # its log


class WeekPlan(WorkspaceRow):
    """The publications that one plan scheduled, so that one undo can take all of them back."""

    test = models.BooleanField(default=False)
    entries = models.JSONField(default=list)
    """`[{"item", "outlet", "publication", "at", "revision", "set_aside"}]`, with public ids.

    `at` is the scheduled moment, `revision` that of the item then, `set_aside` the siblings rejected for it.
    """
    made_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=now)
    """The timestamp of all that the plan wrote: approvals, and rejected siblings."""
    undone_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "week_plan"
        # Read by the erasure of a workspace, and by the retention of old plans.
        indexes: ClassVar = [models.Index(fields=["workspace", "-id"], name="week_plan_list")]
