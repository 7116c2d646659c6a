"""What the simulated platform's server received: every call is a row, so a second publication can't hide."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now


class SimulatedPost(WorkspaceRow):
    outlet_id = models.UUIDField()
    ref = models.CharField(max_length=100)
    """The client's own reference; the server doesn't refuse a second post with the same one."""
    answer = models.CharField(max_length=30)
    """The word of the script that was played."""
    is_accepted = models.BooleanField()
    title = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)
    removed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "simulated_post"
        indexes: ClassVar = [
            models.Index(fields=["ref"], name="simulated_post_ref")
        ]  # the reconciling look-up
