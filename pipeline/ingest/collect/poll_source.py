"""Work one claimed source: fetch, take every entry in, set the next poll, tell people where it fails.

A source that somebody set an interval for keeps to it. Any other follows its own rhythm: half of the median
gap between its newest entries, growing with each poll that brings nothing new. What the server asks for is a
lower bound of both.

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
from config.core.datetimes import as_z
from config.core.http_client import shared
from pipeline import events, limits, payloads
from pipeline.ingest import own_feeds, websub
from pipeline.ingest.collect.ask_source import fetch, follow, host_of
from pipeline.ingest.collect.source_validation import kind_of
from pipeline.ingest.collect.store import take_in
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
"""How often a de-listed workspace's source looks whether it may be polled again."""
MESSAGE_CHARACTERS: Final = 1000
"""Of what went wrong at a poll, in plain words."""
NOTES_KEPT: Final = 20


def rhythm(published: Iterable[datetime | None]) -> timedelta | None:
    """Half of the median gap between the newest entries; None where fewer than two say when they are from."""
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
    """The wait that the source's rhythm leads to, between `least` and a day.

    `rhythm` is None where the poll read no entries with dates. `previous` is the wait before this poll, None
    at the first one. `is_new` tells whether the poll brought anything new or changed.
    """
    least = max(least, limits.POLL_INTERVAL_LEAST)
    if not is_new and previous is not None:
        wished = previous * limits.POLL_UNCHANGED_FACTOR
    else:
        wished = rhythm or previous or default
    return max(least, min(wished, limits.POLL_INTERVAL_MOST))


def poll_wait(
    interval: timedelta, *, failures: int = 0, at_least: timedelta | None = None, jitter: float = 0.0
) -> timedelta:
    """How long to wait: the interval, doubled for each failure in a row up to a day, and never less than was
    asked for.

    An interval that is longer than a day by itself isn't shortened. `jitter`, from 0 to 1, makes it up to a
    tenth longer, so that sources registered together don't come back together for ever.
    """
    doubled = min(interval * float(2 ** min(failures, 16)), max(interval, limits.POLL_BACKOFF_MOST))
    longest: timedelta = max(doubled, at_least or timedelta(0))
    return longest * (1 + jitter / 10)


def poll(source: Source) -> None:
    """Work one claimed source. Where its host is busy it sleeps for a moment, and nothing is counted as a
    failure.
    """
    crash_point("collect.claimed")
    try:
        _poll(source, utc_now())
    except states.Overtaken:
        # Somebody paused, changed or deleted it meanwhile: what they want is in the row already.
        log.info("overtaken", source=source.pk.hex)


def give_up(source: Source) -> None:
    """A poll that broke again and again is tried tomorrow; the source says so."""
    error = TryLater(
        "Polling this source broke several times; it is tried again tomorrow.", code="poll_broke"
    )
    _failed(source, _workspace_of(source), error, utc_now(), wait=timedelta(days=1))


def _poll(source: Source, now: datetime) -> None:
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
        _failed(source, workspace, failure, now)
        return
    finally:
        host_lock.release_host(host, source.pk, utc_now())
    crash_point("collect.fetched")
    if fetched.gone:
        message = "The source says that it is gone for good (410)."
        _gone(source, {"code": "gone", "message": message, "at": as_z(now)}, now, last_polled_at=now)
        return
    is_new, window, notes = take_in(source, workspace, fetched, now)
    fetched = replace(fetched, notes=(*fetched.notes, *notes))
    crash_point("collect.ingested")
    _polled(source, workspace, fetched, is_new=is_new, window=window, now=now)


def _workspace_of(source: Source) -> Workspace:
    row: Source = Source.everywhere.select_related("workspace__plan").get(pk=source.pk)
    return row.workspace


def _least(workspace: Workspace) -> timedelta:
    """The shortest wait between two polls that the workspace's plan allows."""
    least = credit_account.plan_limits(workspace).poll_interval_minutes_least
    return timedelta(minutes=1 if workspace.is_unlimited else least)


def interval_of(source: Source, workspace: Workspace) -> timedelta:
    """The wait between two polls: what a person said, else what the source's rhythm made of it."""
    least = _least(workspace)
    if source.poll_interval_minutes:
        return max(timedelta(minutes=source.poll_interval_minutes), least)
    if source.interval_seconds:
        return max(timedelta(seconds=source.interval_seconds), least)
    return max(timedelta(minutes=kind_of(source.type).default_interval_minutes), least)


def _polled(
    source: Source,
    workspace: Workspace,
    fetched: Fetch,
    *,
    is_new: bool,
    window: Mapping[str, Any] | None,
    now: datetime,
) -> None:
    """Set the next poll after one that went well, and keep what it saw; it ends a row of failures."""
    own = own_interval(
        rhythm=rhythm(entry.published_at for entry in fetched.entries),
        previous=timedelta(seconds=source.interval_seconds) if source.interval_seconds else None,
        is_new=is_new,
        least=_least(workspace),
        default=timedelta(minutes=kind_of(source.type).default_interval_minutes),
    )
    source.interval_seconds = int(own.total_seconds())
    wait_of_hub = websub.follow(source, fetched.hub, now=now)
    at_least = max(fetched.wait_at_least or timedelta(0), wait_of_hub or timedelta(0))
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
        "notes": _notes(source, fetched, move.note),
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


def _notes(source: Source, fetched: Fetch, also: Note | None) -> list[dict[str, str]]:
    """What is to be known of the source. One that answers "not modified" was not read again: what was said
    still holds.
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
    if also is not None:
        notes.append({"code": also.code, "message": also.message[:MESSAGE_CHARACTERS]})
    return notes[:NOTES_KEPT]


def _jitter() -> float:
    return random.random()  # noqa: S311


def _failed(
    source: Source, workspace: Workspace, error: PluginError, now: datetime, *, wait: timedelta | None = None
) -> None:
    """Note what went wrong in plain words and wait longer each time; tell after the third time in a row."""
    failures = source.failures + 1
    asked = error.after if isinstance(error, TryLater) else None
    interval = interval_of(source, workspace)
    if source.last_polled_at is None:
        # Somebody has just added it, and looks.
        interval = min(interval, limits.POLL_RETRY_OF_NEW)
    next_poll = now + (wait or poll_wait(interval, failures=failures, at_least=asked, jitter=_jitter()))
    failing_since = source.failing_since or now
    shown = {"code": error.code, "message": error.message[:MESSAGE_CHARACTERS], "at": as_z(now)}
    is_dead = now - failing_since >= limits.POLL_DEAD_AFTER
    if is_dead:
        _gone(source, shown, now, failures=failures, failing_since=failing_since)
        return
    values: dict[str, Any] = {
        "due_at": next_poll,
        "attempts": 0,
        "failures": failures,
        "failing_since": failing_since,
        "last_error": shown,
    }
    with transaction.atomic():
        if source.status == SourceStatus.ACTIVE and failures >= limits.POLL_FAILURES_UNTIL_FAILING:
            states.move(source, "failing", under_lease=True, wake_at=next_poll, **values)
            tell_failing(source, now)
        else:
            source.sleep_until(next_poll, **values)


def _gone(source: Source, error: Mapping[str, str], now: datetime, **changes: Any) -> None:
    """It isn't polled again until a person switches it on."""
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
        tell_failing(source, now)


def tell_failing(source: Source, now: datetime) -> None:
    """Tell endpoints and people that it fails, or is gone, in the transaction that says so on the row."""
    events.record(
        "source.failing",
        workspace_id=source.workspace_id,
        test=source.test,
        data={"source": payloads.source(payloads.row_of(source))},
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
        key=f"{source.pk.hex}:{source.status}:{as_z(source.failing_since or now)}",
        title=title % {"name": source.name},
        text=f"{(source.last_error or {}).get('message', '')}\n{advice}",
        path="#sources",
        now=now,
    )
