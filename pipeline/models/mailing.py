"""Subscribers of newsletters, mailings, and the ledger of every mail."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes

if TYPE_CHECKING:
    from datetime import datetime


def new_token() -> str:
    """Return 32 random characters that can't be guessed and that mail programs don't break."""
    return secrets.token_urlsafe(24)


class SubscriberStatus(models.TextChoices):
    ACTIVE = "active", _("Subscribed")
    PENDING = "pending", _("Unconfirmed")
    UNSUBSCRIBED = "unsubscribed", _("Unsubscribed")
    BOUNCED = "bounced", _("Bounced")
    COMPLAINED = "complained", _("Reported as spam")


class SubscriberOrigin(models.TextChoices):
    FORM = "form", _("Form")
    HAND = "hand", _("Manual")
    IMPORT = "import", _("Import")


class MailingStatus(models.TextChoices):
    SPREADING = "spreading", _("Starting")
    SENDING = "sending", _("Sending")
    STOPPED = "stopped", _("Stopped")
    DONE = "done", _("Done")


class MailDeliveryStatus(models.TextChoices):
    PENDING = "pending", _("Pending")
    SENDING = "sending", _("Sending")
    SENT = "sent", _("Sent")
    FAILED = "failed", _("Failed")
    UNKNOWN = "unknown", _("Outcome unknown")
    SKIPPED = "skipped", _("Skipped")


class Subscriber(WorkspaceRow):
    """An address on an outlet's list. Of its origin only the way it came is stored, never an IP address."""

    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="subscribers")
    email = models.CharField(max_length=254)
    """In lower case, with its domain in ASCII."""
    status = models.CharField(max_length=12, choices=SubscriberStatus, default=SubscriberStatus.PENDING)
    token = models.CharField(max_length=32, unique=True, default=new_token)
    """The unguessable part of its confirmation and unsubscribe links."""
    origin = models.CharField(max_length=8, choices=SubscriberOrigin, default=SubscriberOrigin.FORM)
    asked_at = models.DateTimeField(null=True)
    """When the last mail that asks for confirmation was queued."""
    confirmed_at = models.DateTimeField(null=True)
    """When they confirmed; for an import, when the workspace declared that they had."""
    ended_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=300, blank=True)
    """What the mail server or mailbox provider said when the subscription ended."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "subscriber"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["outlet", "email"], name="subscriber_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-id"], name="subscriber_list"),
            # Used to create a mailing's deliveries, and by the page's filter and counts.
            models.Index(fields=["outlet", "status", "id"], name="subscriber_of_outlet"),
            # Retention deletes those who never confirmed.
            models.Index(
                fields=["asked_at"], name="subscriber_unconfirmed", condition=models.Q(status="pending")
            ),
        ]


class MailQueue(WorkspaceRow, DueModel):
    """An outlet's mail queue: only the holder of its lease sends mails of that outlet."""

    outlet = models.OneToOneField("pipeline.Outlet", on_delete=models.CASCADE, related_name="mail_queue")
    bounce_secret = models.CharField(max_length=32, unique=True, default=new_token)
    """The unguessable part of the address that takes bounces."""
    asks = models.BigIntegerField(default=0)
    """Rises when something is queued, so that a task that releases the row misses none of it."""
    rests_until = models.DateTimeField(null=True)
    """No mail is sent before this: the outlet's pace, or a server that asked to wait."""
    failures = models.PositiveIntegerField(default=0)
    """How many sessions in a row failed."""
    error = models.JSONField(null=True)
    """`{"code", "message", "at"}` of the last failed session; None while there is none."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "mail_queue"
        indexes: ClassVar = claim_indexes("mail_queue")

    @staticmethod
    def wake_changes(now: datetime) -> dict[str, Any]:
        """Return the column values that make a task look at the queue at once, or the one at work look again."""
        return {
            "asks": models.F("asks") + 1,
            # The worker that has it keeps its lease: a second one would take a mail in transit for a lost one.
            "wake_at": models.Case(
                models.When(attempts=0, then=models.Value(now)), default=models.F("wake_at")
            ),
            "updated_at": now,
        }


class Mailing(WorkspaceRow):
    """One publication as mails to all who were active when it was made."""

    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="mailings")
    publication = models.OneToOneField(
        "pipeline.Publication", on_delete=models.CASCADE, related_name="mailing"
    )
    status = models.CharField(max_length=10, choices=MailingStatus, default=MailingStatus.SPREADING)
    subject = models.CharField(max_length=500)
    html = models.TextField(blank=True)
    """The revision that was sent, with `text` and `language`. Emptied when done; the revision keeps the content.

    The subject is deleted with the item.
    """
    text = models.TextField(blank=True)
    language = models.CharField(max_length=35, blank=True)
    spread_to = models.UUIDField(null=True)
    """The last subscriber whose delivery was created."""
    recipients = models.PositiveIntegerField(default=0)
    counts = models.JSONField(null=True)
    """Number of deliveries by status, once it is done."""
    error = models.JSONField(null=True)
    """`{"code", "message", "at"}`: why it was stopped."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)
    ended_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "mailing"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-id"], name="mailing_list"),
            models.Index(fields=["outlet", "-id"], name="mailing_of_outlet"),
            # What a task still has to send for an outlet.
            models.Index(
                fields=["outlet", "id"],
                name="mailing_open",
                condition=models.Q(status__in=["spreading", "sending"]),
            ),
            models.Index(
                fields=["ended_at"], name="mailing_ended", condition=models.Q(ended_at__isnull=False)
            ),
        ]


class MailDelivery(WorkspaceRow):
    """One mail to one recipient.

    `sending` is committed before its content leaves; a mail that never got an answer is `unknown`. A delivery
    without a mailing is the mail that asks a subscriber for confirmation.
    """

    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+", db_index=False)
    mailing = models.ForeignKey(Mailing, null=True, on_delete=models.CASCADE, related_name="deliveries")
    # SET_NULL: removing somebody from the list mustn't change the count of what was sent.
    subscriber = models.ForeignKey(
        Subscriber, null=True, on_delete=models.SET_NULL, related_name="deliveries"
    )
    status = models.CharField(max_length=10, choices=MailDeliveryStatus, default=MailDeliveryStatus.PENDING)
    message_id = models.CharField(max_length=300)
    """The same for every try."""
    next_at = models.DateTimeField(null=True)
    """When it may be tried next; None once it has ended."""
    tries = models.PositiveIntegerField(default=0)
    code = models.PositiveIntegerField(null=True)
    """The code of the mail server's last reply; `reply` is its text."""
    reply = models.CharField(max_length=300, blank=True)
    sent_at = models.DateTimeField(null=True)
    bounced_at = models.DateTimeField(null=True)
    """When a bounce report came back for it."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "mail_delivery"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["mailing", "subscriber"], name="mail_delivery_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-id"], name="mail_delivery_list"),
            # What may be sent now, by mailing; confirmations have none.
            models.Index(
                fields=["outlet", "mailing", "next_at"],
                name="mail_delivery_waiting",
                condition=models.Q(status="pending"),
            ),
            # What a killed worker left unfinished.
            models.Index(
                fields=["outlet"], name="mail_delivery_sending", condition=models.Q(status="sending")
            ),
            models.Index(fields=["mailing", "status"], name="mail_delivery_counts"),
            models.Index(fields=["outlet", "message_id"], name="mail_delivery_message"),
        ]
