"""An evergreen item that comes back every so many days, and what came of each time."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.work_queue import DueModel, claim_indexes


class RecurrenceStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    STOPPED = "stopped", _("Stopped")


class RecurrenceDecision(models.TextChoices):
    MADE = "made", _("Made")
    STILL_WAITING = "still_waiting", _("The one before waited")
    SOURCE_PAUSED = "source_paused", _("Source paused")
    NO_CREDITS = "no_credits", _("No credits")


class Recurrence(WorkspaceRow, DueModel):
    """`due_at` is its next time; `wake_at` may be earlier, to look whether its source is still there."""

    test = models.BooleanField(default=False)
    item = models.OneToOneField("pipeline.GeneratedItem", on_delete=models.CASCADE, related_name="recurrence")
    every_days = models.PositiveSmallIntegerField()
    time = models.CharField(max_length=5)
    """`HH:MM` on the workspace's clocks."""
    anchor = models.DateField()
    """The day there from which the days are counted: when the item was, or will be, published, or when it was begun."""
    status = models.CharField(max_length=10, choices=RecurrenceStatus, default=RecurrenceStatus.ACTIVE)
    reason = models.JSONField(null=True)
    """`{"code", "message", "by", "at"}` of one that has stopped; `by` is empty where it stopped itself."""
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "recurrence"
        indexes: ClassVar = [
            *claim_indexes("recurrence"),
            models.Index(fields=["workspace", "test", "-id"], name="recurrence_list"),  # GET /recurrences
        ]


class RecurrenceTurn(WorkspaceRow):
    """One time of a recurrence: the item that was made, or why there is none."""

    recurrence = models.ForeignKey(Recurrence, on_delete=models.CASCADE, related_name="turns")
    due_at = models.DateTimeField()
    decision = models.CharField(max_length=15, choices=RecurrenceDecision)
    message = models.CharField(max_length=300, blank=True)
    item = models.ForeignKey(
        "pipeline.GeneratedItem", null=True, on_delete=models.SET_NULL, related_name="turns"
    )
    created_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "recurrence_turn"
        constraints: ClassVar = [
            # Two hands, or a hand that was killed and the next one, make one item of one time.
            models.UniqueConstraint(fields=["recurrence", "due_at"], name="recurrence_turn_once")
        ]
        indexes: ClassVar = [
            models.Index(fields=["recurrence", "-id"], name="recurrence_turn_list")
        ]  # its log
