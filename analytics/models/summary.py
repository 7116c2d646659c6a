"""When a workspace's people are told of a month that is over."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from accounts.tenancy import WorkspaceRow
from config.core.work_queue import DueModel, claim_indexes


class MonthlySummary(WorkspaceRow, DueModel):
    """A workspace's monthly summaries: `due_at` is the next first of a month there."""

    class Meta(WorkspaceRow.Meta):
        db_table = "monthly"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace"], name="monthly_one")]
        indexes: ClassVar = claim_indexes("monthly")
