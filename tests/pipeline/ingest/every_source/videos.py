"""youtube: a channel on a YouTube on loopback."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from werkzeug import Response

from pipeline.sources.youtube import listing
from tests.pipeline.ingest.every_source.world import Kind
from tests.pipeline.steps import NOON
from tests.sources.youtube_server import (
    BLOCKED,
    CHANNEL,
    NO_TRACKS,
    FakeVideo,
    YouTubeServer,
    sample,
    unplayable,
)

if TYPE_CHECKING:
    from pipeline.models import Source
    from tests.pipeline.ingest.every_source.world import World

KIND = Kind("youtube")
HOUR = timedelta(hours=1)
NAMES = [f"video{number:06}" for number in range(40)]


def open_site(world: World, *videos: FakeVideo) -> YouTubeServer:
    site = YouTubeServer(world.server)
    world.settings.SOURCE_ENVIRONMENT = {"YOUTUBE_URL": site.url, "YOUTUBE_API_URL": site.url}
    site.add(*videos)
    return site


def video(number: int, **changes: Any) -> FakeVideo:
    """A lower number is newer."""
    return FakeVideo(
        NAMES[number], f"Loaf {number}", published_at=NOON - timedelta(days=1) - number * HOUR, **changes
    )


def follow(world: World, **config: Any) -> Source:
    return world.start("youtube", **(config or {"channel": CHANNEL}))


@KIND.cell
def new(world: World) -> None:
    site = open_site(world, video(1), video(2))
    source = follow(world, handle="@harbour")
    assert world.log(source) == {NAMES[2]: "new", NAMES[1]: "new"}
    site.add(video(0))
    world.poll(source)
    assert world.raws(source) == {"Loaf 2": (1, False), "Loaf 1": (1, False), "Loaf 0": (1, False)}
    assert world.health(source) == ("active", None, [])
    assert world.ingested() == 3
    world.takes_nothing_twice(source)


@KIND.cell
def unchanged(world: World) -> None:
    site = open_site(world, video(1), video(2))
    source = follow(world)
    asked = site.count("player")
    # Each answer counts other views.
    for after in (HOUR, timedelta(days=1)):
        world.takes_nothing_twice(source, after=after)
    assert site.count("player") == asked
    assert world.health(source) == ("active", None, [])


@KIND.cell
def edited(world: World) -> None:
    site = open_site(world, video(1), video(2))
    source = follow(world)
    world.make(source)
    site.one(NAMES[1]).title = "Loaf 1, corrected"
    world.poll(source)
    assert world.raws(source) == {"Loaf 2": (1, False), "Loaf 1, corrected": (2, False)}
    assert world.log(source) == {NAMES[2]: "new", NAMES[1]: "revised"}
    assert world.held(source) == {("Loaf 1, corrected", "source_changed")}
    assert world.ingested() == 2
    world.takes_nothing_twice(source)


@KIND.cell
def withdrawn(world: World) -> None:
    site = open_site(world, video(1), video(2), video(3))
    source = follow(world)
    world.make(source)
    site.one(NAMES[2]).is_listed = False
    # Not listed is not taken back, as long as it can be seen.
    world.takes_nothing_twice(source)
    site.one(NAMES[1]).is_listed = site.one(NAMES[1]).is_there = False
    site.add(video(0))
    world.poll(source)
    assert not any(is_back for _, is_back in world.raws(source).values())
    world.poll(source)
    assert world.raws(source) == {
        "Loaf 3": (1, False),
        "Loaf 2": (1, False),
        "Loaf 1": (1, True),
        "Loaf 0": (1, False),
    }
    assert world.log(source)[NAMES[1]] == "withdrawn"
    assert world.held(source) == {("Loaf 1", "source_withdrawn")}
    world.takes_nothing_twice(source)
    site.one(NAMES[1]).is_listed = site.one(NAMES[1]).is_there = True
    world.poll(source)
    assert (world.raws(source)["Loaf 1"], world.held(source)) == ((1, False), set())
    world.takes_nothing_twice(source)


@KIND.cell
def malformed(world: World) -> None:
    site = open_site(world, video(1), video(2, player=NO_TRACKS, description="Short."))
    source = follow(world)
    assert world.log(source) == {NAMES[2]: "filtered no_captions", NAMES[1]: "new"}
    whole = site.feed(None).get_data(as_text=True)
    site.feed_body, site.feed_status = whole.replace(f"yt:video:{NAMES[2]}", "yt:strange"), 200
    world.poll(source)
    assert world.health(source) == ("active", None, ["malformed_entries"])
    site.feed_body = "It works!"
    world.fails(source, "feed_unreadable")
    site.feed_body = ""
    world.takes_nothing_twice(source)
    assert world.health(source) == ("active", None, [])


@KIND.cell
def huge(world: World) -> None:
    site = open_site(world, *(video(number) for number in range(14)))
    source = world.start("youtube", channel=CHANNEL, first_poll={"newest": 3})
    decisions = list(world.log(source).values())
    assert (decisions.count("new"), decisions.count("before_first_poll")) == (3, 11)
    world.takes_nothing_twice(source)
    world.monkeypatch.setattr(listing, "FEED_BYTES", 20_000)
    site.feed_body = " " * 20_001
    world.poll(source)
    assert world.health(source)[:2] == ("active", "response_too_large")
    world.monkeypatch.setattr(listing, "FEED_BYTES", 5 * 1024 * 1024)
    site.feed_body = ""
    world.takes_nothing_twice(source)
    assert world.health(source)[:2] == ("active", None)


@KIND.cell
def slow(world: World) -> None:
    site = open_site(world, video(1))
    source = follow(world)
    site.over, site.is_feed_slow = world.over, True
    world.monkeypatch.setattr(listing, "FEED_SECONDS", 1)
    world.poll(source)
    assert world.health(source)[:2] == ("active", "timed_out")
    assert world.raws(source) == {"Loaf 1": (1, False)}
    # Where no time is left for its captions, a video waits for them and is listed meanwhile.
    site.over = None
    world.monkeypatch.setattr(listing, "FEED_SECONDS", 12)
    world.monkeypatch.setattr("pipeline.sources.youtube.CAPTIONS_SECONDS", 0)
    site.add(video(0))
    world.poll(source)
    assert world.log(source) == {NAMES[1]: "new", NAMES[0]: "filtered captions_awaited"}
    assert world.health(source) == ("active", None, ["captions_awaited"])
    world.monkeypatch.setattr("pipeline.sources.youtube.CAPTIONS_SECONDS", 30)
    world.poll(source)
    assert world.log(source) == {NAMES[1]: "new", NAMES[0]: "new"}
    assert world.health(source) == ("active", None, [])
    world.takes_nothing_twice(source)


@KIND.cell
def redirected(world: World) -> None:
    site = open_site(world, video(1), video(2))
    moved = {"Location": f"{site.url}/moved"}
    world.server.expect_request("/moved").respond_with_handler(lambda _: where["now"])
    where = {"now": site.feed(None)}
    source = world.add("youtube", channel=CHANNEL)
    site.feed_status, site.feed_headers = 301, moved
    world.poll(source)
    assert world.log(source) == {NAMES[2]: "new", NAMES[1]: "new"}
    for _ in range(3):
        world.takes_nothing_twice(source, after=timedelta(days=1))
    # A channel is known by its id, wherever YouTube keeps its feed.
    assert world.shown(source)["config"] == {"channel": CHANNEL}
    where["now"] = Response(sample("consent.html"), content_type="text/html")
    world.poll(source)
    assert world.health(source)[:2] == ("active", "consent_page")
    site.feed_status = 200
    world.takes_nothing_twice(source)
    assert world.health(source)[:2] == ("active", None)


@KIND.cell
def blocked(world: World) -> None:
    site = open_site(world, video(1, player=BLOCKED))
    source = follow(world)
    # Without its captions it has its description.
    assert world.log(source) == {NAMES[1]: "new"}
    assert world.health(source) == ("active", None, ["captions_blocked"])
    site.feed_status = 429
    world.poll(source)
    assert world.health(source)[:2] == ("active", "blocked")
    assert world.wait(source) >= HOUR
    site.feed_headers = {"Retry-After": "7200"}
    world.poll(source)
    assert world.wait(source) >= 2 * HOUR
    site.feed_status, site.feed_body = 200, "<!doctype html><html>Are you a robot?</html>"
    world.poll(source)
    assert world.health(source)[:2] == ("failing", "blocked")
    site.feed_body = ""
    site.one(NAMES[1]).player = None
    world.takes_nothing_twice(source)
    assert world.health(source)[:2] == ("active", None)


@KIND.cell
def gone(world: World) -> None:
    site = open_site(
        world,
        video(1),
        video(2, player=unplayable("ERROR", "This video is unavailable")),
    )
    source = follow(world)
    assert world.log(source) == {NAMES[2]: "filtered gone", NAMES[1]: "new"}
    site.feed_status = 404
    world.poll(source)
    # Its feeds are out for days now and then; the channel's page knows.
    assert world.health(source)[:2] == ("active", "feed_outage")
    site.channel_status = 404
    world.fails(source, "not_found")
    assert world.raws(source) == {"Loaf 1": (1, False)}
    site.feed_status = 200
    world.takes_nothing_twice(source)
    assert world.health(source)[:2] == ("active", None)
