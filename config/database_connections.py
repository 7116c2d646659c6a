"""Computes how many connections to PostgreSQL a process may open, by the kind of process."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.db import connection

from config.core import work_leases, work_queue
from pipeline.models import Worker

OF_FORKED: Final = 2
"""Connections of a forked child, which runs one task at a time, and of the parent that forks."""
OF_DISPATCHER: Final = 2
"""Connections of the dispatcher in a worker with threads."""
EXTRA_CONNECTIONS: Final = 2
"""Connections for the heartbeat and the main thread of a worker with threads."""
EMBEDDED: Final = "embedded"
"""The name of the worker within the one web process."""


def resize_pool(max_connections: int) -> None:
    """Let this process's pool, if it has one, open `max_connections`; it must not have opened any yet."""
    pool = connection.settings_dict["OPTIONS"].get("pool")
    if isinstance(pool, dict):
        pool["max_size"] = max_connections


def most_connections() -> tuple[int, int]:
    """Return how many connections web processes and living workers may open, and how many workers live.

    Only the web processes of one machine are counted, because others aren't known.
    """
    living = Worker.everywhere.filter(seen_at__gt=work_queue.database_now() - work_leases.ALIVE)
    workers = list(living.values_list("name", "connections"))
    processes = 1 if EMBEDDED in dict(workers) else settings.WEB_PROCESSES
    return processes * settings.WEB_CONNECTIONS + sum(
        worker_connections for _, worker_connections in workers
    ), len(workers)


def connections_of_server() -> int:
    """Return how many connections PostgreSQL accepts from users who aren't superusers."""
    sql = """SELECT sum(CASE WHEN name = 'max_connections' THEN setting::int ELSE -setting::int END) FROM pg_settings
             WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')"""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[0])


def slots_of(worker: Any) -> dict[str, int]:
    """Return how many tasks of each of its queues a worker runs at once, by the settings or by its `-c`.

    A worker never renders more videos at once than the machine has cores for.
    """
    queues = {
        queue.name for queue in worker.app.amqp.queues.consume_from.values()
    } & settings.QUEUE_SLOTS.keys()
    size = int(worker.concurrency or 1)
    if size == settings.WORKER_SLOTS:
        return {name: settings.QUEUE_SLOTS[name] for name in queues}
    return {name: min(size, settings.FILMS_AT_ONCE) if name == "render" else size for name in queues}


def connections_of(worker: Any) -> int:
    """Return how many connections to the database this worker may open in all."""
    size = int(worker.concurrency or 1)
    if forks(worker):
        return OF_FORKED * (size + 1)
    has_dispatcher = "dispatch" in worker.app.amqp.queues.consume_from
    tasks = sum(slots_of(worker).values()) + (OF_DISPATCHER if has_dispatcher else 0)
    return min(tasks, size) + EXTRA_CONNECTIONS


def forks(worker: Any) -> bool:
    """Return whether the worker forks a process per slot."""
    return "prefork" in str(worker.pool_cls)
