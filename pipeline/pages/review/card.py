"""One card: an item of a story as it will look, what the checks found, where it comes from, what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core.clock import utc_now
from pipeline.models import Asset
from pipeline.pages.items import claims, display, next_actions, preview
from pipeline.pages.items.detail import item_head
from pipeline.pages.review import previews, stories
from pipeline.pages.review.forms import REASONS
from pipeline.review import asset_order, rewrites
from pipeline.states import ITEMS_IN_MAKING
from pipeline.text.content_buckets import TRAITS

if TYPE_CHECKING:
    from accounts.pages.page_access import Place
    from pipeline.models import GeneratedItem
    from pipeline.pages.items.preview import ItemPreview


def card_of(place: Place, row: GeneratedItem) -> dict[str, Any]:
    """What its template shows; the same number of statements however many outlets, variants and other stories there are."""
    now = utc_now()
    there = files_of(place, row)
    story = stories.story_of(place, row)
    look = preview.preview_of(row, there, claims.numbered(row))
    this = next(one for one in story.items if one.id == row.pk)
    siblings = story.among(this)
    rest = [one for one in story.firsts if one.group != row.variant_group]
    is_shown = bool(row.revision) and row.status not in ITEMS_IN_MAKING
    shown = previews.previews_of(row, look, now=now) if is_shown and row.body else ()
    return {
        **item_head(place, row),
        "origin": display.origin_of(row),
        "story": story,
        "this": this,
        "siblings": siblings,
        "token": stories.token_of([this], siblings),
        "rest": stories.token_of(rest, [one for one in story.waiting if one.group != row.variant_group]),
        "rest_count": len(rest),
        "rest_warned": sum(one.warns for one in rest),
        "position": story.items.index(this),
        "look": look,
        "is_shown": is_shown,
        "previews": shown,
        "waits": next_actions.before_publishing(place, [one.fit.outlet for one in shown]),
        "stands_whole": not TRAITS[row.bucket].is_posted or _needs_whole(look),
        "map": claims.map_of(row),
        "checks": display.checks_of(row),
        "angle": display.angle_of(row),
        "rewrite": rewrites.standing_of(row),
        "reasons": REASONS,
        "has_order": bool(asset_order.movable(there)),
        "zone": place.workspace.timezone,
    }


def files_of(place: Place, row: GeneratedItem) -> list[Asset]:
    rows = Asset.objects.of(place.workspace).filter(item=row, revoked_at=None)
    return list(rows.order_by("position", "id"))


def _needs_whole(look: ItemPreview) -> bool:
    """A film, a sound or a storyboard is looked at once, not on each outlet."""
    return look.video is not None or look.sound is not None or bool(look.frames)
