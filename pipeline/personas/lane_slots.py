"""Manages a lane's slots: the open one, the forecast of the next ones, and the log of past ones."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from config.core import dispatcher, states, work_queue
from config.core.errors import Conflict
from config.core.middleware import request_id
from pipeline import limits
from pipeline.generate.topics import select
from pipeline.generate.topics.lane_eligibility import engines_of, why_unavailable
from pipeline.models import BrandPick, BrandSlot, BrandSlotStatus, Source, WorkspaceDefaults
from pipeline.sources.brand import next_slot, zone_of
from pipeline.states import OPEN_SLOTS, POLLED_SOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace

KIND: Final = "brand"
"""The kind of source that is a brand lane."""
SLOTS_SHOWN: Final = 50
"""The most logged slots that one call returns by default."""
NEXT_SHOWN: Final = 5
"""The number of next slots in a forecast."""
_WEEK: Final = timedelta(days=7)


def align_open_slot(source: Source, *, now: datetime) -> None:
    """Make the open slot agree with the source's status and cadence, in the transaction that changed them.

    A source of another kind than `brand` has no slot, and nothing is done. A changed cadence moves a waiting slot,
    but not one that waits for credits. A lane that is switched off or deleted has no slot until it is active again.
    """
    if source.type != KIND:
        return
    slot = open_slot(source)
    if source.status not in POLLED_SOURCES or source.deleted_at is not None:
        if slot is not None:
            _end_by_person(
                slot, "skipped", _slot_note("switched_off", _("The source was switched off.")), now
            )
        show_next_slot(source, None)
        return
    due_at = next_slot(
        source.config, after=now, previous=last_worked(source), default_zone=source.workspace.timezone
    )
    if slot is None:
        create_slot(source, due_at, now=now)
    elif slot.status == BrandSlotStatus.WAITING:
        BrandSlot.everywhere.filter(pk=slot.pk).update(due_at=due_at, wake_at=due_at, **work_queue.overtake())
        show_next_slot(source, due_at)
    dispatcher.wake()


def bring_forward(source: Source, *, now: datetime, expected_version: int | None = None) -> Source:
    """Make the open slot due now, even if it waits for credits.

    Raises `Conflict` if there is none, and `states.Overtaken` if the source isn't the expected version.
    """
    with transaction.atomic():
        row = Source.everywhere.select_for_update().get(pk=source.pk)
        states.refuse_other_version(row.version, expected_version)
        woken = BrandSlot.everywhere.filter(source=source, status__in=OPEN_SLOTS).update(
            due_at=now, wake_at=now, request_id=request_id(), **work_queue.overtake()
        )
        source.refresh_from_db()
        if not woken:
            message = _("The source is %(status)s; set its status to active first.") % {
                "status": source.status
            }
            raise Conflict.because(code="not_active", message=message)
        show_next_slot(source, now)
        dispatcher.wake()
    return source


def open_slot(source: Source) -> BrandSlot | None:
    """Return the lane's open slot, or `None` if it has none."""
    slot: BrandSlot | None = (
        BrandSlot.objects.of(source.workspace_id).filter(source=source, status__in=OPEN_SLOTS).first()
    )
    return slot


def end_slot(
    slot: BrandSlot, status: str, source: Source, workspace: Workspace, *, now: datetime, **changes: Any
) -> None:
    """End a claimed slot and create the next one, in the caller's transaction.

    Slots missed meanwhile are skipped. A lane that is switched off or deleted gets no next slot.
    """
    states.move(slot, status, under_lease=True, wake_at=None, attempts=0, ended_at=now, **changes)
    if source.status not in POLLED_SOURCES or source.deleted_at is not None:
        show_next_slot(source, None)
        return
    next_due_at = next_slot(source.config, after=now, previous=slot.due_at, default_zone=workspace.timezone)
    create_slot(source, next_due_at, now=now)


def create_slot(source: Source, due_at: datetime, *, now: datetime) -> None:
    """Create a slot and show its time on the source."""
    BrandSlot.everywhere.create(
        workspace_id=source.workspace_id,
        test=source.test,
        source=source,
        due_at=due_at,
        wake_at=due_at,
        request_id=request_id(),
        created_at=now,
    )
    show_next_slot(source, due_at)


def show_next_slot(source: Source, due_at: datetime | None) -> None:
    """Store the time of the next slot on the source, whose `wake_at` stays empty so that it isn't polled."""
    Source.everywhere.filter(pk=source.pk).update(due_at=due_at)
    source.due_at = due_at


def last_worked(source: Source) -> datetime | None:
    """Return the due time of the newest slot that was run, on which an hourly cadence is based, or `None`."""
    worked = BrandSlot.objects.of(source.workspace_id).filter(
        source=source, status__in=[BrandSlotStatus.PICKED, BrandSlotStatus.EMPTY]
    )
    due_at: datetime | None = worked.order_by("-id").values_list("due_at", flat=True).first()
    return due_at


def _end_by_person(slot: BrandSlot, status: str, note: Mapping[str, str], now: datetime) -> None:
    """End a slot because of a person's change; a task that holds its lease loses it."""
    states.move(slot, status, wake_at=None, note=note, ended_at=now, **work_queue.overtake())


def _slot_note(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message}


@dataclass(frozen=True)
class LoggedSlot:
    """One slot with its picks in order, of which each has the run of one engine."""

    slot: BrandSlot
    picks: Sequence[BrandPick]


def recent_slots(source: Source, *, before: UUID | None = None, most: int = SLOTS_SHOWN) -> list[LoggedSlot]:
    """Return at most `most` of a lane's slots, newest first, with the open one, before the slot `before`.

    It takes two statements, however many slots there are.
    """
    rows = BrandSlot.objects.of(source.workspace_id).filter(source=source)
    if before is not None:
        rows = rows.filter(id__lt=before)
    return with_picks(source.workspace_id, list(rows.order_by("-id")[:most]))


def with_picks(workspace_id: UUID, slots: Sequence[BrandSlot]) -> list[LoggedSlot]:
    """Return these slots, in their order, each with its picks."""
    picks: defaultdict[object, list[BrandPick]] = defaultdict(list)
    for pick in (
        BrandPick.objects.of(workspace_id)
        .filter(slot__in=[slot.pk for slot in slots])
        .select_related("topic", "item")
        .order_by("id")
    ):
        picks[pick.slot_id].append(pick)
    return [LoggedSlot(slot, picks[slot.pk]) for slot in slots]


@dataclass(frozen=True)
class LaneOutlook:
    """The forecast of a lane.

    `next_at` are the times of the next slots, `week` is the number of slots within seven days, `eligible` the number
    of topics that may be taken today, and `price` the credits of one slot.
    """

    next_at: Sequence[datetime]
    week: int
    timezone: str
    engines: Sequence[str]
    price: int
    eligible: int
    trouble: str = ""
    """The reason why the lane can't work as it is configured, or an empty string if it can."""

    @property
    def is_short_of_topics(self) -> bool:
        return self.eligible < limits.TOPICS_ELIGIBLE_LEAST

    @property
    def price_of_week(self) -> int:
        return self.price * self.week


def forecast_slots(source: Source, *, now: datetime) -> LaneOutlook:
    """Return the forecast of a source, which needn't be stored yet."""
    workspace = source.workspace
    defaults = WorkspaceDefaults.objects.of(workspace).get()
    zone = zone_of(source.config, workspace.timezone)
    engines = engines_of(source, defaults)
    next_times = _forecast_times(source, now)
    unavailability = why_unavailable(source)
    candidates = select.topic_candidates(
        source, source.persona_id or defaults.persona_id, now.astimezone(zone).date()
    )
    return LaneOutlook(
        next_at=next_times[:NEXT_SHOWN],
        week=sum(moment < now + _WEEK for moment in next_times),
        timezone=zone.key,
        engines=[engine.name for engine in engines],
        price=sum(engine.credits for engine in engines) * source.variants,
        eligible=len(candidates),
        trouble=unavailability.sentence if unavailability is not None else "",
    )


def _forecast_times(source: Source, now: datetime) -> list[datetime]:
    """Return the times of a week's slots, and at least as many as are shown."""
    previous = last_worked(source)
    times: list[datetime] = []
    while len(times) < NEXT_SHOWN or times[-1] < now + _WEEK:
        after = times[-1] if times else now
        times.append(
            next_slot(source.config, after=after, previous=previous, default_zone=source.workspace.timezone)
        )
        previous = times[-1]
    return times
