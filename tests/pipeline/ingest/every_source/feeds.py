"""rss: a feed on loopback."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from werkzeug import Response

from pipeline.sources import rss
from pipeline.sources.feeds import answers
from tests.pipeline.ingest.every_source.world import Kind
from tests.pipeline.ingest.test_collect import document, entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.pipeline.ingest.every_source.world import World

KIND = Kind("rss")
DAY = timedelta(days=1)


class Feed:
    """What it answers with may be changed between polls; `asked` are the validators that came."""

    def __init__(self, world: World) -> None:
        self.entries: list[str] = []
        self.answer: Response | None = None
        self.drips: Callable[[], Response] | None = None
        self.has_tags = True
        self.asked: list[str | None] = []
        self.url = world.server.url_for("/feed.xml")
        world.server.expect_request("/feed.xml").respond_with_handler(self._answer)

    def _answer(self, request: Any) -> Response:
        self.asked.append(request.headers.get("If-None-Match"))
        if self.drips is not None:
            return self.drips()
        if self.answer is not None:
            given = self.answer
            return Response(given.data, status=given.status_code, headers=dict(given.headers))
        text = document(*self.entries)
        tag = f'"{hash(text)}"' if self.has_tags else f'"{len(self.asked)}"'
        if self.asked[-1] == tag:
            return Response(status=304, headers={"ETag": tag})
        return Response(text, content_type="application/rss+xml", headers={"ETag": tag})


@KIND.cell
def new(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1), entry(2)]
    source = world.start("rss", url=feed.url)
    assert world.log(source) == {"g2": "new", "g1": "new"}
    feed.entries.insert(0, entry(0))
    world.poll(source)
    assert world.log(source) == {"g2": "new", "g1": "new", "g0": "new"}
    assert world.raws(source) == {"Entry 2": (1, False), "Entry 1": (1, False), "Entry 0": (1, False)}
    assert world.health(source) == ("active", None, [])
    assert world.ingested() == 3
    world.takes_nothing_twice(source)


@KIND.cell
def unchanged(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1), entry(2)]
    source = world.start("rss", url=feed.url)
    world.takes_nothing_twice(source)
    assert feed.asked[-1] == f'"{hash(document(*feed.entries))}"'
    # A fresh ETag each time, and then another order.
    feed.has_tags = False
    world.takes_nothing_twice(source)
    feed.entries.reverse()
    world.takes_nothing_twice(source)
    assert world.health(source) == ("active", None, [])
    assert world.log(source) == {"g2": "new", "g1": "new"}


@KIND.cell
def edited(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1), entry(2)]
    source = world.start("rss", url=feed.url)
    world.make(source)
    feed.entries[0] = entry(1, text="The council has withdrawn its approval of the tram line after all.")
    world.poll(source)
    assert world.raws(source) == {"Entry 2": (1, False), "Entry 1": (2, False)}
    assert world.log(source) == {"g2": "new", "g1": "revised"}
    assert world.held(source) == {("Entry 1", "source_changed")}
    assert world.ingested() == 2
    world.takes_nothing_twice(source)


@KIND.cell
def withdrawn(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1), entry(2), entry(3)]
    source = world.start("rss", url=feed.url)
    world.make(source)
    taken = feed.entries.pop(1)
    world.poll(source)
    # Once is a gap, twice is the source's will.
    assert world.raws(source)["Entry 2"] == (1, False)
    world.poll(source)
    assert world.raws(source) == {"Entry 3": (1, False), "Entry 2": (1, True), "Entry 1": (1, False)}
    assert world.log(source) == {"g3": "new", "g2": "withdrawn missing", "g1": "new"}
    world.takes_nothing_twice(source)
    assert world.held(source) == {("Entry 2", "source_withdrawn")}
    feed.entries.insert(1, taken)
    world.poll(source)
    assert world.raws(source)["Entry 2"] == (1, False)
    assert (world.log(source)["g2"], world.held(source)) == ("unchanged same", set())
    world.takes_nothing_twice(source)


@KIND.cell
def malformed(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1), "<item><guid>empty</guid></item>", entry(2)]
    source = world.start("rss", url=feed.url)
    assert set(world.raws(source)) == {"Entry 1", "Entry 2"}
    assert world.log(source)["empty"] == "malformed empty"
    world.takes_nothing_twice(source)
    # Cut off in the middle of an entry: the whole ones before it are read.
    cut = document(entry(0), *feed.entries).partition("<guid>empty")[0]
    feed.answer = Response(cut, content_type="application/rss+xml")
    world.poll(source)
    assert world.raws(source)["Entry 0"] == (1, False)
    feed.answer = Response("It works!", content_type="text/plain")
    world.fails(source, "not_a_feed")
    feed.answer = None
    world.takes_nothing_twice(source)
    assert world.health(source)[:2] == ("active", None)


@KIND.cell
def huge(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(100)]
    source = world.start("rss", url=feed.url, max_burst=5)
    feed.entries = [entry(number) for number in range(40)] + feed.entries
    world.poll(source)
    decisions = list(world.log(source).values())
    assert (decisions.count("new"), decisions.count("over_burst")) == (6, 35)
    assert {name for name, decision in world.log(source).items() if decision == "new"} == {
        "g100",
        *(f"g{number}" for number in range(5)),
    }
    world.takes_nothing_twice(source)
    # More bytes than are read of any feed.
    for module in (rss, answers):
        world.monkeypatch.setattr(module, "FEED_BYTES", 1024 * 1024)
    feed.answer = Response(b" " * (1024 * 1024 + 1), content_type="application/rss+xml")
    world.poll(source)
    assert world.health(source)[:2] == ("active", "feed_too_large")
    assert "1 MiB" in world.shown(source)["last_error"]["message"]
    feed.answer = None
    world.takes_nothing_twice(source)


@KIND.cell
def slow(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1)]
    source = world.start("rss", url=feed.url)
    world.monkeypatch.setattr(rss, "TIMEOUT_SECONDS", 1)
    feed.drips = world.drip
    world.poll(source)
    assert world.health(source) == ("active", "timed_out", [])
    assert world.raws(source) == {"Entry 1": (1, False)}
    world.monkeypatch.setattr(rss, "TIMEOUT_SECONDS", 20)
    feed.drips = None
    world.takes_nothing_twice(source)
    assert world.health(source) == ("active", None, [])


@KIND.cell
def redirected(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1), entry(2)]
    for path, status in (("/old.xml", 301), ("/for-now.xml", 302)):
        world.server.expect_request(path).respond_with_data(status=status, headers={"Location": "/feed.xml"})
    old, passing = world.server.url_for("/old.xml"), world.server.url_for("/for-now.xml")
    source = world.start("rss", url=old)
    assert len(world.raws(source)) == 2
    world.takes_nothing_twice(source)
    # Once or twice is not believed, nor thrice within a day.
    world.takes_nothing_twice(source)
    assert world.shown(source)["config"]["url"] == old
    world.takes_nothing_twice(source, after=DAY)
    assert world.shown(source)["config"]["url"] == feed.url
    assert world.health(source) == ("active", None, ["moved"])
    world.takes_nothing_twice(source)
    # A redirect that is not for ever never changes the address.
    other = world.add("rss", url=passing)
    for _ in range(4):
        world.poll(other, after=DAY)
    assert (world.shown(other)["config"]["url"], world.health(other)) == (
        passing,
        ("active", None, ["all_known"]),
    )
    # The first source has brought these pages already.
    assert (len(world.raws(other)), world.ingested()) == (0, 2)


@KIND.cell
def blocked(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1)]
    source = world.start("rss", url=feed.url)
    feed.answer = Response("no", status=403)
    world.poll(source)
    assert world.health(source)[:2] == ("active", "forbidden")
    assert world.wait(source) >= timedelta(hours=1)
    feed.answer = Response("no", status=429, headers={"Retry-After": "7200"})
    world.poll(source)
    assert world.health(source)[:2] == ("active", "rate_limited")
    assert world.wait(source) >= timedelta(hours=2)
    feed.answer = Response("no", status=401)
    world.poll(source)
    assert world.health(source)[:2] == ("failing", "login_required")
    feed.answer = None
    world.takes_nothing_twice(source)
    assert world.health(source)[:2] == ("active", None)


@KIND.cell
def gone(world: World) -> None:
    feed = Feed(world)
    feed.entries = [entry(1)]
    source = world.start("rss", url=feed.url)
    feed.answer = Response("no", status=404)
    world.poll(source)
    # It may be back tomorrow.
    assert world.health(source)[:2] == ("active", "not_found")
    feed.answer = Response("no", status=410)
    world.is_gone(source)
    assert world.raws(source) == {"Entry 1": (1, False)}
    asked = len(feed.asked)
    world.takes_nothing_twice(source)
    assert len(feed.asked) == asked
    # A person who knows better switches it on again.
    world.switch_on(source)
    feed.answer = None
    world.takes_nothing_twice(source)
    assert world.health(source)[:2] == ("active", None)
