"""Writes the outcome of a publication: success, failure, unknown, or an answer that came late."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F

from config.core import limits as core_limits
from config.core import states
from config.core.crash_points import crash_point
from config.core.datetimes import as_z
from config.core.errors import Detail
from config.core.ids import encode
from pipeline import limits, mailing
from pipeline.models import Attempt, AttemptStatus, GeneratedItem, Outlet, Publication, PublicationStatus
from pipeline.outlets import health
from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.platforms.base import Sent
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from pipeline.publish.events_and_notices import notify_of_late_answer, record_publication_event
from pipeline.publish.item_status import lock_item, refresh_item
from pipeline.publish.payload import effective_overrides, fit_payload, payload_of, words_of
from pipeline.publish.platform_responses import (
    answer_of,
    clean_for_storage,
    late_answer_of,
    posted_after_all_error,
    posted_twice_error,
    serialize_failure,
)
from pipeline.states import PUBLICATIONS_IN_FLIGHT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pipeline.outlets.outlet_client import OutletConnection
    from pipeline.platforms.base import Platform
    from pipeline.platforms.payload_types import Adapted

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)


def record_success(row: Publication, sent: Sent, now: datetime, *, attempt: Attempt | None) -> None:
    """Record that the publication was published, close its attempt and emit the event.

    `attempt` is `None` if no call of this task sent it: then every open attempt is closed.
    """
    with transaction.atomic():
        item = lock_item(row.item)
        platform = platform_of(row.platform)
        has_finish = platform.wants_finish(account_of(row.outlet))
        # If a person said that it was sent, there is no id, and no mailing is made again.
        if platform.mails_subscribers and sent.external_id:
            sent = mailing.issue(row, _post_of(row, platform), now=now)
        # Only a post with more than one call can exist twice.
        late_attempt = late_answer_of(row) if attempt is None or attempt.number > 1 else None
        external_id = clean_for_storage(sent.external_id)[:300]
        duplicate_error = (
            posted_twice_error(external_id, late_attempt)
            if late_attempt is not None and answer_of(late_attempt)["external_id"] != external_id
            else None
        )
        states.move(
            row,
            "published",
            under_lease=True,
            # A platform that has something left to do is called for it at once.
            wake_at=now if has_finish else None,
            step="finish" if has_finish else "done",
            details=clean_for_storage(dict(sent.details)),
            next_attempt_at=None,
            revision=row.revision,
            external_id=external_id,
            url=clean_for_storage(sent.url)[: core_limits.URL_CHARACTERS],
            error=duplicate_error,
            waits_for=None,
            unknown_since=None,
            published_at=now,
            # Kept as it was sent, whatever becomes of the item.
            overrides=effective_overrides(words_of(row), row.outlet, row.overrides),
            attempts=0,
            updated_at=now,
        )
        _close_attempts(row, "succeeded", None, now, attempt=attempt)
        if attempt is not None:
            # An outlet that has just taken a post works again.
            health.mark_working(row.outlet, now)
        publications = refresh_item(item, now=now)
        record_publication_event(row, item, "published.success", now, publications=publications)
        if duplicate_error is not None:
            notify_of_late_answer(row, item, now)
        crash_point("publish.recorded")


def _post_of(row: Publication, platform: Platform) -> Adapted:
    """Return the post as its platform takes it."""
    content = words_of(row)
    payload = payload_of(content, effective_overrides(content, row.outlet, row.overrides), of=row.item)
    return fit_payload(payload, row.outlet, platform, account_of(row.outlet))


def record_failure(
    row: Publication,
    error: PluginError,
    now: datetime,
    *,
    attempt: Attempt | None,
    tries: int | None = None,
    connection: OutletConnection | None = None,
) -> None:
    """Record that it was provably not published: it is due again by the schedule, or failed for good.

    What was prepared is kept, so that a retry goes on from there.
    `connection` removes the account's secrets from the error that is stored.

    `tries` is the number of tries including this one. A failure before the call counts as a try
    of its own; one that a look-up found belongs to a call that was counted when it was armed.
    """
    with transaction.atomic():
        item = lock_item(row.item)
        late_attempt = late_answer_of(row)
        if late_attempt is not None:
            # This call failed, but an earlier one that had been given up got through, so it isn't sent again.
            _close_attempts(row, "failed", serialize_failure(error, is_retried=False), now, attempt=attempt)
            _record_late_success(late_attempt, row, now)
            return
        if tries is None:
            tries = row.attempt_count if attempt is not None else row.attempt_count + 1
        wait = _retry_wait(error, tries)
        next_at = None if wait is None else now + wait
        is_late = next_at is not None and is_overdue(row, now)
        serialized = serialize_failure(error, is_retried=next_at is not None, connection=connection)
        values: dict[str, Any] = {
            "error": serialized,
            "attempt_count": tries,
            "next_attempt_at": next_at,
            "wake_at": next_at and (next_at if is_late else _no_later_than_overdue(row, next_at)),
            "attempts": 0,
            "step": "prepare",
            "unknown_since": None,
            "lookups": 0,
            "waits_for": None,
            "updated_at": now,
        }
        if is_late:
            values["overdue_told_at"] = now
        new_status = "scheduled" if next_at else "failed"
        if row.status == new_status:
            write_scheduled(row, values)
        else:
            states.move(row, new_status, under_lease=True, **values)
        _close_attempts(row, "failed", serialized, now, attempt=attempt)
        if isinstance(error, NeedsReconnect):
            health.mark_lost(row.outlet_id, serialized, now, test=row.test, request=row.request_id)
        if isinstance(error, TryLater) and error.is_of_account and wait is not None:
            _pause_outlet(row, now + wait)
        refresh_item(item, now=now)
        record_publication_event(row, item, "published.failed", now, will_retry=next_at is not None)
        if is_late:
            record_publication_event(row, item, "published.overdue", now)
        crash_point("publish.recorded")


def record_unknown(
    row: Publication, error: OutcomeUnknown, now: datetime, *, connection: OutletConnection | None = None
) -> None:
    """Record that the outcome of the call isn't known, so that a look-up asks the platform."""
    with transaction.atomic():
        item = lock_item(row.item)
        serialized = serialize_failure(error, is_retried=False, connection=connection)
        lookup_at = now + limits.RECONCILE_EVERY[0]
        states.move(
            row,
            "unknown",
            under_lease=True,
            error=serialized,
            unknown_since=now,
            # Each time that the outcome is lost gets a notice of its own.
            unknown_told_at=None,
            lookups=0,
            next_attempt_at=lookup_at,
            wake_at=lookup_at,
            attempts=0,
            updated_at=now,
        )
        for attempt in Attempt.everywhere.filter(publication=row, status=AttemptStatus.STARTED):
            states.move(attempt, "unknown", error=serialized)
        refresh_item(item, now=now)
        crash_point("publish.recorded")


def keep_late_answer(
    row: Publication, item: GeneratedItem, attempt: Attempt, sent: Sent, now: datetime
) -> None:
    """Keep a platform's answer that came after the attempt was closed; the platform has the post.

    It is used if nothing was sent since, else it is reported. The caller has locked item and row.
    """
    # Our own ledger is the mailing here, so the answer isn't a platform's.
    if platform_of(row.platform).mails_subscribers:
        return
    external_id = clean_for_storage(sent.external_id)[:300]
    if (
        row.status in {PublicationStatus.PUBLISHED, PublicationStatus.REMOVED}
        and row.external_id == external_id
    ):
        # A look-up has found this same post meanwhile.
        return
    if (
        row.status == PublicationStatus.PUBLISHED
        and not row.external_id
        and attempt.status == AttemptStatus.SUCCEEDED
    ):
        # A person said that it was sent, but couldn't name the id.
        Publication.everywhere.filter(pk=row.pk).update(
            external_id=external_id,
            url=row.url or clean_for_storage(sent.url)[: core_limits.URL_CHARACTERS],
            details=clean_for_storage(dict(sent.details)),
            version=F("version") + 1,
            updated_at=now,
        )
        refresh_item(item, now=now)
        return
    attempt.late_answer = {
        "external_id": external_id,
        "url": clean_for_storage(sent.url)[: core_limits.URL_CHARACTERS],
        "details": clean_for_storage(dict(sent.details)),
        "at": as_z(now),
    }
    Attempt.everywhere.filter(pk=attempt.pk).update(late_answer=attempt.late_answer)
    log.error(
        "late_answer",
        publication=encode("pub", row.pk),
        attempt=attempt.number,
        status=row.status,
        external_id=external_id,
    )
    if row.status in {PublicationStatus.SCHEDULED, PublicationStatus.FAILED} and item.deleted_at is None:
        take_lease(row)
        _record_late_success(attempt, row, now)
    elif row.status not in PUBLICATIONS_IN_FLIGHT:
        is_published = row.status == PublicationStatus.PUBLISHED
        new_error = (
            posted_twice_error(row.external_id, attempt) if is_published else posted_after_all_error(attempt)
        )
        Publication.everywhere.filter(pk=row.pk).update(
            error=new_error, version=F("version") + 1, updated_at=now
        )
        row.refresh_from_db(fields=["error", "version", "updated_at"])
        refresh_item(item, now=now)
        notify_of_late_answer(row, item, now)
    # If it is being sent again just now, its outcome is reported together with this answer.


def take_lease(row: Publication) -> None:
    """Take the lease from whoever holds it. The caller has locked the row."""
    row.lease_token += 1
    Publication.everywhere.filter(pk=row.pk).update(lease_token=row.lease_token)


def _record_late_success(attempt: Attempt, row: Publication, now: datetime) -> None:
    """Record that the publication was published by the call whose answer came late."""
    late_answer = answer_of(attempt)
    row.revision = attempt.revision
    sent = Sent(late_answer["external_id"], late_answer["url"], late_answer["details"])
    record_success(row, sent, now, attempt=None)


def note_metrics(publication_id: UUID, metrics: Mapping[str, int | None], *, now: datetime) -> None:
    """Store the newest numbers with the publication, for its JSON.

    The measurements themselves are kept as facts.
    """
    Publication.everywhere.filter(pk=publication_id).update(
        metrics=dict(metrics), version=F("version") + 1, updated_at=now
    )


def postpone(
    row: Publication, until: datetime, now: datetime, *, waits_for: Mapping[str, Any] | None = None
) -> None:
    """Give a scheduled publication back unsent; if it is overdue by now, emit that in the same transaction.

    `waits_for` says what it waits for meanwhile. Without one, what it said before stays.
    """
    values: dict[str, Any] = {"attempts": 0}
    if waits_for is not None and waits_for != row.waits_for:
        values |= {"waits_for": dict(waits_for), "version": row.version + 1, "updated_at": now}
    if not is_overdue(row, now):
        row.sleep_until(_no_later_than_overdue(row, until), **values)
        return
    with transaction.atomic():
        item = lock_item(row.item)
        # The version stays, because nothing that is shown changes.
        values["overdue_told_at"] = now
        if not row.sleep_until(until, **values):
            raise overtaken_error()
        for name, value in values.items():
            setattr(row, name, value)
        record_publication_event(row, item, "published.overdue", now)


def is_overdue(row: Publication, now: datetime) -> bool:
    """Return whether its people have to be told by now that it is late, and weren't yet."""
    notice_at = _overdue_notice_at(row)
    return notice_at is not None and now >= notice_at


def next_wake_at(row: Publication) -> datetime | None:
    """Return when a task takes a scheduled publication next.

    That is its next try, or before that the time to report that it is late.
    """
    planned_at = row.next_attempt_at or row.due_at
    return planned_at and _no_later_than_overdue(row, planned_at)


def _no_later_than_overdue(row: Publication, until: datetime) -> datetime:
    """Return `until`, or the time of the overdue notice if that is earlier."""
    notice_at = _overdue_notice_at(row)
    return until if notice_at is None else min(until, notice_at)


def _overdue_notice_at(row: Publication) -> datetime | None:
    """Return when to report that the publication is late; `None` if that was done, or it has no due time."""
    if row.overdue_told_at is not None or row.due_at is None:
        return None
    return row.due_at + limits.OVERDUE_TOLD_AFTER


def write_scheduled(row: Publication, values: Mapping[str, Any]) -> None:
    """Write a failure before the call, which leaves the status as it is.

    Raises `Overtaken` if the lease isn't ours any more.
    """
    if not row.under_lease().update(**values, version=F("version") + 1):
        raise overtaken_error()
    for name, value in values.items():
        setattr(row, name, value)
    row.version += 1


def overtaken_error() -> states.Overtaken:
    """Return the error for a publication that was changed meanwhile."""
    return states.Overtaken(
        Detail("status", "changed_meanwhile", "It was changed in the meantime. Reload it and try again.")
    )


def _retry_wait(error: PluginError, tries: int) -> timedelta | None:
    """Return how long to wait before the next try; `None` if the content was refused or no tries are left."""
    if isinstance(error, Refused) or tries > len(limits.PUBLISH_RETRIES):
        return None
    scheduled_wait = limits.PUBLISH_RETRIES[max(tries, 1) - 1]
    requested_wait = error.after if isinstance(error, TryLater) else None
    # A platform's own time is used, up to a day, even if it is shorter than the schedule's.
    if requested_wait is None:
        return scheduled_wait
    # A series of short waits would use up all tries within seconds.
    shortest_wait = timedelta(0) if tries <= 1 else limits.ASKED_AT_LEAST
    return min(max(requested_wait, shortest_wait), timedelta(days=1))


def _close_attempts(
    row: Publication,
    new_status: str,
    error: Mapping[str, Any] | None,
    now: datetime,
    *,
    attempt: Attempt | None,
) -> None:
    """Close the attempt of this call, or without one every attempt whose outcome was open until now."""
    open_attempts = (
        [attempt] if attempt is not None else list(Attempt.everywhere.open().filter(publication=row))
    )
    for open_attempt in open_attempts:
        states.move(open_attempt, new_status, error=error, finished_at=now)


def _pause_outlet(row: Publication, until: datetime) -> None:
    """Pause the account for as long as the platform wants; the longest time that it ever named holds."""
    outlets = Outlet.everywhere.filter(pk=row.outlet_id).exclude(rests_until__gte=until)
    outlets.update(rests_until=until, version=F("version") + 1)
