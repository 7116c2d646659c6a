"""Shows a workspace's usage: this month's credits by format, the model's cost, and the ledger's entries."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import render
from django.utils.translation import gettext_lazy

from accounts.ledger import credits, months, reports
from accounts.models import LedgerEntry
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.ids import decode
from pipeline.dashboard.usage import credits_by_engine, engine_names_by_run, model_cost
from pipeline.models import Bucket

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

ENTRIES: Final = 25
"""Ledger entries on a page."""
WARN_PERCENT: Final = 80
"""The share of the month's credits, in percent, from which on the meter warns."""
_MICRO_USD_PER_USD: Final = 1_000_000
_KIND_LABELS: Final = {
    "grant": gettext_lazy("Granted"),
    "reserve": gettext_lazy("Reserved"),
    "settle": gettext_lazy("Used"),
    "release": gettext_lazy("Refunded"),
    "expire": gettext_lazy("Expired"),
    "adjust": gettext_lazy("Adjusted"),
}


@workspace_page("look", methods=("GET",))
def usage(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the month's credits and cost, and a page of the ledger that `kind` and `before` select."""
    workspace = place.workspace
    now = utc_now()
    month = datetime.combine(months.month_of(now), datetime.min.time(), UTC)
    report = reports.usage(workspace, now)
    used_or_reserved = report.used + report.reserved
    # Without any credits the meter is full.
    percent = min(100, used_or_reserved * 100 // report.limit) if report.limit > 0 else 100
    entries, older = _ledger_page(request, place)
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
        "own_cost": _to_dollars(cost.own),
        "total_cost": _to_dollars(cost.total),
        "cap": None if workspace.model_cap_micro_usd is None else _to_dollars(workspace.model_cap_micro_usd),
        "cap_reached": workspace.model_cap_micro_usd is not None
        and cost.total >= workspace.model_cap_micro_usd,
        "buckets": dict(Bucket.choices),
        "kinds": _KIND_LABELS,
        "kind": _selected_kind(request),
        "entries": entries,
        "older": older,
        "is_first_page": "before" not in request.GET,
    }
    return render(request, "pages/usage.html", context)


def _selected_kind(request: HttpRequest) -> str:
    """Return the kind of entry in the parameter `kind`, or an empty text for all kinds."""
    kind = request.GET.get("kind", "")
    return kind if kind in _KIND_LABELS else ""


def _ledger_page(request: HttpRequest, place: Place) -> tuple[list[dict[str, Any]], str]:
    """Return a page of the ledger, newest first, and the id before which the next page begins, or an empty text."""
    rows = LedgerEntry.objects.of(place.workspace)
    kind = _selected_kind(request)
    if kind:
        rows = rows.filter(kind=kind)
    before = decode("led", request.GET.get("before", ""))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    entries = list(rows.order_by("-pk")[: ENTRIES + 1])
    page_entries = entries[:ENTRIES]
    older = credits.public_id(page_entries[-1]) if len(entries) > ENTRIES else ""
    engines = engine_names_by_run(place.workspace, (row.subject for row in page_entries if row.subject))
    page_rows = [
        {
            "entry": row,
            "kind": _KIND_LABELS[row.kind],
            "why": row.reason or (engines.get(row.subject, "") if row.subject else ""),
        }
        for row in page_entries
    ]
    return page_rows, older


def _to_dollars(micro_usd: int) -> Decimal:
    """Return millionths of a US dollar as dollars, rounded to cents."""
    return (Decimal(micro_usd) / _MICRO_USD_PER_USD).quantize(Decimal("0.01"))
