"""About 200 requests: each operation of the API, each of its error codes, each public address."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from accounts import workspaces
from accounts.ledger import credits as credit_account
from config.core import ids, task_runner
from config.core.clock import utc_now
from pipeline import events, mailing
from pipeline.ingest import websub
from pipeline.models import (
    GeneratedItem,
    Generation,
    MailDelivery,
    RawItem,
    ShortLink,
    Source,
    WebSubSubscription,
)
from pipeline.sources.base import Hub
from tests.contracts.recorder import GONE
from tests.contracts.routes import DELIVERY, ROUTES
from tests.contracts.test_errors import HOW
from tests.contracts.test_storyboards import longer
from tests.pipeline.generate.test_videos import GIVEN as FILM
from tests.pipeline.mailing.conftest import make_letter, subscribe

if TYPE_CHECKING:
    from tests.contracts.conftest import Newsroom
    from tests.contracts.recorder import Recorder

FORM = "multipart/form-data; boundary=x"
FILE = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nThe harbour bought cranes.\r\n--x--\r\n'
TOPIC = "https://feed.example/self.xml"
STORY = {
    "external_id": "ferry",
    "title": "The harbour ferry leaves earlier",
    "body": "The harbour ferry leaves at seven from Monday on, twenty minutes earlier than before. "
    "The first boat of the day takes bicycles free of charge until the end of March. "
    "Tickets are sold on board and at the kiosk beside pier four.",
    "url": "https://harbour.example/ferry",
    "language": "en",
    "metadata": {"desk": "transport"},
}


class Walk:
    def __init__(self, ask: Recorder, newsroom: Newsroom) -> None:
        self.ask = ask
        self.newsroom = newsroom

    def run(self) -> None:
        self.account()
        self.sources()
        self.deliveries()
        self.raw()
        self.generated()
        self.films()
        self.publishing()
        self.publications()
        self.planning()
        self.series()
        self.personas_and_topics()
        self.read()
        self.public()
        self.refused()
        self.codes()

    def account(self) -> None:
        for path in ("/workspace", "/usage", "/usage/ledger", "/engines", "/source-types"):
            self.ask(f"GET {path}")
        answer = self.ask("GET /outlets")
        self.ask(f"GET /outlets/{answer['data'][0]['id']}")
        self.ask("GET /queues")
        with self.ask.briefly():
            self.ask("GET /openapi.json")

    def sources(self) -> None:
        feed = {"type": "rss", "name": "Harbour news", "config": {"url": "https://harbour.example/feed.xml"}}
        self.ask("POST /sources/preview", {**feed, "first_poll": {"newest": 2}})
        source = self.ask("POST /sources", feed)
        path = f"/sources/{source['id']}"
        self.ask("GET /sources")
        self.ask(f"GET {path}")
        self.ask(f"GET {path}", headers={"If-None-Match": '"v1"'})
        self.ask(
            f"PATCH {path}", {"name": "Harbour", "poll_interval_minutes": 60}, headers={"If-Match": '"v1"'}
        )
        self.ask(f"POST {path}/poll")
        self.work("ingest.poll_source")
        self.ask(f"GET {path}/entries")
        self.ask(f"PATCH {path}", {"status": "paused"})
        self.ask(f"POST {path}/poll", note="paused")
        self.ask(f"PATCH {path}", {"status": "active"})
        self.feed_source = source["id"]
        ended = self.ask("POST /sources", {"type": "webhook", "name": "Ended"})
        self.ask(f"DELETE /sources/{ended['id']}")
        self.ask("POST /sources", {"type": "rss", "config": {"url": "http://10.0.0.1/feed"}})
        self.ask("POST /sources", {"type": "fax"})

    def deliveries(self) -> None:
        mapping = {"external_id": "entry.id", "title": "entry.headline", "body": "entry.text"}
        signed = {"verification": {"type": "bearer"}}
        bridge = self.ask(
            "POST /sources", {"type": "webhook", "name": "Bridge", "config": {"mapping": mapping, **signed}}
        )
        path, address = f"/sources/{bridge['id']}", bridge["inbound_url"]
        entry = {"entry": {"id": 7, "headline": "Pier four is closed", "text": STORY["body"]}}
        known = {"Authorization": f"Bearer {bridge['inbound_secret']}", "User-Agent": "Bridge/1"}
        self.ask.public(f"POST {address}", entry, headers=known)
        self.ask.public(f"POST {address}", entry, headers=known, note="again")
        self.ask.public(f"POST {address}", {"strange": True}, headers=known)
        self.ask.public(f"POST {address}", b"{", headers=known)
        self.ask.public(f"POST {address}", entry, note="without the secret")
        self.ask.public(f"GET {address}")
        self.ask.public(f"POST {address[:-3]}xxx", entry, note="another address")
        listed = self.ask(f"GET {path}/deliveries")
        self.ask(f"POST {path}/dry-run", {"payload": entry})
        self.ask(f"POST {path}/deliveries/{listed['data'][-1]['id']}/replay")
        self.ask(f"POST {path}/rotate-secret")
        self.bridge = bridge["id"]

    def raw(self) -> None:
        self.ask("POST /estimate", STORY)
        pushed = self.ask("POST /raw", {**STORY, "variants": 2}, headers={"Idempotency-Key": "ferry"})
        self.ask("POST /raw", {**STORY, "variants": 2}, headers={"Idempotency-Key": "ferry"})
        self.ask("POST /raw", {**STORY, "variants": 2}, note="a duplicate")
        self.ask("POST /raw", {"items": [self.story("batch"), {"external_id": "empty"}]})
        self.work("generate.run_item")
        self.ask("GET /raw")
        self.ask("GET /raw?limit=1")
        self.ask(f"GET /raw/{pushed['id']}")
        self.raw_item = pushed["id"]
        self.ask("POST /uploads", data=FILE, kind=FORM)
        self.ask("POST /uploads", data=b"--x--\r\n", kind=FORM)
        gone = self.ask("POST /raw", self.story("gone"))
        self.ask(f"DELETE /raw/{gone['id']}")
        self.ask(f"POST /raw/{pushed['id']}/retry", note="nothing failed")
        self.ask("POST /raw", self.story("formats", engines=["Poem"]))
        lost = ids.decode("raw", self.newsroom.push(title="Lost", body=STORY["body"])["id"])
        GeneratedItem.everywhere.filter(raw_item=lost).update(status="failed")
        Generation.everywhere.filter(raw_item=lost).update(status="failed", wake_at=None)
        RawItem.everywhere.filter(pk=lost).update(status="failed")
        self.ask(f"POST /raw/{ids.encode('raw', lost)}/retry")
        self.work("generate.run_item")

    def generated(self) -> None:
        self.ask("GET /generated?status=ready&limit=2&order=asc&include=content,claims,checks,provenance")
        made = self.ask(f"GET /generated?raw_item={self.raw_item}")
        first, second = (one["id"] for one in made["data"])
        path = f"/generated/{first}"
        self.ask(f"GET {path}")
        self.ask(f"GET {path}/explain")
        self.ask(f"PATCH {path}", {"body": "From Monday on the harbour ferry leaves at seven."})
        self.ask(f"PATCH {path}", {"body": "The ferry leaves."}, headers={"If-Match": '"v1"'})
        self.ask(f"POST {path}/approve")
        self.ask(f"POST {path}/reject", {"reason": "The other one says it better."})
        self.ask(f"POST {path}/approve", note="rejected")
        self.ask(f"POST {path}/restore")
        self.ask(f"POST {path}/retry", note="didn't fail")
        self.ask(f"POST {path}/regenerate")
        self.work("generate.run_item")
        self.ask(f"DELETE /generated/{second}")
        failed = self.newsroom.failed()
        self.ask(f"GET /generated/{failed['id']}")
        self.ask(f"POST /generated/{failed['id']}/retry")
        self.work("generate.run_item")
        self.item = first

    def films(self) -> None:
        path = f"/generated/{self.newsroom.ready(**FILM)['id']}/storyboard"
        board = longer(self.ask(f"GET {path}")["storyboard"])
        self.ask(f"PATCH {path}", {"storyboard": board})
        self.work("generate.run_item")
        self.ask(f"GET /generated/{self.item}/storyboard", note="no film")

    def publishing(self) -> None:
        feed, simulated = self.newsroom.feed, self.newsroom.simulated
        path = f"/generated/{self.item}/publish"
        self.ask(f"POST {path}", {"dry_run": True, "outlets": [feed, simulated]})
        at = {
            "local_time": "2026-12-01T08:00",
            "timezone": "Europe/Berlin",
            "late_policy": "hold",
            "max_lateness_minutes": 120,
        }
        self.ask(f"POST {path}", {**at, "outlets": [feed]})
        self.ask(f"PATCH /generated/{self.item}", {"body": "Another text."}, note="scheduled")
        self.ask(f"DELETE {path}")
        self.ask("POST /hold", {"reason": "A crisis"})
        self.ask("GET /hold")
        self.ask(f"POST {path}", {"outlets": [feed, simulated]}, note="on hold")
        self.ask("DELETE /hold")
        self.ask("GET /hold")
        self.work("publish.send_publication")
        self.ask(f"GET /generated/{self.item}", note="published")
        self.ask(f"POST {path}", {"outlets": [feed]}, note="published there")
        self.ask(f"POST {path}", {"publish_at": "2020-01-01T00:00:00Z"})

    def publications(self) -> None:
        self.ask("GET /publications?limit=2")
        done, refused, doubted, limited = (
            self.newsroom.publication(*script)["id"] for script in ((), ("reject",), ("error",), ("429",))
        )
        for publication in (done, refused, doubted, limited):
            self.ask(f"GET /publications/{publication}")
        self.ask(f"GET /publications/{limited}/attempts")
        self.ask(f"POST /publications/{refused}/retry")
        self.ask(f"POST /publications/{done}/retry", note="published")
        self.ask(f"POST /publications/{doubted}/reconcile")
        self.ask(f"POST /publications/{done}/reconcile", note="published")
        self.work("publish.send_publication")
        self.ask(f"POST /publications/{doubted}/settle", {"published": True, "url": "https://example.com/p"})
        self.ask(f"POST /publications/{done}/settle", {"published": False}, note="its outcome is known")
        self.ask(f"POST /publications/{done}/remove")
        self.work("publish.send_publication")
        self.ask(f"GET /publications/{done}", note="removed")

    def planning(self) -> None:
        queue = self.ask("GET /queues", note="as it is now")["data"][0]["id"]
        self.ask(f"GET /queues/{queue}")
        self.newsroom.ready()
        shown = self.ask("POST /plans", {"days": 4, "a_day": 1, "dry_run": True})
        columns = ("generated_item", "version", "outlet", "at")
        made = self.ask(
            "POST /plans", {"entries": [{name: one[name] for name in columns} for one in shown["entries"]]}
        )
        self.ask(f"GET /plans/{made['id']}")
        self.ask(f"POST /plans/{made['id']}/undo")
        self.ask(f"POST /plans/{made['id']}/undo", note="again")
        recurring = {"generated_item": self.item, "every_days": 30, "time": "09:00"}
        again = self.ask("POST /recurrences", recurring)
        self.ask("POST /recurrences", recurring, note="again")
        self.ask("GET /recurrences")
        self.ask(f"GET /recurrences/{again['id']}")
        self.ask(f"PATCH /recurrences/{again['id']}", {"status": "stopped"})

    def series(self) -> None:
        slots = {
            "name": "The week by the harbour",
            "timezone": "Europe/London",
            "slots": [{"weekday": 4, "time": "09:00"}],
        }
        series = self.ask("POST /series", slots)
        path = f"/series/{series['id']}"
        self.ask(f"POST {path}/make")
        self.work("generate.run_item")
        self.ask("GET /series")
        self.ask(f"GET {path}")
        self.ask(f"PATCH {path}", {"paused": True})
        self.ask(f"DELETE {path}")

    def personas_and_topics(self) -> None:
        self.ask("GET /personas")
        persona = self.ask("POST /personas", {"name": "Mira", "language": "en"})
        path = f"/personas/{persona['id']}"
        self.ask(f"GET {path}")
        self.ask(f"PATCH {path}", {"handle": "mira"}, headers={"If-Match": '"v1"'})
        self.ask(f"DELETE {path}")
        self.ask(f"DELETE /personas/{self.newsroom.persona}", note="the workspace's first")
        topic = self.ask(
            "POST /topics",
            {
                "title": "Why rye needs time",
                "notes": "Rye dough rests for 20 hours before we bake it.",
                "angles": ["a myth about rye"],
                "weight": 3,
            },
        )
        path = f"/topics/{topic['id']}"
        self.ask("GET /topics")
        self.ask(f"GET {path}")
        self.ask(f"PATCH {path}", {"max_per_month": 2})
        lane = self.ask("POST /sources", {"type": "brand", "name": "Bread", "engines": ["Short Post"]})
        self.work("ingest.fill_brand_slot", "generate.run_item")
        self.ask(f"GET /sources/{lane['id']}/slots")
        self.ask(f"DELETE /sources/{lane['id']}")
        self.ask(f"DELETE {path}")

    def read(self) -> None:
        self.work("webhooks.fan_out", "analytics.count_events")
        self.ask("GET /events?limit=2")
        for kind in events.TYPES:
            self.ask(f"GET /events?type={kind}&limit=1")
        self.ask("GET /analytics?from=2026-11-01&to=2026-12-01")
        self.ask("GET /usage", note="at the end")
        self.ask("GET /usage/ledger?limit=3", note="at the end")

    # --- Public addresses --------------------------------------------------------------------------------------------

    def public(self) -> None:
        feeds = self.newsroom.api.read(f"/outlets/{self.newsroom.feed}")["feeds"]
        for form in ("atom", "rss", "json"):
            answer = self.ask.public(f"GET {feeds[form]}")
        self.ask.public(f"GET {feeds['json']}", headers={"If-None-Match": answer["ETag"]})
        self.ask.public(f"GET /feeds/{'x' * 22}.atom", note="nobody's")
        self.ask.public(f"POST {feeds['atom']}")
        card = self.newsroom.ready(engines=["Persona Tweet"])
        picture = self.newsroom.api.read(f"/generated/{card['id']}")["assets"][0]["url"]
        self.ask.public(f"GET {picture}")
        self.ask.public(f"GET {picture}", headers={"Range": "bytes=0-9"})
        self.ask.public(f"GET /media/{'x' * 22}/a.jpg", note="nobody's")
        self.newsletters()
        self.hub()
        with self.ask.briefly():
            for path in (
                "/openapi.json",
                "/docs",
                "/docs/signing",
                "/docs/reference",
                "/docs/examples/usage.json",
            ):
                self.ask.public(f"GET {path}")
        for path in ("/healthz", "/metrics"):
            self.ask.public(f"GET {path}")
        self.ask.public("POST /healthz")

    def newsletters(self) -> None:
        letter = make_letter(self.newsroom.workspace, 25)
        (bob,) = subscribe(letter, "bob", status="pending")
        form = "application/x-www-form-urlencoded"
        path = f"/subscribe/{letter.secret}"
        self.ask.public(f"GET {path}")
        self.ask.public(f"POST {path}", b"email=ann@readers.example", kind=form)
        self.ask.public(f"POST {path}", b"email=ann", kind=form)
        self.ask.public(f"GET /subscribe/{'x' * 22}", note="nobody's")
        for path in (f"/subscribe/confirm/{bob.token}", f"/u/{bob.token}"):
            self.ask.public(f"GET {path}")
            self.ask.public(f"POST {path}", b"act=unsubscribe", kind=form)
        self.ask.public(f"POST /u/{bob.token}", b"List-Unsubscribe=One-Click", kind=form)
        self.ask.public(f"GET /u/{'x' * 32}", note="nobody's")
        mailbox = f"/hooks/mail/{mailing.get_or_create_queue(letter).bounce_secret}"
        self.ask.public(
            f"POST {mailbox}", b"Subject: Out of office\r\n\r\nBack on Monday.", kind="message/rfc822"
        )
        self.ask.public(f"GET {mailbox}")
        self.ask.public(f"POST /hooks/mail/{'x' * 32}", b"Subject: a", kind="message/rfc822")
        MailDelivery.everywhere.all().delete()
        publication = GeneratedItem.everywhere.get(pk=ids.decode("gen", self.item)).publications.first()
        ShortLink.everywhere.create(
            workspace=self.newsroom.workspace,
            publication=publication,
            code="0123456789ab",
            target="https://news.example/tram?stop=ä",
        )
        self.ask.public("GET /l/0123456789ab", headers={"User-Agent": "Twitterbot/1.0"})
        self.ask.public("POST /l/0123456789ab")
        self.ask.public("GET /l/ba9876543210", note="nobody's")

    def hub(self) -> None:
        source = Source.everywhere.get(pk=ids.decode("src", self.feed_source))
        websub.follow(source, Hub(("https://hub.example/sub",), TOPIC), now=utc_now())
        row = WebSubSubscription.everywhere.get()
        WebSubSubscription.everywhere.update(status="asked", asked_at=utc_now())
        path = f"/hooks/websub/{row.token}"
        asked = {
            "hub.mode": "subscribe",
            "hub.topic": TOPIC,
            "hub.challenge": "a+b c",
            "hub.lease_seconds": "100000",
        }
        self.ask.public(f"GET {path}?{urlencode(asked)}")
        self.ask.public(f"GET {path}?{urlencode({**asked, 'hub.topic': 'https://other.example/'})}")
        signature = hmac.new(row.secret.open().encode(), b"<feed/>", hashlib.sha256).hexdigest()
        self.ask.public(f"POST {path}", b"<feed/>", headers={"X-Hub-Signature": f"sha256={signature}"})
        self.ask.public(f"POST /hooks/websub/{'x' * 32}", b"<feed/>")
        self.ask.public(f"DELETE {path}")

    # --- Refusals ----------------------------------------------------------------------------------------------------

    def refused(self) -> None:
        """Each operation with an id that never was, or with a parameter or field that it doesn't know."""
        reader = self.newsroom.client(scopes=("analytics:read",))
        for route in ROUTES:
            path = route.path.replace(DELIVERY, f"ind_{GONE}")
            if route.prefix:
                self.ask(f"{route.method} {path.format(id=f'{route.prefix}_{GONE}')}")
            elif route.method == "GET":
                self.ask(f"GET {path}?nothing=1")
            elif route.method == "POST" and route.name != "uploads":
                self.ask(f"POST {path}", {"nothing": 1})
        for path in ("/sources", "/raw", "/generated"):
            self.ask(f"GET {path}", api=reader, note="without its scope")

    def codes(self) -> None:
        for code, how in HOW.items():
            with pytest.MonkeyPatch.context() as monkeypatch, self.ask.listening(code):
                how(self.newsroom, monkeypatch)
            # Two of them leave something behind.
            if code == "workspace_not_whitelisted":
                workspaces.whitelist(self.newsroom.workspace, "operator")
            if code == "quota_exceeded":
                credit_account.adjust(self.newsroom.workspace, 1000, "for what comes", "operator")

    def work(self, *names: str) -> None:
        task_runner.work_all_due(*names)

    def story(self, name: str, **fields: Any) -> dict[str, Any]:
        return {**STORY, "external_id": name, "title": f"The {name} of the harbour", **fields}
