"""One item: as it will look, what it rests on, how it was judged, what it cost, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from accounts.pages.page_access import Place, page
from accounts.pages.polling import is_poll_for, polling_fragment
from config.core.clock import utc_now
from pipeline import labels, publish
from pipeline.generate import retry_rules
from pipeline.models import (
    Asset,
    Bucket,
    FlagReason,
    GeneratedItem,
    GeneratedItemStatus,
    Publication,
    PublicationStatus,
    Revision,
)
from pipeline.pages.items import claims, display, next_actions, preview, publications
from pipeline.pages.items import outlet_fit as fits
from pipeline.pages.items import recurrence_display as returns
from pipeline.pages.items.scene_display import scenes_of
from pipeline.review import rewrites, storyboards
from pipeline.states import EDITABLE_ITEMS, ITEMS_IN_MAKING, PUBLISHABLE_ITEMS
from pipeline.writers.extractive import APPROVED_LINES, FROM_SOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.http import HttpRequest


_LIVE_SECONDS: Final = 2
_PART: Final = "progress"
_REWRITE_PART, _CARD_PART = "rewriting", "card-rewriting"
REVISIONS: Final = 20
_VARIANTS: Final = 12


def find_item(place: Place, gen: UUID) -> GeneratedItem:
    rows = (
        GeneratedItem.objects.of(place.workspace)
        .filter(pk=gen, deleted_at=None, test=False)
        .select_related("workspace", "source", "raw_item", "topic", "persona", "parent", "generation")
        .defer("generation__answers", "workspace__model_key")
        .with_newest_rewrite()
    )
    row: GeneratedItem = get_object_or_404(rows)
    return row


@page("look", methods=("GET",))
def item_page(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    row = find_item(place, gen)
    progress = _progress(request, place, row)
    if isinstance(progress, HttpResponse):
        return progress
    context = seen(place, row)
    rewriting = _rewriting(request, context["rewrite"])
    if isinstance(rewriting, HttpResponse):
        return rewriting
    context |= {"progress": progress, "rewriting": rewriting}
    return render(request, "pages/items/detail.html", context)


def seen(place: Place, row: GeneratedItem) -> dict[str, Any]:
    """All that the page shows of an item; always the same number of statements for the same number of
    outlets.
    """
    now = utc_now()
    there = list(
        Asset.objects.of(place.workspace).filter(item=row, revoked_at=None).order_by("position", "id")
    )
    siblings = _siblings(place, row)
    kept = storyboards.stored_storyboard_in(there) if row.bucket == "video" else None
    scenes = scenes_of(kept) if kept is not None else ()
    sent = publications.sendings_of(place, row)
    return {
        **item_head(place, row),
        "origin": display.origin_of(row),
        "look": preview.preview_of(row, there, claims.numbered(row)),
        "scenes": scenes,
        "fits": fits.fits_of(row, now=now) if row.body and row.status not in ITEMS_IN_MAKING else (),
        "map": claims.map_of(row),
        "siblings": siblings,
        "sent": sent,
        "sent_leads": any(one.needs_somebody for one in sent),
        "returns": returns.recurrence_of(place, row),
        "outlook": next_actions.outlook_of(place, row, now=now) if sent or row.held else None,
        "revisions": _revisions(place, row),
        "offline_writers": (FROM_SOURCE, APPROVED_LINES),
        "rewrite": rewrites.standing_of(row),
        "angle": display.angle_of(row),
        "has_source_page": row.source is not None
        and row.source.deleted_at is None
        and not row.source.is_push,
    }


def item_head(place: Place, row: GeneratedItem) -> dict[str, Any]:
    """What every page of an item begins with."""
    badge = labels.of_item(row)
    if row.status in labels.SPREADING:
        spread = publications.spread_of(place.workspace, [(row.pk, row.status)])
        badge = labels.of_spread(badge, row.status, spread[row.pk])
    failure = retry_rules.current_error(place.workspace, row)
    return {
        "item": row,
        "title": display.title_of(row),
        "bucket": row.get_bucket_display(),
        **badge._asdict(),
        "made_by": display.made_by(row),
        "failure": failure,
        "error": display.with_links(str((row.error or {}).get("message", "")), place.workspace.pk),
        "can_differ": retry_rules.can_variant_differ(failure),
        "hold": labels.HOLDS.get(row.held, row.held),
        "flag": labels.FLAGS.get(row.flagged, ""),
        "variant": row.variant_index + 1 if row.variant_index else 0,
        "is_under_way": row.status in ITEMS_IN_MAKING,
        "is_editable": row.status in EDITABLE_ITEMS,
        "is_publishable": row.status in PUBLISHABLE_ITEMS,
        # A film's words are changed in its scenes.
        "is_rewritable": row.status in EDITABLE_ITEMS and row.bucket != Bucket.VIDEO,
        "needs_approval": _needs_approval(row),
        "checks": display.checks_of(row),
        "is_superseded": (row.rejection or {}).get("code") == "superseded",
    }


def _needs_approval(row: GeneratedItem) -> bool:
    """Whether somebody's approval changes anything: it lets go of a hold, a flag, or is asked for."""
    if row.held or row.flagged == FlagReason.SOURCE_CHANGED:
        return row.status in PUBLISHABLE_ITEMS
    return row.status in EDITABLE_ITEMS and not row.is_approved_as_it_is


def _progress(request: HttpRequest, place: Place, row: GeneratedItem) -> HttpResponse | str:
    """What is under way, looking again by itself; where it has come to its end, the whole page is opened
    anew.
    """
    sent: Sequence[Publication] = ()
    if row.status == GeneratedItemStatus.PUBLISHING or (
        row.status == GeneratedItemStatus.SCHEDULED and row.publish_at is not None
    ):
        rows = Publication.objects.of(place.workspace).unsent().by_platform()
        now = utc_now()
        rows = rows.filter(item=row, due_at__lte=now, wake_at__isnull=False).order_by("id")
        # What stands in the way of the others is said below.
        sent = [
            one
            for one in rows.select_related("outlet", "queue", "workspace", "item").defer(
                "workspace__model_key"
            )
            if (one.next_attempt_at is None or one.next_attempt_at <= now)
            and (
                one.status != PublicationStatus.SCHEDULED
                or next(publish.find_blockers(one, now), None) is None
            )
        ]
    is_moving = row.status in ITEMS_IN_MAKING or (bool(sent) and not row.held)
    if not is_moving:
        return HttpResponse(headers={"HX-Refresh": "true"}) if is_poll_for(request, _PART) else ""
    context = {
        "item": row,
        "stage": display.progress_label(row),
        "outlets": [one.outlet.name for one in sent],
    }
    return polling_fragment(
        request,
        _PART,
        "pages/items/progress.html",
        context,
        css_class="stack",
        interval_seconds=_LIVE_SECONDS,
    )


def _rewriting(request: HttpRequest, standing: rewrites.RewriteStanding | None) -> HttpResponse | str:
    """The same of its rewrite. A review card asks here too, and is told the end: what is typed there must stay."""
    is_working = standing is not None and standing.is_working
    is_card = is_poll_for(request, _CARD_PART)
    if not is_working and is_poll_for(request, _REWRITE_PART):
        return HttpResponse(headers={"HX-Refresh": "true"})
    if not is_working and not is_card:
        return ""
    return polling_fragment(
        request,
        _CARD_PART if is_card else _REWRITE_PART,
        "pages/items/rewriting.html",
        {"rewrite": standing, "rewrite_address": request.path + "/rewrite", "is_card": is_card},
        css_class="under-way" if is_card else "",
        interval_seconds=_LIVE_SECONDS if is_working else 0,
    )


def _siblings(place: Place, row: GeneratedItem) -> list[dict[str, Any]]:
    """The variants of its group with it, in their order; empty where it is the only one."""
    rows = GeneratedItem.objects.of(place.workspace).filter(
        variant_group=row.variant_group, deleted_at=None, test=False
    )
    there = list(rows.order_by("variant_index", "id")[:_VARIANTS])
    if len(there) < 2:
        return []
    pictures = Asset.objects.of(place.workspace).filter(
        item_id__in=[one.pk for one in there], revoked_at=None, kind="image"
    )
    first: dict[UUID, preview.PreviewFile] = {}
    for asset in pictures.order_by("position", "id"):
        first.setdefault(asset.item_id, preview.file_of(asset))
    return [
        {
            "item": one,
            "is_this": one.pk == row.pk,
            "state": labels.of_status(one.status, is_approved=one.is_approved, is_held=bool(one.held)),
            "angle": display.angle_of(one),
            "picture": first.get(one.pk),
            "number": one.variant_index + 1,
        }
        for one in there
    ]


def _revisions(place: Place, row: GeneratedItem) -> list[Revision]:
    rows = Revision.objects.of(place.workspace).filter(item=row).order_by("-number")
    return list(rows[:REVISIONS])
