"""The last requests of each key, for the page that shows them: a bounded list in Redis, or in the one web process.

No row is written for it, and nobody waits for it: an entry is stored after its answer has been sent.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict, deque
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from accounts import limits
from config.core.clock import utc_now
from config.core.middleware import request_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

log = structlog.get_logger(__name__)

PATH_CHARACTERS: Final = 200
KEYS_IN_PROCESS: Final = 1000
"""Keys that the embedded mode remembers; the one that was used the longest time ago gives way."""
REDIS_TIMEOUT_SECONDS: Final = 0.25
REDIS_SKIPPED_SECONDS: Final = 5.0
"""After a failure Redis isn't asked for this long: a dead one must not keep a thread from the next request."""
_redis_skipped_until: Final = {"at": 0.0}


@dataclass(frozen=True)
class RecentRequest:
    """One answered request; the path is without its query, which may hold what somebody searched for."""

    at: float
    method: str
    path: str
    status: int
    request_id: str

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)


class RecordRequests:
    """Middleware: every request that a key vouched for, whatever its answer was. A 401 names no key."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        caller = getattr(request, "caller", None)
        if caller is not None:
            seen = RecentRequest(
                at=time.time(),
                method=str(request.method)[:16],
                path=request.path[:PATH_CHARACTERS],
                status=response.status_code,
                request_id=request_id(),
            )
            # Called when the server has sent the last byte, so a slow Redis delays no answer.
            response._resource_closers.append(partial(keep_request, caller.token_id, seen))  # type: ignore[attr-defined]  # noqa: SLF001
        return response


def keep_request(token_id: UUID, seen: RecentRequest) -> None:
    """Keep the newest of a key; where Redis is away this one is forgotten."""
    if not settings.REDIS_URL:
        _keep_in_process(token_id, seen)
        return
    if time.monotonic() < _redis_skipped_until["at"]:
        return
    name = _name(token_id)
    try:
        with _client(settings.REDIS_URL).pipeline(transaction=False) as pipe:
            pipe.lpush(name, json.dumps(astuple(seen)))
            pipe.ltrim(name, 0, limits.KEY_REQUESTS_KEPT - 1)
            pipe.expire(name, limits.KEY_REQUESTS_KEPT_FOR)
            pipe.execute()
    except RedisError as error:
        _redis_skipped_until["at"] = time.monotonic() + REDIS_SKIPPED_SECONDS
        log.warning("request_not_recorded", error=str(error), seconds=REDIS_SKIPPED_SECONDS)


def recent_requests_of(token_id: UUID, *, now: datetime | None = None) -> list[RecentRequest] | None:
    """Newest first; None where the record can't be read just now."""
    since = ((now or utc_now()) - limits.KEY_REQUESTS_KEPT_FOR).timestamp()
    if not settings.REDIS_URL:
        with _lock:
            rows = list(_in_process.get(token_id, ()))
        return [seen for seen in rows if seen.at > since]
    try:
        found = _client(settings.REDIS_URL).lrange(_name(token_id), 0, limits.KEY_REQUESTS_KEPT - 1)
    except RedisError as error:
        log.warning("recent_requests_not_read", error=str(error))
        return None
    rows = [RecentRequest(*json.loads(row)) for row in found]
    return [seen for seen in rows if seen.at > since]


_lock: Final = Lock()
_in_process: Final[OrderedDict[UUID, deque[RecentRequest]]] = OrderedDict()


def _keep_in_process(token_id: UUID, seen: RecentRequest) -> None:
    with _lock:
        rows = _in_process.setdefault(token_id, deque(maxlen=limits.KEY_REQUESTS_KEPT))
        rows.appendleft(seen)
        _in_process.move_to_end(token_id)
        if len(_in_process) > KEYS_IN_PROCESS:
            _in_process.popitem(last=False)


def _name(token_id: UUID) -> str:
    return f"recent_requests:{token_id.hex}"


@cache
def _client(url: str) -> Redis:
    """One pool per process; one short try."""
    return Redis.from_url(
        url,
        socket_timeout=REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=REDIS_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
