"""Which topic is taken: rests, months, seasons, weights, the same choice again, and never a repetition of words."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import pytest

from config.core.ids import uuid7
from pipeline import limits
from pipeline.generate.topics import select
from pipeline.generate.topics.persona_history import PersonaHistory, word_runs
from pipeline.models import BrandPick, BrandSlot, GeneratedItem, Generation, Topic
from pipeline.personas import topics
from pipeline.text.similarity import jaccard
from tests.pipeline.personas.lanes import add_lane_of_no_topics, make_persona, make_topics, slot_of
from tests.pipeline.steps import NOON, push_raw, run_generations

TODAY = date(2027, 3, 1)


@pytest.fixture
def lane(workspace):
    make_persona(workspace)
    return add_lane_of_no_topics(workspace)


def used(source, topic, *, days_ago, angle="", decision="used", slot=None):
    slot = slot or BrandSlot.everywhere.create(
        workspace_id=source.workspace_id, source=source, status="picked", due_at=NOON
    )
    BrandPick.everywhere.create(
        workspace_id=source.workspace_id,
        slot=slot,
        topic=topic,
        title=topic.title,
        angle=angle,
        decision=decision,
        used_on=TODAY - timedelta(days=days_ago),
    )
    return slot


def found(source, today=TODAY):
    persona_id = topics.Persona.everywhere.get(workspace_id=source.workspace_id).pk
    return {
        one.topic.title: (one.angles, one.rested_days)
        for one in select.topic_candidates(source, persona_id, today)
    }


def test_topic_rests_as_many_days_as_it_says(workspace, lane):
    fresh, tired, rested = make_topics(workspace, 3, cooldown_days=14)
    used(lane, tired, days_ago=13)
    used(lane, rested, days_ago=14)
    assert found(lane) == {"Topic A": (("",), 90), "Topic C": (("",), 14)}
    assert fresh.title == "Topic A"


def test_angles_rest_one_by_one_and_the_longest_rested_comes_first(workspace, lane):
    (topic,) = make_topics(workspace, 1, angles=["myth", "how-to", "story"], cooldown_days=10)
    used(lane, topic, days_ago=3, angle="myth")
    used(lane, topic, days_ago=40, angle="how-to")
    assert found(lane) == {"Topic A": (("story", "how-to"), 3)}
    used(lane, topic, days_ago=0, angle="story")
    used(lane, topic, days_ago=9, angle="how-to")
    assert found(lane) == {}


@pytest.mark.parametrize(
    ("decision", "is_there"), [("taken", False), ("used", False), ("too_near", False), ("failed", True)]
)
def test_what_came_out_too_near_rests_and_what_failed_does_not(workspace, lane, decision, is_there):
    (topic,) = make_topics(workspace, 1)
    used(lane, topic, days_ago=1, decision=decision)
    assert ("Topic A" in found(lane)) is is_there


def test_month_counts_slots_and_not_engines(workspace, lane):
    (topic,) = make_topics(workspace, 1, angles=["a", "b", "c", "d"], cooldown_days=0, max_per_month=2)
    april = date(2027, 4, 30)
    slot = used(lane, topic, days_ago=-40, angle="a")
    used(lane, topic, days_ago=-40, angle="a", slot=slot)
    used(lane, topic, days_ago=0, angle="b")
    used(lane, topic, days_ago=-41, angle="b", decision="too_near")
    assert "Topic A" in found(lane, april)
    used(lane, topic, days_ago=-50, angle="c")
    assert found(lane, april) == {}
    assert "Topic A" in found(lane, date(2027, 5, 1))


def test_switched_off_deleted_out_of_season_or_another_s_are_not_there(workspace, lane):
    off, gone, winter, other, mine = make_topics(workspace, 5)
    topics.change(off, {"is_active": False}, now=NOON)
    topics.delete(gone, now=NOON)
    topics.change(winter, {"season": {"from": "12-01", "to": "02-28"}}, now=NOON)
    stranger = topics.Persona.everywhere.create(workspace=workspace, name="Bea")
    topics.change(other, {"persona_id": stranger.pk}, now=NOON)
    topics.create(workspace, {"title": "Try"}, test=True, now=NOON)
    persona = topics.Persona.everywhere.exclude(pk=stranger.pk).get(workspace=workspace)
    there = select.topic_candidates(lane, persona.pk, TODAY)
    assert [one.topic.title for one in there] == [mine.title]
    in_winter = select.topic_candidates(lane, stranger.pk, date(2027, 2, 28))
    assert [one.topic.title for one in in_winter] == [winter.title, other.title, mine.title]


def test_pool_is_read_with_two_statements(workspace, lane, django_assert_num_queries):
    for topic in make_topics(workspace, 6):
        used(lane, topic, days_ago=20)
    with django_assert_num_queries(2):
        assert len(select.topic_candidates(lane, uuid7(), TODAY)) == 6


def test_choice_is_by_weight_and_rest_and_the_same_for_the_same_seed():
    heavy = select.TopicCandidate(Topic(pk=uuid7(), title="heavy", weight=3), ("x", "y"), 30)
    light = select.TopicCandidate(Topic(pk=uuid7(), title="light", weight=1), ("",), 30)
    tired = select.TopicCandidate(Topic(pk=uuid7(), title="tired", weight=1), ("",), 0)
    all_three = [heavy, light, tired]
    chosen = [select.choose_topic(all_three, seed=str(one)) for one in range(2000)]
    counts = Counter(one.topic.title for one in chosen)
    # 90, 30 and 1 of 121.
    assert 1350 < counts["heavy"] < 1620
    assert 400 < counts["light"] < 600
    assert 0 < counts["tired"] < 60
    assert chosen[7] == select.choose_topic(all_three, seed="7")
    assert {one.angle for one in chosen if one.topic.title == "heavy"} == {"x"}
    assert (
        select.choose_topic(all_three, seed="7", without={heavy.topic.pk, light.topic.pk}).topic.title
        == "tired"
    )
    assert select.choose_topic([], seed="7") is None


# --- Nearness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("We bake rye at four.", "WE bake rye, at four! https://ada.example/x", 1.0),
        ("We bake rye at four.", "They sell wheat at noon.", 0.0),
        ("a b c d e", "a b c d x", 0.5),
        ("Rye bread", "rye  BREAD", 1.0),
        ("", "", 0.0),
        ("caf\u00e9 au lait", "cafe\u0301 au lait", 1.0),
        ("\u6211\u4eec\u70e4\u9762\u5305", "\u6211\u4eec\u70e4\u9762\u5305\u3002", 1.0),
    ],
)
def test_likeness_is_the_share_of_common_runs(one, other, expected):
    assert jaccard(word_runs(one), word_runs(other)) == pytest.approx(expected)


def test_memory_is_of_one_persona_for_ninety_days(workspace, lane, clock):
    raw = push_raw(workspace).raw_item
    run_generations(raw)
    item = GeneratedItem.everywhere.get()
    generation = Generation.everywhere.get()

    def nearest(text, **changes):
        options = {
            "workspace_id": workspace.pk,
            "persona_id": item.persona_id,
            "test": False,
            "without": (),
            "now": NOON,
            **changes,
        }
        return PersonaHistory(**options).find_nearest(text)

    same = nearest(item.body)
    assert (same.likeness, same.item_id) == (1.0, item.pk)
    assert nearest("Something else was said here.").likeness < limits.LANE_LIKENESS
    assert nearest(item.body, persona_id=uuid7()) is None
    assert nearest(item.body, test=True) is None
    assert nearest(item.body, without=[generation.pk]) is None
    assert nearest(item.body, now=NOON + timedelta(days=90)) is not None
    assert nearest(item.body, now=NOON + timedelta(days=91)) is None


def test_slot_chooses_the_same_however_often_it_is_tried(workspace, lane):
    make_topics(workspace, 8)
    persona_id = topics.Persona.everywhere.get(workspace=workspace).pk
    slot = slot_of(lane)
    first, second = (
        select.choose_topic(select.topic_candidates(lane, persona_id, TODAY), seed=slot.pk.hex)
        for _ in range(2)
    )
    assert first == second
