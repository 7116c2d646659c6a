"""Stores notices, their messages to members, each member's choices, and the daily digest."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.encrypted_fields import SealedTextField
from config.core.work_queue import DueModel, claim_indexes


class NoticeKind(models.TextChoices):
    POST_FAILED = "post_failed", _("A post failed")
    POST_HANDED_OVER = "post_handed_over", _("A post needs manual publishing")
    REVIEWS_WAITING = "reviews_waiting", _("Items to review")
    ITEM_FLAGGED = "item_flagged", _("A published item’s source changed")
    SOURCE_FAILING = "source_failing", _("A source fails")
    RECURRENCE_STOPPED = "recurrence_stopped", _("Repeat stopped")
    FEW_TOPICS = "few_topics", _("Topics run low")
    OUTLET_RECONNECT = "outlet_reconnect", _("An outlet needs reconnecting")
    WEBHOOK = "webhook", _("A webhook endpoint fails")
    QUOTA = "quota", _("Credits run out")
    MONTHLY = "monthly", _("Monthly report")
    DIGEST = "digest", _("Daily digest")
    TEST = "test", _("Test")


class NoticeChannel(models.TextChoices):
    MAIL = "mail", _("Mail")
    SLACK = "slack", _("Slack")
    TELEGRAM = "telegram", _("Telegram")


class NoticeMessageStatus(models.TextChoices):
    PENDING = "pending", _("Pending")
    GATHERED = "gathered", _("In the next digest")
    TOLD = "told", _("Sent in a digest")
    SENT = "sent", _("Sent")
    FAILED = "failed", _("Failed")
    DROPPED = "dropped", _("Dropped")


class Notice(WorkspaceRow, DueModel):
    """An event that members are notified of. `wake_at` is set until its messages are written."""

    kind = models.CharField(max_length=20, choices=NoticeKind)
    key = models.CharField(max_length=120)
    """Identifies the event within its kind, so that it is recorded once."""
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    """The only recipient, or `None` if each member's choices decide."""
    title = models.CharField(max_length=200)
    text = models.TextField(blank=True)
    path = models.CharField(max_length=200, blank=True)
    """The page to open, below the workspace's own address."""
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "notice"
        constraints: ClassVar = [
            # However many tasks see the same event, it is recorded once.
            models.UniqueConstraint(fields=["workspace", "kind", "key"], name="notice_once"),
        ]
        indexes: ClassVar = [
            *claim_indexes("notice"),
            # The retention job deletes by age.
            models.Index(fields=["created_at"], name="notice_age"),
        ]


class NoticeMessage(WorkspaceRow, DueModel):
    """One notice on its way to one member by one channel."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="messages")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    channel = models.CharField(max_length=10, choices=NoticeChannel)
    status = models.CharField(max_length=10, choices=NoticeMessageStatus, default=NoticeMessageStatus.PENDING)
    failures = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    sent_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "message"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["notice", "user", "channel"], name="message_once"),
        ]
        indexes: ClassVar = [
            *claim_indexes("message"),
            # A member's last messages on their page, those of the last hour, and those that a digest gathers.
            models.Index(fields=["workspace", "user", "-id"], name="message_of_person"),
        ]


class NoticeChoice(WorkspaceRow):
    """The kinds and channels of notices that a member chose; without a row the role's defaults apply."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kinds = models.JSONField(default=dict)
    """`{kind: "now" | "daily" | "off"}`; a kind that isn't named follows the role's default."""
    by_mail = models.BooleanField(default=True)
    slack_url = SealedTextField(null=True)
    """The address of Slack's incoming webhook, a secret, because anybody who knows it may post there."""
    telegram_token = SealedTextField(null=True)
    telegram_chat = models.CharField(max_length=64, blank=True)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "notice_choice"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "user"], name="notice_choice_once"),
        ]


class NoticeDigest(WorkspaceRow, DueModel):
    """Schedules a workspace's daily digests: `due_at` is the next morning."""

    class Meta(WorkspaceRow.Meta):
        db_table = "digest"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace"], name="digest_one")]
        indexes: ClassVar = claim_indexes("digest")
