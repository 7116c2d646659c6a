"""Transports Celery's messages within one process, for the embedded mode, without a server.

A consumer is woken at once when a message is put, acknowledged or rejected, while Kombu's own memory transport
only polls once a second; without a wake it still looks each second. Nothing outlives the process, which is safe
because the rows are the queue.
"""

from __future__ import annotations

import threading
from queue import Empty
from time import monotonic
from typing import Any, Final

from kombu.transport import TRANSPORT_ALIASES, memory

LONGEST_SLEEP_SECONDS: Final = 1.0
"""The longest time for which a consumer sleeps before it looks for messages again, even if nothing woke it."""


class _ActivityState:
    """The number of wakes, and whether consumers may sleep, which they mustn't while the worker stops."""

    count = 0
    allows_waits = True


_activity: Final = threading.Condition()
_activity_state: Final = _ActivityState()


def _wake_consumers() -> None:
    """Wake every consumer that sleeps."""
    with _activity:
        _activity_state.count += 1
        _activity.notify_all()


def allow_waits(*, is_allowed: bool) -> None:
    """Allow consumers to sleep, or have them return at once if no message is there.

    Otherwise a worker that is stopping would wait two time-outs more.
    """
    _activity_state.allows_waits = is_allowed
    _wake_consumers()


def count_waiting(queue: str) -> int:
    """Return how many messages of the queue no consumer has taken yet, or 0 for an unknown queue."""
    messages = memory.Channel.queues.get(queue)
    return messages.qsize() if messages is not None else 0


class Channel(memory.Channel):
    """Wakes the consumers after each step that may let one of them continue."""

    def _put(self, *args: Any, **kwargs: Any) -> None:
        super()._put(*args, **kwargs)
        _wake_consumers()

    def _put_fanout(self, *args: Any, **kwargs: Any) -> None:
        super()._put_fanout(*args, **kwargs)
        _wake_consumers()

    # An acknowledged message makes room in the prefetch window, so a waiting message may become deliverable.
    def basic_ack(self, *args: Any, **kwargs: Any) -> None:
        super().basic_ack(*args, **kwargs)
        _wake_consumers()

    def basic_reject(self, *args: Any, **kwargs: Any) -> None:
        super().basic_reject(*args, **kwargs)
        _wake_consumers()


class Transport(memory.Transport):
    """Kombu's transport for `inproc://` addresses."""

    Channel = Channel
    driver_name = "inproc"

    def drain_events(self, connection: Any, timeout: float | None = None, **_kwargs: Any) -> None:
        """Deliver one message. Raises `TimeoutError` after `timeout` seconds, or at once if waits aren't allowed."""
        del connection
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            # Read before looking for a message, so that one put between looking and sleeping ends the sleep at once.
            count_before = _activity_state.count
            try:
                self.cycle.get(self._deliver, timeout=timeout)  # type: ignore[union-attr]  # set when it connects
            except Empty:
                seconds_left = LONGEST_SLEEP_SECONDS if deadline is None else deadline - monotonic()
                if seconds_left <= 0 or not _activity_state.allows_waits:
                    raise TimeoutError from None
                with _activity:
                    if _activity_state.count == count_before:
                        _activity.wait(min(seconds_left, LONGEST_SLEEP_SECONDS))
            else:
                return


TRANSPORT_ALIASES["inproc"] = f"{__name__}:{Transport.__name__}"
