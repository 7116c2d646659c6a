"""The queue in front of a person: a list of stories, one card, and what others have done meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404, JsonResponse, QueryDict
from django.middleware.csrf import get_token
from django.shortcuts import render

from accounts.pages.page_access import Place, page
from config.core.ids import decode, encode
from pipeline.pages.items import next_actions
from pipeline.pages.items.detail import find_item
from pipeline.pages.review import card, stories
from pipeline.pages.review.forms import WAITING, QueueFilter

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import GeneratedItem

FILTERS: Final = ("status", "bucket", "source", "persona", "outlet", "check")
WATCHED_MOST: Final = 60


@dataclass(frozen=True)
class ReviewQuery:
    """What the address asks for."""

    narrowed: QueueFilter
    query: str
    """The filters alone, as an address takes them."""


def review_query_in(place: Place, given: QueryDict) -> ReviewQuery:
    """Filters that nobody understands are left out."""
    narrowed = QueueFilter(given, workspace=place.workspace)
    if not narrowed.is_valid():
        kept = QueryDict(mutable=True)
        for name in FILTERS:
            if name not in narrowed.errors and given.get(name):
                kept[name] = str(given[name])
        given, narrowed = kept, QueueFilter(kept, workspace=place.workspace)
        narrowed.is_valid()
    return ReviewQuery(narrowed, filters_in(given))


def filters_in(given: QueryDict) -> str:
    """The filters as an address takes them, whether anybody understands them or not: nothing is asked for."""
    query = QueryDict(mutable=True)
    for name in FILTERS:
        if given.get(name):
            query[name] = str(given[name])
    return query.urlencode()


@page("look", methods=("GET",))
def review(request: HttpRequest, place: Place) -> HttpResponse:
    """`at` names the item that is looked at, `after` the story behind which the list begins."""
    asked = review_query_in(place, request.GET)
    at, after = _key_in(request, "at"), _key_in(request, "after")
    found, has_more = stories.stories(
        place, asked.narrowed, before=after, first=at if after is None else None
    )
    if not found and after is not None:
        # Behind the last one the first of those that still wait.
        after = None
        found, has_more = stories.stories(place, asked.narrowed)
    row = find_item(place, at or found[0].lead) if at or found else None
    context = {
        **list_context(asked, found, has_more=has_more),
        "filter": asked.narrowed,
        "is_filtered": bool(asked.query),
        "is_waiting": asked.narrowed.status_asked == WAITING,
        "count": stories.waiting_count(place, asked.narrowed),
        "is_first": at is None and after is None,
        "waits": next_actions.before_any_publishing(place),
        **({"card": card_context(place, row, asked.query)} if row is not None else {}),
    }
    return render(request, "pages/review/page.html", context)


@page("look", methods=("GET",))
def review_rows(request: HttpRequest, place: Place) -> HttpResponse:
    """Further stories of the list, for the page that is open."""
    asked = review_query_in(place, request.GET)
    found, has_more = stories.stories(place, asked.narrowed, before=_key_in(request, "after"))
    return render(request, "pages/review/rows.html", list_context(asked, found, has_more=has_more))


@page("look", methods=("GET",))
def review_card(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """A card alone."""
    row = find_item(place, gen)
    shown = card_context(place, row, filters_in(request.GET))
    return render(request, "pages/review/card.html", {"card": shown})


@page("look", methods=("GET",))
def review_news(request: HttpRequest, place: Place) -> HttpResponse:
    """What has changed of the items that are shown, and how many came in above the first.

    `shown` are ids with versions, as `gen_…:3`; the answer also has a fresh token for forms, as a new log-in
    needs one.
    """
    asked = review_query_in(place, request.GET)
    shown = versions_in(request.GET.get("shown", "").split(",")[:WATCHED_MOST])
    rows = stories.all_of(place).filter(pk__in=list(shown))
    states = [stories.stacked(row) for row in stories.fields_of(rows)]
    first = _key_in(request, "first")
    return JsonResponse(
        {
            "changed": [
                {
                    "id": one.public_id,
                    "version": one.version,
                    "state": one.state,
                    "tone": one.tone,
                    "waits": one.waits,
                }
                for one in states
                if one.version != shown[one.id]
            ],
            "gone": [encode("gen", key) for key in shown.keys() - {one.id for one in states}],
            "newer": stories.newer_count(place, asked.narrowed, first).text if first else "0",
            "count": stories.waiting_count(place, asked.narrowed).text,
            "token": get_token(request),
        }
    )


def list_context(asked: ReviewQuery, found: list[stories.ReviewStory], *, has_more: bool) -> dict[str, Any]:
    return {
        "stories": found,
        "query": asked.query,
        "older": found[-1].public_id if has_more else "",
    }


def card_context(place: Place, row: GeneratedItem, query: str) -> dict[str, Any]:
    return {**card.card_of(place, row), "query": query}


def versions_in(tokens: list[str]) -> dict[UUID, int]:
    """Of `gen_…:3`, in their order; what is no such thing is left out."""
    found: dict[UUID, int] = {}
    for one in tokens:
        name, _colon, version = one.partition(":")
        key = decode("gen", name)
        if key is not None and version.isascii() and version.isdigit() and len(version) < 10:
            found[key] = int(version)
    return found


def _key_in(request: HttpRequest, name: str) -> UUID | None:
    given = request.GET.get(name, "")
    if not given:
        return None
    key = decode("gen", given)
    if key is None:
        raise Http404
    return key
