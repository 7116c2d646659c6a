"""Starts, changes, stops and resumes recurrences, and decides which items may recur."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Workspace
from config.core import dispatcher, ids, states, work_queue
from config.core.datetimes import format_utc
from config.core.errors import Conflict, Invalid
from pipeline import limits
from pipeline.models import (
    GeneratedItem,
    GeneratedItemStatus,
    RawBody,
    Recurrence,
    RecurrenceStatus,
    RecurrenceTurn,
    Source,
    SourceStatus,
)
from pipeline.states import PUBLISHABLE_ITEMS
from pipeline.text.local_time import CLOCK_PATTERN, slots_on, zone_named

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from uuid import UUID

    from pipeline.models import RawItem

TIME: Final = "09:00"
"""The default local time."""
KEPT: Final = timedelta(days=90)
"""How long a stopped recurrence is kept with its log."""
FORGOTTEN_AT_ONCE: Final = 50
LOOK: Final = timedelta(days=1)
"""How often it checks whether its source still exists, so that no time is shown that can't happen."""


@dataclass(frozen=True)
class Ended:
    """Why an item can't recur any more: a code, and a message that says what to do."""

    code: str
    message: str


def why_ended(item: GeneratedItem) -> Ended | None:
    """Return why the item, as it is now, can't recur any more, nearest cause first; None while it can."""
    if item.deleted_at is not None:
        return Ended("item_erased", _("The item was deleted. Repeat another one instead."))
    if item.status == GeneratedItemStatus.REJECTED:
        return _why_rejected(item)
    raw = item.raw_item
    if raw is None or raw.deleted_at is not None or not RawBody.everywhere.filter(raw_item=raw).exists():
        return Ended("content_erased", _("Its source text was deleted, so nothing can be made from it."))
    if raw.withdrawn_at is not None:
        message = _("Its source withdrew the content. Repeat it again once the source lists it.")
        return Ended("source_withdrawn", message)
    return _why_source_ended(raw)


def _why_rejected(item: GeneratedItem) -> Ended:
    if (item.rejection or {}).get("code") == "superseded":
        message = _("Another variant was chosen. Repeat that one instead.")
        return Ended("item_superseded", message)
    return Ended("item_rejected", _("The item was rejected. Restore it, then repeat it again."))


def _why_source_ended(raw: RawItem) -> Ended | None:
    source = Source.everywhere.get(pk=raw.source_id)
    if source.deleted_at is not None:
        message = _("Its source %(name)s was deleted. Restore the source, then repeat the item again.")
        return Ended("source_deleted", message % {"name": source.name})
    if source.status == SourceStatus.GONE:
        message = _(
            "Its source %(name)s is gone. Switch the source on again or correct its address, then repeat the item "
            "again."
        )
        return Ended("source_gone", message % {"name": source.name})
    return None


def is_source_paused(item: GeneratedItem) -> bool:
    """Return whether the item's source is paused."""
    raw = item.raw_item
    return raw is not None and Source.everywhere.filter(pk=raw.source_id, status=SourceStatus.PAUSED).exists()


def begin(
    item: GeneratedItem, *, every_days: int, time: str = TIME, by: str = "", now: datetime
) -> Recurrence:
    """Start a recurrence; a stopped one starts again.

    Raises `Invalid`, and `Conflict` if the item can't recur, does so already, or the workspace has the most
    it may have.
    """
    _validate({"every_days": every_days, "time": time})
    with transaction.atomic():
        row: Recurrence | None = Recurrence.everywhere.select_for_update().filter(item=item).first()
        if row is not None and row.status == RecurrenceStatus.ACTIVE:
            raise _already_recurring_error(row)
        workspace = _refuse_one_more(item.workspace_id)
        if row is None:
            concurrent = Recurrence.everywhere.filter(item=item).first()
            if concurrent is not None:
                raise _already_recurring_error(concurrent)
        current_item = _load_item(item.pk)
        _refuse_unless_evergreen(current_item)
        values: dict[str, Any] = {
            "every_days": every_days,
            "time": time,
            "anchor": _anchor(current_item, workspace, now),
            "reason": None,
        }
        if row is None:
            row = Recurrence(
                workspace=workspace, test=item.test, item=current_item, created_at=now, updated_at=now
            )
            _set_values(row, values)
            row.due_at = next_moment(row, workspace.timezone, after=now)
            row.wake_at = next_check_at(row.due_at, now)
            row.save(force_insert=True)
        else:
            _set_values(row, values)
            states.move(row, "active", **values, **_next_times(row, workspace, now), updated_at=now)
            row.refresh_from_db()
        _audit("recurrence.begun", row, by, {"every_days": every_days, "time": time})
        dispatcher.wake()
    return row


def change(
    recurrence: Recurrence,
    values: Mapping[str, Any],
    *,
    by: str = "",
    now: datetime,
    expected_version: int | None = None,
) -> Recurrence:
    """Change `every_days`, `time` or `status` (`active` or `stopped`), whichever is given.

    Raises `Invalid`, `states.Overtaken` if it has changed since `expected_version`, and `Conflict` if it is
    to be resumed and can't.
    """
    _validate(values)
    with transaction.atomic():
        rows = Recurrence.everywhere.select_for_update(of=("self",)).select_related("workspace")
        row: Recurrence = rows.get(pk=recurrence.pk)
        states.refuse_other_version(row.version, expected_version)
        status = values.get("status", row.status)
        given_schedule = {name: values[name] for name in ("every_days", "time") if name in values}
        changed_values = {
            name: value for name, value in given_schedule.items() if value != getattr(row, name)
        }
        if status == row.status == RecurrenceStatus.STOPPED and changed_values:
            raise Conflict.because(
                code="stopped", message=_("It has stopped. Resume it to change its schedule.")
            )
        if status == row.status and not changed_values:
            # Nothing changes, so that what is due stays due.
            return row
        if status == "stopped":
            stop_recurrence(row, "by_person", _("Stopped by a person."), by=by, now=now, **changed_values)
        else:
            if row.status == RecurrenceStatus.STOPPED:
                _refuse_one_more(row.workspace_id)
                _refuse_unless_evergreen(_load_item(row.item_id))
            _set_values(row, changed_values)
            changed_values |= {"reason": None, **_next_times(row, row.workspace, now)}
            states.write_as(row, "active", **changed_values, updated_at=now)
            dispatcher.wake()
        _audit("recurrence.changed", row, by, {"changed": sorted(values)})
        row.refresh_from_db()
    return row


def stop_recurrence(
    row: Recurrence, code: str, message: str, *, by: str = "", now: datetime, **changes: Any
) -> None:
    """Stop it with a reason, in the caller's transaction; a task that works on it loses its lease."""
    reason = {"code": code, "message": message, "by": by, "at": format_utc(now)}
    unscheduled = {"due_at": None, "wake_at": None, **work_queue.overtake()}
    states.move(row, "stopped", reason=reason, **unscheduled, **changes, updated_at=now)


def forget(now: datetime) -> int:
    """Delete a batch of long stopped recurrences with their logs; what they made stays. Return how many."""
    stopped = Recurrence.everywhere.filter(status=RecurrenceStatus.STOPPED, updated_at__lt=now - KEPT)
    batch = list(stopped.order_by("updated_at").values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    if batch:
        stopped.filter(pk__in=batch).delete()
    return len(batch)


def next_moment(row: Recurrence, zone: str, *, after: datetime) -> datetime:
    """Return the first time after that moment, whole days from the anchor in the zone.

    A time that the clocks skip moves on by the gap; of one that occurs twice it is the first. Raises
    `UnknownZone`.
    """
    passed = (after.astimezone(zone_named(zone)).date() - row.anchor).days
    rounds = max(1, passed // row.every_days)
    days = (row.anchor + timedelta(days=number * row.every_days) for number in count(rounds))
    slots = slots_on(days, [(None, time.fromisoformat(row.time))], zone)
    return next(slot.moment for slot in slots if slot.moment > after)


def next_check_at(due_at: datetime, now: datetime) -> datetime:
    """Return when the recurrence is looked at next: at its time, or earlier to check its source."""
    return min(due_at, now + LOOK)


def _next_times(row: Recurrence, workspace: Workspace, now: datetime) -> dict[str, Any]:
    """Return the columns of its next time."""
    following = next_moment(row, workspace.timezone, after=now)
    return {"due_at": following, "wake_at": next_check_at(following, now), **work_queue.overtake()}


def _set_values(row: Recurrence, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)


def _anchor(item: GeneratedItem, workspace: Workspace, now: datetime) -> date:
    """Return the local day from which days are counted."""
    moment: datetime = item.published_at or item.publish_at or now
    return moment.astimezone(zone_named(workspace.timezone)).date()


def _load_item(key: UUID) -> GeneratedItem:
    item: GeneratedItem = GeneratedItem.everywhere.select_related("raw_item").get(pk=key)
    return item


def _validate(values: Mapping[str, Any]) -> None:
    """Raise `Invalid` for days or a time out of range."""
    if "every_days" in values and not 1 <= values["every_days"] <= limits.RECURRING_DAYS_MOST:
        message = _("Give whole days, 1 to %(most)d.") % {"most": limits.RECURRING_DAYS_MOST}
        raise Invalid.one(field="every_days", code="invalid", message=message)
    if "time" in values and not re.fullmatch(CLOCK_PATTERN, values["time"]):
        message = _("Give hours and minutes as 09:00.")
        raise Invalid.one(field="time", code="invalid", message=message)


def _refuse_unless_evergreen(item: GeneratedItem) -> None:
    """Raise `Conflict` unless the item can recur."""
    if item.raw_item_id is None and (item.topic_id is not None or item.raw_items):
        message = _(
            "It wasn't made from one entry. A brand lane repeats its topics on its own, and a series "
            "makes its next digest."
        )
        raise Conflict.because(code="not_of_one_entry", message=message, field="generated_item")
    ended = why_ended(item)
    if ended is not None:
        raise Conflict.because(code=ended.code, message=ended.message, field="generated_item")
    if item.status not in PUBLISHABLE_ITEMS:
        message = _("It is %(status)s; wait until it is made.") % {"status": item.status}
        raise Conflict.because(code="not_made_yet", message=message, field="generated_item")
    turn = RecurrenceTurn.everywhere.filter(item=item).select_related("recurrence").first()
    if turn is not None:
        message = _("This item is a repeat. Change %(item)s instead.") % {
            "item": ids.encode("gen", turn.recurrence.item_id)
        }
        raise Conflict.because(code="comes_back_already", message=message, field="generated_item")


def _refuse_one_more(workspace_id: UUID) -> Workspace:
    """Lock the workspace and raise `Conflict` if it has the most recurrences it may have."""
    # The lock keeps two requests from both taking the last place.
    workspace: Workspace = Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace_id)
    active = Recurrence.objects.of(workspace_id).filter(status=RecurrenceStatus.ACTIVE)
    if active.count() >= limits.RECURRENCES_MOST:
        message = _("A workspace can repeat %(most)d items at most. Stop another one first.") % {
            "most": limits.RECURRENCES_MOST
        }
        raise Conflict.because(code="too_many", message=message)
    return workspace


def _already_recurring_error(row: Recurrence) -> Conflict:
    message = _("It repeats already. Change %(id)s.") % {"id": ids.encode("rec", row.pk)}
    return Conflict.because(code="already_recurring", message=message, field="generated_item")


def _audit(action: str, row: Recurrence, by: str, details: Mapping[str, Any]) -> None:
    item = ids.encode("gen", row.item_id)
    audit.note(
        action,
        workspace=row.workspace,
        actor=by,
        subject=ids.encode("rec", row.pk),
        details={"generated_item": item, **details},
    )
