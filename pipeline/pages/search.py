"""The search for everything of a workspace: items, sources, outlets, members, pages, commands, and any public id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.apps import apps
from django.db.models import Q, Value
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from accounts.models import Membership
from accounts.pages.page_access import Place, page
from config.core.database.search_words import fold
from config.core.ids import decode
from pipeline import labels, limits, search
from pipeline.models import GeneratedItem, Outlet, Publication, Source
from pipeline.models.generated_item import APPROVAL_FIELDS
from pipeline.pages import navigation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse
    from django.utils.functional import _StrPromise

MOST: Final = 8
"""Most results shown of each kind."""


class _Command(NamedTuple):
    """Something to do, the page where it is done, and the act that this page asks for."""

    label: _StrPromise
    page: str
    act: str
    icon: str


class _Target(NamedTuple):
    """The page of an object: its address takes the id as `argument`, it asks for the act, and shows such rows alone."""

    model: str
    page: str
    argument: str
    act: str
    shows: Mapping[str, Any]


_COMMANDS: Final = (
    _Command(_("Create from a link or text"), "making", "edit", "plus"),
    _Command(_("Add a source"), "source_add", "edit", "rss"),
    _Command(_("Add an outlet"), "outlet_add", "manage", "send"),
    _Command(_("Fill the week"), "calendar_fill", "edit", "calendar"),
    _Command(_("Pause publishing"), "queues_hold", "edit", "pause"),
    _Command(_("Resume publishing"), "queues_release", "edit", "play"),
    _Command(_("Invite a member"), "member_invite", "manage", "users"),
    _Command(_("Create an API key"), "key_create", "manage", "key-round"),
    _Command(_("Add a webhook"), "webhook_add", "manage", "webhook"),
)
_SHOWN_OF_ITEM: Final = ("title", "excerpt", "engine_output", "status", "held", *APPROVAL_FIELDS)
_STANDING: Final[Mapping[str, Any]] = {"deleted_at": None}
_LIVE: Final[Mapping[str, Any]] = {**_STANDING, "test": False}
_BY_ID: Final[Mapping[str, _Target]] = {
    "gen": _Target("pipeline.GeneratedItem", "item_page", "gen", "look", _LIVE),
    "raw": _Target("pipeline.RawItem", "made", "raw", "look", _LIVE),
    "src": _Target("pipeline.Source", "source_page", "src", "look", {**_LIVE, "is_push": False}),
    "out": _Target("pipeline.Outlet", "outlet_page", "out", "look", _STANDING),
    "ser": _Target("pipeline.Series", "series_one", "ser", "look", _LIVE),
    "que": _Target("pipeline.PublishQueue", "queue_edit", "que", "edit", {}),
    "per": _Target("pipeline.Persona", "persona", "per", "edit", _STANDING),
    "whe": _Target("webhooks.Endpoint", "webhook", "whe", "manage", _STANDING),
    "tok": _Target("accounts.ApiToken", "key", "token_id", "manage", {}),
}
"""By the prefix of their public ids."""


@dataclass(frozen=True)
class Found:
    label: str
    address: str
    icon: str
    note: str = ""


@page("look", methods=("GET",))
def everything(request: HttpRequest, place: Place) -> HttpResponse:
    """The page, or with `X-Part: 1` the results alone."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[: limits.SEARCH_CHARACTERS]
    groups = [(label, rows) for label, rows in _groups(place, text) if rows]
    name = "pages/search/results.html" if request.headers.get("X-Part") == "1" else "pages/search/page.html"
    return render(request, name, {"text": text, "groups": groups})


def _groups(place: Place, text: str) -> Iterator[tuple[Any, list[Found]]]:
    yield _("Go to"), list(_by_id(place, text))
    if text:
        yield _("Content"), _items(place, text)
        yield _("Sources"), _sources(place, text)
        yield _("Outlets"), _outlets(place, text)
        yield _("Members"), _members(place, text)
    yield _("Commands"), _named(_commands(place), text)
    yield _("Pages"), _named(_pages(place), text)


def _by_id(place: Place, text: str) -> Iterator[Found]:
    """The page of the object with this public id, where there is one for this person."""
    found = _target_of(place, text)
    if found is None:
        return
    target, key = found
    model: Any = apps.get_model(target.model)
    rows = model.objects.of(place.workspace).filter(pk=key, **target.shows)
    if place.may(target.act) and rows.exists():
        yield Found(text, place.address(target.page, **{target.argument: key}), "search")


def _target_of(place: Place, text: str) -> tuple[_Target, UUID] | None:
    """What a public id names, which need not be there, and its key; None where the text is no such id.

    A publication is shown on its item's page.
    """
    prefix = text.partition("_")[0]
    key = decode(prefix, text) if prefix in {*_BY_ID, "pub"} else None
    if key is not None and prefix == "pub":
        prefix = "gen"
        key = Publication.objects.of(place.workspace).filter(pk=key).values_list("item_id", flat=True).first()
    return None if key is None else (_BY_ID[prefix], key)


def _items(place: Place, text: str) -> list[Found]:
    keys = search.find_items(place.workspace.pk, text, max_results=MOST)
    rows = GeneratedItem.objects.of(place.workspace).filter(pk__in=keys, deleted_at=None)
    found = {row.pk: row for row in rows.only(*_SHOWN_OF_ITEM)}
    return [
        Found(
            row.title or row.excerpt or row.engine_output,
            place.address("item_page", gen=key),
            "newspaper",
            f"{row.engine_output} · {_state_of(row)}",
        )
        for key in keys
        if (row := found.get(key)) is not None
    ]


def _state_of(row: GeneratedItem) -> str:
    badge = labels.of_status(row.status, is_approved=row.is_approved, is_held=bool(row.held))
    return str(badge.label)


def _sources(place: Place, text: str) -> list[Found]:
    # As `test = false`; Django's `NOT test` keeps SQLite from seeking in the index of the list.
    rows = Source.objects.of(place.workspace).filter(
        test=Value(False),  # noqa: FBT003
        is_push=False,
        deleted_at=None,
    )
    keys = search.find_sources(rows, text, max_results=MOST)
    found = rows.in_bulk(keys)
    return [
        Found(found[key].name, place.address("source_page", src=key), "rss", found[key].type) for key in keys
    ]


def _outlets(place: Place, text: str) -> list[Found]:
    rows = Outlet.objects.of(place.workspace).filter(deleted_at=None, name__icontains=text)
    found = rows.order_by("name", "id").values_list("id", "name", "platform")[:MOST]
    return [Found(name, place.address("outlet_page", out=key), "send", kind) for key, name, kind in found]


def _members(place: Place, text: str) -> list[Found]:
    rows = Membership.objects.of(place.workspace).filter(
        Q(user__name__icontains=text) | Q(user__email__icontains=text), user__is_active=True
    )
    found = rows.order_by("user__email").values_list("user__name", "user__email")[:MOST]
    return [
        Found(name or email, place.address("members"), "user", email if name else "") for name, email in found
    ]


def _commands(place: Place) -> Iterator[Found]:
    for command in _COMMANDS:
        if place.may(command.act):
            yield Found(str(command.label), place.address(command.page), command.icon)


def _pages(place: Place) -> Iterator[Found]:
    for label, address, icon in navigation.every_page(place):
        yield Found(label, address, icon)


def _named(rows: Iterator[Found], text: str) -> list[Found]:
    """Those whose label has every word of the text, in the order of `rows`."""
    words = fold(text).split()
    return [row for row in rows if all(word in fold(row.label) for word in words)][:MOST]
