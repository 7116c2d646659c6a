"""What a child process does to itself before it touches anything hostile: hard limits that it can't lift again."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from typing import Final

NICE: Final = 10


def confine(*, memory: int, seconds: int, file_bytes: int = 0, open_files: int = 32) -> None:
    """At most `memory` bytes of address space, `seconds` by the clock and of the processor, `file_bytes` written to a file,
    `open_files` open.

    It also lowers its own priority. The clock is the parent's in the first place; this one ends a child whose parent was
    killed.
    """
    # Its default action ends the process.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # A second later than the parent's clock, which ends it first.
    signal.alarm(seconds + 1)
    # Requests and tasks come before it.
    os.nice(NICE)
    limits = (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds + 1),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in limits:
        cap(kind, most)


def cap(kind: int, most: int) -> None:
    """One of the system's limits, for good; what the operator allows less of stays as it is."""
    _, hard = resource.getrlimit(kind)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    # Some systems don't know RLIMIT_AS; the parent's clock holds anyway.
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (allowed, allowed))
