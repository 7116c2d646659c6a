"""The cost of each call to a model, and the batches of calls that nobody waits for."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class ModelCallStage(models.TextChoices):
    BRIEF = "brief", _("Brief")
    DRAFT = "draft", _("Draft")
    PERSONA = "persona", _("Persona")


class ModelCallMode(models.TextChoices):
    LIVE = "live", _("Live")
    BATCH = "batch", _("Batch")


class ModelCallOutcome(models.TextChoices):
    ANSWERED = "answered", _("Answered")
    REFUSED = "refused", _("Refused")
    TRUNCATED = "truncated", _("Truncated")
    TOO_LONG = "too_long", _("Too long")
    UNREADABLE = "unreadable", _("Unreadable")
    RATE_LIMITED = "rate_limited", _("Rate limited")
    TIMED_OUT = "timed_out", _("Timed out")
    UNREACHABLE = "unreachable", _("Unreachable")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")
    EXPIRED = "expired", _("Expired")


class ModelCall(WorkspaceRow):
    """A call that succeeded or failed; written when it is over and never changed.

    It quotes neither the prompt nor the answer.
    """

    generation = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="model_calls"
    )
    stage = models.CharField(max_length=10, choices=ModelCallStage)
    is_own_key = models.BooleanField()
    """True if the call used the workspace's key, so that the operator doesn't pay for it."""
    asked_model = models.CharField(max_length=80)
    model = models.CharField(max_length=80, blank=True)
    """The model that answered; empty if no answer came."""
    prompt_version = models.CharField(max_length=40)
    request_id = models.CharField(max_length=80, blank=True)
    mode = models.CharField(max_length=10, choices=ModelCallMode)
    outcome = models.CharField(max_length=20, choices=ModelCallOutcome)
    http_status = models.PositiveSmallIntegerField(null=True)
    stop_reason = models.CharField(max_length=40, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    cache_write_5m_tokens = models.PositiveIntegerField(default=0)
    cache_write_1h_tokens = models.PositiveIntegerField(default=0)
    cache_read_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    thinking_tokens = models.PositiveIntegerField(default=0)
    """Part of `output_tokens`."""
    service_tier = models.CharField(max_length=20, blank=True)
    price_table = models.CharField(max_length=40, blank=True)
    is_price_known = models.BooleanField(default=True)
    cost_micro_usd = models.PositiveBigIntegerField(default=0)
    latency_ms = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "model_call"
        indexes: ClassVar = [
            # Summed before each call: what the workspace has spent this month, and the instance today.
            models.Index(fields=["workspace", "created_at"], name="model_call_of_month"),
            models.Index(fields=["created_at"], name="model_call_of_day"),
        ]


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
    """A batch of calls: `waiting` gathers them, `sending` precedes the paid call, `sent` is polled."""

    is_own_key = models.BooleanField()
    """True if the calls use the workspace's key, so that the operator doesn't pay for them."""
    status = models.CharField(max_length=10, choices=ModelBatchStatus, default=ModelBatchStatus.WAITING)
    vendor_id = models.CharField(max_length=100, blank=True)
    """The service's id of the batch; empty until it is known."""
    is_found = models.BooleanField(default=False)
    """True if the answer to the sending was lost, and `vendor_id` was found in the service's list.

    Only the results prove that it is this batch.
    """
    not_ours = models.JSONField(default=list)
    """Ids that were found in the service's list but whose results belonged to other calls."""
    size = models.PositiveSmallIntegerField(default=0)
    """The number of calls in the last sending."""
    sizes = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """Sizes of earlier sendings that the service's list didn't show: one shown later may be this batch too."""
    sending_since = models.DateTimeField(null=True)
    is_cancelled = models.BooleanField(default=False)
    error = models.JSONField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    ended_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "model_batch"
        constraints: ClassVar = [
            # A run adds its call to the one batch that is waiting.
            models.UniqueConstraint(
                fields=["workspace", "is_own_key"],
                condition=models.Q(status="waiting"),
                name="model_batch_one_waiting",
            ),
        ]
        indexes: ClassVar = [
            *claim_indexes("model_batch"),
            # Read before every call: batches under way count against the spending caps.
            models.Index(
                fields=["workspace", "is_own_key"],
                condition=models.Q(status__in=["sending", "sent"]),
                name="model_batch_on_its_way",
            ),
        ]


class BatchedCall(WorkspaceRow):
    """One call of a batch, identified by what is asked; its id is the service's `custom_id`."""

    batch = models.ForeignKey(ModelBatch, on_delete=models.CASCADE, related_name="calls")
    generation = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="batched_calls"
    )
    key = models.CharField(max_length=64)
    """The hash of the request, by which the run finds the answer when it asks again."""
    asked = models.JSONField()
    """The call as `writers.asking.Ask`; emptied once it was sent or isn't needed."""
    most_micro_usd = models.PositiveBigIntegerField()
    """The most that the call can cost; counted against the spending caps until the cost is known."""
    is_late = models.BooleanField(default=False)
    """True if the run stopped waiting for the batch; a later answer is paid for and not used."""
    outcome = models.CharField(max_length=20, choices=BatchedCallOutcome, blank=True)
    """Empty until it is known."""
    reply = models.JSONField(null=True)
    """`{"text", "stop_reason", "refusal_category", "record"}`, until the run is over."""
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "batched_call"
        constraints: ClassVar = [
            # A run whose worker was killed asks the same again, and gets the same row.
            models.UniqueConstraint(fields=["generation", "key"], name="batched_call_once"),
        ]
