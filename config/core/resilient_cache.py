"""The marks of forms on Redis: while Redis is away it holds nothing, and nobody's page fails for it."""

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
"""After a failure Redis isn't asked for this long: a dead one must not cost every page its time-outs."""


class ForgivingRedisCache(RedisCache):
    """What is kept here only tells second clicks; who may do what never depends on it."""

    _skipped_until = 0.0

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """True where nothing can be kept: whoever asks is the first."""
        return self._ask(
            lambda: super(ForgivingRedisCache, self).add(key, value, timeout, version), instead=True
        )

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return self._ask(lambda: super(ForgivingRedisCache, self).get(key, default, version), instead=default)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._ask(lambda: super(ForgivingRedisCache, self).set(key, value, timeout, version), instead=None)

    def delete(self, key: Any, version: int | None = None) -> bool:
        return self._ask(lambda: super(ForgivingRedisCache, self).delete(key, version), instead=False)

    def _ask(self, question: Callable[[], Answer], *, instead: Answer) -> Answer:
        if time.monotonic() < self._skipped_until:
            return instead
        try:
            return question()
        except (RedisError, OSError) as error:
            # Of the class: Django makes one of these for each thread.
            type(self)._skipped_until = time.monotonic() + SKIPPED_SECONDS  # noqa: SLF001  its own
            log.warning("cache_away", error=str(error), seconds=SKIPPED_SECONDS)
            return instead
