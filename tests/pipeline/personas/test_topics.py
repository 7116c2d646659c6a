"""Topics: sound settings, undo of a deletion, and a source's own list in step with its settings."""

from __future__ import annotations

from datetime import timedelta

import pytest

from config.core.errors import Conflict, Invalid
from config.core.ids import uuid7
from config.core.states import Overtaken
from pipeline import limits
from pipeline.models import Source, Topic, WorkspaceDefaults
from pipeline.personas import crud, topics
from tests.pipeline.steps import NOON, codes, reread, state

GIVEN = {
    "title": " Why  rye ",
    "notes": "Rye needs 20 hours.",
    "angles": ["myth", "how-to", "myth"],
    "evidence": [
        {"url": "https://rye.example/study", "text": "Rye keeps for 9 days."},
        {"text": "Our own log."},
    ],
    "weight": 3,
    "cooldown_days": 7,
    "max_per_month": 2,
    "season": {"from": "11-15", "to": "02-29"},
}


def test_topic_is_stored_as_it_will_be_shown(workspace):
    topic = topics.create(workspace, GIVEN, now=NOON)
    assert state(
        topic, "title", "angles", "evidence", "season_from", "season_to", "version", "persona_id"
    ) == {
        "title": "Why rye",
        "angles": ["myth", "how-to"],
        "evidence": [
            {"url": "https://rye.example/study", "text": "Rye keeps for 9 days."},
            {"url": "", "text": "Our own log."},
        ],
        "season_from": "11-15",
        "season_to": "02-29",
        "version": 1,
        "persona_id": None,
    }


def test_every_fault_is_named_at_once(workspace):
    bad = {
        "title": "",
        "angles": ["x" * (limits.ANGLE_CHARACTERS + 1)],
        "evidence": [{}, {"url": "rye"}, {"link": "x"}],
        "weight": 0,
        "cooldown_days": True,
        "max_per_month": 40,
        "is_active": "yes",
        "season": {"from": "02-30", "to": "2-1"},
        "persona_id": uuid7(),
        "mood": "sad",
    }
    with pytest.raises(Invalid) as error:
        topics.create(workspace, bad, now=NOON)
    assert codes(error) == [
        ("mood", "unknown_field"),
        ("title", "required"),
        ("angles[0]", "too_long"),
        ("evidence[0]", "required"),
        ("evidence[1].url", "invalid_address"),
        ("evidence[2]", "invalid"),
        ("weight", "out_of_range"),
        ("cooldown_days", "invalid_type"),
        ("max_per_month", "out_of_range"),
        ("is_active", "invalid_type"),
        ("season.from", "invalid"),
        ("season.to", "invalid"),
        ("persona", "unknown_persona"),
    ]
    assert Topic.everywhere.count() == 0


def test_change_raises_the_version_once(workspace):
    topic = topics.create(workspace, GIVEN, now=NOON)
    later = NOON + timedelta(minutes=5)
    changed = topics.change(topic, {"weight": 9, "season": None, "max_per_month": None}, now=later)
    assert (changed.version, changed.weight, changed.season_from, changed.max_per_month) == (2, 9, "", None)
    assert topics.change(changed, {"weight": 9}, now=later).version == 2
    with pytest.raises(Overtaken):
        topics.change(changed, {"weight": 1}, now=later, expected_version=1)


def test_deleted_topic_comes_back_as_it_was(workspace):
    topic = topics.create(workspace, GIVEN, now=NOON)
    topics.delete(topic, now=NOON)
    with pytest.raises(Conflict):
        topics.change(topic, {"weight": 9}, now=NOON)
    assert state(topics.restore(topic, now=NOON), "deleted_at", "weight", "version") == {
        "deleted_at": None,
        "weight": 3,
        "version": 3,
    }


def test_pool_has_its_limit_for_live_and_test_alone(workspace, monkeypatch):
    monkeypatch.setattr(limits, "TOPICS", 1)
    topics.create(workspace, GIVEN, now=NOON)
    with pytest.raises(Conflict) as error:
        topics.create(workspace, GIVEN, now=NOON)
    assert [one.code for one in error.value.detail] == ["too_many"]
    assert topics.create(workspace, GIVEN, test=True, now=NOON).test is True


def test_topic_of_a_deleted_persona_is_refused(workspace):
    persona = crud.create(workspace, {"name": "Ada"}, by="alice", now=NOON)
    topic = topics.create(workspace, {"title": "Rye", "persona_id": persona.pk}, now=NOON)
    assert topic.persona_id == persona.pk
    crud.delete(persona, by="alice", now=NOON)
    with pytest.raises(Invalid):
        topics.create(workspace, {"title": "Wheat", "persona_id": persona.pk}, now=NOON)


def test_own_list_of_a_source_keeps_what_was_set_on_its_topics(workspace):
    source = Source.everywhere.create(
        workspace=workspace,
        name="Bread",
        type="brand",
        config={"topics": ["Rye", "Wheat"]},
        persona=WorkspaceDefaults.everywhere.get(workspace=workspace).persona,
    )
    topics.sync_listed_topics(source, now=NOON)
    topics.sync_listed_topics(source, now=NOON)
    rye, wheat = Topic.everywhere.filter(source=source).order_by("title")
    assert [rye.title, wheat.title] == ["Rye", "Wheat"]
    topics.change(rye, {"weight": 5}, now=NOON)
    with pytest.raises(Conflict) as error:
        topics.change(rye, {"title": "Spelt"}, now=NOON)
    assert codes(error) == [("title", "of_a_source")]
    with pytest.raises(Conflict):
        topics.delete(rye, now=NOON)

    source.config = {"topics": ["Wheat", "Spelt"]}
    topics.sync_listed_topics(source, now=NOON)
    there = Topic.everywhere.filter(source=source, deleted_at=None)
    assert sorted(there.values_list("title", flat=True)) == ["Spelt", "Wheat"]
    source.config = {"topics": ["Rye"]}
    topics.sync_listed_topics(source, now=NOON)
    assert state(rye, "weight", "deleted_at") == {"weight": 5, "deleted_at": None}
    assert reread(wheat).deleted_at == NOON
