"""Keeps the last requests of each API key for its page, in a bounded list in Redis or in the one web process.

No database row is written, and nobody waits: an entry is stored after its answer has been sent.
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

MAX_PATH_CHARACTERS: Final = 200
"""Characters of a path that are kept."""
MAX_KEYS_IN_PROCESS: Final = 1000
"""Keys that the embedded mode remembers; beyond that, the least recently used one is dropped."""
REDIS_TIMEOUT_SECONDS: Final = 0.25
REDIS_SKIPPED_SECONDS: Final = 5.0
"""Seconds without Redis after a failure: a dead one must not keep a thread from the next request."""
_redis_skipped_until: Final = {"at": 0.0}


@dataclass(frozen=True)
class RecentRequest:
    """An answered request; the path is without its query, which may hold what somebody searched for."""

    at: float
    """When it was answered, in seconds since 1970."""
    method: str
    path: str
    status: int
    request_id: str

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)


class RecordRequests:
    """Middleware that records every request with a valid key, whatever the answer's status."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        caller = getattr(request, "caller", None)
        if caller is not None:
            entry = RecentRequest(
                at=time.time(),
                method=str(request.method)[:16],
                path=request.path[:MAX_PATH_CHARACTERS],
                status=response.status_code,
                request_id=request_id(),
            )
            # Called when the server has sent the last byte, so a slow Redis delays no answer.
            response._resource_closers.append(partial(store_request, caller.token_id, entry))  # type: ignore[attr-defined]  # noqa: SLF001
        return response


def store_request(token_id: UUID, entry: RecentRequest) -> None:
    """Add a request to its key's list, or drop it if Redis fails or has failed in the last seconds."""
    if not settings.REDIS_URL:
        _store_in_process(token_id, entry)
        return
    if time.monotonic() < _redis_skipped_until["at"]:
        return
    name = _list_key(token_id)
    try:
        with _client(settings.REDIS_URL).pipeline(transaction=False) as pipe:
            pipe.lpush(name, json.dumps(astuple(entry)))
            pipe.ltrim(name, 0, limits.KEY_REQUESTS_KEPT - 1)
            pipe.expire(name, limits.KEY_REQUESTS_KEPT_FOR)
            pipe.execute()
    except RedisError as error:
        _redis_skipped_until["at"] = time.monotonic() + REDIS_SKIPPED_SECONDS
        log.warning("request_not_recorded", error=str(error), seconds=REDIS_SKIPPED_SECONDS)


def read_recent_requests(token_id: UUID, *, now: datetime | None = None) -> list[RecentRequest] | None:
    """Return the key's requests of the last `KEY_REQUESTS_KEPT_FOR`, newest first, or `None` if Redis fails."""
    since = ((now or utc_now()) - limits.KEY_REQUESTS_KEPT_FOR).timestamp()
    if not settings.REDIS_URL:
        with _lock:
            entries = list(_in_process.get(token_id, ()))
        return [entry for entry in entries if entry.at > since]
    try:
        values = _client(settings.REDIS_URL).lrange(_list_key(token_id), 0, limits.KEY_REQUESTS_KEPT - 1)
    except RedisError as error:
        log.warning("recent_requests_not_read", error=str(error))
        return None
    entries = [RecentRequest(*json.loads(value)) for value in values]
    return [entry for entry in entries if entry.at > since]


_lock: Final = Lock()
_in_process: Final[OrderedDict[UUID, deque[RecentRequest]]] = OrderedDict()


def _store_in_process(token_id: UUID, entry: RecentRequest) -> None:
    with _lock:
        entries = _in_process.setdefault(token_id, deque(maxlen=limits.KEY_REQUESTS_KEPT))
        entries.appendleft(entry)
        _in_process.move_to_end(token_id)
        if len(_in_process) > MAX_KEYS_IN_PROCESS:
            _in_process.popitem(last=False)


def _list_key(token_id: UUID) -> str:
    return f"recent_requests:{token_id.hex}"


@cache
def _client(url: str) -> Redis:
    """Return the process's client, which has one pool of connections and tries each call once."""
    return Redis.from_url(
        url,
        socket_timeout=REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=REDIS_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
