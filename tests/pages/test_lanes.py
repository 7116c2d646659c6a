"""Brand lanes as people manage them: who speaks, of which topics, when; what would come is shown before it is saved."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from config.core.ids import encode
from pipeline.ingest import collect
from pipeline.models import BrandPick, BrandSlot, GeneratedItem, Persona, Source, WorkspaceDefaults
from pipeline.pages.sources import lane_cadence, views
from pipeline.personas import crud, topics
from tests.pages.answers import at
from tests.pipeline.personas.lanes import LINES, add_lane, make_persona, make_topics, work_slot, write_all


@pytest.fixture
def editor(editor, newsroom):
    make_persona(newsroom, approved_lines=list(LINES))
    return editor


def form_of(answer, **changes):
    form = answer.context["form"]
    shown = {name: form[name].value() for name in form.fields}
    return {**{name: value for name, value in shown.items() if value not in (None, "", False, [])}, **changes}


def fill(client, workspace, **changes):
    """The form of a new lane as it begins, with some changes."""
    return form_of(client.get(at(workspace, "lane_add")), **changes)


def saved(client, workspace, **changes):
    form = fill(client, workspace, save="", once=f"x{Source.everywhere.count()}", **changes)
    answer = client.post(at(workspace, "lane_add"), form)
    assert answer.status_code == 302, answer.context["form"].errors
    return Source.everywhere.filter(workspace=workspace, type="brand").latest("id")


def said(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "every 24 hours"),
        ({"cadence": {"every_hours": 1}}, "every hour"),
        ({"cadence": {"every_hours": 6, "timezone": "Europe/Berlin"}}, "every 6 hours"),
        (
            {"cadence": {"slots": lane_cadence.Grid(tuple(lane_cadence.DAYS), ("09:00",)).slots}},
            "every day at 09:00",
        ),
        (
            {
                "cadence": {
                    "slots": lane_cadence.Grid(tuple(lane_cadence.DAYS)[:5], ("09:00", "17:30")).slots,
                    "timezone": "Europe/Berlin",
                }
            },
            "Monday to Friday at 09:00, 17:30, Europe/Berlin",
        ),
        (
            {
                "cadence": {
                    "slots": [{"weekday": "thu", "time": "17:00"}, {"weekday": "mon", "time": "09:30"}]
                }
            },
            "Monday 09:30; Thursday 17:00",
        ),
        ({"cadence": {"slots": [{"weekday": "tue", "time": "09:30"}]}}, "Tuesday at 09:30"),
    ],
)
def test_cadence_is_told_in_words(config, words):
    assert lane_cadence.describe(config) == words


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("09:00", ("09:00",)),
        ("17:30, 9:05;9:05", ("09:05", "17:30")),
        ("24:00", None),
        ("9", None),
        ("", ()),
        ("at 9:00", None),
    ],
)
def test_times_are_read(text, times):
    assert lane_cadence.read_times(text) == times


def test_the_way_is_offered_beside_the_address(editor, newsroom):
    assert at(newsroom, "lane_add") in editor.get(at(newsroom, "source_add")).content.decode()


def test_next_slots_and_price_are_shown_and_nothing_is_saved(editor, newsroom):
    make_topics(newsroom)
    form = fill(
        editor, newsroom, preview="", days=["mon", "tue"], times="9:30, 17:00", engines=["Short Post"],
        timezone="America/New_York",
    )  # fmt: skip
    answer = editor.post(at(newsroom, "lane_add"), form)
    seen = answer.context["seen"]
    assert (seen.week, seen.price, seen.price_of_week, seen.eligible) == (4, 1, 4, 8)
    assert (seen.timezone, len(seen.next_at)) == ("America/New_York", 5)
    text = said(answer)
    assert "1 credit per slot · 4 credits per week" in text
    assert "8 topics available" in text
    assert Source.everywhere.filter(type="brand").count() == 0


def test_a_lane_is_saved_with_all_that_was_chosen(editor, newsroom):
    first, second, *_ = make_topics(newsroom)
    persona = WorkspaceDefaults.everywhere.get(workspace=newsroom).persona
    source = saved(
        editor, newsroom, name="Bread", persona=encode("per", persona.pk), scope="some",
        topics=[encode("top", first.pk), encode("top", second.pk)], days=["mon"], times="09:30",
        timezone="Europe/Lisbon", engines=["Short Post"], autopilot="on",
    )  # fmt: skip
    assert source.config == {
        "pool": sorted([encode("top", first.pk), encode("top", second.pk)]),
        "cadence": {"slots": [{"weekday": "mon", "time": "09:30"}], "timezone": "Europe/Lisbon"},
    }
    assert (source.name, source.persona_id, source.engines, source.autopilot) == (
        "Bread", persona.pk, ["Short Post"], True,
    )  # fmt: skip
    slot = BrandSlot.everywhere.get(source=source)
    assert (slot.status, slot.due_at) == ("waiting", source.due_at)


def test_without_formats_of_its_own_a_lane_shows_those_that_it_makes(editor, newsroom):
    make_topics(newsroom)
    WorkspaceDefaults.everywhere.filter(workspace=newsroom).update(engines=["Short Post", "Thread"])
    source = saved(editor, newsroom, engines=[])
    answer = editor.get(at(newsroom, "source_page", src=source.pk))
    ticked = re.findall(r'name="engines" value="([^"]+)"[^>]* checked', answer.content.decode())
    assert (answer.context["formats"], ticked) == (["Short Post"], ["Short Post"])


def test_only_chosen_topics_are_taken(editor, newsroom):
    one, *_others = make_topics(newsroom)
    source = saved(editor, newsroom, scope="some", topics=[encode("top", one.pk)])
    slot = work_slot(source)
    assert (slot.eligible, [pick.title for pick in slot.picks.all()][:1]) == (1, [one.title])


def test_hours_are_the_other_way(editor, newsroom):
    make_topics(newsroom)
    source = saved(editor, newsroom, rhythm="hours", hours="6")
    assert source.config == {"cadence": {"every_hours": 6}}


def test_what_is_wrong_is_said_beside_its_field(editor, newsroom, charlie):
    other = crud.create(newsroom, {"name": "Otto"}, by="bob", now=newsroom.created_at)
    theirs = topics.create(newsroom, {"title": "Ferries", "persona_id": other.pk}, now=newsroom.created_at)
    default = encode("per", WorkspaceDefaults.everywhere.get(workspace=newsroom).persona_id)
    for changes, field in (
        ({"scope": "some"}, "topics"),
        ({"days": []}, "days"),
        ({"times": "soon"}, "times"),
        ({"times": " ".join(f"{hour:02}:00" for hour in range(11))}, "times"),
        ({"rhythm": "hours", "hours": ""}, "hours"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"persona": default, "scope": "some", "topics": [encode("top", theirs.pk)]}, "topics"),
        ({"persona": encode("per", newsroom.pk)}, "persona"),
    ):
        answer = editor.post(at(newsroom, "lane_add"), fill(editor, newsroom, save="", **changes))
        assert (changes, list(answer.context["form"].errors)) == (changes, [field])
        assert "No preview" in said(answer)
    assert Source.everywhere.filter(type="brand").count() == 0


def test_few_topics_are_told_before_saving(editor, newsroom):
    make_topics(newsroom, 6)
    text = said(editor.get(at(newsroom, "lane_add")))
    assert "6 topics available" in text
    persona = WorkspaceDefaults.everywhere.get(workspace=newsroom).persona_id
    assert at(newsroom, "topics", per=persona) in editor.get(at(newsroom, "lane_add")).content.decode()
    topics.create(newsroom, {"title": "The seventh"}, now=newsroom.created_at)
    assert "7 topics available" in said(editor.get(at(newsroom, "lane_add")))


def test_without_a_persona_the_page_leads_to_one(editor, newsroom):
    Persona.everywhere.filter(workspace=newsroom).update(deleted_at=newsroom.created_at)
    answer = editor.get(at(newsroom, "lane_add"))
    assert "No personas yet" in said(answer)
    assert at(newsroom, "persona_create") in answer.content.decode()


def test_a_double_click_makes_one_lane(editor, newsroom):
    make_topics(newsroom)
    form = fill(editor, newsroom, save="", once="same")
    for _ in range(2):
        editor.post(at(newsroom, "lane_add"), form)
    assert Source.everywhere.filter(type="brand").count() == 1


def test_past_the_plan_it_is_refused_in_words(editor, newsroom):
    make_topics(newsroom)
    newsroom.plan.active_sources_most = 0
    newsroom.plan.save(update_fields=["active_sources_most"])
    answer = editor.post(at(newsroom, "lane_add"), fill(editor, newsroom, save="", once="x"))
    assert "The plan has 0 active sources" in said(answer)


def test_settings_are_changed_and_the_slot_moves(editor, newsroom):
    make_topics(newsroom)
    source = saved(editor, newsroom, days=["mon"], times="09:30")
    page = at(newsroom, "source_edit", src=source.pk)
    assert editor.post(page, form_of(editor.get(page), preview="", times="17:00")).context["cadence"] == (
        "Monday at 17:00"
    )
    source.refresh_from_db()
    before = source.due_at
    assert source.config["cadence"]["slots"] == [{"weekday": "mon", "time": "09:30"}]
    assert editor.post(page, form_of(editor.get(page), save="", times="17:00")).status_code == 302
    source.refresh_from_db()
    assert source.config["cadence"]["slots"] == [{"weekday": "mon", "time": "17:00"}]
    assert (source.due_at - before) % timedelta(days=7) == timedelta(hours=7, minutes=30)


def test_what_the_fields_can_t_say_is_kept(editor, newsroom):
    config = {
        "topics": ["Rye", "Oats"],
        "cadence": {
            "slots": [{"weekday": "mon", "time": "09:30"}, {"weekday": "thu", "time": "17:00"}],
            "timezone": "Europe/Berlin",
        },
    }
    settings = collect.SourceSettings(type="brand", name="Bread", config=config, variants=2)
    source = collect.register(newsroom, settings)
    page = at(newsroom, "source_edit", src=source.pk)
    answer = editor.get(page)
    assert "Own list: Rye, Oats" in said(answer)
    assert editor.post(page, form_of(answer, save="", name="Grain")).status_code == 302
    source.refresh_from_db()
    assert (source.name, source.config, source.variants) == ("Grain", config, 2)


def test_it_is_paused_resumed_run_and_deleted_like_others(editor, newsroom):
    make_topics(newsroom)
    source = saved(editor, newsroom)
    page = at(newsroom, "source_page", src=source.pk)
    assert "Active" in said(editor.get(page))
    editor.post(at(newsroom, "source_pause", src=source.pk), {"active": "no"})
    assert "Paused until you resume it." in said(editor.get(page))
    (row,) = editor.get(at(newsroom, "sources_page")).context["rows"]
    assert (row["where"], row["next"]) == ("every day at 09:00", None)
    editor.post(at(newsroom, "source_pause", src=source.pk), {"active": "yes"})
    answer = editor.post(at(newsroom, "source_poll_now", src=source.pk), follow=True)
    assert "Choosing a topic." in said(answer)
    assert work_slot(source).status == "picked"
    editor.post(at(newsroom, "source_delete", src=source.pk))
    editor.post(at(newsroom, "source_restore", src=source.pk))
    source.refresh_from_db()
    assert (source.deleted_at, source.due_at is not None) == (None, True)


def test_a_lane_whose_topics_are_gone_says_what_to_do(editor, newsroom):
    (topic,) = make_topics(newsroom, 1)
    source = saved(editor, newsroom)
    topics.delete(topic, now=newsroom.created_at)
    work_slot(source)
    text = said(editor.get(at(newsroom, "source_page", src=source.pk)))
    assert "No result" in text
    assert "No topic may be taken now" in text


def test_lane_that_could_say_nothing_is_told_before_it_is_saved_and_refused(editor, newsroom):
    make_persona(newsroom, approved_lines=[])
    make_topics(newsroom, 2)
    sentence = "This workspace has no model, and nothing else that the lane may say"
    assert sentence in said(editor.get(at(newsroom, "lane_add")))
    answer = editor.post(at(newsroom, "lane_add"), fill(editor, newsroom, save="", once="x"))
    assert (answer.status_code, sentence in str(answer.context["form"].errors)) == (200, True)
    assert not Source.everywhere.filter(type="brand").exists()


def test_log_says_what_each_slot_did(editor, newsroom):
    make_topics(newsroom, 1, angles=["a myth"], notes="Rye dough rests for 20 hours.")
    source = saved(editor, newsroom, engines=["Short Post"])
    page = at(newsroom, "source_page", src=source.pk)
    assert [str(one["status"].label) for one in editor.get(page).context["slots"]] == ["Upcoming"]
    work_slot(source)
    pick = BrandPick.everywhere.get()
    assert "Topic A · a myth Generating" in said(editor.get(page))
    reason = {"code": "too_near", "message": "It is 48 % like something that was said.", "likeness": 0.48}
    BrandPick.everywhere.filter(pk=pick.pk).update(
        decision="too_near", reason=reason, words="Rye is patient.", decided_at=newsroom.created_at
    )
    text = said(editor.get(page))
    assert "Skipped: too similar" in text
    assert reason["message"] in text
    assert "Rye is patient." in text
    assert "of 1 topic " in text
    # The next one finds nothing: its only topic rests.
    work_slot(source)
    slots = editor.get(page).context["slots"]
    assert [str(one["status"].label) for one in slots] == ["Upcoming", "No result", "Chosen"]
    assert slots[1]["message"].startswith("No topic may be taken now")


def test_made_item_stands_in_the_log(editor, newsroom):
    make_persona(newsroom, approved_lines=list(LINES))
    make_topics(newsroom, 8)
    source = saved(editor, newsroom, engines=["Short Post"])
    work_slot(source)
    (item,) = write_all(source)
    page = at(newsroom, "source_page", src=source.pk)
    (pick,) = editor.get(page).context["slots"][1]["picks"]
    assert (str(pick["decision"].label), pick["item"], item.status) == ("Created", item, "ready")
    GeneratedItem.everywhere.filter(pk=item.pk).update(deleted_at=newsroom.created_at)
    assert editor.get(page).context["slots"][1]["picks"][0]["item"] is None


def test_log_of_a_lane_has_pages(editor, newsroom):
    make_topics(newsroom)
    source = saved(editor, newsroom)
    for _ in range(views.LANE_SLOTS):
        work_slot(source)
    page = at(newsroom, "source_page", src=source.pk)
    first = editor.get(page)
    second = editor.get(f"{page}?before={first.context['older']}")
    shown = [one["slot"].pk for answer in (first, second) for one in answer.context["slots"]]
    assert (len(shown), len(set(shown)), second.context["older"]) == (
        views.LANE_SLOTS + 1,
        views.LANE_SLOTS + 1,
        "",
    )


def test_nothing_of_another_workspace_is_there(editor, newsroom, charlie):
    from accounts import workspaces

    theirs = workspaces.memberships_of(charlie)[0].workspace
    make_topics(theirs, 3, notes="Theirs alone is the recipe of the rye bread.")
    lane = add_lane(theirs, name="Secret lane")
    assert editor.get(at(newsroom, "source_edit", src=lane.pk)).status_code == 404
    form = editor.get(at(newsroom, "lane_add")).context["form"]
    assert (form.topics_by_id, len(form.fields["persona"].choices)) == ({}, 2)
