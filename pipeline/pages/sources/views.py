"""Shows one source: its health, and the log of its entries or, for a brand lane, of its slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.shortcuts import get_object_or_404, render

from accounts.pages.page_access import Place, workspace_page
from config.core.ids import decode, encode
from pipeline import labels
from pipeline.generate.topics.lane_eligibility import engines_of
from pipeline.ingest.collect import kind_of
from pipeline.ingest.collect.health_text import health_of
from pipeline.models import RawItemStatus, Source, SourceEntry, WorkspaceDefaults
from pipeline.pages.sources.forms import FormatsForm
from pipeline.pages.sources.listing import describe_address
from pipeline.personas.lane_slots import recent_slots
from pipeline.states import POLLED_SOURCES

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import BrandPick, RawItem
    from pipeline.personas.lane_slots import LoggedSlot

LANE_SLOTS: Final = 30
"""Slots on one page of a brand lane's log."""
ENTRIES: Final = 50
"""Entries on one page of the log."""
ADMITTABLE_REASONS: Final = frozenset({"over_burst", "too_old", "before_first_poll"})
"""The reasons for leaving an entry aside that a person may overrule, because the entry is stored."""


def find_source(place: Place, src: UUID, *, deleted: bool = False) -> Source:
    """Return a source of the workspace, also a deleted one with `deleted`; raises `Http404` if there is none."""
    rows = Source.objects.of(place.workspace).filter(pk=src, test=False, is_push=False)
    row: Source = get_object_or_404(rows if deleted else rows.filter(deleted_at=None))
    return row


@workspace_page("look", methods=("GET",))
def source(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Show a source with its log; the parameter `decision` filters the entries, and an unknown one shows all."""
    row = find_source(place, src)
    if row.type == "brand":
        return _lane_page(request, place, row)
    decision = request.GET.get("decision", "")
    decision = decision if decision in labels.SOURCE_ENTRIES else ""
    entries, older = _log_page(request, place, row, decision)
    context = {
        **source_head(place, row, "log"),
        **_formats_context(row),
        "entries": entries,
        "older": older,
        "is_first_page": "before" not in request.GET,
        "decisions": {name: badge.label for name, badge in labels.SOURCE_ENTRIES.items()},
        "chosen": decision,
    }
    return render(request, "pages/sources/detail.html", context)


def _lane_page(request: HttpRequest, place: Place, row: Source) -> HttpResponse:
    context = {
        **source_head(place, row, "log"),
        **_formats_context(row),
        **lane_log(row, request.GET.get("before", "")),
        "is_first_page": "before" not in request.GET,
    }
    return render(request, "pages/sources/detail.html", context)


def _formats_context(row: Source) -> dict[str, Any]:
    """Return the source's formats: its own, or those that it makes of the workspace's defaults if it has none."""
    defaults = WorkspaceDefaults.objects.of(row.workspace_id).get()
    names = row.engines or defaults.engines
    if row.type == "brand" and not row.engines:
        names = [engine.name for engine in engines_of(row, defaults)]
    return {
        "formats": names,
        "formats_form": FormatsForm(source=row, initial={"engines": names}),
        "has_default_formats": not row.engines,
    }


def source_head(place: Place, row: Source, tab: str) -> dict[str, Any]:
    """Return the template context that all pages of a source share."""
    kind = kind_of(row.type)
    is_at_work = row.status in POLLED_SOURCES and place.workspace.is_at_work
    is_lane = row.type == "brand"
    token = row.inbound_token
    return {
        "source": row,
        "tab": tab,
        "kind": kind.label,
        "fetches": kind.fetches,
        "where": describe_address(row),
        "health": health_of(row, place.workspace),
        "is_lane": is_lane,
        "is_polled": is_at_work and kind.fetches,
        "is_run": is_at_work and (kind.fetches or is_lane),
        "is_polled_soon": is_at_work and kind.fetches and row.last_polled_at is None and not row.last_error,
        "inbound": f"{settings.PUBLIC_URL}/hooks/{token}" if token and place.may_edit else "",
    }


def _log_page(
    request: HttpRequest, place: Place, row: Source, decision: str
) -> tuple[list[dict[str, Any]], str]:
    """Return a page of the log, newest first, and the id before which the next page begins, or empty on the last."""
    rows = SourceEntry.objects.of(place.workspace).filter(source=row).select_related("raw_item")
    if decision:
        rows = rows.filter(decision=decision)
    before = decode("ent", request.GET.get("before", ""))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    entries = list(rows.order_by("-pk")[: ENTRIES + 1])
    entry_rows = [_entry_row(entry) for entry in entries[:ENTRIES]]
    older = encode("ent", entries[ENTRIES - 1].pk) if len(entries) > ENTRIES else ""
    return entry_rows, older


def _entry_row(entry: SourceEntry) -> dict[str, Any]:
    raw_item = entry.raw_item
    shown_raw_item = raw_item if raw_item is not None and raw_item.deleted_at is None else None
    return {
        "entry": entry,
        "decision": labels.SOURCE_ENTRIES[entry.decision],
        "by": entry.get_decided_by_display(),
        "raw": shown_raw_item,
        "may_admit": shown_raw_item is not None and _is_left_aside(shown_raw_item),
    }


def _is_left_aside(raw: RawItem) -> bool:
    """Return whether the raw item was left aside for a reason that a person may overrule.

    The raw item has the reason, because the entry's newest decision may be about a later change of its text.
    """
    return raw.status == RawItemStatus.SKIPPED and (raw.reason or {}).get("code") in ADMITTABLE_REASONS


def lane_log(source: Source, before: str) -> dict[str, Any]:
    """Return a page of a brand lane's log, newest first; `older` is the id where the next page begins, or empty."""
    logged_slots = recent_slots(source, before=decode("slt", before), most=LANE_SLOTS + 1)
    return {
        "slots": [_slot_row(logged) for logged in logged_slots[:LANE_SLOTS]],
        "older": encode("slt", logged_slots[LANE_SLOTS - 1].slot.pk)
        if len(logged_slots) > LANE_SLOTS
        else "",
    }


def _slot_row(logged: LoggedSlot) -> dict[str, Any]:
    return {
        "slot": logged.slot,
        "status": labels.BRAND_SLOTS[logged.slot.status],
        "message": str((logged.slot.note or {}).get("message", "")),
        "picks": [_pick_row(pick) for pick in logged.picks],
    }


def _pick_row(pick: BrandPick) -> dict[str, Any]:
    item = pick.item if pick.item is not None and pick.item.deleted_at is None else None
    return {
        "pick": pick,
        "decision": labels.BRAND_PICKS[pick.decision],
        "reason": str((pick.reason or {}).get("message", "")),
        "item": item,
    }
