"""Stores facts summed by quarter of an hour and by UTC day, and schedules the monthly summaries."""

from __future__ import annotations

from typing import ClassVar, Final

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models import HitKind, bucket_choices

QUARTER: Final = 900
DAY: Final = 86_400
"""The units of rollups (`QUARTER`, `DAY`), in seconds."""


class Attribution(models.TextChoices):
    """The date by which a platform's numbers count."""

    RECEIVED = "received", _("Date counted")
    PUBLISHED = "published", _("Date published")


class RollupDay(WorkspaceRow, DueModel):
    """A UTC day of a workspace, which each writer of a fact of that day marks here in the same transaction."""

    test = models.BooleanField(default=False)
    day = models.DateField()
    is_current = models.BooleanField(default=False)
    """Whether the day's rollups hold every fact of it; otherwise answers read the facts."""
    last_error = models.CharField(max_length=300, blank=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "rollup_day"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "test", "day"], name="rollup_day_once")
        ]
        indexes: ClassVar = claim_indexes("rollup_day")


class Rollup(WorkspaceRow):
    # The database makes the ids, because many rows are replaced by one statement.
    id = models.BigAutoField(primary_key=True)  # type: ignore[assignment]
    test = models.BooleanField(default=False)
    day = models.DateField()
    unit = models.PositiveIntegerField()
    start = models.BigIntegerField()
    """The start of the time that the row sums, in seconds since 1970; its length is `unit`."""
    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+")
    content_type = models.CharField(max_length=10, choices=bucket_choices)
    source = models.ForeignKey("pipeline.Source", null=True, on_delete=models.SET_NULL, related_name="+")
    engine_output = models.CharField(max_length=60)
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta(WorkspaceRow.Meta):
        abstract = True


class OutcomeRollup(Rollup):
    known = models.PositiveSmallIntegerField(null=True)
    """1 if any number of these publications is known, 0 if none was given, `None` if they weren't measured."""
    published_count = models.PositiveIntegerField()
    failed_count = models.PositiveIntegerField()

    class Meta(Rollup.Meta):
        db_table = "outcome_rollup"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "test", "unit", "start"], name="outcome_rollup_read"),
            # Replacing a day deletes by it.
            models.Index(fields=["workspace", "test", "day"], name="outcome_rollup_day"),
        ]


class MeasurementRollup(Rollup):
    attribution = models.CharField(max_length=9, choices=Attribution)
    availability = models.JSONField(default=dict)
    impressions = models.BigIntegerField(null=True)
    views = models.BigIntegerField(null=True)
    likes = models.BigIntegerField(null=True)
    comments = models.BigIntegerField(null=True)
    shares = models.BigIntegerField(null=True)
    clicks = models.BigIntegerField(null=True)

    class Meta(Rollup.Meta):
        db_table = "measurement_rollup"
        indexes: ClassVar = [
            models.Index(
                fields=["workspace", "test", "attribution", "unit", "start"], name="measurement_rollup_read"
            ),
            models.Index(fields=["workspace", "test", "day"], name="measurement_rollup_day"),
        ]


class HitRollup(Rollup):
    """Clicks by the dimensions of their items; feed fetches have no item, so these are empty."""

    kind = models.CharField(max_length=5, choices=HitKind)
    count = models.BigIntegerField()

    class Meta(Rollup.Meta):
        db_table = "hit_rollup"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "test", "unit", "start"], name="hit_rollup_read"),
            models.Index(fields=["workspace", "test", "day"], name="hit_rollup_day"),
            models.Index(fields=["day"], name="hit_rollup_forget"),
        ]


class MonthlySummary(WorkspaceRow, DueModel):
    """Schedules a workspace's monthly summaries: `due_at` is the next first of a month in its time zone."""

    class Meta(WorkspaceRow.Meta):
        db_table = "monthly"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace"], name="monthly_one")]
        indexes: ClassVar = claim_indexes("monthly")
