"""What is done with an item by page: decided on, made again, chosen, published, cancelled, taken back; each with its undo."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.messages import get_messages
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, Workspace
from config.core.ids import encode
from pipeline.models import GeneratedItem, Outlet, Publication
from pipeline.publish.item_status_and_events import refresh_item
from pipeline.review import decisions, variants
from tests.pipeline.steps import MINUTE, make_items, make_stage, promise, reread, send

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def pair(newsroom, posts):
    """Two variants of one group."""
    return make_items(newsroom, variants=2)


@pytest.fixture
def stage(newsroom, item):
    made = make_stage(newsroom)
    GeneratedItem.everywhere.filter(pk=item.pk).update(outlets=[encode("out", made.pk)])
    return made


def at(item, name, **ids):
    return reverse(name, kwargs={"ws": item.workspace_id, **(ids or {"gen": item.pk})})


def act(client, item, name, **given):
    answer = client.post(at(item, name), given)
    assert answer.status_code == 302
    return answer


def said(answer):
    """The newest message, without its button."""
    told = [
        re.sub(r"<form.*</form>", "", str(one), flags=re.DOTALL) for one in get_messages(answer.wsgi_request)
    ]
    return [" ".join(re.sub(r"<[^>]+>", " ", told[-1]).split())]


def undone(client, answer):
    """What the button of the last message does."""
    html = str(list(get_messages(answer.wsgi_request))[-1])
    address = re.search(r'action="([^"]+)"', html)[1]
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', html))
    return client.post(address, fields)


def status(item):
    return reread(item).status


# --- Decided on ------------------------------------------------------------------------------------------------------


def test_approving_names_who_and_which_revision(editor, item, bob):
    answer = act(editor, item, "item_approve", version=item.version)
    row = reread(item)
    assert (row.approved_by, row.approved_revision, said(answer)) == (bob.email, 1, ["Approved."])
    assert answer["Location"] == at(item, "item_page")


def test_warnings_are_read_before_they_are_overruled(editor, item, stage, bob):
    warning = {"code": "names", "outcome": "warning", "message": "Vera Lind isn't named in the source."}
    GeneratedItem.everywhere.filter(pk=item.pk).update(checks=[warning])
    for name in ("item_page", "item_publish", "review_card"):
        html = editor.get(at(item, name)).content.decode()
        assert "Vera Lind isn&#x27;t named" in html, name
        assert "Approving or publishing accepts these warnings." in html, name
    page = editor.get(at(item, "item_page")).content.decode()
    assert page.count(at(item, "item_approve")) == 1
    assert page.index("Approve and accept warnings") < page.index("Preview")
    editor.post(at(item, "item_approve"), {"version": reread(item).version})
    (entry,) = AuditEntry.everywhere.filter(action="checks.overruled")
    assert (entry.actor, entry.details["checks"]) == (bob.email, ["names"])
    page = editor.get(at(item, "item_page")).content.decode()
    assert "Approve and accept warnings" not in page
    assert "accepted these warnings." in page
    assert "Approving or publishing accepts" not in page


def test_what_changed_meanwhile_isnt_approved_unseen(editor, item):
    decisions.edit(item, {"title": "Another"}, by="vera", now=timezone.now())
    answer = act(editor, item, "item_approve", version=item.version)
    assert reread(item).approved_at is None
    assert said(answer)[0].startswith("Changed since you opened it.")
    act(editor, item, "item_approve", version=reread(item).version)
    assert reread(item).approved_revision == 2


def test_rejecting_keeps_the_reason_and_can_be_undone(editor, item, bob):
    shown = editor.get(at(item, "item_reject")).content.decode()
    assert f'name="version" value="{item.version}"' in shown
    answer = act(editor, item, "item_reject", reason="Old news.", version=item.version)
    row = reread(item)
    assert (row.status, row.rejection["message"], row.rejection["by"]) == ("rejected", "Old news.", bob.email)
    undone(editor, answer)
    assert (status(item), reread(item).rejection) == ("ready", None)


def test_a_rejection_that_was_overtaken_keeps_what_was_typed(editor, item):
    decisions.edit(item, {"title": "Another"}, by="vera", now=timezone.now())
    answer = editor.post(at(item, "item_reject"), {"reason": "Old news.", "version": item.version})
    page = answer.content.decode()
    assert (answer.status_code, status(item)) == (200, "ready")
    assert ["Old news." in page, f'value="{reread(item).version}"' in page] == [True, True]


def test_what_cant_be_done_is_said_in_words(editor, item):
    assert said(act(editor, item, "item_restore")) == ["It is ready; only a rejected item is restored."]
    assert said(act(editor, item, "item_cancel")) == ["It is ready; there is no schedule to cancel."]
    assert said(act(editor, item, "item_retry"))[0].startswith("It is ready")


def test_a_failed_item_is_made_again(editor, item):
    GeneratedItem.everywhere.filter(pk=item.pk).update(
        status="failed", revision=0, error={"code": "x", "message": "y"}
    )
    assert said(act(editor, item, "item_retry")) == ["Regenerating."]
    assert status(item) == "queued"


# --- Variants --------------------------------------------------------------------------------------------------------


def test_what_would_fail_the_same_again_offers_another_variant_and_names_no_id(editor, item):
    key = encode("gen", item.pk)
    error = {
        "code": "checks_failed",
        "message": f"It repeats {key}: 80% of it.",
        "retryable": False,
        "action": "Do.",
    }
    # Nothing of it changed since, so that it stays final.
    GeneratedItem.everywhere.filter(pk=item.pk).update(status="failed", error=error)
    page = editor.get(at(item, "item_page")).content.decode()
    assert f'It repeats <a href="{at(item, "item_page")}">another item</a>: 80% of it.' in page
    assert f'href="{at(item, "item_regenerate")}"' in page
    # In the head, and below the item.
    assert page.count("Create variant</a>") == 2
    for name in ("failures", "items_page"):
        text = editor.get(reverse(name, kwargs={"ws": item.workspace_id})).content.decode()
        assert "It repeats another item: 80% of it." in text, name
    assert (
        f'href="{at(item, "item_regenerate")}"'
        in editor.get(reverse("failures", kwargs={"ws": item.workspace_id})).content.decode()
    )
    answer = act(editor, item, "item_regenerate", once="a")
    assert answer["Location"] != at(item, "item_page")
    # Of what is gone the head offers none either.
    error |= {"code": "source_deleted"}
    GeneratedItem.everywhere.filter(pk=item.pk).update(error=error)
    assert editor.get(at(item, "item_page")).content.decode().count("Create variant</a>") == 1


def test_another_variant_is_made_once_however_often_it_is_clicked(editor, item):
    first = act(editor, item, "item_regenerate", once="showing")
    variant = GeneratedItem.everywhere.exclude(pk=item.pk).get()
    assert (first["Location"], variant.parent_id) == (at(variant, "item_page"), item.pk)
    again = act(editor, item, "item_regenerate", once="showing")
    assert (again["Location"], GeneratedItem.everywhere.count()) == (at(item, "item_page"), 2)


def test_a_hint_that_cant_be_followed_is_told_and_kept(editor, item):
    page = editor.get(at(item, "item_regenerate")).content.decode()
    assert ["no hint can be followed" in page, 'name="hint"' in page] == [False, False]
    answer = editor.post(at(item, "item_regenerate"), {"hint": "For beginners", "once": "a"})
    page = answer.content.decode()
    assert (answer.status_code, "For beginners" in page, "no hint can be followed" in page) == (
        200,
        True,
        True,
    )
    assert GeneratedItem.everywhere.count() == 1
    # What failed was not the first of a double click.
    assert editor.post(at(item, "item_regenerate"), {"hint": "", "once": "a"}).status_code == 302


def test_a_hint_is_asked_of_the_model_and_shown(editor, item, settings):
    settings.ANTHROPIC_API_KEY = "key-of-the-operator"
    assert 'name="hint"' in editor.get(at(item, "item_regenerate")).content.decode()
    act(editor, item, "item_regenerate", hint="For beginners")
    variant = GeneratedItem.everywhere.exclude(pk=item.pk).get()
    assert variant.hint == "For beginners"
    assert "For beginners" in editor.get(at(variant, "item_page")).content.decode()


def test_variants_stand_side_by_side(editor, pair):
    first, second = pair
    answer = editor.get(at(first, "item_page"))
    assert [(one["item"].pk, one["is_this"]) for one in answer.context["siblings"]] == [
        (first.pk, True),
        (second.pk, False),
    ]
    page = answer.content.decode()
    assert [at(second, "item_page") in page, at(second, "item_choose") in page] == [True, True]


def test_choosing_one_sets_the_others_aside_and_can_be_undone(editor, pair):
    first, second = pair
    answer = act(editor, second, "item_choose")
    assert (status(first), status(second)) == ("rejected", "ready")
    assert reread(first).rejection["code"] == "superseded"
    assert said(answer) == ["Variant chosen; 1 other archived."]
    undone(editor, answer)
    assert (status(first), reread(first).rejection) == ("ready", None)


def test_undoing_a_choice_takes_back_only_what_it_set_aside(editor, pair):
    first, second = pair
    answer = act(editor, second, "item_choose")
    decisions.restore(first, now=timezone.now())
    decisions.reject(first, reason="No.", by="vera", now=timezone.now())
    undone(editor, answer)
    assert (status(first), reread(first).rejection["message"]) == ("rejected", "No.")


def test_undoing_a_choice_leaves_a_later_one(editor, pair):
    first, second = pair
    answer = act(editor, second, "item_choose")
    later = timezone.now() + timedelta(hours=1)
    decisions.restore(first, now=later)
    variants.choose(second, by="vera", now=later)
    undone(editor, answer)
    assert (status(first), reread(first).rejection["by"]) == ("rejected", "vera")


def test_undoing_a_rejection_leaves_a_later_one(editor, item):
    answer = act(editor, item, "item_reject", reason="Old news.", version=item.version)
    decisions.restore(item, now=timezone.now())
    decisions.reject(item, reason="Wrong.", by="vera", now=timezone.now())
    assert said(undone(editor, answer))[0].startswith("Changed since you opened it.")
    assert (status(item), reread(item).rejection["message"]) == ("rejected", "Wrong.")


def test_a_variant_that_is_not_ready_cant_be_chosen(editor, pair):
    first, second = pair
    decisions.reject(second, reason="No.", by="vera", now=timezone.now())
    assert said(act(editor, second, "item_choose")) == ["It is rejected; choose a variant that is ready."]
    assert status(first) == "ready"


# --- Published -------------------------------------------------------------------------------------------------------


def publishing(item, stage, **changes):
    return {
        "outlets": [encode("out", stage.pk)],
        "when": "now",
        "version": reread(item).version,
        "publish": "",
        **changes,
    }


def test_it_is_published_now(editor, item, stage, bob):
    answer = editor.post(at(item, "item_publish"), publishing(item, stage, once="a"))
    row = Publication.everywhere.get()
    assert (answer["Location"], said(answer)) == (
        at(item, "item_page"),
        ["Publishing to Stage."],
    )
    assert (row.status, row.requested_by, row.outlet) == ("scheduled", bob.email, stage)
    assert send(row).status == "published"
    again = editor.post(at(item, "item_publish"), publishing(item, stage, once="a"))
    assert (again.status_code, Publication.everywhere.count()) == (302, 1)


def test_checking_it_first_stores_nothing(editor, item, stage):
    answer = editor.post(at(item, "item_publish"), publishing(item, stage, check=""))
    (one,) = answer.context["rehearsed"]
    assert (one["fit"].outlet, one["fit"].problems, one["due_at"]) == (stage, (), None)
    assert one["fit"].preview == (reread(item).body,)
    assert '<p class="lines small">' in answer.content.decode()
    assert (status(item), Publication.everywhere.count()) == ("ready", 0)


def test_an_outlet_that_is_named_as_its_platform_is_named_once(editor, item, newsroom):
    feed = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    html = editor.get(at(item, "item_publish")).content.decode()
    label = html[html.index(f'value="{encode("out", feed.pk)}"') :].partition("</label>")[0]
    assert label.count("Workspace feed") == 1
    Outlet.everywhere.filter(pk=feed.pk).update(name="Harbour feed")
    html = editor.get(at(item, "item_publish")).content.decode()
    label = html[html.index(f'value="{encode("out", feed.pk)}"') :].partition("</label>")[0]
    assert ("Harbour feed" in label, label.count("Workspace feed")) == (True, 1)


def test_what_lacks_an_approval_is_not_called_ready(editor, item, stage, newsroom):
    html = editor.post(at(item, "item_publish"), publishing(item, stage, check="")).content.decode()
    assert "Can be published" in html
    Workspace.everywhere.filter(pk=newsroom.pk).update(requires_approval=True)
    answer = editor.post(at(item, "item_publish"), publishing(item, stage, check=""))
    # The preview is refused as a whole, so it shows no outlet.
    (refusal,) = answer.context["form"].non_field_errors()
    assert (answer.context["rehearsed"], "approve it, then publish it" in refusal) == ([], True)


def test_it_is_scheduled_on_the_workspaces_clocks_and_can_be_undone(editor, item, stage):
    local = (datetime.now(BERLIN) + timedelta(days=3)).replace(hour=14, minute=30, second=0, microsecond=0)
    form = publishing(item, stage, when="at", local_time=f"{local:%Y-%m-%dT%H:%M}")
    answer = editor.post(at(item, "item_publish"), form)
    row = Publication.everywhere.get()
    assert (row.due_at, row.zone, row.local_time) == (
        local.astimezone(UTC),
        "Europe/Berlin",
        f"{local:%Y-%m-%dT%H:%M}:00",
    )
    at_time = f"{local.day} {local:%b, %H:%M}"
    assert (status(item), said(answer)) == ("scheduled", [f"Scheduled for Stage on {at_time}."])
    undone(editor, answer)
    assert (status(item), reread(row).status) == ("ready", "cancelled")


def test_the_next_free_slot_is_named_before_and_after(editor, item, stage):
    page = editor.get(at(item, "item_publish")).content.decode()
    named = re.search(r"Next free slot \((?:Stage: )?(\d+ \w{3}, \d\d:\d\d)", page)[1]
    answer = editor.post(at(item, "item_publish"), publishing(item, stage, when="next"))
    assert said(answer) == [f"Scheduled for Stage on {named}."]


def scheduling(item, stage, days=3):
    local = (datetime.now(BERLIN) + timedelta(days=days)).replace(hour=14, minute=30, second=0, microsecond=0)
    return publishing(item, stage, when="at", local_time=f"{local:%Y-%m-%dT%H:%M}")


def test_undoing_one_schedule_leaves_that_of_another(editor, item, stage, newsroom):
    other = promise(item, make_stage(newsroom, name="Other"), publish_at=timezone.now() + timedelta(days=1))
    answer = editor.post(at(item, "item_publish"), scheduling(item, stage))
    undone(editor, answer)
    mine = Publication.everywhere.get(outlet=stage)
    assert (reread(mine).status, reread(other).status) == ("cancelled", "scheduled")


def test_undoing_a_schedule_that_changed_since_does_nothing(editor, item, stage):
    answer = editor.post(at(item, "item_publish"), scheduling(item, stage))
    decisions.edit(reread(item), {"title": "Another"}, by="vera", now=timezone.now())
    assert said(undone(editor, answer))[0].startswith("Changed since you opened it: ")
    assert (status(item), Publication.everywhere.get().status) == ("scheduled", "scheduled")


def test_undoing_a_schedule_takes_back_the_approval_that_came_with_it(editor, item, stage):
    answer = editor.post(at(item, "item_publish"), scheduling(item, stage))
    assert reread(item).approved_revision == 1
    answer = undone(editor, answer)
    row = reread(item)
    assert (row.status, row.approved_by, row.approved_at, row.approved_revision) == ("ready", "", None, None)
    assert answer["Location"] == at(item, "item_page")
    assert at(item, "item_approve") in editor.get(at(item, "item_page")).content.decode()


def test_undoing_a_schedule_leaves_an_earlier_approval(editor, item, stage):
    act(editor, item, "item_approve", version=item.version)
    undone(editor, editor.post(at(item, "item_publish"), scheduling(reread(item), stage)))
    assert (status(item), reread(item).approved_revision) == ("ready", 1)


def test_undoing_a_new_time_brings_the_former_one_back(editor, item, stage):
    row = promise(item, stage, publish_at=timezone.now() + timedelta(days=1))
    before = reread(row).due_at
    answer = editor.post(at(item, "item_publish"), scheduling(item, stage))
    assert said(answer)[0].startswith("Scheduled for Stage on ")
    assert reread(row).due_at != before
    undone(editor, answer)
    assert (reread(row).due_at, status(item)) == (before, "scheduled")


def test_what_changed_meanwhile_isnt_cancelled_unseen(editor, item, stage):
    row = promise(item, stage, publish_at=timezone.now() + timedelta(days=1))
    seen = reread(item).version
    page = editor.get(at(item, "item_page")).content.decode()
    form = page[page.index(at(item, "item_cancel")) :].partition("</form>")[0]
    assert f'name="version" value="{seen}"' in form
    decisions.edit(reread(item), {"title": "Another"}, by="vera", now=timezone.now())
    act(editor, item, "item_cancel", version=seen)
    assert reread(row).status == "scheduled"


def test_a_new_time_begins_with_the_one_that_is(editor, item, stage, newsroom):
    promised = make_stage(newsroom, name="Promised")
    local = (datetime.now(BERLIN) + timedelta(days=3)).replace(hour=14, minute=30, second=0, microsecond=0)
    promise(item, promised, publish_at=local.astimezone(UTC))
    form = editor.get(at(item, "item_publish")).context["form"]
    assert (form["outlets"].value(), form["when"].value()) == ([encode("out", promised.pk)], "at")
    assert f'value="{local:%Y-%m-%dT%H:%M}"' in str(form["local_time"])


def test_it_takes_the_next_slot_of_a_queue(editor, item, stage):
    editor.post(at(item, "item_publish"), publishing(item, stage, when="next"))
    row = Publication.everywhere.get()
    assert (row.queue.is_default, row.due_at > timezone.now()) == (True, True)


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"when": "at"}, "local_time", "Enter a date and time."),
        ({"when": "at", "local_time": "2020-01-01T10:00"}, "local_time", "This time is in the past. Choose a later one or publish now."),
        ({"when": "at", "local_time": "2999-01-01T10:00"}, "local_time", "Schedule at most 366 days ahead."),
        ({"when": "at", "local_time": "soon"}, "local_time", "Enter a date and time, such as 2027-03-28 14:30."),
        ({"outlets": []}, "outlets", "Choose at least one outlet."),
    ],
)  # fmt: skip
def test_a_wish_that_cant_be_met_says_why_at_its_field(editor, item, stage, given, field, message):
    answer = editor.post(at(item, "item_publish"), publishing(item, stage, **given))
    assert dict(answer.context["form"].errors) == {field: [message]}
    assert Publication.everywhere.count() == 0


def test_what_changed_meanwhile_isnt_published_unseen(editor, item, stage):
    form = publishing(item, stage)
    decisions.edit(item, {"title": "Another"}, by="vera", now=timezone.now())
    answer = editor.post(at(item, "item_publish"), form)
    assert (answer.status_code, Publication.everywhere.count()) == (200, 0)
    assert answer.context["form"].non_field_errors()[0].startswith("Changed since you opened it.")
    assert answer.context["form"]["outlets"].value() == [encode("out", stage.pk)]


def test_cancelling_takes_the_promise_back(editor, item, stage):
    row = promise(item, stage, publish_at=timezone.now() + timedelta(days=1))
    act(editor, item, "item_cancel")
    assert (reread(row).status, status(item)) == ("cancelled", "ready")


def test_unscheduling_takes_back_the_approval_that_scheduling_was_and_can_be_undone(editor, item, stage, bob):
    editor.post(at(item, "item_publish"), scheduling(item, stage))
    due = Publication.everywhere.get().due_at
    answer = act(editor, item, "item_cancel", version=reread(item).version)
    assert said(answer) == ["Unscheduled. New status: To review."]
    assert (status(item), reread(item).approved_at, reread(item).approved_by) == ("ready", None, "")
    assert undone(editor, answer)["Location"] == at(item, "item_page")
    row = Publication.everywhere.get(status="scheduled")
    assert (row.due_at, status(item), reread(item).approved_by) == (due, "scheduled", bob.email)


def test_unscheduling_leaves_an_approval_by_hand(editor, item, stage):
    act(editor, item, "item_approve", version=item.version)
    approved = reread(item).approved_at
    editor.post(at(item, "item_publish"), scheduling(item, stage))
    assert said(act(editor, item, "item_cancel")) == ["Unscheduled. New status: Approved."]
    assert reread(item).approved_at == approved


def test_approving_can_be_undone(editor, item):
    answer = act(editor, item, "item_approve", version=item.version)
    assert undone(editor, answer)["Location"] == at(item, "item_page")
    assert (status(item), reread(item).approved_at, reread(item).approved_revision) == ("ready", None, None)


def test_what_is_scheduled_is_not_called_blocked(editor, item, stage):
    promise(item, stage, publish_at=timezone.now() + timedelta(days=1))
    page = editor.get(at(item, "item_page")).content.decode()
    assert ["Will be published on" in page, "Blocked by" in page] == [True, False]


def test_a_page_of_a_scheduled_item_says_what_it_waits_for(editor, item, stage, newsroom):
    promise(item, stage, publish_at=timezone.now() + timedelta(days=1))
    GeneratedItem.everywhere.filter(pk=item.pk).update(held="source_changed")
    answer = editor.get(at(item, "item_page"))
    told = [
        (one.message, one.outlets, one.action.address, one.action.is_post)
        for one in answer.context["outlook"].blockers
    ]
    assert told == [
        (
            "Its source has changed. Approve it to publish.",
            "Stage",
            at(item, "item_approve"),
            True,
        ),
    ]


# --- On one outlet ---------------------------------------------------------------------------------------------------


@pytest.fixture
def failed(item, newsroom):
    return send(promise(item, make_stage(newsroom, "reject", name="Strict")))


def test_a_failed_publication_is_said_in_words_and_tried_again(editor, item, failed):
    answer = editor.get(at(item, "item_page"))
    (one,) = answer.context["sent"]
    assert (one.label, one.error, one.can_retry) == ("Failed", failed.error["message"], True)
    assert one.calls[0].receipt["parts"] == [item.body]
    again = editor.post(at(item, "publication_retry", pub=failed.pk))
    assert (again["Location"], said(again)) == (at(item, "item_page"), ["Retrying Strict."])
    assert reread(failed).status == "scheduled"


def test_what_is_out_on_some_outlets_says_on_how_many_and_what_to_do_on_the_others(
    editor, item, stage, failed
):
    send(promise(item, stage))

    def shown():
        page, listed = (
            editor.get(address)
            for address in (at(item, "item_page"), reverse("items_page", kwargs={"ws": item.workspace_id}))
        )
        (row,) = listed.context["rows"]
        text = page.content.decode()
        return page.context["label"], row["label"], 0 < text.find('id="sent"') < text.find('id="look-head"')

    assert status(item) == "partially_published"
    assert shown() == ("Published to 1 of 2", "Published to 1 of 2", True)
    for (name, label), values in {
        ("publication_retry", "Failed"): {"status": "failed"},
        ("publication_reconcile", "Outcome unknown"): {"status": "unknown"},
        ("package", "Post manually"): {"status": "publishing", "step": Publication.BY_HAND, "wake_at": None},
    }.items():
        Publication.everywhere.filter(pk=failed.pk).update(**values)
        with transaction.atomic():
            refresh_item(reread(item), now=timezone.now())
        assert shown() == ("Published to 1 of 2", "Published to 1 of 2", True), name
        page = editor.get(at(item, "item_page"))
        ways = [one.action.address for one in page.context["outlook"].blockers if one.outlets == "Strict"]
        assert ways == [at(item, name, pub=failed.pk)]
        assert "under way" not in page.content.decode()
        assert [one.label for one in page.context["sent"]][1:] == [label], name
    # Nothing is out, and what is open is a person's.
    Publication.everywhere.exclude(pk=failed.pk).delete()
    assert shown()[:2] == ("Post manually", "Post manually")


def test_an_unknown_outcome_is_looked_up(editor, item, newsroom):
    row = send(promise(item, make_stage(newsroom, "timeout_after_accept", name="Lost")))
    assert row.status == "unknown"
    Publication.everywhere.filter(pk=row.pk).update(next_attempt_at=timezone.now() + 60 * MINUTE)
    (one,) = editor.get(at(item, "item_page")).context["sent"]
    assert (one.can_reconcile, one.can_retry) == (True, False)
    answer = editor.post(at(item, "publication_reconcile", pub=row.pk))
    assert said(answer) == ["Checking status on Lost."]
    assert reread(row).next_attempt_at <= timezone.now()


def test_a_post_is_taken_back_after_a_question(editor, item, stage):
    row = send(promise(item, stage))
    address = at(item, "publication_remove", pub=row.pk)
    assert "Delete post from Stage?" in editor.get(address).content.decode()
    assert reread(row).step == "done"
    answer = editor.post(address)
    assert (reread(row).step, answer["Location"]) == ("remove", at(item, "item_page"))


def test_what_cant_be_tried_again_says_why(editor, item, stage):
    row = send(promise(item, stage))
    answer = editor.post(at(item, "publication_retry", pub=row.pk))
    assert said(answer) == ["It is published; only a failed publication is retried."]


def test_an_outlet_whose_plug_in_was_taken_out_takes_nothing(editor, item, stage):
    row = send(promise(item, stage))
    Outlet.everywhere.filter(pk=stage.pk).update(platform="gone")
    Publication.everywhere.filter(pk=row.pk).update(platform="gone")
    (one,) = editor.get(at(item, "item_page")).context["sent"]
    assert (one.platform, one.can_remove) == ("gone", False)
    form = editor.get(at(item, "item_publish")).context["form"]
    assert encode("out", stage.pk) not in dict(form.fields["outlets"].choices)


# --- Who -------------------------------------------------------------------------------------------------------------


def test_another_workspaces_item_is_none(newsroom, item, stage, charlie, as_person):
    row = promise(item, stage, publish_at=timezone.now() + timedelta(days=1))
    theirs = charlie.memberships.get().workspace
    client = as_person(charlie)
    names = [
        "approve",
        "reject",
        "restore",
        "retry",
        "regenerate",
        "choose",
        "cancel",
        "publish",
        "edit",
        "back",
    ]
    for name in names:
        for workspace in (theirs, newsroom):
            address = reverse(f"item_{name}", kwargs={"ws": workspace.pk, "gen": item.pk})
            assert client.post(address, {"when": "now"}).status_code == 404, name
    for name in ("retry", "reconcile", "remove"):
        address = reverse(f"publication_{name}", kwargs={"ws": theirs.pk, "pub": row.pk})
        assert client.post(address).status_code == 404
    assert (status(item), reread(row).status, GeneratedItem.everywhere.count()) == (
        "scheduled",
        "scheduled",
        1,
    )


def test_a_viewer_decides_nothing(vera, as_person, item):
    client = as_person(vera)
    for name in ("approve", "reject", "cancel", "publish", "edit", "choose"):
        assert client.post(at(item, f"item_{name}"), {}).status_code == 403
    assert status(item) == "ready"
