"""What a workspace has used this month, by what, and every entry of its ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import render
from django.utils.translation import gettext_lazy

from accounts.ledger import credits, months, reports
from accounts.models import LedgerEntry
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.ids import decode
from pipeline.dashboard.usage import credits_by_engine, engine_names_by_run, model_cost
from pipeline.models import Bucket

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

ENTRIES: Final = 25
WARN_PERCENT: Final = 80
_MICRO: Final = 1_000_000
_KINDS: Final = {
    "grant": gettext_lazy("Granted"),
    "reserve": gettext_lazy("Reserved"),
    "settle": gettext_lazy("Used"),
    "release": gettext_lazy("Refunded"),
    "expire": gettext_lazy("Expired"),
    "adjust": gettext_lazy("Adjusted"),
}


@page("look", methods=("GET",))
def usage(request: HttpRequest, place: Place) -> HttpResponse:
    workspace = place.workspace
    now = utc_now()
    month = datetime.combine(months.month_of(now), datetime.min.time(), UTC)
    report = reports.usage(workspace, now)
    bound = report.used + report.reserved
    percent = min(100, bound * 100 // report.limit) if report.limit > 0 else 100
    entries, older = _entries(request, place)
    cost = model_cost(workspace, month)
    context = {
        "month": month,
        "report": report,
        "left": max(report.available, 0),
        "is_limited": not workspace.is_unlimited,
        "percent": percent,
        "meter": "bad" if percent >= 100 else "warn" if percent >= WARN_PERCENT else "",
        "engines": credits_by_engine(workspace, month),
        "has_own_key": bool(workspace.model_key_last_four),
        "cost": cost,
        "own_cost": _dollars(cost.own),
        "total_cost": _dollars(cost.total),
        "cap": None if workspace.model_cap_micro_usd is None else _dollars(workspace.model_cap_micro_usd),
        "cap_reached": workspace.model_cap_micro_usd is not None
        and cost.total >= workspace.model_cap_micro_usd,
        "buckets": dict(Bucket.choices),
        "kinds": _KINDS,
        "kind": _kind(request),
        "entries": entries,
        "older": older,
        "is_first_page": "before" not in request.GET,
    }
    return render(request, "pages/usage.html", context)


def _kind(request: HttpRequest) -> str:
    asked = request.GET.get("kind", "")
    return asked if asked in _KINDS else ""


def _entries(request: HttpRequest, place: Place) -> tuple[list[dict[str, Any]], str]:
    """A page of the ledger, newest first, and the id before which the next one begins; empty where it is the last."""
    rows = LedgerEntry.objects.of(place.workspace)
    kind = _kind(request)
    if kind:
        rows = rows.filter(kind=kind)
    before = decode("led", request.GET.get("before", ""))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: ENTRIES + 1])
    shown = found[:ENTRIES]
    older = credits.public_id(shown[-1]) if len(found) > ENTRIES else ""
    engines = engine_names_by_run(place.workspace, (row.subject for row in shown if row.subject))
    told = [
        {
            "entry": row,
            "kind": _KINDS[row.kind],
            "why": row.reason or (engines.get(row.subject, "") if row.subject else ""),
        }
        for row in shown
    ]
    return told, older


def _dollars(micro: int) -> Decimal:
    return (Decimal(micro) / _MICRO).quantize(Decimal("0.01"))
