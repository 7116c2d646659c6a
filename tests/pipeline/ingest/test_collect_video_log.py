"""What the log says of videos: left out, waiting, taken back, there again."""

from __future__ import annotations

from datetime import timedelta

from pipeline.models import RawItem, SourceEntry
from tests.pipeline.ingest.test_collect_videos import poll, video
from tests.pipeline.steps import reread
from tests.sources.youtube_server import BLOCKED, CHANNEL, NO_TRACKS

HOUR = timedelta(hours=1)


def log() -> dict[str, tuple[str, str]]:
    rows = SourceEntry.everywhere.values_list("external_id", "decision", "code")
    return {name.rpartition(":")[2]: (decision, code) for name, decision, code in rows}


def test_what_waits_and_what_is_left_out_is_in_the_log(register, youtube, clock):
    youtube.add(video(9, description="Too short.", player=NO_TRACKS), video(8), video(1, player=NO_TRACKS))
    source = poll(register(type="youtube", config={"channel": CHANNEL}))
    assert log() == {
        "video000001": ("filtered", "captions_awaited"),
        "video000008": ("new", "new"),
        "video000009": ("filtered", "no_captions"),
    }
    assert RawItem.everywhere.count() == 1
    youtube.one("video000001").player = None
    clock.shift(HOUR)
    poll(source)
    assert log()["video000001"] == ("new", "new")
    assert sorted(RawItem.everywhere.values_list("external_id", "status")) == [
        ("yt:video:video000001", "queued"),
        ("yt:video:video000008", "queued"),
    ]


def test_a_video_that_was_taken_back_and_comes_again(register, youtube, clock):
    youtube.add(video(9), video(8), video(7))
    source = poll(register(type="youtube", config={"channel": CHANNEL}))
    one = youtube.one("video000008")
    one.is_listed = one.is_there = False
    for _ in range(2):
        clock.shift(HOUR)
        source = poll(source)
    assert log()["video000008"] == ("withdrawn", "withdrawn")
    raw = RawItem.everywhere.get(external_id="yt:video:video000008")
    assert raw.withdrawn_at is not None
    one.is_listed = one.is_there = True
    clock.shift(HOUR)
    poll(source)
    assert (reread(raw).withdrawn_at, RawItem.everywhere.count()) == (None, 3)


def test_a_block_is_told_with_the_source_for_as_long_as_it_lasts(register, youtube, clock):
    youtube.add(video(9, player=BLOCKED))
    source = poll(register(type="youtube", config={"channel": CHANNEL}))
    assert [note["code"] for note in source.notes] == ["captions_blocked"]
    clock.shift(HOUR)
    source = poll(source)
    assert [note["code"] for note in source.notes] == ["captions_blocked"]
    clock.shift(6 * HOUR)
    assert poll(source).notes == []


def test_a_link_that_leads_to_a_video_later(register, tiktok, clock):
    link = "https://www.tiktok.com/@a/video/6718335390845095173"
    source = poll(register(type="tiktok", config={"links": [link]}))
    assert log() == {"6718335390845095173": ("filtered", "unavailable")}
    tiktok.captions["6718335390845095173"] = "There now"
    clock.shift(24 * HOUR)
    source = poll(source)
    assert log() == {"6718335390845095173": ("new", "new")}
    del tiktok.captions["6718335390845095173"]
    for days in (7, 1):
        clock.shift(days * 24 * HOUR)
        source = poll(source)
    assert log() == {"6718335390845095173": ("withdrawn", "withdrawn")}
