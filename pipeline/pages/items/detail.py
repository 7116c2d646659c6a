"""Page of one item: how it will look, its source, its checks, its cost, and its publications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import is_poll_for, polling_fragment
from config.core.clock import utc_now
from pipeline import labels, publish
from pipeline.generate import recoverable_failures
from pipeline.models import (
    Asset,
    Bucket,
    GeneratedItem,
    GeneratedItemStatus,
    Publication,
    PublicationStatus,
    Revision,
)
from pipeline.pages.items import claims, display, next_actions, preview, publications
from pipeline.pages.items import outlet_fit as fits
from pipeline.pages.items import recurrence_display as returns
from pipeline.pages.items.storyboard.scene_display import scenes_of
from pipeline.review import decisions, rewrites, storyboards
from pipeline.states import EDITABLE_ITEMS, ITEMS_IN_MAKING, PUBLISHABLE_ITEMS
from pipeline.writers.extractive import APPROVED_LINES, FROM_SOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.http import HttpRequest


_POLL_SECONDS: Final = 2
_PROGRESS_PART: Final = "progress"
_REWRITE_PART, _CARD_PART = "rewriting", "card-rewriting"
REVISIONS: Final = 20
"""The most revisions that the page lists."""
_MAX_VARIANTS: Final = 12


def find_item(place: Place, gen: UUID) -> GeneratedItem:
    """Return the item with all that its pages read; raises
    `Http404` for a test item and for a deleted one.
    """
    rows = (
        GeneratedItem.objects.of(place.workspace)
        .filter(pk=gen, deleted_at=None, test=False)
        .select_related("workspace", "source", "raw_item", "topic", "persona", "parent", "generation")
        .defer("generation__answers", "workspace__model_key")
        .with_newest_rewrite()
    )
    row: GeneratedItem = get_object_or_404(rows)
    return row


def files_of(place: Place, row: GeneratedItem) -> list[Asset]:
    """Return the item's files in their order, without revoked ones."""
    rows = Asset.objects.of(place.workspace).filter(item=row, revoked_at=None)
    return list(rows.order_by("position", "id"))


@workspace_page("look", methods=("GET",))
def item_page(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the item; a poll of its progress or of its rewrite gets that part alone."""
    row = find_item(place, gen)
    progress = _render_progress(request, place, row)
    if isinstance(progress, HttpResponse):
        return progress
    context = seen(place, row)
    rewriting = _render_rewriting(request, context["rewrite"])
    if isinstance(rewriting, HttpResponse):
        return rewriting
    context |= {"progress": progress, "rewriting": rewriting}
    return render(request, "pages/items/detail.html", context)


def seen(place: Place, row: GeneratedItem) -> dict[str, Any]:
    """Return all that the page shows of an item.

    The number of statements depends on the number of outlets alone.
    """
    now = utc_now()
    assets = files_of(place, row)
    siblings = _list_variants(place, row)
    storyboard = storyboards.stored_storyboard_in(assets) if row.bucket == "video" else None
    scenes = scenes_of(storyboard) if storyboard is not None else ()
    sendings = publications.sendings_of(place, row)
    return {
        **item_head(place, row),
        "origin": display.origin_of(row),
        "look": preview.preview_of(row, assets, claims.numbered(row)),
        "scenes": scenes,
        "fits": fits.fits_of(row, now=now) if row.body and row.status not in ITEMS_IN_MAKING else (),
        "map": claims.map_of(row),
        "siblings": siblings,
        "sent": sendings,
        "sent_leads": any(sending.needs_somebody for sending in sendings),
        "returns": returns.recurrence_of(place, row),
        "outlook": next_actions.read_outlook(place, row, now=now) if sendings or row.held else None,
        "revisions": _list_revisions(place, row),
        "offline_writers": (FROM_SOURCE, APPROVED_LINES),
        "rewrite": rewrites.standing_of(row),
        "angle": display.angle_of(row),
        "has_source_page": row.source is not None
        and row.source.deleted_at is None
        and not row.source.is_push,
    }


def item_head(place: Place, row: GeneratedItem) -> dict[str, Any]:
    """Return what every page of an item shows at its top."""
    badge = labels.of_item(row)
    if row.status in labels.SPREADING:
        spread = publications.spread_of(place.workspace, [(row.pk, row.status)])
        badge = labels.of_spread(badge, row.status, spread[row.pk])
    failure = recoverable_failures.current_error(place.workspace, row)
    return {
        "item": row,
        "title": display.title_of(row),
        "bucket": row.get_bucket_display(),
        **badge._asdict(),
        "made_by": display.made_by(row),
        "failure": failure,
        "error": display.with_links(str((row.error or {}).get("message", "")), place.workspace.pk),
        "can_differ": recoverable_failures.can_variant_differ(failure),
        "hold": labels.HOLDS.get(row.held, row.held),
        "flag": labels.FLAGS.get(row.flagged, ""),
        "variant": row.variant_index + 1 if row.variant_index else 0,
        "is_under_way": row.status in ITEMS_IN_MAKING,
        "is_editable": row.status in EDITABLE_ITEMS,
        "is_publishable": row.status in PUBLISHABLE_ITEMS,
        # The text of a film is edited in its scenes.
        "is_rewritable": row.status in EDITABLE_ITEMS and row.bucket != Bucket.VIDEO,
        "needs_approval": decisions.needs_approval(row),
        "checks": display.checks_of(row),
        "is_superseded": (row.rejection or {}).get("code") == "superseded",
    }


def _render_progress(request: HttpRequest, place: Place, row: GeneratedItem) -> HttpResponse | str:
    """Return a fragment that polls what is under way; empty where nothing is.

    A poll that finds it ended gets a response that reloads the whole page.
    """
    unsent: Sequence[Publication] = ()
    if row.status == GeneratedItemStatus.PUBLISHING or (
        row.status == GeneratedItemStatus.SCHEDULED and row.publish_at is not None
    ):
        rows = Publication.objects.of(place.workspace).unsent().by_platform()
        now = utc_now()
        rows = rows.filter(item=row, due_at__lte=now, wake_at__isnull=False).order_by("id")
        # The page shows in another place what blocks the others.
        unsent = [
            publication
            for publication in rows.select_related("outlet", "queue", "workspace", "item").defer(
                "workspace__model_key"
            )
            if (publication.next_attempt_at is None or publication.next_attempt_at <= now)
            and (
                publication.status != PublicationStatus.SCHEDULED
                or next(publish.find_blockers(publication, now), None) is None
            )
        ]
    is_moving = row.status in ITEMS_IN_MAKING or (bool(unsent) and not row.held)
    if not is_moving:
        return HttpResponse(headers={"HX-Refresh": "true"}) if is_poll_for(request, _PROGRESS_PART) else ""
    context = {
        "item": row,
        "stage": display.progress_label(row),
        "outlets": [publication.outlet.name for publication in unsent],
    }
    return polling_fragment(
        request,
        _PROGRESS_PART,
        "pages/items/progress.html",
        context,
        css_class="stack",
        interval_seconds=_POLL_SECONDS,
    )


def _render_rewriting(request: HttpRequest, standing: rewrites.RewriteStanding | None) -> HttpResponse | str:
    """Return the same kind of fragment for the item's rewrite.

    A review card polls here too. It gets the end as a
    fragment, not as a reload: what is typed there must stay.
    """
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
        interval_seconds=_POLL_SECONDS if is_working else 0,
    )


def _list_variants(place: Place, row: GeneratedItem) -> list[dict[str, Any]]:
    """Return the variants of the item's group, the item
    among them, in order; empty where it is the only one.
    """
    rows = GeneratedItem.objects.of(place.workspace).filter(
        variant_group=row.variant_group, deleted_at=None, test=False
    )
    variants = list(rows.order_by("variant_index", "id")[:_MAX_VARIANTS])
    if len(variants) < 2:
        return []
    pictures = Asset.objects.of(place.workspace).filter(
        item_id__in=[variant.pk for variant in variants], revoked_at=None, kind="image"
    )
    first_pictures: dict[UUID, preview.PreviewFile] = {}
    for asset in pictures.order_by("position", "id"):
        first_pictures.setdefault(asset.item_id, preview.file_of(asset))
    return [
        {
            "item": variant,
            "is_this": variant.pk == row.pk,
            "state": labels.of_status(
                variant.status, is_approved=variant.is_approved, is_held=bool(variant.held)
            ),
            "angle": display.angle_of(variant),
            "picture": first_pictures.get(variant.pk),
            "number": variant.variant_index + 1,
        }
        for variant in variants
    ]


def _list_revisions(place: Place, row: GeneratedItem) -> list[Revision]:
    """Return the newest revisions, at most `REVISIONS`."""
    rows = Revision.objects.of(place.workspace).filter(item=row).order_by("-number")
    return list(rows[:REVISIONS])
