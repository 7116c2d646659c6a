"""scraper: a blog on loopback, read through its front page."""

from __future__ import annotations

import gzip
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from werkzeug import Response

from pipeline.sources.web_pages import polite_fetch
from tests.pipeline.ingest.every_source.world import Kind
from tests.sources.test_scraper import article, listing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.models import Source
    from tests.pipeline.ingest.every_source.world import World

KIND = Kind("scraper")
DAY = timedelta(days=1)
HTML = "text/html; charset=utf-8"


class Blog:
    """Pages by their path; what isn't there answers 404. `asked` are the paths in their order."""

    def __init__(self, world: World, *names: str) -> None:
        self.pages: dict[str, str | Response | Callable[[], Response]] = {}
        self.asked: list[str] = []
        self.robots = "User-agent: *\nDisallow: /private\n"
        self.url = world.server.url_for("/")
        self.add(*names)
        world.server.expect_request("").respond_with_handler(self._answer)

    def add(self, *names: str) -> None:
        self.names = (*names, *getattr(self, "names", ()))
        self.pages |= {path(name): article(name) for name in names}

    def _answer(self, request: Any) -> Response:
        self.asked.append(request.path)
        if request.path == "/robots.txt":
            return Response(self.robots, content_type="text/plain")
        found = self.pages.get(request.path)
        if found is None and request.path == "/":
            found = listing(*self.names)
        if found is None:
            return Response(article("No such page"), status=404, content_type=HTML)
        if callable(found) and not isinstance(found, Response):
            return found()
        if isinstance(found, Response):
            return Response(found.data, status=found.status_code, headers=dict(found.headers))
        return Response(found, content_type=HTML)


def path(name: str) -> str:
    return f"/2026/11/{name}"


def follow(world: World, blog: Blog, **config: Any) -> Source:
    return world.start("scraper", url=blog.url, **config)


@KIND.cell
def new(world: World) -> None:
    blog = Blog(world, "rye", "oats")
    source = follow(world, blog)
    assert world.log(source) == {"rye": "new", "oats": "new"}
    blog.add("wheat")
    world.poll(source)
    assert world.log(source) == {"rye": "new", "oats": "new", "wheat": "new"}
    assert set(world.raws(source)) == {"rye", "oats", "wheat"}
    assert world.health(source) == ("active", None, ["reads_list", "robots_rules"])
    assert world.ingested() == 3
    world.takes_nothing_twice(source)


@KIND.cell
def unchanged(world: World) -> None:
    blog = Blog(world, "rye", "oats")
    source = follow(world, blog)
    for after in (timedelta(hours=1), DAY, 30 * DAY):
        world.takes_nothing_twice(source, after=after)
    # They were looked at again, and what stands beside the text is no edit.
    blog.pages[path("rye")] = article("rye", head="<link rel=stylesheet href=/new.css>")
    world.takes_nothing_twice(source, after=30 * DAY)
    assert blog.asked.count(path("rye")) > 2
    assert world.log(source) == {"rye": "new", "oats": "new"}


@KIND.cell
def edited(world: World) -> None:
    blog = Blog(world, "rye", "oats")
    source = follow(world, blog)
    world.make(source)
    blog.pages[path("rye")] = article("rye", "The oven has to be as hot as it gets before the loaf goes in. ")
    world.poll(source, after=DAY)
    assert world.raws(source) == {"rye": (2, False), "oats": (1, False)}
    assert world.log(source) == {"rye": "revised", "oats": "new"}
    assert world.held(source) == {("rye", "source_changed")}
    assert world.ingested() == 2
    world.takes_nothing_twice(source, after=DAY)


@KIND.cell
def withdrawn(world: World) -> None:
    blog = Blog(world, "rye", "oats")
    source = follow(world, blog)
    world.make(source)
    blog.names = ("oats",)
    world.poll(source, after=DAY)
    # That a list names it no more says nothing: lists name the newest.
    assert world.raws(source)["rye"] == (1, False)
    text = blog.pages.pop(path("rye"))
    world.poll(source, after=DAY)
    assert world.raws(source) == {"rye": (1, True), "oats": (1, False)}
    assert world.log(source) == {"rye": "withdrawn", "oats": "new"}
    assert world.held(source) == {("rye", "source_withdrawn")}
    world.takes_nothing_twice(source, after=DAY)
    blog.pages[path("rye")] = text
    world.poll(source, after=30 * DAY)
    assert (world.raws(source)["rye"], world.held(source)) == ((1, False), set())
    world.takes_nothing_twice(source, after=DAY)


@KIND.cell
def malformed(world: World) -> None:
    blog = Blog(world, "rye", "empty", "picture")
    blog.pages[path("empty")] = "<html><body></body></html>"
    blog.pages[path("picture")] = Response(b"\x89PNG", content_type="image/png")
    source = follow(world, blog)
    assert world.log(source) == {
        "rye": "new",
        "empty": "filtered no_text",
        "picture": "filtered not_html",
    }
    assert set(world.raws(source)) == {"rye"}
    world.takes_nothing_twice(source, after=DAY)
    # Tags that are never closed, and bytes that are no text, are read as far as they go.
    blog.add("torn")
    blog.pages[path("torn")] = Response(
        article("torn").rpartition("</article>")[0].replace("</p>", "").encode() + b"\xff\xfe<p",
        content_type=HTML,
    )
    world.poll(source)
    assert world.raws(source)["torn"] == (1, False)
    world.takes_nothing_twice(source)


@KIND.cell
def huge(world: World) -> None:
    blog = Blog(world, "rye", "bomb")
    packed = gzip.compress(b"<p>" + b"x" * 6 * 1024 * 1024)
    blog.pages[path("bomb")] = Response(packed, content_type=HTML, headers={"Content-Encoding": "gzip"})
    source = follow(world, blog, max_pages=4)
    assert world.log(source) == {"rye": "new", "bomb": "filtered page_too_large"}
    # Of a list that grows by more than a poll reads, the rest waits and is told.
    blog.add(*(f"loaf-{number}" for number in range(6)))
    world.poll(source)
    assert list(world.log(source).values()).count("new") == 5
    assert "pages_waiting" in world.health(source)[2]
    world.poll(source)
    assert list(world.log(source).values()).count("new") == 7
    assert "pages_waiting" not in world.health(source)[2]
    world.takes_nothing_twice(source)


@KIND.cell
def slow(world: World) -> None:
    blog = Blog(world, "rye", "drip")
    blog.pages[path("drip")] = world.drip
    world.monkeypatch.setattr(polite_fetch, "TIMEOUT_SECONDS", 1.0)
    source = follow(world, blog)
    assert world.log(source) == {"rye": "new"}
    assert "timed_out" in world.health(source)[2]
    world.monkeypatch.setattr(polite_fetch, "TIMEOUT_SECONDS", 20.0)
    blog.pages[path("drip")] = article("drip")
    world.poll(source)
    assert world.log(source) == {"rye": "new", "drip": "new"}
    assert "timed_out" not in world.health(source)[2]
    world.takes_nothing_twice(source)


@KIND.cell
def redirected(world: World) -> None:
    blog = Blog(world, "rye", "oats")
    blog.pages["/old"] = Response(status=301, headers={"Location": "/"})
    old = f"{blog.url}old"
    source = world.start("scraper", url=old, item_selector="main h2 a")
    assert set(world.raws(source)) == {"rye", "oats"}
    for after in (timedelta(hours=1), timedelta(hours=1)):
        world.takes_nothing_twice(source, after=after)
    assert world.shown(source)["config"]["url"] == old
    world.takes_nothing_twice(source, after=DAY)
    assert world.shown(source)["config"]["url"] == blog.url
    assert "moved" in world.health(source)[2]
    world.takes_nothing_twice(source, after=DAY)
    # A page that now leads to the front page was taken back.
    blog.pages[path("rye")] = Response(status=302, headers={"Location": "/"})
    world.poll(source, after=30 * DAY)
    assert world.raws(source)["rye"] == (1, True)
    world.takes_nothing_twice(source, after=DAY)
    # One that has always led there wasn't.
    blog.pages["/"] = article("Front")
    blog.pages["/index.html"] = Response(status=301, headers={"Location": "/"})
    page = world.start("scraper", url=f"{blog.url}index.html", max_pages=1)
    world.takes_nothing_twice(page, after=timedelta(minutes=30))
    blog.pages["/"] = article("Front", "Today the oven is cold, because the baker has gone to the sea. ")
    world.poll(page, after=timedelta(minutes=30))
    assert world.raws(page) == {"Front": (2, False)}


@KIND.cell
def blocked(world: World) -> None:
    blog = Blog(world, "rye", "oats", "closed", "members")
    blog.robots = f"User-agent: *\nDisallow: {path('closed')}\n"
    blog.pages[path("members")] = Response("no", status=401)
    source = follow(world, blog)
    assert world.log(source) == {
        "rye": "new",
        "oats": "new",
        "closed": "filtered robots_disallow",
        "members": "filtered login_required",
    }
    assert path("closed") not in blog.asked
    world.takes_nothing_twice(source)
    blog.pages["/"] = Response("no", status=403)
    world.poll(source)
    assert world.health(source)[:2] == ("active", "forbidden")
    assert world.wait(source) >= timedelta(hours=1)
    blog.pages["/"] = Response("no", status=429, headers={"Retry-After": "7200"})
    world.poll(source)
    assert world.health(source)[:2] == ("active", "rate_limited")
    assert world.wait(source) >= timedelta(hours=2)
    del blog.pages["/"]
    blog.robots = "User-agent: *\nDisallow: /\n"
    # What was read of robots.txt is kept for a day.
    world.poll(source, after=2 * DAY)
    assert world.health(source)[:2] == ("failing", "robots_disallow")
    blog.robots = ""
    world.poll(source, after=2 * DAY)
    assert world.health(source)[:2] == ("active", None)
    assert world.raws(source)["rye"] == (1, False)


@KIND.cell
def gone(world: World) -> None:
    blog = Blog(world, "rye")
    source = follow(world, blog)
    blog.pages["/"] = Response("no", status=404)
    world.fails(source, "not_found")
    blog.pages["/"] = Response("no", status=410)
    world.is_gone(source)
    assert world.raws(source) == {"rye": (1, False)}
    asked = len(blog.asked)
    world.takes_nothing_twice(source)
    assert len(blog.asked) == asked
    world.switch_on(source)
    del blog.pages["/"]
    world.takes_nothing_twice(source)
    assert world.health(source)[:2] == ("active", None)
