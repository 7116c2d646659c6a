"""Polls one claimed source: fetches, stores every entry, sets the next poll, notifies people of failures.

A source with an interval that a person set keeps to it. Any other source has an interval of half of the median
gap between its newest entries, which grows with each poll that brings nothing new. The wait that the server asks
for is a lower bound of both.

Polls that fail in a row make a source `failing`, and after two weeks `gone`, which isn't polled until a
person switches it on. No poll pauses a source: only a person does, by `crud.change`.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts import notices
from accounts.ledger import credits as credit_account
from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.datetimes import format_utc
from config.core.http_client import shared
from pipeline import events, limits, resources
from pipeline.ingest import own_feeds, websub
from pipeline.ingest.collect.ask_source import fetch, follow, host_of
from pipeline.ingest.collect.source_validation import kind_of
from pipeline.ingest.collect.store_entries import take_in
from pipeline.models import Source, SourceStatus
from pipeline.plugins import PluginError, TryLater
from pipeline.states import POLLED_SOURCES
from pipeline.switches import host_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from accounts.models import Workspace
    from pipeline.sources.base import Fetch, Note

log = structlog.get_logger(__name__)

DELISTED_WAIT: Final = timedelta(minutes=10)
"""The time after which a source whose workspace isn't at work checks again whether it may be polled."""
MESSAGE_CHARACTERS: Final = 1000
"""The longest stored message about a failed poll, and the longest note."""
NOTES_KEPT: Final = 20
"""The most stored notes of a source."""


def measure_rhythm(published: Iterable[datetime | None]) -> timedelta | None:
    """Return half of the median gap between the newest entries, or `None` if fewer than two have dates."""
    moments = sorted({moment for moment in published if moment is not None}, reverse=True)
    moments = moments[: limits.POLL_RHYTHM_ENTRIES]
    gaps = [(later - earlier).total_seconds() for later, earlier in pairwise(moments)]
    return timedelta(seconds=median(gaps) / 2) if gaps else None


def own_interval(
    *,
    rhythm: timedelta | None,
    previous: timedelta | None,
    is_new: bool,
    least: timedelta,
    default: timedelta,
) -> timedelta:
    """Return the wait that the source's rhythm leads to, between `least` and `POLL_INTERVAL_MOST`.

    `rhythm` is the result of `measure_rhythm`. `previous` is the wait before this poll, `None` at the first
    one. `is_new` tells whether the poll brought anything new or changed.
    """
    least = max(least, limits.POLL_INTERVAL_LEAST)
    if not is_new and previous is not None:
        interval = previous * limits.POLL_UNCHANGED_FACTOR
    else:
        interval = rhythm or previous or default
    return max(least, min(interval, limits.POLL_INTERVAL_MOST))


def poll_wait(
    interval: timedelta, *, failures: int = 0, at_least: timedelta | None = None, jitter: float = 0.0
) -> timedelta:
    """Return the wait until the next poll, never less than `at_least`.

    The interval doubles for each failure in a row, up to `POLL_BACKOFF_MOST`; a longer interval isn't
    shortened. `jitter`, from 0 to 1, makes it up to a tenth longer, so that sources registered together don't
    come back together for ever.
    """
    doubled = min(interval * float(2 ** min(failures, 16)), max(interval, limits.POLL_BACKOFF_MOST))
    longest: timedelta = max(doubled, at_least or timedelta(0))
    return longest * (1 + jitter / 10)


def poll(source: Source) -> None:
    """Poll one claimed source.

    If its host is busy, the source sleeps for a moment, which isn't counted as a failure. A source that was
    paused, changed or deleted meanwhile stays as it is.
    """
    crash_point("collect.claimed")
    try:
        _poll(source, utc_now())
    except states.Overtaken:
        # A person paused, changed or deleted it meanwhile, and the row says so already.
        log.info("overtaken", source=source.pk.hex)


def give_up(source: Source) -> None:
    """Record that polling broke several times; the source is tried again tomorrow."""
    error = TryLater(
        "Polling this source failed several times; it is tried again tomorrow.", code="poll_broke"
    )
    _record_failure(source, _workspace_of(source), error, utc_now(), wait=timedelta(days=1))


def _poll(source: Source, now: datetime) -> None:
    """Fetch the source and store its entries, or let it sleep. Raises `states.Overtaken` if the row was changed."""
    if source.status not in POLLED_SOURCES or source.deleted_at is not None:
        source.sleep_until(None, attempts=0)
        return
    workspace = _workspace_of(source)
    if not workspace.is_at_work:
        # The sources of a workspace that was delisted, or is to be deleted, aren't polled, and keep their
        # place.
        source.sleep_until(now + DELISTED_WAIT, attempts=0)
        return
    host = host_of(source)
    busy_until = host_lock.take_host(host, source.pk, now)
    if busy_until is not None:
        source.sleep_until(busy_until, attempts=0)
        return
    try:
        fetched = fetch(source, source.fetch_state, http=shared.client(), now=now)
        fetched = own_feeds.leave_out_own(source.workspace_id, fetched)
    except PluginError as failure:
        _record_failure(source, workspace, failure, now)
        return
    finally:
        host_lock.release_host(host, source.pk, utc_now())
    crash_point("collect.fetched")
    if fetched.gone:
        message = "The source says that it is permanently gone (410)."
        _mark_gone(
            source, {"code": "gone", "message": message, "at": format_utc(now)}, now, last_polled_at=now
        )
        return
    is_new, window, notes = take_in(source, workspace, fetched, now)
    fetched = replace(fetched, notes=(*fetched.notes, *notes))
    crash_point("collect.ingested")
    _record_success(source, workspace, fetched, is_new=is_new, window=window, now=now)


def _workspace_of(source: Source) -> Workspace:
    """Return the source's workspace with its plan, read from the database."""
    row: Source = Source.everywhere.select_related("workspace__plan").get(pk=source.pk)
    return row.workspace


def _shortest_interval(workspace: Workspace) -> timedelta:
    """Return the shortest wait between two polls that the workspace's plan allows, a minute without limits."""
    minutes = credit_account.plan_limits(workspace).poll_interval_minutes_least
    return timedelta(minutes=1 if workspace.is_unlimited else minutes)


def interval_of(source: Source, workspace: Workspace) -> timedelta:
    """Return the wait between polls: a person's, else the rhythm's, else the kind's, and at least the plan's."""
    shortest = _shortest_interval(workspace)
    if source.poll_interval_minutes:
        return max(timedelta(minutes=source.poll_interval_minutes), shortest)
    if source.interval_seconds:
        return max(timedelta(seconds=source.interval_seconds), shortest)
    return max(timedelta(minutes=kind_of(source.type).default_interval_minutes), shortest)


def _record_success(
    source: Source,
    workspace: Workspace,
    fetched: Fetch,
    *,
    is_new: bool,
    window: Mapping[str, Any] | None,
    now: datetime,
) -> None:
    """Store the state and notes of a successful poll, set the next one, and end a row of failures."""
    rhythm_interval = own_interval(
        rhythm=measure_rhythm(entry.published_at for entry in fetched.entries),
        previous=timedelta(seconds=source.interval_seconds) if source.interval_seconds else None,
        is_new=is_new,
        least=_shortest_interval(workspace),
        default=timedelta(minutes=kind_of(source.type).default_interval_minutes),
    )
    source.interval_seconds = int(rhythm_interval.total_seconds())
    hub_wait = websub.follow(source, fetched.hub, now=now)
    at_least = max(fetched.wait_at_least or timedelta(0), hub_wait or timedelta(0))
    interval = interval_of(source, workspace)
    next_poll = fetched.quiet.end_after(now + poll_wait(interval, at_least=at_least, jitter=_jitter()))
    move = follow(source, fetched.moved_to, now=now)
    values: dict[str, Any] = {
        "wake_at": next_poll,
        "due_at": next_poll,
        "attempts": 0,
        "fetch_state": dict(fetched.state),
        "window": window,
        "interval_seconds": source.interval_seconds,
        "moved": move.moved,
        "notes": _merge_notes(source, fetched, move.note),
        "last_polled_at": now,
        "last_error": None,
        "failures": 0,
        "failing_since": None,
    }
    if is_new:
        values["last_new_at"] = now
    if move.config is not None:
        values |= {"config": dict(move.config), "updated_at": now}
    if source.status == SourceStatus.FAILING:
        states.move(source, "active", under_lease=True, **values)
        return
    if move.config is not None:
        values["version"] = F("version") + 1
    del values["wake_at"]
    source.sleep_until(next_poll, **values)


def _merge_notes(source: Source, fetched: Fetch, move_note: Note | None) -> list[dict[str, str]]:
    """Return the notes on the source as they are stored.

    A source that answers "not modified" wasn't read again, so its earlier notes still hold.
    """
    notes = [{"code": note.code, "message": note.message[:MESSAGE_CHARACTERS]} for note in fetched.notes]
    if fetched.malformed:
        message = _("%(count)s of its entries could not be read.") % {"count": fetched.malformed}
        notes.append({"code": "malformed_entries", "message": message})
    if fetched.not_modified:
        codes = {note["code"] for note in notes}
        notes += [
            note
            for note in source.notes or []
            if note["code"] not in codes and not note["code"].startswith("moved")
        ]
    if move_note is not None:
        notes.append({"code": move_note.code, "message": move_note.message[:MESSAGE_CHARACTERS]})
    return notes[:NOTES_KEPT]


def _jitter() -> float:
    """Return a random factor for `poll_wait`. Tests replace it."""
    return random.random()  # noqa: S311


def _record_failure(
    source: Source, workspace: Workspace, error: PluginError, now: datetime, *, wait: timedelta | None = None
) -> None:
    """Record the failure and wait longer each time.

    After `POLL_FAILURES_UNTIL_FAILING` failures in a row the source becomes `failing`, and after
    `POLL_DEAD_AFTER` it becomes `gone`; people are notified of both. `wait` replaces the computed wait.
    """
    failures = source.failures + 1
    requested_wait = error.after if isinstance(error, TryLater) else None
    interval = interval_of(source, workspace)
    if source.last_polled_at is None:
        # A person has just added the source and is watching it.
        interval = min(interval, limits.POLL_RETRY_OF_NEW)
    next_poll = now + (
        wait or poll_wait(interval, failures=failures, at_least=requested_wait, jitter=_jitter())
    )
    failing_since = source.failing_since or now
    last_error = {"code": error.code, "message": error.message[:MESSAGE_CHARACTERS], "at": format_utc(now)}
    is_dead = now - failing_since >= limits.POLL_DEAD_AFTER
    if is_dead:
        _mark_gone(source, last_error, now, failures=failures, failing_since=failing_since)
        return
    values: dict[str, Any] = {
        "due_at": next_poll,
        "attempts": 0,
        "failures": failures,
        "failing_since": failing_since,
        "last_error": last_error,
    }
    with transaction.atomic():
        if source.status == SourceStatus.ACTIVE and failures >= limits.POLL_FAILURES_UNTIL_FAILING:
            states.move(source, "failing", under_lease=True, wake_at=next_poll, **values)
            record_failing(source, now)
        else:
            source.sleep_until(next_poll, **values)


def _mark_gone(source: Source, error: Mapping[str, str], now: datetime, **changes: Any) -> None:
    """Mark the source as gone, so that it isn't polled until a person switches it on, and notify people."""
    with transaction.atomic():
        states.move(
            source,
            "gone",
            under_lease=True,
            wake_at=None,
            due_at=None,
            last_error=error,
            attempts=0,
            **changes,
        )
        record_failing(source, now)


def record_failing(source: Source, now: datetime) -> None:
    """Record the event, and a live source's notice, that a source fails or is gone, in the caller's transaction."""
    events.record(
        "source.failing",
        workspace_id=source.workspace_id,
        test=source.test,
        data={"source": resources.Source.serialize(source)},
        source_id=source.pk,
        request=source.request_id,
        now=now,
    )
    if source.test:
        return
    is_gone = source.status == SourceStatus.GONE
    title = _("Source %(name)s is gone") if is_gone else _("Source %(name)s fails")
    advice = _("Not polled until you switch it on.") if is_gone else _("Retrying more slowly.")
    notices.record(
        "source_failing",
        workspace_id=source.workspace_id,
        key=f"{source.pk.hex}:{source.status}:{format_utc(source.failing_since or now)}",
        title=title % {"name": source.name},
        text=f"{(source.last_error or {}).get('message', '')}\n{advice}",
        path="#sources",
        now=now,
    )
