"""What one plan scheduled, so that one undo can take all of it back."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.timezone import now

from accounts.tenancy import WorkspaceRow


class WeekPlan(WorkspaceRow):
    test = models.BooleanField(default=False)
    entries = models.JSONField(default=list)
    """`[{"item", "outlet", "publication", "at", "revision", "set_aside"}]`: public ids, the moment that was promised,
    the revision that was, and the siblings that were set aside for it.
    """
    made_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=now)
    """The moment that stands in all that it wrote: approvals, and siblings that were set aside."""
    undone_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "week_plan"
        # The erasure of a workspace, and the forgetting of old ones.
        indexes: ClassVar = [models.Index(fields=["workspace", "-id"], name="week_plan_list")]
