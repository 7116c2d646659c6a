"""The page of the pipeline: each stage's number, its oldest with the reason, and what to do when empty."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import workspaces
from analytics.pages import content_flow
from config.core.ids import encode
from pipeline.dashboard import counts
from pipeline.models import GeneratedItem, Publication, RawItem
from pipeline.publish import workspace_hold
from tests.analytics.factories import make_failed, make_outlet, make_published
from tests.pages.test_home import _copied, make, publication


@pytest.fixture
def open_page(newsroom, alice, as_person):
    client = as_person(alice)

    def get(query="", workspace=newsroom, **headers):
        answer = client.get(reverse("pipeline_page", kwargs={"ws": workspace.pk}) + query, headers=headers)
        assert answer.status_code in {200, 204}
        return answer

    return get


@pytest.fixture
def busy(newsroom, charlie):
    """Something at each stage here, and all of it elsewhere and among the tests too."""
    now = timezone.now()
    elsewhere = charlie.memberships.get().workspace
    workspaces.whitelist(elsewhere, "op")
    for workspace, test in ((newsroom, False), (newsroom, True), (elsewhere, False)):
        mark = "" if workspace == newsroom and not test else "HIDDEN "
        titles = ("Waits", "Waits too", "Failed", "Unmade", "Next", "Far", "Late", "Later", "Out", "Making")
        items = {title: make(workspace, f"{mark}{title} ferry", test=test) for title in titles}
        refused = {"code": "refused", "message": "Too long by 12 characters."}
        publication(items["Failed"], "failed", error=refused, due_at=now)
        publication(items["Next"], "scheduled", due_at=now + timedelta(hours=2))
        publication(items["Far"], "scheduled", due_at=now + timedelta(days=3))
        publication(items["Late"], "scheduled", due_at=now - timedelta(hours=30))
        publication(items["Later"], "scheduled", due_at=now - timedelta(minutes=30))
        publication(items["Out"], "published", due_at=now, published_at=now)
        broken = {"code": "draft_failed", "message": "The model gave no words."}
        GeneratedItem.everywhere.filter(pk=items["Unmade"].pk).update(
            status="failed", error=broken, updated_at=now - timedelta(hours=1)
        )
        GeneratedItem.everywhere.filter(pk=items["Making"].pk).update(status="generating", ready_at=None)
    return newsroom


def stages(answer):
    return {stage.name: stage for stage in answer.context["flow"].stages}


def numbers(answer):
    return {name: stage.count.number for name, stage in stages(answer).items()}


def test_it_counts_each_stage_of_this_workspace_alone(busy, open_page):
    answer = open_page()
    assert numbers(answer) == {
        "entered": 10,
        "made": 1,
        "review": 2,
        "due": 1,
        "late": 2,
        "failed": 2,
        "published": 1,
    }
    assert "HIDDEN" not in answer.content.decode()


def test_an_unknown_outcome_is_named_beside_the_failures_and_no_failure(busy, open_page):
    before = stages(open_page())["failed"]
    assert (before.count.number, before.about) == (2, "1 not published, 1 failed")
    Publication.everywhere.filter(item__title="Failed ferry").update(status="unknown")
    after = stages(open_page())["failed"]
    assert (after.count.number, after.about) == (1, "1 failed, 1 more with an unknown outcome")


def test_the_oldest_of_each_is_named_with_its_reason(busy, open_page):
    answer = open_page()
    seen = stages(answer)
    names = {name: stage.oldest.title for name, stage in seen.items() if stage.oldest}
    assert names == {
        "made": "Making ferry",
        "review": "Waits ferry",
        "due": "Next ferry",
        "late": "Late ferry",
        "failed": "Unmade ferry",
    }
    item = {one.title: one for one in GeneratedItem.everywhere.filter(workspace=busy, test=False)}
    assert seen["failed"].oldest.why == "The model gave no words."
    assert (seen["late"].oldest.age_text, seen["late"].oldest.outlet_or_output) == (
        "1\xa0day",
        "Test channel",
    )
    assert (
        seen["late"].oldest.why == "Starting soon. If this persists, contact the people who run this service."
    )
    text = answer.content.decode()
    for title in names.values():
        assert f'<a href="items/{encode("gen", item[title].pk)}">{title}</a>' in text


def test_what_holds_all_publishing_back_is_why_the_late_are_late(busy, open_page):
    workspace_hold.hold_workspace(busy, reason="A storm.", by="alice")
    for name in ("late", "due"):
        oldest = stages(open_page())[name].oldest
        assert oldest.why == "All publishing of the workspace is on hold: A storm."


def test_a_post_that_failed_first_is_the_oldest_failure(busy, open_page):
    Publication.everywhere.filter(workspace=busy, status="failed", test=False).update(
        updated_at=timezone.now() - timedelta(hours=2)
    )
    oldest = stages(open_page())["failed"].oldest
    assert (oldest.title, oldest.why) == ("Failed ferry", "Too long by 12 characters.")


def test_the_span_is_chosen_by_a_link(busy, open_page):
    before = timezone.now() - timedelta(days=3)
    Publication.everywhere.filter(status="published").update(published_at=before)
    GeneratedItem.everywhere.filter(status="failed").update(updated_at=before)
    found = {}
    for span in ("day", "week", "month", "nonsense"):
        counted = numbers(open_page(f"?span={span}"))
        found[span] = tuple(counted[name] for name in ("due", "late", "failed", "published"))
    assert found == {
        "day": (1, 2, 1, 0),
        "week": (2, 2, 2, 1),
        "month": (2, 2, 2, 1),
        "nonsense": (1, 2, 1, 0),
    }


def test_what_waits_for_credits_says_so(newsroom, open_page):
    make(newsroom, "Ferry")
    wake = timezone.now() + timedelta(days=9)
    said = {"code": "quota", "message": "The month's credits are used up."}
    RawItem.everywhere.filter(workspace=newsroom).update(status="waiting_quota", wake_at=wake, reason=said)
    entered = stages(open_page())["entered"]
    assert (entered.about, entered.oldest.why) == (
        "1 waiting for credits",
        "The month's credits are used up.",
    )


def test_how_punctual_it_was_is_told_of_the_span(newsroom, open_page):
    outlet = make_outlet(newsroom)
    now = timezone.now()
    make_published(outlet, now - timedelta(hours=1), due_at=now - timedelta(hours=1, seconds=5))
    make_published(outlet, now - timedelta(hours=2), due_at=now - timedelta(hours=4))
    make_failed(outlet, now - timedelta(hours=3))
    make_failed(outlet, now - timedelta(days=2))
    rates = open_page().context["rates"]
    assert (rates.on_time, rates.median, rates.worst, rates.not_published) == (
        "50.0 %",
        "5 seconds",
        "2.0 h",
        "33.3 %",
    )
    assert open_page("?span=week").context["rates"].not_published == "50.0 %"


def test_counts_stop_somewhere_and_say_so(busy, open_page, monkeypatch):
    monkeypatch.setattr(counts, "MAX_COUNTED_ROWS", 3)
    monkeypatch.setattr(content_flow, "MAX_ROWS_READ", 4)
    answer = open_page()
    assert stages(answer)["entered"].count.text == "3+"
    assert "Newest 5,000 entries" in answer.content.decode()


def test_it_asks_the_same_number_of_times_for_one_and_for_many(newsroom, open_page):
    asked = []
    for number in range(4):
        now = timezone.now()
        publication(make(newsroom, f"Late {number}"), "scheduled", due_at=now - timedelta(hours=1))
        publication(make(newsroom, f"Next {number}"), "scheduled", due_at=now + timedelta(hours=1))
        publication(make(newsroom, f"Failed {number}"), "failed", due_at=now, error={"message": "x"})
        item = make(newsroom, f"Made {number}")
        GeneratedItem.everywhere.filter(pk=item.pk).update(status="queued")
        make(newsroom, f"Waits {number}")
        with CaptureQueriesContext(connection) as seen:
            open_page()
        asked.append(len(seen))
    assert len(set(asked[1:])) == 1
    assert asked[-1] <= 45


def test_the_stages_look_again_by_themselves(busy, open_page):
    first = open_page("?span=week")
    text = first.content.decode()
    assert 'id="stages" hx-get="' in text
    address = text.split('id="stages" hx-get="')[1].split('"')[0].replace("&amp;", "&")
    query = f"?{address.partition('?')[2]}"
    assert "span=week" in query
    assert open_page(query, **{"HX-Target": "stages"}).status_code == 204
    Publication.everywhere.filter(status="published").update(published_at=timezone.now() - timedelta(days=9))
    again = open_page(query, **{"HX-Target": "stages"})
    assert again.status_code == 200
    assert "<html" not in again.content.decode()


def test_an_empty_workspace_is_told_what_to_do(newsroom, open_page, vera, as_person):
    text = open_page().content.decode()
    assert "No content yet" in text
    assert reverse("source_add", kwargs={"ws": newsroom.pk}) in text
    assert "Stages" not in text
    seen = as_person(vera).get(reverse("pipeline_page", kwargs={"ws": newsroom.pk})).content.decode()
    assert "Ask an editor" in seen


def test_a_still_workspace_is_told_to_look_further_back(newsroom, open_page):
    make(newsroom, "Ferry")
    GeneratedItem.everywhere.update(status="rejected")
    RawItem.everywhere.update(test=True)
    past = counts.first_id_of(timezone.now() - timedelta(days=90))
    copied = _copied(RawItem.everywhere.get(), past)
    copied.test = False
    copied.save(force_insert=True)
    assert "Choose a longer range." in open_page().content.decode()
