"""Stores deliveries of events to endpoints, every attempt at one, and requests to send them again."""

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
        """Deliveries being sent or retried."""
        return self.filter(status=DeliveryStatus.PENDING)

    def held(self) -> Self:
        """Deliveries that wait until their endpoint is switched on."""
        return self.filter(status=DeliveryStatus.HELD)

    def open(self) -> Self:
        """Deliveries that haven't ended."""
        return self.filter(status__in=[DeliveryStatus.HELD, DeliveryStatus.PENDING])

    def dead(self) -> Self:
        """Deliveries that failed finally; only a person can send them again."""
        return self.filter(status=DeliveryStatus.FAILED)


class OwnDeliveries(WorkspaceQuerySet[Any], DeliveryQuerySet):  # type: ignore[override]
    """Deliveries of one workspace, with the same filters."""


class Delivery(WorkspaceRow, DueModel):
    endpoint = models.ForeignKey("webhooks.Endpoint", on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey("pipeline.Event", on_delete=models.CASCADE, related_name="deliveries")
    status = models.CharField(max_length=10, choices=DeliveryStatus, default=DeliveryStatus.PENDING)
    attempt_count = models.PositiveIntegerField(default=0)
    last_status = models.PositiveSmallIntegerField(null=True)
    last_error = models.CharField(max_length=300, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
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
            models.Index(
                fields=["endpoint", "-id"], name="delivery_log"
            ),  # the endpoint's log in the settings pages
            models.Index(
                fields=["endpoint", "status", "-id"], name="delivery_log_by_status"
            ),  # the same log, filtered: the few that failed among the many that didn't
        ]


class DeliveryAttempt(WorkspaceRow):
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts_made")
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=utc_now)
    duration_ms = models.PositiveIntegerField(null=True)
    # A database default, because a process of the previous release doesn't know the column.
    url = models.CharField(max_length=2048, blank=True, db_default="")
    """The address it was sent to; the endpoint's may have been changed since."""
    request_headers = models.JSONField(default=dict)
    status_code = models.PositiveSmallIntegerField(null=True)
    response_headers = models.JSONField(default=dict)
    response_body = models.TextField(blank=True)
    """At most the first 4 KiB."""
    error = models.CharField(max_length=300, blank=True)
    next_attempt_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "delivery_attempt"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["delivery", "number"], name="delivery_attempt_once")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["started_at"], name="delivery_attempt_age"
            ),  # the retention job deletes by age
        ]


class RecoveryStatus(models.TextChoices):
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    STOPPED = "stopped", _("Stopped")


class Recovery(WorkspaceRow, DueModel):
    """A request to send again what an endpoint missed; one due row, worked in portions."""

    endpoint = models.ForeignKey("webhooks.Endpoint", on_delete=models.CASCADE, related_name="recoveries")
    since = models.DateTimeField()
    is_everything = models.BooleanField(default=False)
    """True: also what was delivered."""
    status = models.CharField(max_length=10, choices=RecoveryStatus, default=RecoveryStatus.RUNNING)
    cursor = models.UUIDField()
    """Deliveries with ids up to this one were handled; ids rise with time."""
    until = models.UUIDField()
    """Deliveries with greater ids came after the request and aren't part of it."""
    total = models.PositiveIntegerField(null=True)
    """How many deliveries there were at the start; None until they are counted."""
    sent = models.PositiveIntegerField(default=0)
    """How many have been queued."""
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
            models.Index(fields=["endpoint", "-id"], name="recovery_newest"),  # the endpoint's page
        ]
