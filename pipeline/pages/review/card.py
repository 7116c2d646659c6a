"""Builds a card of the review queue: an item as it will look, its checks, its origin and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core.clock import utc_now
from pipeline.pages.items import claims, display, next_actions, preview
from pipeline.pages.items.detail import files_of, item_head
from pipeline.pages.review import previews, stories
from pipeline.pages.review.forms import REASONS
from pipeline.review import asset_order, rewrites
from pipeline.states import ITEMS_IN_MAKING
from pipeline.text.bucket_traits import TRAITS

if TYPE_CHECKING:
    from accounts.pages.page_access import Place
    from pipeline.models import GeneratedItem
    from pipeline.pages.items.preview import ItemPreview


def card_of(place: Place, row: GeneratedItem) -> dict[str, Any]:
    """Return the context of the card's template.

    The number of SQL queries doesn't grow with the number of outlets, variants or other stories.
    """
    now = utc_now()
    assets = files_of(place, row)
    story = stories.read_story(place, row)
    item_preview = preview.preview_of(row, assets, claims.number_claims(row))
    tab = next(entry for entry in story.items if entry.id == row.pk)
    siblings = story.other_variants(tab)
    other_formats = [entry for entry in story.first_variants if entry.group != row.variant_group]
    is_shown = bool(row.revision) and row.status not in ITEMS_IN_MAKING
    outlet_previews = previews.build_previews(row, item_preview, now=now) if is_shown and row.body else ()
    return {
        **item_head(place, row),
        "origin": display.origin_of(row),
        "story": story,
        "this": tab,
        "siblings": siblings,
        "token": stories.join_tokens([tab], siblings),
        "rest": stories.join_tokens(
            other_formats, [entry for entry in story.waiting if entry.group != row.variant_group]
        ),
        "rest_count": len(other_formats),
        "rest_warned": sum(entry.warns for entry in other_formats),
        "position": story.items.index(tab),
        "look": item_preview,
        "is_shown": is_shown,
        "previews": outlet_previews,
        "waits": next_actions.access_blockers_of(place, [entry.fit.outlet for entry in outlet_previews]),
        "stands_whole": not TRAITS[row.bucket].is_posted or _is_shown_once(item_preview),
        "map": claims.build_claim_map(row),
        "checks": display.checks_of(row),
        "angle": display.angle_of(row),
        "rewrite": rewrites.standing_of(row),
        "reasons": REASONS,
        "has_order": bool(asset_order.movable(assets)),
        "zone": place.workspace.timezone,
    }


def _is_shown_once(item_preview: ItemPreview) -> bool:
    """Return whether the item has a film, sound or storyboard, which the card shows once and not for each outlet."""
    return item_preview.video is not None or item_preview.sound is not None or bool(item_preview.frames)
