"""Nudges: how "look at this kind now" leaves a process without anybody waiting for the broker."""

from __future__ import annotations

import os
import threading
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)

PAUSE_SECONDS: Final = 1.0
"""How long a broker that failed is left alone."""


class Nudges:
    """Sends from a thread of its own, each kind at most once in `apart` seconds, or in `least_apart` where a look at it
    has started since.

    A burst of asks for one kind becomes one message, and one more when that time has passed; none is dropped. While the
    broker is away the asks of each kind become one, sent when it answers again.
    """

    def __init__(self, send: Callable[[str], None], *, apart: float, least_apart: float = 0.0) -> None:
        self._send = send
        self._apart = apart
        self._sooner = max(0.0, apart - least_apart)
        self._forget()
        # A thread doesn't live on in a forked child, and a lock may be held in it for ever.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._changed = threading.Condition()
        self._wanted: dict[str, None] = {}
        self._sent_at: dict[str, float] = {}
        self._started: set[str] = set()
        """The kinds whose last message has arrived here."""
        self._thread: threading.Thread | None = None

    def ask(self, kind: str) -> None:
        with self._changed:
            self._wanted[kind] = None
            if self._thread is None:
                # A daemon, because a command that ends must not wait for a broker: the next tick finds the row.
                self._thread = threading.Thread(target=self._run, name="nudges", daemon=True)
                self._thread.start()
            self._changed.notify()

    def started(self, kind: str) -> None:
        """A look at the kind has begun here; an ask from now on needs a message of its own."""
        with self._changed:
            sent_at = self._sent_at.get(kind)
            if sent_at is not None and kind not in self._started:
                self._started.add(kind)
                self._sent_at[kind] = sent_at - self._sooner
                self._changed.notify()

    def _run(self) -> None:
        is_away = False
        while True:
            kind = self._next()
            try:
                self._send(kind)
            # Whatever the broker's client raises: the row is committed, and ticks go on without a broker.
            except Exception as error:  # noqa: BLE001
                if not is_away:
                    log.warning("broker_away", error=str(error))
                is_away = True
                with self._changed:
                    self._sent_at.pop(kind, None)
                    self._wanted[kind] = None
                threading.Event().wait(PAUSE_SECONDS)
            else:
                if is_away:
                    log.warning("broker_back")
                is_away = False

    def _next(self) -> str:
        with self._changed:
            while True:
                now = monotonic()
                waits = {
                    kind: self._sent_at.get(kind, now - self._apart) + self._apart - now
                    for kind in self._wanted
                }
                kind = min(waits, key=lambda name: waits[name], default=None)
                if kind is None:
                    self._changed.wait()
                elif waits[kind] > 0:
                    self._changed.wait(waits[kind])
                else:
                    del self._wanted[kind]
                    self._sent_at[kind] = now
                    self._started.discard(kind)
                    return kind
