"""The brand lane from its slot to an item: what it says, what it never says, what it costs, and who hears of it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import CreditBalance, LedgerEntry, Notice, Workspace
from config.core.errors import Conflict
from config.core.ids import encode
from pipeline import limits, personas, resources
from pipeline.ingest import collect
from pipeline.models import BrandPick, BrandSlot, GeneratedItem, Generation, Topic
from pipeline.personas import topics
from pipeline.personas.lane_slots import recent_slots
from pipeline.personas.work_lane_slot import engines_of
from pipeline.review import regenerate
from pipeline.switches import availability
from pipeline.text.prose.sentences import split_sentences
from tests.pipeline.personas.lanes import (
    LINES,
    add_lane,
    add_lane_of_no_topics,
    make_persona,
    make_topics,
    picks_of,
    slot_of,
    work_slot,
    write_all,
)
from tests.pipeline.steps import NOON, claimed, facts, reread, state

NOTES = (
    "Rye flour takes up more water than wheat flour does, so the dough stays soft. "
    "The bakery on Mill Lane keeps its starter in a stone jar since 1974. "
    "A loaf of two kilograms needs seventy minutes in a falling oven. "
    "Caraway was added by sailors who wanted bread that kept for weeks. "
    "Every Friday forty loaves go to the school at the harbour."
)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def split(text):
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.fixture
def persona(workspace):
    return make_persona(workspace, approved_lines=list(LINES))


def balance(workspace):
    row = CreditBalance.everywhere.get(workspace=workspace)
    return row.available, row.reserved, row.used


# --- Made ------------------------------------------------------------------------------------------------------------


def test_slot_becomes_an_item_of_an_approved_line(workspace, persona):
    make_topics(workspace)
    source = add_lane(workspace)
    slot = work_slot(source)
    assert state(slot, "status", "note", "eligible", "wake_at") == {
        "status": "picked",
        "note": None,
        "eligible": 8,
        "wake_at": None,
    }
    assert balance(workspace) == (9, 1, 0)
    (item,) = write_all(source)
    pick = BrandPick.everywhere.get()
    assert item.body in LINES
    assert (item.status, item.raw_item_id, item.topic_id, item.persona_id) == (
        "ready",
        None,
        pick.topic_id,
        persona.pk,
    )
    assert (item.persona_version, item.generator["offline"], item.generator["model"]) == (
        persona.version,
        True,
        "approved-lines-1",
    )
    shown = resources.GeneratedItem.serialize(item, requires_approval=False, now=NOON)
    assert (shown["raw_item"], shown["raw_items"], shown["topic"]) == (None, [], encode("top", pick.topic_id))
    assert shown["provenance"]["persona_version"] == persona.version
    assert {check["outcome"] for check in item.checks} == {"passed"}
    assert (pick.decision, pick.item_id, pick.decided_at) == ("used", item.pk, NOON)
    assert Topic.everywhere.get(pk=pick.topic_id).last_used_at == NOON
    assert balance(workspace) == (9, 0, 1)
    assert facts(workspace) == ["generated.ready"]


def test_every_engine_that_takes_topics_speaks_of_the_same_one(workspace, persona):
    make_topics(workspace)
    source = add_lane(workspace, engines=("Short Post", "Persona Tweet"))
    work_slot(source)
    items = write_all(source)
    assert [item.status for item in items] == ["ready", "ready"]
    assert len({item.topic_id for item in items}) == 1
    assert [decision for _, _, decision in picks_of(source)] == ["used", "used"]


def test_lane_without_engines_makes_of_the_workspaces_what_says_one_thing(workspace, persona, defaults):
    make_topics(workspace)
    source = add_lane(workspace, engines=())
    defaults.engines = ["Short Post", "Quote Graphic", "Newsletter Issue", "Blog Article", "Template Short"]
    assert [engine.name for engine in engines_of(source, defaults)] == ["Short Post", "Quote Graphic"]
    defaults.engines = ["Blog Article", "Clipped Short"]
    assert [engine.name for engine in engines_of(source, defaults)] == ["Blog Article"]
    source.engines = ["Template Short"]
    assert [engine.name for engine in engines_of(source, defaults)] == ["Template Short"]


def test_two_variants_are_two_lines(workspace, persona):
    make_topics(workspace)
    source = add_lane(workspace, variants=2)
    work_slot(source)
    first, second = write_all(source)
    assert {first.body, second.body} < set(LINES)
    assert first.body != second.body


def test_lane_of_a_test_token_costs_nothing_and_takes_test_topics(workspace, persona):
    make_topics(workspace)
    topics.create(workspace, {"title": "Try"}, test=True, now=NOON)
    source = add_lane(workspace, test=True)
    work_slot(source)
    (item,) = write_all(source)
    assert (item.status, item.test, picks_of(source)) == ("ready", True, [("Try", "", "used")])
    assert balance(workspace) == (10, 0, 0)
    assert not Notice.everywhere.filter(kind="few_topics").exists()


def test_own_list_of_a_source_takes_the_place_of_the_pool(workspace, persona):
    make_topics(workspace)
    source = add_lane(workspace, config={"topics": ["Rye", "Wheat"]})
    assert work_slot(source).eligible == 2
    write_all(source)
    assert picks_of(source)[0][0] in {"Rye", "Wheat"}


# --- Never invented --------------------------------------------------------------------------------------------------


def test_without_a_model_and_without_words_of_a_person_it_is_refused_at_the_door(workspace):
    make_persona(workspace)
    topic, *_ = make_topics(workspace, 2)
    with pytest.raises(availability.SourceUnavailable) as refused:
        add_lane(workspace)
    (detail,) = refused.value.detail
    assert (refused.value.status, refused.value.code) == (409, "source_unavailable")
    assert detail.message.startswith("This workspace has no model, and nothing else that the lane may say")
    assert "notes in whole sentences" in detail.message
    topics.change(topic, {"notes": "Rye."}, now=NOON)
    with pytest.raises(
        availability.SourceUnavailable, match="Short Post: The notes and evidence of the topic have no"
    ):
        add_lane(workspace)
    topics.change(topic, {"notes": NOTES}, now=NOON)
    assert add_lane(workspace).status == "active"


def test_lane_without_topics_is_refused_at_the_door(workspace, persona):
    with pytest.raises(
        availability.SourceUnavailable, match=r"no topic to speak of\. Name some in `config\.topics`"
    ):
        add_lane(workspace)


def test_lane_without_an_engine_for_topics_is_refused_at_the_door(workspace, persona):
    make_topics(workspace)
    with pytest.raises(
        availability.SourceUnavailable, match="None of the lane's formats can be made from a topic"
    ):
        add_lane(workspace, engines=("Clipped Short",))


def test_slot_becomes_an_item_of_the_topic_s_own_notes(workspace):
    make_persona(workspace)
    make_topics(workspace, 1)
    (told,) = make_topics(workspace, 1, notes=NOTES)
    source = add_lane(workspace)
    work_slot(source)
    (item,) = write_all(source)
    # The topic that says nothing is never taken.
    assert (item.status, item.topic_id, item.error) == ("ready", told.pk, None)
    assert item.body in split(NOTES)
    assert [claim["quote"] for claim in item.claims] == [item.body]
    assert item.generator["model"] == "extractive-1"
    assert {check["outcome"] for check in item.checks} == {"passed"}


def test_evidence_of_a_topic_is_said_as_its_notes_are(workspace):
    make_persona(workspace)
    make_topics(workspace, 1, evidence=[{"url": "https://rye.example/", "text": NOTES}])
    source = add_lane(workspace, engines=("Short Post", "Quote Graphic", "Thread"))
    work_slot(source)
    items = write_all(source)
    assert {item.engine_output: item.status for item in items} == {
        "Short Post": "ready",
        "Quote Graphic": "ready",
        "Thread": "ready",
    }
    assert all(claim["quote"] in NOTES for item in items for claim in item.claims)


@pytest.mark.parametrize("is_brand", [True, False])
def test_a_quote_graphic_names_a_persona_and_not_the_workspace(workspace, is_brand):
    name = workspace.name if is_brand else "Ann Whitfield"
    make_persona(workspace, name=name)
    make_topics(workspace, 1, notes=NOTES)
    source = add_lane(workspace, engines=("Quote Graphic",))
    work_slot(source)
    [item] = write_all(source)

    signed = item.body.partition("\n")[2]
    assert (item.status, signed) == ("ready", "" if is_brand else f"– {name}")


def test_engine_for_which_the_topic_says_too_little_is_left_out_and_told(workspace):
    make_persona(workspace)
    make_topics(workspace, 1, notes=split(NOTES)[0])
    source = add_lane(workspace, engines=("Short Post", "LinkedIn Post", "Blog Article"))
    slot = work_slot(source)
    items = write_all(source)
    assert [(item.engine_output, item.status) for item in items] == [("Short Post", "ready")]
    assert slot.note["code"] == "engines_left_out"
    assert "LinkedIn Post: " in slot.note["message"]
    assert "Blog Article: Without a model" in slot.note["message"]


def test_notes_are_not_said_twice_and_the_next_topic_is_taken(workspace):
    make_persona(workspace)
    first, second = make_topics(workspace, 2, notes=split(NOTES)[0], cooldown_days=0)
    topics.change(second, {"notes": split(NOTES)[1]}, now=NOON)
    source = add_lane(workspace)
    said = []
    for _ in range(3):
        work_slot(source)
        said.append(write_all(source)[-1])
        collect.poll_now(source, now=NOON)
    assert {item.body for item in said[:2]} == set(split(NOTES)[:2])
    assert [item.status for item in said] == ["ready", "ready", "failed"]
    assert (said[2].error["code"], first.pk in {item.topic_id for item in said}) == ("too_near", True)


def test_notes_do_for_what_approved_lines_do_not(workspace):
    make_persona(workspace, approved_lines=[LINES[0]])
    make_topics(workspace, notes=NOTES)
    source = add_lane(workspace, variants=2)
    work_slot(source)
    line, sentence = write_all(source)
    assert line.body == LINES[0]
    assert sentence.body in split(NOTES)


def test_own_list_with_notes_is_all_that_a_lane_needs(workspace):
    make_persona(workspace)
    source = add_lane(workspace, config={"topics": [{"title": "Rye", "notes": NOTES}]})
    work_slot(source)
    (item,) = write_all(source)
    assert (item.status, item.body in split(NOTES)) == ("ready", True)
    topic = Topic.everywhere.get(source=source)
    assert (topic.title, topic.notes) == ("Rye", NOTES)
    with pytest.raises(Conflict, match=r"config\.topics"):
        topics.change(topic, {"notes": "Other."}, now=NOON)
    collect.change(
        source, {"config": {"topics": [{"title": "Rye", "notes": LINES[1]}]}}, workspace=workspace, now=NOON
    )
    work_slot(source)
    assert reread(topic).notes == LINES[1]


def test_lines_are_never_cut_nor_said_twice(workspace):
    long = "A line that goes on " + "and on " * 60 + "until nobody reads it."
    make_persona(workspace, approved_lines=[long, LINES[0]])
    make_topics(workspace)
    source = add_lane(workspace)
    work_slot(source)
    (first,) = write_all(source)
    assert first.body == LINES[0]
    collect.poll_now(source, now=NOON)
    work_slot(source)
    _, second = write_all(source)
    assert (second.status, second.error["code"]) == ("failed", "lines_used_up")


def test_line_may_be_said_again_after_ninety_days(workspace, clock):
    make_persona(workspace, approved_lines=[LINES[0]])
    make_topics(workspace)
    source = add_lane(workspace)
    work_slot(source)
    write_all(source)
    clock.shift(91 * DAY)
    work_slot(source)
    first, second = write_all(source)
    assert (first.body, second.body, second.status) == (LINES[0], LINES[0], "ready")


def test_banned_line_is_passed_by(workspace):
    make_persona(workspace, approved_lines=list(LINES[:2]), banned_words=["patience"])
    make_topics(workspace)
    source = add_lane(workspace, variants=2)
    work_slot(source)
    first, second = write_all(source)
    assert (first.body, second.status, second.error["code"]) == (LINES[0], "failed", "no_more_variants")


def test_run_of_a_deleted_topic_says_so(workspace, persona):
    (topic,) = make_topics(workspace, 1)
    source = add_lane(workspace)
    work_slot(source)
    topics.delete(topic, now=NOON)
    (item,) = write_all(source)
    assert (item.status, item.error["code"]) == ("failed", "topic_deleted")


def test_further_variant_of_a_lane_s_item_speaks_of_the_same_topic(workspace, persona):
    make_topics(workspace)
    source = add_lane(workspace)
    work_slot(source)
    (item,) = write_all(source)
    further = regenerate.regenerate(item, workspace=workspace, now=NOON)
    write_all(source)
    made = reread(further)
    assert (made.status, made.topic_id, made.parent_id) == ("ready", item.topic_id, item.pk)
    assert made.body in LINES
    assert made.body != item.body


# --- Time ------------------------------------------------------------------------------------------------------------


def test_missed_slots_are_made_up_for_once(workspace, persona, clock):
    make_topics(workspace)
    source = add_lane(workspace, config={"cadence": {"every_hours": 6}})
    work_slot(source)
    assert slot_of(source).due_at == NOON + 6 * HOUR
    clock.shift(5 * DAY)
    late = work_slot(source)
    assert late.status == "picked"
    following = slot_of(source)
    assert following.due_at == NOON + 5 * DAY + 6 * HOUR
    assert BrandSlot.everywhere.filter(source=source).count() == 3


def test_lane_that_is_switched_off_keeps_no_slot_and_gets_one_again(workspace, persona):
    make_topics(workspace)
    config = {"cadence": {"slots": [{"weekday": "wed", "time": "09:30"}], "timezone": "Europe/Berlin"}}
    source = add_lane(workspace, config=config)
    slot = slot_of(source)
    # NOON is a Monday.
    assert slot.due_at.isoformat() == "2027-03-03T08:30:00+00:00"
    assert resources.Source.serialize(reread(source))["next_poll_at"] == "2027-03-03T08:30:00.000Z"
    collect.change(source, {"status": "paused"}, workspace=workspace, now=NOON)
    assert state(slot, "status", "wake_at") == {"status": "skipped", "wake_at": None}
    assert personas.lane_slots.open_slot(source) is None
    with pytest.raises(Conflict):
        collect.poll_now(reread(source), now=NOON)
    collect.change(reread(source), {"status": "active"}, workspace=workspace, now=NOON + 3 * DAY)
    assert slot_of(source).due_at.isoformat() == "2027-03-10T08:30:00+00:00"
    collect.delete(reread(source), now=NOON)
    assert (personas.lane_slots.open_slot(source), reread(source).due_at) == (None, None)


def test_new_cadence_moves_the_open_slot(workspace, persona):
    make_topics(workspace)
    source = add_lane(workspace)
    work_slot(source)
    slot = slot_of(source)
    collect.change(
        reread(source), {"config": {"cadence": {"every_hours": 2}}}, workspace=workspace, now=NOON + HOUR
    )
    assert state(slot, "due_at", "status") == {"due_at": NOON + 2 * HOUR, "status": "waiting"}


def test_slot_that_a_person_overtook_writes_nothing(workspace, persona):
    make_topics(workspace)
    source = add_lane(workspace)
    in_hand = claimed(slot_of(source))
    collect.change(source, {"status": "paused"}, workspace=workspace, now=NOON)
    personas.run_slot(in_hand)
    assert (Generation.everywhere.count(), BrandPick.everywhere.count()) == (0, 0)
    assert reread(in_hand).status == "skipped"


def test_lane_rests_while_its_workspace_does(workspace, persona):
    make_topics(workspace)
    source = add_lane(workspace)
    Workspace.everywhere.filter(pk=workspace.pk).update(whitelisted_at=None)
    slot = work_slot(source)
    assert (slot.status, slot.wake_at) == ("waiting", NOON + limits.LANE_DELISTED_WAIT)
    assert Generation.everywhere.count() == 0


def test_slot_without_credits_waits_for_the_next_month(workspace, persona, clock):
    make_topics(workspace)
    CreditBalance.everywhere.filter(workspace=workspace).update(granted=0, available=0)
    LedgerEntry.everywhere.filter(workspace=workspace).delete()
    source = add_lane(workspace)
    slot = work_slot(source)
    april = NOON.replace(month=4, day=1, hour=0)
    assert state(slot, "status", "wake_at", "attempts") == {
        "status": "waiting_quota",
        "wake_at": april,
        "attempts": 0,
    }
    # The source promises no moment that has passed.
    assert (reread(source).last_error["code"], reread(source).due_at) == ("quota_exceeded", april)
    assert (GeneratedItem.everywhere.count(), BrandPick.everywhere.count()) == (0, 0)
    clock.move_to(april)
    assert work_slot(source).status == "picked"
    assert reread(source).last_error is None


@pytest.mark.django_db(transaction=True)
def test_two_lanes_of_one_pool_at_the_same_moment_take_different_topics(workspace, persona, together):
    make_topics(workspace, 2)
    first, second = add_lane(workspace), add_lane(workspace, name="More bread")
    in_hand = [claimed(slot_of(first)), claimed(slot_of(second))]
    answers = together(*(partial(personas.run_slot, slot) for slot in in_hand))
    assert answers == [None, None]
    assert {reread(slot).status for slot in in_hand} == {"picked"}
    assert sorted(title for lane in (first, second) for title, _, _ in picks_of(lane)) == [
        "Topic A",
        "Topic B",
    ]
    assert balance(workspace) == (8, 2, 0)


@pytest.mark.django_db(transaction=True)
def test_slot_that_is_worked_while_its_lane_is_switched_off_ends_one_way(workspace, persona, together):
    make_topics(workspace)
    source = add_lane(workspace)
    in_hand = claimed(slot_of(source))
    together(
        partial(personas.run_slot, in_hand),
        partial(collect.change, source, {"status": "paused"}, workspace=workspace, now=NOON),
    )
    is_picked = reread(in_hand).status == "picked"
    assert reread(source).status == "paused"
    assert personas.lane_slots.open_slot(source) is None
    assert Generation.everywhere.count() == int(is_picked)
    assert balance(workspace) == (10 - int(is_picked), int(is_picked), 0)


# --- Told ------------------------------------------------------------------------------------------------------------


def test_few_topics_are_told_once_a_week(workspace, persona, clock):
    make_topics(workspace, limits.TOPICS_ELIGIBLE_LEAST - 1)
    source = add_lane(workspace, config={"cadence": {"every_hours": 24}})
    assert work_slot(source).note["code"] == "few_topics"
    source.refresh_from_db()
    assert ([one["code"] for one in source.notes], source.last_error) == (["few_topics"], None)
    notice = Notice.everywhere.get(kind="few_topics")
    assert notice.title == "Bread runs out of topics"
    assert notice.text.startswith("Only 6 topics may be taken now")
    clock.shift(DAY)
    work_slot(source)
    assert Notice.everywhere.filter(kind="few_topics").count() == 1
    clock.shift(6 * DAY)
    work_slot(source)
    assert Notice.everywhere.filter(kind="few_topics").count() == 2


def test_lane_without_topics_says_so_and_tries_at_its_next_slot(workspace, persona):
    source = add_lane_of_no_topics(workspace)
    slot = work_slot(source)
    assert (slot.status, slot.note["code"], slot.eligible) == ("empty", "no_topic", 0)
    assert reread(source).last_error["code"] == "no_topic"
    assert slot_of(source).due_at == NOON + DAY
    assert balance(workspace) == (10, 0, 0)


def test_whether_a_lane_can_make_something_reads_its_persona_once(workspace, persona):
    make_topics(workspace, 1)
    source = add_lane(workspace)
    with CaptureQueriesContext(connection) as asked:
        assert personas.why_unavailable(source) is None
    assert sum('FROM "persona" ' in one["sql"] for one in asked) == 1


def test_slot_that_broke_again_and_again_is_left_out(workspace, persona):
    source = add_lane_of_no_topics(workspace)
    slot = slot_of(source)
    personas.give_up(claimed(slot))
    assert (reread(slot).status, reread(slot).note["code"]) == ("empty", "gave_up")
    assert slot_of(source).due_at == NOON + DAY


def test_log_tells_of_every_slot_and_pick_with_two_statements(
    workspace, charlies, persona, django_assert_num_queries
):
    (topic,) = make_topics(workspace, 1)
    source = add_lane(workspace)
    work_slot(source)
    (item,) = write_all(source)
    collect.poll_now(source, now=NOON)
    work_slot(source)
    add_lane_of_no_topics(charlies)
    with django_assert_num_queries(2):
        following, empty, picked = recent_slots(source)
        assert [(pick.topic, pick.item, pick.decision) for pick in picked.picks] == [(topic, item, "used")]
    assert [one.slot.status for one in (following, empty, picked)] == ["waiting", "empty", "picked"]
    assert (empty.slot.note["code"], empty.picks) == ("no_topic", [])
    assert [one.slot.pk for one in recent_slots(source, most=1)] == [following.slot.pk]
