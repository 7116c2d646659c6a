"""The first page: what it counts, what it says of each thing, and what a newcomer is led through."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import lxml.html
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import workspaces
from accounts.models import CreditBalance, WhitelistRequest
from config.core import task_runner
from config.core.ids import encode, uuid7
from pipeline.dashboard import counts as overview
from pipeline.ingest import raw_content, store_raw_item
from pipeline.models import GeneratedItem, Outlet, Publication, RawItem, Source, WorkspaceDefaults
from pipeline.publish import workspace_hold
from pipeline.review import decisions
from pipeline.switches import kill_switch
from tests.webhooks.factories import make_delivery
from webhooks import endpoints
from webhooks.models import Endpoint

TEXT = "{} The city announced it on Tuesday. Work begins in April and employs 40 people for two years."


def make(workspace, title, *, test=False):
    defaults = WorkspaceDefaults.everywhere.select_related("push_source", "test_push_source").get(
        workspace=workspace
    )
    source = defaults.test_push_source if test else defaults.push_source
    content = raw_content.RawContent(title=title, body=TEXT.format(title), engines=["Short Post"])
    raw = store_raw_item.push(workspace, source, content, defaults=defaults).raw_item
    task_runner.work_all_due("generate.run_item")
    return GeneratedItem.everywhere.get(raw_item=raw)


def publication(item, status, **given):
    outlet = Outlet.everywhere.get(workspace_id=item.workspace_id, platform="simulated")
    derived = {"failed": "publish_failed", "unknown": "publishing"}.get(status, status)
    GeneratedItem.everywhere.filter(pk=item.pk).update(status=derived)
    made = {"workspace_id": item.workspace_id, "outlet": outlet, "platform": "simulated", "revision": 1}
    return Publication.everywhere.create(item=item, status=status, test=item.test, **made, **given)


@pytest.fixture
def open_home(newsroom, alice, as_person):
    client = as_person(alice)

    def get(query="", workspace=newsroom):
        answer = client.get(reverse("home", kwargs={"ws": workspace.pk}) + query)
        assert answer.status_code == 200
        return answer

    return get


@pytest.fixture
def busy(newsroom, charlie):
    """Something of each kind here, and all of it elsewhere and among the tests too."""
    now = timezone.now()
    elsewhere = charlie.memberships.get().workspace
    workspaces.whitelist(elsewhere, "op")
    for workspace, test in ((newsroom, False), (newsroom, True), (elsewhere, False)):
        mark = "" if workspace == newsroom and not test else "HIDDEN "
        titles = ("Waits", "Failed", "Unknown", "Next", "Far", "Late", "Out")
        items = {title: make(workspace, f"{mark}{title} ferry", test=test) for title in titles}
        refused = {"code": "refused", "message": "Too long by 12 characters."}
        publication(items["Failed"], "failed", error=refused, due_at=now)
        publication(items["Unknown"], "unknown", due_at=now + timedelta(hours=1))
        publication(items["Next"], "scheduled", due_at=now + timedelta(hours=2))
        publication(items["Far"], "scheduled", due_at=now + timedelta(days=3))
        publication(items["Late"], "scheduled", due_at=now - timedelta(minutes=30))
        publication(items["Out"], "published", due_at=now, published_at=now, url="https://social.example/1")
        Source.everywhere.create(
            workspace=workspace,
            test=test,
            name=f"{mark}Port feed",
            type="rss",
            status="failing",
            failing_since=now,
            last_error={"message": "The server answered 503."},
        )
    Outlet.everywhere.filter(workspace=elsewhere, platform="feed").update(
        name="HIDDEN feed", status="needs_reconnect"
    )
    return newsroom


def test_it_counts_what_is_the_workspace_s_own(busy, open_home):
    seen = open_home().context["seen"]
    counted = {
        name: getattr(seen, name).number
        for name in ("entered", "waiting", "promised", "late", "failed", "published")
    }
    assert counted == {
        "entered": 7,
        "waiting": 1,
        "promised": 1,
        "late": 1,
        "failed": 1,
        "published": 1,
    }


def test_failed_is_the_same_number_on_home_and_among_the_problems(busy, open_home, as_person, alice):
    counted = open_home().context["seen"].failed.number
    problems = as_person(alice).get(reverse("failures", kwargs={"ws": busy.pk}) + "?since=day")
    sections = {section.name: section.count.number for section in problems.context["sections"]}
    assert (sections["failed"], sections["unknown"]) == (counted, 1)


def test_each_thing_is_named_with_its_reason_and_the_way_on(busy, open_home):
    answer = open_home()
    seen = answer.context["seen"]
    assert [row.title for row in seen.for_review] == ["Waits ferry"]
    # The moment has the name that the item's page gives it.
    assert '<td data-label="Finished"' in answer.content.decode()
    assert [row.title for row in seen.late_ones] == ["Late ferry"]
    assert [row.title for row in seen.next_ones] == ["Next ferry", "Far ferry"]
    assert [(row.title, row.reason) for row in seen.unresolved_posts] == [
        ("Unknown ferry", ""),
        ("Failed ferry", "Too long by 12 characters."),
    ]
    assert [(row.title, row.reason) for row in seen.sources] == [("Port feed", "The server answered 503.")]
    failed = Publication.everywhere.get(item__title="Failed ferry")
    source = Source.everywhere.get(workspace=busy, test=False, name="Port feed")
    text = answer.content.decode()
    assert f'href="items/{encode("gen", failed.item_id)}"' in text
    assert f'href="sources/{encode("src", source.pk)}"' in text
    assert 'href="https://social.example/1"' in text
    assert "HIDDEN" not in text


def test_the_span_is_chosen_by_a_link(busy, open_home):
    two_days = timezone.now() - timedelta(days=2)
    Publication.everywhere.filter(status="published").update(published_at=two_days)
    for place, row in enumerate(RawItem.everywhere.filter(workspace=busy, test=False)):
        # Ids rise with time, and so do those of a past that a test makes up.
        old = UUID(int=overview.first_id_of(two_days).int + place)
        RawItem.everywhere.bulk_create([_copied(row, old)])
    counts = {}
    for since in ("day", "week", "nonsense"):
        seen = open_home(f"?since={since}").context["seen"]
        counts[since] = (seen.entered.number, seen.published.number)
    assert counts == {"day": (7, 0), "week": (14, 1), "nonsense": (7, 0)}


def _copied(row, key):
    fields = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return RawItem(**{**fields, "id": key, "dedup_key": f"old:{key}"})


def test_ids_rise_with_time():
    before = overview.first_id_of(timezone.now() - timedelta(seconds=1))
    made = uuid7()
    assert before < made < overview.first_id_of(timezone.now() + timedelta(seconds=1))


def test_counts_stop_somewhere(busy, open_home, monkeypatch):
    monkeypatch.setattr(overview, "MAX_COUNTED_ROWS", 3)
    assert open_home().context["seen"].entered.text == "3+"


def test_it_asks_the_same_number_of_times_for_one_and_for_many(newsroom, open_home):
    counts = []
    for number in range(4):
        publication(
            make(newsroom, f"Ferry {number}"), "failed", due_at=timezone.now(), error={"message": "x"}
        )
        make(newsroom, f"Tram {number}")
        with CaptureQueriesContext(
            connection,
        ) as seen:
            open_home()
        counts.append(len(seen))
    assert len(set(counts[1:])) == 1
    assert counts[-1] <= 22


# --- First steps -----------------------------------------------------------------------------------------------------


def done(answer):
    steps = answer.context["seen"].steps
    return (
        steps.has_content,
        steps.has_review,
        steps.has_publication,
        steps.has_outlet,
        steps.has_access,
        steps.are_done,
    )


def test_a_newcomer_is_led_from_step_to_step(alice, newsroom, open_home):
    fresh = workspaces.create("Fresh", owner=alice)
    seen = [done(open_home(workspace=fresh))]
    item = make(fresh, "Ferry")
    answer = open_home(workspace=fresh)
    assert reverse("item_publish", kwargs={"ws": fresh.pk, "gen": item.pk}) in answer.content.decode()
    seen.append(done(answer))
    decisions.approve(item, by="alice", now=timezone.now())
    seen.append(done(open_home(workspace=fresh)))
    publication(item, "published", published_at=timezone.now())
    seen.append(done(open_home(workspace=fresh)))
    workspaces.whitelist(fresh, "op")
    seen.append(done(open_home(workspace=fresh)))
    assert seen == [
        (False, False, False, False, False, False),
        (True, False, False, False, False, False),
        (True, True, False, False, False, False),
        (True, True, True, False, False, False),
        (True, True, True, False, True, True),
    ]
    assert "Get started" not in open_home(workspace=fresh).content.decode()
    Outlet.everywhere.create(workspace=fresh, platform="mastodon", name="Harbour")
    assert done(open_home(workspace=fresh)) == (True, True, True, True, True, True)


def test_the_steps_stand_in_the_order_in_which_they_can_be_done(alice, newsroom, open_home):
    fresh = workspaces.create("Fresh", owner=alice)
    make(fresh, "Ferry")
    steps = lxml.html.fromstring(open_home(workspace=fresh).content).xpath("//ol[@class='steps']/li")
    assert [(" ".join(one.findtext(".//h3").split()), one.get("class")) for one in steps[1:]] == [
        ("Review an item", None),
        ("Publish it", None),
        ("Request access", None),
        ("Connect an outlet", None),
    ]
    assert " ".join(steps[0].find(".//h3").text_content().split()) == "Done: Add content"


def test_access_is_requested_with_one_button(alice, newsroom, open_home, as_person):
    fresh = workspaces.create("Fresh", owner=alice)
    assert "Unlocks sources" in open_home(workspace=fresh).content.decode()
    answer = as_person(alice).post(reverse("access", kwargs={"ws": fresh.pk}), follow=True)
    assert "Request sent." in answer.content.decode()
    text = open_home(workspace=fresh).content.decode()
    assert "Requested on" in text
    assert "Unlocks sources" not in text
    assert WhitelistRequest.objects.of(fresh).get().message == ""


def test_no_page_of_a_newcomer_shows_a_command(alice, newsroom, open_home):
    fresh = workspaces.create("Fresh", owner=alice)
    make(fresh, "Ferry")
    assert "curl" not in open_home(workspace=fresh).content.decode()


def test_a_test_s_items_tick_nothing_off(newsroom, open_home):
    publication(make(newsroom, "Ferry", test=True), "published", published_at=timezone.now())
    assert done(open_home()) == (False, False, False, False, True, False)


def test_an_empty_workspace_shows_its_steps_alone(newsroom, open_home):
    text = open_home().content.decode()
    assert "Get started" in text
    assert "To review" not in text


# --- Banners ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def banners(newsroom, alice, as_person):
    client = as_person(alice)

    def shown():
        answer = client.get(reverse("notices", kwargs={"ws": newsroom.pk}))
        return [banner.title for banner in answer.context["banners"]]

    return shown


def test_nothing_stands_in_the_way(banners):
    assert banners() == []


def test_standing_conditions_are_on_every_page(newsroom, charlie, banners):
    elsewhere = charlie.memberships.get().workspace
    for workspace in (newsroom, elsewhere):
        name = "Social" if workspace == newsroom else "HIDDEN"
        Outlet.everywhere.filter(workspace=workspace, platform="feed").update(
            name=name, status="needs_reconnect"
        )
        made = endpoints.add(workspace, f"https://{name.lower()}.example/in", actor="x").endpoint
        Endpoint.everywhere.filter(pk=made.pk).update(status="disabled")
        kill_switch.stop("publishing", workspace=workspace, reason="Maintenance", actor="op")
    kill_switch.stop("model_calls", reason="Not of publishing", actor="op")
    CreditBalance.everywhere.update(available=0)
    assert banners() == [
        "The people who run this service paused publishing.",
        "This month's credits are used up.",
        "Social needs reconnecting.",
        "The webhook endpoint at social.example/in is switched off.",
    ]


def test_a_banner_names_the_cause_and_each_endpoint(newsroom, alice, as_person):
    def disable(path, **told):
        made = endpoints.add(newsroom, f"https://hooks.example/{path}", actor="x").endpoint
        Endpoint.everywhere.filter(pk=made.pk).update(status="disabled")
        if told:
            make_delivery(made, status="held", wake_at=None, **told)

    disable("orders", last_status=410)
    disable("news", last_status=500)
    disable("mail")

    def shown(role):
        alice.memberships.filter(workspace=newsroom).update(role=role)
        answer = as_person(alice).get(reverse("notices", kwargs={"ws": newsroom.pk}))
        return [(banner.title, banner.text) for banner in answer.context["banners"]]

    assert shown("owner") == [
        (
            "The webhook endpoint at hooks.example/orders is switched off.",
            "It answered 410 Gone. Its events are held until an owner switches it on again.",
        ),
        (
            "The webhook endpoints at hooks.example/mail, hooks.example/news are switched off.",
            "Failing for days. Their events are held until an owner switches them on again.",
        ),
    ]
    # A path may be a receiver's secret.
    assert [title for title, _ in shown("viewer")] == [
        "The webhook endpoint at hooks.example is switched off."
    ] * 2


def test_what_is_over_has_no_banner(newsroom, banners):
    CreditBalance.everywhere.update(available=0)
    workspaces.lift_limits(newsroom, "op")
    made = endpoints.add(newsroom, "https://a.example/in", actor="x").endpoint
    # Switched off by a person, which is no news to them.
    endpoints.switch_off(made, actor="x")
    kill_switch.stop("publishing", platform="bluesky", reason="Their outage.", actor="op")
    assert banners() == ["The people who run this service paused publishing to bluesky."]


def test_what_is_late_is_told_by_the_clock_alone_and_a_hold_before_it(newsroom, charlie, banners):
    now = timezone.now()
    elsewhere = charlie.memberships.get().workspace
    for title, minutes, workspace in (
        ("A", 14, newsroom),
        ("B", 50, newsroom),
        ("C", 20, newsroom),
        ("D", 90, elsewhere),
    ):
        workspaces.whitelist(workspace, "op")
        publication(make(workspace, f"{title} ferry"), "scheduled", due_at=now - timedelta(minutes=minutes))
    publication(make(newsroom, "E ferry", test=True), "scheduled", due_at=now - timedelta(hours=3))
    assert banners() == ["2 posts late (up to 50 minutes)"]
    workspace_hold.hold_workspace(newsroom, reason="A crisis.", by="alice")
    assert banners() == ["Publishing is paused."]


def test_what_is_late_leads_to_what_helps(newsroom, alice, as_person):
    at = timezone.now() - timedelta(minutes=185)
    publication(make(newsroom, "A ferry"), "scheduled", due_at=at)
    answer = as_person(alice).get(reverse("notices", kwargs={"ws": newsroom.pk}))
    (banner,) = answer.context["banners"]
    assert banner.title == "1 post late (3 hours)"
    assert banner.link == reverse("failures", kwargs={"ws": newsroom.pk})


def test_last_month_s_credits_are_no_news(newsroom, banners):
    CreditBalance.everywhere.update(available=0, period_start="2020-01-01")
    assert banners() == []
