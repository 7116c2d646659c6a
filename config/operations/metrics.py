"""Serves /metrics in the text format of Prometheus: waiting, late and dead rows, workers, counters."""

from __future__ import annotations

import resource
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import Error
from django.db.models import Count
from django.http import HttpResponse
from django.utils.crypto import constant_time_compare

from config import web_start_time
from config.core import jobs, work_leases, work_queue
from config.core.clock import utc_now
from config.core.middleware import error_response
from config.operations import health, media_sweep, metric_counters, queue_stats, running_tasks
from pipeline.models import Publication
from pipeline.switches import kill_switch
from webhooks.models import Delivery, Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet
    from django.http import HttpRequest

_KIB: Final = 1 if sys.platform == "darwin" else 1024
"""Bytes of a unit of `ru_maxrss`, which counts kibibytes on Linux and bytes on macOS."""


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer the metrics to Prometheus and to staff, and 404 to others."""
    if request.method not in {"GET", "HEAD"}:
        return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})
    if not _may_see(request):
        # 404, as if the page didn't exist: the numbers are the operator's alone.
        return error_response("not_found")
    response = HttpResponse(_exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")
    response["Cache-Control"] = "no-store"
    return response


def _may_see(request: HttpRequest) -> bool:
    """Return whether the request carries the metrics token or a staff session."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and scheme.lower() == "bearer":
        return constant_time_compare(token.strip(), settings.METRICS_TOKEN)
    return request.user.is_active and request.user.is_staff


def _exposition() -> str:
    """Return the page; while the database is unavailable it has only the series that need no database."""
    lines: list[str] = []
    is_up = health.database().ok
    if is_up:
        try:
            lines = list(_database_series())
        # The connection broke meanwhile, so none of the database's series is shown.
        except Error:
            is_up = False
    usage = resource.getrusage(resource.RUSAGE_SELF)
    lines += [
        *_series("pipeline_database_up", "1 while it answers.", "", {"": int(is_up)}),
        *_series("pipeline_broker_up", "1 while it answers.", "", {"": int(health.broker().ok)}),
        *_series(
            "process_start_time_seconds",
            "When the newest of the web processes started.",
            "",
            {"": web_start_time.newest()},
        ),
        *_series("process_resident_memory_max_bytes", "Its peak.", "", {"": usage.ru_maxrss * _KIB}),
        *_series("process_threads", "Of this web process.", "", {"": threading.active_count()}),
    ]
    return "\n".join(lines) + "\n"


def _database_series() -> Iterable[str]:
    """Yield the series that are read from the database."""
    now = utc_now()
    yield from _due_row_series()
    yield from _lateness_series(now)
    yield from _worker_series()
    yield from _counters(metric_counters.counter_sums())
    yield from _series(
        "pipeline_webhook_endpoints",
        "Endpoints of webhooks that aren't removed, by state.",
        "state",
        _endpoints(),
    )
    yield from _series(
        "pipeline_stopped", "Switches that stop something.", "", {"": len(kill_switch.standing())}
    )
    # It waits for `manage.py media --approve-sweep`.
    yield from _series(
        "pipeline_media_sweep_waits",
        "1 while the media sweep waits for approval to delete so many files.",
        "",
        {"": int(media_sweep.why_stopped() != "")},
    )


def _due_row_series() -> Iterable[str]:
    """Yield how many rows of each kind are due, wait and are dead, and the age of the oldest due row."""
    backlogs = [*queue_stats.backlog_of_jobs(), *queue_stats.unread_events()]
    dead = queue_stats.dead_counts()
    yield from _series(
        "pipeline_due_rows",
        "Rows whose time has come.",
        "kind",
        {backlog.kind: backlog.due for backlog in backlogs},
    )
    yield from _series(
        "pipeline_waiting_rows",
        "Rows that wait for their time or for a worker.",
        "kind",
        {backlog.kind: backlog.depth for backlog in backlogs},
    )
    yield from _series(
        "pipeline_oldest_due_seconds",
        "For how long the oldest due row has waited.",
        "kind",
        {backlog.kind: backlog.oldest_seconds for backlog in backlogs},
    )
    yield from _series("pipeline_dead_rows", "Rows that aren't retried automatically.", "kind", dead)


def _lateness_series(now: datetime) -> Iterable[str]:
    """Yield how late publications and deliveries are, and how many publications are overdue."""
    late = {
        "publications": _lateness(Publication.everywhere.scheduled(), now),
        "deliveries": _lateness(Delivery.everywhere.pending(), now),
    }
    yield from _series("pipeline_late_seconds", "How late the most overdue one is.", "kind", late)
    yield from _series(
        "pipeline_overdue_publications",
        "Scheduled for a time that has passed, and not published.",
        "",
        {"": Publication.everywhere.due(now).count()},
    )


def _worker_series() -> Iterable[str]:
    """Yield how many tasks of each queue the workers can run, and of each kind how many run."""
    yield from _series(
        "pipeline_slots", "Tasks that the living workers can run at once, of each queue.", "queue", _slots()
    )
    yield from _series("pipeline_running_tasks", "Tasks that run now, of each kind.", "kind", _running())


def _slots() -> dict[str, int]:
    slots = work_leases.count_slots(work_queue.database_now())
    return {queue: slots[queue] for queue in jobs.QUEUES if queue != "dispatch"}


def _running() -> dict[str, int]:
    running = Counter(
        lease.job
        for lease in running_tasks.running_or_queued(work_queue.database_now())
        if lease.state == "running"
    )
    return {kind: running[kind] for kind in jobs.jobs()}


def _lateness(open_rows: QuerySet[Publication] | QuerySet[Delivery], now: datetime) -> float:
    """Return the seconds since the earliest due time of waiting rows, also postponed ones, or 0 if none is due."""
    waits = open_rows.filter(wake_at__isnull=False, due_at__lte=now)
    due_at = waits.order_by("due_at").values_list("due_at", flat=True).first()
    return max((now - due_at).total_seconds(), 0.0) if due_at else 0.0


_JOB_COUNTERS: Final = {
    "attempts": ("pipeline_attempts_total", "Tasks that began and ended."),
    "work_failed": ("pipeline_work_failed_total", "Tasks that ended with an internal error."),
    "given_up": ("pipeline_given_up_total", "Tasks that gave a row up after too many tries."),
    "overdue": (
        "pipeline_overdue_tasks_total",
        "Tasks that still ran 30 s after their row's lease had ended.",
    ),
    "claims_lost": (
        "pipeline_claims_lost_total",
        "Writes that were dropped because another worker had the lease.",
    ),
    "work_seconds": ("pipeline_work_seconds_total", "How long tasks ran."),
}
"""The counters of every job: the tally's name, the metric's name and its help text."""


def _counters(sums: Mapping[tuple[str, str], float]) -> Iterable[str]:
    """Yield the counters, which are totals of all processes since the database was created."""
    kinds = list(jobs.jobs())
    for tally, (name, help_text) in _JOB_COUNTERS.items():
        values = {kind: sums.get((tally, kind), 0.0) for kind in kinds}
        yield from _series(name, help_text, "kind", values, kind="counter")
    outcomes = {outcome: sums.get(("webhook_attempts", outcome), 0.0) for outcome in ("delivered", "failed")}
    yield from _series(
        "pipeline_webhook_attempts_total", "Attempts of webhooks.", "outcome", outcomes, kind="counter"
    )
    summary = "pipeline_webhook_first_wait_seconds"
    yield f"# HELP {summary} From the moment a delivery may be sent to its first attempt."
    yield f"# TYPE {summary} summary"
    yield f"{summary}_sum {sums.get(('webhook_first_wait_seconds', 'all'), 0.0)}"
    yield f"{summary}_count {sums.get(('webhook_first_attempts', 'all'), 0.0)}"


def _endpoints() -> dict[str, int]:
    """Return the number of endpoints by state; those that are switched off count as `paused`."""
    endpoints = Endpoint.everywhere.filter(deleted_at=None)
    groups = endpoints.values_list("is_on", "status").annotate(count=Count("pk")).order_by()
    states = dict.fromkeys(("active", "degraded", "disabled", "paused"), 0)
    for is_on, status, count in groups:
        states[status if is_on else "paused"] += count
    return states


def _series(
    name: str, help_text: str, label: str, values: Mapping[str, float], *, kind: str = "gauge"
) -> Iterable[str]:
    """Yield the lines of one metric: a value for each value of `label`, or a single one if `label` is empty.

    Labels are our own names, so nothing in them has to be escaped.
    """
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    for key, value in values.items():
        yield f'{name}{{{label}="{key}"}} {value}' if label else f"{name} {value}"
