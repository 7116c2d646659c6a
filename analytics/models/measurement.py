"""Stores how publications ended, and their platforms' numbers over time."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models import bucket_choices


class MeasuringStatus(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    DONE = "done", _("Done")


class Measuring(WorkspaceRow, DueModel):
    """Schedules a publication's next measurement."""

    test = models.BooleanField(default=False)
    publication = models.OneToOneField(
        "pipeline.Publication", on_delete=models.CASCADE, related_name="measuring"
    )
    status = models.CharField(max_length=10, choices=MeasuringStatus, default=MeasuringStatus.WAITING)
    measured = models.PositiveSmallIntegerField(default=0)
    """The number of measurements so far."""
    last_error = models.CharField(max_length=300, blank=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "measuring"
        indexes: ClassVar = claim_indexes("measuring")


class Measurement(WorkspaceRow):
    """Cumulative values and their increases; a value that the platform didn't give is `None`, never 0.

    An increase is the difference from the newest known value before.
    """

    test = models.BooleanField(default=False)
    publication = models.ForeignKey(
        "pipeline.Publication", on_delete=models.CASCADE, related_name="measurements"
    )
    number = models.PositiveSmallIntegerField()
    at = models.DateTimeField(default=utc_now)
    published_at = models.DateTimeField()
    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+")
    content_type = models.CharField(max_length=10, choices=bucket_choices)
    source = models.ForeignKey("pipeline.Source", null=True, on_delete=models.SET_NULL, related_name="+")
    engine_output = models.CharField(max_length=60)
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    impressions = models.BigIntegerField(null=True)
    views = models.BigIntegerField(null=True)
    likes = models.BigIntegerField(null=True)
    comments = models.BigIntegerField(null=True)
    shares = models.BigIntegerField(null=True)
    clicks = models.BigIntegerField(null=True)
    impressions_delta = models.BigIntegerField(null=True)
    views_delta = models.BigIntegerField(null=True)
    likes_delta = models.BigIntegerField(null=True)
    comments_delta = models.BigIntegerField(null=True)
    shares_delta = models.BigIntegerField(null=True)
    clicks_delta = models.BigIntegerField(null=True)
    availability = models.JSONField(default=dict)
    """The reason for each metric that is `None`: `unsupported`, `delayed` or `unavailable`."""

    class Meta(WorkspaceRow.Meta):
        db_table = "measurement"
        constraints: ClassVar = [
            # A killed worker that measures again writes the same number, which the constraint refuses.
            models.UniqueConstraint(fields=["publication", "number"], name="measurement_once"),
        ]
        indexes: ClassVar = [
            # Read with `attribution=received`.
            models.Index(fields=["workspace", "test", "at"], name="measurement_received"),
            # Read with `attribution=published`.
            models.Index(fields=["workspace", "test", "published_at"], name="measurement_published"),
        ]


class Outcome(WorkspaceRow):
    """The facts of `published.success` or of a final `published.failed`, with every dimension."""

    test = models.BooleanField(default=False)
    event_id = models.UUIDField(unique=True)
    """Unique, so that counting the same event again finds its row."""
    publication_id = models.UUIDField()
    is_published = models.BooleanField()
    """`False` if the publication failed finally."""
    at = models.DateTimeField()
    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+")
    content_type = models.CharField(max_length=10, choices=bucket_choices)
    source = models.ForeignKey("pipeline.Source", null=True, on_delete=models.SET_NULL, related_name="+")
    engine_output = models.CharField(max_length=60)
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta(WorkspaceRow.Meta):
        db_table = "outcome"
        indexes: ClassVar = [
            # GET /analytics.
            models.Index(fields=["workspace", "test", "at"], name="outcome_by_time"),
        ]
