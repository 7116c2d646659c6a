"""Ask a platform what became of a call whose outcome nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from django.db import transaction

from config.ground import hands, limits, states
from config.ground.clock import utc_now
from config.ground.crash import crash_point
from pipeline.connection import connect, platform_of
from pipeline.platforms.base import Absent, CannotTell, Found
from pipeline.plugins import PluginError, TryLater
from pipeline.stages.outlets.renewing import fresh_credentials
from pipeline.stages.publish.doubting import is_in_doubt, was_never_called
from pipeline.stages.publish.item_status import locked, refresh_item
from pipeline.stages.publish.payload import key_of, post_for, post_of_attempt
from pipeline.stages.publish.recording import (
    LEASE,
    next_look,
    record_failure,
    record_success,
    tell,
    write_scheduled,
)

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.models import Publication

log = structlog.get_logger(__name__)


def look_up(row: Publication, now: datetime) -> None:
    """Ask the platform whether it has the item. Found: published; absent: due again; can't tell: ask again later."""
    if row.outlet.deleted_at is not None:
        # Disconnected meanwhile: nobody can be asked any more.
        look_again(row, now)
        return
    if platform_of(row.platform).mails_subscribers and is_in_doubt(row):
        # Found would mail everybody, perhaps a second time: a person says what is so.
        look_again(row, now)
        return
    answer: Found | Absent | CannotTell | None
    try:
        connection = connect(fresh_credentials(row.outlet, now=now))
        row.renew_lease(LEASE)
        answer = connection.platform.reconcile(
            connection.account,
            post_of_attempt(row, post_for(row, connection)),
            row.step_state,
            http=connection.http,
            key=key_of(row),
            now=now,
        )
    except PluginError as failure:
        log.info("lookup_failed", publication=key_of(row), code=failure.code)
        answer = None
    crash_point("publish.reconciled")
    now = utc_now()
    if isinstance(answer, Found):
        record_success(row, answer.sent, now, attempt=None)
    elif isinstance(answer, Absent):
        note_absent(row, now, answer)
    else:
        look_again(row, now)


def note_absent(row: Publication, now: datetime, absent: Absent | None = None) -> None:
    """The platform doesn't have it, or only the beginning of a thread: due again by the schedule of retries or, where no call was made, as promised."""
    if was_never_called(row):
        with transaction.atomic():
            item = locked(row.item)
            row.next_attempt_at = None
            states.move(
                row,
                "scheduled",
                under_lease=True,
                error=None,
                unknown_since=None,
                lookups=0,
                next_attempt_at=None,
                wake_at=next_look(row),
                attempts=0,
                step="prepare",
                step_state={},
                updated_at=now,
            )
            refresh_item(item, now=now)
            hands.nudge("pipeline.publish")
        return
    if absent is not None and absent.there:
        message = f"{absent.there} of {absent.parts} posts of the thread are public; it goes on after them."
        error = TryLater(message, code="thread_unfinished")
    else:
        error = TryLater("The platform doesn't have it, so it is sent again.", code="not_accepted")
    record_failure(row, error, now, attempt=None, tries=row.attempt_count)


def look_again(row: Publication, now: datetime) -> None:
    """Still unknown: look again later, and tell once after an hour; the publication stays as it is for a person."""
    with transaction.atomic():
        item = locked(row.item)
        every = limits.RECONCILE_EVERY
        look_at = now + every[min(row.lookups + 1, len(every) - 1)]
        tell_at = (row.unknown_since or now) + limits.UNKNOWN_TOLD_AFTER
        is_time_to_tell = row.unknown_told_at is None and now >= tell_at
        if row.unknown_told_at is None and not is_time_to_tell:
            # Its people are told when the time is up, not at the next look after that.
            look_at = min(look_at, tell_at)
        values: dict[str, Any] = {
            "lookups": row.lookups + 1,
            "next_attempt_at": look_at,
            "wake_at": look_at,
            "attempts": 0,
            "updated_at": now,
        }
        if is_time_to_tell:
            values["unknown_told_at"] = now
        write_scheduled(row, values)
        refresh_item(item, now=now)
        if is_time_to_tell:
            tell(row, item, "published.failed", now, will_retry=False)
