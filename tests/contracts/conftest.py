"""What the tests of the API's contract stand on: two workspaces, clients with tokens, and a pipeline at work."""

from __future__ import annotations

import re
import uuid
from itertools import count
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from accounts import workspaces
from accounts.access import authentication, tokens, workspace_rate_limit
from accounts.models import Plan
from config.core import ids, task_runner
from config.core.api.jsonio import dump
from config.core.errors import QUOTA_FIELDS
from pipeline.generate import run as generation_run
from pipeline.models import Generation, InboundDelivery, WorkspaceDefaults
from tests import caches
from tests.contracts.routes import DELIVERY
from tests.pipeline.steps import claimed

NOTHING: Any = object()
_ID = re.compile(r"\b([a-z]{2,3})_[0-7][0-9a-hjkmnp-tv-z]{25}\b")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")
_SECRET = re.compile(r"/(feeds|hooks)/[A-Za-z0-9_-]{20,}")

NOT_FOUND = {
    "error": "not_found",
    "detail": [{"field": None, "code": "not_found", "message": "There is nothing at this address."}],
}


def problem(code: str, *details: tuple[str | None, str, str]) -> dict[str, Any]:
    """An error's body; each detail is field, code and message."""
    return {
        "error": code,
        "detail": [{"field": field, "code": inner, "message": message} for field, inner, message in details],
    }


def refusal(answer: Any) -> tuple[int, str, list[tuple[str | None, str]]]:
    """Status, error, and field and code of each detail; checks the shape of everything on the way."""
    body = answer.json()
    assert set(body) == {"error", "detail"}
    assert body["detail"]
    for one in body["detail"]:
        assert {"field", "code", "message"} <= set(one) <= {"field", "code", "message", *QUOTA_FIELDS}
        assert one["message"]
    assert answer.headers["Content-Type"] == "application/json"
    return answer.status_code, body["error"], [(one["field"], one["code"]) for one in body["detail"]]


def normal(value: Any) -> Any:
    """The same with ids, moments and secrets replaced, so that whole bodies can be compared."""
    if isinstance(value, dict):
        return {key: normal(member) for key, member in value.items()}
    if isinstance(value, list):
        return [normal(member) for member in value]
    if isinstance(value, str):
        value = _ID.sub(r"\1_*", value)
        value = _MOMENT.sub("<moment>", value)
        value = _HEX.sub("<hex>", value)
        return _SECRET.sub(r"/\1/*", value)
    return value


def never_existed(prefix: str) -> str:
    return ids.encode(prefix, ids.uuid7())


class Api:
    """A client with one token. Paths are given without `/v1`."""

    def __init__(self, secret: str | None, *, address: str = "127.0.0.1") -> None:
        self.secret = secret
        self.client = Client(raise_request_exception=False, REMOTE_ADDR=address)

    def call(
        self,
        method: str,
        path: str,
        body: Any = NOTHING,
        *,
        data: bytes | None = None,
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
        **extra: Any,
    ) -> Any:
        sent = dict(headers or {})
        if self.secret is not None:
            sent.setdefault("Authorization", f"Bearer {self.secret}")
        content = data if data is not None else (b"" if body is NOTHING else dump(body))
        return self.client.generic(
            method,
            path if path.startswith("//") else f"/v1{path}",
            content,
            content_type=kind,
            headers=sent,
            **extra,
        )

    def get(self, path: str, **more: Any) -> Any:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = NOTHING, **more: Any) -> Any:
        return self.call("POST", path, body, **more)

    def patch(self, path: str, body: Any = NOTHING, **more: Any) -> Any:
        return self.call("PATCH", path, body, **more)

    def delete(self, path: str, **more: Any) -> Any:
        return self.call("DELETE", path, **more)

    def read(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status_code == 200, answer.content
        return answer.json()


STORIES = (
    (
        "Bakery opens a second oven",
        (
            "Hirsch's bakery has opened a second oven in the old customs house by the quay. It bakes 180 loaves an hour, "
            "three times as many as the one in Mill Street."
        ),
    ),
    (
        "Library lends cargo bikes",
        (
            "Anyone with a library card can take one of 12 bikes home for a day, free of charge. The bikes cost £46,000, "
            "which the Friends of the Library raised with a book sale."
        ),
    ),
    (
        "Pool stays closed",
        (
            "The Westgate pool stays closed until May because two of its three pumps have failed. Spare parts, which were "
            "built in 1987, have to be cast anew by a foundry in Leeds."
        ),
    ),
)


class Newsroom:
    """A workspace and what a test does in it; everything goes through the API."""

    _numbers = count(1)

    def __init__(self, name: str, **plan: int) -> None:
        self.plan = Plan.objects.create(
            name=f"Plan of {name}", **{"credits_per_month": 1000, "active_sources_most": 20, **plan}
        )
        self.workspace = workspaces.create(name, plan=self.plan, timezone="Europe/Berlin")
        workspaces.whitelist(self.workspace, "operator")
        self.api = self.client()
        # One item from each push; a test that wants more names more.
        WorkspaceDefaults.everywhere.filter(workspace=self.workspace).update(engines=["Short Post"])
        self.defaults = WorkspaceDefaults.everywhere.get(workspace=self.workspace)
        self.feed = self.defaults.outlets[0]
        self.simulated = self.defaults.test_outlets[0]
        self.persona = ids.encode("per", self.defaults.persona_id)
        self.push_source = ids.encode("src", self.defaults.push_source_id)

    def client(self, *, scopes: tuple[str, ...] = tokens.SCOPES, is_test: bool = False, **more: Any) -> Api:
        minted = tokens.issue(self.workspace, name="Integration", scopes=scopes, is_test=is_test, **more)
        return Api(minted.secret)

    def client_of_thread(self) -> Api:
        """The same token on a client of its own: one client isn't made for several threads."""
        return Api(self.api.secret)

    # --- Making things -----------------------------------------------------------------------------------------------

    def content(self, **fields: Any) -> dict[str, Any]:
        """A body of POST /raw that was never pushed before."""
        number = next(self._numbers)
        return {
            "external_id": f"story-{number}",
            "title": f"The harbour gets crane number {number}",
            "body": f"The harbour of Norden bought {number} new cranes on Monday. "
            f"Each of the cranes lifts {number + 40} tonnes, twice as much as the old ones. "
            f"Dock workers will train for {number + 2} weeks before the first ship arrives.",
            "language": "en",
            **fields,
        }

    def push(self, api: Api | None = None, **fields: Any) -> dict[str, Any]:
        answer = (api or self.api).post("/raw", self.content(**fields))
        assert answer.status_code == 202, answer.content
        return answer.json()

    def planned(self, api: Api | None = None) -> dict[str, Any]:
        """A plan of one item, in the first slot of its outlet."""
        self.ready(api)
        answer = (api or self.api).post("/plans", {"days": 7})
        assert answer.status_code == 201, answer.content
        return answer.json()

    def recurrence(self, api: Api | None = None, **fields: Any) -> dict[str, Any]:
        """An item that comes back every 30 days."""
        given = {"generated_item": self.ready(api)["id"], "every_days": 30, **fields}
        answer = (api or self.api).post("/recurrences", given)
        assert answer.status_code == 201, answer.content
        return answer.json()

    def series(self, api: Api | None = None, **fields: Any) -> dict[str, Any]:
        given = {"name": "Weekly", "slots": [{"weekday": 4, "time": "09:00"}], **fields}
        answer = (api or self.api).post("/series", given)
        assert answer.status_code == 201, answer.content
        return answer.json()

    def stories(self, api: Api | None = None) -> list[dict[str, Any]]:
        """Three raw items that have nothing to do with each other."""
        return [self.push(api, title=title, body=body) for title, body in STORIES]

    def generated_of(self, raw: dict[str, Any], api: Api | None = None) -> list[dict[str, Any]]:
        return (api or self.api).read(
            f"/generated?raw_item={raw['id']}&order=asc&include=content,claims,checks,provenance"
        )["data"]

    def ready(self, api: Api | None = None, **fields: Any) -> dict[str, Any]:
        raw = self.push(api, **fields)
        task_runner.work_all_due("generate.run_item")
        item = self.generated_of(raw, api)[0]
        assert item["status"] == "ready", item
        return item

    def publish(
        self, item: dict[str, Any], body: Any = NOTHING, *, work: bool = True, api: Api | None = None
    ) -> Any:
        answer = (api or self.api).post(f"/generated/{item['id']}/publish", body)
        assert answer.status_code == 202, answer.content
        if work:
            task_runner.work_all_due("publish.send_publication")
        return (api or self.api).read(f"/generated/{item['id']}")

    def to_simulated(self, *script: str) -> dict[str, Any]:
        """A body of publish: to the simulated outlet, which answers by the script."""
        return {
            "outlets": [self.simulated],
            "overrides": {self.simulated: {"settings": {"script": list(script)}}},
        }

    def published(self) -> dict[str, Any]:
        return self.publish(self.ready())

    def scheduled(self, at: str = "2099") -> dict[str, Any]:
        from datetime import UTC, datetime, timedelta

        moment = (
            (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ") if at == "2099" else at
        )
        return self.publish(self.ready(), {"publish_at": moment}, work=False)

    def publication(self, *script: str) -> dict[str, Any]:
        item = self.publish(self.ready(), self.to_simulated(*script))
        return self.api.read(f"/publications/{item['publications'][0]['id']}")

    def failed(self) -> dict[str, Any]:
        """A generated item that failed, and that may go well another time: its run broke again and again."""
        raw = self.push(engines=["Short Post", "Quote Graphic"], url="https://example.com/tram")
        run = Generation.everywhere.get(raw_item=ids.decode("raw", raw["id"]), engine="quote_graphic")
        generation_run.give_up(claimed(run))
        task_runner.work_all_due("generate.run_item")
        return next(item for item in self.generated_of(raw) if item["status"] == "failed")

    def partly_failed(self) -> dict[str, Any]:
        """A raw item of three variants, whose source held one sentence only when they were made."""
        sentence = "The harbour of Norden bought 7 new cranes on Monday for its dock."
        more = "A crane of Norden lifts 40 tonnes from a ship. Fishermen had asked for them since the storm of last winter."
        given = {"external_id": "norden", "title": "Norden", "variants": 3}
        raw = self.push(**given, body=f"{sentence} {more}")
        assert self.api.post("/raw", {**given, "body": sentence}).json()["revised"]
        task_runner.work_all_due("generate.run_item")
        return raw

    def source(self, **fields: Any) -> dict[str, Any]:
        answer = self.api.post("/sources", {"type": "webhook", "name": "Bridge", **fields})
        assert answer.status_code == 201, answer.content
        return answer.json()

    def delivery(self, source: str) -> str:
        """A delivery to that source under the id that the routes name; the source's id."""
        InboundDelivery.everywhere.create(
            id=ids.decode("ind", DELIVERY),
            workspace=self.workspace,
            source_id=ids.decode("src", source),
            body=b'{"title": "Storm"}',
        )
        return source


@pytest.fixture(autouse=True)
def _ground(settings, monkeypatch):
    # What a slow Redis costs has tests of its own; here it is waited for, however busy the machine is.
    monkeypatch.setattr(workspace_rate_limit, "REDIS_TIMEOUT_SECONDS", 30)
    workspace_rate_limit._script.cache_clear()
    fresh = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid.uuid4().hex}
    settings.CACHES = dict.fromkeys(("default", "counts", "marks"), fresh)
    workspace_rate_limit._redis_skipped_until["at"] = 0.0
    authentication._cache_skipped_until["at"] = 0.0
    yield
    caches.clear()
    workspace_rate_limit._script.cache_clear()


@pytest.fixture
def alice(db):
    return Newsroom("Alice's newsroom")


@pytest.fixture
def charlie(db):
    """Owns a workspace that nothing of Alice's may ever show."""
    return Newsroom("Charlie's newsroom")


@pytest.fixture
def api(alice):
    return alice.api


@pytest.fixture
def stranger():
    return Api(None)


@pytest.fixture
def each_case(db, no_rate):
    """Tries many cases on what one test has prepared: what a case changed is taken back before the next begins.

    Every case is tried; the error of each that failed names it.
    """

    def run(cases, check):
        errors = []
        for name, case in cases:
            before = transaction.savepoint()
            try:
                check(case)
            except Exception as error:
                error.add_note(f"case: {name}")
                errors.append(error)
            finally:
                transaction.savepoint_rollback(before)
                caches.clear()
        if errors:
            raise ExceptionGroup(f"{len(errors)} cases failed", errors)

    return run


@pytest.fixture
def no_rate(monkeypatch):
    """For tests that ask often: every request is allowed."""
    monkeypatch.setattr(
        workspace_rate_limit, "take_request", lambda *_, **__: workspace_rate_limit.unlimited_decision()
    )
