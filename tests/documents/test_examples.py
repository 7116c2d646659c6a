"""The examples of the docs are what the service answers; `UPDATE_EXAMPLES=1` writes them anew."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import time_machine
from django.utils import timezone
from standardwebhooks import Webhook

from config.api_docs import views
from config.core import task_runner, work_queue
from config.core.api.jsonio import dump
from config.core.http_client import shared
from pipeline import events
from pipeline.ingest.collect import poll_source, source_preview
from pipeline.outlets import simulated_server
from pipeline.sources.base import Entry, Fetch
from tests.documents.flow import NOON, OPERATOR, PUBLIC_URL, Flow, Normal
from tests.documents.further_examples import record_further_examples
from tests.documents.test_openapi import complaints_about
from tests.documents.text import DOCS, EMBEDDED, EXAMPLES, as_block, read
from webhooks.endpoints import TEST_EVENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_httpserver import HTTPServer

IS_UPDATE = os.environ.get("UPDATE_EXAMPLES") == "1"
METRICS = {"impressions": 1240, "views": 810, "likes": 36, "comments": 4, "shares": 7, "clicks": 22}


LISTED = Fetch(
    entries=tuple(
        Entry(
            external_id=f"https://harbour.example/?p={number}",
            url=f"https://harbour.example/news/{name}",
            title=title,
            body=f"<p>{title}, the harbour says.</p>",
            body_format="html",
            published_at=NOON - timedelta(days=5 - number),
        )
        for number, name, title in (
            (4, "cranes", "Two cranes arrive"),
            (3, "bridge", "The bridge opens at noon"),
            (2, "market", "The fish market moves"),
            (1, "tide", "A high tide is expected"),
        )
    ),
    state={},
    title="Harbour news",
)
"""What the preview's feed lists."""


@pytest.fixture
def flow(db: None, settings: Any, monkeypatch: pytest.MonkeyPatch, httpserver: HTTPServer) -> Iterator[Flow]:
    settings.PUBLIC_URL = PUBLIC_URL
    settings.OPERATOR_CONTACT = OPERATOR
    settings.OUTBOUND_ALLOW_LOOPBACK = settings.WEBHOOKS_ALLOW_HTTP = True
    # It keeps the policy that it was made with.
    shared.client.cache_clear()
    # One clock for everything, the database's included.
    monkeypatch.setattr(work_queue, "database_now", timezone.now)
    monkeypatch.setattr(simulated_server, "made_up_metrics", lambda *_: METRICS)
    monkeypatch.setattr(poll_source, "_jitter", lambda: 0.0)
    monkeypatch.setattr(source_preview, "fetch", lambda *_, **__: LISTED)
    httpserver.expect_request("/hook").respond_with_data("")
    with time_machine.travel(NOON, tick=False) as traveller:
        run = Flow(traveller.shift, httpserver.url_for("/hook"))
        run.run()
        record_further_examples(run, monkeypatch, LISTED)
        yield run
    shared.client.cache_clear()


def test_examples_are_what_the_service_answers(flow, httpserver):
    normal = Normal()
    examples = {name: normal(example) for name, example in flow.examples.items()}
    task_runner.work_all_due("webhooks.deliver_to_endpoint")
    _check_deliveries(flow, httpserver)
    test_envelope = json.loads(httpserver.log[-1][0].data)
    examples[f"event-{TEST_EVENT}"] = normal(test_envelope)
    if IS_UPDATE:
        _write(examples)
    kept = {path.stem: json.loads(path.read_text()) for path in sorted(EXAMPLES.glob("*.json"))}
    assert sorted(examples) == sorted(kept)
    for name, example in examples.items():
        assert kept[name] == example, f"docs/examples/{name}.json: UPDATE_EXAMPLES=1 writes it anew"


def _check_deliveries(flow: Flow, httpserver: HTTPServer) -> None:
    """A receiver gets the bytes that the feed of events shows, signed."""
    bodies = {}
    for request, _ in httpserver.log:
        headers = {name.lower(): value for name, value in request.headers.items()}
        Webhook(flow.endpoint.secret).verify(request.data, headers)
        bodies[headers["webhook-id"]] = json.loads(request.data)
    made = json.loads(dump(views.build_openapi()))
    for body in bodies.values():
        assert complaints_about(made, body) == [], body["type"]
    assert {body["type"] for body in bodies.values()} == {*events.TYPES, TEST_EVENT}
    test_event = [body for body in bodies.values() if body["type"] == TEST_EVENT]
    assert len(test_event) == 1
    assert [bodies.get(envelope["id"]) for envelope in flow.envelopes] == flow.envelopes
    assert len(bodies) == len(flow.envelopes) + 1


def _write(examples: dict[str, Any]) -> None:
    EXAMPLES.mkdir(exist_ok=True)
    for path in EXAMPLES.glob("*.json"):
        path.unlink()
    for name, example in examples.items():
        (EXAMPLES / f"{name}.json").write_text(as_block(example))
    for document in DOCS.rglob("*.md"):
        text = document.read_text()
        written = EMBEDDED.sub(
            lambda match: (
                f"<!-- example: {match[1]} -->\n```json\n{(EXAMPLES / f'{match[1]}.json').read_text()}```\n"
            ),
            text,
        )
        if written != text:
            document.write_text(written)


def test_every_event_type_has_its_example():
    there = {path.stem.removeprefix("event-") for path in EXAMPLES.glob("event-*.json")}
    assert there == {*events.TYPES, TEST_EVENT}


@pytest.mark.parametrize("document", sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")))
def test_embedded_examples_are_those_of_the_files(document):
    for name, block in EMBEDDED.findall(read(document)):
        assert block == (EXAMPLES / f"{name}.json").read_text(), f"{document}: {name}"


def test_every_example_is_shown_or_linked():
    text = "\n".join(path.read_text() for path in DOCS.rglob("*.md"))
    missing = [
        path.stem
        for path in sorted(EXAMPLES.glob("*.json"))
        if f"<!-- example: {path.stem} -->" not in text and f"examples/{path.name})" not in text
    ]
    assert missing == []
