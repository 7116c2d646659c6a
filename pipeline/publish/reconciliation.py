"""Resolves publications of unknown outcome, by asking the platform or a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.db.models import Max

from accounts import audit
from config.core import dispatcher, ids, states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import Conflict
from pipeline import limits
from pipeline.models import Attempt, Publication, PublicationStatus
from pipeline.outlets.outlet_client import connect, platform_of
from pipeline.outlets.renewal import fresh_credentials
from pipeline.platforms.base import Absent, CannotTell, Found, Sent
from pipeline.plugins import OutcomeUnknown, PluginError, Refused, TryLater
from pipeline.publish.item_status_and_events import lock_item, record_publication_event, refresh_item
from pipeline.publish.payload import key_of, post_for, post_of_attempt
from pipeline.publish.record_outcome import LEASE, record_failure, record_success, serialize_failure
from pipeline.publish.send import LONGEST_CALL
from pipeline.publish.timing.postpone import next_wake_at, write_scheduled

if TYPE_CHECKING:
    from datetime import datetime

NOT_THERE_YET_MESSAGE: Final = "The platform doesn't have it yet. The call may still get through, so it is looked up again before it is sent again."

log = structlog.get_logger(__name__)
RESTORED_CODE: Final = "restored"
"""The `error.code` of a publication whose outcome is unknown because of a restore."""
RESTORED_MESSAGE: Final = (
    "The service was restored from a backup. The platform is asked whether it already has this before "
    "anything is sent."
)
RESTORED_UNVERIFIABLE_MESSAGE: Final = (
    "The service was restored from a backup, and this platform can't be asked whether it already has "
    "this. Look there; then the operator records the outcome with manage.py settle_publication."
)
RESTORED_MAILING_MESSAGE: Final = (
    "The service was restored from a backup, so it is unknown whether this was mailed since. Ask a "
    "subscriber; then the operator records the outcome with manage.py settle_publication."
)
NOT_POSTED_MESSAGE: Final = "It was marked as not posted."
NOT_POSTED_ACTION: Final = "Retry it to have it handed over again, or leave it."


def look_up(row: Publication, now: datetime) -> None:
    """Ask the platform whether it has the post, and record the answer.

    A post that was found is published. One that is absent is due again, or looked up again if a call may still
    get through. The next lookup is planned if the platform can't tell, if the outlet was disconnected, and if
    it is unknown after a restore whether a mailing was sent.
    """
    if row.outlet.deleted_at is not None:
        # The outlet was disconnected in the meantime, so the platform can't be asked any more.
        schedule_next_lookup(row, now)
        return
    if platform_of(row.platform).mails_subscribers and is_in_doubt(row):
        # Sending again would mail everybody, perhaps a second time: a person has to decide.
        schedule_next_lookup(row, now)
        return
    answer: Found | Absent | CannotTell | None
    asked_at = now
    try:
        connection = connect(fresh_credentials(row.outlet, now=now))
        row.renew_lease(LEASE)
        asked_at = utc_now()
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
        absence_valid_from = find_absence_valid_from(row)
        if absence_valid_from is not None and asked_at < absence_valid_from:
            schedule_next_lookup(row, now, at=absence_valid_from)
        else:
            note_absent(row, now, answer)
    else:
        schedule_next_lookup(row, now)


def find_absence_valid_from(row: Publication) -> datetime | None:
    """Return the moment before which "not there" proves nothing, or `None` if no call is open.

    Until then a call may still be under way, or its post may not show yet.
    """
    open_attempts = Attempt.everywhere.open().filter(publication=row)
    started_at: datetime | None = open_attempts.aggregate(at=Max("started_at"))["at"]
    return started_at and started_at + LONGEST_CALL + platform_of(row.platform).settles


def note_absent(row: Publication, now: datetime, absent: Absent | None = None) -> None:
    """Make a publication due again whose platform has no post, or only the beginning of its thread.

    It is due by the schedule of retries, and not before its absence counts; if no call was made, at its
    scheduled time. Without a retry left, it has failed.
    """
    if was_never_called(row):
        with transaction.atomic():
            item = lock_item(row.item)
            row.next_attempt_at = None
            states.move(
                row,
                "scheduled",
                under_lease=True,
                error=None,
                unknown_since=None,
                lookups=0,
                next_attempt_at=None,
                wake_at=next_wake_at(row),
                attempts=0,
                step="prepare",
                step_state={},
                updated_at=now,
            )
            refresh_item(item, now=now)
            dispatcher.wake()
        return
    # A person may settle it while the call is still under way: nothing is sent next to that call.
    absence_valid_from = find_absence_valid_from(row)
    retry_wait = limits.PUBLISH_RETRIES[min(max(row.attempt_count, 1), len(limits.PUBLISH_RETRIES)) - 1]
    after = (
        absence_valid_from - now
        if absence_valid_from is not None and absence_valid_from > now + retry_wait
        else None
    )
    if absent is not None and absent.there:
        message = f"{absent.there} of {absent.parts} posts of the thread are public. The rest follow."
        error = TryLater(message, code="thread_unfinished", after=after)
    else:
        message = "The platform doesn't have it, so it is sent again."
        error = TryLater(message, code="not_accepted", after=after)
    record_failure(row, error, now, attempt=None, tries=row.attempt_count)


def schedule_next_lookup(row: Publication, now: datetime, *, at: datetime | None = None) -> None:
    """Keep the outcome unknown, plan the next lookup, and report it once, after `limits.UNKNOWN_TOLD_AFTER`.

    `at` is when absence will count, if the platform was asked too early and didn't have the post.
    """
    with transaction.atomic():
        item = lock_item(row.item)
        intervals = limits.RECONCILE_EVERY
        next_lookup_at = (
            now + intervals[min(row.lookups + 1, len(intervals) - 1)] if at is None else max(at, now)
        )
        report_at = (row.unknown_since or now) + limits.UNKNOWN_TOLD_AFTER
        is_time_to_report = row.unknown_told_at is None and now >= report_at
        if row.unknown_told_at is None and not is_time_to_report:
            # People are notified when the time is up, not at the next lookup after that.
            next_lookup_at = min(next_lookup_at, report_at)
        values: dict[str, Any] = {
            "lookups": row.lookups + 1,
            "next_attempt_at": next_lookup_at,
            "wake_at": next_lookup_at,
            "attempts": 0,
            "updated_at": now,
        }
        if is_time_to_report:
            values["unknown_told_at"] = now
        if at is not None and not is_in_doubt(row):
            values["error"] = serialize_failure(
                OutcomeUnknown(NOT_THERE_YET_MESSAGE, code="not_there_yet"), is_retried=False
            )
        write_scheduled(row, values)
        refresh_item(item, now=now)
        if is_time_to_report:
            record_publication_event(row, item, "published.failed", now, will_retry=False)


def mark_unsent_unknown(*, now: datetime) -> int:
    """Mark unsent publications as unknown after a restore; return how many.

    Publications that aren't due yet are marked too, because a person may have published them earlier. Three
    kinds are left as they are: what the platform shows out of our own database (the workspace's feed), what a
    person posts and can look up, and what was being sent. Mailings are always marked.
    """
    count = 0
    with transaction.atomic():
        unsent = Publication.everywhere.unsent()
        for key in list(unsent.order_by("item_id", "id").values_list("pk", flat=True)):
            row = Publication.everywhere.select_related("item").get(pk=key)
            platform = platform_of(row.platform)
            is_known_here = platform.posts_are_ours or row.status == PublicationStatus.PUBLISHING
            if platform.is_by_hand or (is_known_here and not platform.mails_subscribers):
                continue
            # Rows are locked one by one and in this order: item, then publication, as everywhere.
            item = lock_item(row.item)
            message = RESTORED_MESSAGE if platform.can_reconcile else RESTORED_UNVERIFIABLE_MESSAGE
            message = RESTORED_MAILING_MESSAGE if platform.mails_subscribers else message
            failure = serialize_failure(OutcomeUnknown(message, code=RESTORED_CODE), is_retried=False)
            states.move(
                row,
                "unknown",
                error=failure,
                unknown_since=now,
                unknown_told_at=None,
                lookups=0,
                next_attempt_at=now,
                wake_at=now,
                updated_at=now,
                **work_queue.overtake(),
            )
            refresh_item(item, now=now)
            count += 1
    return count


def is_in_doubt(row: Publication) -> bool:
    """Return whether the outcome is unknown because of a restore, after which our ledger isn't complete."""
    return bool(row.error and row.error.get("code") == RESTORED_CODE)


def was_never_called(row: Publication) -> bool:
    """Return whether the outcome is in doubt only because of a restore, with no open call that we know of."""
    return is_in_doubt(row) and not Attempt.everywhere.open().filter(publication=row).exists()


def settle_publication(
    publication: Publication,
    *,
    was_sent: bool,
    url: str = "",
    by: str,
    now: datetime,
    expected_version: int | None = None,
) -> Publication:
    """Record a person's report that a publication was sent, or wasn't.

    If it wasn't, a publication of unknown outcome is sent again, and one that was handed over has failed and
    can be retried. Raises `Conflict` if the publication is neither unknown nor handed over, and
    `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        lock_item(publication.item)
        row: Publication = (
            Publication.everywhere.select_for_update(of=("self",))
            .select_related("item", "outlet", "workspace")
            .get(pk=publication.pk)
        )
        states.refuse_other_version(row.version, expected_version)
        is_handed_over = row.is_handed_over
        if row.status != PublicationStatus.UNKNOWN and not is_handed_over:
            message = f"It is {row.status}; only an unknown outcome can be settled, or what was handed over."
            raise Conflict.because(code="not_unknown", message=message)
        if was_sent:
            record_success(row, Sent(external_id="", url=url), now, attempt=None)
        elif is_handed_over:
            record_failure(
                row,
                Refused(NOT_POSTED_MESSAGE, code="not_posted", action=NOT_POSTED_ACTION),
                now,
                attempt=None,
                tries=1,
            )
        else:
            note_absent(row, now)
        details = {"was_sent": was_sent, "url": url}
        public_id = ids.encode("pub", row.pk)
        audit.note(
            "publication.settled", workspace=row.workspace, actor=by, subject=public_id, details=details
        )
    return row
