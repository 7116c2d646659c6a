"""What each call to a model cost: the cost ledger."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now


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
    """One call, failed ones too; written as soon as it is over and never changed. It quotes neither side."""

    generation = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="model_calls"
    )
    stage = models.CharField(max_length=10, choices=ModelCallStage)
    is_own_key = models.BooleanField()
    """Asked with the workspace's key, so that it isn't the operator's money."""
    asked_model = models.CharField(max_length=80)
    model = models.CharField(max_length=80, blank=True)
    """As answered; empty where no answer came."""
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
            # Before each call: what the workspace has spent this month, what the instance has today.
            models.Index(fields=["workspace", "created_at"], name="model_call_of_month"),
            models.Index(fields=["created_at"], name="model_call_of_day"),
        ]
