"""How one publication ended: counted once from its event."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from accounts.tenancy import WorkspaceRow
from pipeline.models import Bucket


class Outcome(WorkspaceRow):
    """The facts of `published.success` and of a final `published.failed`, with every dimension beside them."""

    test = models.BooleanField(default=False)
    event_id = models.UUIDField(unique=True)
    """Counting the same event again finds its row."""
    publication_id = models.UUIDField()
    is_published = models.BooleanField()
    """False: it failed for good."""
    at = models.DateTimeField()
    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+")
    content_type = models.CharField(max_length=10, choices=Bucket)
    source = models.ForeignKey("pipeline.Source", null=True, on_delete=models.SET_NULL, related_name="+")
    engine_output = models.CharField(max_length=60)
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta(WorkspaceRow.Meta):
        db_table = "outcome"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "test", "at"], name="outcome_by_time")
        ]  # GET /analytics
