"""What the property-based run stands on: the application in this process, a newsroom with rows in every state."""

from __future__ import annotations

import itertools
import re
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zlib import crc32

import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, connection, transaction
from django.test import Client

from accounts import workspaces
from accounts.access import authentication, tokens, workspace_rate_limit
from config.core import task_runner
from config.core.api.jsonio import dump
from config.core.ids import decode
from pipeline.generate import run as generation_run
from pipeline.models import Generation, WorkspaceDefaults
from tests.pipeline.steps import claimed

if TYPE_CHECKING:
    from collections.abc import Callable

    from accounts.models import Workspace

_ID = re.compile(r"\b([a-z]{2,3})_[0-7][0-9a-hjkmnp-tv-z]{25}\b")
_KINDS_OF_WORK = (
    "generate.run_item",
    "publish.send_publication",
    "analytics.count_events",
    "webhooks.fan_out",
)
_KEPT_UNKNOWN = 11
"""Every so many-th id stays the invented one, so that unknown ids are asked for too."""


def work() -> None:
    """Everything that is due, done; the sources are not fetched, for there is no network."""
    task_runner.work_all_due(*_KINDS_OF_WORK)


@contextmanager
def undone():
    """Whatever happens inside is taken back: every case finds the same rows, so that each can be run again."""
    with transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)


@dataclass
class Newsroom:
    """A token of an unlimited workspace; the public ids that there are, by prefix, and those that answers gave."""

    secret: str
    ids: dict[str, list[str]] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}

    def remember(self, answer: str) -> None:
        self.given.update(match[0] for match in _ID.finditer(answer))

    def known(self, value: Any, salt: str) -> Any:
        """The same value with well-formed ids, however deep, exchanged for ids that exist.

        The same invention with the same salt always becomes the same id, so that a case can be run again.
        """
        if isinstance(value, dict):
            return {self.known(key, salt): self.known(member, salt) for key, member in value.items()}
        if isinstance(value, list):
            return [self.known(member, salt) for member in value]
        match = _ID.fullmatch(value) if isinstance(value, str) else None
        there = self.ids.get(match[1], []) if match else []
        if not there or value in there or value in self.given:
            return value
        number = crc32(f"{salt}{value}".encode())
        return value if number % _KEPT_UNKNOWN == 0 else there[number // _KEPT_UNKNOWN % len(there)]


def _bridges(client: Client, call: Callable[..., Any]) -> None:
    """Most sources are of the kind that has secrets and deliveries, so that a request for one of those meets its own."""
    for number in range(4):
        proof = {"type": "bearer", "secret": "a-secret-of-the-sender"}
        bridge = call("POST", "/sources", {"type": "webhook", "config": {"verification": proof}}, expect=201)
        answer = client.post(
            urlsplit(bridge["inbound_url"]).path,
            {"title": f"Storm {number}", "body": f"Storm number {number} came.", "external_id": str(number)},
            content_type="application/json",
            headers={"Authorization": f"Bearer {proof['secret']}"},
        )
        assert answer.status_code == 202, answer.content


def _furnish(newsroom: Newsroom, workspace: Workspace) -> None:
    """Rows in every state that the API can bring about."""
    client = Client(headers=newsroom.headers)
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    feed, simulated = defaults.outlets[0], defaults.test_outlets[0]
    numbers = itertools.count(1)

    def call(method: str, path: str, body: Any = None, *, expect: int) -> Any:
        answer = client.generic(method, f"/v1{path}", b"" if body is None else dump(body), "application/json")
        assert answer.status_code == expect, (method, path, answer.content)
        return answer.json()

    def push(**fields: Any) -> str:
        number = next(numbers)
        story = {
            "external_id": f"story-{number}",
            "title": f"The harbour gets crane number {number}",
            "body": f"The harbour of Norden bought {number} new cranes on Monday. "
            f"Each of the cranes lifts {number + 40} tonnes, twice as much as the old ones. "
            f"Dock workers will train for {number + 2} weeks before the first ship arrives.",
            "language": "en",
            # One item of each story, so that every one of them has its part in what is seeded.
            "engines": ["Short Post"],
        }
        return call("POST", "/raw", {**story, **fields}, expect=202)["id"]

    def ready(**fields: Any) -> str:
        raw = push(**fields)
        work()
        return call("GET", f"/raw/{raw}", expect=200)["generated"][0]

    def to_simulated(*script: str) -> dict[str, Any]:
        return {"outlets": [simulated], "overrides": {simulated: {"settings": {"script": list(script)}}}}

    later = (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for kind, config in (
        ("rss", {"url": "http://127.0.0.1:9/feed.xml"}),
        ("webhook", {}),
        ("brand", {"topics": [{"title": "Bread", "notes": "Rye bread keeps for nine days in its crust."}]}),
    ):
        call("POST", "/sources", {"type": kind, "config": config}, expect=201)
    _bridges(client, call)
    for title in ("Rye", "Spelt", "Oats"):
        call("POST", "/topics", {"title": title, "angles": ["myth"]}, expect=201)
    weekly = {"name": "Weekly", "slots": [{"weekday": 4, "time": "09:00"}]}
    call("POST", "/series", weekly, expect=201)
    call("POST", "/recurrences", {"generated_item": ready(), "every_days": 30}, expect=201)
    ready()
    newsroom.ids.setdefault("pln", []).append(call("POST", "/plans", {"days": 14}, expect=201)["id"])
    # Several of each, so that a restoring and a cancellation meet one of them.
    for _ in range(3):
        call("POST", f"/generated/{ready()}/reject", {"reason": "Not ours."}, expect=200)
        call("POST", f"/generated/{ready()}/publish", {"publish_at": later}, expect=202)
    for body in (
        {"outlets": [feed, simulated]},
        to_simulated("reject"),
        # As many as those above: settling takes this state and nothing else.
        *3 * [to_simulated("timeout_after_accept")],
    ):
        call("POST", f"/generated/{ready()}/publish", body, expect=202)
        work()
    # No words to write from, none that stand alone, too few for three variants, and two variants of one story.
    push(title="The crane", body="")
    push(title="", body="He agreed.")
    for town in ("Norden", "Emden", "Leer"):
        push(
            title=town, body=f"The harbour of {town} bought 7 new cranes on Monday for its dock.", variants=3
        )
    ready(variants=2)
    ready()
    work()
    _break_and_spare(call, push)
    # One that waits for its turn.
    push()


def _break_and_spare(call: Callable[..., Any], push: Callable[..., str]) -> None:
    """Runs that broke again and again, which may be tried once more; and personas that no source speaks as."""
    for _ in range(3):
        broken = decode("raw", push())
        generation_run.give_up(claimed(Generation.everywhere.get(raw_item=broken)))
    for name in ("Spare", "Another"):
        call("POST", "/personas", {"name": name}, expect=201)


@pytest.fixture
def application(newsroom):
    """The real one. Each request has an address of its own: who sends bad tokens is counted by address."""
    inner = get_wsgi_application()
    numbers = itertools.count()

    def from_somewhere(environ, start_response):
        number = next(numbers)
        environ["REMOTE_ADDR"] = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        return inner(environ, start_response)

    # At both ends of a request they would drop the connection, because it is in the test's transaction.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield from_somewhere
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def newsroom(db, settings):
    if connection.vendor == "postgresql":
        # Inventing a case may take longer than the service lets a transaction wait.
        connection.cursor().execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    fresh = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid.uuid4().hex}
    settings.CACHES = dict.fromkeys(("default", "counts", "marks"), fresh)
    workspace_rate_limit._redis_skipped_until["at"] = 0.0
    authentication._cache_skipped_until["at"] = 0.0
    workspace = workspaces.create("Alice's newsroom", timezone="Europe/Berlin")
    workspaces.whitelist(workspace, "operator")
    workspaces.lift_limits(workspace, "operator")
    made = Newsroom(tokens.issue(workspace, name="Fuzzing").secret)
    _furnish(made, workspace)
    client = Client(headers=made.headers)
    paths = [
        "sources",
        "raw",
        "generated",
        "publications",
        "outlets",
        "personas",
        "topics",
        "queues",
        "series",
        "recurrences",
    ]
    for path in paths:
        for row in client.get(f"/v1/{path}?limit=100&order=asc").json()["data"]:
            made.ids.setdefault(row["id"].partition("_")[0], []).append(row["id"])
            if row.get("inbound_url"):
                paths.append(f"sources/{row['id']}/deliveries")
    return made
