"""How long something takes its own thread, whatever else the machine and the other threads of the process do."""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def least_of(times: int, work: Callable[[], Result]) -> tuple[Result, float]:
    """What it returns, and the least seconds of the processor that one of so many tries took."""
    taken = []
    for _ in range(times):
        began = thread_time()
        result = work()
        taken.append(thread_time() - began)
    return result, min(taken)
