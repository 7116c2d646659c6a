"""POST|DELETE /generated/:id/publish."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from config.core import ids, task_runner
from config.core.datetimes import format_utc
from pipeline import limits
from pipeline.models import Event, Outlet, Publication, SimulatedPost
from tests.contracts.conftest import NOTHING, never_existed, normal, problem, refusal


def _ask(newsroom, item, body=NOTHING):
    return newsroom.api.post(f"/generated/{item['id']}/publish", body)


def _publication(platform, status="scheduled", **changes):
    return {
        "id": "pub_*",
        "version": 1,
        "revision": 1,
        "outlet": "out_*",
        "platform": platform,
        "status": status,
        "external_id": None,
        "url": None,
        "attempts": 0,
        "error": None,
        "due_at": "<moment>",
        "scheduled_for": None,
        "late_policy": "publish",
        "max_lateness_minutes": None,
        "overdue_seconds": 0,
        "waits_for": None,
        "next_attempt_at": None,
        "published_at": None,
        "test": False,
        "created_at": "<moment>",
        "updated_at": "<moment>",
        **changes,
    }


def _in(**time):
    return (datetime.now(UTC) + timedelta(**time)).replace(microsecond=0)


# --- Now -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [NOTHING, {}])
def test_empty_body_publishes_now_to_the_items_outlets(alice, body):
    item = alice.ready()
    answer = _ask(alice, item, body)
    shown = answer.json()
    assert (answer.status_code, shown["status"], normal(shown["publications"])) == (
        202,
        "scheduled",
        [_publication("feed")],
    )
    assert shown["publications"][0]["outlet"] == alice.feed
    assert answer["ETag"].startswith('"v')
    task_runner.work_all_due("publish.send_publication")
    done = alice.api.read(f"/generated/{item['id']}")
    entry = done["publications"][0]
    assert (done["status"], entry["status"], entry["attempts"], done["published_at"]) == (
        "published",
        "published",
        1,
        entry["published_at"],
    )
    assert Event.everywhere.filter(type="published.success").count() == 1


def test_publishing_is_itself_the_approval(alice):
    shown = _ask(alice, alice.ready()).json()
    actor = alice.api.read("/workspace")["token"]["id"]
    assert (shown["approval"]["by"], shown["approval"]["revision"]) == (actor, 1)


def test_outlets_named_replace_the_items(alice):
    item = alice.publish(alice.ready(), {"outlets": [alice.simulated, alice.feed]})
    assert [(one["outlet"], one["status"]) for one in item["publications"]] == [
        (alice.simulated, "published"),
        (alice.feed, "published"),
    ]


def test_item_published_once_goes_to_another_outlet_later(alice):
    item = alice.published()
    again = alice.publish(item, {"outlets": [alice.simulated]})
    assert [one["platform"] for one in again["publications"]] == ["feed", "simulated"]
    assert again["status"] == "published"
    assert SimulatedPost.everywhere.count() == 1


def test_already_published_there(alice):
    item = alice.published()
    before = alice.api.read(f"/generated/{item['id']}")
    for body in (NOTHING, {"outlets": [alice.feed]}, {"outlets": [alice.feed, alice.simulated]}):
        assert refusal(_ask(alice, item, body)) == (409, "conflict", [("outlets", "already_published")])
    assert alice.api.read(f"/generated/{item['id']}") == before


def test_siblings_are_superseded(alice):
    raw = alice.push(variants=2)
    task_runner.work_all_due("generate.run_item")
    first, second = alice.generated_of(raw)
    _ask(alice, second)
    sibling = alice.api.read(f"/generated/{first['id']}")
    assert (sibling["status"], sibling["rejection"]["code"]) == ("rejected", "superseded")
    assert alice.api.post(f"/generated/{first['id']}/restore").json()["status"] == "ready"


def test_siblings_are_kept_on_request(alice):
    raw = alice.push(variants=2)
    task_runner.work_all_due("generate.run_item")
    first, second = alice.generated_of(raw)
    _ask(alice, second, {"keep_siblings": True})
    assert alice.api.read(f"/generated/{first['id']}")["status"] == "ready"


@pytest.mark.parametrize("state", ["queued", "failed", "rejected"])
def test_unfinished_and_rejected_items_are_not_published(alice, state):
    if state == "failed":
        item = alice.failed()
    elif state == "rejected":
        item = alice.ready()
        alice.api.post(f"/generated/{item['id']}/reject")
    else:
        item = alice.generated_of(alice.push())[0]
    for body in (NOTHING, {"dry_run": True}):
        answer = _ask(alice, item, body)
        assert refusal(answer) == (409, "conflict", [("status", "not_publishable")])
        assert state in answer.json()["detail"][0]["message"]
    assert Publication.everywhere.count() == 0


def test_item_that_is_held_says_why(alice):
    item = alice.ready(external_id="story")
    alice.api.post("/raw", alice.content(external_id="story"))
    answer = _ask(alice, item)
    assert refusal(answer) == (409, "conflict", [("held", "held")])
    assert answer.json()["detail"][0]["message"].startswith("Its source has changed. Approve it")


def test_test_token_reaches_the_simulated_outlet_only(alice):
    tester = alice.client(is_test=True)
    item = alice.ready(tester)
    done = alice.publish(item, api=tester)
    assert [(one["outlet"], one["status"], one["test"]) for one in done["publications"]] == [
        (alice.simulated, "published", True)
    ]
    other = alice.ready(tester)
    answer = tester.post(f"/generated/{other['id']}/publish", {"outlets": [alice.feed]})
    assert refusal(answer) == (400, "invalid_request", [("outlets[0]", "not_simulated")])
    assert alice.api.read("/publications")["data"] == []


# --- Schedules -------------------------------------------------------------------------------------------------------


def test_schedule_retime_and_cancel(alice):
    item, when, later = alice.ready(), _in(days=3), _in(days=4)
    scheduled = _ask(alice, item, {"publish_at": format_utc(when)})
    first = scheduled.json()
    assert (scheduled.status_code, first["status"], first["publish_at"]) == (
        202,
        "scheduled",
        format_utc(when),
    )
    assert first["publications"][0]["due_at"] == format_utc(when)
    assert task_runner.work_all_due("publish.send_publication") == 0
    retimed = _ask(alice, item, {"publish_at": later.isoformat()}).json()
    assert (retimed["publish_at"], len(retimed["publications"])) == (format_utc(later), 1)
    assert retimed["publications"][0]["id"] == first["publications"][0]["id"]
    assert retimed["publications"][0]["version"] > first["publications"][0]["version"]
    cancelled = alice.api.delete(f"/generated/{item['id']}/publish")
    shown = cancelled.json()
    assert (cancelled.status_code, shown["status"], shown["publish_at"]) == (200, "ready", None)
    assert [one["status"] for one in shown["publications"]] == ["cancelled"]
    again = alice.api.delete(f"/generated/{item['id']}/publish")
    assert refusal(again) == (409, "conflict", [("status", "nothing_scheduled")])


def test_scheduled_item_is_published_now(alice):
    item = alice.scheduled()
    done = alice.publish(item)
    assert (done["status"], [one["status"] for one in done["publications"]]) == ("published", ["published"])


def test_outlets_have_moments_of_their_own(alice):
    item, when, later = alice.ready(), _in(days=3), _in(days=4)
    body = {
        "outlets": [alice.feed, alice.simulated],
        "publish_at": format_utc(later),
        "overrides": {alice.simulated: {"publish_at": format_utc(when), "title": "Elsewhere"}},
    }
    shown = _ask(alice, item, body).json()
    assert {one["outlet"]: one["due_at"] for one in shown["publications"]} == {
        alice.feed: format_utc(later),
        alice.simulated: format_utc(when),
    }
    assert shown["publish_at"] == format_utc(when)


@pytest.mark.parametrize(
    ("moment", "code"),
    [(lambda: _in(minutes=-2), "past"), (lambda: _in(days=367), "too_far")],
)
def test_time_has_to_be_ahead_and_within_a_year(alice, moment, code):
    item, text = alice.ready(), format_utc(moment())
    assert refusal(_ask(alice, item, {"publish_at": text})) == (
        400,
        "invalid_request",
        [("publish_at", code)],
    )
    body = {"overrides": {alice.feed: {"publish_at": text}}}
    field = f"overrides.{alice.feed}.publish_at"
    assert refusal(_ask(alice, item, body)) == (400, "invalid_request", [(field, code)])
    assert Publication.everywhere.count() == 0


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"publish_at": "2099-01-01T00:00:00"}, ("publish_at", "invalid")),
        ({"publish_at": "2099-01-01"}, ("publish_at", "invalid")),
        ({"publish_at": 4_070_908_800}, ("publish_at", "invalid")),
        ({"publish_at": None}, ("publish_at", "null")),
        ({"publish_at": "2099-01-01T00:00:00Z", "local_time": "2099-01-01T00:00"}, ("local_time", "both")),
        ({"timezone": "Europe/Berlin"}, ("timezone", "alone")),
        ({"on_gap": "shift"}, ("on_gap", "alone")),
        ({"on_overlap": "first"}, ("on_overlap", "alone")),
        ({"local_time": "2099-01-01T00:00Z"}, ("local_time", "pattern")),
        ({"local_time": "2099-02-30T00:00"}, ("local_time", "invalid")),
        ({"local_time": "0001-01-01T00:00", "timezone": "Asia/Tokyo"}, ("local_time", "invalid")),
        ({"local_time": "9999-12-31T23:59", "timezone": "America/Lima"}, ("local_time", "invalid")),
        ({"local_time": "2099-01-01T00:00", "timezone": "Mars/Olympus"}, ("timezone", "unknown_timezone")),
        (
            {"local_time": "2099-01-01T00:00", "timezone": "../../etc/passwd"},
            ("timezone", "unknown_timezone"),
        ),
        ({"local_time": "2099-01-01T00:00", "timezone": "Europe"}, ("timezone", "unknown_timezone")),
        ({"local_time": "2099-01-01T00:00", "on_gap": "skip"}, ("on_gap", "invalid_choice")),
        ({"late_policy": "never"}, ("late_policy", "invalid_choice")),
        ({"max_lateness_minutes": 5}, ("max_lateness_minutes", "alone")),
        ({"outlets": []}, ("outlets", "empty")),
        ({"outlets": "out_x"}, ("outlets", "not_a_list")),
        ({"outlets": ["gen_01jd4t5v7yf8zr3m6n2q9k0hcx"]}, ("outlets[0]", "invalid_id")),
        ({"dry_run": "true"}, ("dry_run", "invalid")),
        ({"publsh_at": "x"}, ("publsh_at", "unknown_field")),
    ],
)
def test_wrong_wish_is_refused(alice, body, detail):
    item = alice.ready()
    assert refusal(_ask(alice, item, body)) == (400, "invalid_request", [detail])
    assert Publication.everywhere.count() == 0


@pytest.mark.parametrize(
    "body",
    [{"publish_at": None}, {"publish_at": True}, {"now": True}, {"publish_now": True}, {"mode": "now"}],
)
def test_now_in_words_is_told_how_to_say_it(alice, body):
    answer = _ask(alice, alice.ready(), body)
    assert answer.status_code == 400
    assert "To publish now leave publish_at out." in answer.json()["detail"][0]["message"]


def test_moment_without_an_offset_is_pointed_to_the_wall_clock(alice):
    answer = _ask(alice, alice.ready(), {"publish_at": "2030-01-01T09:00", "timezone": "Europe/Berlin"})
    assert "local_time and timezone" in answer.json()["detail"][0]["message"]


# --- Wall clocks -----------------------------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")


def _next_change(month):
    """The next last Sunday of the month, when Berlin's clocks change at 01:00 UTC."""
    now = datetime.now(UTC)
    for year in (now.year, now.year + 1):
        day = max(week[calendar.SUNDAY] for week in calendar.monthcalendar(year, month))
        change = datetime(year, month, day, 1, tzinfo=UTC)
        if change > now + timedelta(days=2):
            return change
    raise AssertionError


@pytest.fixture
def far_ahead(monkeypatch):
    # Two changes of the clocks may be 371 days apart.
    monkeypatch.setattr(limits, "PUBLISH_AHEAD", timedelta(days=400))


def _local(change: datetime) -> str:
    return f"{date(change.year, change.month, change.day)}T02:30"


def test_wall_clock_time_is_read_in_its_zone(alice):
    noon = (datetime.now(BERLIN) + timedelta(days=3)).replace(hour=12, minute=0, second=0, microsecond=0)
    text = noon.strftime("%Y-%m-%dT%H:%M")
    shown = _ask(alice, alice.ready(), {"local_time": text, "timezone": "Europe/Berlin"}).json()
    assert shown["publish_at"] == format_utc(noon)
    # The workspace's own zone is Berlin too.
    assert _ask(alice, alice.ready(), {"local_time": text}).json()["publish_at"] == format_utc(noon)
    in_tokyo = _ask(alice, alice.ready(), {"local_time": f"{text}:00", "timezone": "Asia/Tokyo"}).json()
    assert in_tokyo["publish_at"] == format_utc(noon.replace(tzinfo=ZoneInfo("Asia/Tokyo")))


@pytest.mark.usefixtures("far_ahead")
def test_time_in_the_gap_is_shifted_or_rejected(alice):
    change = _next_change(3)
    item = alice.ready()
    wish = {"local_time": _local(change), "timezone": "Europe/Berlin"}
    rejected = _ask(alice, item, {**wish, "on_gap": "reject"})
    message = "The clocks of Europe/Berlin skip this time; give another, or on_gap: shift."
    assert (rejected.status_code, rejected.json()) == (
        400,
        problem("invalid_request", ("local_time", "gap", message)),
    )
    # 02:30 isn't there: an hour later it is 03:30 summer time, 01:30 UTC.
    expected = format_utc(change + timedelta(minutes=30))
    assert _ask(alice, item, {**wish, "on_gap": "shift"}).json()["publish_at"] == expected
    shifted = _ask(alice, item, wish).json()
    day = f"{change.day} {change:%B %Y}"
    said = f"The clocks of Europe/Berlin are put forward on {day} and skip 02:30: it is 03:30 in its place."
    notes = [{"code": "time_moved", "message": said}]
    assert (shifted["publish_at"], shifted["notes"]) == (expected, notes)
    assert _ask(alice, item, {**wish, "dry_run": True}).json()["notes"] == notes
    wish["local_time"] = _local(change + timedelta(days=1))
    assert _ask(alice, item, wish).json()["notes"] == []


@pytest.mark.usefixtures("far_ahead")
def test_time_in_the_overlap_is_the_first_or_the_second(alice):
    change = _next_change(10)
    item = alice.ready()
    wish = {"local_time": _local(change), "timezone": "Europe/Berlin"}
    first = format_utc(change - timedelta(minutes=30))
    second = format_utc(change + timedelta(minutes=30))
    assert _ask(alice, item, wish).json()["publish_at"] == first
    assert _ask(alice, item, {**wish, "on_overlap": "first"}).json()["publish_at"] == first
    assert _ask(alice, item, {**wish, "on_overlap": "second"}).json()["publish_at"] == second


# --- Dry runs --------------------------------------------------------------------------------------------------------


def test_dry_run_tells_what_would_be_sent_and_sends_nothing(alice):
    item, when = alice.ready(), _in(days=3)
    before = alice.api.read(f"/generated/{item['id']}")
    answer = _ask(
        alice,
        item,
        {
            "dry_run": True,
            "publish_at": format_utc(when),
            "outlets": [alice.feed, alice.simulated],
            "overrides": {
                alice.simulated: {"body": "x" * 5001, "title": "Short", "settings": {"script": ["ok"]}}
            },
        },
    )
    shown = answer.json()
    feed = {
        "outlet": alice.feed,
        "platform": "feed",
        "publish_at": format_utc(when),
        "ok": True,
        "credentials": "ok",
        "problems": [],
        "length": {"count": len(item["body"]), "limit": None, "unit": "characters"},
        "title": item["title"],
        "body": item["body"],
        "body_format": item["body_format"],
        "parts": [item["body"]],
        "steps": [],
        "disclosure": {},
        "content": item["content"],
        "media": [],
        "settings": {},
    }
    simulated = {
        **feed,
        "outlet": alice.simulated,
        "platform": "simulated",
        "ok": False,
        "problems": [
            {
                "field": "outlets[1].body",
                "code": "too_long",
                "message": "The text has 5001 characters; the maximum is 5000.",
            }
        ],
        "length": {"count": 5001, "limit": 5000, "unit": "characters"},
        "title": "Short",
        "body": "x" * 5001,
        "parts": ["x" * 5001],
        "settings": {"script": ["ok"]},
    }
    assert (answer.status_code, shown) == (
        200,
        {"dry_run": True, "generated_item": item["id"], "outlets": [feed, simulated], "notes": []},
    )
    assert alice.api.read(f"/generated/{item['id']}") == before
    assert (Publication.everywhere.count(), SimulatedPost.everywhere.count()) == (0, 0)


def test_dry_run_tells_of_an_account_that_has_to_be_connected_again(alice):
    Outlet.everywhere.filter(pk=ids.decode("out", alice.simulated)).update(status="needs_reconnect")
    answer = _ask(alice, alice.ready(), {"dry_run": True, "outlets": [alice.simulated]})
    outlet = answer.json()["outlets"][0]
    assert (outlet["ok"], outlet["credentials"]) == (False, "needs_reconnect")


# --- Overrides and outlets that can't --------------------------------------------------------------------------------


def test_overrides_are_sent(alice):
    alice.publish(
        alice.ready(),
        {
            "outlets": [alice.simulated],
            "overrides": {alice.simulated: {"title": "Other", "body": "Other words."}},
        },
    )
    post = SimulatedPost.everywhere.get()
    assert (post.title, post.body) == ("Other", "Other words.")


def test_outlets_that_can_not_take_it_are_named_each(alice):
    item = alice.ready()
    long = {"body": "x" * 5001}
    second = Outlet.everywhere.create(
        workspace=alice.workspace, platform="simulated", name="Second", is_simulated=True
    )
    second_id = ids.encode("out", second.pk)
    answer = _ask(
        alice,
        item,
        {
            "outlets": [alice.simulated, alice.feed, second_id],
            "overrides": {alice.simulated: long, second_id: long},
        },
    )
    assert refusal(answer) == (
        400,
        "invalid_request",
        [("outlets[0].body", "too_long"), ("outlets[2].body", "too_long")],
    )
    assert Publication.everywhere.count() == 0


def test_unknown_outlets_are_named_each(alice):
    item = alice.ready()
    outlets = [never_existed("out"), alice.feed, never_existed("out")]
    assert refusal(_ask(alice, item, {"outlets": outlets})) == (
        400,
        "invalid_request",
        [("outlets[0]", "unknown_outlet"), ("outlets[2]", "unknown_outlet")],
    )
    strange = never_existed("out")
    assert refusal(_ask(alice, item, {"overrides": {strange: {"title": "x"}}})) == (
        400,
        "invalid_request",
        [(f"overrides.{strange}", "unknown_outlet")],
    )
    assert Publication.everywhere.count() == 0


@pytest.mark.parametrize(
    ("override", "inner", "code"),
    [
        ({"titel": "x"}, ".titel", "unknown_field"),
        ({"title": 5}, ".title", "invalid"),
        ({"settings": []}, ".settings", "not_an_object"),
        ({"publish_at": "tomorrow"}, ".publish_at", "invalid"),
        ("text", "", "invalid"),
    ],
)
def test_wrong_override_is_named_with_its_place(alice, override, inner, code):
    answer = _ask(alice, alice.ready(), {"overrides": {alice.feed: override}})
    assert refusal(answer) == (400, "invalid_request", [(f"overrides.{alice.feed}{inner}", code)])


def test_item_without_any_outlet(alice):
    item = alice.ready()
    alice.api.patch(f"/generated/{item['id']}", {"outlets": []})
    assert refusal(_ask(alice, item)) == (400, "invalid_request", [("outlets", "no_outlet")])
    assert _ask(alice, item, {"dry_run": True}).json() == _ask(alice, item).json()


def test_item_whose_outlets_were_all_deleted(alice):
    item = alice.ready()
    Outlet.everywhere.filter(platform="feed").update(deleted_at=datetime.now(UTC))
    assert refusal(_ask(alice, item)) == (400, "invalid_request", [("outlets", "no_outlet")])
    answer = _ask(alice, item, {"outlets": [alice.feed]})
    assert refusal(answer) == (400, "invalid_request", [("outlets[0]", "unknown_outlet")])
