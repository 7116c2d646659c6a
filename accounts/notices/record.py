"""Notices: recorded in the transaction of the change that they tell of, spread to people and channels, forgotten."""

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
from accounts.notices.preferences import preferences_of, preferences_of_members
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

TITLE_CHARACTERS = 200
TEXT_CHARACTERS = 2000
log = structlog.get_logger(__name__)
_HOUR: Final = timedelta(hours=1)
RECENT_MESSAGES: Final = 10
"""How many of a person's last messages are listed."""
ROWS: Final = 500
"""Of one statement: a short lock, however much is too old."""


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
    """One statement, and no other for whoever reads it; refuses outside a transaction.

    `key` names the happening within its kind: recorded again, nothing is written and the answer is False. `path` leads to
    the thing below the workspace's address. Raises `TransactionManagementError` outside a transaction, `LookupError` for an
    unknown kind.
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
            # A platform's own words may hold what no line of a mail must.
            title=" ".join(title.split())[:TITLE_CHARACTERS],
            text=text if kind in {NoticeKind.DIGEST, NoticeKind.MONTHLY} else text[:TEXT_CHARACTERS],
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
    """A message by every channel that is open; the same `once` sends it once."""
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
    """Work one claimed notice: all of its messages are written, and the notice is done, in one transaction."""
    now = now or utc_now()
    people = _people(notice)
    with transaction.atomic():
        messages = [message for choice in people for message in _messages(notice, choice, now)]
        NoticeMessage.everywhere.bulk_create(messages, ignore_conflicts=True)
        if not notice.sleep_until(None, attempts=0):
            # Another hand has it: what it writes is the same.
            transaction.set_rollback(True)
            return
        crash_point("notices.spread")
        dispatcher.wake()


def give_up_notice(notice: Notice) -> None:
    """The end of a notice whose workers died, time after time: nobody is sent it, and the log says so."""
    log.error("notice_not_told", notice=notice.pk.hex, kind=notice.kind)
    notice.sleep_until(None, attempts=0)


def _people(notice: Notice) -> list[NoticePreferences]:
    """Whom it may reach: the one whom it is for, or everybody who is in the workspace."""
    if notice.user_id is None:
        return preferences_of_members(notice.workspace_id)
    choice = preferences_of(notice.workspace_id, notice.user_id)
    return [choice] if choice else []


def _messages(notice: Notice, choice: NoticePreferences, now: datetime) -> list[NoticeMessage]:
    """One unsaved message for each of the person's channels; none where they don't want this kind."""
    when = choice.when(notice.kind) if notice.kind in KINDS else NOW
    if when == OFF:
        return []
    if when == NOW and notice.kind in KINDS and _had_enough(notice, choice, now):
        when = DAILY
    made = []
    for channel in choice.channels:
        message = NoticeMessage(
            workspace_id=notice.workspace_id,
            notice=notice,
            user=choice.user,
            channel=channel,
            created_at=now,
        )
        if when == DAILY:
            states.begin(message, "gathered")
        else:
            message.due_at = message.wake_at = now
        made.append(message)
    return made


def _had_enough(notice: Notice, choice: NoticePreferences, now: datetime) -> bool:
    """A broken platform fails hundreds of posts at once: nobody reads hundreds of mails."""
    lately = (
        NoticeMessage.objects.of(notice.workspace_id)
        .filter(user=choice.user, notice__kind=notice.kind, created_at__gt=now - _HOUR)
        .exclude(status__in=[NoticeMessageStatus.GATHERED, NoticeMessageStatus.TOLD])
    )
    return lately.values("notice").distinct().count() >= limits.NOTICES_AT_ONCE_MOST


def forget(now: datetime) -> int:
    """Delete some old ones with their messages; how many. One look at an index when nothing is old."""
    too_old = Notice.everywhere.filter(created_at__lt=now - limits.NOTICES_KEPT, wake_at=None)
    ids = list(too_old.order_by("created_at").values_list("pk", flat=True)[:ROWS])
    if ids:
        Notice.everywhere.filter(pk__in=ids).delete()
    return len(ids)


def forget_about(workspace_id: UUID, things: Collection[UUID]) -> None:
    """Delete the notices about these rows: a key begins with the id of what the notice is about."""
    wanted = {key.hex for key in things}
    rows = Notice.objects.of(workspace_id).values_list("pk", "key")
    Notice.everywhere.filter(pk__in=[pk for pk, key in rows if key.partition(":")[0] in wanted]).delete()


def recent_messages(workspace: Workspace, user: User) -> list[NoticeMessage]:
    """A person's last messages, the newest first."""
    rows = NoticeMessage.objects.of(workspace).filter(user=user).select_related("notice").order_by("-id")
    return list(rows[:RECENT_MESSAGES])
