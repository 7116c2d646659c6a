"""Shows one item: how it will look, its source, its checks, its cost, and its publications."""

from __future__ import annotations

from datetime import timedelta
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
from pipeline.pages.items import (
    claims,
    display,
    next_actions,
    outlet_fit,
    preview,
    publications,
    recurrence_display,
)
from pipeline.pages.items.storyboard.scene_display import scenes_of
from pipeline.review import decisions, rewrites, storyboards
from pipeline.states import EDITABLE_ITEMS, ITEMS_IN_MAKING, PUBLISHABLE_ITEMS
from pipeline.writers.extractive import APPROVED_LINES, FROM_SOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.http import HttpRequest


_POLL_SECONDS: Final = 2
_WAITING_POLL_SECONDS: Final = 10
"""The seconds between polls while a due publication waits, for its next attempt or for a blocker to end."""
_SOON: Final = timedelta(minutes=1)
"""How long before its time a publication is polled for, so that the page follows one that was just published."""
_PROGRESS_PART: Final = "progress"
_REWRITE_PART, _CARD_PART = "rewriting", "card-rewriting"
MAX_REVISIONS: Final = 20
"""The most revisions that the page lists."""
_MAX_VARIANTS: Final = 12
"""The most variants of the item's group that the page lists."""


def find_item(place: Place, gen: UUID) -> GeneratedItem:
    """Return the item with all that its pages read.

    Raises `Http404` if the workspace has no such item, or if it is a test item or was deleted.
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
    """Show the item; a poll of its progress or of its rewrite gets that fragment alone."""
    row = find_item(place, gen)
    progress = _render_progress(request, place, row)
    if isinstance(progress, HttpResponse):
        return progress
    context = item_context(place, row)
    rewriting = _render_rewriting(request, context["rewrite"])
    if isinstance(rewriting, HttpResponse):
        return rewriting
    context |= {"progress": progress, "rewriting": rewriting}
    return render(request, "pages/items/detail.html", context)


def item_context(place: Place, row: GeneratedItem) -> dict[str, Any]:
    """Return the context of the item's page; the number of its SQL queries depends on the number of outlets alone."""
    now = utc_now()
    assets = files_of(place, row)
    siblings = _list_variants(place, row)
    storyboard = storyboards.stored_storyboard_in(assets) if row.bucket == "video" else None
    scenes = scenes_of(storyboard) if storyboard is not None else ()
    shown_publications = publications.read_publications(place, row)
    return {
        **item_head(place, row),
        "origin": display.origin_of(row),
        "look": preview.preview_of(row, assets, claims.number_claims(row)),
        "scenes": scenes,
        "fits": outlet_fit.read_fits(row, now=now) if row.body and row.status not in ITEMS_IN_MAKING else (),
        "map": claims.build_claim_map(row),
        "siblings": siblings,
        "sent": shown_publications,
        # The publications are shown first if a person has to act on one.
        "sent_leads": any(publication.needs_somebody for publication in shown_publications),
        "returns": recurrence_display.recurrence_context(place, row),
        "outlook": next_actions.read_outlook(place, row, now=now) if shown_publications or row.held else None,
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
        counts = publications.count_by_status(place.workspace, [(row.pk, row.status)])
        badge = labels.of_spread(badge, row.status, counts[row.pk])
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
    """Return the polling fragment of an item that is being generated or sent.

    There are three results: the fragment's HTML for a page load, an empty text if nothing is under way, and the
    response to a poll. The response to a poll that finds nothing under way reloads the whole page.
    """
    is_in_making = row.status in ITEMS_IN_MAKING
    due_publications = [] if is_in_making or row.held else _list_due_publications(place, row)
    outlet_names = _names_of_sending_outlets(due_publications)
    if not is_in_making and not due_publications:
        return HttpResponse(headers={"HX-Refresh": "true"}) if is_poll_for(request, _PROGRESS_PART) else ""
    context = {
        "item": row,
        "stage": display.progress_label(row),
        "outlets": outlet_names,
    }
    is_waiting = not is_in_making and not outlet_names
    return polling_fragment(
        request,
        _PROGRESS_PART,
        "pages/items/progress.html",
        context,
        css_class="stack",
        interval_seconds=_WAITING_POLL_SECONDS if is_waiting else _POLL_SECONDS,
        page_state="" if is_in_making else _publishing_state(place, row),
    )


def _publishing_state(place: Place, row: GeneratedItem) -> str:
    """Return the statuses of the item and its publications with their steps, on which the page's badges depend."""
    rows = Publication.objects.of(place.workspace).filter(item=row).order_by("id")
    return " ".join(
        [row.status, *(f"{status}:{step}" for status, step in rows.values_list("status", "step"))]
    )


def _list_due_publications(place: Place, row: GeneratedItem) -> list[Publication]:
    """Return the publications that a platform gets within a minute, or would have got if nothing blocked them."""
    may_be_sending = row.status == GeneratedItemStatus.PUBLISHING or (
        row.status == GeneratedItemStatus.SCHEDULED and row.publish_at is not None
    )
    if not may_be_sending:
        return []
    return list(
        Publication.objects.of(place.workspace)
        .unsent()
        .by_platform()
        .filter(item=row, due_at__lte=utc_now() + _SOON, wake_at__isnull=False)
        .select_related("outlet", "queue", "workspace", "item")
        .defer("workspace__model_key")
        .order_by("id")
    )


def _names_of_sending_outlets(due_publications: Sequence[Publication]) -> list[str]:
    """Return the outlets to which the item is being sent now, without those whose publication is blocked.

    The page shows the blockers of the other publications in another place.
    """
    now = utc_now()
    return [
        publication.outlet.name
        for publication in due_publications
        if publication.due_at is not None
        and publication.due_at <= now
        and (publication.next_attempt_at is None or publication.next_attempt_at <= now)
        and (
            publication.status != PublicationStatus.SCHEDULED
            or next(publish.find_blockers(publication, now), None) is None
        )
    ]


def _render_rewriting(request: HttpRequest, standing: rewrites.RewriteStanding | None) -> HttpResponse | str:
    """Return the polling fragment of the item's rewrite, with the three results of `_render_progress`.

    A review card polls this view too. When the rewrite has ended, the card gets a fragment and no reload, because
    what was typed on the card must stay.
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
    """Return the variants of the item's group in order, or none if the item is the only one."""
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
    """Return the newest revisions, at most `MAX_REVISIONS`."""
    rows = Revision.objects.of(place.workspace).filter(item=row).order_by("-number")
    return list(rows[:MAX_REVISIONS])
