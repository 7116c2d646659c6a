"""Celery's transport over Redis, with one client for each pool of connections.

Kombu makes a client for each message that is sent and for each that is acknowledged, which takes as long as a command:
about a tenth of what a worker with threads does under load. A client holds nothing but its pool, and threads may share it.
"""

from __future__ import annotations

from typing import Any, Final

from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    """Makes a client anew only where its pool is another one: after the connection was lost."""

    _kept: tuple[Any, Any] | None = None

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002  kombu's own signature
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]  # no stubs
        if self._kept is None or self._kept[0] is not self.pool:
            self._kept = (self.pool, super()._create_client())  # type: ignore[misc]
        return self._kept[1]


class Transport(redis.Transport):
    Channel = Channel


_PATH: Final = f"{__name__}:{Transport.__name__}"
TRANSPORT_ALIASES.update(redis=_PATH, rediss=_PATH)
