"""Stores requests to send again what an endpoint missed."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class RecoveryStatus(models.TextChoices):
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    STOPPED = "stopped", _("Stopped")


class Recovery(WorkspaceRow, DueModel):
    """A request to send again what an endpoint missed; a due row whose deliveries are queued in portions."""

    endpoint = models.ForeignKey("webhooks.Endpoint", on_delete=models.CASCADE, related_name="recoveries")
    since = models.DateTimeField()
    is_everything = models.BooleanField(default=False)
    """`True` if deliveries that arrived are sent again too."""
    status = models.CharField(max_length=10, choices=RecoveryStatus, default=RecoveryStatus.RUNNING)
    cursor = models.UUIDField()
    """Deliveries with ids up to this one were handled; ids rise with time."""
    until = models.UUIDField()
    """Deliveries with greater ids came after the request and aren't part of it."""
    total = models.PositiveIntegerField(null=True)
    """The number of deliveries at the start, or `None` until they are counted."""
    sent = models.PositiveIntegerField(default=0)
    """The number of deliveries that have been queued."""
    asked_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=utc_now)
    ended_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "recovery"
        verbose_name = "recovery"
        verbose_name_plural = "recoveries"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["endpoint"], name="recovery_one_at_a_time", condition=models.Q(status="running")
            )
        ]
        indexes: ClassVar = [
            *claim_indexes("recovery"),
            # Read by the endpoint's page.
            models.Index(fields=["endpoint", "-id"], name="recovery_newest"),
        ]
