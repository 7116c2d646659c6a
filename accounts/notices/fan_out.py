"""One happening becomes a message for each person and channel that wants it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog
from django.db import transaction

from accounts.models import Notice, NoticeMessage, NoticeMessageStatus
from accounts.notices.choices import choice_of, choices_of
from accounts.notices.kinds import DAILY, KINDS, NOW, OFF
from config.core import dispatch, limits, states
from config.core.clock import utc_now
from config.core.crash_points import crash_point

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.notices.choices import Choice

log = structlog.get_logger(__name__)
_HOUR: Final = timedelta(hours=1)


def spread(notice: Notice, *, now: datetime | None = None) -> None:
    """Work one claimed notice: all of its messages are written, and the notice is done, in one transaction."""
    now = now or utc_now()
    people = _people(notice)
    with transaction.atomic():
        messages = [one for choice in people for one in _messages(notice, choice, now)]
        NoticeMessage.everywhere.bulk_create(messages, ignore_conflicts=True)
        if not notice.sleep_until(None, attempts=0):
            # Another hand has it: what it writes is the same.
            transaction.set_rollback(True)
            return
        crash_point("notices.spread")
        dispatch.wake()


def give_up_spreading(notice: Notice) -> None:
    log.error("notice_not_told", notice=notice.pk.hex, kind=notice.kind)
    notice.sleep_until(None, attempts=0)


def _people(notice: Notice) -> list[Choice]:
    if notice.user_id is None:
        return choices_of(notice.workspace_id)
    choice = choice_of(notice.workspace_id, notice.user_id)
    return [choice] if choice else []


def _messages(notice: Notice, choice: Choice, now: datetime) -> list[NoticeMessage]:
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


def _had_enough(notice: Notice, choice: Choice, now: datetime) -> bool:
    """A broken platform fails hundreds of posts at once: nobody reads hundreds of mails."""
    lately = (
        NoticeMessage.objects.of(notice.workspace_id)
        .filter(user=choice.user, notice__kind=notice.kind, created_at__gt=now - _HOUR)
        .exclude(status__in=[NoticeMessageStatus.GATHERED, NoticeMessageStatus.TOLD])
    )
    told = lately.values("notice").distinct().count()
    return told >= limits.NOTICES_AT_ONCE_MOST
