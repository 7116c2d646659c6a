"""Checks this instance for `manage.py doctor`, and says what to do about each fault."""

from __future__ import annotations

import secrets
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import requests
from django.apps import apps
from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from config import database_connections
from config.core.encrypted_fields import CannotDecrypt, SealedTextField, unseal
from config.core.http_client.guard import Policy, is_allowed
from config.core.work_queue import database_now
from config.operations import backup, health, media_sweep, plugin_checks, queue_stats, unfinished_restore
from pipeline.media import media_root_id
from pipeline.render.typography import supported_scripts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Verdict = Literal["ok", "warn", "FAIL"]
CLOCK_WARNS_SECONDS: Final = 2.0
"""The difference from the database's clock from which the doctor warns."""
CLOCK_FAILS_SECONDS: Final = 30.0
"""The difference that fails, half of the default lease: beyond it, tasks of two machines could hold one row."""
MAX_SEALED_READ: Final = 1000
"""The most newest values of each field that are tried, and as many of the oldest, which a dropped key would lose."""
DISK_WARNS_BYTES: Final = 2 * 2**30
DISK_FAILS_BYTES: Final = 200 * 2**20
BACKUP_WARNS_AFTER: Final = timedelta(hours=36)
"""The age of the newest backup from which one of the nightly ones must be missing, even if they are slow."""
FORBIDDEN_ADDRESSES: Final = ("127.0.0.1", "::1", "169.254.169.254", "10.0.0.1")
"""Addresses that users' sources mustn't reach: loopback, a cloud's metadata service and a private network."""


@dataclass(frozen=True)
class Finding:
    """The result of one check; `said` is its message, `advice` what to do about it."""

    name: str
    verdict: Verdict
    said: str
    advice: str = ""


def examine() -> list[Finding]:
    """Run every check and return the findings; a check that crashes is a finding and doesn't stop the others."""
    parts: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("settings", _settings),
        ("database", _database),
        ("migrations", _migrations),
        ("connections", _connections),
        ("broker", _broker),
        ("clock", _clock),
        ("restore", _restore),
        ("media", _media),
        ("fonts", _fonts),
        ("disk", _disk),
        ("backups", _backups),
        ("outbound", _outbound),
        ("keys", keys),
        ("platforms", platforms),
        ("dispatcher", dispatcher),
        ("late rows", _late_rows),
    )
    return [*(_safely(name, check) for name, check in parts), *_dead_rows()]


def _safely(name: str, check: Callable[[], Finding]) -> Finding:
    """Run the check; a crash becomes a finding."""
    try:
        return check()
    # Whatever breaks here, the next check must still run.
    except Exception as error:  # noqa: BLE001
        return Finding(
            name, "FAIL", f"The check itself failed: {type(error).__name__}.", "See the lines above it."
        )


def _settings() -> Finding:
    """Report the warnings and errors of Django's system checks."""
    messages = [
        message
        for message in checks.run_checks()
        if not message.is_silenced() and message.level >= checks.WARNING
    ]
    if not messages:
        return Finding("settings", "ok", "They agree with each other.")
    worst: Verdict = "FAIL" if any(message.is_serious() for message in messages) else "warn"
    return Finding(
        "settings",
        worst,
        " ".join(str(message.msg) for message in messages),
        " ".join(str(message.hint) for message in messages if message.hint),
    )


def _database() -> Finding:
    check = health.writable_database()
    if not check.ok:
        if connection.vendor == "sqlite":
            advice = "Free some space, or let the service's user write to DATA_DIR and the file in it."
        elif health.database().ok:
            advice = "Free some space there, or point DATABASE_URL at the server that takes writes."
        else:
            advice = "Start it, or correct DATABASE_URL."
        return Finding("database", "FAIL", check.detail, advice)
    return Finding("database", "ok", f"{check.detail} answers.")


def _migrations() -> Finding:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return Finding("migrations", "ok", "All are applied.")
    names = ", ".join(str(migration) for migration, _ in plan[:5])
    return Finding(
        "migrations", "FAIL", f"Not applied: {len(plan)} ({names}).", "Run manage.py migrate --no-input."
    )


def _connections() -> Finding:
    if connection.vendor != "postgresql":
        return Finding("connections", "ok", "SQLite has no bound for them.")
    possible, workers = database_connections.most_connections()
    allowed = database_connections.connections_of_server()
    message = f"Web of one machine and {workers} workers may open {possible}; PostgreSQL admits {allowed}."
    if possible <= allowed:
        return Finding("connections", "ok", message)
    advice = "Raise PostgreSQL's max_connections, or lower WEB_PROCESSES, WEB_THREADS, PUBLISH_THREADS or a worker's -c."
    return Finding("connections", "warn", message, advice)


def _broker() -> Finding:
    check = health.broker()
    if not check.ok:
        return Finding(
            "broker",
            "FAIL",
            check.detail,
            "Start Redis, or correct REDIS_URL. Until then nothing is processed; pushed content is kept.",
        )
    return Finding("broker", "ok", f"{check.detail}.")


def _clock() -> Finding:
    seconds_apart = abs((datetime.now(UTC) - database_now()).total_seconds())
    if seconds_apart < CLOCK_WARNS_SECONDS:
        return Finding("clock", "ok", f"{seconds_apart:.1f} s apart from the database's.")
    return Finding(
        "clock",
        "FAIL" if seconds_apart >= CLOCK_FAILS_SECONDS else "warn",
        f"It is {seconds_apart:.0f} s apart from the database's.",
        "Run a time service (chrony, systemd-timesyncd) on both machines.",
    )


def _media() -> Finding:
    """Check that the media folder takes files and is this database's, and that its sweep doesn't wait."""
    root = settings.MEDIA_ROOT
    probe = root / f".doctor-{secrets.token_hex(4)}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"doctor")
        probe.unlink()
    except OSError as error:
        advice = "Let the service's user write there, free some space, or set MEDIA_ROOT."
        return Finding("media", "FAIL", f"{root} can't be written to: {error.strerror}.", advice)
    comparison = media_root_id.compare_folder()
    if comparison.message:
        return Finding("media", "FAIL", comparison.message, media_root_id.ADVICE)
    sweep_stop = media_sweep.why_stopped()
    if sweep_stop:
        return Finding("media", "warn", sweep_stop, media_sweep.APPROVE_ADVICE)
    return Finding("media", "ok", f"{root} can be written to, and is this database's.")


def _fonts() -> Finding:
    """Say which scripts pictures and films can show; missing ones are never a failure."""
    limitation = supported_scripts.unshown_scripts()
    names = ", ".join(
        script.name
        for script in supported_scripts.SCRIPTS
        if script not in supported_scripts.missing_scripts()
    )
    if limitation is None:
        return Finding("fonts", "ok", f"Pictures and films show {names}.")
    return Finding(
        "fonts",
        "ok",
        f"{limitation.reason} Pushes in them say so, and get formats without pictures. They show {names}.",
        f"Install Debian's package {supported_scripts.CJK_PACKAGE}.",
    )


def _restore() -> Finding:
    if not unfinished_restore.is_half_restored():
        return Finding("restore", "ok", "None is in progress.")
    return Finding("restore", "FAIL", unfinished_restore.MESSAGE, "Run manage.py restore again, to its end.")


def _disk() -> Finding:
    """Check the free space of the data and media folders, because a full disk stops SQLite and every picture."""
    advice = "Free some space or enlarge the volume; manage.py backup --keep deletes old backups."
    free_space = []
    for folder in dict.fromkeys((settings.DATA_DIR, settings.MEDIA_ROOT)):
        usage = shutil.disk_usage(_existing_ancestor(folder))
        free_space.append((usage.free, f"{folder} has {usage.free / 2**30:.1f} GiB free"))
    message = f"{', '.join(text for _, text in free_space)}."
    least_free = min(free for free, _ in free_space)
    if least_free < DISK_FAILS_BYTES:
        return Finding("disk", "FAIL", message, advice)
    return Finding("disk", "warn" if least_free < DISK_WARNS_BYTES else "ok", message, advice)


def _existing_ancestor(folder: Path) -> Path:
    """Return the folder itself, or the nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _backups() -> Finding:
    """Check that `BACKUP_DIR` holds a backup of the last night."""
    advice = "Set BACKUP_DIR and run manage.py backup --keep 7 every night; see docs/running.md."
    if not settings.BACKUP_DIR:
        verdict: Verdict = "ok" if settings.IS_DEVELOPMENT else "warn"
        return Finding("backups", verdict, "BACKUP_DIR is not set, so they can't be checked.", advice)
    folder = Path(settings.BACKUP_DIR)
    backups = backup.list_backups(folder) if folder.is_dir() else []
    if not backups:
        return Finding("backups", "FAIL", f"{folder} holds no backup.", advice)
    age = timedelta(seconds=max(time.time() - backups[-1].stat().st_mtime, 0))
    message = f"{len(backups)}; the newest is {age / timedelta(hours=1):.0f} h old."
    if age > BACKUP_WARNS_AFTER:
        return Finding("backups", "warn", message, "Does the nightly backup still run? Its log says why not.")
    return Finding("backups", "ok", message)


def _outbound() -> Finding:
    """Check that users' sources and webhooks reach none of `FORBIDDEN_ADDRESSES`."""
    policy = Policy(
        allow_loopback=settings.OUTBOUND_ALLOW_LOOPBACK,
        allow_private=settings.OUTBOUND_ALLOW_PRIVATE,
        user_agent=settings.USER_AGENT,
    )
    reachable = [text for text in FORBIDDEN_ADDRESSES if is_allowed(ip_address(text), policy)]
    if not reachable:
        return Finding("outbound", "ok", "Loopback, private and metadata addresses are refused.")
    message = f"Users' sources and webhooks can reach {', '.join(reachable)}."
    advice = "Leave out OUTBOUND_ALLOW_LOOPBACK and OUTBOUND_ALLOW_PRIVATE."
    if settings.IS_DEVELOPMENT:
        return Finding("outbound", "ok", f"{message} This is right for development only.")
    # An operator may want private networks to be reachable, but hardly this machine's own services.
    return Finding("outbound", "FAIL" if settings.OUTBOUND_ALLOW_LOOPBACK else "warn", message, advice)


def keys() -> Finding:
    """Check that the keys decrypt a sample of the stored secrets."""
    opened = 0
    for table, column, sealed in _sealed_values():
        try:
            unseal(sealed)
        except CannotDecrypt:
            return Finding(
                "keys",
                "FAIL",
                (
                    f"A value of {table}.{column}, encrypted with key {sealed.partition(':')[0]!r}, can't "
                    "be decrypted."
                ),
                "Put the key that encrypted it back into FIELD_KEYS, after the newest.",
            )
        opened += 1
    return Finding("keys", "ok", f"They decrypt the stored secrets ({opened} values tried).")


def platforms() -> Finding:
    """Warn of platform API versions that expire soon, or whose documents weren't reviewed for long."""
    aging = plugin_checks.aging_apis()
    if not aging:
        return Finding("platforms", "ok", "No API version in use expires soon.")
    return Finding(
        "platforms", "warn", " ".join(api.message for api in aging), " ".join(api.advice for api in aging)
    )


def _sealed_values() -> Iterator[tuple[str, str, str]]:
    """Yield table, column and stored value of the newest and oldest secrets; the ORM would decrypt them."""
    quote = connection.ops.quote_name
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if not isinstance(field, SealedTextField):
                continue
            table, column = model._meta.db_table, str(field.column)
            for order in ("DESC", "ASC"):
                sql = (
                    f"SELECT {quote(column)} FROM {quote(table)} WHERE {quote(column)} IS NOT NULL "  # noqa: S608
                    f"ORDER BY id {order} LIMIT {MAX_SEALED_READ}"
                )
                with connection.cursor() as cursor:
                    cursor.execute(sql)
                    values = [row[0] for row in cursor.fetchall()]
                for sealed in values:
                    yield table, column, sealed


def dispatcher() -> Finding:
    """Check that the dispatcher ran within the last seconds."""
    advice = "Start beat and a worker; in the embedded mode, manage.py serve."
    age = health.seconds_since_run_elsewhere() if settings.REDIS_URL else None
    if age is None:
        return _dispatcher_of_embedded(advice)
    if age > health.MAX_RUN_AGE_SECONDS:
        message = (
            "It didn't run within the last hour." if age == float("inf") else f"It last ran {age:.0f} s ago."
        )
        return Finding("dispatcher", "FAIL", message, advice)
    return Finding("dispatcher", "ok", f"{age:.1f} s ago.")


def _dispatcher_of_embedded(advice: str) -> Finding:
    """Ask the serving process, which alone knows when the dispatcher ran, through its readiness probe."""
    with requests.Session() as session:
        # A proxy set in the environment must not be used for loopback.
        session.trust_env = False
        try:
            readiness: dict[str, Any] = session.get(
                f"http://127.0.0.1:{settings.PORT}/readyz", timeout=5, allow_redirects=False
            ).json()
        except (requests.RequestException, ValueError):
            return Finding("dispatcher", "warn", f"No service answers at port {settings.PORT}.", advice)
    check = next((entry for entry in readiness.get("checks", ()) if entry.get("name") == "dispatcher"), None)
    if check is None:
        return Finding("dispatcher", "warn", f"Another program answers at port {settings.PORT}.", advice)
    return Finding(
        "dispatcher", "ok" if check["ok"] else "FAIL", check["detail"], "" if check["ok"] else advice
    )


def _late_rows() -> Finding:
    backlogs = queue_stats.backlog_of_jobs()
    late = [backlog for backlog in backlogs if backlog.is_late]
    if not late:
        return Finding("late rows", "ok", "Nothing waits longer than a minute.")
    message = ", ".join(
        f"{backlog.kind}: {backlog.due} due, the oldest for {backlog.oldest_seconds:.0f} s"
        for backlog in late
    )
    return Finding("late rows", "warn", f"{message}.", "Is a worker running? Is WORKER_THREADS large enough?")


def _dead_rows() -> list[Finding]:
    try:
        counts = queue_stats.dead_counts()
    except DatabaseError:
        return [Finding("dead rows", "FAIL", "They could not be counted.", "Fix the database first.")]
    return [
        Finding(f"dead {name.replace('_', ' ')}", "warn", f"{count}.", queue_stats.DEAD[name].advice)
        if count
        else Finding(f"dead {name.replace('_', ' ')}", "ok", "None.")
        for name, count in counts.items()
    ]
