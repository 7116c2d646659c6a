"""What stands in the way of publishing, in order, each with the page or the button that takes it away."""

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

_PLANNED: Final = "not_due"
# What is no obstacle to a person: it is out, its time is still to come, or nobody has asked for it yet.
_NO_OBSTACLE: Final = frozenset({"already_published", "not_requested", _PLANNED})
_PATH: Final = re.compile(r"/(generated|publications)/([a-z]+)_[0-9a-z]{26}(?:/([a-z]+))?")


@dataclass(frozen=True)
class NextAction:
    """Where to go, or what to post there."""

    label: str
    address: str
    is_post: bool


@dataclass(frozen=True)
class Obstacle:
    """`outlets` are those in whose way it stands, in words; empty where it is the item itself."""

    message: str
    outlets: str
    since: datetime | None
    until: datetime | None
    action: NextAction | None


@dataclass(frozen=True)
class PlannedPost:
    """What is published at its time, with nothing in its way."""

    outlet: str
    due_at: datetime


@dataclass(frozen=True)
class Waits:
    """Why posts aren't sent at their time, and the ids of those posts."""

    obstacles: tuple[Obstacle, ...]
    publications: frozenset[UUID]

    @property
    def lines(self) -> list[str]:
        """A sentence for each obstacle, for the message after publishing."""
        return [
            _("Nothing is sent to %(outlets)s yet: the post waits. %(why)s")
            % {"outlets": one.outlets, "why": one.message}
            for one in self.obstacles
        ]


@dataclass(frozen=True)
class Outlook:
    obstacles: tuple[Obstacle, ...] = ()
    planned: tuple[PlannedPost, ...] = ()


def outlook_of(place: Place, item: GeneratedItem, *, now: datetime) -> Outlook:
    """The item comes with its workspace and its raw item."""
    found = explanation.explain(item, now=now)
    planned = tuple(
        PlannedPost(row.outlet.name, row.due_at)
        for row, blockers in found.publications
        if row.due_at is not None and [one.code for one in blockers] == [_PLANNED]
    )
    return Outlook(_obstacles(place, item, found), planned)


def _obstacles(place: Place, item: GeneratedItem, found: explanation.Explained) -> tuple[Obstacle, ...]:
    told = [(blocker, "") for blocker in found.blockers]
    seen: dict[Obstacle, list[str]] = {}
    for row, blockers in found.publications:
        if publish.is_handed_over(row):
            seen.setdefault(_by_hand(place, row), []).append(row.outlet.name)
        else:
            told += [(blocker, row.outlet.name) for blocker in blockers]
    for one, outlet in told:
        if one.code not in _NO_OBSTACLE:
            since = None if one.until else one.since
            obstacle = Obstacle(one.message, "", since, one.until, next_action_for(place, item, one))
            seen.setdefault(obstacle, []).append(outlet)
    return tuple(replace(one, outlets=", ".join(filter(None, names))) for one, names in seen.items())


def before_publishing(place: Place, outlets: Iterable[Outlet]) -> tuple[Obstacle, ...]:
    """Which of these outlets nothing is sent to without access; no statement."""
    rows = list(outlets)
    found = publish.access_blockers(place.workspace, {one.platform for one in rows})
    return _gathered(place, [(found[one.platform], one.name) for one in rows if one.platform in found])


def before_any_publishing(place: Place) -> tuple[Obstacle, ...]:
    """Why posts to outlets of other services aren't sent without access; no statement."""
    return _gathered(place, [(one, "") for one in publish.access_blockers(place.workspace, [""]).values()])


def waits_of(place: Place, rows: Iterable[Publication], *, now: datetime) -> Waits:
    """What keeps these posts from being sent at their
    time. They come with outlet, item, workspace and queue.
    """
    blocked = [
        (blocker, row) for row in rows if (blocker := next(publish.find_blockers(row, now), None)) is not None
    ]
    return Waits(
        _gathered(place, [(blocker, row.outlet.name) for blocker, row in blocked]),
        frozenset(row.pk for _blocker, row in blocked),
    )


def _gathered(place: Place, found: Iterable[tuple[Blocker, str]]) -> tuple[Obstacle, ...]:
    """Each obstacle once, with the names of the outlets in whose way it stands."""
    seen: dict[Obstacle, list[str]] = {}
    for one, outlet in found:
        obstacle = Obstacle(one.message, "", None, one.until, _for_workspace(place, one))
        seen.setdefault(obstacle, []).append(outlet)
    return tuple(replace(one, outlets=", ".join(dict.fromkeys(names))) for one, names in seen.items())


def _by_hand(place: Place, row: Publication) -> Obstacle:
    message = _("Post it manually, then mark it posted.")
    action = (
        NextAction(_("Post manually"), place.address("package", pub=row.pk), is_post=False)
        if place.may_edit
        else None
    )
    return Obstacle(message, "", row.due_at, None, action)


def next_action_for(place: Place, item: GeneratedItem, blocker: Blocker) -> NextAction | None:
    """None where no act helps, and for who may not do it."""
    found = _for_workspace(place, blocker)
    call = blocker.clears
    if found is not None or call is None or not place.may_edit:
        return found
    named = _PATH.fullmatch(call.path)
    if named is None:
        return None
    kind, prefix, act = named.groups()
    if kind == "publications":
        return _of_publication(place, act, call.path.split("/")[2], prefix)
    pages = {
        "publish": (_("Reschedule"), "item_publish", False),
        "approve": (_("Approve"), "item_approve", True),
        "retry": (_("Retry"), "item_retry", True),
        "restore": (_("Restore"), "item_restore", True),
        None: (_("Edit"), "item_edit", False),
    }
    if act not in pages:
        return None
    label, name, is_post = pages[act]
    return NextAction(label, place.address(name, gen=item.pk), is_post=is_post)


def _for_workspace(place: Place, blocker: Blocker) -> NextAction | None:
    """Of what stands in the way of all posts: the page for requesting access, or for resuming publishing."""
    if blocker.needs_access and place.may_manage:
        return NextAction(_("Request access"), place.address("access"), is_post=False)
    if blocker.clears == publish.RELEASE_HOLD_CALL and place.may_edit:
        return NextAction(_("Resume publishing"), place.address("queues_release"), is_post=False)
    return None


def _of_publication(place: Place, act: str | None, public_id: str, prefix: str) -> NextAction | None:
    names = {
        "retry": (_("Retry"), "publication_retry"),
        "reconcile": (_("Check status"), "publication_reconcile"),
    }
    key = decode(prefix, public_id)
    if act not in names or key is None:
        return None
    label, name = names[act]
    return NextAction(label, place.address(name, pub=key), is_post=True)
