"""Celery's in-process transport for the embedded mode: no server, and no polling.

A consumer sleeps until something is put, acknowledged or rejected. Kombu's own memory transport looks once a second
instead. Nothing outlives the process, which is safe because the rows are the queue.
"""

from __future__ import annotations

import threading
from queue import Empty
from time import monotonic
from typing import Any, Final

from kombu.transport import TRANSPORT_ALIASES, memory

LONGEST_SLEEP_SECONDS: Final = 1.0

_something_happened: Final = threading.Condition()
_happenings: Final[dict[str, int]] = {"count": 0, "waits": True}


def _wake_consumers() -> None:
    with _something_happened:
        _happenings["count"] += 1
        _something_happened.notify_all()


def allow_waits(*, is_allowed: bool) -> None:
    """Where waiting isn't allowed a consumer is told at once that nothing came: a worker that stops waits twice."""
    _happenings["waits"] = is_allowed
    _wake_consumers()


def waiting(queue: str) -> int:
    """How many messages nobody has taken yet."""
    found = memory.Channel.queues.get(queue)
    return found.qsize() if found is not None else 0


class Channel(memory.Channel):
    """Wakes the consumers after everything that may let one of them go on."""

    def _put(self, *args: Any, **kwargs: Any) -> None:
        super()._put(*args, **kwargs)
        _wake_consumers()

    def _put_fanout(self, *args: Any, **kwargs: Any) -> None:
        super()._put_fanout(*args, **kwargs)
        _wake_consumers()

    # An answered message frees a place in the prefetch window, so a waiting message may become deliverable.
    def basic_ack(self, *args: Any, **kwargs: Any) -> None:
        super().basic_ack(*args, **kwargs)
        _wake_consumers()

    def basic_reject(self, *args: Any, **kwargs: Any) -> None:
        super().basic_reject(*args, **kwargs)
        _wake_consumers()


class Transport(memory.Transport):
    Channel = Channel
    driver_name = "inproc"

    def drain_events(self, connection: Any, timeout: float | None = None, **_kwargs: Any) -> None:
        """Deliver one message; raises `TimeoutError` when none came within `timeout` seconds."""
        del connection
        until = None if timeout is None else monotonic() + timeout
        while True:
            # Read before the look, so that what is put between the look and the sleep ends the sleep at once.
            seen = _happenings["count"]
            try:
                self.cycle.get(self._deliver, timeout=timeout)  # type: ignore[union-attr]  # set when it connects
            except Empty:
                left = LONGEST_SLEEP_SECONDS if until is None else until - monotonic()
                if left <= 0 or not _happenings["waits"]:
                    raise TimeoutError from None
                with _something_happened:
                    if _happenings["count"] == seen:
                        _something_happened.wait(min(left, LONGEST_SLEEP_SECONDS))
            else:
                return


TRANSPORT_ALIASES["inproc"] = f"{__name__}:{Transport.__name__}"
