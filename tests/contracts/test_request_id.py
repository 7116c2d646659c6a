"""X-Request-Id: in and out, and on the work that the request queued."""

from __future__ import annotations

import re

import pytest

from config.ground import hands, ids
from pipeline.models import Event, Generation, Publication, RawItem, Source

OWN = re.compile(r"req_[0-9a-f]{32}")


@pytest.mark.parametrize("given", ["12345678", "a" * 64, "trace:1.2_3-4"])
def test_sane_id_is_kept(api, given):
    assert api.get("/workspace", headers={"X-Request-Id": given})["X-Request-Id"] == given


@pytest.mark.parametrize(
    "given", ["short", "a" * 65, "with space", "line\x01feed", "é" * 10, "", "<script>alert"]
)
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
    hands.work_all_due("pipeline.generate")
    item = alice.generated_of(answer.json())[0]
    alice.api.post(f"/generated/{item['id']}/publish", headers={"X-Request-Id": publish})
    assert Publication.everywhere.get().request_id == publish
    hands.work_all_due("pipeline.publish")
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
