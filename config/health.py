"""/healthz: the process is up. /readyz: it can do its work, and if not, what is missing."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Final

import redis
from django.conf import settings
from django.db import DatabaseError, Error, connection
from django.http import HttpResponse, JsonResponse
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from config import half_restored
from config.ground import hands
from config.ground.requests import error_response

if TYPE_CHECKING:
    from django.http import HttpRequest

TICK_AGE_SECONDS_MOST: Final = 10.0
_TICKED_AT: Final = "config:ticked_at"
_TICKED_AT_KEPT_SECONDS: Final = 3600


@dataclass(frozen=True)
class Check:
    name: str
    ok: bool
    detail: str


def note_tick() -> None:
    """Tell the other processes; the embedded mode's one process sees its own ticks without that."""
    if settings.REDIS_URL:
        _redis(settings.REDIS_URL).set(_TICKED_AT, time.time(), ex=_TICKED_AT_KEPT_SECONDS)


def healthz(request: HttpRequest) -> HttpResponse:
    return _refused(request) or JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    if refused := _refused(request):
        return refused
    checks = [database(), broker(), _tick(), *_restore()]
    is_ready = all(check.ok for check in checks)
    response = JsonResponse(
        {"status": "ok" if is_ready else "unavailable", "checks": [asdict(check) for check in checks]},
        status=200 if is_ready else 503,
    )
    response["Cache-Control"] = "no-store"
    # A probe that asks every second must not fill the log with what its answer says.
    response._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001
    return response


def _refused(request: HttpRequest) -> HttpResponse | None:
    if request.method in {"GET", "HEAD"}:
        return None
    return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})


def database() -> Check:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    # The reason goes no further than this: the address of a database is nobody's business outside.
    except Error:
        return Check("database", ok=False, detail="The database doesn't answer.")
    return Check("database", ok=True, detail=connection.vendor)


@cache
def _redis(url: str) -> redis.Redis:
    # One try: the client's own ten would hold the answer back for half a minute.
    return redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1, retry=Retry(NoBackoff(), 0))


def broker() -> Check:
    if not settings.REDIS_URL:
        return Check("broker", ok=True, detail="in process")
    try:
        _redis(settings.REDIS_URL).ping()
    except RedisError:
        return Check("broker", ok=False, detail="Redis doesn't answer.")
    return Check("broker", ok=True, detail="redis")


def _restore() -> list[Check]:
    """Nothing to say but of a restore that isn't over."""
    try:
        is_half = half_restored.is_half_restored()
    except DatabaseError:
        return []
    return [Check("restore", ok=False, detail=half_restored.SENTENCE)] if is_half else []


def _tick() -> Check:
    age = min(hands.seconds_since_tick(), seconds_since_tick_elsewhere())
    if age > TICK_AGE_SECONDS_MOST:
        return Check(
            "tick",
            ok=False,
            detail=f"The last tick came more than {TICK_AGE_SECONDS_MOST:.0f} s ago: is beat running, and a worker?",
        )
    return Check("tick", ok=True, detail=f"{age:.1f} s ago")


def seconds_since_tick_elsewhere() -> float:
    """Of the workers that share our Redis; infinite where there is no Redis, or no word of a tick in it."""
    if not settings.REDIS_URL:
        return inf
    try:
        ticked_at = _redis(settings.REDIS_URL).get(_TICKED_AT)
    except RedisError:
        return inf
    # By the clocks of two machines, which may differ a little.
    return max(time.time() - float(ticked_at), 0.0) if isinstance(ticked_at, bytes | str) else inf
