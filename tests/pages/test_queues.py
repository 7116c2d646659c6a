"""Publishing times by page: the queues of a workspace, what is promised by them, and the hold of all publishing."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

import pytest
from django.urls import reverse
from django.utils import timezone

from config.core.ids import encode
from pipeline import publish
from pipeline.models import GeneratedItem, Outlet, Publication, PublishHold, PublishQueue
from pipeline.publish import workspace_hold
from pipeline.schedule import queues
from tests.pages.answers import at, errors, said, text_of
from tests.pipeline.steps import make_items, promise, reread

FORM = {
    "name": "Nights",
    "timezone": "Asia/Kathmandu",
    "day_0": "23:15",
    "day_6": "8:30, 23:15",
    "on_gap": "skip",
    "on_overlap": "second",
    "save": "",
}


@pytest.fixture
def usual(newsroom):
    """The default queue that every workspace begins with."""
    return PublishQueue.everywhere.get(workspace=newsroom, is_default=True)


@pytest.fixture
def nights(newsroom, stage):
    slots = [{"weekday": day, "time": "23:15"} for day in range(7)]
    return queues.create(
        newsroom,
        {"name": "Nights", "timezone": "Asia/Kathmandu", "slots": slots, "outlets": [stage.pk]},
        by="alice@example.test",
    )


def items(workspace, count):
    return [
        make_items(
            workspace,
            title=f"News {number}",
            body=f"News number {number} of the day. " * 6,
            url=f"https://n.example/{number}",
        )[0]
        for number in range(count)
    ]


# --- The list --------------------------------------------------------------------------------------------------------


def test_the_list_tells_the_week_the_next_slots_and_who_uses_it(editor, newsroom, usual, nights, stage):
    answer = editor.get(at(newsroom, "queues_page"))
    rows = answer.context["rows"]
    assert [(row["queue"], row["week"]) for row in rows] == [
        (usual, "Monday to Friday at 09:00, 12:00, 17:00"),
        (nights, "Every day at 23:15"),
    ]
    for row in rows:
        slots = publish.moments_of(row["queue"], after=timezone.now())
        assert row["next"] == [slot.moment for slot in islice(slots, 3)]
    assert [[one.name for one in row["outlets"]] for row in rows] == [
        [one.name for one in Outlet.objects.of(newsroom).filter(queue=None).order_by("id")],
        ["Stage"],
    ]
    assert {"Europe/Berlin", "Asia/Kathmandu"} <= set(text_of(answer).replace("<", ">").split(">"))


def test_days_with_the_same_times_are_told_together(editor, newsroom, nights):
    slots = [{"weekday": day, "time": "18:45"} for day in range(5)]
    slots += [{"weekday": 5, "time": at} for at in ("09:00", "21:30")]
    queues.change(nights, {"slots": slots}, by="alice@example.test")
    rows = editor.get(at(newsroom, "queues_page")).context["rows"]
    assert rows[1]["week"] == "Monday to Friday at 18:45; Saturday at 09:00, 21:30"


def test_a_paused_queue_and_one_without_times_say_so(editor, newsroom, usual, nights):
    queues.change(nights, {"is_paused": True}, by="alice@example.test")
    queues.change(usual, {"slots": []}, by="alice@example.test")
    answer = editor.get(at(newsroom, "queues_page"))
    assert [row["next"] for row in answer.context["rows"]] == [[], []]
    assert ["None while paused" in text_of(answer), "No times set" in text_of(answer)] == [
        True,
        True,
    ]


def test_without_a_queue_the_page_says_how_to_begin(editor, newsroom, usual):
    PublishQueue.everywhere.all().delete()
    before = editor.get(at(newsroom, "queues_page"))
    answer = editor.post(at(newsroom, "queue_begin"))
    made = PublishQueue.everywhere.get(workspace=newsroom)
    assert "No queues yet" in text_of(before)
    assert at(newsroom, "queue_begin") in text_of(before)
    assert (answer["Location"], said(answer)) == (
        at(newsroom, "queue_edit", que=made.pk),
        ["Weekdays created."],
    )
    assert (made.is_default, len(made.slots), made.timezone) == (True, 15, "Europe/Berlin")


def test_a_viewer_sees_all_and_is_offered_nothing(vera, as_person, newsroom, nights):
    workspace_hold.hold_workspace(newsroom, reason="A crisis.", by="alice@example.test")
    page = text_of(as_person(vera).get(at(newsroom, "queues_page")))
    assert ["Nights" in page, "A crisis." in page] == [True, True]
    acts = [at(newsroom, name) for name in ("queue_add", "queues_hold", "queues_release")] + [
        at(newsroom, name, que=nights.pk) for name in ("queue_edit", "queue_pause", "queue_delete")
    ]
    assert [address for address in acts if f'"{address}"' in page] == []


def test_another_workspaces_queue_is_none(editor, newsroom, charlie):
    theirs = PublishQueue.everywhere.exclude(workspace=newsroom).get()
    for name in ("queue_edit", "queue_delete", "queue_pause"):
        assert editor.post(at(newsroom, name, que=theirs.pk), FORM).status_code == 404
    assert reread(theirs).name == "Weekdays"


# --- Made and changed ------------------------------------------------------------------------------------------------


def test_a_queue_is_added_with_its_outlets(editor, newsroom, stage):
    answer = editor.post(at(newsroom, "queue_add"), {**FORM, "outlets": [encode("out", stage.pk)]})
    made = PublishQueue.everywhere.get(workspace=newsroom, is_default=False)
    assert (answer["Location"], said(answer)) == (at(newsroom, "queues_page"), ["Nights saved."])
    assert (made.name, made.timezone, made.on_gap, made.on_overlap) == (
        "Nights",
        "Asia/Kathmandu",
        "skip",
        "second",
    )
    assert made.slots == [
        {"weekday": 0, "time": "23:15"},
        {"weekday": 6, "time": "08:30"},
        {"weekday": 6, "time": "23:15"},
    ]
    assert reread(stage).queue == made


def test_a_double_click_adds_one(editor, newsroom):
    for _ in range(2):
        answer = editor.post(at(newsroom, "queue_add"), {**FORM, "once": "same"})
    assert answer.status_code == 302
    assert PublishQueue.everywhere.filter(workspace=newsroom, name="Nights").count() == 1


def test_a_new_queue_begins_with_weekdays_on_the_workspaces_clocks(editor, newsroom):
    answer = editor.get(at(newsroom, "queue_add"))
    form = answer.context["form"]
    assert [day.value() for day in form.days] == ["09:00, 12:00, 17:00"] * 5 + [None] * 2
    assert form["timezone"].value() == "Europe/Berlin"
    usual = PublishQueue.everywhere.get(workspace=newsroom)
    slots = islice(publish.moments_of(usual, after=timezone.now()), 10)
    assert answer.context["next"] == [(slot.moment, 0) for slot in slots]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": " "}, {"name": ["This field is required."]}),
        (
            {"timezone": "Europe/Bonn"},
            {"timezone": ["Select a valid choice. Europe/Bonn is not one of the available choices."]},
        ),
        ({"day_2": "24:00"}, {"day_2": ["Enter times such as 09:00, 17:30."]}),
        ({"day_3": "noon"}, {"day_3": ["Enter times such as 09:00, 17:30."]}),
        (
            {"day_1": ", ".join(f"{n // 60:02}:{n % 60:02}" for n in range(166))},
            {"day_6": ["At most 168 slots per week."]},
        ),
        (
            {"on_gap": "reject"},
            {"on_gap": ["Select a valid choice. reject is not one of the available choices."]},
        ),
        (
            {"outlets": ["out_00000000000000000000000000"]},
            {
                "outlets": [
                    "Select a valid choice. out_00000000000000000000000000 is not one of the available choices."
                ]
            },
        ),
    ],
)
def test_what_makes_no_queue_is_said_at_its_field(editor, newsroom, changes, expected):
    answer = editor.post(at(newsroom, "queue_add"), {**FORM, **changes})
    assert (answer.status_code, errors(answer)) == (200, expected)
    # Whatever else is wrong, times that are sound have their preview.
    is_of_times = not {"name", "outlets"} & set(changes)
    assert ("No preview" in text_of(answer)) is is_of_times
    assert PublishQueue.everywhere.filter(workspace=newsroom).count() == 1


def test_what_the_stage_refuses_is_said_in_the_form(editor, newsroom, monkeypatch):
    monkeypatch.setattr(queues, "MAX_QUEUES", 1)
    answer = editor.post(at(newsroom, "queue_add"), FORM)
    assert errors(answer) == {"__all__": ["A workspace has 1 queues at most."]}


def test_the_next_slots_are_shown_before_anything_is_saved(editor, newsroom, usual):
    sent = {name: value for name, value in FORM.items() if name != "save"}
    answer = editor.post(at(newsroom, "queue_add"), {**sent, "preview": ""})
    seen = PublishQueue(
        timezone="Asia/Kathmandu",
        slots=[{"weekday": day, "time": time} for day, time in ((0, "23:15"), (6, "08:30"), (6, "23:15"))],
    )
    slots = islice(publish.moments_of(seen, after=timezone.now()), 10)
    assert answer.context["next"] == [(slot.moment, 0) for slot in slots]
    assert answer.context["zone"] == "Asia/Kathmandu"
    assert PublishQueue.everywhere.filter(workspace=newsroom).get() == usual


def test_the_next_slots_say_how_many_posts_each_has(editor, newsroom, nights, stage):
    row = promise(items(newsroom, 1)[0], stage, is_queued=True)
    answer = editor.get(at(newsroom, "queue_edit", que=nights.pk))
    assert answer.context["next"][0] == (row.due_at, 1)
    assert [count for _, count in answer.context["next"][1:]] == [0] * 9


def test_a_change_leaves_what_was_promised(editor, newsroom, nights, stage):
    row = promise(items(newsroom, 1)[0], stage, is_queued=True)
    address = at(newsroom, "queue_edit", que=nights.pk)
    form = editor.get(address).context["form"]
    sent = {name: form[name].value() or "" for name in form.fields}
    assert sent["outlets"] == [encode("out", stage.pk)]
    answer = editor.post(address, {**sent, "day_0": "", "day_1": "7:00", "save": ""})
    changed = reread(nights)
    assert answer["Location"] == at(newsroom, "queues_page")
    assert changed.slots == [
        {"weekday": day, "time": "07:00" if day == 1 else "23:15"} for day in range(1, 7)
    ]
    assert (changed.version, reread(row).due_at, reread(stage).queue) == (2, row.due_at, nights)


def test_what_another_changed_meanwhile_is_not_written_over_unseen(editor, newsroom, nights):
    address = at(newsroom, "queue_edit", que=nights.pk)
    form = editor.get(address).context["form"]
    sent = {name: form[name].value() or "" for name in form.fields}
    queues.change(nights, {"name": "Late nights"}, by="bob@example.test")
    answer = editor.post(address, {**sent, "name": "My nights", "save": ""})

    assert answer.context["form"].non_field_errors() == [
        "Edited since you opened it. Save again to overwrite, or cancel to see it."
    ]
    assert (reread(nights).name, answer.context["form"]["name"].value()) == ("Late nights", "My nights")
    again = {name: answer.context["form"][name].value() or "" for name in form.fields}
    editor.post(address, {**again, "save": ""})
    assert (reread(nights).name, reread(nights).version) == ("My nights", 3)


def test_an_outlet_that_is_unticked_uses_the_default_queue(editor, newsroom, nights, stage, usual):
    editor.post(at(newsroom, "queue_edit", que=nights.pk), FORM)
    assert reread(stage).queue is None
    answer = editor.get(at(newsroom, "queue_edit", que=usual.pk))
    assert "outlets" not in answer.context["form"].fields
    assert stage in answer.context["users"]


def test_the_default_queue_is_changed_without_outlets(editor, newsroom, usual, nights, stage):
    editor.post(at(newsroom, "queue_edit", que=usual.pk), {**FORM, "outlets": [encode("out", stage.pk)]})
    assert (reread(usual).name, reread(usual).is_default, reread(stage).queue) == ("Nights", True, nights)


def test_a_zone_that_no_list_has_stays(editor, newsroom, usual):
    queues.change(usual, {"timezone": "Etc/GMT+5"}, by="alice@example.test")
    address = at(newsroom, "queue_edit", que=usual.pk)
    assert editor.post(address, {**FORM, "timezone": "Etc/GMT+5"}).status_code == 302
    assert reread(usual).timezone == "Etc/GMT+5"


def test_a_zone_that_is_gone_hinders_no_page(editor, newsroom, usual):
    PublishQueue.everywhere.filter(pk=usual.pk).update(timezone="Europe/Bonn")
    assert "Choose another time zone" in text_of(editor.get(at(newsroom, "queues_page")))
    address = at(newsroom, "queue_edit", que=usual.pk)
    assert "No preview" in text_of(editor.get(address))
    answer = editor.post(address, {**FORM, "timezone": "Europe/Bonn"})
    assert errors(answer) == {"timezone": ["Europe/Bonn no longer exists. Choose another."]}
    assert editor.post(address, {**FORM, "timezone": "Europe/Berlin"}).status_code == 302


# --- Paused and deleted ----------------------------------------------------------------------------------------------


def test_a_pause_is_undone_by_its_message(editor, newsroom, nights):
    address = at(newsroom, "queue_pause", que=nights.pk)
    paused = editor.post(address)
    assert reread(nights).is_paused is True
    assert "Nights paused. Scheduled posts wait." in said(paused)[0]
    assert f'action="{address}"' in said(paused)[0]
    again = editor.post(address, {"on": "yes"})
    assert reread(nights).is_paused is False
    assert said(again)[-1] == "Nights resumed."


def test_deleting_says_first_what_becomes_of_what_was_promised(editor, newsroom, nights, stage):
    row = promise(items(newsroom, 1)[0], stage, is_queued=True)
    address = at(newsroom, "queue_delete", que=nights.pk)
    page = text_of(editor.get(address))
    assert "1 scheduled post keeps its time." in page
    assert "1 outlet will use the default queue." in page
    queues.change(nights, {"is_paused": True}, by="alice@example.test")
    assert "Overdue posts will publish now." in text_of(editor.get(address))
    answer = editor.post(address)
    assert (answer["Location"], said(answer)) == (at(newsroom, "queues_page"), ["Nights deleted."])
    assert not PublishQueue.everywhere.filter(pk=nights.pk).exists()
    assert (reread(stage).queue, reread(row).status, reread(row).due_at) == (None, "scheduled", row.due_at)


def test_the_default_queue_stays(editor, newsroom, usual):
    address = at(newsroom, "queue_delete", que=usual.pk)
    assert editor.get(address).status_code == 404
    assert said(editor.post(address)) == ["The default queue stays: outlets without one of their own use it."]
    assert reread(usual).is_default is True


# --- The hold --------------------------------------------------------------------------------------------------------


def test_holding_asks_why_and_shows_what_waits(editor, newsroom, stage):
    one, two, three = items(newsroom, 3)
    promise(one, stage, publish_at=timezone.now() + timedelta(hours=1))
    promise(
        two,
        stage,
        publish_at=timezone.now() + timedelta(hours=2),
        late_policy="next_slot",
        max_lateness_minutes=1,
    )
    promise(
        three,
        stage,
        publish_at=timezone.now() + timedelta(hours=3),
        late_policy="hold",
        max_lateness_minutes=60,
    )
    address = at(newsroom, "queues_hold")
    shown = editor.get(address)
    assert [row["label"] for row in shown.context["rows"]] == [
        "On time, or now if overdue",
        "On time, or next slot after 1 min",
        "On time, or not at all after 60 min",
    ]
    assert errors(editor.post(address, {"reason": "  "})) == {"reason": ["This field is required."]}
    assert PublishHold.everywhere.count() == 0
    answer = editor.post(address, {"reason": "A crisis."})
    row = PublishHold.everywhere.get(workspace=newsroom)
    assert (row.reason, row.set_by) == ("A crisis.", "bob@example.test")
    assert (answer["Location"], said(answer)) == (
        at(newsroom, "queues_page"),
        ["Publishing paused. Posts already being sent will finish."],
    )


def test_while_it_is_held_the_page_says_who_since_when_and_why(editor, newsroom):
    row = workspace_hold.hold_workspace(newsroom, reason="A crisis.", by="alice@example.test")
    answer = editor.get(at(newsroom, "queues_page"))
    page = text_of(answer)
    assert ["alice@example.test" in page, row.created_at.isoformat() in page] == [True, True]
    assert page.count("A crisis.") == 2
    home = editor.get(reverse("home", kwargs={"ws": newsroom.pk}))
    assert [(one.title, one.link) for one in home.context["banners"]] == [
        ("Publishing is paused.", at(newsroom, "queues_page"))
    ]


def test_another_reason_keeps_the_hold(editor, newsroom):
    row = workspace_hold.hold_workspace(newsroom, reason="A crisis.", by="alice@example.test")
    address = at(newsroom, "queues_hold")
    assert editor.get(address).context["form"]["reason"].value() == "A crisis."
    editor.post(address, {"reason": "A strike."})
    kept = PublishHold.everywhere.get()
    assert (kept.pk, kept.reason, kept.created_at) == (row.pk, "A strike.", row.created_at)


def test_letting_go_shows_what_then_happens(editor, newsroom, stage, nights):
    now = timezone.now()
    late, soon, held, moved, kept = items(newsroom, 5)
    workspace_hold.hold_workspace(newsroom, reason="A crisis.", by="alice@example.test")
    for item, row in (
        (late, {}),
        (soon, {"publish_at": now + timedelta(hours=1)}),
        (held, {}),
        (moved, {"late_policy": "next_slot", "max_lateness_minutes": 5}),
        (kept, {"late_policy": "hold", "max_lateness_minutes": 5}),
    ):
        promise(item, stage, **row)
    GeneratedItem.everywhere.filter(pk=held.pk).update(held="source_changed")
    for number, item in enumerate((late, held, moved, kept)):
        Publication.everywhere.filter(item=item).update(due_at=now - timedelta(minutes=30 - number))
    answer = editor.get(at(newsroom, "queues_release"))
    assert [(row["title"], str(row["label"]), row["why"]) for row in answer.context["rows"]] == [
        ("News 0", "Publishes now", ""),
        ("News 2", "Stays unpublished", "Source changed. Approve to publish."),
        ("News 3", "Moves to next slot", ""),
        (
            "News 4",
            "Stays unpublished",
            "Too late to publish. Reschedule or unschedule it.",
        ),
        ("News 1", "At its time", ""),
    ]
    counts = [(str(label), count) for _, label, count in answer.context["counts"]]
    assert counts == [
        ("Publishes now", 1),
        ("At its time", 1),
        ("Moves to next slot", 1),
        ("Stays unpublished", 2),
    ]
    assert editor.get(at(newsroom, "queues_page")).context["counts"] == answer.context["counts"]


def test_what_a_paused_queue_promised_stays_back(editor, newsroom, stage, nights):
    promise(items(newsroom, 1)[0], stage, is_queued=True)
    queues.change(nights, {"is_paused": True}, by="alice@example.test")
    workspace_hold.hold_workspace(newsroom, reason="A crisis.", by="alice@example.test")
    then = editor.get(at(newsroom, "queues_release")).context["rows"]
    later = editor.get(at(newsroom, "queues_hold")).context["rows"]
    assert [row["why"] for row in then] == ["Queue Nights is paused."]
    assert [row["label"] for row in later] == ["Queue Nights is paused."]


def test_letting_go_wakes_what_waited(editor, newsroom, stage):
    workspace_hold.hold_workspace(newsroom, reason="A crisis.", by="alice@example.test")
    row = promise(items(newsroom, 1)[0], stage)
    later = timezone.now() + timedelta(minutes=5)
    Publication.everywhere.filter(pk=row.pk).update(wake_at=later)
    address = at(newsroom, "queues_release")
    answer = editor.post(address)
    assert (answer["Location"], said(answer)) == (
        at(newsroom, "queues_page"),
        ["Publishing resumed."],
    )
    assert PublishHold.everywhere.count() == 0
    assert reread(row).wake_at < later
    # Of two that let go the second is told.
    for again in (editor.get(address), editor.post(address)):
        assert again["Location"] == at(newsroom, "queues_page")
        assert said(again)[-1] == "Publishing is already on."


# --- Days without slots ----------------------------------------------------------------------------------------------


def test_days_without_slots_are_written_line_by_line(editor, newsroom, nights):
    lines = "2027-12-24 to 2027-12-26 Holidays\r\n\r\n2027-05-01 18:00 to 2027-05-02 06:00\r\n2027-06-01"
    address = at(newsroom, "queue_edit", que=nights.pk)
    editor.post(address, {**FORM, "blackouts": lines, "version": str(nights.version)})
    assert reread(nights).blackouts == [
        {"from": "2027-05-01T18:00", "until": "2027-05-02T06:00", "reason": ""},
        {"from": "2027-06-01T00:00", "until": "2027-06-02T00:00", "reason": ""},
        {"from": "2027-12-24T00:00", "until": "2027-12-27T00:00", "reason": "Holidays"},
    ]
    written = editor.get(address).context["form"]["blackouts"].value()
    assert written == ("2027-05-01 18:00 to 2027-05-02 06:00\n2027-06-01\n2027-12-24 to 2027-12-26 Holidays")


@pytest.mark.parametrize("lines", ["Christmas", "2027-13-01", "2027-05-02 to 2027-05-01", "2027-05-01 25:00"])
def test_a_line_that_is_no_stretch_is_marked(editor, newsroom, nights, lines):
    answer = editor.post(at(newsroom, "queue_edit", que=nights.pk), {**FORM, "blackouts": lines})
    assert list(errors(answer)) == ["blackouts"]
    assert reread(nights).blackouts == []
