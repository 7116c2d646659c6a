"""What a workspace may use in a month."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Plan(models.Model):
    name = models.CharField(max_length=60, unique=True)
    credits_per_month = models.PositiveIntegerField(default=5000)
    active_sources_most = models.PositiveIntegerField(default=20)
    poll_interval_minutes_least = models.PositiveIntegerField(default=15)
    is_default = models.BooleanField(default=False)

    class Meta:
        db_table = "plan"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="plan_one_default"
            ),
        ]

    def __str__(self) -> str:
        return self.name
