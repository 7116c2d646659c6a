"""A saved view: filters of the list of items under a name."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now


class SavedView(WorkspaceRow):
    """Filters under a name. They belong to the workspace, in which everybody sees the same views."""

    name = models.CharField(max_length=60)
    filters = models.JSONField(default=dict)
    """The choice in each field of the list's filter, by name; a field without a choice is left out."""
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "saved_view"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="saved_view_once"),
        ]
