"""Where a workspace wants its events sent."""

from __future__ import annotations

from typing import ClassVar, Final
from urllib.parse import urlsplit

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.encrypted_fields import SealedTextField
from webhooks.limits import WEBHOOK_RATE

EVERY_EVENT: Final = "*"
"""In an endpoint's `events`, alone: every type, those that are added later too."""
ADDRESS_SHOWN: Final = 80
"""Characters of an endpoint's address in a sentence or a list."""


class EndpointStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    DEGRADED = "degraded", _("Degraded")
    DISABLED = "disabled", _("Disabled")


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
    # The database fills it in for a process of the release before, which doesn't know the column.
    rate = models.PositiveSmallIntegerField(default=WEBHOOK_RATE, db_default=WEBHOOK_RATE)
    """Attempts that are begun within a second, at most."""
    status = models.CharField(max_length=10, choices=EndpointStatus, default=EndpointStatus.ACTIVE)
    is_on = models.BooleanField(default=True)
    failures = models.PositiveIntegerField(default=0)
    """Failed attempts in a row."""
    failing_since = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "endpoint"
        indexes: ClassVar = [
            # The dispatcher asks for a workspace's endpoints with every batch.
            models.Index(
                fields=["workspace"], name="endpoint_live", condition=models.Q(deleted_at__isnull=True)
            ),
        ]

    @property
    def address(self) -> str:
        """Host and path, by which several endpoints of one host are told apart; without what a query may hold."""
        parts = urlsplit(self.url)
        host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""
        address = f"{host}{parts.path.rstrip('/')}"
        return address if len(address) <= ADDRESS_SHOWN else f"{address[: ADDRESS_SHOWN - 1]}\u2026"


class EndpointPace(WorkspaceRow):
    """What an endpoint was sent within the last second; apart from its row, which each recorded attempt locks."""

    endpoint = models.OneToOneField(Endpoint, on_delete=models.CASCADE, related_name="pace")
    recent = models.JSONField(default=list)
    """Pairs: a moment in milliseconds since 1970, and how many attempts were begun then."""

    class Meta(WorkspaceRow.Meta):
        db_table = "endpoint_pace"
