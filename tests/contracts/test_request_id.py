"""X-Request-Id: in and out, and on the work that the request queued."""

from __future__ import annotations

import logging
import re

import pytest

from config.core import ids, task_runner
from pipeline.models import Event, Generation, Publication, RawItem, Source
from webhooks import endpoints
from webhooks.models import Delivery

OWN = re.compile(r"req_[0-9a-f]{32}")


@pytest.mark.parametrize("given", ["1", "my-id-1", "a" * 64, "trace:1.2_3-4"])
def test_sane_id_is_kept(api, given):
    assert api.get("/workspace", headers={"X-Request-Id": given})["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["a" * 65, "with space", "line\x01feed", "é" * 10, "", "<script>alert"])
def test_other_ids_are_replaced(api, given):
    answer = api.get("/workspace", headers={"X-Request-Id": given})
    assert OWN.fullmatch(answer["X-Request-Id"])


def test_each_request_has_its_own(api):
    first, second = (api.get("/workspace")["X-Request-Id"] for _ in range(2))
    assert first != second


@pytest.mark.parametrize("path", ["/nothing", "/raw", "/generated/x"])
def test_errors_have_one_too(stranger, api, path):
    for client in (stranger, api):
        assert OWN.fullmatch(client.call("PUT", path)["X-Request-Id"])


def test_id_goes_with_the_work_and_its_events(alice):
    push, publish, poll = "push-request-1", "publish-request-1", "source-request-1"
    answer = alice.api.post("/raw", alice.content(), headers={"X-Request-Id": push})
    assert RawItem.everywhere.get().request_id == push
    assert Generation.everywhere.get().request_id == push
    task_runner.work_all_due("generate.run_item")
    item = alice.generated_of(answer.json())[0]
    alice.api.post(f"/generated/{item['id']}/publish", headers={"X-Request-Id": publish})
    assert Publication.everywhere.get().request_id == publish
    task_runner.work_all_due("publish.send_publication")
    assert dict(Event.everywhere.values_list("type", "request_id")) == {
        "raw.ingested": push,
        "generated.ready": push,
        "published.success": publish,
    }
    made = alice.api.post(
        "/sources",
        {"type": "rss", "config": {"url": "https://example.test/f"}},
        headers={"X-Request-Id": poll},
    )
    assert Source.everywhere.get(pk=ids.decode("src", made.json()["id"])).request_id == poll


def test_one_id_leads_through_the_log_from_the_call_to_the_webhook(alice, httpserver, caplog):
    """What an operator greps for: the call, the work that it queued, and each attempt to tell of it."""
    httpserver.expect_request("/hook").respond_with_data("", status=500)
    endpoints.add(alice.workspace, httpserver.url_for("/hook"), actor="alice")
    with caplog.at_level(logging.INFO):
        mine, other = "req-of-the-chain-1", "req-of-another-call"
        alice.api.post("/raw", alice.content(), headers={"X-Request-Id": mine})
        alice.api.post("/raw", alice.content(), headers={"X-Request-Id": other})
        task_runner.work_all_due("generate.run_item", "webhooks.fan_out", "webhooks.deliver_to_endpoint")
    facts = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    for request_id in (mine, other):
        own = [fact for fact in facts if fact.get("request_id") == request_id]
        told = {(fact["event"], fact.get("kind")) for fact in own}
        [call] = [fact for fact in own if fact["event"] == "answered"]
        assert (call["method"], call["path"], call["status"]) == ("POST", "/v1/raw", 202)
        assert ("worked", "compute.run_item") in told
        # Of the raw item and of what was made of it; each was tried, and each failed.
        attempts = [fact for fact in own if fact["event"] == "delivery_attempted"]
        sent = Delivery.everywhere.filter(request_id=request_id)
        assert sent.count() == 2
        assert {fact["delivery"] for fact in attempts} <= {ids.encode("dlv", one.pk) for one in sent}
    # The first failure leaves the other deliveries to the lane of those that fail.
    attempted = [fact for fact in facts if fact["event"] == "delivery_attempted"]
    assert attempted
    assert all(fact["request_id"] in {mine, other} for fact in attempted)
