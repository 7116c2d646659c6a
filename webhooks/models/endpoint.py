"""Where a workspace wants its events sent."""

from __future__ import annotations

from typing import ClassVar, Final

from django.db import models
from django.utils import timezone

from accounts.tenancy import WorkspaceRow
from config.ground.sealed import SealedTextField

EVERY_EVENT: Final = "*"
"""In an endpoint's `events`, alone: every type, those that are added later too."""


class Endpoint(WorkspaceRow):
    test = models.BooleanField(default=False)
    """True: gets the events of what test tokens make, and no others."""
    url = models.CharField(max_length=2048)
    description = models.CharField(max_length=200, blank=True)
    events = models.JSONField(default=list)
    """Types of events, or `EVERY_EVENT`; empty means the four that every endpoint gets by default."""
    secret = SealedTextField()
    """`whsec_` and base64 of 32 random bytes."""
    previous_secret = SealedTextField(null=True)
    previous_secret_until = models.DateTimeField(null=True)
    status = models.CharField(max_length=10, default="active")
    is_on = models.BooleanField(default=True)
    failures = models.PositiveIntegerField(default=0)
    """Failed attempts in a row."""
    failing_since = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta(WorkspaceRow.Meta):
        db_table = "endpoint"
        indexes: ClassVar = [
            # The dispatcher asks for a workspace's endpoints with every batch.
            models.Index(
                fields=["workspace"], name="endpoint_live", condition=models.Q(deleted_at__isnull=True)
            ),
        ]
