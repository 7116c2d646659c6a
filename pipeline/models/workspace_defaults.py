"""The defaults of a workspace for what a request leaves out."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from accounts.tenancy import WorkspaceRow
from pipeline.models.publication import LatePolicy


class WorkspaceDefaults(WorkspaceRow):
    """The one row of a workspace's defaults."""

    push_source = models.ForeignKey("pipeline.Source", on_delete=models.PROTECT, related_name="+")
    test_push_source = models.ForeignKey("pipeline.Source", on_delete=models.PROTECT, related_name="+")
    persona = models.ForeignKey("pipeline.Persona", on_delete=models.PROTECT, related_name="+")
    engines = models.JSONField(default=list)
    """Names of engine outputs."""
    outlets = models.JSONField(default=list)
    """Public ids of outlets; a test token's items default to the simulated one."""
    test_outlets = models.JSONField(default=list)
    late_policy = models.CharField(
        max_length=10, choices=LatePolicy, default=LatePolicy.PUBLISH, db_default=LatePolicy.PUBLISH
    )
    max_lateness_minutes = models.PositiveIntegerField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "workspace_defaults"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace"], name="workspace_defaults_one")]
