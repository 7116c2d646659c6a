"""What a model found in a raw item, shared by all runs of it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now


class SharedBrief(WorkspaceRow):
    """One reading of one content. Who asks writes it before the call; it goes when the raw item's content goes."""

    raw_item = models.ForeignKey("pipeline.RawItem", on_delete=models.CASCADE, related_name="briefs")
    key = models.CharField(max_length=64)
    """Hash of what is read and of how: the words, who reads, the model, the version of the prompt."""
    content = models.JSONField(null=True)
    """The brief; None until it is answered."""
    usage = models.JSONField(null=True)
    refusal = models.JSONField(null=True)
    """`{"code", "message"}` where the model can't work with this content; holds for the runs that stood then."""
    refused_at = models.DateTimeField(null=True)
    asked_by = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    asked_until = models.DateTimeField(null=True)
    """No other run asks before, by the database's clock: its lease, or the wait that the service asked for."""
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "shared_brief"
        constraints: ClassVar = [
            # Two runs that begin to read at the same moment find the same row.
            models.UniqueConstraint(fields=["raw_item", "key"], name="shared_brief_once"),
        ]
