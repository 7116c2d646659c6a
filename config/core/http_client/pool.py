"""Keeps connections open between requests to the same origin, in urllib3's pools.

A connection is kept only after a completely read answer, and for at most a minute, so that a name that leads
elsewhere, or a certificate that expires, is noticed by then. Its address was checked when it was opened.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, cast

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager

from config.core.http_client.connection import GuardedConnection, GuardedTlsConnection

if TYPE_CHECKING:
    import ssl

    from urllib3.poolmanager import PoolKey

    from config.core.http_client.messages import Target

MAX_PER_ORIGIN: Final = 8
"""The most idle connections of one scheme, host and port."""
MAX_TOTAL: Final = 128
"""The most idle connections of a client; each holds a file descriptor open."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = GuardedConnection

    def take(self) -> GuardedConnection:
        """Take out the connection that was used last, or return one that isn't open."""
        connection = cast("GuardedConnection", self._get_conn())
        connection.pool = self
        return connection

    def put(self, connection: GuardedConnection) -> None:
        """Keep the connection, or close it if `MAX_PER_ORIGIN` are kept already."""
        self._put_conn(connection)


class _TlsPool(_Pool, HTTPSConnectionPool):
    ConnectionCls = GuardedTlsConnection


class Connections:
    """New connections, and idle ones by scheme, host and port. Thread-safe."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._pools = PoolManager(num_pools=MAX_TOTAL, maxsize=MAX_PER_ORIGIN, ssl_context=tls)
        self._pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
        # By the time since which they are idle. Only a connection in here is closed for its age or number, so that
        # none is while it is used.
        self._idle: dict[GuardedConnection, None] = {}
        self._lock = threading.Lock()

    def make(self, target: Target) -> GuardedConnection:
        """Return a connection that isn't open."""
        if target.scheme == "http":
            return GuardedConnection(target.host.bare, target.port)
        return GuardedTlsConnection(target.host.bare, target.port, ssl_context=self._tls)

    def take(self, target: Target) -> GuardedConnection:
        """Return a connection to the target: an idle one that is fresh, or else one that isn't open."""
        with self._lock:
            connection = self._pool(target).take()
            self._idle.pop(connection, None)
        return connection

    def put(self, connection: GuardedConnection) -> None:
        """Keep a connection for the next request to its origin; beyond `MAX_TOTAL` the one idle longest is closed."""
        connection.rest()
        with self._lock:
            # Not kept in the connection, or no pool could be given up.
            pool, connection.pool = cast("_Pool", connection.pool), None
            pool.put(connection)
            if not connection.is_closed:
                self._idle[connection] = None
            if len(self._idle) > MAX_TOTAL:
                # urllib3 closes those of a pool that it gives up.
                self._idle = {each: None for each in self._idle if not each.is_closed}
            if len(self._idle) > MAX_TOTAL:
                self._close_idle(next(iter(self._idle)))

    def sweep(self) -> None:
        """Close the connections that are idle for too long or too old."""
        with self._lock:
            for connection in [each for each in self._idle if not each.is_fresh]:
                self._close_idle(connection)

    def _pool(self, target: Target) -> _Pool:
        scheme, host, port = target.origin
        options = {**self._pools.connection_pool_kw, "scheme": scheme, "host": host, "port": port}
        # The origin is key enough, and made faster than urllib3's own key, which has a field for every option.
        pool = self._pools.connection_from_pool_key(cast("PoolKey", target.origin), options)
        return cast("_Pool", pool)

    def _close_idle(self, connection: GuardedConnection) -> None:
        # urllib3's pool keeps the closed one, and opens it anew when it is used.
        connection.close()
        del self._idle[connection]
