"""Short ways through a brand lane: a source with its topics, its slots worked, what it made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline import personas as brand
from pipeline.generate import run as generation_run
from pipeline.ingest import collect
from pipeline.models import (
    BrandPick,
    BrandSlot,
    GeneratedItem,
    Generation,
    Persona,
    Source,
    WorkspaceDefaults,
)
from pipeline.personas import crud, topics
from tests.pipeline.steps import NOON, claimed, reread

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import Workspace

WHO = "Ada bakes rye bread in Leeds. The oven was built in 1987."
LINES = (
    "We fire the oven at four in the morning, long before the town wakes up.",
    "Rye asks for patience and gives you nine days of fresh bread in return.",
    "Nothing leaves our shop before somebody here has tasted it warm.",
)


def make_persona(workspace: Workspace, **given: Any) -> Persona:
    """The workspace's own persona, changed."""
    persona = WorkspaceDefaults.everywhere.get(workspace=workspace).persona
    return crud.change(persona, {"who_you_are": WHO, **given}, by="alice", now=NOON)


def make_topics(workspace: Workspace, count: int = 8, **given: Any) -> list[Any]:
    return [
        topics.create(workspace, {"title": f"Topic {name}", **given}, now=NOON)
        for name in "ABCDEFGHIJKLMNOP"[:count]
    ]


def add_lane(workspace: Workspace, *, now: datetime = NOON, test: bool = False, **given: Any) -> Source:
    settings = {"type": "brand", "name": "Bread", "engines": ("Short Post",), **given}
    return collect.register(workspace, collect.SourceSettings(**settings), test=test, now=now)


def add_lane_of_no_topics(workspace: Workspace, **given: Any) -> Source:
    """A lane whose one topic was deleted after it was made: the door takes none without a topic."""
    (topic,) = make_topics(workspace, 1, notes="Rye bread keeps for nine days in its crust.")
    source = add_lane(workspace, **given)
    topics.delete(topic, now=NOON)
    return source


def slot_of(source: Source) -> BrandSlot:
    slot = brand.lane_slots.open_slot(source)
    assert slot is not None
    return slot


def work_slot(source: Source) -> BrandSlot:
    """The open slot as a hand works it; the same slot afterwards."""
    slot = slot_of(source)
    brand.run_slot(claimed(slot))
    return reread(slot)


def write_all(source: Source) -> list[GeneratedItem]:
    """Every run of the source is worked; its items, oldest first."""
    runs = Generation.everywhere.filter(items__source=source, wake_at__isnull=False).distinct()
    for generation in runs.order_by("id"):
        generation_run.run_generation(claimed(generation))
    return list(GeneratedItem.everywhere.filter(source=source).order_by("id"))


def picks_of(source: Source) -> list[tuple[str, str, str]]:
    rows = BrandPick.everywhere.filter(slot__source=source).order_by("id")
    return list(rows.values_list("title", "angle", "decision"))
