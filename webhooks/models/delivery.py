"""Stores deliveries of events to endpoints, and every attempt at one."""

from __future__ import annotations

from math import inf
from typing import Any, ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class DeliveryStatus(models.TextChoices):
    DELIVERED = "delivered", _("Delivered")
    PENDING = "pending", _("Sending or retrying")
    FAILED = "failed", _("Failed")
    HELD = "held", _("Held")


class DeliveryQuerySet(models.QuerySet[Any]):
    """Filters of deliveries that pages, metrics and doctor share."""

    def pending(self) -> Self:
        """Return the deliveries that are being sent or retried."""
        return self.filter(status=DeliveryStatus.PENDING)

    def held(self) -> Self:
        """Return the deliveries that wait until their endpoint is switched on."""
        return self.filter(status=DeliveryStatus.HELD)

    def open(self) -> Self:
        """Return the deliveries that haven't ended."""
        return self.filter(status__in=[DeliveryStatus.HELD, DeliveryStatus.PENDING])

    def failed(self) -> Self:
        """Return the deliveries that failed finally; only a person can send them again."""
        return self.filter(status=DeliveryStatus.FAILED)


class OwnDeliveries(WorkspaceQuerySet[Any], DeliveryQuerySet):  # type: ignore[override]
    """Deliveries of one workspace, with the same filters."""


class Delivery(WorkspaceRow, DueModel):
    """One event on its way to one endpoint; a task sends it when it is due.

    Three fields count its attempts: `attempts` are the tries that tasks began since the last result was written,
    `attempt_count` the requests whose result was written, and `attempts_made` holds a row of each such request
    until the retention deletes it. Sending again by hand sets `due_at`, which begins a new schedule of retries.
    """

    endpoint = models.ForeignKey("webhooks.Endpoint", on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey("pipeline.Event", on_delete=models.CASCADE, related_name="deliveries")
    status = models.CharField(max_length=10, choices=DeliveryStatus, default=DeliveryStatus.PENDING)
    attempt_count = models.PositiveIntegerField(default=0)
    """The attempts over all schedules, which is the number of the last `DeliveryAttempt`."""
    last_status = models.PositiveSmallIntegerField(null=True)
    """The HTTP status of the last attempt, or `None` before the first or without an answer."""
    last_error = models.CharField(max_length=300, blank=True)
    """Why the last attempt failed, or why none is made; empty after a success."""
    request_id = models.CharField(max_length=64, blank=True)
    """The id of the request to this service that led to the event."""
    created_at = models.DateTimeField(default=utc_now)
    delivered_at = models.DateTimeField(null=True)

    read_at: float = -inf
    """When this instance's endpoint and event were read, by `time.monotonic()`; it isn't a column."""

    everywhere: ClassVar = DeliveryQuerySet.as_manager()
    objects: ClassVar = OwnDeliveries.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "delivery"
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        constraints: ClassVar = [models.UniqueConstraint(fields=["endpoint", "event"], name="delivery_once")]
        indexes: ClassVar = [
            *claim_indexes("delivery", group="endpoint"),
            # Read by the endpoint's log in the settings pages.
            models.Index(fields=["endpoint", "-id"], name="delivery_log"),
            # Read by the same log, filtered: the few that failed among the many that didn't.
            models.Index(fields=["endpoint", "status", "-id"], name="delivery_log_by_status"),
        ]


class DeliveryAttempt(WorkspaceRow):
    """One request to an endpoint and its result, kept for the log; written once, when the request has ended."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts_made")
    number = models.PositiveIntegerField()
    """Counts the delivery's attempts from 1, over all schedules."""
    started_at = models.DateTimeField(default=utc_now)
    duration_ms = models.PositiveIntegerField(null=True)
    # A database default, because a process of the previous release doesn't know the column.
    url = models.CharField(max_length=2048, blank=True, db_default="")
    """The address it was sent to; the endpoint's may have been changed since."""
    request_headers = models.JSONField(default=dict)
    status_code = models.PositiveSmallIntegerField(null=True)
    """The HTTP status, or `None` without an answer."""
    response_headers = models.JSONField(default=dict)
    response_body = models.TextField(blank=True)
    """At most the first 4 KiB."""
    error = models.CharField(max_length=300, blank=True)
    """Why it failed; empty for a success."""
    next_attempt_at = models.DateTimeField(null=True)
    """When the next attempt was planned, or `None` if none was."""

    class Meta(WorkspaceRow.Meta):
        db_table = "delivery_attempt"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["delivery", "number"], name="delivery_attempt_once")
        ]
        indexes: ClassVar = [
            # Read by the retention job, which deletes by age.
            models.Index(fields=["started_at"], name="delivery_attempt_age"),
        ]
