"""Lists a workspace's items, narrowed by filters: the newest first, or the best matches of a search."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

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
from pipeline.models import Asset, GeneratedItem, GeneratedItemStatus, Publication
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
_ROWS_PART: Final = "rows"
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

    While items of the page are being made or sent, it polls for its rows, which are sent when a status has changed.
    """
    is_poll = is_poll_for(request, _ROWS_PART)
    if is_poll and request.GET.get("seen") == _read_digest(place, request.GET.get("moving", "")):
        return HttpResponse(status=204)
    form = ItemFilter(request.GET, workspace=place.workspace)
    is_understood = form.is_valid()
    rows = _find_rows(request, place, form) if is_understood else []
    page_rows = rows[:ROWS]
    text = form.cleaned_data["q"] if is_understood else ""
    pictures = _first_pictures(place, [row["id"] for row in page_rows])
    spreads = publications.count_by_status(place.workspace, [(row["id"], row["status"]) for row in page_rows])
    kept_query = request.GET.copy()
    for name in ("moving", "seen"):
        kept_query.pop(name, None)
    query = kept_query.copy()
    query.pop("before", None)
    newest = query.urlencode()
    if len(rows) > ROWS:
        query["before"] = encode("gen", page_rows[-1]["id"])
    shown_rows = [
        _row_context(row, pictures.get(row["id"], ""), spreads.get(row["id"], {}), text) for row in page_rows
    ]
    moving_keys = _find_moving(place, page_rows)
    moving_rows = [row for row in page_rows if row["id"] in moving_keys]
    poll_query = kept_query.copy()
    poll_query["moving"] = ",".join(encode("gen", row["id"]) for row in moving_rows)
    poll_query["seen"] = _digest_of(moving_rows, spreads)
    context = {
        "filter": form,
        "rows": shown_rows,
        "stories": _group_by_story(shown_rows),
        # Viewers can't decide on items. The items that are being made can be decided on once they are ready.
        "has_acts": place.may_edit and (bool(moving_rows) or any(row["token"] for row in shown_rows)),
        "poll": poll_query.urlencode() if moving_rows else "",
        "kept": kept_query.urlencode(),
        "older": query.urlencode() if len(rows) > ROWS else "",
        "newest": newest,
        "is_first_page": "before" not in request.GET,
        "is_filtered": any(form.data.get(name) for name in form.fields),
        "is_understood": is_understood,
        **views_context(place, form),
    }
    return render(request, "pages/items/rows.html" if is_poll else "pages/items/list.html", context)


def _find_moving(place: Place, rows: Sequence[Mapping[str, Any]]) -> set[UUID]:
    """Return the items that are being made, or sent to a platform right now, so that they change within seconds.

    An item that waits for a person or for its next attempt isn't among them.
    """
    now = utc_now()
    publishing = [row["id"] for row in rows if row["status"] == GeneratedItemStatus.PUBLISHING]
    moving = {row["id"] for row in rows if row["status"] in ITEMS_IN_MAKING}
    if publishing:
        sending = Publication.objects.of(place.workspace).unsent().by_platform()
        sending = sending.filter(item_id__in=publishing, due_at__lte=now, wake_at__isnull=False)
        moving.update(sending.exclude(next_attempt_at__gt=now).values_list("item_id", flat=True))
    return moving


def _read_digest(place: Place, moving: str) -> str:
    """Return `_digest_of` the items as they are now; `moving` is their public ids, with commas between."""
    keys = [decode("gen", public_id) for public_id in moving.split(",")[:ROWS]]
    items = GeneratedItem.objects.of(place.workspace).filter(
        pk__in=filter(None, keys), test=False, deleted_at=None
    )
    rows = list(items.values("id", "status", "held", "flagged"))
    return _digest_of(
        rows, publications.count_by_status(place.workspace, [(row["id"], row["status"]) for row in rows])
    )


def _digest_of(rows: Iterable[Mapping[str, Any]], spreads: Mapping[UUID, Mapping[str, int]]) -> str:
    """Return a digest of what the badges of these rows depend on."""
    badges = sorted(
        (
            str(row["id"]),
            row["status"],
            row["held"],
            row["flagged"],
            sorted(spreads.get(row["id"], {}).items()),
        )
        for row in rows
    )
    return hashlib.sha256(repr(badges).encode()).hexdigest()[:16]


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
    """Return the rows grouped by story; a story comes at the place of its first row."""
    rows_by_story: dict[UUID, list[dict[str, Any]]] = {}
    for row in rows:
        rows_by_story.setdefault(story_key(row), []).append(row)
    return list(rows_by_story.values())


def _first_pictures(place: Place, keys: Sequence[UUID]) -> dict[UUID, str]:
    """Return the address of each item's first picture, by the item's id."""
    rows = Asset.objects.of(place.workspace).filter(item_id__in=keys, revoked_at=None, kind="image")
    addresses: dict[UUID, str] = {}
    for item, secret, name in rows.order_by("position", "id").values_list("item_id", "secret", "name"):
        addresses.setdefault(item, f"/media/{secret}/{name}")
    return addresses


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
