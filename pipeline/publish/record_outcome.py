"""Writes the outcome of a publication: success, failure or unknown."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import F

from config.core import limits as core_limits
from config.core import states
from config.core.crash_points import crash_point
from pipeline import limits, mailing
from pipeline.models import Attempt, AttemptStatus, Outlet, Publication
from pipeline.outlets import health
from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.platforms.base import Sent
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from pipeline.publish.item_status_and_events import (
    lock_item,
    notify_of_late_answer,
    record_publication_event,
    refresh_item,
)
from pipeline.publish.payload import effective_overrides, fit_payload, payload_for, read_content
from pipeline.publish.timing.postpone import is_overdue, no_later_than_overdue, write_scheduled

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pipeline.outlets.outlet_client import OutletConnection
    from pipeline.platforms.base import Platform
    from pipeline.platforms.payload_types import Adapted

LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)
MAX_MESSAGE_CHARACTERS: Final = 1000
"""The length to which each text of a failure is cut before it is stored."""


def record_success(row: Publication, sent: Sent, now: datetime, *, attempt: Attempt | None) -> None:
    """Record that the publication was published, close its attempt and emit the event.

    `attempt` is `None` if no call of this task sent it: then every open attempt is closed. If a late answer
    names another post, the publication gets an error and the workspace a notice that it may be public twice.
    """
    with transaction.atomic():
        item = lock_item(row.item)
        platform = platform_of(row.platform)
        has_finish = platform.wants_finish(account_of(row.outlet))
        # If a person said that it was sent, there is no id, and no mailing is made again.
        if platform.mails_subscribers and sent.external_id:
            sent = mailing.issue(row, _post_of(row, platform), now=now)
        # Only a post with more than one call can exist twice.
        late_attempt = find_late_answer(row) if attempt is None or attempt.number > 1 else None
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
            overrides=effective_overrides(read_content(row), row.outlet, row.overrides),
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
    return fit_payload(payload_for(row), row.outlet, platform, account_of(row.outlet))


def record_failure(
    row: Publication,
    error: PluginError,
    now: datetime,
    *,
    attempt: Attempt | None,
    tries: int | None = None,
    connection: OutletConnection | None = None,
) -> None:
    """Record that a publication was provably not published: it is due again by the schedule, or has failed.

    If an earlier call's late answer is known, the publication is published by it instead. What was prepared is
    kept, so that a retry goes on from there. `NeedsReconnect` marks the outlet as lost, and a rate limit of
    the account pauses it. `connection` removes the account's secrets from the error that is stored.

    `tries` is the number of tries including this one. A failure before the call counts as a try of its own;
    one that a look-up found belongs to a call that was counted when it was armed.
    """
    with transaction.atomic():
        item = lock_item(row.item)
        late_attempt = find_late_answer(row)
        if late_attempt is not None:
            # This call failed, but an earlier one that had been given up got through: nothing is sent again.
            _close_attempts(row, "failed", serialize_failure(error, is_retried=False), now, attempt=attempt)
            record_late_success(late_attempt, row, now)
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
            "wake_at": next_at and (next_at if is_late else no_later_than_overdue(row, next_at)),
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


def record_late_success(attempt: Attempt, row: Publication, now: datetime) -> None:
    """Record that the publication was published by the attempt whose answer came late."""
    late_answer = answer_of(attempt)
    row.revision = attempt.revision
    sent = Sent(late_answer["external_id"], late_answer["url"], late_answer["details"])
    record_success(row, sent, now, attempt=None)


def note_metrics(publication_id: UUID, metrics: Mapping[str, int | None], *, now: datetime) -> None:
    """Store the newest numbers with the publication, for its JSON; the measurements are kept as facts."""
    Publication.everywhere.filter(pk=publication_id).update(
        metrics=dict(metrics), version=F("version") + 1, updated_at=now
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
    """Pause the account until that moment, unless it is paused for longer already."""
    outlets = Outlet.everywhere.filter(pk=row.outlet_id).exclude(rests_until__gte=until)
    outlets.update(rests_until=until, version=F("version") + 1)


# --- What is stored of an answer -------------------------------------------------------------------------------------


def serialize_failure(
    error: PluginError, *, is_retried: bool, connection: OutletConnection | None = None
) -> dict[str, Any]:
    """Return a failure as its publication and its event store it, without the connection's secrets."""

    def redact(text: str) -> str:
        return str(clean_for_storage(connection.redact(text) if connection else text))[
            :MAX_MESSAGE_CHARACTERS
        ]

    return {
        "code": error.code,
        "class": error.error_class,
        "message": redact(error.message),
        "action": redact(error.action),
        "retryable": is_retried,
        "platform_status": error.platform_status,
        "platform_message": redact(error.platform_message) or None,
    }


def clean_for_storage(value: Any) -> Any:
    """Return a platform's answer without what no database stores: lone surrogates and NUL."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if isinstance(value, dict):
        return {clean_for_storage(name): clean_for_storage(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [clean_for_storage(member) for member in value]
    return value


def find_late_answer(row: Publication) -> Attempt | None:
    """Return the newest attempt that its platform answered after it had been given up, or `None`."""
    rows = Attempt.everywhere.filter(publication=row, late_answer__isnull=False)
    attempt: Attempt | None = rows.order_by("-number").first()
    return attempt


def answer_of(attempt: Attempt) -> dict[str, Any]:
    """Return the late answer of an attempt, or an empty dict if there is none."""
    answer: dict[str, Any] = attempt.late_answer or {}
    return answer


def posted_twice_error(external_id: str, attempt: Attempt) -> dict[str, Any]:
    """Return the stored error of a post that may be public twice."""
    late_id = answer_of(attempt)["external_id"]
    message = (
        f"It may have been published twice, as {external_id or 'a post whose number isn’t known'} and as "
        f"{late_id}: the platform took call {attempt.number} after it had been given up and the post sent "
        "again."
    )
    action = f"Check both on the platform, and delete one{_parenthesized_url(attempt)}."
    return serialize_failure(OutcomeUnknown(message, code="posted_twice", action=action), is_retried=False)


def posted_after_all_error(attempt: Attempt) -> dict[str, Any]:
    """Return the stored error of a post that is public although its call had been given up."""
    late_id = answer_of(attempt)["external_id"]
    message = (
        f"It was published after all, as {late_id}: the platform took call {attempt.number} after it had "
        "been given up."
    )
    action = f"Delete it on the platform, or leave it{_parenthesized_url(attempt)}."
    return serialize_failure(
        OutcomeUnknown(message, code="posted_after_all", action=action), is_retried=False
    )


def _parenthesized_url(attempt: Attempt) -> str:
    """Return the late answer's address in parentheses after a space, or an empty string without one."""
    url = answer_of(attempt)["url"]
    return f" ({url})" if url else ""
