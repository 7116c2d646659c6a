"""Stores the counts behind guards, such as failed log-ins, as Django caches, because allauth asks for one.

Nobody may be able to push a count out. Django's cache in memory holds 300 entries and then drops a third of
them, whatever they guard. Here an entry ends when its time is over; only a full cache in memory drops others,
and those that counted least.
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

GUARD_CACHE: Final = "default"
"""The cache's name; allauth uses this one."""
MAX_ENTRIES_IN_MEMORY: Final = 200_000
"""More than the requests that one process answers within the minutes that most entries last; some 100 MB."""
_NEVER_MICROS: Final = 2**62
_DELETED_AT_ONCE: Final = 500
"""Rows of one deletion."""
_MAX_KEY_CHARACTERS: Final = 250


def add_to_count(key: str, *, within: timedelta, amount: int = 1) -> int:
    """Add `amount` to the key's count and return the count so far in the current window.

    Windows have the length of `within` and begin at its multiples since 1970. If the entry is dropped at this
    moment, only `amount` is returned.
    """
    seconds = int(within.total_seconds())
    name, cache = f"{key}:{int(time.time()) // seconds}", caches[GUARD_CACHE]
    cache.add(name, 0, 2 * seconds)
    try:
        return int(cache.incr(name, amount))
    except ValueError:
        # The entry was dropped between `add` and `incr`.
        return amount


def delete_ended_counts(now: datetime) -> int:
    """Delete up to `_DELETED_AT_ONCE` counts whose time is over, and return how many."""
    ended = GuardCount.everywhere.filter(ends_micros__lte=int(now.timestamp() * 1_000_000))
    ids = list(ended.order_by("ends_micros").values_list("pk", flat=True)[:_DELETED_AT_ONCE])
    if ids:
        GuardCount.everywhere.filter(pk__in=ids).delete()
    return len(ids)


class MemoryCounterCache(LocMemCache):
    """Stores counts in memory, for the embedded mode with its one process.

    A full cache drops ended entries, and if it is still full a third of all, those that counted least.
    """

    # Attributes of the parent class that its type stubs lack.
    _cache: OrderedDict[str, bytes]
    _expire_info: dict[str, float | None]
    _delete: Callable[[str], bool]

    def __init__(self, name: str, params: dict[str, Any]) -> None:
        super().__init__(name, {"MAX_ENTRIES": MAX_ENTRIES_IN_MEMORY, **params})

    def _cull(self) -> None:
        now = time.time()
        for key in [key for key, end in self._expire_info.items() if end is not None and end <= now]:
            self._delete(key)
        if len(self._cache) >= self._max_entries:
            # The length of an entry stands for its count. A lock has counted several times; to push it out,
            # an attacker must do as much for each of a third of all entries.
            for key in sorted(self._cache, key=lambda key: len(self._cache[key]))[: len(self._cache) // 3]:
                self._delete(key)


class DatabaseCounterCache(BaseCache):
    """Stores counts in the database, for several processes; a full or dead Redis would let every guess pass."""

    def __init__(self, _location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return self._write_entry(key, value, timeout, version, only_if_missing=True)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._write_entry(key, value, timeout, version, only_if_missing=False)

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        rows = GuardCount.everywhere.filter(key=self._stored_key(key, version), ends_micros__gt=_now_micros())
        values = list(rows.values_list("value", flat=True)[:1])
        return json.loads(values[0]) if values else default

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        rows = GuardCount.everywhere.filter(key=self._stored_key(key, version), ends_micros__gt=_now_micros())
        return bool(rows.update(ends_micros=self._end_micros(timeout)))

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """Add `delta` in one statement, so that two at once count as two. Raises `ValueError` for a missing key."""
        sql = (
            "UPDATE guard_count SET value = CAST(CAST(value AS bigint) + %s AS text) "
            "WHERE key = %s AND ends_micros > %s RETURNING value"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, [delta, self._stored_key(key, version), _now_micros()])
            row = cursor.fetchone()
        if row is None:
            message = f"Key '{key}' not found"
            raise ValueError(message)
        return int(row[0])

    def delete(self, key: Any, version: int | None = None) -> bool:
        return bool(GuardCount.everywhere.filter(key=self._stored_key(key, version)).delete()[0])

    def clear(self) -> None:
        GuardCount.everywhere.all().delete()

    def _write_entry(
        self, key: Any, value: Any, timeout: Any, version: int | None, *, only_if_missing: bool
    ) -> bool:
        """Write the entry in one statement, or return `False` if an earlier one is kept, as by two adds at once."""
        sql = (
            "INSERT INTO guard_count (key, value, ends_micros) VALUES (%s, %s, %s) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value, ends_micros = excluded.ends_micros "
        )
        parameters: list[Any] = [self._stored_key(key, version), json.dumps(value), self._end_micros(timeout)]
        if only_if_missing:
            sql, parameters = f"{sql} WHERE guard_count.ends_micros <= %s", [*parameters, _now_micros()]
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return bool(cursor.rowcount > 0)

    def _end_micros(self, timeout: Any) -> int:
        """Return when an entry with this time-out ends, in microseconds since 1970."""
        end = self.get_backend_timeout(timeout)
        return _NEVER_MICROS if end is None else int(end * 1_000_000)

    def _stored_key(self, key: Any, version: int | None) -> str:
        """Return the key as it is stored; a long or unprintable one is hashed."""
        name = str(self.make_key(key, version=version))
        if len(name) <= _MAX_KEY_CHARACTERS and name.isprintable():
            return name
        # A key may hold what a browser sent, so anything may be in it.
        return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()


def _now_micros() -> int:
    """Return the time in microseconds since 1970."""
    return int(time.time() * 1_000_000)
