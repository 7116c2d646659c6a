"""One event for one endpoint, and every attempt to hand it over."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class DeliveryStatus(models.TextChoices):
    DELIVERED = "delivered", _("Delivered")
    PENDING = "pending", _("On its way, or tried again")
    FAILED = "failed", _("Failed")
    HELD = "held", _("Held")


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
    """Of this instance, by the monotonic clock: when its endpoint and its event were read. No column."""

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
    # The database fills it in for a process of the release before, which doesn't know the column.
    url = models.CharField(max_length=2048, blank=True, db_default="")
    """Where it went; the endpoint's address may have been changed since."""
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
