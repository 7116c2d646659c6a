"""Deliveries to webhook sources, their senders' secrets, and subscriptions at WebSub hubs."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.encrypted_fields import ClosedTextField
from config.core.work_queue import DueModel, claim_indexes


class Verification(models.TextChoices):
    """How a sender proves that a delivery is from it."""

    ADDRESS = "address", _("Anyone with the URL")
    HEADER = "header", _("Secret header")
    BEARER = "bearer", _("Bearer token")
    STANDARD_WEBHOOKS = "standard_webhooks", _("Standard Webhooks")
    GITHUB = "github", _("GitHub signature")
    SLACK = "slack", _("Slack signature")
    STRIPE = "stripe", _("Stripe signature")
    GHOST = "ghost", _("Ghost signature")


class InboundDeliveryStatus(models.TextChoices):
    RECEIVED = "received", _("Received")
    DUPLICATE = "duplicate", _("Duplicate")
    FAILED = "failed", _("No content")
    IGNORED = "ignored", _("Ignored")
    TAKEN = "taken", _("Accepted")
    REFUSED = "refused", _("Not verified")


class InboundSecret(WorkspaceRow):
    """A webhook sender's secret, apart from the source, whose row is read and shown everywhere."""

    source = models.OneToOneField("pipeline.Source", on_delete=models.CASCADE, related_name="inbound_secret")
    kind = models.CharField(max_length=20, choices=Verification)
    """The verification that the secret is for; under another one the secret is ignored."""
    secret = ClosedTextField()
    previous = ClosedTextField(null=True)
    """Accepted together with `secret` until `previous_until`."""
    previous_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "inbound_secret"


class InboundDelivery(WorkspaceRow):
    """One POST to a source's address. The bodies of the newest twenty are kept, for viewing and replaying."""

    # The log's index begins with the source, which therefore needs no other.
    source = models.ForeignKey(
        "pipeline.Source", on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    test = models.BooleanField(default=False)
    sender_key = models.CharField(max_length=200, null=True)
    """The sender's id of the delivery, unique per source; `None` if it has none or failed the verification."""
    verification = models.CharField(max_length=20, choices=Verification)
    status = models.CharField(
        max_length=10, choices=InboundDeliveryStatus, default=InboundDeliveryStatus.RECEIVED
    )
    reason = models.JSONField(null=True)
    """`{"code", "message"}` if it was refused or ignored, or gives no content."""
    content_type = models.CharField(max_length=200, blank=True)
    head = models.JSONField(default=dict)
    """The headers that describe the body, by lower-case name; never a credential or signature."""
    body = models.BinaryField(null=True)
    """The bytes as received; `None` if the delivery was refused, or once it isn't among the newest."""
    body_bytes = models.PositiveIntegerField(default=0)
    preset = models.CharField(max_length=40, blank=True)
    made = models.JSONField(null=True)
    """The fields that the mapping produced, long ones shortened."""
    notes = models.JSONField(default=list)
    """`[{"code", "message"}]`: the parts that were left out, with the reasons."""
    raw_item = models.ForeignKey(
        "pipeline.RawItem", null=True, on_delete=models.SET_NULL, related_name="deliveries"
    )
    repeats = models.PositiveIntegerField(default=0)
    """How often the sender repeated it under the same id."""
    replayed_at = models.DateTimeField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "inbound_delivery"
        constraints: ClassVar = [
            # If one delivery comes twice at the same moment, the second finds the first one's row.
            models.UniqueConstraint(fields=["source", "sender_key"], name="inbound_delivery_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["source", "-id"], name="inbound_delivery_log"),
            # Finds the bodies to delete, however many rows have none.
            models.Index(
                fields=["source", "-id"],
                name="inbound_delivery_bodies",
                condition=models.Q(body__isnull=False),
            ),
            models.Index(fields=["workspace"], name="inbound_delivery_workspace"),
            # Deliveries without content, for a person to look at.
            models.Index(
                fields=["workspace", "-id"],
                name="inbound_delivery_failed",
                condition=models.Q(status="failed"),
            ),
        ]


class WebSubStatus(models.TextChoices):
    WANTED = "wanted", _("Requested")
    ASKED = "asked", _("Requested")
    ACTIVE = "active", _("Active")
    RENEWING = "renewing", _("Renewing")
    DENIED = "denied", _("Denied")
    ENDED = "ended", _("Ended")


class WebSubSubscription(WorkspaceRow, DueModel):
    """A subscription at a hub.

    `wake_at` is the time of its next request, check or renewal, and `None` once it has ended.
    """

    source = models.OneToOneField("pipeline.Source", on_delete=models.CASCADE, related_name="subscription")
    hub = models.CharField(max_length=2048)
    topic = models.CharField(max_length=2048)
    token = models.CharField(max_length=43, unique=True)
    """The unguessable part of the address that the hub calls."""
    secret = ClosedTextField()
    """The key that the hub signs with; never sent over plain http."""
    status = models.CharField(max_length=10, choices=WebSubStatus, default=WebSubStatus.WANTED)
    tries = models.PositiveIntegerField(default=0)
    """The number of requests since the last one that was verified."""
    asked_at = models.DateTimeField(null=True)
    lease_ends_at = models.DateTimeField(null=True)
    error = models.JSONField(null=True)
    """`{"code", "message", "at"}` of the last failure; `None` if there is none."""
    pushed_at = models.DateTimeField(null=True)
    """When the hub last sent a push that passed verification."""
    woken_until = models.DateTimeField(null=True)
    """No push wakes the source again before this time."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "websub"
        indexes: ClassVar = claim_indexes("websub")
