"""tiktok: links that oEmbed of a TikTok on loopback knows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from werkzeug import Response

from pipeline.sources.tiktok import oembed
from tests.pipeline.ingest.every_source.world import Kind
from tests.sources.tiktok_server import TikTokServer

if TYPE_CHECKING:
    from pipeline.models import Source
    from tests.pipeline.ingest.every_source.world import World

KIND = Kind("tiktok")
DAY = timedelta(days=1)
WEEK = 7 * DAY + timedelta(hours=1)
NAMES = [f"67183353908450951{number:02}" for number in range(60)]


def open_site(world: World, *numbers: int) -> TikTokServer:
    site = TikTokServer(world.server)
    world.settings.SOURCE_ENVIRONMENT = {"TIKTOK_URL": site.url, "TIKTOK_SHORT_URL": site.url}
    site.captions = {NAMES[number]: caption(number) for number in numbers}
    return site


def caption(number: int) -> str:
    return f"Loaf {number} on day three: the crust cracks first."


def link(number: int) -> str:
    return f"https://www.tiktok.com/@scout2015/video/{NAMES[number]}"


def follow(world: World, *numbers: int) -> Source:
    return world.start("tiktok", links=[link(number) for number in numbers])


def hang_on(world: World, site: TikTokServer) -> None:
    """Each call drips from now on."""
    world.server.clear()
    world.server.expect_request("/oembed").respond_with_handler(world.drip)
    world.monkeypatch.setattr(oembed, "CALL_SECONDS", 1)
    site.asked.clear()


@KIND.cell
def new(world: World) -> None:
    site = open_site(world, 1, 2)
    source = follow(world, 1, 2)
    assert sorted(world.log(source).items()) == [(NAMES[1], "new"), (NAMES[2], "new")]
    assert world.raws(source) == {caption(2): (1, False), caption(1): (1, False)}
    assert world.health(source) == ("active", None, [])
    assert world.ingested() == 2
    world.takes_nothing_twice(source)
    # Another link is added to the source.
    site.captions[NAMES[3]] = caption(3)
    world.change(source, links=[link(number) for number in (1, 2, 3)])
    world.poll(source)
    assert world.raws(source)[caption(3)] == (1, False)
    assert world.ingested() == 3
    world.takes_nothing_twice(source, after=WEEK)


@KIND.cell
def unchanged(world: World) -> None:
    site = open_site(world, 1)
    source = follow(world, 1)
    asked = len(site.asked)
    world.takes_nothing_twice(source)
    assert len(site.asked) == asked
    world.takes_nothing_twice(source, after=WEEK)
    assert len(site.asked) == asked + 1
    assert world.health(source) == ("active", None, [])


@KIND.cell
def edited(world: World) -> None:
    site = open_site(world, 1, 2)
    source = follow(world, 1, 2)
    world.make(source)
    site.captions[NAMES[1]] = "Loaf 1, corrected."
    world.takes_nothing_twice(source)
    # A link that is known is looked at again after a week.
    world.poll(source, after=WEEK)
    assert world.raws(source) == {caption(2): (1, False), "Loaf 1, corrected.": (2, False)}
    assert world.log(source) == {NAMES[2]: "new", NAMES[1]: "revised"}
    assert world.held(source) == {("Loaf 1, corrected.", "source_changed")}
    assert world.ingested() == 2
    world.takes_nothing_twice(source, after=WEEK)


@KIND.cell
def withdrawn(world: World) -> None:
    site = open_site(world, 1, 2)
    source = follow(world, 1, 2)
    world.make(source)
    del site.captions[NAMES[1]]
    world.poll(source, after=WEEK)
    assert world.raws(source)[caption(1)] == (1, False)
    world.poll(source, after=2 * DAY)
    assert world.raws(source) == {caption(2): (1, False), caption(1): (1, True)}
    assert world.log(source) == {NAMES[2]: "new", NAMES[1]: "withdrawn"}
    assert world.held(source) == {(caption(1), "source_withdrawn")}
    world.takes_nothing_twice(source, after=WEEK)


@KIND.cell
def malformed(world: World) -> None:
    site = open_site(world, 1)
    source = world.start("tiktok", links=[link(1), "https://www.tiktok.com/@scout2015/live"])
    assert sorted(world.log(source).values()) == ["filtered unavailable", "new"]
    site.answer = Response('{"title": 7}', content_type="application/json")
    world.change(source, links=[link(1), link(2)])
    world.poll(source)
    assert world.log(source)[NAMES[2]] == "filtered not_a_video"
    world.takes_nothing_twice(source)
    # An answer that holds something else than an object is TikTok's own fault.
    site.answer = Response("[]", content_type="application/json")
    world.change(source, links=[link(3)])
    world.fails(source, "tiktok_away")
    site.answer = None
    site.captions[NAMES[3]] = caption(3)
    world.poll(source)
    assert world.health(source) == ("active", None, [])
    assert world.raws(source)[caption(3)] == (1, False)


@KIND.cell
def huge(world: World) -> None:
    site = open_site(world, *range(55))
    site.captions[NAMES[0]] = "word " * 2000
    given = [link(number) for number in range(55)]
    source = world.start("tiktok", first_poll={"newest": 3}, links=given)
    decisions = list(world.log(source).values())
    assert (decisions.count("new"), decisions.count("before_first_poll")) == (3, 47)
    assert world.health(source) == ("active", None, ["links_wait"])
    world.poll(source)
    assert len(world.log(source)) == 55
    assert world.health(source) == ("active", None, [])
    world.takes_nothing_twice(source)
    # More bytes than are read of an answer.
    site.answer = Response(b" " * (oembed.MAX_BYTES + 1), content_type="application/json")
    world.poll(source, after=WEEK)
    assert world.health(source)[:2] == ("active", "tiktok_away")
    site.answer = None
    world.takes_nothing_twice(source)


@KIND.cell
def slow(world: World) -> None:
    site = open_site(world, 1)
    source = follow(world, 1)
    hang_on(world, site)
    world.poll(source, after=WEEK)
    assert world.health(source)[:2] == ("active", "tiktok_away")
    assert world.raws(source) == {caption(1): (1, False)}
    world.server.clear()
    open_site(world, 1)
    world.takes_nothing_twice(source)
    assert world.health(source) == ("active", None, [])


@KIND.cell
def redirected(world: World) -> None:
    site = open_site(world, 1, 2)
    site.short["/ZMabc123/"] = f"{link(1)}?_r=1"
    short = "https://vm.tiktok.com/ZMabc123/"
    nowhere = "https://vm.tiktok.com/ZMnowhere/"
    source = world.start("tiktok", links=[short, nowhere, link(2)])
    assert world.raws(source) == {caption(2): (1, False), caption(1): (1, False)}
    assert world.log(source)["ZMnowhere"] == "filtered unavailable"
    # Where a short link leads is kept.
    asked = site.asked.count("/ZMabc123/")
    world.takes_nothing_twice(source, after=WEEK)
    assert site.asked.count("/ZMabc123/") == asked
    # The same video by another link is no other video.
    world.change(source, links=[short, nowhere, link(2), f"{link(1)}?again=1"])
    world.takes_nothing_twice(source)
    assert world.shown(source)["config"]["links"][0] == short


@KIND.cell
def blocked(world: World) -> None:
    site = open_site(world, 1, 2)
    site.blocked_after = 1
    source = world.poll(world.add("tiktok", links=[link(1), link(2)]))
    # What was had before the refusal is kept; the rest waits, and is told.
    assert list(world.log(source).values()) == ["new"]
    assert world.health(source) == ("active", None, ["blocked"])
    asked = len(site.asked)
    world.takes_nothing_twice(source)
    assert len(site.asked) == asked
    site.blocked_after = None
    world.poll(source, after=timedelta(hours=6))
    assert world.health(source) == ("active", None, [])
    assert world.raws(source) == {caption(1): (1, False), caption(2): (1, False)}
    world.takes_nothing_twice(source)
    site.answer = Response("no", status=429, headers={"Retry-After": "86000"})
    world.poll(source, after=WEEK)
    assert world.health(source)[:2] == ("active", "blocked")
    assert world.wait(source) >= timedelta(seconds=86000)
    site.answer = None
    world.takes_nothing_twice(source, after=DAY)


@KIND.cell
def gone(world: World) -> None:
    site = open_site(world, 1)
    source = follow(world, 1, 2)
    assert world.log(source) == {NAMES[2]: "filtered unavailable", NAMES[1]: "new"}
    previewed = site.asked.count(link(2))
    for _ in range(4):
        world.takes_nothing_twice(source, after=2 * DAY)
    # Three times is enough to ask for what never was there; the source itself goes on.
    assert site.asked.count(link(2)) == previewed + 2
    assert world.health(source) == ("active", None, [])
