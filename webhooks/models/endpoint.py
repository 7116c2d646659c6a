"""Stores the endpoints to which a workspace's events are sent."""

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
"""Stands for every type, including those added later, as the only entry of an endpoint's `events`."""
MAX_ADDRESS_CHARACTERS: Final = 80
"""The most characters of an endpoint's address in a sentence or a list."""


class EndpointStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    DEGRADED = "degraded", _("Degraded")
    DISABLED = "disabled", _("Disabled")


class Endpoint(WorkspaceRow):
    test = models.BooleanField(default=False)
    """`True` if it gets only the events of what test tokens make, else only the others."""
    url = models.CharField(max_length=2048)
    description = models.CharField(max_length=200, blank=True)
    events = models.JSONField(default=list)
    """Types of events, or `EVERY_EVENT`; empty means the four default types."""
    secret = SealedTextField()
    """`whsec_` and base64 of 32 random bytes."""
    previous_secret = SealedTextField(null=True)
    previous_secret_until = models.DateTimeField(null=True)
    # A database default, because a process of the previous release doesn't know the column.
    rate = models.PositiveSmallIntegerField(default=WEBHOOK_RATE, db_default=WEBHOOK_RATE)
    """The most attempts that begin within a second."""
    status = models.CharField(max_length=10, choices=EndpointStatus, default=EndpointStatus.ACTIVE)
    is_on = models.BooleanField(default=True)
    failures = models.PositiveIntegerField(default=0)
    """Failed attempts in a row."""
    failing_since = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    is_sample = models.BooleanField(default=False, db_default=False)
    """Marks sample data, which is removed as a whole."""
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
        """The host and path, shortened; the query is left out, because it may hold secrets."""
        parts = urlsplit(self.url)
        host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""
        address = f"{host}{parts.path.rstrip('/')}"
        return (
            address
            if len(address) <= MAX_ADDRESS_CHARACTERS
            else f"{address[: MAX_ADDRESS_CHARACTERS - 1]}\u2026"
        )


class EndpointPace(WorkspaceRow):
    """The attempts of the last second, apart from the endpoint's row, which each recorded attempt locks."""

    endpoint = models.OneToOneField(Endpoint, on_delete=models.CASCADE, related_name="pace")
    recent = models.JSONField(default=list)
    """Pairs of a time in milliseconds since 1970 and how many attempts began then."""

    class Meta(WorkspaceRow.Meta):
        db_table = "endpoint_pace"
