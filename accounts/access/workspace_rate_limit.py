"""Limits each workspace's requests by a token bucket (GCRA), in Lua on Redis or else in one SQL statement."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import UUIDField
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from accounts import limits
from config.core.database.raw_sql import MAY_BE_LOST

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from redis.commands.core import Script

log = structlog.get_logger(__name__)

_MICROS_PER_SECOND: Final = 1_000_000
CAPACITY: Final = limits.RATE_BURST
INTERVAL: Final = 60 * _MICROS_PER_SECOND // limits.RATE_PER_MINUTE
"""Microseconds until one more request is allowed."""
WINDOW: Final = CAPACITY * INTERVAL
"""Microseconds until an empty allowance is full: how far theoretical arrivals may run ahead of the clock."""
MAX_AHEAD: Final = WINDOW + 60 * _MICROS_PER_SECOND
"""Microseconds that a stored arrival may be ahead of the clock.

One further ahead was written before the clock was set back, and the allowance then starts over. A clock that
was corrected by less gives nobody a second burst.
"""

REDIS_TIMEOUT_SECONDS: Final = 0.25
REDIS_SKIPPED_SECONDS: Final = 5.0
"""Seconds without Redis after a failure, so that a dead one doesn't cost every request its time-out."""
_redis_skipped_until: Final = {"at": 0.0}


@dataclass(frozen=True)
class Decision:
    """The decision on one request, with the numbers for the answer's headers.

    `limit` is the number of requests at once, `remaining` requests are left now, and the allowance is full again in `reset_seconds`. `retry_after` is
    the number of seconds until the next request is allowed, 0 if one is left.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_seconds: int
    retry_after: int


def take_request(workspace_id: UUID, *, now: datetime | None = None) -> Decision:
    """Take one request from the workspace's allowance; the count is exact however many are taken at once.

    Call it outside a transaction: the SQL form must commit on its own, else the row stays locked until the
    request ends, and a request that fails would be given back. `now` is for tests; both stores go by their
    own clock.
    """
    now_micros = None if now is None else round(now.timestamp() * _MICROS_PER_SECOND)
    if settings.REDIS_URL and time.monotonic() >= _redis_skipped_until["at"]:
        try:
            return _take_from_redis(workspace_id, now_micros)
        # Whatever is wrong with Redis or the network: the database has the same rule. The two stores don't
        # share their counts, so a change-over may allow one more burst.
        except RedisError as error:
            _redis_skipped_until["at"] = time.monotonic() + REDIS_SKIPPED_SECONDS
            log.warning("rate_limit_without_redis", error=str(error), seconds=REDIS_SKIPPED_SECONDS)
    return _take_from_database(workspace_id, now_micros)


def unlimited_decision() -> Decision:
    """Return the decision for a workspace without a rate limit."""
    return Decision(allowed=True, limit=CAPACITY, remaining=CAPACITY, reset_seconds=0, retry_after=0)


def headers_of(decision: Decision) -> dict[str, str]:
    """Return the IETF draft's two headers, the older three, and `Retry-After` for a refused request.

    `X-RateLimit-Reset` is when the next request is allowed, in seconds since 1970: clients of the older three
    wait until then.
    """
    values = {
        "RateLimit-Policy": f'"workspace";q={decision.limit};w={WINDOW // _MICROS_PER_SECOND}',
        "RateLimit": f'"workspace";r={decision.remaining};t={decision.reset_seconds}',
        "X-RateLimit-Limit": str(decision.limit),
        "X-RateLimit-Remaining": str(decision.remaining),
        "X-RateLimit-Reset": str(math.ceil(time.time()) + decision.retry_after),
    }
    if not decision.allowed:
        values["Retry-After"] = str(decision.retry_after)
    return values


def _decide(*, allowed: bool, arrival: int, now: int) -> Decision:
    """Return the decision for a request.

    `arrival` is the theoretical arrival time as it is stored after the request; it and `now` are in
    microseconds.
    """
    ahead = max(arrival - now, 0)
    until_next = _to_whole_seconds(ahead + INTERVAL - WINDOW)
    return Decision(
        allowed=allowed,
        limit=CAPACITY,
        remaining=max((WINDOW - ahead) // INTERVAL, 0) if allowed else 0,
        reset_seconds=_to_whole_seconds(ahead),
        # After a refusal at least one: a clock that moved on meanwhile must not send the caller back at once.
        retry_after=max(until_next, 0 if allowed else 1),
    )


def _to_whole_seconds(micros: int) -> int:
    """Return the microseconds as seconds, rounded up."""
    return -(-micros // _MICROS_PER_SECOND)


# --- Redis -----------------------------------------------------------------------------------------------------------

# Lua's numbers are doubles: microseconds since 1970 fit exactly, but are written by %.14g unless told
# otherwise.
_LUA: Final = """
local now = tonumber(ARGV[3])
if not now then
  local clock = redis.call('TIME')
  now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
end
local interval, window, beyond = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local stored = tonumber(redis.call('GET', KEYS[1]) or now)
if stored - now > beyond then
  stored = now
end
local arrival = math.max(stored, now) + interval
if arrival - now > window then
  return {0, stored, now}
end
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000) + 1000)
return {1, arrival, now}
"""


@cache
def _script(url: str) -> Script:
    """Return the script of the process's one pooled client, which is sent whole only if Redis doesn't know it."""
    client = Redis.from_url(
        url,
        socket_timeout=REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=REDIS_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    return client.register_script(_LUA)


def _take_from_redis(workspace_id: UUID, now: int | None) -> Decision:
    script = _script(settings.REDIS_URL)
    allowed, arrival, at = script(
        keys=[f"rate:{workspace_id.hex}"], args=[INTERVAL, WINDOW, "" if now is None else now, MAX_AHEAD]
    )
    return _decide(allowed=bool(allowed), arrival=int(arrival), now=int(at))


# --- SQL -------------------------------------------------------------------------------------------------------------

_CLOCK_POSTGRES: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# The row that would be inserted holds the earliest arrival (now + one interval), so the clock is read once.
# The condition sees the row as the transaction before us left it: the row's lock makes the count exact.
_TAKE: Final = """
    INSERT INTO rate_bucket (workspace_id, arrival_micros) VALUES (%s, {now} + %s)
    ON CONFLICT (workspace_id) DO UPDATE
        SET arrival_micros = CASE
            WHEN rate_bucket.arrival_micros > excluded.arrival_micros + %s THEN excluded.arrival_micros
            ELSE {greatest}(rate_bucket.arrival_micros + %s, excluded.arrival_micros) END
        WHERE {greatest}(rate_bucket.arrival_micros + %s, excluded.arrival_micros)
            <= excluded.arrival_micros + %s
            OR rate_bucket.arrival_micros > excluded.arrival_micros + %s
    RETURNING arrival_micros, {now}
"""
_READ: Final = "SELECT arrival_micros, {now} FROM rate_bucket WHERE workspace_id = %s"


def _take_from_database(workspace_id: UUID, now: int | None) -> Decision:
    """Take a request by one SQL statement; a refused one needs a second, for the wait."""
    is_postgres = connection.vendor == "postgresql"
    if now is None and not is_postgres:
        # SQLite's clock is this machine's; its own functions give milliseconds only.
        now = time.time_ns() // 1000
    clock_parameters: list[Any] = [] if now is None else [now]
    dialect = {
        "now": _CLOCK_POSTGRES if now is None else ("%s::bigint" if is_postgres else "%s"),
        "greatest": "GREATEST" if is_postgres else "MAX",
    }
    workspace_key = UUIDField().get_db_prep_value(workspace_id, connection)
    with connection.cursor() as cursor:
        max_ahead = MAX_AHEAD - INTERVAL
        cursor.execute(
            f"{_TAKE.format(**dialect)} {MAY_BE_LOST}",
            [
                workspace_key,
                *clock_parameters,
                INTERVAL,
                max_ahead,
                INTERVAL,
                INTERVAL,
                WINDOW - INTERVAL,
                max_ahead,
                *clock_parameters,
            ],
        )
        # All rows are fetched, because SQLite commits a statement only when its last row was read.
        if rows := cursor.fetchall():
            arrival, at = rows[0]
            return _decide(allowed=True, arrival=arrival, now=at)
        # Only a refused request pays for a second statement, to learn how long to wait.
        cursor.execute(_READ.format(**dialect), [*clock_parameters, workspace_key])
        arrival, at = cursor.fetchone()
    return _decide(allowed=False, arrival=arrival, now=at)
