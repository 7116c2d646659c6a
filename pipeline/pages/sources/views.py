"""One source: how it is doing, and what was done with its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.shortcuts import get_object_or_404, render

from accounts.pages.page_access import Place, page
from config.core.ids import decode, encode
from pipeline import labels
from pipeline.ingest.collect import kind_of
from pipeline.ingest.collect.health_text import health_of
from pipeline.models import RawItemStatus, Source, SourceEntry
from pipeline.pages.sources import lane_log
from pipeline.pages.sources.address_label import place_of
from pipeline.states import POLLED_SOURCES

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import RawItem

ENTRIES: Final = 50
ADMITTED: Final = frozenset({"over_burst", "too_old", "before_first_poll"})
"""Decisions that a person may overrule: the entry is kept, and can be worked on after all."""


def find_source(place: Place, src: UUID, *, deleted: bool = False) -> Source:
    rows = Source.objects.of(place.workspace).filter(pk=src, test=False, is_push=False)
    row: Source = get_object_or_404(rows if deleted else rows.filter(deleted_at=None))
    return row


@page("look", methods=("GET",))
def source(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src)
    if row.type == "brand":
        return _lane(request, place, row)
    chosen = request.GET.get("decision", "")
    chosen = chosen if chosen in labels.SOURCE_ENTRIES else ""
    entries, older = _entries(request, place, row, chosen)
    context = {
        **source_head(place, row, "log"),
        "entries": entries,
        "older": older,
        "is_first_page": "before" not in request.GET,
        "decisions": {name: badge.label for name, badge in labels.SOURCE_ENTRIES.items()},
        "chosen": chosen,
    }
    return render(request, "pages/sources/detail.html", context)


def _lane(request: HttpRequest, place: Place, row: Source) -> HttpResponse:
    context = {
        **source_head(place, row, "log"),
        **lane_log.read(row, request.GET.get("before", "")),
        "is_first_page": "before" not in request.GET,
    }
    return render(request, "pages/sources/detail.html", context)


def source_head(place: Place, row: Source, tab: str) -> dict[str, Any]:
    kind = kind_of(row.type)
    is_at_work = row.status in POLLED_SOURCES and place.workspace.is_at_work
    is_lane = row.type == "brand"
    token = row.inbound_token
    return {
        "source": row,
        "tab": tab,
        "kind": kind.label,
        "fetches": kind.fetches,
        "where": place_of(row),
        "health": health_of(row, place.workspace),
        "is_lane": is_lane,
        "is_polled": is_at_work and kind.fetches,
        "is_run": is_at_work and (kind.fetches or is_lane),
        "is_polled_soon": is_at_work and kind.fetches and row.last_polled_at is None and not row.last_error,
        "inbound": f"{settings.PUBLIC_URL}/hooks/{token}" if token and place.may_edit else "",
    }


def _entries(
    request: HttpRequest, place: Place, row: Source, decision: str
) -> tuple[list[dict[str, Any]], str]:
    """A page of the log, newest first, and the id before which the next one begins; empty where it is the last."""
    rows = SourceEntry.objects.of(place.workspace).filter(source=row).select_related("raw_item")
    if decision:
        rows = rows.filter(decision=decision)
    before = decode("ent", request.GET.get("before", ""))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: ENTRIES + 1])
    shown = [_entry(one) for one in found[:ENTRIES]]
    older = encode("ent", found[ENTRIES - 1].pk) if len(found) > ENTRIES else ""
    return shown, older


def _entry(one: SourceEntry) -> dict[str, Any]:
    raw = one.raw_item
    kept = raw if raw is not None and raw.deleted_at is None else None
    return {
        "entry": one,
        "decision": labels.SOURCE_ENTRIES[one.decision],
        "by": one.get_decided_by_display(),
        "raw": kept,
        "may_admit": kept is not None and _is_left_aside(kept),
    }


def _is_left_aside(raw: RawItem) -> bool:
    """As the raw item says it: what was decided last of the entry may be that its words have changed since."""
    return raw.status == RawItemStatus.SKIPPED and (raw.reason or {}).get("code") in ADMITTED
