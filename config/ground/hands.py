"""The hands: what kinds of due rows there are, the look that claims and works them, the nudge and the tick.

A message means "look at this kind now" and holds nothing else. A look claims just before it works, row by row, until
nothing is due or its time is up. A lost message costs at most one tick; a lost broker or beat costs no more, because
every worker process ticks by itself when no tick came for two seconds.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.db import connection, connections, transaction

from config.ground import due, tallies

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from uuid import UUID

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 20.0
"""A look ends after this long, so that every kind gets its turn at a busy worker."""
LOCK_PAUSE_SECONDS: Final = 0.02
"""Between two batches on SQLite, so that those who wait for the lock get it."""
TICK_SECONDS: Final = 1.0
OWN_TICK_AFTER_SECONDS: Final = 2.0
KEEPER_PAUSE_SECONDS: Final = 0.03
"""Between two claims for the hands of a kind with `shares_claims`; what falls due meanwhile is that much late."""
SHELF_SECONDS: Final = 0.15
"""For how long a kind with `shares_claims` has rows claimed ahead, at the pace at which its hands worked just now."""
KEEPER_STAYS_SECONDS: Final = 1.5
"""How long nothing has to be due before the ticks alone ask again."""


@dataclass(frozen=True)
class Kind:
    """One kind of due row.

    `work` gets one claimed row; an exception leaves the row due again when its lease runs out. `give_up` gets a row
    that was claimed `max_attempts` times without success, and must end it in a status that a person sees.
    A hand claims up to `batch` rows at once. `side_by_side` rows are worked at once in one process, at most
    `per_workspace` of them of one workspace. With `group`, rows are also counted by something smaller than a workspace,
    and that in all processes together. A kind that mostly waits for other people's machines takes `own_threads`, so
    that it can't hold up the other kinds. With `shares_claims` one of its threads claims for all hands of the process,
    so that hundreds of rows a second don't cost a claim each. `read` gets what was claimed together and may read at once
    what each of them needs; where it fails, each must do without.
    """

    name: str
    model: type[due.DueModel]
    work: Callable[[Any], None]
    give_up: Callable[[Any], None]
    lease: timedelta
    max_attempts: int = 5
    side_by_side: int = 4
    per_workspace: int = 2
    batch: int = 1
    group: due.Group | None = None
    own_threads: bool = False
    shares_claims: bool = False
    read: Callable[[list[Any]], None] | None = None


@dataclass(frozen=True)
class Batch:
    """Work that marks many rows in one transaction: `work` returns how many it did, 0 when none are left.

    A tick looks where `waits`, a statement, finds a row. Without one it looks once in `every_seconds`.
    """

    name: str
    work: Callable[[], int]
    side_by_side: int = 1
    waits: str = ""
    every_seconds: float = 0.0


_kinds: Final[dict[str, Kind | Batch]] = {}
_lock: Final = threading.Lock()
_looking: Final[Counter[str]] = Counter()
_in_hand: Final[dict[str, Counter[UUID]]] = {}
_shelves: Final[dict[str, deque[Any]]] = {}
"""Rows of kinds with `shares_claims` that are claimed and not begun."""
_worked: Final[Counter[str]] = Counter()
"""Rows of each kind that this process has worked since it began."""
_keepers: Final[dict[str, threading.Event]] = {}
"""Who fills a kind's shelf at present, by the event that wakes it."""
_claiming: Final[dict[str, threading.Lock]] = {}
_last_tick: Final = {"at": 0.0}
_asked_at: Final[dict[str, float]] = {}
"""When a tick of this process last asked for a look at a batch that has its own pace."""
_sender: Final[dict[str, Callable[[str], None]]] = {}
_own_threads: Final[set[threading.Thread]] = set()
_resting: Final = threading.Event()
_every_second: Final[list[Callable[[], None]]] = []


def register(kind: Kind | Batch) -> None:
    _kinds[kind.name] = kind


def kinds() -> dict[str, Kind | Batch]:
    """Every kind of every app, in the order of `DUE_MODULES`."""
    for module in settings.DUE_MODULES:
        importlib.import_module(module)
    return _kinds


def send_looks_with(send: Callable[[str], None]) -> None:
    """How a nudge travels; the Celery app says so when it is made."""
    _sender["look"] = send


def nudge(name: str) -> None:
    """Ask for a look as soon as the transaction has committed; losing it costs at most one tick."""
    transaction.on_commit(lambda: ask_for_look(name), robust=True)


def ask_for_look(name: str) -> None:
    send = _sender.get("look")
    if send is None:
        return
    try:
        send(name)
    # Whatever the broker's client raises: the row is committed and the next tick finds it.
    except Exception as error:  # noqa: BLE001
        log.warning("nudge_lost", kind=name, error=str(error))


def look(name: str) -> int:
    """Claim and work rows of one kind until nothing is due; returns how many were worked."""
    kind = kinds()[name]
    with _lock:
        if _looking[name] >= kind.side_by_side:
            return 0
        _looking[name] += 1
    worked = 0
    until = time.monotonic() + LOOK_SECONDS
    try:
        while time.monotonic() < until and not _resting.is_set():
            done = kind.work() if isinstance(kind, Batch) else _work_some(kind, is_first=worked == 0)
            if not done:
                break
            worked += done
            if isinstance(kind, Batch) and connection.vendor == "sqlite":
                # SQLite's write lock isn't fair: who comes straight back has it before those who wait for it.
                time.sleep(LOCK_PAUSE_SECONDS)
        else:
            # Its time was up, and there may be more.
            ask_for_look(name)
    finally:
        with _lock:
            _looking[name] -= 1
        release_connections()
    return worked


def release_connections() -> None:
    """Give this thread's connections back: at its end, and before a wait for another machine."""
    for each in connections.all(initialized_only=True):
        # Django's own close_old_connections() would break off the transaction that a test runs in.
        if not each.in_atomic_block:
            each.close_if_unusable_or_obsolete()


def serve(name: str) -> None:
    """What a message starts: the look itself or, for a kind with `own_threads`, a thread for it."""
    kind = kinds()[name]
    if not isinstance(kind, Kind) or not kind.own_threads:
        look(name)
    elif not kind.shares_claims:
        _start_thread(kind, partial(look, name))
    elif not _wake_keeper(kind):
        _start_thread(kind, partial(_keep, kind), is_hand=False)


def _start_thread(kind: Kind, work: Callable[[], object], *, is_hand: bool = True) -> None:
    thread = threading.Thread(
        target=_work_in_own_thread, args=(kind.name, work), name=f"hand-{kind.name}", daemon=True
    )
    with _lock:
        # Only spares the thread; the work itself keeps to the limit.
        if _resting.is_set() or (is_hand and _looking[kind.name] >= kind.side_by_side):
            return
        # Under the lock: whoever waits for the threads must not meet one that isn't started yet.
        thread.start()
        _own_threads.add(thread)


def _work_in_own_thread(name: str, work: Callable[[], object]) -> None:
    try:
        work()
    # The edge of the thread: a database that is away is logged, and the next tick looks again.
    except Exception as error:  # noqa: BLE001
        log.warning("look_failed", kind=name, error=str(error))
    finally:
        with _lock:
            _own_threads.discard(threading.current_thread())


# --- Kinds whose hands share their claims ----------------------------------------------------------------------------


def _wake_keeper(kind: Kind) -> bool:
    """False where nobody fills the shelf."""
    with _lock:
        keeper = _keepers.get(kind.name)
        if keeper is not None:
            keeper.set()
    return keeper is not None


def _keep(kind: Kind) -> None:
    """Claim for every hand of the kind, and start as many as there is work for; ends when nothing is due any more."""
    woken = threading.Event()
    with _lock:
        if kind.name in _keepers:
            return
        _keepers[kind.name] = woken
    stays_until = 0.0
    ahead = Ahead(kind)
    try:
        while not _resting.is_set():
            woken.clear()
            if _fill_shelf(kind, ahead.rows()):
                stays_until = time.monotonic() + KEEPER_STAYS_SECONDS
            if time.monotonic() >= stays_until and _leaves(kind, woken):
                return
            _resting.wait(KEEPER_PAUSE_SECONDS)
    finally:
        with _lock:
            if _keepers.get(kind.name) is woken:
                del _keepers[kind.name]
        release_connections()


def _leaves(kind: Kind, woken: threading.Event) -> bool:
    """False where somebody has asked for a look since the last one: whoever asks next must find nobody, or be heard."""
    with _lock:
        if woken.is_set():
            return False
        del _keepers[kind.name]
        return True


class Ahead:
    """How many rows to claim beyond those that the hands can begin: whoever ends finds the next without a claim."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._least = max(1, kind.side_by_side // 4)
        self._before = (time.monotonic(), _worked[kind.name])

    def rows(self) -> int:
        now, worked = time.monotonic(), _worked[self._kind.name]
        began, had_worked = self._before
        self._before = (now, worked)
        pace = (worked - had_worked) / max(now - began, KEEPER_PAUSE_SECONDS)
        return max(self._least, round(pace * SHELF_SECONDS))


def _fill_shelf(kind: Kind, ahead: int) -> bool:
    """Whether there is more than the hands have begun, or was."""
    most = min(kind.batch, kind.side_by_side + ahead - in_hand(kind.name))
    # What is left lasts until the next round: few large claims cost less than many small ones.
    lasts = len(_shelves.get(kind.name, ())) > ahead // 2 > 1
    rows = _claim(kind, most) if most > 0 and not lasts else []
    with _lock:
        shelf = _shelves.setdefault(kind.name, deque())
        shelf.extend(rows)
        is_there_work = bool(shelf)
        wanted = min(len(shelf), kind.side_by_side - _looking[kind.name])
    if _resting.is_set():
        _give_back()
        return False
    for _ in range(wanted):
        _start_thread(kind, partial(_empty_shelf, kind))
    return is_there_work


def _empty_shelf(kind: Kind) -> None:
    """Work what was claimed for all hands until nothing is left of it."""
    with _lock:
        if _looking[kind.name] >= kind.side_by_side:
            return
        _looking[kind.name] += 1
    try:
        while (row := _off_the_shelf(kind)) is not None:
            _work_and_count(kind, row)
    # Whatever ends this hand, another one may take its place.
    except BaseException:
        with _lock:
            _looking[kind.name] -= 1
        raise
    finally:
        release_connections()


def _off_the_shelf(kind: Kind) -> Any:
    """The next row, or None: with that the hand has ended, so that no row comes between the two."""
    with _lock:
        shelf = _shelves.get(kind.name)
        if shelf and not _resting.is_set():
            return shelf.popleft()
        _looking[kind.name] -= 1
        return None


def rest(seconds: float) -> bool:
    """Begin nothing more and wait for the hands with their own threads; True where all came to an end in time."""
    _resting.set()
    until = time.monotonic() + seconds
    _give_back()
    with _lock:
        threads = list(_own_threads)
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def in_hand(name: str) -> int:
    """How many rows of a kind this process has claimed and not worked yet."""
    with _lock:
        return sum((+_in_hand.get(name, Counter())).values())


def _give_back() -> None:
    """What was claimed and not begun is due again at once, for other processes, instead of when its lease ends."""
    with _lock:
        shelved = [(name, row) for name, shelf in _shelves.items() for row in shelf]
        _shelves.clear()
        for name, row in shelved:
            _in_hand[name][row.workspace_id] -= 1
    for _, row in shelved:
        row.sleep_until(due.database_now(), attempts=max(row.attempts - 1, 0))


def _work_some(kind: Kind, *, is_first: bool) -> int:
    # Whoever works for itself a kind that is claimed for many takes no more than it has in hand.
    rows = _claim(kind, 1 if kind.shares_claims else kind.batch)
    if rows and is_first and kind.side_by_side > 1 and not kind.shares_claims:
        # There was something: perhaps there is more than one hand can do. The number of looks is bounded.
        ask_for_look(kind.name)
    for row in rows:
        _work_and_count(kind, row)
    return len(rows)


def _work_and_count(kind: Kind, row: Any) -> None:
    try:
        work_one(kind, row)
    finally:
        with _lock:
            _in_hand[kind.name][row.workspace_id] -= 1
            _worked[kind.name] += 1


def _claim(kind: Kind, most: int) -> list[Any]:
    with _lock:
        claiming = _claiming.setdefault(kind.name, threading.Lock())
        busy = _in_hand.setdefault(kind.name, Counter())
    # This lock makes counting and claiming one step within this process; those who end their work needn't wait for it.
    with claiming:
        with _lock:
            now_busy = +busy
        rows: list[Any] = due.claim(
            kind.model,
            limit=most,
            per_workspace=kind.per_workspace,
            lease=kind.lease,
            busy=now_busy,
            group=kind.group,
        )
        with _lock:
            for row in rows:
                busy[row.workspace_id] += 1
    if kind.read is not None and rows:
        try:
            kind.read(rows)
        # Whatever it was, the rows are claimed, and each is worked as if nothing had been read for it.
        except Exception as error:  # noqa: BLE001
            log.warning("not_read_together", kind=kind.name, error=str(error))
    return rows


def work_one(kind: Kind, row: Any) -> None:
    """Work one claimed row; whatever fails, the row stays due."""
    with (
        tallies.of_kind(kind.name),
        structlog.contextvars.bound_contextvars(
            kind=kind.name,
            row=str(row.pk),
            workspace=str(row.workspace_id),
            request_id=getattr(row, "request_id", None),
        ),
    ):
        started = time.monotonic()
        try:
            if row.attempts > kind.max_attempts:
                kind.give_up(row)
                tallies.add("given_up", kind.name)
                log.error("gave_up", attempts=row.attempts)
            else:
                kind.work(row)
        # The edge of the task: an unforeseen fault is logged, and the row is due again when its lease runs out.
        except Exception:
            tallies.add("work_failed", kind.name)
            log.exception("work_failed", attempts=row.attempts)
        else:
            log.info("worked", seconds=round(time.monotonic() - started, 3))
        tallies.add("attempts", kind.name)
        tallies.add("work_seconds", kind.name, time.monotonic() - started)


def work_all_due(*names: str, rounds: int = 50) -> int:
    """Work everything that is due, in this thread, until nothing is; for tests and commands.

    A batch that has its own pace is worked where it is named.
    """
    total = 0
    chosen = names or [
        name for name, kind in kinds().items() if isinstance(kind, Kind) or not kind.every_seconds
    ]
    for _ in range(rounds):
        worked = sum(look(name) for name in chosen)
        total += worked
        if not worked:
            return total
    message = f"Rows were still due after {rounds} rounds."
    raise RuntimeError(message)


def ticked() -> None:
    _last_tick["at"] = time.monotonic()


def tick() -> None:
    """Look at every kind that has something due; beat calls it every second."""
    ticked()
    for name in _to_look_at():
        ask_for_look(name)


def _to_look_at() -> list[str]:
    """One statement asks for all kinds: a look at each of them, each second, was most of what an idle process did."""
    every = kinds().values()
    tables = {kind.name: kind.model._meta.db_table for kind in every if isinstance(kind, Kind)}
    waits = {kind.name: kind.waits for kind in every if isinstance(kind, Batch) and kind.waits}
    try:
        found = due.names_with_work(tables, waits)
    finally:
        release_connections()
    now = time.monotonic()
    for kind in every:
        if not isinstance(kind, Batch) or kind.waits:
            continue
        if now - _asked_at.get(kind.name, -kind.every_seconds) >= kind.every_seconds:
            _asked_at[kind.name] = now
            found.add(kind.name)
    return [name for name in kinds() if name in found]


def seconds_since_tick() -> float:
    return time.monotonic() - _last_tick["at"]


def every_second(act: Callable[[], None]) -> None:
    """Let the watch of each process do this too; what it raises is logged."""
    _every_second.append(act)


def watch(stop: threading.Event) -> None:
    """Tick in this process whenever no tick came for two seconds: a lost broker or beat must not lose time."""
    while not stop.wait(TICK_SECONDS):
        for act in _every_second:
            try:
                act()
            # The watch must outlive everything, here and below: a database that is away, a fault of our own.
            except Exception as error:  # noqa: BLE001
                log.warning("watch_failed", act=getattr(act, "__qualname__", repr(act)), error=str(error))
        if seconds_since_tick() < OWN_TICK_AFTER_SECONDS:
            continue
        try:
            names = _to_look_at()
        # The watch must outlive everything, a database that is away included.
        except Exception as error:  # noqa: BLE001
            log.warning("watch_failed", error=str(error))
            continue
        for name in names:
            try:
                serve(name)
            # As above.
            except Exception as error:  # noqa: BLE001
                log.warning("watch_failed", kind=name, error=str(error))
