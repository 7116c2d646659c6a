"""Shows the review queue: the list of stories, one card, and what others have done meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import Http404, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import render

from accounts.pages.page_access import Place, workspace_page
from config.core.ids import decode, encode
from pipeline.pages.items import next_actions
from pipeline.pages.items.detail import find_item
from pipeline.pages.review import card, stories
from pipeline.pages.review.forms import WAITING, QueueFilter

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import GeneratedItem

MAX_ITEMS_WATCHED: Final = 60
"""The most items whose changes a page asks for at once."""
_MAX_VERSION_DIGITS: Final = 9


@workspace_page("look", methods=("GET",))
def review(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the queue; `at` names the item on the card, `after` the story after which the list begins."""
    filter_form = QueueFilter.from_query(request.GET, place.workspace)
    at, after = _key_in(request, "at"), _key_in(request, "after")
    found_stories, has_more = stories.find_stories(
        place, filter_form, before=after, first=at if after is None else None
    )
    if not found_stories and after is not None:
        # No story follows that one, so the list begins again with the newest one.
        after = None
        found_stories, has_more = stories.find_stories(place, filter_form)
    row = find_item(place, at or found_stories[0].lead) if at or found_stories else None
    context = {
        **list_context(filter_form, found_stories, has_more=has_more),
        "filter": filter_form,
        "is_filtered": bool(filter_form.query),
        "is_waiting": filter_form.chosen_status == WAITING,
        "count": stories.count_matching(place, filter_form),
        "is_first": at is None and after is None,
        "waits": next_actions.general_access_blockers(place),
        **({"card": card_context(place, row, filter_form.query)} if row is not None else {}),
    }
    return render(request, "pages/review/page.html", context)


@workspace_page("look", methods=("GET",))
def review_rows(request: HttpRequest, place: Place) -> HttpResponse:
    """Render the next stories of the list, for a page that is open."""
    filter_form = QueueFilter.from_query(request.GET, place.workspace)
    found_stories, has_more = stories.find_stories(place, filter_form, before=_key_in(request, "after"))
    context = list_context(filter_form, found_stories, has_more=has_more)
    return render(request, "pages/review/rows.html", context)


@workspace_page("look", methods=("GET",))
def review_card(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Render one card without the page around it."""
    row = find_item(place, gen)
    context = card_context(place, row, QueueFilter.query_in(request.GET))
    return render(request, "pages/review/card.html", {"card": context})


@workspace_page("look", methods=("GET",))
def review_news(request: HttpRequest, place: Place) -> HttpResponse:
    """Return as JSON which shown items were changed or deleted, and how many newer items there are.

    The parameter `shown` holds ids with versions, as `gen_…:3`; `first` names the first item of the list. The answer
    also has a fresh CSRF token, because a new log-in changes it.
    """
    filter_form = QueueFilter.from_query(request.GET, place.workspace)
    shown_versions = versions_in(request.GET.get("shown", "").split(",")[:MAX_ITEMS_WATCHED])
    rows = stories.reviewable_items(place).filter(pk__in=list(shown_versions))
    tabs = [stories.build_tab(row) for row in stories.select_tab_columns(rows)]
    first_key = _key_in(request, "first")
    return JsonResponse(
        {
            "changed": [
                {
                    "id": tab.public_id,
                    "version": tab.version,
                    "state": tab.state,
                    "tone": tab.tone,
                    "waits": tab.waits,
                }
                for tab in tabs
                if tab.version != shown_versions[tab.id]
            ],
            "gone": [encode("gen", key) for key in shown_versions.keys() - {tab.id for tab in tabs}],
            "newer": stories.count_newer(place, filter_form, first_key).text if first_key else "0",
            "count": stories.count_matching(place, filter_form).text,
            "token": get_token(request),
        }
    )


def list_context(
    filter_form: QueueFilter, found_stories: list[stories.ReviewStory], *, has_more: bool
) -> dict[str, Any]:
    """Return the context of the list; `older` is the id of the last story if more follow, else empty."""
    return {
        "stories": found_stories,
        "query": filter_form.query,
        "older": found_stories[-1].public_id if has_more else "",
    }


def card_context(place: Place, row: GeneratedItem, query: str) -> dict[str, Any]:
    """Return the context of a card, with the query string of the filters that its forms lead back to."""
    return {**card.card_of(place, row), "query": query}


def versions_in(tokens: list[str]) -> dict[UUID, int]:
    """Parse tokens such as `gen_…:3` into versions by id, in their order, and skip malformed ones."""
    versions: dict[UUID, int] = {}
    for token in tokens:
        public_id, _colon, version = token.partition(":")
        key = decode("gen", public_id)
        if (
            key is not None
            and version.isascii()
            and version.isdigit()
            and len(version) <= _MAX_VERSION_DIGITS
        ):
            versions[key] = int(version)
    return versions


def _key_in(request: HttpRequest, name: str) -> UUID | None:
    """Return the item id in this parameter, or `None` if it is empty; raises `Http404` if it is malformed."""
    public_id = request.GET.get(name, "")
    if not public_id:
        return None
    key = decode("gen", public_id)
    if key is None:
        raise Http404
    return key
