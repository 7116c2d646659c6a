"""Keeps the time at which the newest web process started, in memory that all web processes share."""

from __future__ import annotations

import mmap
import struct
import time
from typing import Any, Final

_MOMENT: Final = struct.Struct("d")
# Forked processes share this memory with the arbiter that imported this module.
_shared: Final = mmap.mmap(-1, _MOMENT.size)
_MOMENT.pack_into(_shared, 0, time.time())


def note(_arbiter: Any = None, _worker: Any = None) -> None:
    """Note that a web process starts now; gunicorn's arbiter calls it before each fork."""
    _MOMENT.pack_into(_shared, 0, time.time())


def newest() -> float:
    """Return the start of the newest web process in seconds since the epoch."""
    (moment,) = _MOMENT.unpack_from(_shared, 0)
    return float(moment)
