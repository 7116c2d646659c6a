"""Finds what keeps posts from being published, each blocker with the page or the button that removes it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

from config.core.ids import decode
from pipeline import publish
from pipeline.review import explanation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from accounts.pages.page_access import Place
    from pipeline.models import GeneratedItem, Outlet, Publication
    from pipeline.publish import Blocker

_PLANNED_CODE: Final = "not_due"
# Blockers that need no action: the post is published, its time is still to come, or nobody has requested it yet.
_HARMLESS_CODES: Final = frozenset({"already_published", "not_requested", _PLANNED_CODE})
# Matches `/publications/pub_…/retry` as kind, prefix of the id and action; `/generated/gen_…` has no action.
_CALL_PATH: Final = re.compile(r"/(generated|publications)/([a-z]+)_[0-9a-z]{26}(?:/([a-z]+))?")


@dataclass(frozen=True)
class NextAction:
    """A page to open, or an address to post to."""

    label: str
    address: str
    is_post: bool


@dataclass(frozen=True)
class ShownBlocker:
    """What keeps posts from being published, as pages show it.

    `outlets` are the names of the outlets affected, separated by commas; it is empty if the blocker is the item's.
    """

    message: str
    outlets: str
    since: datetime | None
    until: datetime | None
    action: NextAction | None


@dataclass(frozen=True)
class PlannedPost:
    """A post that will be published at its time, with nothing in its way."""

    outlet: str
    due_at: datetime


@dataclass(frozen=True)
class Waits:
    """The blockers that keep posts from being sent at their time, and the ids of those posts."""

    blockers: tuple[ShownBlocker, ...]
    publications: frozenset[UUID]

    @property
    def lines(self) -> list[str]:
        """A sentence about each blocker, for the message after publishing."""
        return [
            _("Nothing is sent to %(outlets)s yet: the post waits. %(why)s")
            % {"outlets": blocker.outlets, "why": blocker.message}
            for blocker in self.blockers
        ]


@dataclass(frozen=True)
class Outlook:
    """The blockers of an item and of its posts, and the posts that have none."""

    blockers: tuple[ShownBlocker, ...] = ()
    planned: tuple[PlannedPost, ...] = ()


def read_outlook(place: Place, item: GeneratedItem, *, now: datetime) -> Outlook:
    """Return the item's blockers and planned posts; its workspace and its raw item must be loaded."""
    explained = explanation.explain(item, now=now)
    planned = tuple(
        PlannedPost(row.outlet.name, row.due_at)
        for row, blockers in explained.publications
        if row.due_at is not None and [blocker.code for blocker in blockers] == [_PLANNED_CODE]
    )
    return Outlook(_item_blockers(place, item, explained), planned)


def _item_blockers(
    place: Place, item: GeneratedItem, explained: explanation.Explained
) -> tuple[ShownBlocker, ...]:
    """Return each blocker of the item and of its publications once, with the names of the outlets affected."""
    blocked = [(blocker, "") for blocker in explained.blockers]
    outlets_by_blocker: dict[ShownBlocker, list[str]] = {}
    for row, blockers in explained.publications:
        if row.is_handed_over:
            outlets_by_blocker.setdefault(_manual_post_blocker(place, row), []).append(row.outlet.name)
        else:
            blocked += [(blocker, row.outlet.name) for blocker in blockers]
    for blocker, outlet in blocked:
        if blocker.code not in _HARMLESS_CODES:
            since = None if blocker.until else blocker.since
            action = next_action_for(place, item, blocker)
            shown_blocker = ShownBlocker(blocker.message, "", since, blocker.until, action)
            outlets_by_blocker.setdefault(shown_blocker, []).append(outlet)
    return tuple(
        replace(shown_blocker, outlets=", ".join(filter(None, names)))
        for shown_blocker, names in outlets_by_blocker.items()
    )


def access_blockers_of(place: Place, outlets: Iterable[Outlet]) -> tuple[ShownBlocker, ...]:
    """Return why nothing is sent to some of these outlets as long as the workspace has no access, without a query."""
    outlet_list = list(outlets)
    blockers = publish.access_blockers(place.workspace, {outlet.platform for outlet in outlet_list})
    return _merge_blockers(
        place,
        [(blockers[outlet.platform], outlet.name) for outlet in outlet_list if outlet.platform in blockers],
    )


def general_access_blockers(place: Place) -> tuple[ShownBlocker, ...]:
    """Return why nothing is sent to other services as long as the workspace has no access, without a query."""
    # No platform is named "", so it stands for any platform of another service.
    return _merge_blockers(
        place, [(blocker, "") for blocker in publish.access_blockers(place.workspace, [""]).values()]
    )


def find_waits(place: Place, rows: Iterable[Publication], *, now: datetime) -> Waits:
    """Return the first blocker of each of these posts; outlet, item, workspace and queue must be loaded."""
    blocked = [
        (blocker, row) for row in rows if (blocker := next(publish.find_blockers(row, now), None)) is not None
    ]
    return Waits(
        _merge_blockers(place, [(blocker, row.outlet.name) for blocker, row in blocked]),
        frozenset(row.pk for _blocker, row in blocked),
    )


def _merge_blockers(place: Place, blocked: Iterable[tuple[Blocker, str]]) -> tuple[ShownBlocker, ...]:
    """Return each blocker once, with the names of the outlets affected."""
    outlets_by_blocker: dict[ShownBlocker, list[str]] = {}
    for blocker, outlet in blocked:
        action = _workspace_action(place, blocker)
        shown_blocker = ShownBlocker(blocker.message, "", None, blocker.until, action)
        outlets_by_blocker.setdefault(shown_blocker, []).append(outlet)
    return tuple(
        replace(shown_blocker, outlets=", ".join(dict.fromkeys(names)))
        for shown_blocker, names in outlets_by_blocker.items()
    )


def _manual_post_blocker(place: Place, row: Publication) -> ShownBlocker:
    """Return the blocker of a post that a person has to publish by hand."""
    message = _("Post it manually, then mark it posted.")
    action = (
        NextAction(_("Post manually"), place.url_of("package", pub=row.pk), is_post=False)
        if place.may_edit
        else None
    )
    return ShownBlocker(message, "", row.due_at, None, action)


def next_action_for(place: Place, item: GeneratedItem, blocker: Blocker) -> NextAction | None:
    """Return the action that removes a blocker, or `None` if no page has one or the person may not take it."""
    workspace_action = _workspace_action(place, blocker)
    call = blocker.clears
    if workspace_action is not None or call is None or not place.may_edit:
        return workspace_action
    match = _CALL_PATH.fullmatch(call.path)
    if match is None:
        return None
    kind, prefix, action = match.groups()
    if kind == "publications":
        return _publication_action(place, action, call.path.split("/")[2], prefix)
    pages = {
        "publish": (_("Reschedule"), "item_publish", False),
        "approve": (_("Approve"), "item_approve", True),
        "retry": (_("Retry"), "item_retry", True),
        "restore": (_("Restore"), "item_restore", True),
        None: (_("Edit"), "item_edit", False),
    }
    if action not in pages:
        return None
    label, name, is_post = pages[action]
    return NextAction(label, place.url_of(name, gen=item.pk), is_post=is_post)


def _workspace_action(place: Place, blocker: Blocker) -> NextAction | None:
    """Return the action for a blocker of all posts: request access or resume publishing.

    Returns `None` for any other blocker, and if the person may not take the action.
    """
    if blocker.needs_access and place.may_manage:
        return NextAction(_("Request access"), place.url_of("access"), is_post=False)
    if blocker.clears == publish.RELEASE_HOLD_CALL and place.may_edit:
        return NextAction(_("Resume publishing"), place.url_of("queues_release"), is_post=False)
    return None


def _publication_action(place: Place, action: str | None, public_id: str, prefix: str) -> NextAction | None:
    """Return the action on a publication that a call names, or `None` if no page offers it."""
    actions = {
        "retry": (_("Retry"), "publication_retry"),
        "reconcile": (_("Check status"), "publication_reconcile"),
    }
    key = decode(prefix, public_id)
    if action not in actions or key is None:
        return None
    label, url_name = actions[action]
    return NextAction(label, place.url_of(url_name, pub=key), is_post=True)
