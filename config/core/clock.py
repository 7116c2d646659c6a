"""Gives the present moment for everything that is stored, or the one that `frozen_at()` sets for histories."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_frozen_moment: Final[ContextVar[datetime | None]] = ContextVar("clock", default=None)


def utc_now() -> datetime:
    """Return the present moment in UTC, or the one that `frozen_at()` has set."""
    return _frozen_moment.get() or datetime.now(UTC)


@contextmanager
def frozen_at(moment: datetime) -> Iterator[None]:
    """Have `utc_now()` return `moment` in this thread until the block ends; new ids get that time too."""
    token = _frozen_moment.set(moment)
    try:
        yield
    finally:
        _frozen_moment.reset(token)


def frozen_moment() -> datetime | None:
    """Return the moment that `frozen_at()` has set, or `None`."""
    return _frozen_moment.get()
