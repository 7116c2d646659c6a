"""What the tasks of this process did, counted until it is written down: sums that only rise.

A tally has a name and says of what it is (`kind`). `config/operations/metric_counters.py` adds them to the table that /metrics reads.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_lock: Final = threading.Lock()
_counts: Final[Counter[tuple[str, str]]] = Counter()
_kind: Final[ContextVar[str]] = ContextVar("kind", default="")


def add(name: str, kind: str, value: float = 1) -> None:
    with _lock:
        _counts[name, kind] += value  # type: ignore[assignment]  # seconds are counted too


def note_lost_lease() -> None:
    """A write under a lease that isn't ours any more; counted for the kind whose row is in hand."""
    add("claims_lost", _kind.get() or "none")


@contextmanager
def count_for_kind(kind: str) -> Iterator[None]:
    token = _kind.set(kind)
    try:
        yield
    finally:
        _kind.reset(token)


def drain() -> dict[tuple[str, str], float]:
    """What was counted since the last time; from now on it counts from nothing."""
    with _lock:
        taken: dict[tuple[str, str], float] = dict(_counts)
        _counts.clear()
    return taken


def give_back(taken: Mapping[tuple[str, str], float]) -> None:
    """They could not be written down."""
    for (name, kind), value in taken.items():
        add(name, kind, value)
