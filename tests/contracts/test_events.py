"""GET /events."""

from __future__ import annotations

from config.core import task_runner
from pipeline.models import Event
from tests.contracts.conftest import normal, refusal


def _feed(newsroom, query=""):
    task_runner.work_all_due("webhooks.fan_out")
    return newsroom.api.read(f"/events{query}")


def test_events_come_in_their_order_as_the_bytes_that_were_signed(alice):
    item = alice.published()
    answer = _feed(alice)
    assert [one["type"] for one in answer["data"]] == ["raw.ingested", "generated.ready", "published.success"]
    assert answer["has_more"] is False
    raw, ready, success = answer["data"]
    assert normal({**raw, "data": {}}) == {
        "id": "evt_*",
        "type": "raw.ingested",
        "timestamp": "<moment>",
        "workspace": "ws_*",
        "data": {},
    }
    assert raw["workspace"] == alice.workspace.public_id
    assert raw["data"]["raw_item"]["id"] == item["raw_item"]
    assert (ready["data"]["generated_item"]["id"], ready["data"]["generated_item"]["status"]) == (
        item["id"],
        "ready",
    )
    assert success["data"]["publication"]["generated_item"] == item["id"]
    assert success["data"]["generated_item"]["status"] == "published"


def test_failed_publication_tells_the_error_and_the_next_attempt(alice):
    alice.publication("429", "reject")
    failed = _feed(alice, "?type=published.failed")["data"]
    assert [(one["data"]["will_retry"], one["data"]["error"]["code"]) for one in failed] == [
        (True, "rate_limited")
    ]
    assert normal(failed[0]["data"]["next_attempt_at"]) == "<moment>"


def test_feed_goes_on_after_its_last_page(alice):
    alice.push()
    first = _feed(alice)
    nothing_new = _feed(alice, f"?after={first['next_cursor']}")
    assert nothing_new == {"data": [], "has_more": False, "next_cursor": first["next_cursor"]}
    raw = alice.push()
    news = _feed(alice, f"?after={nothing_new['next_cursor']}")
    assert [one["data"]["raw_item"]["id"] for one in news["data"]] == [raw["id"]]


def test_feed_is_read_in_pages_without_gaps(alice):
    pushed = [alice.push()["id"] for _ in range(5)]
    seen, after = [], ""
    for _ in range(3):
        page = _feed(alice, f"?limit=2{after}")
        seen += [one["data"]["raw_item"]["id"] for one in page["data"]]
        after = f"&after={page['next_cursor']}"
    assert (seen, page["has_more"]) == (pushed, False)


def test_empty_feed(alice):
    assert _feed(alice) == {"data": [], "has_more": False, "next_cursor": None}


def test_feed_is_filtered_by_type_and_its_cursor_outlives_the_filter(alice):
    alice.published()
    ready = _feed(alice, "?type=generated.ready")
    assert [one["type"] for one in ready["data"]] == ["generated.ready"]
    several = _feed(alice, "?type=generated.ready&type=raw.ingested")
    assert [one["type"] for one in several["data"]] == ["raw.ingested", "generated.ready"]
    rest = _feed(alice, f"?after={ready['next_cursor']}")
    assert [one["type"] for one in rest["data"]] == ["published.success"]


def test_feed_refuses_what_it_does_not_know(alice, charlie):
    assert refusal(alice.api.get("/events?type=raw.ingest&offset=x")) == (
        400,
        "invalid_request",
        [("offset", "unknown_parameter"), ("type", "invalid")],
    )
    alice.push()
    charlie.push()
    foreign = _feed(charlie)["next_cursor"]
    own = _feed(alice)["next_cursor"]
    of_a_list = None
    for _ in range(2):
        alice.push()
        of_a_list = alice.api.read("/raw?limit=1")["next_cursor"]
    tampered = ("A" if own[0] != "A" else "B") + own[1:]
    tester = alice.client(is_test=True)
    assert refusal(tester.get(f"/events?after={own}")) == (400, "invalid_cursor", [(None, "invalid_cursor")])
    for after in (foreign, of_a_list, tampered, "", "nonsense", "%E2%82%AC"):
        assert refusal(alice.api.get(f"/events?after={after}")) == (
            400,
            "invalid_cursor",
            [(None, "invalid_cursor")],
        )


def test_live_and_test_events_are_apart(alice):
    tester = alice.client(is_test=True)
    alice.push()
    made = alice.push(tester)
    task_runner.work_all_due("webhooks.fan_out")
    assert [one["data"]["raw_item"]["id"] for one in tester.read("/events")["data"]] == [made["id"]]
    assert len(alice.api.read("/events")["data"]) == 1


def test_events_past_their_time_of_keeping_are_left_out(alice):
    alice.push()
    raw = alice.push()
    task_runner.work_all_due("webhooks.fan_out")
    Event.everywhere.filter(position=1).update(body=None)
    assert [one["data"]["raw_item"]["id"] for one in alice.api.read("/events")["data"]] == [raw["id"]]
