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
    """The state of a subscription; mailings go to active ones only."""

    ACTIVE = "active", _("Subscribed")
    PENDING = "pending", _("Unconfirmed")
    UNSUBSCRIBED = "unsubscribed", _("Unsubscribed")
    BOUNCED = "bounced", _("Bounced")
    COMPLAINED = "complained", _("Reported as spam")


class SubscriberOrigin(models.TextChoices):
    """How an address came to the list: by the sign-up form, typed by a person, or in a file."""

    FORM = "form", _("Form")
    HAND = "hand", _("Manual")
    IMPORT = "import", _("Import")


class MailingStatus(models.TextChoices):
    """How far a mailing is; while it is `spreading` its deliveries are created."""

    SPREADING = "spreading", _("Starting")
    SENDING = "sending", _("Sending")
    STOPPED = "stopped", _("Stopped")
    DONE = "done", _("Done")


class MailDeliveryStatus(models.TextChoices):
    """How far a mail is; it is `skipped` if its recipient left the list before it was sent."""

    PENDING = "pending", _("Pending")
    SENDING = "sending", _("Sending")
    SENT = "sent", _("Sent")
    FAILED = "failed", _("Failed")
    UNKNOWN = "unknown", _("Outcome unknown")
    SKIPPED = "skipped", _("Skipped")


class Subscriber(WorkspaceRow):
    """An address on an outlet's list. Stores how it came, never an IP address."""

    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="subscribers")
    email = models.CharField(max_length=254)
    """In lower case, with its domain in ASCII."""
    status = models.CharField(max_length=12, choices=SubscriberStatus, default=SubscriberStatus.PENDING)
    token = models.CharField(max_length=32, unique=True, default=new_token)
    """The unguessable part of the links by which the subscriber confirms and unsubscribes."""
    origin = models.CharField(max_length=8, choices=SubscriberOrigin, default=SubscriberOrigin.FORM)
    asked_at = models.DateTimeField(null=True)
    """When the last mail that asks for confirmation was queued."""
    confirmed_at = models.DateTimeField(null=True)
    """When they confirmed; for an import, when the workspace declared that they had."""
    ended_at = models.DateTimeField(null=True)
    """When they unsubscribed, bounced or complained; `None` for the other statuses."""
    reason = models.CharField(max_length=300, blank=True)
    """The mail server's reply that ended the subscription, or that it was reported as spam."""
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
    """Rises with each wake, so that a task that releases the row notices what was queued meanwhile."""
    rests_until = models.DateTimeField(null=True)
    """The end of a pause of the outlet's pace or after a failed session; no mail is sent before it."""
    failures = models.PositiveIntegerField(default=0)
    """The number of failed sessions in a row."""
    error = models.JSONField(null=True)
    """`{"code", "message", "at"}` of the last failed session; `None` if the last one succeeded."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "mail_queue"
        indexes: ClassVar = claim_indexes("mail_queue")

    @staticmethod
    def wake_changes(now: datetime) -> dict[str, Any]:
        """Return the column values that wake a task at once, or make the running one read the queue again."""
        return {
            "asks": models.F("asks") + 1,
            # A running worker keeps its lease, because another one would mark the mail in transit as unknown.
            "wake_at": models.Case(
                models.When(attempts=0, then=models.Value(now)), default=models.F("wake_at")
            ),
            "updated_at": now,
        }


class Mailing(WorkspaceRow):
    """A publication's mails to everybody who was subscribed when the mailing was created."""

    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="mailings")
    publication = models.OneToOneField(
        "pipeline.Publication", on_delete=models.CASCADE, related_name="mailing"
    )
    status = models.CharField(max_length=10, choices=MailingStatus, default=MailingStatus.SPREADING)
    subject = models.CharField(max_length=500)
    """Emptied when the mailing is done and its item is erased."""
    html = models.TextField(blank=True)
    """The content as HTML; emptied when the mailing is done, because the revision keeps it."""
    text = models.TextField(blank=True)
    """The content as plain text; emptied together with `html`."""
    language = models.CharField(max_length=35, blank=True)
    spread_to = models.UUIDField(null=True)
    """The last subscriber whose delivery was created."""
    recipients = models.PositiveIntegerField(default=0)
    counts = models.JSONField(null=True)
    """The number of deliveries by status, once the mailing is done."""
    error = models.JSONField(null=True)
    """`{"code", "message", "at"}`: why the mailing was stopped."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)
    ended_at = models.DateTimeField(null=True)
    """When the mailing was done; `None` while it can be sent or resumed."""

    class Meta(WorkspaceRow.Meta):
        db_table = "mailing"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-id"], name="mailing_list"),
            models.Index(fields=["outlet", "-id"], name="mailing_of_outlet"),
            # Finds the mailings that a task still has to send for an outlet.
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

    `sending` is committed before the content is sent; a mail that the server never answered is `unknown`. A
    delivery without a mailing is the mail that asks a subscriber for confirmation.
    """

    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+", db_index=False)
    mailing = models.ForeignKey(Mailing, null=True, on_delete=models.CASCADE, related_name="deliveries")
    # SET_NULL: removing somebody from the list mustn't change the count of what was sent.
    subscriber = models.ForeignKey(
        Subscriber, null=True, on_delete=models.SET_NULL, related_name="deliveries"
    )
    status = models.CharField(max_length=10, choices=MailDeliveryStatus, default=MailDeliveryStatus.PENDING)
    message_id = models.CharField(max_length=300)
    """The Message-ID, which is the same for every try."""
    next_at = models.DateTimeField(null=True)
    """When the mail may be tried next; `None` once no further try is made."""
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
            # Finds the mails to send, by mailing; confirmations have none.
            models.Index(
                fields=["outlet", "mailing", "next_at"],
                name="mail_delivery_waiting",
                condition=models.Q(status="pending"),
            ),
            # Finds the mails that a killed worker left unfinished.
            models.Index(
                fields=["outlet"], name="mail_delivery_sending", condition=models.Q(status="sending")
            ),
            models.Index(fields=["mailing", "status"], name="mail_delivery_counts"),
            models.Index(fields=["outlet", "message_id"], name="mail_delivery_message"),
        ]
