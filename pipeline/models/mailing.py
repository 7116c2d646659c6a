"""Who gets a newsletter, what is mailed, and the ledger of every mail."""

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
    """32 characters, which nobody guesses and mail programs don't break."""
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
    """An address on an outlet's list. Where it came from isn't kept beyond how, and no IP address at all."""

    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="subscribers")
    email = models.CharField(max_length=254)
    """In lower case, its domain in ASCII."""
    status = models.CharField(max_length=12, choices=SubscriberStatus, default=SubscriberStatus.PENDING)
    token = models.CharField(max_length=32, unique=True, default=new_token)
    """The unguessable part of the addresses by which it is confirmed and unsubscribed."""
    origin = models.CharField(max_length=8, choices=SubscriberOrigin, default=SubscriberOrigin.FORM)
    asked_at = models.DateTimeField(null=True)
    """When the last mail that asks for confirmation was put in line."""
    confirmed_at = models.DateTimeField(null=True)
    """When they said yes; for an import, when the workspace declared that they had."""
    ended_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=300, blank=True)
    """What the mail server or the mailbox provider said when it ended."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "subscriber"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["outlet", "email"], name="subscriber_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-id"], name="subscriber_list"),
            # Spreading a mailing goes along it; so do the page's filter and its counts.
            models.Index(fields=["outlet", "status", "id"], name="subscriber_of_outlet"),
            # Retention: who never confirmed.
            models.Index(
                fields=["asked_at"], name="subscriber_unconfirmed", condition=models.Q(status="pending")
            ),
        ]


class MailQueue(WorkspaceRow, DueModel):
    """An outlet's one way out: whoever holds its lease is alone in sending mails of that outlet."""

    outlet = models.OneToOneField("pipeline.Outlet", on_delete=models.CASCADE, related_name="mail_queue")
    bounce_secret = models.CharField(max_length=32, unique=True, default=new_token)
    """The unguessable part of the address that takes bounces."""
    asks = models.BigIntegerField(default=0)
    """Rises when something is put in line, so that a task that gives the row back misses none of it."""
    rests_until = models.DateTimeField(null=True)
    """No mail goes before: the outlet's pace, or a server that said "not now"."""
    failures = models.PositiveIntegerField(default=0)
    """Sessions in a row that failed."""
    error = models.JSONField(null=True)
    """`{"code", "message", "at"}` of the last of them; None while all is well."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "mail_queue"
        indexes: ClassVar = claim_indexes("mail_queue")

    @staticmethod
    def looked_at_again(now: datetime) -> dict[str, Any]:
        """What a write carries after which a task looks at once, or the one at work looks again."""
        return {
            "asks": models.F("asks") + 1,
            # Whoever has it in hand keeps its lease: a second hand would take a mail on its way for a lost one.
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
    """With `text` and `language`: of the revision that was sent. Emptied when it is done; the revision keeps the words.

    The subject goes with the item.
    """
    text = models.TextField(blank=True)
    language = models.CharField(max_length=35, blank=True)
    spread_to = models.UUIDField(null=True)
    """The last subscriber whose delivery was written."""
    recipients = models.PositiveIntegerField(default=0)
    counts = models.JSONField(null=True)
    """Deliveries by status, once it is done."""
    error = models.JSONField(null=True)
    """`{"code", "message", "at"}`: why it is stopped."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)
    ended_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "mailing"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-id"], name="mailing_list"),
            models.Index(fields=["outlet", "-id"], name="mailing_of_outlet"),
            # What a task has to do for an outlet.
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
    """One mail to one recipient. `sending` is committed before its words leave; what never got an answer is `unknown`.

    Without a mailing it is the mail that asks a subscriber for confirmation.
    """

    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+", db_index=False)
    mailing = models.ForeignKey(Mailing, null=True, on_delete=models.CASCADE, related_name="deliveries")
    # Who is removed from the list leaves the count of what was sent.
    subscriber = models.ForeignKey(
        Subscriber, null=True, on_delete=models.SET_NULL, related_name="deliveries"
    )
    status = models.CharField(max_length=10, choices=MailDeliveryStatus, default=MailDeliveryStatus.PENDING)
    message_id = models.CharField(max_length=300)
    """The same for every try."""
    next_at = models.DateTimeField(null=True)
    """When it may be tried; None once it has ended."""
    tries = models.PositiveIntegerField(default=0)
    code = models.PositiveIntegerField(null=True)
    """The mail server's last reply, and its words."""
    reply = models.CharField(max_length=300, blank=True)
    sent_at = models.DateTimeField(null=True)
    bounced_at = models.DateTimeField(null=True)
    """When a report came back for it."""
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "mail_delivery"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["mailing", "subscriber"], name="mail_delivery_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-id"], name="mail_delivery_list"),
            # What may go now, mailing by mailing; confirmations have none.
            models.Index(
                fields=["outlet", "mailing", "next_at"],
                name="mail_delivery_waiting",
                condition=models.Q(status="pending"),
            ),
            # What a killed hand left in the middle.
            models.Index(
                fields=["outlet"], name="mail_delivery_sending", condition=models.Q(status="sending")
            ),
            models.Index(fields=["mailing", "status"], name="mail_delivery_counts"),
            models.Index(fields=["outlet", "message_id"], name="mail_delivery_message"),
        ]
