"""Lists a workspace's items, narrowed by filters: the newest first, or the best matches of a search."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.db.models import Value
from django.http import Http404, HttpResponse
from django.shortcuts import render

from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import is_poll_for
from config.core import limits
from config.core.clock import utc_now
from config.core.database.search_excerpts import excerpt_around, label_and_excerpt
from config.core.ids import decode, encode
from pipeline import labels, search
from pipeline.models import Asset, GeneratedItem, GeneratedItemStatus
from pipeline.models.generated_item import APPROVAL_FIELDS, is_approved_row
from pipeline.pages.items import display, publications
from pipeline.pages.items.forms import ItemFilter
from pipeline.pages.items.saved_views import views_context
from pipeline.pages.review.stories import story_key
from pipeline.states import ITEMS_IN_MAKING
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from django.http import HttpRequest

ROWS: Final = limits.PAGE_ROWS_DEFAULT
"""Items per page."""
_MOVING_PART: Final = "moving"
_COLUMNS: Final = (
    "id",
    "version",
    "raw_item_id",
    "variant_group",
    "title",
    "excerpt",
    "bucket",
    "engine_output",
    "variant_index",
    "status",
    *APPROVAL_FIELDS,
    "held",
    "flagged",
    "error",
    "created_at",
    "publish_at",
    "published_at",
    "source__name",
    "source__is_push",
    "raw_item__external_id",
    "is_sample",
    "raw_item__title",
    "topic__title",
    "persona__name",
)


_SEARCHED_COLUMNS: Final = ("body", "body_format")
"""What only a search reads, to show the words that it found."""
TITLE_CHARACTERS, EXCERPT_CHARACTERS = 110, 140


@workspace_page("look", methods=("GET",))
def items_page(request: HttpRequest, place: Place) -> HttpResponse:
    """Show a page of the items that match the filters, or no items if a filter is invalid.

    Polls for the statuses of the items that are under way.
    """
    if is_poll_for(request, _MOVING_PART):
        return _render_statuses(request, place)
    form = ItemFilter(request.GET, workspace=place.workspace)
    is_understood = form.is_valid()
    rows = _find_rows(request, place, form) if is_understood else []
    page_rows = rows[:ROWS]
    text = form.cleaned_data["q"] if is_understood else ""
    pictures = _first_pictures(place, [row["id"] for row in page_rows])
    query = request.GET.copy()
    query.pop("before", None)
    newest = query.urlencode()
    if len(rows) > ROWS:
        query["before"] = encode("gen", page_rows[-1]["id"])
    shown_rows = _row_contexts(place, page_rows, pictures, text)
    stories = _group_by_story(shown_rows)
    context = {
        "filter": form,
        "rows": shown_rows,
        "stories": stories,
        "poll": _poll_query(shown_rows),
        # Viewers can't decide on items. An item that is under way can be decided on once it is made.
        "has_acts": place.may_edit and any(row["token"] or row["is_moving"] for row in shown_rows),
        "kept": request.GET.urlencode(),
        "older": query.urlencode() if len(rows) > ROWS else "",
        "newest": newest,
        "is_first_page": "before" not in request.GET,
        "is_filtered": any(form.data.get(name) for name in form.fields),
        "is_understood": is_understood,
        **views_context(place, form),
    }
    return render(request, "pages/items/list.html", context)


def _render_statuses(request: HttpRequest, place: Place) -> HttpResponse:
    """Return the statuses of the items in the parameter `moving` and whole rows of those that are under way no more.

    Returns 204 if nothing has changed. The fragment polls no more if nothing is under way.
    """
    keys = [decode("gen", public_id) for public_id in request.GET.get("moving", "").split(",")[:ROWS]]
    items = GeneratedItem.objects.of(place.workspace).filter(
        pk__in=filter(None, keys), test=False, deleted_at=None
    )
    rows = list(items.values(*_COLUMNS))
    shown_rows = _row_contexts(place, rows, _first_pictures(place, [row["id"] for row in rows]), "")
    leading = request.GET.get("leading", "").split(",")
    for row in shown_rows:
        row["leads"] = encode("gen", row["id"]) in leading
    poll = _poll_query(shown_rows)
    if poll and poll == request.GET.urlencode():
        return HttpResponse(status=204)
    context = {"rows": shown_rows, "poll": poll, "has_acts": place.may_edit}
    return render(request, "pages/items/statuses.html", context)


def _poll_query(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the query string that polls for the items under way, with a digest of what their rows show, or empty."""
    moving = sorted((row for row in rows if row["is_moving"]), key=lambda row: row["id"])
    if not moving:
        return ""
    shown = [(str(row["label"]), row["held"], row["flagged"]) for row in moving]
    query = {
        "moving": ",".join(encode("gen", row["id"]) for row in moving),
        "leading": ",".join(encode("gen", row["id"]) for row in moving if row["leads"]),
        "seen": hashlib.sha256(repr(shown).encode()).hexdigest()[:16],
    }
    return urlencode(query)


def _find_rows(request: HttpRequest, place: Place, form: ItemFilter) -> list[dict[str, Any]]:
    """Return one row more than a page shows, at the same cost however far the page is from the first one.

    Raises `Http404` if `before` is no item's id.
    """
    # Compiles to `test = false`; Django's `NOT test` keeps SQLite from seeking in the index of the list.
    rows = GeneratedItem.objects.of(place.workspace).filter(test=Value(False), deleted_at=None)  # noqa: FBT003
    rows = form.narrow(rows)
    last_key = None
    if "before" in request.GET:
        last_key = decode("gen", request.GET["before"])
        if last_key is None:
            raise Http404
    if form.cleaned_data["q"]:
        keys = search.find_items(place.workspace.pk, form.cleaned_data["q"], among=rows)
        # If the last item is no longer among the results, they begin again.
        start = keys.index(last_key) + 1 if last_key in keys else 0
        rows_by_key = {
            row["id"]: row
            for row in rows.filter(pk__in=keys[start : start + ROWS + 1]).values(
                *_COLUMNS, *_SEARCHED_COLUMNS
            )
        }
        return [rows_by_key[key] for key in keys if key in rows_by_key]
    if last_key is not None:
        rows = rows.filter(pk__lt=last_key)
    return list(rows.order_by("-id").values(*_COLUMNS)[: ROWS + 1])


def _group_by_story(rows: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the rows grouped by story; a story comes at the place of its first row, which leads it."""
    rows_by_story: dict[UUID, list[dict[str, Any]]] = {}
    for row in rows:
        story = rows_by_story.setdefault(story_key(row), [])
        row["leads"] = not story
        story.append(row)
    return list(rows_by_story.values())


def _first_pictures(place: Place, keys: Sequence[UUID]) -> dict[UUID, str]:
    """Return the address of each item's first picture, by the item's id."""
    rows = Asset.objects.of(place.workspace).filter(item_id__in=keys, revoked_at=None, kind="image")
    addresses: dict[UUID, str] = {}
    for item, secret, name in rows.order_by("position", "id").values_list("item_id", "secret", "name"):
        addresses.setdefault(item, f"/media/{secret}/{name}")
    return addresses


def _row_contexts(
    place: Place, rows: Sequence[dict[str, Any]], pictures: Mapping[UUID, str], text: str
) -> list[dict[str, Any]]:
    """Return what the list shows of the items; `is_moving` says that one is being generated or sent now."""
    spreads = publications.count_by_status(place.workspace, [(row["id"], row["status"]) for row in rows])
    publishing = [row["id"] for row in rows if row["status"] == GeneratedItemStatus.PUBLISHING]
    being_sent = publications.find_items_being_sent(place.workspace, publishing, utc_now())
    return [
        {
            **_row_context(row, pictures.get(row["id"], ""), spreads.get(row["id"], {}), text),
            "is_moving": row["status"] in ITEMS_IN_MAKING or row["id"] in being_sent,
        }
        for row in rows
    ]


def _row_context(row: dict[str, Any], picture: str, spread: Mapping[str, int], text: str) -> dict[str, Any]:
    """Return what the list shows of an item; `text` is what was searched for, or empty."""
    badge = labels.of_status(row["status"], is_approved=is_approved_row(row), is_held=bool(row["held"]))
    tone, icon, label = labels.of_spread(badge, row["status"], spread)
    title = row["title"] or row["excerpt"] or row["raw_item__title"] or row["topic__title"] or ""
    is_published = row["status"] in {
        GeneratedItemStatus.PUBLISHED,
        GeneratedItemStatus.PARTIALLY_PUBLISHED,
        GeneratedItemStatus.REMOVED,
    }
    is_open = row["status"] == GeneratedItemStatus.READY
    # Only a search reads the body.
    title_parts, found_parts = label_and_excerpt(
        title,
        plain_text(row["body"], row["body_format"]) if text else "",
        text,
        label_length=TITLE_CHARACTERS,
        length=EXCERPT_CHARACTERS,
    )
    excerpt = row["excerpt"] if row["excerpt"] != title else ""
    return {
        **row,
        # The token holds the version, so that a decision on an item that was changed meanwhile is refused.
        "token": f"{encode('gen', row['id'])}:{row['version']}" if is_open else "",
        "title": title,
        "title_parts": title_parts,
        "excerpt_parts": found_parts or excerpt_around(excerpt, "", length=EXCERPT_CHARACTERS),
        "is_found_in_text": bool(found_parts),
        "picture": picture,
        "bucket_icon": labels.BUCKET_ICONS[row["bucket"]],
        "tone": tone,
        "icon": icon,
        "label": label,
        "hold": labels.HOLDS.get(row["held"], row["held"]),
        "reason": display.without_ids(str((row["error"] or {}).get("message", ""))),
        "at": (row["published_at"] if is_published else row["publish_at"]) or row["created_at"],
        "at_is": "published" if is_published else "due" if row["publish_at"] else "made",
        "variant": row["variant_index"] + 1 if row["variant_index"] else 0,
        "from": row["topic__title"] or labels.origin_of_row(row),
        "persona": row["persona__name"] or "",
    }
