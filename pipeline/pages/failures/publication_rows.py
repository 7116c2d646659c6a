"""Builds the rows of late, manual and failed publications and of unknown outcomes for the list of problems."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from pipeline import labels
from pipeline.models import Publication, PublicationStatus
from pipeline.pages.failures.rows import RETRY_ACTS, FailureRow, message_of, version_token
from pipeline.pages.items import next_actions
from pipeline.pages.items.next_actions import NextAction
from pipeline.review import explanation
from pipeline.schedule import recovery
from pipeline.states import EDITABLE_ITEMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from accounts.pages.page_access import Place
    from pipeline.publish.blockers import Blocker

MAX_EXPLAINED: Final = 15
"""The most late publications whose blockers are found, at a few SQL queries each; the others link to their item."""
_SCHEDULE_ACTS: Final = frozenset({recovery.NEXT, recovery.AT, recovery.CANCEL})


def _title(row: Any) -> str:
    return row.title or row.excerpt or _("Untitled")


def build_late_rows(place: Place, rows: Sequence[Publication], now: datetime) -> list[FailureRow]:
    """Build the rows of late publications, the first `MAX_EXPLAINED` with their first blocker.

    A publication that was deleted meanwhile is left out.
    """
    keys = [row.pk for row in rows]
    publications = Publication.objects.of(place.workspace).select_related(
        "item__raw_item", "outlet", "workspace", "queue"
    )
    publications_by_id = {row.pk: row for row in publications.filter(pk__in=keys)} if keys else {}
    return [
        _late_row(place, publications_by_id[key], now, is_explained=index < MAX_EXPLAINED)
        for index, key in enumerate(keys)
        if key in publications_by_id
    ]


def _late_row(place: Place, row: Publication, now: datetime, *, is_explained: bool) -> FailureRow:
    """Return the row of a late publication; with `is_explained`, its first blocker is found."""
    blocker = next(explanation.blockers_of(row, now), None) if is_explained else None
    is_scheduled = row.status == PublicationStatus.SCHEDULED
    return FailureRow(
        title=_title(row.item),
        at=row.due_at,
        tone="warn" if is_scheduled else "info",
        label=_("Late") if is_scheduled else _("Publishing"),
        why=_why_late(row, blocker, is_explained=is_explained),
        link=place.url_of("item_page", gen=row.item_id),
        about=row.outlet.name,
        until=blocker.until if blocker is not None else None,
        token=version_token("pub", row.pk, row.version) if is_scheduled else "",
        acts=_SCHEDULE_ACTS if is_scheduled else frozenset(),
        cancel_label=_("Unschedule"),
        move=place.url_of("calendar_move", pub=row.pk) if is_scheduled else "",
        action=_action_when_late(place, row, blocker),
    )


def _why_late(row: Publication, blocker: Blocker | None, *, is_explained: bool) -> str:
    if blocker is not None:
        return blocker.message
    if is_explained:
        return _("Publishing shortly")
    return message_of(row.waits_for or row.error, _("Open it to see what blocks it."))


def _action_when_late(place: Place, row: Publication, blocker: Blocker | None) -> NextAction | None:
    """Return the link to the page that removes the blocker, or `None` if there is none or this page removes it."""
    if blocker is None:
        return None
    if blocker.code in {"needs_reconnect", "outlet_disabled"}:
        return NextAction(_("View outlet"), place.url_of("outlet_page", out=row.outlet_id), is_post=False)
    action = next_actions.next_action_for(place, row.item, blocker)
    if action is None or action.address == place.url_of("item_publish", gen=row.item_id):
        # This page has its own form to reschedule the publication.
        return None
    return (
        NextAction(action.label, place.url_of("item_page", gen=row.item_id), is_post=False)
        if action.is_post
        else action
    )


def build_by_hand_rows(place: Place, rows: Sequence[Publication], now: datetime) -> list[FailureRow]:
    """Build the rows of publications that a person has to post."""
    del now
    return [
        FailureRow(
            title=_title(row.item),
            at=row.due_at,
            tone=labels.POST_MANUALLY.tone,
            label=str(labels.POST_MANUALLY.label),
            why=_("Post it manually, then mark it posted."),
            link=place.url_of("item_page", gen=row.item_id),
            about=row.outlet.name,
            action=NextAction(_("Post manually"), place.url_of("package", pub=row.pk), is_post=False)
            if place.may_edit
            else None,
        )
        for row in rows
    ]


def build_failed_rows(place: Place, rows: Sequence[Publication], now: datetime) -> list[FailureRow]:
    """Build the rows of publications that failed, each with whose task it is to solve the problem."""
    del now
    failed_rows = []
    for row in rows:
        error_class = str((row.error or {}).get("class", ""))
        whose = labels.FAILURE_CLASSES.get(error_class, labels.NO_BADGE)
        failed_rows.append(
            replace(
                _unresolved_row(place, row),
                whose=labels.NO_BADGE if error_class == "retry" else whose,
                acts=RETRY_ACTS | _SCHEDULE_ACTS,
            )
        )
    return failed_rows


def build_unknown_rows(place: Place, rows: Sequence[Publication], now: datetime) -> list[FailureRow]:
    """Build the rows of publications whose outcome is unknown, each with the time of its next lookup."""
    del now
    return [replace(_unresolved_row(place, row), until=row.next_attempt_at) for row in rows]


def _unresolved_row(place: Place, row: Publication) -> FailureRow:
    """Return what the rows of failed publications and of unknown outcomes have in common."""
    tone, _icon, label = labels.PUBLICATIONS[row.status]
    error: Mapping[str, Any] = row.error or {}
    return FailureRow(
        title=_title(row.item),
        at=row.updated_at,
        tone=tone,
        label=str(label),
        why=message_of(error, _("No reason recorded.")),
        link=place.url_of("item_page", gen=row.item_id),
        about=row.outlet.name,
        advice=str(error.get("action") or ""),
        token=version_token("pub", row.pk, row.version),
        acts=RETRY_ACTS,
        cancel_label=_("Dismiss"),
        action=_action_when_failed(place, row, str(error.get("class", ""))),
    )


def _action_when_failed(place: Place, row: Publication, error_class: str) -> NextAction | None:
    """Return the link to what must change before a retry can succeed, or `None` if a retry alone may help."""
    if error_class == "account":
        return NextAction(_("View outlet"), place.url_of("outlet_page", out=row.outlet_id), is_post=False)
    if error_class == "content" and place.may_edit and row.item.status in EDITABLE_ITEMS:
        return NextAction(_("Edit"), place.url_of("item_edit", gen=row.item_id), is_post=False)
    return None
