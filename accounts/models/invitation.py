"""A workspace's wish to have somebody in."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower

from accounts.models.workspace import Membership, Workspace
from accounts.tenancy import WorkspaceQuerySet
from config.core.clock import utc_now
from config.core.ids import uuid7


class Invitation(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Membership.Role)
    digest = models.BinaryField(max_length=32, unique=True)
    """SHA-256 of the newest link's token: it has full entropy, so a slow hash would add nothing."""
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    sends = models.PositiveIntegerField(default=1)
    sent_at = models.DateTimeField(default=utc_now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["Invitation"].as_manager()

    class Meta:
        db_table = "invitation"
        base_manager_name = "everywhere"
        constraints: ClassVar = [
            # Two owners who invite the same person at once send one invitation.
            models.UniqueConstraint(
                "workspace",
                Lower("email"),
                condition=models.Q(accepted_at=None, withdrawn_at=None),
                name="invitation_one_pending",
            ),
        ]

    def __str__(self) -> str:
        return self.email

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= utc_now()
