"""Where counts stand that guard something, so that nobody can push one out: as caches, because allauth asks for one.

Django's own in memory holds 300 entries and then drops a third of them, whatever they guard. Here an entry ends by its
time.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any, Final

from django.core.cache import caches
from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.db import connection

from accounts.models import GuardCount

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable
    from datetime import datetime, timedelta

GUARDS: Final = "default"
"""The cache's name: allauth asks for this one."""
ENTRIES_IN_MEMORY: Final = 200_000
"""More than one process can be asked for within the minutes that most of them last; some 100 MB."""
_FOR_GOOD: Final = 2**62
_FORGOTTEN_AT_ONCE: Final = 500
_KEY_CHARACTERS: Final = 250


def count_one_more(key: str, *, within: timedelta, by: int = 1) -> int:
    """How many there were of this key in the present span of that length, this one included."""
    seconds = int(within.total_seconds())
    name, guards = f"{key}:{int(time.time()) // seconds}", caches[GUARDS]
    guards.add(name, 0, 2 * seconds)
    try:
        return int(guards.incr(name, by))
    except ValueError:
        # It ended between the two.
        return by


def forget_ended_counts(now: datetime) -> int:
    """Delete some entries whose time is over; how many."""
    ended = GuardCount.everywhere.filter(ends_micros__lte=int(now.timestamp() * 1_000_000))
    some = list(ended.order_by("ends_micros").values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE])
    if some:
        GuardCount.everywhere.filter(pk__in=some).delete()
    return len(some)


class MemoryCounterCache(LocMemCache):
    """Of the one process of the embedded mode. Where it is full, what has ended goes first, then what counted least."""

    # The parent's own; what is known of its types doesn't have them.
    _cache: OrderedDict[str, bytes]
    _expire_info: dict[str, float | None]
    _delete: Callable[[str], bool]

    def __init__(self, name: str, params: dict[str, Any]) -> None:
        super().__init__(name, {"MAX_ENTRIES": ENTRIES_IN_MEMORY, **params})

    def _cull(self) -> None:
        now = time.time()
        for key in [key for key, end in self._expire_info.items() if end is not None and end <= now]:
            self._delete(key)
        if len(self._cache) >= self._max_entries:
            # A lock has counted several times; whoever wants to push it out must do as much for each of a third of all.
            for key in sorted(self._cache, key=lambda key: len(self._cache[key]))[: len(self._cache) // 3]:
                self._delete(key)


class DatabaseCounterCache(BaseCache):
    """Of several processes, whether they have a Redis or not: one that is full or away would let every guess through."""

    def __init__(self, _location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return self._store(key, value, timeout, version, only_where_none=True)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._store(key, value, timeout, version, only_where_none=False)

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        rows = GuardCount.everywhere.filter(key=self._name(key, version), ends_micros__gt=_now())
        found = list(rows.values_list("value", flat=True)[:1])
        return json.loads(found[0]) if found else default

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        rows = GuardCount.everywhere.filter(key=self._name(key, version), ends_micros__gt=_now())
        return bool(rows.update(ends_micros=self._end(timeout)))

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """One statement, so that two at once are two."""
        sql = (
            "UPDATE guard_count SET value = CAST(CAST(value AS bigint) + %s AS text) "
            "WHERE key = %s AND ends_micros > %s RETURNING value"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, [delta, self._name(key, version), _now()])
            row = cursor.fetchone()
        if row is None:
            message = f"Key '{key}' not found"
            raise ValueError(message)
        return int(row[0])

    def delete(self, key: Any, version: int | None = None) -> bool:
        return bool(GuardCount.everywhere.filter(key=self._name(key, version)).delete()[0])

    def clear(self) -> None:
        GuardCount.everywhere.all().delete()

    def _store(
        self, key: Any, value: Any, timeout: Any, version: int | None, *, only_where_none: bool
    ) -> bool:
        """Write the entry; False where it is kept from before. One statement: of two that add at once one does."""
        sql = (
            "INSERT INTO guard_count (key, value, ends_micros) VALUES (%s, %s, %s) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value, ends_micros = excluded.ends_micros "
        )
        parameters: list[Any] = [self._name(key, version), json.dumps(value), self._end(timeout)]
        if only_where_none:
            sql, parameters = f"{sql} WHERE guard_count.ends_micros <= %s", [*parameters, _now()]
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return bool(cursor.rowcount > 0)

    def _end(self, timeout: Any) -> int:
        """In microseconds since 1970."""
        end = self.get_backend_timeout(timeout)
        return _FOR_GOOD if end is None else int(end * 1_000_000)

    def _name(self, key: Any, version: int | None) -> str:
        name = str(self.make_key(key, version=version))
        if len(name) <= _KEY_CHARACTERS and name.isprintable():
            return name
        # A form's mark is what a browser sent.
        return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()


def _now() -> int:
    """In microseconds since 1970."""
    return int(time.time() * 1_000_000)
