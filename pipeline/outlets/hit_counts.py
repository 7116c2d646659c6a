"""Count clicks on short links and fetches of feeds: gathered in the process, written every few seconds, and forgotten.

A hit costs no write of its own. A process that is killed loses what it gathered in the last `FLUSH_SECONDS`; one that
ends by itself writes it first. Nothing is kept of who it was: no address, no cookie, no browser, only a number.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

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
QUARTER: Final = 900
"""Seconds."""
GATHERED_MOST: Final = 10_000
"""Counts that wait in one process while the database can't be written to; what comes beyond them is lost."""
_FORGOTTEN_AT_ONCE: Final = 500
_WRITTEN_AT_ONCE: Final = 500
_ROBOT: Final = re.compile(
    r"bot\b|bot[/;_-]|crawl|spider|slurp|preview|fetcher|scan|monitor|headless|facebookexternalhit|embedly|whatsapp|"
    r"telegram|skype|lighthouse|curl|wget|python|java/|go-http|okhttp|axios|node-fetch|libwww|httpclient|ruby|perl",
    re.IGNORECASE,
)
_CRAWLER: Final = re.compile(r"googlebot|bingbot|crawl|spider|slurp|preview|scan|monitor", re.IGNORECASE)

Key = tuple[str, "UUID", "UUID", "UUID | None", bool, "UUID", int]
"""Kind, workspace, outlet, publication, whether it is a test, `HitCount.key`, and the quarter in seconds since 1970."""

Written = tuple["UUID", bool, datetime]
"""Whose counts changed (of a workspace, live or test), and at which quarter of an hour."""

_gathered: Counter[Key] = Counter()
_listeners: Final[list[Callable[[Iterable[Written]], None]]] = []
_lock: Final = threading.Lock()
_timer: Final[dict[str, threading.Timer | None]] = {"at": None}


def is_person(headers: Mapping[str, str]) -> bool:
    """Whether a click is counted: by a browser that says so and wasn't fetching ahead; programs that tell the truth aren't."""
    agent = headers.get("User-Agent", "")
    ahead = headers.get("Sec-Purpose", "") + headers.get("Purpose", "") + headers.get("X-Moz", "")
    return (
        agent.startswith(("Mozilla/", "Opera/")) and not _ROBOT.search(agent) and "pre" not in ahead.lower()
    )


def is_reader(headers: Mapping[str, str]) -> bool:
    """Whether a fetch of a feed is counted: readers are programs too, so that only search engines and checks are left out."""
    agent = headers.get("User-Agent", "")
    return bool(agent) and not _CRAWLER.search(agent)


def count_click(link: ShortLink, now: datetime) -> None:
    publication = link.publication
    _gather(
        (
            HitKind.CLICK,
            link.workspace_id,
            publication.outlet_id,
            publication.pk,
            publication.test,
            publication.pk,
            _quarter(now),
        )
    )


def count_fetch(outlet: Outlet, now: datetime) -> None:
    _gather((HitKind.FETCH, outlet.workspace_id, outlet.pk, None, False, outlet.pk, _quarter(now)))


def on_write(written: Callable[[Iterable[Written]], None]) -> None:
    """Have it called in the transaction of each write, with what is `Written`."""
    _listeners.append(written)


def flush() -> int:
    """Write what was gathered; returns how many rows of it are written."""
    with _lock:
        if _timer["at"] is not None:
            _timer["at"].cancel()
            _timer["at"] = None
        taken = dict(_gathered)
        _gathered.clear()
    if not taken:
        return 0
    gathered = len(taken)
    try:
        _write_what_stands(taken)
    except Error:
        # What is left is tried again with what comes next; a number too few is better than an answer too few.
        log.warning("hits_not_written", exc_info=True)
        with _lock:
            _gathered.update(taken)
            while len(_gathered) > GATHERED_MOST:
                _gathered.popitem()
            _start_timer()
    return gathered - len(taken)


def forget(now: datetime) -> int:
    """Delete counts that no question reaches any more, some at a time; returns how many."""
    old = HitCount.everywhere.filter(start__lt=now - limits.HIT_COUNTS_KEPT)
    some = list(old.order_by("start").values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE])
    if some:
        HitCount.everywhere.filter(pk__in=some).delete()
    return len(some)


def _quarter(now: datetime) -> int:
    """The beginning of that quarter of an hour, in seconds since 1970."""
    return int(now.timestamp()) // QUARTER * QUARTER


def _gather(key: Key) -> None:
    with _lock:
        if key in _gathered or len(_gathered) < GATHERED_MOST:
            _gathered[key] += 1
        _start_timer()


def _start_timer() -> None:
    if _timer["at"] is None:
        _timer["at"] = timer = threading.Timer(FLUSH_SECONDS, _flush_aside)
        timer.daemon = True
        timer.start()


def _flush_aside() -> None:
    with _lock:
        _timer["at"] = None
    try:
        flush()
    finally:
        # The thread ends, and its connection with it.
        connection.close()


def _write_what_stands(taken: dict[Key, int]) -> None:
    """Take each out of `taken` as it is written, so that what is left there has been written nowhere.

    Where something of a portion was erased meanwhile, the others are written one by one.
    """
    while taken:
        portion = dict(islice(taken.items(), _WRITTEN_AT_ONCE))
        try:
            _write(portion)
        except IntegrityError:
            for key, count in portion.items():
                with suppress(IntegrityError):
                    _write({key: count})
                del taken[key]
        else:
            for key in portion:
                del taken[key]


def _write(taken: Mapping[Key, int]) -> None:
    """One statement, in one order, so that two processes don't wait for each other in a circle."""
    table = HitCount._meta.db_table
    rows = []
    for (kind, workspace, outlet, publication, test, key, start), count in sorted(
        taken.items(), key=lambda pair: (pair[0][5].int, pair[0][0], pair[0][6])
    ):
        rows.append(
            HitCount(
                id=uuid7(),
                workspace_id=workspace,
                kind=kind,
                test=test,
                key=key,
                start=datetime.fromtimestamp(start, UTC),
                outlet_id=outlet,
                publication_id=publication,
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
    # On SQLite a missing outlet is only found where a transaction ends.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, values)
        for listener in _listeners:
            listener((row.workspace_id, row.test, row.start) for row in rows)


atexit.register(flush)
