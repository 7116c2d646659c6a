"""A workspace's wish to be let in, and what the operator said."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models.workspace import Workspace
from accounts.tenancy import WorkspaceQuerySet
from config.core.clock import utc_now
from config.core.ids import uuid7


class WhitelistRequest(models.Model):
    class Status(models.TextChoices):
        PENDING = "pending", _("pending")
        APPROVED = "approved", _("approved")
        REFUSED = "refused", _("refused")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="whitelist_requests")
    message = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PENDING)
    reason = models.CharField(max_length=1000, blank=True)
    """What the workspace's owners were told with a refusal."""
    asked_by = models.CharField(max_length=200)
    decided_by = models.CharField(max_length=200, blank=True)
    decided_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["WhitelistRequest"].as_manager()

    class Meta:
        db_table = "whitelist_request"
        base_manager_name = "everywhere"
        constraints: ClassVar = [
            # Two askings at once leave one entry in the operator's queue.
            models.UniqueConstraint(
                fields=["workspace"],
                condition=models.Q(status="pending"),
                name="whitelist_request_one_pending",
            ),
        ]

    def __str__(self) -> str:
        return self.workspace.name
