"""Counts clicks on short links and fetches of feeds in the process, and writes the counts every few seconds.

A hit costs no write. A process that is killed loses the counts of the last `FLUSH_SECONDS`; one that exits
normally writes them first. Nothing is stored about the visitor (address, cookie, browser), only a number. Old
counts are deleted.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from django.db import Error, IntegrityError, connection, transaction

from config.core.ids import uuid7
from pipeline import limits
from pipeline.models import HitCount, HitKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from pipeline.models import Outlet, ShortLink

log = structlog.get_logger(__name__)

FLUSH_SECONDS: Final = 5.0
QUARTER_HOUR_SECONDS: Final = 900
MAX_PENDING_KEYS: Final = 10_000
"""The number of counts that wait in one process while the database can't be written to; more are lost."""
_DELETE_BATCH_SIZE: Final = 500
_ROWS_PER_WRITE: Final = 500
_ROBOT: Final = re.compile(
    r"bot\b|bot[/;_-]|crawl|spider|slurp|preview|fetcher|scan|monitor|headless|facebookexternalhit|embedly|whatsapp|"
    r"telegram|skype|lighthouse|curl|wget|python|java/|go-http|okhttp|axios|node-fetch|libwww|httpclient|ruby|perl",
    re.IGNORECASE,
)
_CRAWLER: Final = re.compile(r"googlebot|bingbot|crawl|spider|slurp|preview|scan|monitor", re.IGNORECASE)

ChangedQuarterHour = tuple["UUID", bool, datetime]
"""A changed count's workspace, whether it is a test, and the start of its quarter of an hour."""


class HitKey(NamedTuple):
    """The columns by which hits are counted."""

    kind: HitKind
    workspace_id: UUID
    outlet_id: UUID
    publication_id: UUID | None
    test: bool
    key: UUID
    """`HitCount.key`: the id of the publication for a click, of the outlet for a fetch."""
    start: int
    """The start of the quarter of an hour, in seconds since 1970."""


_pending: Counter[HitKey] = Counter()
_listeners: Final[list[Callable[[Iterable[ChangedQuarterHour]], None]]] = []
_lock: Final = threading.Lock()
_timer: Final[dict[str, threading.Timer | None]] = {"running": None}


def is_counted_click(headers: Mapping[str, str]) -> bool:
    """Return whether a click is counted: it comes from a browser that isn't prefetching, not from a known program."""
    agent = headers.get("User-Agent", "")
    prefetch_hints = headers.get("Sec-Purpose", "") + headers.get("Purpose", "") + headers.get("X-Moz", "")
    # "pre" is in prefetch, prerender and preview.
    return (
        agent.startswith(("Mozilla/", "Opera/"))
        and not _ROBOT.search(agent)
        and "pre" not in prefetch_hints.lower()
    )


def is_counted_fetch(headers: Mapping[str, str]) -> bool:
    """Return whether a feed fetch is counted: it has a user agent, which isn't a known crawler's."""
    agent = headers.get("User-Agent", "")
    return bool(agent) and not _CRAWLER.search(agent)


def count_click(link: ShortLink, now: datetime) -> None:
    """Count a click on a short link."""
    publication = link.publication
    _add(
        HitKey(
            HitKind.CLICK,
            workspace_id=link.workspace_id,
            outlet_id=publication.outlet_id,
            publication_id=publication.pk,
            test=publication.test,
            key=publication.pk,
            start=_quarter_start(now),
        )
    )


def count_fetch(outlet: Outlet, now: datetime) -> None:
    """Count a fetch of an outlet's feed."""
    _add(
        HitKey(
            HitKind.FETCH,
            workspace_id=outlet.workspace_id,
            outlet_id=outlet.pk,
            publication_id=None,
            test=False,
            key=outlet.pk,
            start=_quarter_start(now),
        )
    )


def add_write_listener(listener: Callable[[Iterable[ChangedQuarterHour]], None]) -> None:
    """Register a callback that runs in each write's transaction, with the changed quarters of an hour."""
    _listeners.append(listener)


def flush() -> int:
    """Write the pending counts; return how many aren't pending any more.

    If the database can't be written to, the rest stays pending, up to `MAX_PENDING_KEYS`.
    """
    with _lock:
        if _timer["running"] is not None:
            _timer["running"].cancel()
            _timer["running"] = None
        pending = dict(_pending)
        _pending.clear()
    if not pending:
        return 0
    pending_count = len(pending)
    try:
        _write_in_batches(pending)
    except Error:
        # The rest is written with the next hits; losing counts is better than failing a request.
        log.warning("hits_not_written", exc_info=True)
        with _lock:
            _pending.update(pending)
            while len(_pending) > MAX_PENDING_KEYS:
                _pending.popitem()
            _start_timer()
    return pending_count - len(pending)


def forget(now: datetime) -> int:
    """Delete a batch of counts older than `limits.HIT_COUNTS_KEPT`, and return how many."""
    old = HitCount.everywhere.filter(start__lt=now - limits.HIT_COUNTS_KEPT)
    ids = list(old.order_by("start").values_list("pk", flat=True)[:_DELETE_BATCH_SIZE])
    if ids:
        HitCount.everywhere.filter(pk__in=ids).delete()
    return len(ids)


def _quarter_start(now: datetime) -> int:
    """Return the start of the quarter of an hour, in seconds since 1970."""
    return int(now.timestamp()) // QUARTER_HOUR_SECONDS * QUARTER_HOUR_SECONDS


def _add(key: HitKey) -> None:
    with _lock:
        if key in _pending or len(_pending) < MAX_PENDING_KEYS:
            _pending[key] += 1
        _start_timer()


def _start_timer() -> None:
    if _timer["running"] is None:
        _timer["running"] = timer = threading.Timer(FLUSH_SECONDS, _flush_from_timer)
        timer.daemon = True
        timer.start()


def _flush_from_timer() -> None:
    with _lock:
        _timer["running"] = None
    try:
        flush()
    finally:
        # The thread ends, so its database connection must be closed.
        connection.close()


def _write_in_batches(pending: dict[HitKey, int]) -> None:
    """Write the counts, and remove each from `pending` when it is written.

    If a row refers to something that was erased, its batch is written row by row, and that row is dropped.
    """
    while pending:
        batch = dict(islice(pending.items(), _ROWS_PER_WRITE))
        try:
            _write(batch)
        except IntegrityError:
            for key, count in batch.items():
                with suppress(IntegrityError):
                    _write({key: count})
                del pending[key]
        else:
            for key in batch:
                del pending[key]


def _write(counts: Mapping[HitKey, int]) -> None:
    """Write the counts in one statement, in a fixed order, so that two processes don't deadlock."""
    table = HitCount._meta.db_table
    rows = []
    for key, count in sorted(
        counts.items(), key=lambda entry: (entry[0].key.int, entry[0].kind, entry[0].start)
    ):
        rows.append(
            HitCount(
                id=uuid7(),
                workspace_id=key.workspace_id,
                kind=key.kind,
                test=key.test,
                key=key.key,
                start=datetime.fromtimestamp(key.start, UTC),
                outlet_id=key.outlet_id,
                publication_id=key.publication_id,
                count=count,
            )
        )
    fields = HitCount._meta.concrete_fields
    values = [
        field.get_db_prep_save(getattr(row, field.attname), connection) for row in rows for field in fields
    ]
    placeholders = f"({', '.join(['%s'] * len(fields))})"
    sql = f"""INSERT INTO {table} ({", ".join(str(field.column) for field in fields)})
        VALUES {", ".join([placeholders] * len(rows))}
        ON CONFLICT (key, kind, start) DO UPDATE SET count = {table}.count + excluded.count"""  # noqa: S608
    # SQLite notices a missing outlet only at the end of a transaction.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, values)
        for listener in _listeners:
            listener((row.workspace_id, row.test, row.start) for row in rows)


atexit.register(flush)
