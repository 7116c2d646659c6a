"""One real run through the API with a frozen clock; what was asked and answered becomes the examples of the docs."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from PIL import Image

from accounts import workspaces
from accounts.access import tokens
from accounts.ledger import credits, reports
from accounts.models import User
from config.core import task_runner
from config.core.ids import encode
from pipeline.limits import OVERDUE_TOLD_AFTER
from pipeline.models import RawItem
from webhooks import endpoints

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
PUBLIC_URL = "https://pipeline.example"
OPERATOR = "operator@pipeline.example"
STORY = {
    "external_id": "ferry-2026-11",
    "url": "https://harbour.example/news/ferry",
    "title": "The harbour ferry leaves earlier",
    "body": "The harbour ferry leaves at seven from Monday on, twenty minutes earlier than before. "
    "The first boat of the day takes bicycles free of charge until the end of March. "
    "Tickets are sold on board and at the kiosk beside pier four.",
    "language": "en",
    "author": "Alice Example",
    "published_at": "2026-11-20T08:00:00Z",
    "metadata": {"desk": "transport"},
    "engines": ["Short Post"],
}
SECOND = {
    "external_id": "library-2026-11",
    "title": "The library opens on Sundays",
    "body": "The city library opens on Sundays from ten to four, starting in December. "
    "Forty new study places stand on the second floor.",
    "engines": ["Short Post"],
}


class Flow:
    """`examples` by name; `step` moves the clock between two calls."""

    def __init__(self, step: Callable[[float], Any], receiver_url: str) -> None:
        self.examples: dict[str, Any] = {}
        self.envelopes: list[dict[str, Any]] = []
        self._step = step
        owner = User.objects.create_user("alice@newsroom.example", "a long enough password", name="Alice")
        self.workspace = workspaces.create(
            "Alice's newsroom", owner=owner, timezone="Europe/Berlin", actor="docs"
        )
        token = tokens.issue(self.workspace, name="Docs", created_by=owner)
        self.client = Client(headers={"Authorization": f"Bearer {token.secret}"})
        every = [
            "raw.ingested",
            "generated.ready",
            "published.success",
            "published.failed",
            "published.overdue",
        ]
        every += ["raw.failed", "raw.skipped", "generated.failed", "engine.skipped"]
        every += ["source.failing", "outlet.needs_reconnect"]
        self.endpoint = endpoints.add(self.workspace, receiver_url, events=every, rate=100, actor=owner.email)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        expect: int,
        name: str = "",
        request_name: str = "",
        client: Client | None = None,
    ) -> Any:
        """One request; its answer, and its body where there is one, become examples of that name."""
        given = {} if method == "GET" else {"data": "" if body is None else json.dumps(body)}
        kind = {"content_type": "application/json"} if given else {}
        answer = getattr(client or self.client, method.lower())(f"/v1{path}", **given, **kind)
        assert answer.status_code == expect, (method, path, answer.status_code, answer.content)
        shown = json.loads(answer.content) if answer.content else None
        if name:
            self.examples[name] = shown
        if request_name:
            self.examples[request_name] = body
        self._step(1)
        return shown

    def work(self) -> None:
        self._step(1)
        for _ in range(2):
            task_runner.work_all_due(
                "generate.run_item", "publish.send_publication", "webhooks.fan_out", "analytics.count_events"
            )

    def run(self) -> None:
        self._before_whitelisting()
        self._accounts()
        self._sources()
        self._raw()
        self._generated()
        self._publications()
        self._refusals()
        self._events()
        self._uploads()
        self._lane()
        self._series()
        self._recurrences()
        self._plan()
        self._source_types()

    def _before_whitelisting(self) -> None:
        self.call("GET", "/workspace", expect=403, name="error-workspace_not_whitelisted")
        workspaces.whitelist(self.workspace, "docs")

    def _accounts(self) -> None:
        self.call("GET", "/workspace", expect=200, name="workspace")
        self.call("GET", "/engines", expect=200, name="engines")
        outlets = self.call("GET", "/outlets", expect=200, name="outlets")
        self.feed = next(one["id"] for one in outlets["data"] if one["platform"] == "feed")
        self.simulated = next(one["id"] for one in outlets["data"] if one["platform"] == "simulated")
        self.call("GET", f"/outlets/{self.feed}", expect=200, name="outlet")
        personas = self.call("GET", "/personas", expect=200)
        self.call("GET", f"/personas/{personas['data'][0]['id']}", expect=200, name="persona")
        wish = {
            "title": "Why rye needs time",
            "notes": "Rye dough rests for 20 hours before we bake it.",
            "angles": ["a myth about rye", "how to tell that it is ready"],
            "evidence": [{"url": "https://rye.example/study", "text": "Rye bread keeps for nine days."}],
            "weight": 3,
            "max_per_month": 2,
            "season": {"from": "09-15", "to": "03-31"},
        }
        topic = self.call("POST", "/topics", wish, expect=201, name="topic", request_name="topic.request")
        self.call("PATCH", f"/topics/{topic['id']}", {"is_active": False}, expect=200)

    def _plan(self) -> None:
        wish = {"days": 4, "a_day": 1, "dry_run": True}
        shown = self.call(
            "POST", "/plans", wish, expect=200, name="plan.rehearsal", request_name="plan.request"
        )
        columns = ("generated_item", "version", "outlet", "at")
        entries = [{name: one[name] for name in columns} for one in shown["entries"]]
        made = self.call("POST", "/plans", {"entries": entries}, expect=201, name="plan")
        self.call("GET", f"/plans/{made['id']}", expect=200, name="plan-read")
        self.call("POST", f"/plans/{made['id']}/undo", {}, expect=200, name="plan-undone")

    def _series(self) -> None:
        wish = {
            "name": "The week by the harbour",
            "timezone": "Europe/London",
            "slots": [{"weekday": 4, "time": "09:00"}],
            "window_days": 7,
            "items_least": 3,
            "items_most": 5,
        }
        made = self.call("POST", "/series", wish, expect=201, name="series", request_name="series.request")
        path = f"/series/{made['id']}"
        self.call("PATCH", path, {"paused": True}, expect=200, request_name="series-edit.request")
        self.call("GET", path, expect=200, name="series-detail")
        self.call("POST", f"{path}/make", {}, expect=409)
        self.call("GET", "/series", expect=200, name="series_list")
        self.call("DELETE", f"/series/{made['id']}", expect=204)

    def _recurrences(self) -> None:
        found = self.call("GET", "/generated?status=published&limit=1", expect=200)
        wish = {"generated_item": found["data"][0]["id"], "every_days": 30, "time": "09:00"}
        made = self.call(
            "POST", "/recurrences", wish, expect=201, name="recurrence", request_name="recurrence.request"
        )
        self.call("GET", "/recurrences", expect=200, name="recurrences")
        path = f"/recurrences/{made['id']}"
        self.call("GET", path, expect=200, name="recurrence-detail")
        self.call("PATCH", path, {"status": "stopped"}, expect=200, request_name="recurrence-edit.request")

    def _sources(self) -> None:
        wish = {
            "type": "rss",
            "name": "Harbour news",
            "config": {"url": "https://harbour.example/feed.xml"},
            "variants": 2,
            "poll_interval_minutes": 30,
            "first_poll": {"newest": 3},
        }
        self.call("POST", "/sources/preview", wish, expect=200, name="source-preview")
        source = self.call("POST", "/sources", wish, expect=201, name="source", request_name="source.request")
        self.call(
            "PATCH",
            f"/sources/{source['id']}",
            {"status": "paused"},
            expect=200,
            name="source-paused",
            request_name="source-paused.request",
        )
        self.call("DELETE", f"/sources/{source['id']}", expect=204)
        bridge = self.call(
            "POST", "/sources", {"type": "webhook", "name": "CMS bridge"}, expect=201, name="source-webhook"
        )
        self._deliveries(bridge)

    def _deliveries(self, bridge: dict[str, Any]) -> None:
        mapping = {
            "external_id": "entry.id",
            "title": "entry.headline",
            "body": "entry.text",
            "tags": "entry.labels",
        }
        article = {"entry": {"id": 7, "headline": "Pier four is closed", "labels": ["Harbour"]}}
        given = {"payload": article, "mapping": mapping}
        path = f"/sources/{bridge['id']}"
        self.call(
            "POST", f"{path}/dry-run", given, expect=200, name="dry_run", request_name="dry_run.request"
        )
        # It makes nothing with the fields' own names.
        self.client.post(
            bridge["inbound_url"].removeprefix(PUBLIC_URL),
            json.dumps(article),
            content_type="application/json",
            headers={"User-Agent": "Bridge/1"},
        )
        self._step(1)
        self.call("GET", f"{path}/deliveries", expect=200, name="inbound_deliveries")

    def _uploads(self) -> None:
        picture = BytesIO()
        Image.new("RGB", (64, 48), "#1e4fa3").save(picture, "PNG")
        form = {"file": SimpleUploadedFile("ferry.png", picture.getvalue())}
        answer = self.client.post("/v1/uploads", form)
        assert answer.status_code == 201, answer.content
        upload = self.examples["upload"] = answer.json()
        self._step(1)
        body = {**SECOND, "external_id": "ferry-picture", "media": [{"upload": upload["id"]}]}
        self.call("POST", "/estimate", body, expect=200, request_name="raw_item-upload.request")

    def _raw(self) -> None:
        self.call("POST", "/estimate", STORY, expect=200, name="estimate")
        pushed = self.call(
            "POST",
            "/raw",
            {**STORY, "variants": 2},
            expect=202,
            name="raw_item-pushed",
            request_name="raw_item.request",
        )
        self.call("POST", "/raw", {**STORY, "variants": 2}, expect=200, name="raw_item-duplicate")
        batch = {"items": [SECOND, {"external_id": "empty"}]}
        self.call("POST", "/raw", batch, expect=207, name="raw_batch", request_name="raw_batch.request")
        self.call("GET", "/usage", expect=200, name="usage")
        self.work()
        self.call("GET", f"/raw/{pushed['id']}", expect=200, name="raw_item")
        self.call("GET", "/usage/ledger?limit=3", expect=200, name="ledger")
        # No words at all, and words of which none can stand as a post of its own when they are looked at.
        self.call(
            "POST",
            "/raw",
            {"external_id": "picture", "media": [{"url": "https://harbour.example/picture.jpg"}]},
            expect=202,
        )
        odd = {**SECOND, "external_id": "odd", "title": "", "engines": ["Short Post"]}
        self.call("POST", "/raw", odd, expect=202)
        self.call("POST", "/raw", {**odd, "body": "He agreed."}, expect=200)
        self.work()

    def _generated(self) -> None:
        made = self.call("GET", "/generated?raw_item=" + self._raw_id(STORY), expect=200)
        self.first, self.second = (one["id"] for one in reversed(made["data"]))
        self.call("GET", f"/generated/{self.first}", expect=200, name="generated_item")
        self.call("GET", "/generated?status=ready&limit=1&include=checks", expect=200, name="generated_list")
        body = "From Monday on the harbour ferry leaves at seven."
        self.call(
            "PATCH",
            f"/generated/{self.first}",
            {"body": body},
            expect=200,
            request_name="generated_item-edit.request",
        )
        self.call(
            "POST",
            f"/generated/{self.second}/reject",
            {"reason": "The other one says it better."},
            expect=200,
        )
        self.call("GET", f"/generated/{self.second}", expect=200, name="generated_item-rejected")
        rehearsed = {"dry_run": True, "outlets": [self.feed, self.simulated]}
        self.call(
            "POST",
            f"/generated/{self.first}/publish",
            rehearsed,
            expect=200,
            name="publish-dry_run",
            request_name="publish-dry_run.request",
        )

    def _publications(self) -> None:
        schedule = {
            "local_time": "2026-12-01T08:00",
            "timezone": "Europe/Berlin",
            "outlets": [self.feed],
            "late_policy": "hold",
            "max_lateness_minutes": 120,
        }
        other = self.call("GET", "/generated?raw_item=" + self._raw_id(SECOND), expect=200)["data"][0]["id"]
        path = f"/generated/{other}/publish"
        self.call(
            "POST",
            path,
            schedule,
            expect=202,
            name="publish-scheduled",
            request_name="publish-scheduled.request",
        )
        self.call("DELETE", path, expect=200)
        path = f"/generated/{self.first}/publish"
        now = {"outlets": [self.feed, self.simulated]}
        self.call("POST", path, now, expect=202, name="publish", request_name="publish.request")
        self.work()
        published = self.call(
            "GET", f"/publications?generated_item={self.first}", expect=200, name="publications"
        )
        on_simulated = next(one for one in published["data"] if one["platform"] == "simulated")
        self._step(60)
        task_runner.work_all_due("analytics.measure_publication")
        self.call("GET", f"/publications/{on_simulated['id']}", expect=200, name="publication")
        self.call(
            "GET", f"/publications/{on_simulated['id']}/attempts", expect=200, name="publication-attempts"
        )
        self._publish_with_script(other, "reject")
        failed = self.call("GET", f"/publications?generated_item={other}&status=failed", expect=200)
        self.examples["publication-failed"] = failed["data"][0]
        self.call("GET", "/analytics?from=2026-11-01&to=2026-12-01", expect=200, name="analytics")

    def _publish_with_script(self, item: str, word: str) -> None:
        wish = {"outlets": [self.simulated], "overrides": {self.simulated: {"settings": {"script": [word]}}}}
        self.call(
            "POST", f"/generated/{item}/publish", wish, expect=202, request_name=f"publish-{word}.request"
        )
        self.work()

    def _raw_id(self, given: dict[str, Any]) -> str:
        row = RawItem.objects.of(self.workspace).get(external_id=given["external_id"])
        return encode("raw", row.pk)

    def _refusals(self) -> None:
        self.call("GET", "/generated?stauts=ready", expect=400, name="error-invalid_request")
        self.call("POST", f"/generated/{self.first}/approve", expect=409, name="error-conflict")
        reader = tokens.issue(self.workspace, name="Reader", scopes=tokens.PRESETS["read-only"])
        client = Client(headers={"Authorization": f"Bearer {reader.secret}"})
        self.call("POST", "/raw", SECOND, expect=403, name="error-insufficient_scope", client=client)
        self._fail_a_source()
        self._expire_an_outlet()
        self._run_out_of_credits()

    def _lane(self) -> None:
        topic = {
            "title": "Why rye needs time",
            "notes": "Rye dough rests for 20 hours before we bake it.",
            "angles": ["a myth about rye"],
        }
        topic_id = self.call("POST", "/topics", topic, expect=201)["id"]
        lane = {"type": "brand", "name": "Bread", "engines": ["Short Post"]}
        source = self.call("POST", "/sources", lane, expect=201)
        task_runner.work_all_due("ingest.fill_brand_slot")
        self.call("GET", f"/sources/{source['id']}/slots", expect=200, name="source-slots")
        self.call("DELETE", f"/sources/{source['id']}", expect=204)
        self.call("DELETE", f"/topics/{topic_id}", expect=204)

    def _source_types(self) -> None:
        # As on a machine without yt-dlp and without a browser, whatever this one has.
        bare = {**settings.SOURCE_ENVIRONMENT, "VIDEO_TOOL": "", "CHROMIUM_PATH": "/nowhere"}
        with override_settings(SOURCE_ENVIRONMENT=bare):
            self.call("GET", "/source-types", expect=200, name="source_types")

    def _fail_a_source(self) -> None:
        # Nobody listens at the discard port of this machine.
        wish = {"type": "rss", "name": "Closed feed", "config": {"url": "http://127.0.0.1:9/feed.xml"}}
        source = self.call("POST", "/sources", wish, expect=201)
        for _ in range(3):
            self.call("POST", f"/sources/{source['id']}/poll", expect=202)
            task_runner.work_all_due("ingest.poll_source")
        self.call("GET", f"/sources/{source['id']}", expect=200, name="source-failing")
        self.call("DELETE", f"/sources/{source['id']}", expect=204)

    def _expire_an_outlet(self) -> None:
        pushed = self.call(
            "POST", "/raw", {**SECOND, "external_id": "again", "title": "Open on Sundays"}, expect=202
        )
        self.work()
        item = self.call("GET", f"/raw/{pushed['id']}", expect=200)["generated"][0]
        self._publish_with_script(item, "expired")
        # It would be tried again by the schedule.
        self.call("DELETE", f"/generated/{item}/publish", expect=200)
        self._miss_a_promise(item)

    def _miss_a_promise(self, item: str) -> None:
        wish = {"outlets": [self.feed], "late_policy": "hold", "max_lateness_minutes": 10}
        self.call("POST", f"/generated/{item}/publish", wish, expect=202)
        self._step(OVERDUE_TOLD_AFTER.total_seconds())
        self.work()
        self.call("DELETE", f"/generated/{item}/publish", expect=200)

    def _run_out_of_credits(self) -> None:
        left = reports.usage(self.workspace, datetime.now(UTC)).available
        credits.adjust(self.workspace, -left, "for the example", "docs")
        self.call(
            "POST", "/raw", {**SECOND, "external_id": "too much"}, expect=402, name="error-quota_exceeded"
        )
        credits.adjust(self.workspace, left, "for the example", "docs")

    def _events(self) -> None:
        self.work()
        after = ""
        while True:
            shown = self.call("GET", f"/events?limit=100{after}", expect=200)
            self.envelopes += shown["data"]
            if not shown["has_more"]:
                break
            after = f"&after={shown['next_cursor']}"
        for envelope in self.envelopes:
            self.examples.setdefault(f"event-{envelope['type']}", envelope)
        self.call("GET", "/events?type=generated.ready&limit=1", expect=200, name="events")
        endpoints.send_test(self.endpoint.endpoint, actor="docs")


# --- What differs from run to run ------------------------------------------------------------------------------------

_IDS = re.compile(r"\b([a-z]{2,3})_([0-7][0-9a-hjkmnp-tv-z]{25})\b")
_URNS = re.compile(r"urn:uuid:[0-9a-f-]{36}")
_FEEDS = re.compile(r"(?<=/feeds/)[A-Za-z0-9_-]{22}")
_MEDIA = re.compile(r"(?<=/media/)[A-Za-z0-9_-]{22}")
_HOOKS = re.compile(r"(?<=/hooks/)[A-Za-z0-9_-]{32,43}")
_GROUPS = re.compile(r'(?<="group": ")[0-9a-f]{32}')
_CURSORS = re.compile(r'(?<="next_cursor": ")[^"]+')
_SECRETS = re.compile(r"whsec_[A-Za-z0-9+/]{40,}=*")
_FIRST = UUID("01a6a0c8-1000-7000-8000-000000000000")


class Normal:
    """Ids and secrets by their order of appearance, the same text for the same one throughout."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._numbers = count(1)

    def __call__(self, example: Any) -> Any:
        text = json.dumps(example, ensure_ascii=False)
        text = _IDS.sub(self._id, text)
        text = _URNS.sub(
            lambda match: self._other(match[0], "urn:uuid:5b0a0a53-6f3d-5f0b-9a59-{:012x}"), text
        )
        text = _FEEDS.sub(lambda match: self._other(match[0], "q3fEYp0nT4W2m8xKc7Ld{:02x}"), text)
        text = _MEDIA.sub(lambda match: self._other(match[0], "mT7dQx2LrV9bKz4WnE0s{:02x}"), text)
        text = _HOOKS.sub(lambda match: self._other(match[0], "Zk9vR2sX7qLw4TnB1mYc8HdPe5Ua{:04x}"), text)
        text = _GROUPS.sub(lambda match: self._other(match[0], "01a6a0c81000700080000000{:08x}"), text)
        text = _SECRETS.sub("whsec_b25seSBhbiBleGFtcGxlLCB0aGF0IHNpZ25zIG5vdGhpbmc=", text)
        text = _CURSORS.sub("u2mJ0m0Xo1yXh0kqVt9xTg5h3sQ", text)
        return json.loads(text)

    def _id(self, match: re.Match[str]) -> str:
        return self._other(match[0], match[1])

    def _other(self, known: str, form: str) -> str:
        if known not in self._ids:
            number = next(self._numbers)
            is_prefix = form.isalpha()
            self._ids[known] = (
                encode(form, UUID(int=_FIRST.int + number)) if is_prefix else form.format(number)
            )
        return self._ids[known]
