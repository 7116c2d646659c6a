"""The present moment, for everything that is stored; `set_to()` hands in another, for what builds a history."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_handed_in: Final[ContextVar[datetime | None]] = ContextVar("clock", default=None)


def utc_now() -> datetime:
    return _handed_in.get() or datetime.now(UTC)


@contextmanager
def set_to(moment: datetime) -> Iterator[None]:
    """It is `moment` for this thread until the block ends; ids that are made meanwhile sort there too."""
    token = _handed_in.set(moment)
    try:
        yield
    finally:
        _handed_in.reset(token)


def handed_in() -> datetime | None:
    return _handed_in.get()
