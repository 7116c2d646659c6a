"""Serves /healthz, which says that the process is up, and /readyz, which says whether it can do its work."""

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

MAX_RUN_AGE_SECONDS: Final = 10.0
"""The time since the dispatcher last ran from which it counts as stopped."""
PROBE_INTERVAL_SECONDS: Final = 5.0
"""The shortest time between two probes of writing, however often /readyz is requested."""
MIN_FREE_DISK_BYTES: Final = 16 * 2**20
"""With less free space a disk counts as full, because the next upload or SQLite's journal may not fit."""
_PROBE_BYTES: Final = 64 * 1024
_DISK_FULL_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_DATABASE_UNAVAILABLE: Final = "The database doesn't answer."
_POSTGRES_DISK_FULL: Final = "53100"
"""PostgreSQL's SQLSTATE for a full disk."""
_probe_results: Final[dict[str, tuple[float, str]]] = {}
"""The time of each thing's probe, in seconds of the monotonic clock, and its fault or an empty text."""
_RAN_AT: Final = "dispatch:ran_at"
"""The key in Redis for when the dispatcher last ran, in seconds since the epoch."""
_RAN_AT_KEPT_SECONDS: Final = 3600


@dataclass(frozen=True)
class HealthCheck:
    """The result of one check."""

    name: str
    ok: bool
    detail: str


def note_run() -> None:
    """Tell the other processes that the dispatcher ran, unless there are none as in the embedded mode.

    Raises `RedisError` if Redis is unavailable.
    """
    if settings.REDIS_URL:
        _redis(settings.REDIS_URL).set(_RAN_AT, time.time(), ex=_RAN_AT_KEPT_SECONDS)


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200, because the process is up."""
    return _refuse_method(request) or JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer the checks, with 200 if every one passes, else with 503."""
    if refused := _refuse_method(request):
        return refused
    checks = [writable_database(), media(), broker(), _dispatcher(), *_restore()]
    is_ready = all(check.ok for check in checks)
    response = JsonResponse(
        {"status": "ok" if is_ready else "unavailable", "checks": [asdict(check) for check in checks]},
        status=200 if is_ready else 503,
    )
    response["Cache-Control"] = "no-store"
    # A probe that asks every second must not fill the log with 503s.
    response._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001
    return response


def _refuse_method(request: HttpRequest) -> HttpResponse | None:
    """Return 405 for anything but GET and HEAD, else `None`."""
    if request.method in {"GET", "HEAD"}:
        return None
    return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})


def database() -> HealthCheck:
    """Check that the database answers."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    # The reason isn't shown: it may name the database's address.
    except Error:
        return HealthCheck("database", ok=False, detail=_DATABASE_UNAVAILABLE)
    return HealthCheck("database", ok=True, detail=connection.vendor)


def writable_database() -> HealthCheck:
    """Check that the database answers and accepts writes."""
    reachable = database()
    if connection.vendor == "sqlite":
        # Checked first, because on a disk that takes no writes SQLite may not answer either.
        fault = _sqlite_fault()
    elif reachable.ok:
        try:
            fault = _postgres_fault()
        except Error:
            fault = _DATABASE_UNAVAILABLE
    else:
        fault = ""
    return HealthCheck("database", ok=False, detail=fault) if fault else reachable


def media() -> HealthCheck:
    """Check that the media folder accepts files."""
    fault = _probe_at_intervals(
        str(settings.MEDIA_ROOT), lambda: _folder_fault(Path(settings.MEDIA_ROOT), "media files")
    )
    return HealthCheck("media", ok=not fault, detail=fault or "takes files")


def _probe_at_intervals(key: str, probe: Callable[[], str]) -> str:
    """Return the fault that `probe` returns, calling it at most once in `PROBE_INTERVAL_SECONDS`."""
    tried_at, fault = _probe_results.get(key, (-inf, ""))
    if time.monotonic() - tried_at >= PROBE_INTERVAL_SECONDS:
        fault = probe()
        _probe_results[key] = time.monotonic(), fault
    return fault


def _sqlite_fault() -> str:
    file = Path(connection.settings_dict["NAME"])
    # The file isn't opened, because closing it would release the locks that SQLite holds on it for this process.
    if not os.access(file, os.W_OK):
        return "The database's file is read-only."
    return _probe_at_intervals(str(file), lambda: _folder_fault(file.parent, "the database"))


def _folder_fault(folder: Path, what: str) -> str:
    """Return why the folder can't be written to, without its path, or an empty text if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A file without a name, so that nothing is left behind, whatever happens.
        with TemporaryFile(dir=folder, buffering=0) as probe:
            probe.write(bytes(_PROBE_BYTES))
        is_full = shutil.disk_usage(folder).free < MIN_FREE_DISK_BYTES
    except OSError as error:
        if error.errno not in _DISK_FULL_ERRORS:
            return f"The folder of {what} can't be written to."
        is_full = True
    return _disk_full_message(what) if is_full else ""


def _disk_full_message(what: str) -> str:
    return f"The disk of {what} is full."


def _postgres_fault() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'")
        is_standby, is_read_only = cursor.fetchone()
    if is_standby:
        return "The database is a standby, which takes no writes."
    if is_read_only:
        return "The database is read-only."
    return _probe_at_intervals("postgresql", _postgres_disk_fault)


def _postgres_disk_fault() -> str:
    """Return the fault of a full disk, tried by a temporary file, which needs no table, lock or write-ahead log."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # More rows than fit into this memory have to go into a file.
            cursor.execute("SET LOCAL work_mem = '64kB'")
            cursor.execute("SELECT count(*) FROM generate_series(1, 10000)")
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _POSTGRES_DISK_FULL:
            raise
        return _disk_full_message("the database")
    return ""


@cache
def _redis(url: str) -> redis.Redis:
    # No retries: the client's default of ten would delay the answer by half a minute.
    return redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1, retry=Retry(NoBackoff(), 0))


def broker() -> HealthCheck:
    """Check that the broker answers."""
    if not settings.REDIS_URL:
        return HealthCheck("broker", ok=True, detail="in process")
    try:
        _redis(settings.REDIS_URL).ping()
    except RedisError:
        return HealthCheck("broker", ok=False, detail="Redis doesn't answer.")
    return HealthCheck("broker", ok=True, detail="redis")


def _restore() -> list[HealthCheck]:
    """Return a failed check if a restore isn't finished, else none, also if the database doesn't answer."""
    try:
        is_half = unfinished_restore.is_half_restored()
    except DatabaseError:
        return []
    return [HealthCheck("restore", ok=False, detail=unfinished_restore.MESSAGE)] if is_half else []


def _dispatcher() -> HealthCheck:
    age = min(dispatcher.seconds_since_rounds(), seconds_since_run_elsewhere())
    if age > MAX_RUN_AGE_SECONDS:
        return HealthCheck(
            "dispatcher",
            ok=False,
            detail=f"It last ran more than {MAX_RUN_AGE_SECONDS:.0f} s ago: is a worker running that takes the queue dispatch?",
        )
    return HealthCheck("dispatcher", ok=True, detail=f"{age:.1f} s ago")


def seconds_since_run_elsewhere() -> float:
    """Return the seconds since any process on our Redis last noted a run, or infinity if none is known."""
    if not settings.REDIS_URL:
        return inf
    try:
        ran_at = _redis(settings.REDIS_URL).get(_RAN_AT)
    except RedisError:
        return inf
    # The clocks of the two machines may differ a little.
    return max(time.time() - float(ran_at), 0.0) if isinstance(ran_at, bytes | str) else inf
