"""Where raw content comes from."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class SourceStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    PAUSED = "paused", _("Paused")
    FAILING = "failing", _("Failing")
    GONE = "gone", _("Gone")


class Source(WorkspaceRow, DueModel):
    """`wake_at` is the next poll, None for a source that is not fetched or is paused, gone or deleted."""

    test = models.BooleanField(default=False)
    name = models.CharField(max_length=120)
    type = models.CharField(max_length=20)
    config = models.JSONField(default=dict)
    is_push = models.BooleanField(default=False)
    """The workspace's own source for `POST /raw` without one."""
    engines = models.JSONField(default=list)
    """Names of engine outputs; empty means the workspace's."""
    variants = models.PositiveSmallIntegerField(default=1)
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    outlets = models.JSONField(default=list)
    """Public ids of outlets, in order; empty means the workspace's."""
    poll_interval_minutes = models.PositiveIntegerField(null=True)
    autopilot = models.BooleanField(default=False)
    first_poll = models.JSONField(null=True)
    max_age_days = models.PositiveIntegerField(null=True)
    max_burst = models.PositiveIntegerField(null=True)
    status = models.CharField(max_length=10, choices=SourceStatus, default=SourceStatus.ACTIVE)
    last_error = models.JSONField(null=True)
    """`{"code", "message", "at"}` in plain words; None while the last poll went well."""
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    fetch_state = models.JSONField(default=dict)
    last_polled_at = models.DateTimeField(null=True)
    """The last poll that went well; None until the first one has ended."""
    last_new_at = models.DateTimeField(null=True)
    interval_seconds = models.PositiveIntegerField(null=True)
    """The wait between two polls as the source's own rhythm makes it; None until its first poll."""
    notes = models.JSONField(null=True)
    """`[{"code", "message"}]` of the last poll that went well: what is to be known of the source."""
    moved = models.JSONField(null=True)
    """`{"to", "since", "polls"}`: where a permanent redirect led, and in how many polls in a row."""
    window = models.JSONField(null=True)
    """What the last poll listed, for kinds that list the newest of everything; see `collect.window`."""
    inbound_token = models.CharField(max_length=43, null=True, unique=True)
    """The unguessable part of a webhook source's own address."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    version = models.PositiveIntegerField(default=1)
    request_id = models.CharField(max_length=64, blank=True)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "source"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "test"], condition=models.Q(is_push=True), name="source_one_push"
            ),
        ]
        indexes: ClassVar = [
            *claim_indexes("source"),
            models.Index(fields=["workspace", "test", "-id"], name="source_list"),  # GET /sources
        ]
