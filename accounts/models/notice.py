"""What a workspace's people are told: happenings, who is told by which way, each person's choices, the daily digest."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts.tenancy import WorkspaceRow
from config.ground.due import DueModel, claim_indexes
from config.ground.sealed import SealedTextField


class Notice(WorkspaceRow, DueModel):
    """One happening. `wake_at` is set until its messages are written."""

    kind = models.CharField(max_length=20)
    key = models.CharField(max_length=120)
    """What makes the happening one: telling of it again is the same row."""
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    """Whom alone it is for; None where everybody's choices say."""
    title = models.CharField(max_length=200)
    text = models.TextField(blank=True)
    path = models.CharField(max_length=200, blank=True)
    """Of the page to look at, below the workspace's own address."""
    created_at = models.DateTimeField(default=timezone.now)

    class Meta(WorkspaceRow.Meta):
        db_table = "notice"
        constraints: ClassVar = [
            # However many hands see the same happening, it is told once.
            models.UniqueConstraint(fields=["workspace", "kind", "key"], name="notice_once"),
        ]
        indexes: ClassVar = [
            *claim_indexes("notice"),
            # The retention job deletes by age.
            models.Index(fields=["created_at"], name="notice_age"),
        ]


class NoticeMessage(WorkspaceRow, DueModel):
    """One notice on its way to one person by one channel."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="messages")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    channel = models.CharField(max_length=10)
    status = models.CharField(max_length=10, default="pending")
    failures = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "message"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["notice", "user", "channel"], name="message_once"),
        ]
        indexes: ClassVar = [
            *claim_indexes("message"),
            # A person's last ones on their page, those of the last hour, and what the digest gathers.
            models.Index(fields=["workspace", "user", "-id"], name="message_of_person"),
        ]


class NoticeChoice(WorkspaceRow):
    """What one person wants to be told of one workspace, and where. Without a row the role's defaults hold."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kinds = models.JSONField(default=dict)
    """`{kind: "now" | "daily" | "off"}`; what isn't named is as the role's default says."""
    by_mail = models.BooleanField(default=True)
    slack_url = SealedTextField(null=True)
    """Slack's incoming webhook: who knows the address may post there."""
    telegram_token = SealedTextField(null=True)
    telegram_chat = models.CharField(max_length=64, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta(WorkspaceRow.Meta):
        db_table = "notice_choice"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "user"], name="notice_choice_once"),
        ]


class NoticeDigest(WorkspaceRow, DueModel):
    """A workspace's daily digests: `due_at` is its next morning."""

    class Meta(WorkspaceRow.Meta):
        db_table = "digest"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace"], name="digest_one")]
        indexes: ClassVar = claim_indexes("digest")
