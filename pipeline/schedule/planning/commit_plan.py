"""Commits a week's plan: schedules what still matches the proposal, and refuses the rest with a reason."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from accounts import audit
from config.core.datetimes import format_utc
from config.core.errors import AppError, Conflict, Detail, Invalid
from config.core.ids import encode
from pipeline import limits, publish
from pipeline.models import GeneratedItem, GeneratedItemStatus, Outlet, WeekPlan
from pipeline.schedule.planning import fill_slots
from pipeline.schedule.planning.outlet_slots import OutletTimeline, timelines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import Publication


@dataclass(frozen=True)
class PlanEntry:
    """One line of a proposal as it was shown: the item's version, and the slot's moment."""

    item_id: UUID
    version: int
    outlet_id: UUID
    at: datetime


@dataclass(frozen=True)
class Refusal:
    """An entry that isn't scheduled, and what has changed since it was shown."""

    entry: PlanEntry
    code: str
    message: str


@dataclass(frozen=True)
class PlanCommit:
    """The result of a commit: what was scheduled, and the entries that weren't."""

    plan: WeekPlan
    scheduled: tuple[Publication, ...]
    refused: tuple[Refusal, ...]


_MESSAGES: Final = {
    "not_found": "This item no longer exists.",
    "version_conflict": "It changed in the meantime. Plan again.",
    "outlet_deleted": "This outlet no longer exists.",
    "no_such_slot": "Its outlet's queue no longer has a slot at that time.",
    "duplicate": "The plan already has this item for this outlet.",
    "past": "That time is past.",
    "closed": "The outlet is paused, or its queue has no slots at that time.",
    "taken": "Another post has taken that slot.",
    "gap": "It would be closer to another post than the outlet's gap allows.",
    "daily_cap": "It would be one more than the outlet takes in 24 hours.",
}


def commit(
    workspace: Workspace,
    entries: Sequence[PlanEntry],
    *,
    test: bool,
    by: str,
    now: datetime,
    is_proposed: bool = False,
) -> PlanCommit:
    """Schedule the entries that still match what was shown, and refuse each other one by itself.

    All of it is one transaction.

    Raises `Invalid` for too many entries or none. Raises `Conflict` if none can be scheduled, with a reason
    for each; the details name the entries' places unless they were proposed just now, for then the caller
    didn't send them.
    """
    if not 0 < len(entries) <= limits.PLAN_ENTRIES:
        message = f"Give 1 to {limits.PLAN_ENTRIES} entries of a plan."
        raise Invalid.one("entries", "invalid", message)
    refused: list[Refusal] = []
    scheduled: list[Publication] = []
    undo_entries: list[dict[str, Any]] = []
    with transaction.atomic():
        items = _lock_items(workspace, entries, test=test)
        timelines = _lock_timelines(workspace, entries, test=test, now=now)
        posts = {key: list(timeline.planner_outlet.posts) for key, timeline in timelines.items()}
        for item_id, entries_of_item in _group_by_item(entries).items():
            fitting: list[PlanEntry] = []
            for entry in entries_of_item:
                code = _why_refused(entry, items.get(item_id), timelines.get(entry.outlet_id), posts, now)
                # Checked last, as it replaces whatever else is wrong with the entry.
                if any(entry.outlet_id == other.outlet_id for other in fitting):
                    code = ("duplicate", _MESSAGES["duplicate"])
                if code is None:
                    fitting.append(entry)
                else:
                    refused.append(Refusal(entry, *code))
            if not fitting:
                continue
            try:
                publications = _schedule_item(items[item_id], fitting, timelines, by=by, now=now)
            except AppError as error:
                refused += [Refusal(entry, error.code, str(error)) for entry in fitting]
                continue
            scheduled += publications
            undo_entries += _undo_entries(items[item_id], publications, now)
            for publication in publications:
                _add_post(posts[publication.outlet_id], publication)
        if not undo_entries:
            # No entry still matches: there is no plan, and each detail says why.
            raise Conflict(*_refusal_details(entries, refused, is_named=not is_proposed))
        plan = WeekPlan.everywhere.create(
            workspace=workspace, test=test, entries=undo_entries, made_by=by, created_at=now
        )
        _audit("plan.committed", plan, by, len(undo_entries))
    return PlanCommit(plan, tuple(scheduled), tuple(refused))


def _refusal_details(
    entries: Sequence[PlanEntry], refused: Iterable[Refusal], *, is_named: bool
) -> list[Detail]:
    """Return a detail for each refused entry, naming its place in the request if `is_named`."""
    places = defaultdict(list)
    for index, entry in enumerate(entries):
        places[entry].append(index)
    indexed = [(places[refusal.entry].pop(0), refusal) for refusal in refused]
    return [
        Detail(f"entries[{index}]" if is_named else None, refusal.code, refusal.message)
        for index, refusal in indexed
    ]


def _group_by_item(entries: Iterable[PlanEntry]) -> dict[UUID, list[PlanEntry]]:
    entries_by_item: defaultdict[UUID, list[PlanEntry]] = defaultdict(list)
    for entry in entries:
        entries_by_item[entry.item_id].append(entry)
    return dict(entries_by_item)


def _lock_items(
    workspace: Workspace, entries: Sequence[PlanEntry], *, test: bool
) -> dict[UUID, GeneratedItem]:
    """Lock and return all items with their variants, before any outlet, as scheduling one item does."""
    items = GeneratedItem.objects.of(workspace).filter(
        pk__in={entry.item_id for entry in entries}, test=test, deleted_at=None
    )
    publish.lock_groups(list(items.values_list("variant_group", flat=True)))
    return {row.pk: row for row in items.select_related("workspace")}


def _lock_timelines(
    workspace: Workspace, entries: Sequence[PlanEntry], *, test: bool, now: datetime
) -> dict[UUID, OutletTimeline]:
    """Lock the outlets and return their slots and rules, which nobody changes before the plan is written."""
    rows = Outlet.objects.of(workspace).filter(pk__in={entry.outlet_id for entry in entries}, deleted_at=None)
    outlets = [row for row in rows.defer("credentials").order_by("id") if row.is_simulated or not test]
    publish.lock_outlets(outlets)
    moments = [entry.at for entry in entries]
    last = min(max(moments), now + limits.PUBLISH_AHEAD) + timedelta(seconds=1)
    timelines = timelines_of(workspace, outlets, starts_at=max(min(moments), now), ends_at=last, now=now)
    return {timeline.outlet.pk: timeline for timeline in timelines}


def _why_refused(
    entry: PlanEntry,
    item: GeneratedItem | None,
    timeline: OutletTimeline | None,
    posts: Mapping[UUID, Sequence[fill_slots.PlannerPost]],
    now: datetime,
) -> tuple[str, str] | None:
    """Return code and message if the entry no longer matches, else None."""
    if item is None:
        return "not_found", _MESSAGES["not_found"]
    if item.version != entry.version:
        return "version_conflict", _MESSAGES["version_conflict"]
    if item.status != GeneratedItemStatus.READY or item.held:
        # The only message with a variable part.
        return "not_ready", f"It is {'held' if item.held else item.status} now."
    if timeline is None:
        return "outlet_deleted", _MESSAGES["outlet_deleted"]
    if entry.at < now:
        return "past", _MESSAGES["past"]
    code = "" if entry.at in timeline.slots else "no_such_slot"
    code = code or fill_slots.why_not(timeline.planner_outlet, entry.at, posts[entry.outlet_id])
    return (code, _MESSAGES[code]) if code else None


def _schedule_item(
    item: GeneratedItem,
    entries: Sequence[PlanEntry],
    timelines: Mapping[UUID, OutletTimeline],
    *,
    by: str,
    now: datetime,
) -> list[Publication]:
    """Schedule one item at the slots of its entries."""
    timelines_by_outlet = {entry.outlet_id: timelines[entry.outlet_id] for entry in entries}
    slots = {
        encode("out", entry.outlet_id): (
            timelines_by_outlet[entry.outlet_id].slots[entry.at],
            timelines_by_outlet[entry.outlet_id].queue,
        )
        for entry in entries
    }
    wish = publish.PublishWish(outlets=list(slots), slots=slots)
    _, publications = publish.request(item, wish, by=by, now=now, expected_version=entries[0].version)
    return publications


def _add_post(posts: list[fill_slots.PlannerPost], publication: Publication) -> None:
    """Add the new publication to its outlet's posts, so that the rules count it."""
    assert publication.due_at is not None  # noqa: S101  it was just scheduled
    posts.append(fill_slots.PlannerPost(publication.due_at, str(publication.pk)))
    posts.sort()


def _undo_entries(
    item: GeneratedItem, publications: Sequence[Publication], now: datetime
) -> list[dict[str, Any]]:
    """Return what an undo needs to know of each new publication: `WeekPlan.entries`."""
    group = GeneratedItem.everywhere.filter(
        variant_group=item.variant_group, status=GeneratedItemStatus.REJECTED, updated_at=now
    )
    rejected_siblings = [encode("gen", key) for key in group.values_list("pk", flat=True)]
    return [
        {
            "item": encode("gen", item.pk),
            "outlet": encode("out", row.outlet_id),
            "publication": encode("pub", row.pk),
            "at": format_utc(row.due_at),
            "revision": row.revision,
            "set_aside": rejected_siblings,
        }
        for row in publications
        if row.due_at is not None
    ]


def _audit(action: str, plan: WeekPlan, by: str, count: int) -> None:
    audit.note(
        action,
        workspace=plan.workspace,
        actor=by,
        subject=encode("pln", plan.pk),
        details={"publications": count},
    )
