"""/healthz: the process is up. /readyz: it can do its work, and if not, what is missing."""

from __future__ import annotations

import errno
import os
import shutil
import time
from dataclasses import asdict, dataclass
from functools import cache
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final

import redis
from django.conf import settings
from django.db import DatabaseError, Error, OperationalError, connection, transaction
from django.http import HttpResponse, JsonResponse
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from config.core import dispatcher
from config.core.middleware import error_response
from config.operations import unfinished_restore

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

RAN_AGE_SECONDS_MOST: Final = 10.0
PROBED_EVERY_SECONDS: Final = 5.0
"""How often it is tried whether anything can be written, however often somebody asks."""
DISK_LEAST_BYTES: Final = 16 * 2**20
"""With less a disk is full: the next upload, or SQLite's journal, may find no room."""
_PROBE_BYTES: Final = 64 * 1024
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_AWAY: Final = "The database doesn't answer."
_POSTGRES_DISK_FULL: Final = "53100"
_probed: Final[dict[str, tuple[float, str]]] = {}
"""What was found and when, by what was tried; empty where all is well."""
_RAN_AT: Final = "dispatch:ran_at"
_RAN_AT_KEPT_SECONDS: Final = 3600


@dataclass(frozen=True)
class HealthCheck:
    name: str
    ok: bool
    detail: str


def note_run() -> None:
    """Tell the other processes that the dispatcher ran; the embedded mode's one process knows it without that."""
    if settings.REDIS_URL:
        _redis(settings.REDIS_URL).set(_RAN_AT, time.time(), ex=_RAN_AT_KEPT_SECONDS)


def healthz(request: HttpRequest) -> HttpResponse:
    return _refused(request) or JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    if refused := _refused(request):
        return refused
    checks = [writable_database(), media(), broker(), _dispatcher(), *_restore()]
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


def database() -> HealthCheck:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    # The reason goes no further than this: the address of a database is nobody's business outside.
    except Error:
        return HealthCheck("database", ok=False, detail=_AWAY)
    return HealthCheck("database", ok=True, detail=connection.vendor)


def writable_database() -> HealthCheck:
    """As `database()`, and whether it takes what comes in."""
    answers = database()
    if connection.vendor == "sqlite":
        # First, because on a disk that takes no writes SQLite may not answer either.
        fault = _sqlite_fault()
    elif answers.ok:
        try:
            fault = _postgres_fault()
        except Error:
            fault = _AWAY
    else:
        fault = ""
    return HealthCheck("database", ok=False, detail=fault) if fault else answers


def media() -> HealthCheck:
    fault = _now_and_then(
        str(settings.MEDIA_ROOT), lambda: _folder_fault(Path(settings.MEDIA_ROOT), "media files")
    )
    return HealthCheck("media", ok=not fault, detail=fault or "takes files")


def _now_and_then(what: str, try_it: Callable[[], str]) -> str:
    tried_at, found = _probed.get(what, (-inf, ""))
    if time.monotonic() - tried_at >= PROBED_EVERY_SECONDS:
        found = try_it()
        _probed[what] = time.monotonic(), found
    return found


def _sqlite_fault() -> str:
    file = Path(connection.settings_dict["NAME"])
    # Not opened: to close it again would let go of the locks that SQLite has on it for this process.
    if not os.access(file, os.W_OK):
        return "The database's file is read-only."
    return _now_and_then(str(file), lambda: _folder_fault(file.parent, "the database"))


def _folder_fault(folder: Path, what: str) -> str:
    """Where it is, is nobody's business outside."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Without a name, so that nothing is left of it, whatever happens.
        with TemporaryFile(dir=folder, buffering=0) as probe:
            probe.write(bytes(_PROBE_BYTES))
        is_full = shutil.disk_usage(folder).free < DISK_LEAST_BYTES
    except OSError as error:
        if error.errno not in _FULL:
            return f"The folder of {what} can't be written to."
        is_full = True
    return _full(what) if is_full else ""


def _full(what: str) -> str:
    return f"The disk of {what} is full."


def _postgres_fault() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'")
        is_standby, is_read_only = cursor.fetchone()
    if is_standby:
        return "The database is a standby, which takes no writes."
    if is_read_only:
        return "The database is read-only."
    return _now_and_then("postgresql", _postgres_disk_fault)


def _postgres_disk_fault() -> str:
    """Have the server write a temporary file, which needs no table, no lock and no place in its journal."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL work_mem = '64kB'")
            cursor.execute("SELECT count(*) FROM generate_series(1, 10000)")
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _POSTGRES_DISK_FULL:
            raise
        return _full("the database")
    return ""


@cache
def _redis(url: str) -> redis.Redis:
    # One try: the client's own ten would hold the answer back for half a minute.
    return redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1, retry=Retry(NoBackoff(), 0))


def broker() -> HealthCheck:
    if not settings.REDIS_URL:
        return HealthCheck("broker", ok=True, detail="in process")
    try:
        _redis(settings.REDIS_URL).ping()
    except RedisError:
        return HealthCheck("broker", ok=False, detail="Redis doesn't answer.")
    return HealthCheck("broker", ok=True, detail="redis")


def _restore() -> list[HealthCheck]:
    """Nothing to say but of a restore that isn't over."""
    try:
        is_half = unfinished_restore.is_half_restored()
    except DatabaseError:
        return []
    return [HealthCheck("restore", ok=False, detail=unfinished_restore.SENTENCE)] if is_half else []


def _dispatcher() -> HealthCheck:
    age = min(dispatcher.seconds_since_rounds(), seconds_since_run_elsewhere())
    if age > RAN_AGE_SECONDS_MOST:
        return HealthCheck(
            "dispatcher",
            ok=False,
            detail=f"It last ran more than {RAN_AGE_SECONDS_MOST:.0f} s ago: is a worker running that takes the queue dispatch?",
        )
    return HealthCheck("dispatcher", ok=True, detail=f"{age:.1f} s ago")


def seconds_since_run_elsewhere() -> float:
    """Of the workers that share our Redis; infinite where there is no Redis, or no word of a run in it."""
    if not settings.REDIS_URL:
        return inf
    try:
        ran_at = _redis(settings.REDIS_URL).get(_RAN_AT)
    except RedisError:
        return inf
    # By the clocks of two machines, which may differ a little.
    return max(time.time() - float(ran_at), 0.0) if isinstance(ran_at, bytes | str) else inf
