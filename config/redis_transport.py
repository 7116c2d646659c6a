"""Celery's transport over Redis, with one client per connection pool.

Kombu makes a client for each message sent and for each acknowledged, which takes as long as a command: about
a tenth of the work of a worker with threads under load. A client holds nothing but its pool, and threads may
share it.
"""

from __future__ import annotations

from typing import Any, Final

from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    """Creates a new client only when the pool is another one: after the connection was lost."""

    _client_of_pool: tuple[Any, Any] | None = None

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002  kombu's own signature
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]  # no stubs
        if self._client_of_pool is None or self._client_of_pool[0] is not self.pool:
            self._client_of_pool = (self.pool, super()._create_client())  # type: ignore[misc]
        return self._client_of_pool[1]


class Transport(redis.Transport):
    Channel = Channel


_PATH: Final = f"{__name__}:{Transport.__name__}"
TRANSPORT_ALIASES.update(redis=_PATH, rediss=_PATH)
