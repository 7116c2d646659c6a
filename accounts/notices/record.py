"""Records notices in the transaction of their change, writes their messages, and deletes old notices."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.utils.translation import gettext as _

from accounts import limits
from accounts.models import Notice, NoticeKind, NoticeMessage, NoticeMessageStatus
from accounts.notices.kinds import DAILY, KINDS, NOW, OFF
from accounts.notices.preferences import find_preferences, read_members_preferences
from config.core import dispatcher, states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.insert import insert_or_ignore
from config.core.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from accounts.models import User, Workspace
    from accounts.notices.preferences import NoticePreferences

# The most characters of a notice's title and text; digests and monthly reports aren't cut.
_MAX_TITLE_CHARACTERS = 200
_MAX_TEXT_CHARACTERS = 2000
log = structlog.get_logger(__name__)
_HOUR: Final = timedelta(hours=1)
RECENT_MESSAGES: Final = 10
"""The number of a member's last messages that are listed."""
ROWS: Final = 500
"""Rows of one deletion: few, so that locks are short."""


def record(
    kind: str,
    *,
    workspace_id: UUID,
    key: str,
    title: str,
    text: str,
    path: str = "",
    user_id: UUID | None = None,
    now: datetime | None = None,
) -> bool:
    """Record a notice by one statement, or return `False` if its event was recorded before.

    `key` identifies the event within its kind. `path` leads to its page below the workspace's address. `user_id`
    is the only recipient, or `None` if each member's choices decide. Long titles and texts are cut. Raises
    `TransactionManagementError` outside a transaction, `LookupError` for an unknown kind.
    """
    if not connection.in_atomic_block:
        message = f"A notice ({kind}) must be recorded in the transaction of its change."
        raise TransactionManagementError(message)
    if kind not in NoticeKind.values:
        raise LookupError(kind)
    now = now or utc_now()
    is_new = insert_or_ignore(
        Notice(
            id=uuid7(),
            workspace_id=workspace_id,
            kind=kind,
            key=key,
            user_id=user_id,
            # A platform's message may contain line breaks, which a mail's subject must not.
            title=" ".join(title.split())[:_MAX_TITLE_CHARACTERS],
            text=text if kind in {NoticeKind.DIGEST, NoticeKind.MONTHLY} else text[:_MAX_TEXT_CHARACTERS],
            path=path,
            due_at=now,
            wake_at=now,
            created_at=now,
        )
    )
    if is_new:
        dispatcher.wake()
    return is_new


def send_test(workspace: Workspace, user: User, once: str) -> None:
    """Record a test notice for the user, once per `once`, which is a mark of the form; empty sends it again."""
    with transaction.atomic():
        record(
            NoticeKind.TEST,
            workspace_id=workspace.pk,
            key=f"{user.pk.hex}:{once or uuid7().hex}"[:120],
            title=_("Test notification from %(workspace)s") % {"workspace": workspace.name},
            text=_("You requested this test. No action needed."),
            path="settings/notices",
            user_id=user.pk,
        )


def write_messages(notice: Notice, *, now: datetime | None = None) -> None:
    """Write all messages of a claimed notice and finish it in one transaction, or nothing if the lease is lost."""
    now = now or utc_now()
    recipients = _recipients(notice)
    with transaction.atomic():
        messages = [
            message for preferences in recipients for message in _build_messages(notice, preferences, now)
        ]
        NoticeMessage.everywhere.bulk_create(messages, ignore_conflicts=True)
        if not notice.sleep_until(None, attempts=0):
            # The lease was lost: another worker has the notice, and writes the same messages.
            transaction.set_rollback(True)
            return
        crash_point("notices.spread")
        dispatcher.wake()


def give_up_notice(notice: Notice) -> None:
    """End a notice whose workers died again and again: it is sent to nobody, and an error is logged."""
    log.error("notice_not_told", notice=notice.pk.hex, kind=notice.kind)
    notice.sleep_until(None, attempts=0)


def _recipients(notice: Notice) -> list[NoticePreferences]:
    """Return the preferences of the notice's only recipient, if still a member, or else of all members."""
    if notice.user_id is None:
        return read_members_preferences(notice.workspace_id)
    preferences = find_preferences(notice.workspace_id, notice.user_id)
    return [preferences] if preferences else []


def _build_messages(notice: Notice, preferences: NoticePreferences, now: datetime) -> list[NoticeMessage]:
    """Return an unsaved message for each of the member's channels, or none if they turned this kind off.

    The messages wait for the digest if the member chose so, or has had too many of this kind within the hour.
    """
    when = preferences.when(notice.kind) if notice.kind in KINDS else NOW
    if when == OFF:
        return []
    if when == NOW and notice.kind in KINDS and _is_over_hourly_limit(notice, preferences, now):
        when = DAILY
    messages = []
    for channel in preferences.channels:
        message = NoticeMessage(
            workspace_id=notice.workspace_id,
            notice=notice,
            user=preferences.user,
            channel=channel,
            created_at=now,
        )
        if when == DAILY:
            states.begin(message, "gathered")
        else:
            message.due_at = message.wake_at = now
        messages.append(message)
    return messages


def _is_over_hourly_limit(notice: Notice, preferences: NoticePreferences, now: datetime) -> bool:
    """Return whether the member has had `NOTICES_AT_ONCE_MOST` notices of this kind within an hour.

    Those in a digest don't count. A broken platform fails hundreds of posts at once, and nobody reads hundreds
    of mails.
    """
    recent = (
        NoticeMessage.objects.of(notice.workspace_id)
        .filter(user=preferences.user, notice__kind=notice.kind, created_at__gt=now - _HOUR)
        .exclude(status__in=[NoticeMessageStatus.GATHERED, NoticeMessageStatus.TOLD])
    )
    return recent.values("notice").distinct().count() >= limits.NOTICES_AT_ONCE_MOST


def delete_old(now: datetime) -> int:
    """Delete up to `ROWS` old notices whose messages are written, with the messages; return how many notices."""
    too_old = Notice.everywhere.filter(created_at__lt=now - limits.NOTICES_KEPT, wake_at=None)
    ids = list(too_old.order_by("created_at").values_list("pk", flat=True)[:ROWS])
    if ids:
        Notice.everywhere.filter(pk__in=ids).delete()
    return len(ids)


def delete_about(workspace_id: UUID, row_ids: Collection[UUID]) -> None:
    """Delete the notices about these rows; a notice's key begins with the id of the row that it is about."""
    hex_ids = {row_id.hex for row_id in row_ids}
    rows = Notice.objects.of(workspace_id).values_list("pk", "key")
    Notice.everywhere.filter(pk__in=[pk for pk, key in rows if key.partition(":")[0] in hex_ids]).delete()


def recent_messages(workspace: Workspace, user: User) -> list[NoticeMessage]:
    """Return a member's last `RECENT_MESSAGES` messages, newest first, each with its notice."""
    rows = NoticeMessage.objects.of(workspace).filter(user=user).select_related("notice").order_by("-id")
    return list(rows[:RECENT_MESSAGES])
