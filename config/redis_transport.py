"""Transports Celery's messages over Redis, with one client per connection pool.

Kombu creates a client for each message that is sent or acknowledged, which takes as long as a command, and about
a tenth of the work of a worker with threads under load. A client holds nothing but its pool, so threads may share
it.
"""

from __future__ import annotations

from typing import Any, Final

from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    """Creates a new client only if the pool is another one, as after the connection was lost."""

    _client_of_pool: tuple[Any, Any] | None = None

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002  kombu's own signature
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]  # no stubs
        if self._client_of_pool is None or self._client_of_pool[0] is not self.pool:
            self._client_of_pool = (self.pool, super()._create_client())  # type: ignore[misc]
        return self._client_of_pool[1]


class Transport(redis.Transport):
    """Kombu's transport for Redis, with the channel above."""

    Channel = Channel


_PATH: Final = f"{__name__}:{Transport.__name__}"
TRANSPORT_ALIASES.update(redis=_PATH, rediss=_PATH)
