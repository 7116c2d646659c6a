"""When a brand lane makes something, and what it took, discarded or left each time."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class BrandSlotStatus(models.TextChoices):
    WAITING = "waiting", _("To come")
    WAITING_QUOTA = "waiting_quota", _("Waits for credits")
    PICKED = "picked", _("Picked")
    EMPTY = "empty", _("Nothing made")
    SKIPPED = "skipped", _("Left out")


class BrandPickDecision(models.TextChoices):
    TAKEN = "taken", _("Being made")
    USED = "used", _("Made")
    TOO_NEAR = "too_near", _("Discarded: too near")
    FAILED = "failed", _("Could not be made")


class BrandSlot(WorkspaceRow, DueModel):
    """One moment of a lane: `due_at` is the promise. A lane at work has exactly one that is still open."""

    test = models.BooleanField(default=False)
    source = models.ForeignKey("pipeline.Source", on_delete=models.CASCADE, related_name="slots")
    status = models.CharField(max_length=15, choices=BrandSlotStatus, default=BrandSlotStatus.WAITING)
    note = models.JSONField(null=True)
    """`{"code", "message"}`: why nothing was picked, what it waits for, or what is to be known of the pick."""
    eligible = models.PositiveIntegerField(null=True)
    """How many topics could have been picked."""
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    ended_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "brand_slot"
        constraints: ClassVar = [
            # Two hands, or a hand and a person, can't both open the next one.
            models.UniqueConstraint(
                fields=["source"],
                condition=models.Q(status__in=["waiting", "waiting_quota"]),
                name="brand_slot_one_open",
            )
        ]
        indexes: ClassVar = [
            *claim_indexes("brand_slot"),
            models.Index(fields=["source", "-id"], name="brand_slot_of_source"),  # the lane's log
        ]


class BrandPick(WorkspaceRow):
    """A topic and angle that one run of a slot was given, and what became of it; discarded ones stay."""

    slot = models.ForeignKey(BrandSlot, on_delete=models.CASCADE, related_name="picks")
    generation = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="picks"
    )
    item = models.ForeignKey("pipeline.GeneratedItem", null=True, on_delete=models.SET_NULL, related_name="+")
    """The first item that was made of it."""
    topic = models.ForeignKey("pipeline.Topic", null=True, on_delete=models.SET_NULL, related_name="picks")
    title = models.CharField(max_length=300)
    """The topic's, as it was."""
    angle = models.CharField(max_length=200, blank=True)
    decision = models.CharField(max_length=12, choices=BrandPickDecision, default=BrandPickDecision.TAKEN)
    reason = models.JSONField(null=True)
    """`{"code", "message"}`, for `too_near` with `likeness` from 0 to 1 and the public id `near` of what it is like."""
    words = models.TextField(blank=True)
    """What was discarded."""
    used_on = models.DateField()
    """The day in the lane's time zone: rests and monthly limits are counted in days of it."""
    created_at = models.DateTimeField(default=utc_now)
    decided_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "brand_pick"
        indexes: ClassVar = [
            models.Index(
                fields=["topic", "-used_on"], name="brand_pick_by_topic"
            ),  # rests and monthly limits
        ]
