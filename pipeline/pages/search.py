"""Searches a workspace for items, sources, outlets, members, pages, commands, and any public id."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.apps import apps
from django.db.models import Q, Value
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from accounts.models import Membership
from accounts.pages.page_access import Place, workspace_page
from config.core.database.search_excerpts import TextPart, excerpt_around, label_and_excerpt
from config.core.database.search_words import fold
from config.core.ids import decode
from pipeline import labels, limits, search
from pipeline.models import GeneratedItem, Outlet, Publication, Source
from pipeline.models.generated_item import APPROVAL_FIELDS
from pipeline.pages import navigation
from pipeline.pages.items import publications
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse
    from django.utils.functional import _StrPromise

MAX_RESULTS: Final = 8
"""The most results of each group that are shown."""
LABEL_CHARACTERS: Final = 100
EXCERPT_CHARACTERS: Final = 140


class _Command(NamedTuple):
    """A command: the label, the URL name of the page that does it, and the permission (`act`) that the page requires."""

    label: _StrPromise
    page: str
    act: str
    icon: str


class _Target(NamedTuple):
    """The page of a kind of object, which takes the object's id as `argument`.

    `act` is the permission that the page requires; `shows` is the filter of the objects that the page can show.
    """

    model: str
    page: str
    argument: str
    act: str
    shows: Mapping[str, Any]


_COMMANDS: Final = (
    _Command(_("Create from a link or text"), "making", "edit", "plus"),
    _Command(_("Add a source"), "source_add", "edit", "rss"),
    _Command(_("Add an outlet"), "outlet_add", "manage", "send"),
    _Command(_("Fill free slots"), "calendar_fill", "edit", "calendar"),
    _Command(_("Pause publishing"), "queues_hold", "edit", "pause"),
    _Command(_("Resume publishing"), "queues_release", "edit", "play"),
    _Command(_("Invite a member"), "member_invite", "manage", "users"),
    _Command(_("Create an API key"), "key_create", "manage", "key-round"),
    _Command(_("Add a webhook"), "webhook_add", "manage", "webhook"),
)
_ITEM_RESULT_FIELDS: Final = (
    "title",
    "excerpt",
    "body",
    "body_format",
    "engine_output",
    "status",
    "held",
    *APPROVAL_FIELDS,
)
_NOT_DELETED: Final[Mapping[str, Any]] = {"deleted_at": None}
_LIVE: Final[Mapping[str, Any]] = {**_NOT_DELETED, "test": False}
_TARGETS_BY_PREFIX: Final[Mapping[str, _Target]] = {
    "gen": _Target("pipeline.GeneratedItem", "item_page", "gen", "look", _LIVE),
    "raw": _Target("pipeline.RawItem", "made", "raw", "look", _LIVE),
    "src": _Target("pipeline.Source", "source_page", "src", "look", {**_LIVE, "is_push": False}),
    "out": _Target("pipeline.Outlet", "outlet_page", "out", "look", _NOT_DELETED),
    "ser": _Target("pipeline.Series", "series_one", "ser", "look", _LIVE),
    "que": _Target("pipeline.PublishQueue", "queue_edit", "que", "edit", {}),
    "per": _Target("pipeline.Persona", "persona", "per", "edit", _NOT_DELETED),
    "whe": _Target("webhooks.Endpoint", "webhook", "whe", "manage", _NOT_DELETED),
    "tok": _Target("accounts.ApiToken", "key", "token_id", "manage", {}),
}
"""The pages of objects, by the prefix of the objects' public ids."""


@dataclass(frozen=True)
class Found:
    """One search result; `note` is a short text next to the label."""

    label: str
    address: str
    icon: str
    note: str = ""
    parts: tuple[TextPart, ...] = ()
    """The label around the words that were searched for."""
    excerpt: tuple[TextPart, ...] = ()
    """The text of an item around these words; empty if its label has them."""


@workspace_page("look", methods=("GET",))
def everything(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the results of the query `q`; with the header `X-Part: 1`, without the page around them."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[: limits.SEARCH_CHARACTERS]
    groups = [
        (
            label,
            [
                row
                if row.parts
                else replace(row, parts=excerpt_around(row.label, text, length=LABEL_CHARACTERS))
                for row in rows
            ],
        )
        for label, rows in _result_groups(place, text)
        if rows
    ]
    template = (
        "pages/search/results.html" if request.headers.get("X-Part") == "1" else "pages/search/page.html"
    )
    return render(request, template, {"text": text, "groups": groups})


def _result_groups(place: Place, text: str) -> Iterator[tuple[Any, list[Found]]]:
    """Yield the label and the results of each group; without a text, only commands and pages have results."""
    yield _("Go to"), list(_find_by_id(place, text))
    if text:
        yield _("Content"), _find_items(place, text)
        yield _("Sources"), _find_sources(place, text)
        yield _("Outlets"), _find_outlets(place, text)
        yield _("Members"), _find_members(place, text)
    yield _("Commands"), _filter_by_label(_allowed_commands(place), text)
    yield _("Pages"), _filter_by_label(_all_pages(place), text)


def _find_by_id(place: Place, text: str) -> Iterator[Found]:
    """Yield the page of the object with this public id, if the object exists and the person may open the page."""
    resolved = _resolve_id(place, text)
    if resolved is None:
        return
    target, key = resolved
    model: Any = apps.get_model(target.model)
    objects = model.objects.of(place.workspace).filter(pk=key, **target.shows)
    if place.may(target.act) and objects.exists():
        yield Found(text, place.url_of(target.page, **{target.argument: key}), "search")


def _resolve_id(place: Place, text: str) -> tuple[_Target, UUID] | None:
    """Return the target and the key that a public id names, or `None` if the text is no id of a known kind.

    The object need not exist. A publication resolves to its item, whose page shows it, or to `None` if it doesn't
    exist.
    """
    prefix = text.partition("_")[0]
    key = decode(prefix, text) if prefix in {*_TARGETS_BY_PREFIX, "pub"} else None
    if key is not None and prefix == "pub":
        prefix = "gen"
        key = Publication.objects.of(place.workspace).filter(pk=key).values_list("item_id", flat=True).first()
    return None if key is None else (_TARGETS_BY_PREFIX[prefix], key)


def _find_items(place: Place, text: str) -> list[Found]:
    """Find items by their text, the best matches first."""
    keys = search.find_items(place.workspace.pk, text, max_results=MAX_RESULTS)
    rows = GeneratedItem.objects.of(place.workspace).filter(pk__in=keys, deleted_at=None)
    items_by_id = {item.pk: item for item in rows.only(*_ITEM_RESULT_FIELDS)}
    items = [items_by_id[key] for key in keys if key in items_by_id]
    spreads = publications.count_by_status(place.workspace, [(item.pk, item.status) for item in items])
    return [
        _found_item(
            item,
            text,
            place.url_of("item_page", gen=item.pk),
            f"{item.engine_output} · {_status_label(item, spreads.get(item.pk, {}))}",
        )
        for item in items
    ]


def _found_item(item: GeneratedItem, text: str, address: str, note: str) -> Found:
    label = item.title or item.excerpt or item.engine_output
    parts, excerpt = label_and_excerpt(
        label,
        plain_text(item.body, item.body_format),
        text,
        label_length=LABEL_CHARACTERS,
        length=EXCERPT_CHARACTERS,
    )
    return Found(label, address, "newspaper", note, parts=parts, excerpt=excerpt)


def _status_label(row: GeneratedItem, spread: Mapping[str, int]) -> str:
    """Return the item's status as pages show it."""
    badge = labels.of_status(row.status, is_approved=row.is_approved, is_held=bool(row.held))
    return str(labels.of_spread(badge, row.status, spread).label)


def _find_sources(place: Place, text: str) -> list[Found]:
    """Find sources by name or address, the best matches first."""
    # Compiles to `test = false`; Django's `NOT test` keeps SQLite from seeking in the list's index.
    rows = Source.objects.of(place.workspace).filter(
        test=Value(False),  # noqa: FBT003
        is_push=False,
        deleted_at=None,
    )
    keys = search.find_sources(rows, text, max_results=MAX_RESULTS)
    sources_by_id = rows.in_bulk(keys)
    return [
        Found(sources_by_id[key].name, place.url_of("source_page", src=key), "rss", sources_by_id[key].type)
        for key in keys
    ]


def _find_outlets(place: Place, text: str) -> list[Found]:
    """Find outlets by name."""
    outlets = Outlet.objects.of(place.workspace).filter(deleted_at=None, name__icontains=text)
    results = outlets.order_by("name", "id").values_list("id", "name", "platform")[:MAX_RESULTS]
    return [
        Found(name, place.url_of("outlet_page", out=key), "send", platform) for key, name, platform in results
    ]


def _find_members(place: Place, text: str) -> list[Found]:
    """Find active members by name or email address."""
    memberships = Membership.objects.of(place.workspace).filter(
        Q(user__name__icontains=text) | Q(user__email__icontains=text), user__is_active=True
    )
    results = memberships.order_by("user__email").values_list("user__name", "user__email")[:MAX_RESULTS]
    return [
        Found(name or email, place.url_of("members"), "user", email if name else "")
        for name, email in results
    ]


def _allowed_commands(place: Place) -> Iterator[Found]:
    """Yield the commands that the person may use."""
    for command in _COMMANDS:
        if place.may(command.act):
            yield Found(str(command.label), place.url_of(command.page), command.icon)


def _all_pages(place: Place) -> Iterator[Found]:
    """Yield the pages of the navigation."""
    for label, address, icon in navigation.list_pages(place):
        yield Found(label, address, icon)


def _filter_by_label(rows: Iterator[Found], text: str) -> list[Found]:
    """Return the first results whose label contains every word of the text, at most `MAX_RESULTS`."""
    words = fold(text).split()
    return [row for row in rows if all(word in fold(row.label) for word in words)][:MAX_RESULTS]
