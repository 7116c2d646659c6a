"""Stores the audit log of who changed what, which is kept forever."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models.workspace import Workspace
from accounts.tenancy import WorkspaceQuerySet
from config.core.clock import utc_now
from config.core.ids import uuid7


class AuditEntry(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, null=True, on_delete=models.SET_NULL, related_name="audit")
    actor = models.CharField(max_length=200)
    """A token's public id, a user's email address, or the command that was run."""
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["AuditEntry"].as_manager()

    class Meta:
        db_table = "audit_entry"
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        base_manager_name = "everywhere"
        indexes: ClassVar = [
            # The audit log of one workspace in the admin.
            models.Index(fields=["workspace", "-created_at"], name="audit_entry_list"),
        ]
