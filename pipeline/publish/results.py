"""Write what became of a publication."""

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
    with transaction.atomic():
        item = lock_item(row.item)
        platform = platform_of(row.platform)
        has_finish = platform.wants_finish(account_of(row.outlet))
        # A person's word that it was sent before makes no second mailing: it names no id.
        if platform.mails_subscribers and sent.external_id:
            sent = mailing.issue(row, _post_of(row, platform), now=now)
        # Only what was called for more than once can be there twice.
        late = late_answer_of(row) if attempt is None or attempt.number > 1 else None
        external_id = clean_for_storage(sent.external_id)[:300]
        twice = (
            posted_twice_error(external_id, late)
            if late is not None and answer_of(late)["external_id"] != external_id
            else None
        )
        states.move(
            row,
            "published",
            under_lease=True,
            # A platform that has something left to do is asked for it at once.
            wake_at=now if has_finish else None,
            step="finish" if has_finish else "done",
            details=clean_for_storage(dict(sent.details)),
            next_attempt_at=None,
            revision=row.revision,
            external_id=external_id,
            url=clean_for_storage(sent.url)[: core_limits.URL_CHARACTERS],
            error=twice,
            waits_for=None,
            unknown_since=None,
            published_at=now,
            # As it was sent, whatever becomes of the item.
            overrides=effective_overrides(words_of(row), row.outlet, row.overrides),
            attempts=0,
            updated_at=now,
        )
        _close_attempts(row, "succeeded", None, now, attempt=attempt)
        if attempt is not None:
            # What has just taken a post works again.
            health.mark_working(row.outlet, now)
        publications = refresh_item(item, now=now)
        record_publication_event(row, item, "published.success", now, publications=publications)
        if twice is not None:
            notify_of_late_answer(row, item, now)
        crash_point("publish.recorded")


def _post_of(row: Publication, platform: Platform) -> Adapted:
    words = words_of(row)
    payload = payload_of(words, effective_overrides(words, row.outlet, row.overrides), of=row.item)
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
    """It was provably not published: due again by the schedule, or failed for good.

    What was prepared is kept, so that a retry goes on from there; `connection` takes the account's secrets
    out of what is told.

    `tries` is how often it was tried with this one. A failure before the call is a try of its own; one that a
    look-up tells is of a call that was counted when it was armed.
    """
    with transaction.atomic():
        item = lock_item(row.item)
        late = late_answer_of(row)
        if late is not None:
            # This call failed, and an earlier one that had been given up has got through: it isn't sent once
            # more.
            _close_attempts(row, "failed", serialize_failure(error, is_retried=False), now, attempt=attempt)
            _publish_by(late, row, now)
            return
        if tries is None:
            tries = row.attempt_count if attempt is not None else row.attempt_count + 1
        wait = _wait_after(error, tries)
        next_at = None if wait is None else now + wait
        is_late = next_at is not None and is_overdue(row, now)
        shown = serialize_failure(error, is_retried=next_at is not None, connection=connection)
        values: dict[str, Any] = {
            "error": shown,
            "attempt_count": tries,
            "next_attempt_at": next_at,
            "wake_at": next_at and (next_at if is_late else _or_when_overdue(row, next_at)),
            "attempts": 0,
            "step": "prepare",
            "unknown_since": None,
            "lookups": 0,
            "waits_for": None,
            "updated_at": now,
        }
        if is_late:
            values["overdue_told_at"] = now
        to = "scheduled" if next_at else "failed"
        if row.status == to:
            write_scheduled(row, values)
        else:
            states.move(row, to, under_lease=True, **values)
        _close_attempts(row, "failed", shown, now, attempt=attempt)
        if isinstance(error, NeedsReconnect):
            health.mark_lost(row.outlet_id, shown, now, test=row.test, request=row.request_id)
        if isinstance(error, TryLater) and error.is_of_account and wait is not None:
            _let_rest(row, now + wait)
        refresh_item(item, now=now)
        record_publication_event(row, item, "published.failed", now, will_retry=next_at is not None)
        if is_late:
            record_publication_event(row, item, "published.overdue", now)
        crash_point("publish.recorded")


def record_unknown(
    row: Publication, error: OutcomeUnknown, now: datetime, *, connection: OutletConnection | None = None
) -> None:
    with transaction.atomic():
        item = lock_item(row.item)
        shown = serialize_failure(error, is_retried=False, connection=connection)
        look_at = now + limits.RECONCILE_EVERY[0]
        states.move(
            row,
            "unknown",
            under_lease=True,
            error=shown,
            unknown_since=now,
            # Each time that its outcome is lost is told of its own.
            unknown_told_at=None,
            lookups=0,
            next_attempt_at=look_at,
            wake_at=look_at,
            attempts=0,
            updated_at=now,
        )
        for attempt in Attempt.everywhere.filter(publication=row, status=AttemptStatus.STARTED):
            states.move(attempt, "unknown", error=shown)
        refresh_item(item, now=now)
        crash_point("publish.recorded")


def keep_late_answer(
    row: Publication, item: GeneratedItem, attempt: Attempt, sent: Sent, now: datetime
) -> None:
    """The platform has the post, and says so when the attempt is closed already: kept, used where nothing was
    sent since, else told. The caller holds item and row.
    """
    # Where our own ledger is the mailing, the answer is no word of a platform.
    if platform_of(row.platform).mails_subscribers:
        return
    external_id = clean_for_storage(sent.external_id)[:300]
    if (
        row.status in {PublicationStatus.PUBLISHED, PublicationStatus.REMOVED}
        and row.external_id == external_id
    ):
        # A look-up has found this very post meanwhile.
        return
    if (
        row.status == PublicationStatus.PUBLISHED
        and not row.external_id
        and attempt.status == AttemptStatus.SUCCEEDED
    ):
        # A person said that it was sent, and couldn't name the id.
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
        take_over(row)
        _publish_by(attempt, row, now)
    elif row.status not in PUBLICATIONS_IN_FLIGHT:
        is_published = row.status == PublicationStatus.PUBLISHED
        shown = (
            posted_twice_error(row.external_id, attempt) if is_published else posted_after_all_error(attempt)
        )
        Publication.everywhere.filter(pk=row.pk).update(error=shown, version=F("version") + 1, updated_at=now)
        row.refresh_from_db(fields=["error", "version", "updated_at"])
        refresh_item(item, now=now)
        notify_of_late_answer(row, item, now)
    # What is being sent again at this moment has its outcome told with this one beside it.


def take_over(row: Publication) -> None:
    """Whoever holds the lease has lost it; the caller holds the row."""
    row.lease_token += 1
    Publication.everywhere.filter(pk=row.pk).update(lease_token=row.lease_token)


def _publish_by(attempt: Attempt, row: Publication, now: datetime) -> None:
    """Published by the call whose answer came late."""
    answer = answer_of(attempt)
    row.revision = attempt.revision
    sent = Sent(answer["external_id"], answer["url"], answer["details"])
    record_success(row, sent, now, attempt=None)


def note_metrics(publication_id: UUID, metrics: Mapping[str, int | None], *, now: datetime) -> None:
    """Keep the newest numbers beside the publication, for its JSON; the measurements themselves are the
    facts.
    """
    Publication.everywhere.filter(pk=publication_id).update(
        metrics=dict(metrics), version=F("version") + 1, updated_at=now
    )


def put_off(
    row: Publication, until: datetime, now: datetime, *, waits_for: Mapping[str, Any] | None = None
) -> None:
    """Give a scheduled publication back unsent; where that makes it overdue, tell so in the same transaction.

    `waits_for` is what it says of itself meanwhile. What it said of a promise that is still to come stays.
    """
    values: dict[str, Any] = {"attempts": 0}
    if waits_for is not None and waits_for != row.waits_for:
        values |= {"waits_for": dict(waits_for), "version": row.version + 1, "updated_at": now}
    if not is_overdue(row, now):
        row.sleep_until(_or_when_overdue(row, until), **values)
        return
    with transaction.atomic():
        item = lock_item(row.item)
        # Where nothing that is shown changes, the version stays.
        values["overdue_told_at"] = now
        if not row.sleep_until(until, **values):
            raise overtaken_error()
        for name, value in values.items():
            setattr(row, name, value)
        record_publication_event(row, item, "published.overdue", now)


def is_overdue(row: Publication, now: datetime) -> bool:
    """Whether its people have to be told by now that it is late, and were not."""
    tell_at = _overdue_at(row)
    return tell_at is not None and now >= tell_at


def next_wake_at(row: Publication) -> datetime | None:
    """When a task looks at a scheduled publication: for its next try, or before that to tell that it is late."""
    moment = row.next_attempt_at or row.due_at
    return moment and _or_when_overdue(row, moment)


def _or_when_overdue(row: Publication, until: datetime) -> datetime:
    tell_at = _overdue_at(row)
    return until if tell_at is None else min(until, tell_at)


def _overdue_at(row: Publication) -> datetime | None:
    if row.overdue_told_at is not None or row.due_at is None:
        return None
    return row.due_at + limits.OVERDUE_TOLD_AFTER


def write_scheduled(row: Publication, values: Mapping[str, Any]) -> None:
    """A failure before the call leaves the status as it is; the lease still has to hold."""
    if not row.under_lease().update(**values, version=F("version") + 1):
        raise overtaken_error()
    for name, value in values.items():
        setattr(row, name, value)
    row.version += 1


def overtaken_error() -> states.Overtaken:
    return states.Overtaken(
        Detail("status", "changed_meanwhile", "Changed meanwhile. Reload it and try again.")
    )


def _wait_after(error: PluginError, tries: int) -> timedelta | None:
    """None where it is not tried again: the content is refused, or its tries are used up."""
    if isinstance(error, Refused) or tries > len(limits.PUBLISH_RETRIES):
        return None
    planned = limits.PUBLISH_RETRIES[max(tries, 1) - 1]
    asked = error.after if isinstance(error, TryLater) else None
    # A platform that names a time is believed, up to a day; a shorter time than the schedule's is taken too.
    if asked is None:
        return planned
    # Short waits, one after the other, would use all tries up within seconds.
    least = timedelta(0) if tries <= 1 else limits.ASKED_AT_LEAST
    return min(max(asked, least), timedelta(days=1))


def _close_attempts(
    row: Publication, to: str, error: Mapping[str, Any] | None, now: datetime, *, attempt: Attempt | None
) -> None:
    """The attempt of this call, or every one whose outcome was open until a look-up told it."""
    open_ones = [attempt] if attempt is not None else list(Attempt.everywhere.open().filter(publication=row))
    for one in open_ones:
        states.move(one, to, error=error, finished_at=now)


def _let_rest(row: Publication, until: datetime) -> None:
    """The platform wants the whole account to wait: the longest that it ever named holds."""
    rows = Outlet.everywhere.filter(pk=row.outlet_id).exclude(rests_until__gte=until)
    rows.update(rests_until=until, version=F("version") + 1)
