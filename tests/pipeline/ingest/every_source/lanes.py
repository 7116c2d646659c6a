"""brand: a lane that reads nothing; what comes to it are its persona, its topics and its time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from accounts.models import CreditBalance, LedgerEntry
from config.core.errors import Conflict, Invalid
from pipeline import personas as brand
from pipeline.ingest import collect
from pipeline.models import BrandSlot, GeneratedItem, RawItem
from pipeline.personas import topics
from pipeline.switches.availability import SourceUnavailable
from tests.pipeline.ingest.every_source.world import Kind
from tests.pipeline.personas.lanes import (
    LINES,
    add_lane,
    make_persona,
    make_topics,
    picks_of,
    work_slot,
    write_all,
)
from tests.pipeline.steps import reread

if TYPE_CHECKING:
    from pipeline.models import Source
    from tests.pipeline.ingest.every_source.world import World

KIND = Kind(
    "brand",
    not_applicable={
        "redirected": "A lane has no address: it reads no document, so that nothing can lead it elsewhere.",
    },
)
DAY = timedelta(days=1)


def open_lane(world: World, count: int = 8, **given: Any) -> tuple[Source, list[Any]]:
    make_persona(world.workspace, approved_lines=list(LINES))
    pool = make_topics(world.workspace, count)
    return add_lane(world.workspace, now=timezone.now(), **given), pool


def next_slot(world: World, source: Source, *, after: timedelta = DAY) -> BrandSlot:
    world.clock.shift(after)
    slot = work_slot(source)
    write_all(source)
    return slot


def items(source: Source) -> list[tuple[str, str | None]]:
    """Status of each item, and the code of its error."""
    rows = GeneratedItem.everywhere.filter(source=source).order_by("id")
    return [(row.status, row.error and row.error["code"]) for row in rows]


@KIND.cell
def new(world: World) -> None:
    source, _ = open_lane(world)
    slot = next_slot(world, source)
    assert (slot.status, slot.note) == ("picked", None)
    assert items(source) == [("ready", None)]
    assert world.health(source) == ("active", None, [])
    assert world.shown(source)["next_poll_at"] is not None
    # Without a document there is no raw item to tell of.
    assert (RawItem.everywhere.count(), world.ingested()) == (0, 0)


@KIND.cell
def unchanged(world: World) -> None:
    source, _ = open_lane(world)
    for _ in range(3):
        next_slot(world, source)
    titles = [title for title, _, _ in picks_of(source)]
    bodies = list(GeneratedItem.everywhere.filter(source=source).values_list("body", flat=True))
    assert len(set(titles)) == len(set(bodies)) == 3
    assert world.health(source)[:2] == ("active", None)


@KIND.cell
def edited(world: World) -> None:
    source, (topic,) = open_lane(world, 1)
    next_slot(world, source)
    (before,) = GeneratedItem.everywhere.filter(source=source)
    topics.change(topic, {"title": "Topic A, corrected", "cooldown_days": 1}, now=timezone.now())
    next_slot(world, source, after=2 * DAY)
    # What was made keeps its topic and its words; the next one speaks of it as it is now.
    assert [title for title, _, _ in picks_of(source)] == ["Topic A", "Topic A, corrected"]
    assert reread(before).body == before.body
    assert items(source) == [("ready", None), ("ready", None)]


@KIND.cell
def withdrawn(world: World) -> None:
    source, (topic,) = open_lane(world, 1)
    world.clock.shift(DAY)
    work_slot(source)
    topics.delete(topic, now=timezone.now())
    write_all(source)
    assert items(source) == [("failed", "topic_deleted")]
    slot = next_slot(world, source)
    assert (slot.status, slot.note["code"]) == ("empty", "no_topic")
    assert world.health(source)[:2] == ("active", "no_topic")
    topics.restore(reread(topic), now=timezone.now())
    next_slot(world, source)
    assert world.health(source)[:2] == ("active", None)


@KIND.cell
def malformed(world: World) -> None:
    for config, field in (
        ({"cadence": {"every_hours": 6, "timezone": "Europe/Nowhere"}}, "config.cadence.timezone"),
        ({"cadence": {"slots": [{"weekday": "someday", "time": "9:30"}]}}, "config.cadence.slots[0].weekday"),
    ):
        with pytest.raises(Invalid) as refused:
            world.add("brand", **config)
        assert field in [one.field for one in refused.value.detail]
    for given, field in (
        ({"title": " "}, "title"),
        ({"title": "Rye", "season": {"from": "02-30", "to": "13-01"}}, "season"),
        ({"title": "Rye", "cooldown_days": "long"}, "cooldown_days"),
    ):
        with pytest.raises(Invalid) as refused:
            topics.create(world.workspace, given, now=timezone.now())
        assert any((one.field or "").startswith(field) for one in refused.value.detail), field
    # Nothing of it was stored: the lane's pool is empty, and so the lane is refused.
    with pytest.raises(SourceUnavailable, match="no topic to speak of"):
        open_lane(world, 0)


@KIND.cell
def huge(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        world.add("brand", topics=[f"Topic {number}" for number in range(201)])
    assert [one.field for one in refused.value.detail] == ["config.topics"]
    # However many topics there are, a slot makes one piece.
    source, _ = open_lane(world, 1, config={"topics": [f"Topic {number}" for number in range(200)]})
    slot = next_slot(world, source)
    assert (slot.eligible, items(source)) == (200, [("ready", None)])


@KIND.cell
def slow(world: World) -> None:
    source, _ = open_lane(world, config={"cadence": {"every_hours": 6}})
    next_slot(world, source)
    # Twenty slots are missed in an outage of five days; they are made up for once.
    slot = next_slot(world, source, after=5 * DAY)
    assert slot.status == "picked"
    assert items(source) == [("ready", None), ("ready", None)]
    assert BrandSlot.everywhere.filter(source=source).count() == 3
    following = brand.lane_slots.open_slot(source)
    assert following is not None
    assert timezone.now() < following.due_at <= timezone.now() + DAY / 4


@KIND.cell
def blocked(world: World) -> None:
    source, _ = open_lane(world)
    CreditBalance.everywhere.filter(workspace=world.workspace).update(granted=0, available=0)
    LedgerEntry.everywhere.filter(workspace=world.workspace).delete()
    slot = next_slot(world, source)
    assert (slot.status, items(source)) == ("waiting_quota", [])
    assert world.health(source)[:2] == ("active", "quota_exceeded")
    world.clock.move_to(slot.wake_at)
    next_slot(world, source, after=timedelta(0))
    assert items(source) == [("ready", None)]
    assert world.health(source)[:2] == ("active", None)


@KIND.cell
def gone(world: World) -> None:
    source, _ = open_lane(world)
    next_slot(world, source)
    collect.change(source, {"status": "paused"}, workspace=world.workspace, now=timezone.now())
    assert brand.lane_slots.open_slot(source) is None
    with pytest.raises(Conflict) as refused:
        collect.poll_now(reread(source), now=timezone.now())
    assert refused.value.detail[0].code == "not_active"
    collect.delete(reread(source), now=timezone.now())
    assert world.shown(source)["next_poll_at"] is None
    # What it made stays.
    assert items(source) == [("ready", None)]
