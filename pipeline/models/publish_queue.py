"""Slots of a week at which outlets publish, and the halt of a whole workspace's publishing."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from pipeline.models.publication import OverlapChoice


class SlotGapChoice(models.TextChoices):
    """A slot's time that the clocks skip."""

    SHIFT = "shift", _("Is moved on by the hour: 02:30 becomes 03:30")
    SKIP = "skip", _("Is left out that day")


class PublishQueue(WorkspaceRow):
    name = models.CharField(max_length=120)
    timezone = models.CharField(max_length=64)
    slots = models.JSONField(default=list)
    """`[{"weekday": 0–6 from Monday, "time": "HH:MM"}]` on the clocks of `timezone`, in order."""
    blackouts = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """`[{"from", "until", "reason"}]`, times on the clocks of `timezone`: stretches without slots, in order."""
    on_gap = models.CharField(max_length=6, choices=SlotGapChoice, default=SlotGapChoice.SHIFT)
    on_overlap = models.CharField(max_length=6, choices=OverlapChoice, default=OverlapChoice.FIRST)
    is_default = models.BooleanField(default=False)
    """Of the workspace's outlets that name no other."""
    is_paused = models.BooleanField(default=False)
    """Gives no slots, and what was promised by it waits."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "publish_queue"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace"], condition=models.Q(is_default=True), name="publish_queue_one_default"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["workspace", "-id"], name="publish_queue_list")]


class PublishHold(WorkspaceRow):
    """A row stands while a workspace's people hold all of its publishing."""

    reason = models.CharField(max_length=300)
    set_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=now)

    class Meta(WorkspaceRow.Meta):
        db_table = "publish_hold"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace"], name="publish_hold_one")]
