"""Work that is queued or running, the workers that run it, and totals of what they did."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class LeaseState(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    RESTING = "resting", _("Idle")


class Lease(models.Model):
    """A message on its way to a worker, or the task that it started; the row is deleted when the task ends.

    Work that returns at a fixed pace keeps its row between two runs as `resting`.
    """

    subject = models.UUIDField(primary_key=True)
    """The id of the row that is processed, or an id that stands for work without a row."""
    job = models.CharField(max_length=60)
    queue = models.CharField(max_length=20)
    token = models.BigIntegerField(default=0)
    state = models.CharField(max_length=8, choices=LeaseState, default=LeaseState.QUEUED)
    owner = models.UUIDField(null=True)
    """The id of the workspace."""
    holder = models.UUIDField(null=True)
    """The id of the webhook endpoint, for a lane of deliveries."""
    worker = models.UUIDField(null=True)
    queued_at = models.DateTimeField()
    began_at = models.DateTimeField(null=True)
    until = models.DateTimeField()
    """When a queued message counts as lost, and when resting work is due again."""

    everywhere: ClassVar[models.Manager[Lease]] = models.Manager()

    class Meta:
        db_table = "lease"
        base_manager_name = "everywhere"


class Worker(models.Model):
    """A process that takes tasks; it writes `seen_at` every few seconds."""

    id = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=255)
    slots = models.JSONField(default=dict)
    """The number of tasks that the worker runs at once, by the queue's name."""
    connections = models.PositiveIntegerField(default=0, db_default=0)
    """The most connections to PostgreSQL that all processes of the worker open together."""
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    everywhere: ClassVar[models.Manager[Worker]] = models.Manager()

    class Meta:
        db_table = "worker"
        base_manager_name = "everywhere"


class Tally(models.Model):
    """A total over all processes that only rises."""

    name = models.CharField(max_length=40)
    kind = models.CharField(max_length=60)
    value = models.FloatField(default=0)

    everywhere: ClassVar[models.Manager[Tally]] = models.Manager()

    class Meta:
        db_table = "tally"
        base_manager_name = "everywhere"
        constraints: ClassVar = [models.UniqueConstraint(fields=["name", "kind"], name="tally_once")]
