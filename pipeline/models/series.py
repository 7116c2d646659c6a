"""A series of digests: what it is made from and when, and what came of each time."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models.publication import OverlapChoice
from pipeline.models.publish_queue import SlotGapChoice


class SeriesIssueDecision(models.TextChoices):
    MADE = "made", _("Made")
    TOO_FEW = "too_few", _("Too little to tell")
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
            # Two hands, or a hand that was killed and the next one, make one digest of one time.
            models.UniqueConstraint(fields=["series", "due_at"], name="series_issue_once")
        ]
        indexes: ClassVar = [models.Index(fields=["series", "-id"], name="series_issue_list")]  # its log
