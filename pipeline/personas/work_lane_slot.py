"""Runs a brand lane's slots: a due slot starts runs about a topic, or reports why it doesn't."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import notices
from accounts.ledger import credits as credit_account
from accounts.ledger import months
from accounts.models import Workspace
from config.core import dispatcher, states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.datetimes import format_utc
from pipeline import limits
from pipeline.generate.model import batches
from pipeline.generate.model.keys import generation_queue_for
from pipeline.generate.new_item import new_item
from pipeline.generate.topics import select
from pipeline.generate.topics.lane_eligibility import engines_of, makeable_engines
from pipeline.models import (
    BrandPick,
    BrandSlot,
    BrandSlotStatus,
    GeneratedItem,
    Generation,
    Source,
    WorkspaceDefaults,
)
from pipeline.personas import lane_slots, topics
from pipeline.sources.brand import zone_of
from pipeline.states import POLLED_SOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime
    from uuid import UUID

    from pipeline.engines.base import Engine

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class SlotContext:
    """A slot with the rows that decide which items are made."""

    slot: BrandSlot
    source: Source
    workspace: Workspace
    defaults: WorkspaceDefaults
    today: date
    """The date in the lane's time zone when the slot is run, so that a late slot uses topics of that day."""

    @property
    def persona_id(self) -> UUID:
        persona_id: UUID = self.source.persona_id or self.defaults.persona_id
        return persona_id

    @property
    def engines(self) -> list[Engine]:
        """The engines of `engines_of`."""
        return engines_of(self.source, self.defaults)


def run_slot(slot: BrandSlot) -> None:
    """Run one claimed slot; its pick is committed with its reservation before any writer is called."""
    crash_point("brand.claimed")
    try:
        _work_slot(slot, utc_now())
    except states.Overtaken as error:
        log.info("overtaken", slot=slot.pk.hex, reason=str(error))
    crash_point("brand.committed")


def give_up(slot: BrandSlot) -> None:
    """End a slot whose task kept crashing as empty, and create the next one."""
    message = _("Picking a topic failed several times; the operator's log has the reason.")
    note = {"code": "gave_up", "message": message}
    now = utc_now()
    try:
        with transaction.atomic():
            source = _lock_source(slot)
            lane_slots.end_slot(slot, "empty", source, source.workspace, now=now, note=note)
            _update_source_health(source, note, now)
    except states.Overtaken as error:
        log.info("overtaken", slot=slot.pk.hex, reason=str(error))


def _work_slot(slot: BrandSlot, now: datetime) -> None:
    """Run a due slot: pick its topic and create the runs, or end, postpone or skip it with the reason."""
    try:
        with transaction.atomic():
            source = _lock_source(slot)
            workspace = source.workspace
            if source.status not in POLLED_SOURCES or source.deleted_at is not None:
                note = {"code": "switched_off", "message": _("The source was switched off.")}
                lane_slots.end_slot(slot, "skipped", source, workspace, now=now, note=note)
            elif not workspace.is_at_work:
                # The slot stays open, and is caught up with once when the workspace works again.
                slot.sleep_until(now + limits.LANE_DELISTED_WAIT, attempts=0)
            else:
                defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
                today = now.astimezone(zone_of(source.config, workspace.timezone)).date()
                _pick_topic(SlotContext(slot, source, workspace, defaults, today), now)
    except credit_account.QuotaExceeded as error:
        _wait_for_credits(slot, error, now)


def _lock_source(slot: BrandSlot) -> Source:
    """Lock and return the slot's source, before the slot, so that a person who changes it and a task take turns."""
    source: Source = (
        Source.everywhere.select_for_update(of=("self",))
        .select_related("workspace__plan")
        .get(pk=slot.source_id)
    )
    return source


def _pick_topic(lane: SlotContext, now: datetime) -> None:
    """Choose a topic and record it, with the runs and their reservation, in the caller's transaction.

    The slot ends as empty if there is no topic. Raises `QuotaExceeded` for too few credits.
    """
    # Two lanes of one pool take turns, or both would take the same topic; the weaker lock lets rows refer to the
    # workspace.
    Workspace.everywhere.select_for_update(no_key=True).get(pk=lane.workspace.pk)
    topics.sync_listed_topics(lane.source, now=now)
    candidates = select.topic_candidates(lane.source, lane.persona_id, lane.today)
    choice, engines, reasons = _choose_topic(lane, candidates)
    note = _outcome_note(lane.engines, candidates, engines, reasons)
    is_picked = choice is not None
    lane_slots.end_slot(
        lane.slot,
        "picked" if is_picked else "empty",
        lane.source,
        lane.workspace,
        now=now,
        note=note,
        eligible=len(candidates),
    )
    generations = _create_runs(lane, choice, engines, now) if choice is not None else []
    if len(candidates) < limits.TOPICS_ELIGIBLE_LEAST:
        _notify_few_topics(lane, len(candidates), now)
    _update_source_health(lane.source, note, now, is_new=is_picked)
    crash_point("brand.picked")
    amounts = {
        generation.pk: generation.credits_reserved
        for generation in generations
        if generation.credits_reserved
    }
    if amounts:
        # This is the last statement, so that the balance is locked as briefly as possible.
        credit_account.reserve(lane.workspace, amounts, now=now)


def _choose_topic(
    lane: SlotContext, candidates: Sequence[select.TopicCandidate]
) -> tuple[select.TopicChoice | None, list[Engine], list[str]]:
    """Return a topic of which an engine can make something, those engines, and the reasons why others can't.

    If there is no such topic, return `None`, no engines, and the reasons for the first topic that was tried.
    """
    engines = lane.engines
    if not engines:
        return None, [], []
    first_reasons: list[str] = []
    tried: set[UUID] = set()
    while choice := select.choose_topic(candidates, seed=lane.slot.pk.hex, without=tried):
        makeable, reasons = makeable_engines(lane.source, engines, choice, lane.persona_id)
        if makeable:
            return choice, makeable, reasons
        first_reasons = first_reasons or reasons
        tried.add(choice.topic.pk)
    return None, [], first_reasons


def _outcome_note(
    lane_engines: Sequence[Engine],
    candidates: Sequence[select.TopicCandidate],
    engines: Sequence[Engine],
    reasons: Sequence[str],
) -> dict[str, str] | None:
    """Return the note on the slot's outcome, or `None` if all went well and enough topics are left."""
    if not lane_engines:
        message = _(
            "None of the source's engines can be made from a topic; choose one that can, see GET /v1/engines."
        )
        return {"code": "no_engine", "message": message}
    if not candidates:
        message = _(
            "No topic may be taken now: each is switched off, out of season, resting or has had its number for the "
            "month. Add topics, or let some rest for a shorter time."
        )
        return {"code": "no_topic", "message": message}
    if not engines:
        return {"code": "nothing_to_say", "message": " ".join(reasons)}
    if reasons:
        return {"code": "engines_left_out", "message": " ".join(reasons)}
    if len(candidates) < limits.TOPICS_ELIGIBLE_LEAST:
        return {"code": "few_topics", "message": _few_topics_message(len(candidates))}
    return None


def _few_topics_message(count: int) -> str:
    return ngettext(
        "Only %(count)d topic may be taken now, fewer than %(least)d; add some before the lane runs dry.",
        "Only %(count)d topics may be taken now, fewer than %(least)d; add some before the lane runs dry.",
        count,
    ) % {
        "count": count,
        "least": limits.TOPICS_ELIGIBLE_LEAST,
    }


def _create_runs(
    lane: SlotContext, choice: select.TopicChoice, engines: Sequence[Engine], now: datetime
) -> list[Generation]:
    """Create a run for each engine, with an item for each variant and a record of the topic's use."""
    source, variants = lane.source, lane.source.variants
    generations = [
        Generation(
            workspace=lane.workspace,
            test=source.test,
            engine=engine.kind,
            topic=choice.topic,
            persona_id=lane.persona_id,
            variants=variants,
            credits_reserved=0 if source.test else engine.credits * variants,
            due_at=now,
            wake_at=now,
            queue=generation_queue_for(lane.workspace),
            request_id=lane.slot.request_id,
            batch_until=batches.waits_until(source.config, now),
            created_at=now,
        )
        for engine in engines
    ]
    Generation.everywhere.bulk_create(generations)
    defaults = lane.defaults
    outlets = source.outlets or (defaults.test_outlets if source.test else defaults.outlets)
    GeneratedItem.everywhere.bulk_create(
        new_item(
            generation,
            engine,
            index=index,
            source=source,
            outlets=outlets,
            is_sample=source.is_sample,
            now=now,
        )
        for engine, generation in zip(engines, generations, strict=True)
        for index in range(variants)
    )
    _create_picks(lane, choice, generations, now)
    dispatcher.wake()
    return generations


def _create_picks(
    lane: SlotContext, choice: select.TopicChoice, generations: Sequence[Generation], now: datetime
) -> None:
    """Record the use of the topic by each run, which counts against its limits."""
    BrandPick.everywhere.bulk_create(
        BrandPick(
            workspace=lane.workspace,
            slot=lane.slot,
            generation=generation,
            topic=choice.topic,
            title=choice.topic.title,
            angle=choice.angle,
            used_on=lane.today,
            created_at=now,
        )
        for generation in generations
    )


def _wait_for_credits(slot: BrandSlot, error: credit_account.QuotaExceeded, now: datetime) -> None:
    """Let the slot sleep until the next month's credits, and notify the workspace."""
    resets_at = months.start_of_next_month(months.month_of(now))
    note = {"code": "quota_exceeded", "message": _("It waits for next month's credits.")}
    with transaction.atomic():
        source = _lock_source(slot)
        # The slot is read again, because the transaction that would have ended it was rolled back.
        slot.refresh_from_db(fields=["status", "wake_at", "attempts", "ended_at", "note", "eligible"])
        if slot.status == BrandSlotStatus.WAITING:
            states.move(slot, "waiting_quota", under_lease=True, wake_at=resets_at, attempts=0, note=note)
        else:
            slot.sleep_until(resets_at, attempts=0)
        lane_slots.show_next_slot(source, resets_at)
        _update_source_health(source, note, now)
        balance = error.balance
        credit_account.notify_used_up(source.workspace, balance.period_start, balance.granted, now=now)


def _notify_few_topics(lane: SlotContext, count: int, now: datetime) -> None:
    """Log that a lane has few topics, and send a notice once a week, but none for a test lane."""
    log.info("few_topics", source=lane.source.pk.hex, eligible=count)
    if lane.source.test:
        return
    year, week, _day = lane.today.isocalendar()
    notices.record(
        "few_topics",
        workspace_id=lane.workspace.pk,
        key=f"{lane.source.pk.hex}:{year}-{week}",
        title=_("%(name)s runs out of topics") % {"name": lane.source.name},
        text=_few_topics_message(count),
        path="#sources",
        now=now,
    )


def _update_source_health(
    source: Source, note: Mapping[str, str] | None, now: datetime, *, is_new: bool = False
) -> None:
    """Store on the source when a slot was last run, and its note: as an error if nothing was made."""
    values: dict[str, Any] = {
        "last_error": None if is_new or note is None else {**note, "at": format_utc(now)},
        "notes": [note] if is_new and note is not None else [],
        "last_polled_at": now,
        **({"last_new_at": now} if is_new else {}),
    }
    Source.everywhere.filter(pk=source.pk).update(**values)
