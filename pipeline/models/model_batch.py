"""Calls to a model that nobody waits for: gathered, sent as one batch at half the price, answered within hours."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class ModelBatchStatus(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    SENDING = "sending", _("Sending")
    SENT = "sent", _("Sent")
    ENDED = "ended", _("Ended")


class BatchedCallOutcome(models.TextChoices):
    ANSWERED = "answered", _("Answered")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")
    EXPIRED = "expired", _("Expired")
    UNSENT = "unsent", _("Not sent")


class ModelBatch(WorkspaceRow, DueModel):
    """`waiting` gathers calls, `sending` was committed before the one call that pays, `sent` is asked after."""

    is_own_key = models.BooleanField()
    """Asked with the workspace's key, so that it isn't the operator's money."""
    status = models.CharField(max_length=10, choices=ModelBatchStatus, default=ModelBatchStatus.WAITING)
    vendor_id = models.CharField(max_length=100, blank=True)
    """The service's own id; empty until it is known."""
    is_found = models.BooleanField(default=False)
    """The id was found in the service's list, after the answer to the sending was lost: its results prove it."""
    not_ours = models.JSONField(default=list)
    """Ids that were found so and whose results were of other calls."""
    size = models.PositiveSmallIntegerField(default=0)
    """Its calls, as they were sent last."""
    sizes = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """Of earlier sendings that the service's list didn't show: one that it shows later may be this batch too."""
    sending_since = models.DateTimeField(null=True)
    is_cancelled = models.BooleanField(default=False)
    error = models.JSONField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    ended_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "model_batch"
        constraints: ClassVar = [
            # Whoever has a call for a batch finds the one that gathers.
            models.UniqueConstraint(
                fields=["workspace", "is_own_key"],
                condition=models.Q(status="waiting"),
                name="model_batch_one_waiting",
            ),
        ]
        indexes: ClassVar = [
            *claim_indexes("model_batch"),
            # Read before every call: what is on its way counts against the caps.
            models.Index(
                fields=["workspace", "is_own_key"],
                condition=models.Q(status__in=["sending", "sent"]),
                name="model_batch_on_its_way",
            ),
        ]


class BatchedCall(WorkspaceRow):
    """One call of a batch, by what is asked; its id is the service's `custom_id`."""

    batch = models.ForeignKey(ModelBatch, on_delete=models.CASCADE, related_name="calls")
    generation = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="batched_calls"
    )
    key = models.CharField(max_length=64)
    """Hash of all that is asked: the run that comes back for the answer finds it by asking the same."""
    asked = models.JSONField()
    """The call in the shape of `writers.asking.Ask`; emptied once it was sent or isn't needed."""
    most_micro_usd = models.PositiveBigIntegerField()
    """What it can cost at most: caps count it while its cost isn't known."""
    is_late = models.BooleanField(default=False)
    """The run has waited long enough and asks by itself; what comes all the same is only paid for."""
    outcome = models.CharField(max_length=20, choices=BatchedCallOutcome, blank=True)
    """Empty until it is known."""
    reply = models.JSONField(null=True)
    """`{"text", "stop_reason", "refusal_category", "record"}`, until the run is over."""
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "batched_call"
        constraints: ClassVar = [
            # A run that a killed hand had asked for asks the same again, and is given the same row.
            models.UniqueConstraint(fields=["generation", "key"], name="batched_call_once"),
        ]
