"""Recurrences as people keep them: which items may come back, how often, stopped and resumed."""

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
from config.core.datetimes import as_z
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
"""When an item comes back where nobody said."""
KEPT: Final = timedelta(days=90)
"""For so long one that has stopped is listed with its log."""
FORGOTTEN_AT_ONCE: Final = 50
LOOK: Final = timedelta(days=1)
"""How often it looks whether its source is still there, so that it doesn't promise what can't come."""


@dataclass(frozen=True)
class Ended:
    """Why it can't come back any more, in a code and in words that say what to do."""

    code: str
    message: str


def why_ended(item: GeneratedItem) -> Ended | None:
    """None while it can come back; the item as it is now. The nearest cause first."""
    if item.deleted_at is not None:
        return Ended("item_erased", _("The item was deleted. Repeat another one instead."))
    if item.status == GeneratedItemStatus.REJECTED:
        return _rejected(item)
    raw = item.raw_item
    if raw is None or raw.deleted_at is not None or not RawBody.everywhere.filter(raw_item=raw).exists():
        return Ended("content_erased", _("Its source text was deleted, so nothing can be made from it."))
    if raw.withdrawn_at is not None:
        message = _("Its source withdrew the content. Repeat it again once the source lists it.")
        return Ended("source_withdrawn", message)
    return _of_source(raw)


def _rejected(item: GeneratedItem) -> Ended:
    if (item.rejection or {}).get("code") == "superseded":
        message = _("Another variant was chosen. Repeat that one instead.")
        return Ended("item_superseded", message)
    return Ended("item_rejected", _("The item was rejected. Restore it, then repeat it again."))


def _of_source(raw: RawItem) -> Ended | None:
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
    """Whether its source rests: what it gives is not wanted now."""
    raw = item.raw_item
    return raw is not None and Source.everywhere.filter(pk=raw.source_id, status=SourceStatus.PAUSED).exists()


def begin(
    item: GeneratedItem, *, every_days: int, time: str = TIME, by: str = "", now: datetime
) -> Recurrence:
    """Let it come back; one that has stopped begins anew.

    Raises `Invalid`, and `Conflict` where it can't come back, does so already, or the workspace has as many as it may.
    """
    _refuse_odd({"every_days": every_days, "time": time})
    with transaction.atomic():
        row: Recurrence | None = Recurrence.everywhere.select_for_update().filter(item=item).first()
        if row is not None and row.status == RecurrenceStatus.ACTIVE:
            raise _already(row)
        workspace = _refuse_one_more(item.workspace_id)
        if row is None:
            there = Recurrence.everywhere.filter(item=item).first()
            if there is not None:
                raise _already(there)
        fresh = _read(item.pk)
        _refuse_unless_evergreen(fresh)
        values: dict[str, Any] = {
            "every_days": every_days,
            "time": time,
            "anchor": _anchor(fresh, workspace, now),
            "reason": None,
        }
        if row is None:
            row = Recurrence(workspace=workspace, test=item.test, item=fresh, created_at=now, updated_at=now)
            _lay(row, values)
            row.due_at = next_moment(row, workspace.timezone, after=now)
            row.wake_at = next_check_at(row.due_at, now)
            row.save(force_insert=True)
        else:
            _lay(row, values)
            states.move(row, "active", **values, **_timed(row, workspace, now), updated_at=now)
            row.refresh_from_db()
        _note("recurrence.begun", row, by, {"every_days": every_days, "time": time})
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
    """`every_days`, `time`, and `status`, `active` or `stopped`; only what is given is changed.

    Raises `Invalid`, `states.Overtaken` where somebody was faster than `expected_version`, and `Conflict` where it is
    to go on and can't.
    """
    _refuse_odd(values)
    with transaction.atomic():
        rows = Recurrence.everywhere.select_for_update(of=("self",)).select_related("workspace")
        row: Recurrence = rows.get(pk=recurrence.pk)
        states.refuse_other_version(row.version, expected_version)
        status = values.get("status", row.status)
        named = {name: values[name] for name in ("every_days", "time") if name in values}
        clean = {name: value for name, value in named.items() if value != getattr(row, name)}
        if status == row.status == RecurrenceStatus.STOPPED and clean:
            raise Conflict.because(
                code="stopped", message=_("It has stopped. Resume it to change its schedule.")
            )
        if status == row.status and not clean:
            # What is due stays due.
            return row
        if status == "stopped":
            stop_recurrence(row, "by_person", _("Stopped by a person."), by=by, now=now, **clean)
        else:
            if row.status == RecurrenceStatus.STOPPED:
                _refuse_one_more(row.workspace_id)
                _refuse_unless_evergreen(_read(row.item_id))
            _lay(row, clean)
            clean |= {"reason": None, **_timed(row, row.workspace, now)}
            states.write_as(row, "active", **clean, updated_at=now)
            dispatcher.wake()
        _note("recurrence.changed", row, by, {"changed": sorted(values)})
        row.refresh_from_db()
    return row


def stop_recurrence(
    row: Recurrence, code: str, message: str, *, by: str = "", now: datetime, **changes: Any
) -> None:
    """With its reason; whoever is at work on it has no say any more. In the caller's transaction."""
    reason = {"code": code, "message": message, "by": by, "at": as_z(now)}
    rest = {"due_at": None, "wake_at": None, **work_queue.overtake()}
    states.move(row, "stopped", reason=reason, **rest, **changes, updated_at=now)


def forget(now: datetime) -> int:
    """Some of those that stopped long ago, with their logs; what they made stays."""
    stopped = Recurrence.everywhere.filter(status=RecurrenceStatus.STOPPED, updated_at__lt=now - KEPT)
    some = list(stopped.order_by("updated_at").values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    if some:
        stopped.filter(pk__in=some).delete()
    return len(some)


def next_moment(row: Recurrence, zone: str, *, after: datetime) -> datetime:
    """The first time after it, whole days from the anchor on the clocks of the zone.

    A time that the clocks skip moves on by the gap, and of one that comes twice it is the first. Raises `UnknownZone`.
    """
    passed = (after.astimezone(zone_named(zone)).date() - row.anchor).days
    rounds = max(1, passed // row.every_days)
    days = (row.anchor + timedelta(days=number * row.every_days) for number in count(rounds))
    slots = slots_on(days, [(None, time.fromisoformat(row.time))], zone)
    return next(slot.moment for slot in slots if slot.moment > after)


def next_check_at(due_at: datetime, now: datetime) -> datetime:
    return min(due_at, now + LOOK)


def _timed(row: Recurrence, workspace: Workspace, now: datetime) -> dict[str, Any]:
    following = next_moment(row, workspace.timezone, after=now)
    return {"due_at": following, "wake_at": next_check_at(following, now), **work_queue.overtake()}


def _lay(row: Recurrence, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)


def _anchor(item: GeneratedItem, workspace: Workspace, now: datetime) -> date:
    moment: datetime = item.published_at or item.publish_at or now
    return moment.astimezone(zone_named(workspace.timezone)).date()


def _read(key: UUID) -> GeneratedItem:
    item: GeneratedItem = GeneratedItem.everywhere.select_related("raw_item").get(pk=key)
    return item


def _refuse_odd(values: Mapping[str, Any]) -> None:
    if "every_days" in values and not 1 <= values["every_days"] <= limits.RECURRING_DAYS_MOST:
        message = _("Give whole days, 1 to %(most)d.") % {"most": limits.RECURRING_DAYS_MOST}
        raise Invalid.one(field="every_days", code="invalid", message=message)
    if "time" in values and not re.fullmatch(CLOCK_PATTERN, values["time"]):
        message = _("Give hours and minutes as 09:00.")
        raise Invalid.one(field="time", code="invalid", message=message)


def _refuse_unless_evergreen(item: GeneratedItem) -> None:
    if item.raw_item_id is None and (item.topic_id is not None or item.raw_items):
        message = _(
            "It wasn't made of one entry. A brand lane comes back to its topics by itself, and a digest is made again "
            "by a series."
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
    # Two at once must not both be the last one.
    workspace: Workspace = Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace_id)
    active = Recurrence.objects.of(workspace_id).filter(status=RecurrenceStatus.ACTIVE)
    if active.count() >= limits.RECURRENCES_MOST:
        message = _("A workspace can repeat %(most)d items at most. Stop another one first.") % {
            "most": limits.RECURRENCES_MOST
        }
        raise Conflict.because(code="too_many", message=message)
    return workspace


def _already(row: Recurrence) -> Conflict:
    message = _("It repeats already. Change %(id)s.") % {"id": ids.encode("rec", row.pk)}
    return Conflict.because(code="already_recurring", message=message, field="generated_item")


def _note(action: str, row: Recurrence, by: str, details: Mapping[str, Any]) -> None:
    item = ids.encode("gen", row.item_id)
    audit.note(
        action,
        workspace=row.workspace,
        actor=by,
        subject=ids.encode("rec", row.pk),
        details={"generated_item": item, **details},
    )
