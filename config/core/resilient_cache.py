"""Caches on Redis, and acts as if the cache were empty while Redis is unavailable, so that no page fails."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog
from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.redis import RedisCache
from redis import RedisError

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)
Answer = TypeVar("Answer")
SKIPPED_SECONDS: Final = 5.0
"""The time for which Redis isn't asked after a failure, because a dead server must not cost every page a time-out."""


class ResilientRedisCache(RedisCache):
    """A cache for marks that only detect repeated clicks; permissions never depend on it."""

    _skipped_until = 0.0

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Store the value if the key is new, and return whether it is; True while Redis is away, as for a new key."""
        return self._call(
            lambda: super(ResilientRedisCache, self).add(key, value, timeout, version), fallback=True
        )

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return self._call(
            lambda: super(ResilientRedisCache, self).get(key, default, version), fallback=default
        )

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._call(lambda: super(ResilientRedisCache, self).set(key, value, timeout, version), fallback=None)

    def delete(self, key: Any, version: int | None = None) -> bool:
        return self._call(lambda: super(ResilientRedisCache, self).delete(key, version), fallback=False)

    def _call(self, operation: Callable[[], Answer], *, fallback: Answer) -> Answer:
        """Return the operation's result, or `fallback` if Redis fails or has failed lately."""
        if time.monotonic() < self._skipped_until:
            return fallback
        try:
            return operation()
        except (RedisError, OSError) as error:
            # On the class: Django makes one instance per thread.
            type(self)._skipped_until = time.monotonic() + SKIPPED_SECONDS  # noqa: SLF001  its own
            log.warning("cache_away", error=str(error), seconds=SKIPPED_SECONDS)
            return fallback
