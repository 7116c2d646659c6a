"""The outbox: each event is stored as the bytes that are signed and sent."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now


class Event(WorkspaceRow):
    """An event, written in the transaction of the change that it reports.

    Each reader has its own mark. None reads by "id greater than the last", which would skip the row of a slow
    transaction.
    """

    test = models.BooleanField(default=False)
    type = models.CharField(max_length=40)
    body = models.BinaryField(null=True)
    """The exact bytes that are signed and sent; `None` once the retention period is over."""
    raw_item_id = models.UUIDField(null=True)
    generated_item_id = models.UUIDField(null=True)
    publication_id = models.UUIDField(null=True)
    source_id = models.UUIDField(null=True)
    will_retry = models.BooleanField(null=True)
    """Set for `published.failed` only; `False` if the failure is final."""
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    position = models.BigIntegerField(null=True)
    """The event's number in the feed of `GET /events`, given under the workspace's lock."""
    dispatched_at = models.DateTimeField(null=True)
    counted_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "event"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "position"], name="event_position_once"),
        ]
        indexes: ClassVar = [
            # For the dispatcher and the counter: both indexes hold only the events that still wait.
            models.Index(
                fields=["id"], name="event_undispatched", condition=models.Q(dispatched_at__isnull=True)
            ),
            models.Index(fields=["id"], name="event_uncounted", condition=models.Q(counted_at__isnull=True)),
            # The retention job clears bodies by age.
            models.Index(fields=["created_at"], name="event_age", condition=models.Q(body__isnull=False)),
        ]


class EventPosition(WorkspaceRow):
    """The last position given in a workspace's feed of events."""

    last = models.BigIntegerField(default=0)

    class Meta(WorkspaceRow.Meta):
        db_table = "event_position"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace"], name="event_position_one")]
