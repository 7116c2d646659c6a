"""The calls after the run of `flow`, for the bodies that no call of it has: reads, changes and acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core import task_runner
from pipeline.ingest.collect import poll_source

if TYPE_CHECKING:
    import pytest

    from pipeline.sources.base import Fetch
    from tests.documents.flow import Flow


def record_further_examples(flow: Flow, monkeypatch: pytest.MonkeyPatch, listed: Fetch) -> None:
    """Make the calls; `listed` is what the feed of the one source says that is polled."""
    _personas_and_topics(flow)
    _hold_and_queues(flow)
    _items(flow)
    _raw_items(flow)
    _bridge(flow)
    monkeypatch.setattr(poll_source, "fetch", lambda *_, **__: listed)
    _polled_source(flow)


def _personas_and_topics(flow: Flow) -> None:
    wish = {
        "name": "Harbour desk",
        "language": "en",
        "sections": {"voice": "Short sentences, no jokes.", "banned_words": ["exciting"]},
        "approved_lines": ["The harbour never sleeps."],
    }
    made = flow.call("POST", "/personas", wish, expect=201, request_name="persona.request")
    change = {"approved_lines": ["The harbour never sleeps.", "See you at pier four."]}
    path = f"/personas/{made['id']}"
    flow.call("PATCH", path, change, expect=200, request_name="persona-edit.request")
    flow.call("GET", "/personas?limit=1", expect=200, name="personas")
    flow.call("DELETE", path, expect=204)
    topics = flow.call("GET", "/topics?limit=1", expect=200, name="topics")
    change = {"weight": 2, "is_active": True}
    path = f"/topics/{topics['data'][0]['id']}"
    flow.call("PATCH", path, change, expect=200, request_name="topic-edit.request")


def _hold_and_queues(flow: Flow) -> None:
    wish = {"reason": "A storm warning: no harbour news until it is over."}
    flow.call("POST", "/hold", wish, expect=200, name="hold", request_name="hold.request")
    flow.call("DELETE", "/hold", expect=204)
    queues = flow.call("GET", "/queues", expect=200, name="queues")
    flow.call("GET", f"/queues/{queues['data'][0]['id']}", expect=200, name="queue")


def _items(flow: Flow) -> None:
    ready = flow.call("GET", "/generated?status=ready", expect=200)["data"]
    item = ready[0]
    path = f"/generated/{item['id']}"
    flow.call("GET", f"{path}/explain", expect=200, name="explanation")
    checked = {"revision": item["revision"]}
    flow.call("POST", f"{path}/approve", checked, expect=200, request_name="revision.request")
    reason = {"reason": "The other one says it better."}
    flow.call("POST", f"{path}/reject", reason, expect=200, request_name="reject.request")


def _raw_items(flow: Flow) -> None:
    flow.call("GET", "/raw?limit=1", expect=200, name="raw_list")


def _bridge(flow: Flow) -> None:
    config = {"verification": {"type": "standard_webhooks"}}
    bridge = flow.call("POST", "/sources", {"type": "webhook", "config": config}, expect=201)
    wish = {"overlap_seconds": 3600}
    path = f"/sources/{bridge['id']}"
    flow.call(
        "POST",
        f"{path}/rotate-secret",
        wish,
        expect=200,
        name="inbound_secret",
        request_name="rotate.request",
    )
    flow.call("DELETE", path, expect=204)


def _polled_source(flow: Flow) -> None:
    wish: dict[str, Any] = {
        "type": "rss",
        "config": {"url": "https://harbour.example/feed.xml"},
        "first_poll": "none",
    }
    source = flow.call("POST", "/sources", wish, expect=201)
    flow.call("POST", f"/sources/{source['id']}/poll", {}, expect=202, request_name="no_fields.request")
    task_runner.work_all_due("ingest.poll_source")
    flow.call("GET", f"/sources/{source['id']}/entries?limit=2", expect=200, name="source-entries")
    flow.call("GET", "/sources?limit=1", expect=200, name="sources")
