"""Who tells us of a source's changes: a subscription at a WebSub hub."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.encrypted_fields import ClosedTextField
from config.core.work_queue import DueModel, claim_indexes


class WebSubStatus(models.TextChoices):
    WANTED = "wanted", _("Wanted")
    ASKED = "asked", _("Asked")
    ACTIVE = "active", _("Active")
    RENEWING = "renewing", _("Renewing")
    DENIED = "denied", _("Denied")
    ENDED = "ended", _("Ended")


class WebSubSubscription(WorkspaceRow, DueModel):
    """`wake_at` is when it is asked for, looked after or renewed; None once it has ended."""

    source = models.OneToOneField("pipeline.Source", on_delete=models.CASCADE, related_name="subscription")
    hub = models.CharField(max_length=2048)
    topic = models.CharField(max_length=2048)
    token = models.CharField(max_length=43, unique=True)
    """The unguessable part of the address that the hub calls."""
    secret = ClosedTextField()
    """What the hub signs with; never sent over plain http."""
    status = models.CharField(max_length=10, choices=WebSubStatus, default=WebSubStatus.WANTED)
    tries = models.PositiveIntegerField(default=0)
    """Requests since the last one that was verified."""
    asked_at = models.DateTimeField(null=True)
    lease_ends_at = models.DateTimeField(null=True)
    error = models.JSONField(null=True)
    """`{"code", "message", "at"}` in plain words; None while all is well."""
    pushed_at = models.DateTimeField(null=True)
    """When the hub last told of a change that we believed."""
    woken_until = models.DateTimeField(null=True)
    """No push wakes the source again before."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "websub"
        indexes: ClassVar = claim_indexes("websub")
