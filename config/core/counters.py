"""Counts what this process did, in tasks and requests, until the counts are stored.

A counter has a name and a `kind`, and its total only rises. `config/operations/metric_counters.py` adds the
counts to the table that /metrics reads.
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
    """Add to a counter of this process."""
    with _lock:
        _counts[name, kind] += value  # type: ignore[assignment]  # seconds are counted too


def note_lost_lease() -> None:
    """Count a write under a lease that was lost, for the kind that `count_for_kind()` has set."""
    add("claims_lost", _kind.get() or "none")


@contextmanager
def count_for_kind(kind: str) -> Iterator[None]:
    """Count lost leases under this kind until the block ends."""
    token = _kind.set(kind)
    try:
        yield
    finally:
        _kind.reset(token)


def drain() -> dict[tuple[str, str], float]:
    """Return the counts since the last call, and start again from zero."""
    with _lock:
        counts: dict[tuple[str, str], float] = dict(_counts)
        _counts.clear()
    return counts


def give_back(taken: Mapping[tuple[str, str], float]) -> None:
    """Add back the counts that could not be stored."""
    for (name, kind), value in taken.items():
        add(name, kind, value)
