"""The present moment, for everything that is stored; `frozen_at()` sets another, for what builds a history."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_frozen_moment: Final[ContextVar[datetime | None]] = ContextVar("clock", default=None)


def utc_now() -> datetime:
    return _frozen_moment.get() or datetime.now(UTC)


@contextmanager
def frozen_at(moment: datetime) -> Iterator[None]:
    """It is `moment` for this thread until the block ends; ids that are made meanwhile sort there too."""
    token = _frozen_moment.set(moment)
    try:
        yield
    finally:
        _frozen_moment.reset(token)


def frozen_moment() -> datetime | None:
    return _frozen_moment.get()
