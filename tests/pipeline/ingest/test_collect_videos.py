"""YouTube and TikTok through the stage: a video becomes a raw item, once, and its edit a new version of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pipeline.ingest import collect
from pipeline.models import GeneratedItem, RawBody, RawItem, Source
from tests.pipeline import steps
from tests.pipeline.steps import NOON, claimed, facts, reread
from tests.sources.recorded_tool import RecordedTool
from tests.sources.youtube_server import CHANNEL, FakeVideo

HOUR = timedelta(hours=1)


def poll(source: Source) -> Source:
    collect.poll(claimed(source))
    return reread(source)


def video(number: int, **changes: Any) -> FakeVideo:
    return FakeVideo(f"video{number:06}", f"Loaf {number}", published_at=NOON - number * HOUR, **changes)


def test_videos_become_raw_items_with_what_was_said(workspace, register, youtube):
    youtube.add(video(2), video(1))
    source = poll(register(type="youtube", config={"handle": "@harbour"}, first_poll="all"))
    rows = RawItem.everywhere.order_by("-published_at")
    assert [(row.external_id, row.title, row.status) for row in rows] == [
        ("yt:video:video000001", "Loaf 1", "queued"),
        ("yt:video:video000002", "Loaf 2", "queued"),
    ]
    row = rows[0]
    body = RawBody.everywhere.get(raw_item=row)
    assert "We add two per cent of salt & nothing else." in body.body
    assert (body.body_format, row.language, row.author) == ("text", "en", "Harbour Bakery")
    assert row.metadata["captions"] == {"language": "en", "kind": "manual", "by": "captions"}
    assert [one["url"] for one in row.media] == [
        "https://i.ytimg.com/vi/video000001/hqdefault.jpg",
        "https://www.youtube.com/watch?v=video000001",
    ]
    assert facts(workspace) == ["raw.ingested", "raw.ingested"]
    assert (source.status, source.last_error) == ("active", None)
    assert source.wake_at >= NOON + HOUR / 2


def test_a_video_is_taken_in_once_and_its_edit_is_a_version(workspace, register, youtube, clock):
    youtube.add(video(1))
    source = poll(register(type="youtube", config={"channel": CHANNEL}))
    raw = RawItem.everywhere.get()
    steps.run_generations(raw)
    clock.shift(HOUR)
    source = poll(source)
    assert reread(raw).content_version == 1
    youtube.one("video000001").title = "Loaf 1, corrected"
    youtube.add(video(0))
    clock.shift(HOUR)
    poll(source)
    assert sorted(RawItem.everywhere.values_list("external_id", flat=True)) == [
        "yt:video:video000000",
        "yt:video:video000001",
    ]
    fresh = reread(raw)
    assert (fresh.content_version, fresh.title) == (2, "Loaf 1, corrected")
    assert GeneratedItem.everywhere.get(raw_item=raw).held == "source_changed"


def test_a_poll_that_was_killed_meets_what_it_took_in(register, youtube, monkeypatch):
    youtube.add(video(2), video(1))
    source = register(type="youtube", config={"channel": CHANNEL}, first_poll="all")
    # As if it had died before the state was kept: the next poll begins with the old one.
    poll(source)
    Source.everywhere.filter(pk=source.pk).update(fetch_state={}, last_polled_at=None)
    poll(source)
    assert (RawItem.everywhere.count(), RawBody.everywhere.count()) == (2, 2)


def test_an_outage_of_the_feeds_is_told_and_recovers(register, youtube, clock):
    youtube.add(video(1))
    youtube.feed_status = 404
    source = register(type="youtube", config={"channel": CHANNEL})
    for _ in range(3):
        source = poll(source)
        clock.shift(HOUR)
    assert (source.status, source.last_error["code"]) == ("failing", "feed_outage")
    youtube.feed_status = 200
    source = poll(source)
    assert (source.status, source.last_error, RawItem.everywhere.count()) == ("active", None, 1)


def test_links_to_tiktok_become_raw_items(register, tiktok):
    tiktok.captions["6718335390845095173"] = "Rye on day three: the crust cracks first."
    tiktok.short["/ZMabc123/"] = "https://www.tiktok.com/@scout2015/video/6718335390845095173?_r=1"
    poll(register(type="tiktok", config={"links": ["https://vm.tiktok.com/ZMabc123/"]}))
    row = RawItem.everywhere.get()
    assert (row.external_id, row.url) == (
        "tiktok:6718335390845095173",
        "https://www.tiktok.com/@scout2015/video/6718335390845095173",
    )
    assert row.title == "Rye on day three: the crust cracks first."


def test_an_account_that_lost_its_tool_says_what_to_do(register, tiktok, tmp_path, settings):
    settings.SOURCE_ENVIRONMENT = {**settings.SOURCE_ENVIRONMENT, "VIDEO_TOOL": RecordedTool(tmp_path).says()}
    source = register(type="tiktok", config={"username": "scout2015"})
    settings.SOURCE_ENVIRONMENT = {**settings.SOURCE_ENVIRONMENT, "VIDEO_TOOL": ""}
    source = poll(source)
    assert source.last_error["code"] == "tool_missing"
    assert "VIDEO_TOOL" in source.last_error["message"]
    assert source.wake_at >= NOON + 24 * HOUR
