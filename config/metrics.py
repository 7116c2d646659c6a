"""/metrics: what waits, how late it is and what is dead, in the text format that Prometheus reads."""

from __future__ import annotations

import resource
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from config import health, rows
from config.ground.requests import error_response
from pipeline.models import Publication
from pipeline.stages import stopping
from webhooks.models import Delivery

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet
    from django.http import HttpRequest

_STARTED_AT: Final = time.time()
_KIB: Final = 1 if sys.platform == "darwin" else 1024
"""`ru_maxrss` counts kibibytes on Linux and bytes on macOS."""


def metrics(request: HttpRequest) -> HttpResponse:
    if request.method not in {"GET", "HEAD"}:
        return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})
    if not _may_see(request):
        # As if it were not there: what an operator measures is nobody's business.
        return error_response("not_found")
    response = HttpResponse(_text(), content_type="text/plain; version=0.0.4; charset=utf-8")
    response["Cache-Control"] = "no-store"
    return response


def _may_see(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and scheme.lower() == "bearer":
        return constant_time_compare(given.strip(), settings.METRICS_TOKEN)
    return request.user.is_active and request.user.is_staff


def _text() -> str:
    now = timezone.now()
    waiting, dead = rows.waiting(), rows.dead_counts()
    late = {
        "publications": _lateness(Publication.everywhere.filter(status="scheduled"), now),
        "deliveries": _lateness(Delivery.everywhere.filter(status="pending"), now),
    }
    usage = resource.getrusage(resource.RUSAGE_SELF)
    lines = [
        *_gauge("pipeline_due_rows", "Rows whose time has come.", "kind", {w.kind: w.due for w in waiting}),
        *_gauge(
            "pipeline_oldest_due_seconds",
            "For how long the oldest due row has waited.",
            "kind",
            {w.kind: w.oldest_seconds for w in waiting},
        ),
        *_gauge("pipeline_dead_rows", "Rows that nothing takes up again by itself.", "kind", dead),
        *_gauge("pipeline_late_seconds", "How far behind its promise the latest one is.", "kind", late),
        *_gauge(
            "pipeline_overdue_publications",
            "Promised for a moment that is past, and not out.",
            "",
            {"": Publication.everywhere.filter(status="scheduled", due_at__lt=now).count()},
        ),
        *_gauge("pipeline_stopped", "Switches that stop something.", "", {"": len(stopping.standing())}),
        *_gauge("pipeline_database_up", "1 while it answers.", "", {"": int(health.database().ok)}),
        *_gauge("pipeline_broker_up", "1 while it answers.", "", {"": int(health.broker().ok)}),
        *_gauge("process_start_time_seconds", "Of this web process.", "", {"": _STARTED_AT}),
        *_gauge("process_resident_memory_max_bytes", "Its peak.", "", {"": usage.ru_maxrss * _KIB}),
        *_gauge("process_threads", "Of this web process.", "", {"": threading.active_count()}),
    ]
    return "\n".join(lines) + "\n"


def _lateness(open_rows: QuerySet[Publication] | QuerySet[Delivery], now: datetime) -> float:
    """Of those that wait for a look: the earliest promise, however often it was put off since."""
    waits = open_rows.filter(wake_at__isnull=False, due_at__lte=now)
    due_at = waits.order_by("due_at").values_list("due_at", flat=True).first()
    return max((now - due_at).total_seconds(), 0.0) if due_at else 0.0


def _gauge(name: str, said: str, label: str, values: Mapping[str, float]) -> Iterable[str]:
    """Labels are our own names, so nothing in them has to be escaped."""
    yield f"# HELP {name} {said}"
    yield f"# TYPE {name} gauge"
    for key, value in values.items():
        yield f'{name}{{{label}="{key}"}} {value}' if label else f"{name} {value}"
