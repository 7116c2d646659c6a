"""Sets hard limits on a child process before it touches anything hostile; it can't lift them again."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from typing import Final

NICE: Final = 10


def confine(*, memory: int, seconds: int, file_bytes: int = 0, open_files: int = 32) -> None:
    """Limit this process, for good, and lower its priority.

    It gets `memory` bytes of address space, `seconds` by the clock and of the processor, files of `file_bytes` and
    `open_files` open files. The parent's own timeout comes first; this one ends a child whose parent was killed.
    """
    # An inherited handler could swallow the alarm; the default action ends the process.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # A second later than the parent's timeout, which ends the child first.
    signal.alarm(seconds + 1)
    # Requests and tasks go before a child.
    os.nice(NICE)
    limits = (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds + 1),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CORE, 0),
    )
    for resource_id, limit in limits:
        cap(resource_id, limit)


def cap(kind: int, limit: int) -> None:
    """Set a resource limit for good, or the operator's if that is lower; nothing happens if the system refuses it."""
    _, hard = resource.getrlimit(kind)
    allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    # Some systems don't support RLIMIT_AS; the parent's timeout holds anyway.
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (allowed, allowed))
