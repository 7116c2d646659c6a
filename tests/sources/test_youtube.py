"""YouTube: what one poll lists, what it leaves for later, and how each failure is told."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest
from pytest_httpserver import HTTPServer

from config.core.http_client import Client, Policy
from pipeline.plugins import ConfigInvalid, Refused, TryLater
from pipeline.sources.base import EntryMedia
from pipeline.sources.youtube import PLUGIN
from pipeline.sources.youtube import poll as youtube_poll

from .youtube_server import (
    BLOCKED,
    CHANNEL,
    KEY,
    LONG,
    NO_TRACKS,
    NOW,
    FakeVideo,
    YouTubeServer,
    sample,
    unplayable,
)

SAID = (
    "Today we bake rye, and it's the third loaf of the series. We add two per cent of salt & nothing else."
    "\n\nThe crust cracks because it dries first."
)
HEARD = (
    "Today we bake rye and it's the third loaf. We add two per cent of salt."
    "\n\nThe crust cracks because it dries first."
)
OLD = NOW - timedelta(days=30)


@pytest.fixture
def youtube(httpserver):
    return YouTubeServer(httpserver)


class Polls:
    """The polls of one source, each with the state that the one before it left."""

    def __init__(self, server, *, key="", tool="", **config):
        self.server, self.key, self.tool = server, key, tool
        self.config = config or {"channel": CHANNEL}
        self.state, self.now = {}, NOW

    def poll(self, **after):
        self.now += timedelta(**after)
        found = PLUGIN.fetch(
            self.config,
            # As the database gives it back.
            json.loads(json.dumps(self.state)),
            http=Client(Policy(allow_loopback=True, user_agent="content-pipeline-test")),
            now=self.now,
            environment={
                "YOUTUBE_URL": self.server.url,
                "YOUTUBE_API_URL": self.server.url,
                "YOUTUBE_API_KEY": self.key,
                "VIDEO_TOOL": self.tool,
            },
        )
        self.state = found.state
        return found

    def fails(self, kind=TryLater):
        with pytest.raises(kind) as caught:
            self.poll()
        assert str(caught.value).endswith(".")
        return caught.value


def ids(found):
    return [entry.external_id.removeprefix("yt:video:") for entry in found.entries]


def codes(found):
    return [note.code for note in found.notes]


def given(found):
    return [
        entry.external_id.removeprefix("yt:video:")
        for entry in found.entries
        if not entry.left_out and not entry.withdrawn
    ]


def left_out(found):
    return {
        entry.external_id.removeprefix("yt:video:"): entry.left_out.code
        for entry in found.entries
        if entry.left_out
    }


# --- New, unchanged, edited ---


def test_a_new_video_comes_with_its_description_and_what_was_said(youtube):
    youtube.add(
        FakeVideo("ryeBread003", "Rye & salt", "Why the crust cracks.\nFlour: https://x.example\n0:00 Start")
    )
    found = Polls(youtube).poll()
    assert (found.title, found.is_window, found.malformed, found.notes) == ("Harbour Bakery", False, 0, ())
    (entry,) = found.entries
    assert entry.external_id == "yt:video:ryeBread003"
    assert entry.url == "https://www.youtube.com/watch?v=ryeBread003"
    assert entry.title == "Rye & salt"
    assert entry.body == f"Why the crust cracks.\n\n{SAID}"
    assert (entry.body_format, entry.language, entry.author) == ("text", "en", "Harbour Bakery")
    assert entry.published_at == NOW - timedelta(days=2)
    assert entry.media == (
        EntryMedia("https://i.ytimg.com/vi/ryeBread003/hqdefault.jpg", "image/jpeg"),
        EntryMedia("https://www.youtube.com/watch?v=ryeBread003"),
    )
    assert entry.metadata == {
        "video_id": "ryeBread003",
        "channel": "Harbour Bakery",
        "duration_seconds": None,
        "captions": {"language": "en", "kind": "manual", "by": "captions"},
    }
    assert entry.left_out is None


def test_automatic_captions_become_sentences(youtube):
    player = json.loads(sample("player.json"))
    del player["captions"]["playerCaptionsTracklistRenderer"]["captionTracks"][:2]
    youtube.add(FakeVideo("ryeBread003", description="", player=player))
    (entry,) = Polls(youtube).poll().entries
    assert entry.body == HEARD
    assert entry.metadata["captions"]["kind"] == "automatic"


def test_what_was_listed_is_not_listed_again(youtube):
    youtube.add(FakeVideo("video000001"), FakeVideo("video000002"))
    polls = Polls(youtube)
    assert len(polls.poll().entries) == 2
    before = len(youtube.asked)
    again = polls.poll(hours=1)
    assert (again.entries, again.not_modified, again.title) == ((), True, "Harbour Bakery")
    # The feed counts views anew at each poll, which is no change: one request and no parse.
    assert youtube.asked[before:] == ["videos.xml"]
    youtube.add(FakeVideo("video000003", published_at=NOW))
    third = polls.poll(hours=1)
    assert (ids(third), third.not_modified) == (["video000003"], False)


def test_an_edited_video_is_listed_again_with_its_captions(youtube):
    youtube.add(FakeVideo("video000001", "First"), FakeVideo("video000002", "Second"))
    polls = Polls(youtube)
    first = {entry.external_id: entry for entry in polls.poll().entries}
    youtube.one("video000002").title = "Second, edited"
    (entry,) = polls.poll(hours=1).entries
    assert entry.title == "Second, edited"
    assert entry.body == first[entry.external_id].body
    assert polls.poll(hours=1).entries == ()


def test_an_edit_waits_while_its_captions_cannot_be_had(youtube):
    youtube.add(FakeVideo("video000001", "First"))
    polls = Polls(youtube)
    polls.poll()
    video = youtube.one("video000001")
    video.title, video.player = "Edited", BLOCKED
    found = polls.poll(hours=1)
    assert (found.entries, codes(found)) == ((), ["captions_blocked", "captions_awaited"])
    video.player = None
    assert polls.poll(hours=1).entries == ()
    (entry,) = polls.poll(hours=6).entries
    assert (entry.title, entry.metadata["captions"]["kind"]) == ("Edited", "manual")


def test_white_space_is_no_edit(youtube):
    youtube.add(FakeVideo("video000001", "First", LONG))
    polls = Polls(youtube)
    polls.poll()
    youtube.one("video000001").description = LONG.replace(". ", ".  \n")
    assert polls.poll(hours=1).entries == ()


def test_a_state_of_another_place_or_of_no_sense_is_forgotten(youtube):
    youtube.add(FakeVideo("video000001"))
    polls = Polls(youtube)
    for state in (
        {"place": "channel:UCother"},
        {"place": f"channel:{CHANNEL}", "begun": "x", "records": {"video000001": 5, "x": {}}, "waiting": [1]},
        {
            "place": f"channel:{CHANNEL}",
            "digest": None,
            "waiting": {"video000009": {"next": -1}},
            "checked": [],
        },
    ):
        polls.state = state
        assert "video000001" in ids(polls.poll())


def test_a_playlist_is_asked_for_by_its_own_feed(youtube):
    youtube.add(FakeVideo("video000001"))
    polls = Polls(youtube, playlist="PLabcdefghijkl")
    assert ids(polls.poll()) == ["video000001"]
    assert polls.state["place"] == "playlist:PLabcdefghijkl"


def test_a_first_poll_lists_everything_at_once_newest_first(youtube):
    """What it left for the next poll would be taken for news there, against what `first_poll` says."""
    for number in range(15):
        video = FakeVideo(f"video0000{number:02}", published_at=OLD + timedelta(hours=number))
        video.player = "nonsense" if number % 3 else None
        youtube.add(video)
    polls = Polls(youtube)
    found = polls.poll()
    assert ids(found) == [f"video0000{number:02}" for number in reversed(range(15))]
    assert polls.poll(hours=1).entries == ()


def test_an_old_video_that_moves_up_into_the_feed_is_no_news(youtube):
    for number in range(17):
        youtube.add(FakeVideo(f"video0000{number:02}", published_at=OLD + timedelta(hours=number)))
    polls = Polls(youtube)
    assert len(polls.poll().entries) == 15
    youtube.videos[0].is_listed = youtube.videos[1].is_listed = False
    assert polls.poll(hours=1).entries == ()


def test_later_polls_ask_for_so_many_captions_and_keep_the_rest(youtube, monkeypatch):
    monkeypatch.setattr(youtube_poll, "MAX_CAPTIONS", 2)
    polls = Polls(youtube)
    polls.poll()
    for number in range(5):
        youtube.add(FakeVideo(f"video00000{number}", published_at=OLD + timedelta(hours=number)))
    found = polls.poll(hours=1)
    assert (given(found), codes(found)) == (["video000004", "video000003"], ["captions_awaited"])
    waiting = {f"video00000{number}": "captions_awaited" for number in range(3)}
    assert left_out(found) == waiting
    # Even when fifteen newer ones pushed them out of the feed.
    for video in youtube.videos:
        video.is_listed = False
    assert given(polls.poll(hours=1)) == ["video000002", "video000001"]
    assert given(polls.poll(hours=1)) == ["video000000"]
    assert polls.poll(hours=1).notes == ()


# --- Captions that can't be had ---


@pytest.mark.parametrize(
    ("player", "watch"),
    [
        (BLOCKED, {}),
        (None, {"watch_status": 429}),
        (None, {"watch_status": 403}),
        (None, {"watch_body": sample("consent.html")}),
        (None, {"watch_body": '<html><div class="g-recaptcha"></div></html>'}),
    ],
)
def test_a_block_stops_the_asking_and_the_source_goes_on(youtube, player, watch):
    for name, value in watch.items():
        setattr(youtube, name, value)
    youtube.add(FakeVideo("video000001", player=player), FakeVideo("video000002", description="Short."))
    polls = Polls(youtube)
    found = polls.poll()
    assert codes(found) == ["captions_blocked"]
    assert "20 November, 18:00 UTC" in found.notes[0].message
    assert (ids(found), left_out(found)) == (
        ["video000001", "video000002"],
        {"video000002": "captions_blocked"},
    )
    assert found.entries[0].body == LONG.strip()
    assert found.entries[0].metadata["captions"] is None
    watched = youtube.count("watch")
    assert watched <= 2
    youtube.add(FakeVideo("video000003"))
    assert codes(polls.poll(hours=1)) == ["captions_blocked"]
    assert youtube.count("watch") == watched
    # It isn't given again because its captions can be read now.
    youtube.watch_body, youtube.watch_status = sample("watch.html"), 200
    youtube.one("video000003").player = None
    found = polls.poll(hours=6)
    assert (found.entries, found.notes) == ((), ())
    # That the block is over is news, or the last note would stand on.
    assert found.not_modified is False
    assert polls.poll(hours=1).not_modified is True


def test_a_block_after_the_first_poll_lets_those_wait_that_say_too_little(youtube):
    polls = Polls(youtube)
    polls.poll()
    youtube.add(
        FakeVideo("video000001", player=BLOCKED), FakeVideo("video000002", "b", "Short.", player=BLOCKED)
    )
    found = polls.poll(hours=1)
    assert (given(found), left_out(found)) == (["video000001"], {"video000002": "captions_awaited"})
    assert ids(polls.poll(hours=7)) == []
    found = polls.poll(hours=18)
    assert left_out(found) == {"video000002": "captions_blocked"}


def test_po_tokens_count_as_a_block(youtube):
    player = json.loads(sample("player.json").replace("&fmt=srv3", "&exp=xpe"))
    youtube.add(FakeVideo("video000001", player=player))
    assert codes(Polls(youtube).poll()) == ["captions_blocked"]


@pytest.mark.parametrize(
    ("player", "code", "is_given_with_words"),
    [
        (unplayable("ERROR", "This video is unavailable"), "gone", False),
        (unplayable("ERROR", "This video has been removed by the uploader"), "gone", False),
        (unplayable("LOGIN_REQUIRED", "This is a private video. Please sign in to verify that you may see it."), "private", False),
        (unplayable("UNPLAYABLE", "Join this channel to get access to members-only content like this video"), "members_only", False),
        (unplayable("LOGIN_REQUIRED", "This video may be inappropriate for some users."), "age_restricted", True),
        (unplayable("LOGIN_REQUIRED", "Sign in to confirm your age"), "age_restricted", True),
        (unplayable("UNPLAYABLE", "The uploader has not made this video available in your country"), "region", True),
        (NO_TRACKS, "no_captions", True),
    ],
)  # fmt: skip
def test_what_keeps_a_video_from_being_read_is_told(youtube, player, code, is_given_with_words):
    youtube.add(
        FakeVideo("video000001", "a", "Too short.", player=player), FakeVideo("video000002", player=player)
    )
    found = Polls(youtube).poll()
    expected = {"video000001": code} if is_given_with_words else {"video000001": code, "video000002": code}
    assert left_out(found) == expected
    assert len(found.entries) == 2
    assert all(entry.left_out is None or entry.left_out.message.endswith(".") for entry in found.entries)


def test_a_new_video_waits_for_automatic_captions(youtube):
    youtube.add(FakeVideo("video000001", published_at=NOW - timedelta(minutes=5), player=NO_TRACKS))
    polls = Polls(youtube)
    found = polls.poll()
    assert (left_out(found), codes(found)) == ({"video000001": "captions_awaited"}, ["captions_awaited"])
    assert found.entries[0].left_out.message.endswith(".")
    # Sooner than in an hour nobody looks.
    players = youtube.count("player")
    assert polls.poll(minutes=30).entries == ()
    assert youtube.count("player") == players
    youtube.one("video000001").player = None
    (entry,) = polls.poll(minutes=30).entries
    assert entry.metadata["captions"]["kind"] == "manual"


def test_a_new_video_does_not_wait_for_ever(youtube):
    youtube.add(FakeVideo("video000001", published_at=NOW, player=NO_TRACKS))
    polls = Polls(youtube)
    assert given(polls.poll()) == []
    (entry,) = polls.poll(hours=6).entries
    assert (entry.body, entry.left_out) == (LONG.strip(), None)


def test_a_broadcast_is_taken_in_after_it_began(youtube):
    upcoming = unplayable("LIVE_STREAM_OFFLINE", "This live event will begin in 2 hours.")
    youtube.add(FakeVideo("video000001", player=upcoming, published_at=NOW))
    polls = Polls(youtube)
    found = polls.poll()
    assert (left_out(found), codes(found)) == ({"video000001": "live"}, ["live"])
    youtube.one("video000001").player = None
    assert ids(polls.poll(hours=3)) == ["video000001"]


@pytest.mark.parametrize(
    "player",
    ["nonsense", "[]", "[" * 100_000, "{}", '{"playabilityStatus": null}', '{"playabilityStatus": {"status": "OK"}, "captions": {"playerCaptionsTracklistRenderer": {"captionTracks": [{}]}}}'],
)  # fmt: skip
def test_answers_of_another_shape_are_tried_again_and_then_given_up(youtube, player):
    polls = Polls(youtube)
    polls.poll()
    youtube.add(FakeVideo("video000001", "a", player=player))
    polled = [polls.poll(hours=1) for _ in range(3)]
    assert [given(found) for found in polled] == [[], [], ["video000001"]]
    assert polled[-1].entries[0].body == LONG.strip()


def test_captions_that_lie_elsewhere_are_not_fetched(youtube):
    player = json.loads(sample("player.json").replace("https://www.youtube.com/api", f"{youtube.url}/api"))
    youtube.add(FakeVideo("video000001", player=player))
    (entry,) = Polls(youtube).poll().entries
    assert entry.metadata["captions"] is None
    assert youtube.count("timedtext") == 0


def test_hostile_captions_cost_nothing(youtube):
    youtube.add(
        FakeVideo("video000001", captions='<transcript><text start="1" dur="1">' + "&lt;" * 900_000 + "</text></transcript>"),
        FakeVideo("video000002", captions="<text" * 800_000),
    )  # fmt: skip
    found = Polls(youtube).poll()
    assert len(found.entries) == 2


def test_captions_that_are_too_large_are_left(youtube):
    youtube.add(FakeVideo("video000001", captions="x" * (6 * 1024 * 1024)))
    assert Polls(youtube).poll().entries[0].metadata["captions"] is None


# --- Feeds that fail ---


@pytest.mark.parametrize("status", [404, 500, 503])
def test_an_outage_of_the_feeds_is_told_as_one(youtube, status):
    youtube.feed_status = status
    error = Polls(youtube).fails()
    assert (error.code, error.platform_status) == ("feed_outage", status)
    assert "YOUTUBE_API_KEY" in str(error)


def test_a_channel_without_a_page_is_not_known(youtube):
    youtube.feed_status, youtube.channel_status = 404, 404
    assert Polls(youtube).fails().code == "not_found"


@pytest.mark.parametrize(
    ("status", "headers", "after"),
    [
        (403, {}, timedelta(hours=1)),
        (429, {"Retry-After": "7200"}, timedelta(hours=2)),
        (429, {"Retry-After": "Fri, 20 Nov 2026 15:00:00 GMT"}, timedelta(hours=3)),
    ],
)
def test_a_feed_that_is_refused_is_left_alone_for_a_while(youtube, status, headers, after):
    youtube.feed_status, youtube.feed_headers = status, headers
    error = Polls(youtube).fails()
    assert (error.code, error.after) == ("blocked", after)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (sample("consent.html"), "consent_page"),
        ("<!DOCTYPE html><html><body>Sorry…</body></html>", "blocked"),
        ("not a feed", "feed_unreadable"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><feed>&a;</feed>", "feed_unreadable"),
        ("x" * (6 * 1024 * 1024), "response_too_large"),
    ],
)
def test_what_is_no_feed_is_tried_later(youtube, body, code):
    youtube.feed_body = body
    assert Polls(youtube).fails().code == code


def test_a_redirect_to_the_consent_page_is_followed_and_told(youtube, httpserver):
    httpserver.expect_request("/consent").respond_with_data(sample("consent.html"), content_type="text/html")
    youtube.feed_status, youtube.feed_headers = 302, {"Location": "/consent"}
    assert Polls(youtube).fails().code == "consent_page"


def test_an_empty_channel_is_no_failure(youtube):
    found = Polls(youtube).poll()
    assert (found.entries, found.malformed, found.title) == ((), 0, "Harbour Bakery")


def test_entries_that_are_no_videos_are_counted(youtube):
    youtube.feed_body = sample("channel.xml").replace("yt:video:ryeBread003", "yt:other:1")
    assert Polls(youtube).poll().malformed == 1


# --- Handles ---


def test_a_handle_is_resolved_once(youtube):
    youtube.add(FakeVideo("video000001"))
    polls = Polls(youtube, handle="@harbour")
    assert ids(polls.poll()) == ["video000001"]
    polls.poll(hours=1)
    assert youtube.count("@harbour") == 1
    assert polls.state["channel_id"] == CHANNEL


def test_a_handle_is_found_in_the_page_without_its_canonical_link(youtube):
    youtube.handle_body = sample("channel.html").replace('rel="canonical"', 'rel="x"')
    polls = Polls(youtube, handle="@harbour")
    polls.poll()
    assert polls.state["channel_id"] == CHANNEL


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (404, "", "not_found"),
        (200, "<html></html>", "handle_unreadable"),
        (200, sample("consent.html"), "consent_page"),
    ],
)
def test_a_handle_that_cannot_be_resolved_is_told(youtube, status, body, code):
    youtube.handle_status, youtube.handle_body = status, body
    assert Polls(youtube, handle="@harbour").fails().code == code


def test_a_handle_is_resolved_by_the_data_api_where_there_is_a_key(youtube):
    polls = Polls(youtube, key=KEY, handle="@harbour")
    polls.poll()
    assert (polls.state["channel_id"], youtube.count("@harbour")) == (CHANNEL, 0)
    error = Polls(youtube, key=KEY, handle="@nobody").fails(Refused)
    assert (error.code, error.field) == ("not_found", "config.handle")


# --- Addresses ---

LIST = "PLabcdefghij_0123456789"


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://www.youtube.com/@harbour", {"handle": "@harbour"}),
        ("youtube.com/@harbour/videos?view=0", {"handle": "@harbour"}),
        ("https://m.youtube.com/@harbour/shorts", {"handle": "@harbour"}),
        ("https://www.youtube.com/@%E6%B8%AF%E6%B8%AF%E6%B8%AF", {"handle": "@\u6e2f\u6e2f\u6e2f"}),
        (f"https://www.youtube.com/channel/{CHANNEL}/featured", {"channel": CHANNEL}),
        (f"https://www.youtube.com/feeds/videos.xml?channel_id={CHANNEL}", {"channel": CHANNEL}),
        (f"https://www.youtube.com/feeds/videos.xml?playlist_id={LIST}", {"playlist": LIST}),
        (f"https://www.youtube.com/playlist?list={LIST}&si=x", {"playlist": LIST}),
        (f"https://www.youtube.com/watch?v=ryeBread003&list={LIST}&index=4", {"playlist": LIST}),
        (f"https://youtu.be/ryeBread003?list={LIST}", {"playlist": LIST}),
        (f"https://music.youtube.com/playlist?list={LIST}", {"playlist": LIST}),
        ("https://www.youtube.com/watch?v=ryeBread003&t=42s", {"video": "ryeBread003"}),
        ("https://www.youtube.com/watch?v=ryeBread003&list=RDryeBread003", {"video": "ryeBread003"}),
        ("https://youtu.be/ryeBread003?si=abc", {"video": "ryeBread003"}),
        ("https://www.youtube.com/shorts/ryeBread003", {"video": "ryeBread003"}),
        ("https://www.youtube.com/live/ryeBread003?feature=share", {"video": "ryeBread003"}),
        ("https://www.youtube-nocookie.com/embed/ryeBread003", {"video": "ryeBread003"}),
        ("https://www.youtube.com/c/Harbour", {"custom": "Harbour"}),
        ("http://www.youtube.com/user/harbour/videos", {"user": "harbour"}),
    ],
)
def test_address_is_kept_as_what_it_was_read_as(address, kept):
    assert PLUGIN.clean_config({"url": address}) == kept
    # What an answer shows can be sent again.
    assert PLUGIN.clean_config(kept) == kept
    assert PLUGIN.clean_config({"url": address, "batch_hours": 2}) == {**kept, "batch_hours": 2}


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("https://www.youtube.com/", "invalid"),
        ("https://www.youtube.com/results?search_query=rye", "not_a_place"),
        ("https://www.youtube.com/watch?v=short", "not_a_place"),
        ("https://www.youtube.com/playlist?list=WL", "not_a_place"),
        ("https://www.youtube.com/channel/harbour", "not_a_place"),
        ("https://vimeo.com/ryeBread003", "invalid"),
        ("https://youtube.com.example.org/@harbour", "invalid"),
        ("@harbour", "invalid"),
    ],
)
def test_address_of_nothing_is_refused_in_words(address, code):
    with pytest.raises(ConfigInvalid) as refused:
        PLUGIN.clean_config({"url": address})
    assert [(one.field, one.code) for one in refused.value.problems] == [("config.url", code)]


@pytest.mark.parametrize("config", [{"user": "harbour"}, {"custom": "Harbour"}])
@pytest.mark.parametrize("key", ["", KEY])
def test_old_names_lead_to_their_channel(youtube, config, key):
    youtube.add(FakeVideo("video000001"))
    polls = Polls(youtube, key=key, **config)
    assert ids(polls.poll()) == ["video000001"]
    assert polls.state["channel_id"] == CHANNEL


def test_single_video_is_given_with_what_is_said_in_it(youtube):
    youtube.add(FakeVideo("video000001", title="Rye, day three"))
    polls = Polls(youtube, video="video000001")
    found = polls.poll()
    (entry,) = found.entries
    assert (found.title, entry.title, entry.author, entry.body) == (
        "Rye, day three",
        "Rye, day three",
        "Harbour",
        SAID,
    )
    assert polls.poll(hours=6).entries == ()
    youtube.one("video000001").title = "Rye, day four"
    assert [one.title for one in polls.poll(hours=6).entries] == ["Rye, day four"]
    youtube.one("video000001").is_there = False
    assert polls.poll(hours=6).entries == ()
    assert [one.withdrawn for one in polls.poll(hours=6).entries] == [True]


def test_single_video_that_nobody_sees_is_told(youtube):
    youtube.add(FakeVideo("video000001", is_there=False))
    assert Polls(youtube, video="video000001").fails().code == "not_found"


# --- The Data API ---


def test_with_a_key_length_and_licence_are_known(youtube):
    youtube.add(FakeVideo("video000001"))
    (entry,) = Polls(youtube, key=KEY).poll().entries
    assert (entry.metadata["duration_seconds"], entry.metadata["licence"]) == (3723, "creativeCommon")
    assert youtube.api_keys == [KEY]


def test_a_key_stands_in_no_address_and_no_state(youtube, httpserver):
    youtube.add(FakeVideo("video000001"))
    polls = Polls(youtube, key=KEY)
    polls.poll()
    assert KEY not in json.dumps(polls.state)
    assert all(KEY not in request.full_path for request, _ in httpserver.log)
    assert all(KEY not in str(headers) for name, headers in zip(youtube.asked, youtube.headers, strict=True) if name not in {"videos", "playlistItems", "channels"})  # fmt: skip


@pytest.mark.parametrize("status", [404, 500, 403])
def test_with_a_key_an_outage_of_the_feeds_stops_nothing(youtube, status):
    youtube.add(FakeVideo("video000001", published_at=OLD))
    polls = Polls(youtube, key=KEY)
    polls.poll()
    youtube.feed_status = status
    youtube.add(FakeVideo("video000002", published_at=NOW + timedelta(minutes=10)))
    # It was there before the first poll, further down than a feed shows.
    youtube.videos.append(FakeVideo("video000000", published_at=OLD - timedelta(days=9), is_listed=False))
    # The wording of another door is no edit.
    youtube.one("video000001").description += " And more."
    found = polls.poll(hours=1)
    assert (ids(found), codes(found)) == (["video000002"], ["feed_outage"])
    youtube.feed_status = 200
    assert ids(polls.poll(hours=1)) == ["video000001"]


def test_a_first_poll_during_an_outage_takes_as_much_as_a_feed(youtube):
    for number in range(20):
        youtube.add(FakeVideo(f"video0000{number:02}", published_at=OLD + timedelta(hours=number)))
    youtube.feed_status = 404
    assert len(Polls(youtube, key=KEY).poll().entries) == 15


def test_a_used_up_quota_waits_for_midnight_at_the_pacific(youtube):
    youtube.api_status, youtube.api_body = 403, sample("quota.json")
    youtube.add(FakeVideo("video000001"))
    polls = Polls(youtube, key=KEY)
    found = polls.poll()
    assert (codes(found), ids(found)) == (["quota_exceeded"], ["video000001"])
    assert "08:00 UTC" in found.notes[0].message
    asked = len(youtube.api_keys)
    polls.poll(hours=1)
    assert len(youtube.api_keys) == asked
    youtube.feed_status = 404
    polls.state = {}
    error = polls.fails()
    assert (error.code, error.after) == ("quota_exceeded", timedelta(hours=19))


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, '{"error": {"code": 400, "errors": [{"reason": "badRequest"}]}}', "api_key_refused"),
        (403, "<html>", "api_key_refused"),
        (429, "", "api_rate_limited"),
        (500, "", "api_fault"),
        (200, "no JSON", "api_unreadable"),
        (200, "[" * 100_000, "api_unreadable"),
    ],
)
def test_a_fault_of_the_data_api_is_told_and_the_source_goes_on(youtube, status, body, code):
    youtube.api_status, youtube.api_body = status, body
    youtube.add(FakeVideo("video000001"))
    found = Polls(youtube, key=KEY).poll()
    assert (codes(found), ids(found)) == ([code], ["video000001"])
    assert KEY not in found.notes[0].message


def test_a_list_that_the_data_api_does_not_know(youtube):
    youtube.feed_status, youtube.api_status = 404, 404
    assert Polls(youtube, key=KEY, playlist="PLabcdefghijkl").fails().code == "not_found"


def test_with_a_key_a_playlist_is_read_to_its_end(youtube):
    """Its feed shows the first 15, and many are added to at the end."""
    for number in range(120):
        video = FakeVideo(f"video000{number:03}", published_at=OLD, listed_at=OLD + timedelta(minutes=number))
        youtube.videos.append(video)
    polls = Polls(youtube, key=KEY, playlist="PLabcdefghijkl")
    assert ids(polls.poll()) == [f"video000{number:03}" for number in reversed(range(105, 120))]
    assert (youtube.count("playlistItems"), youtube.count("videos.xml")) == (3, 0)
    youtube.videos.append(FakeVideo("video000120", published_at=OLD, listed_at=NOW + timedelta(minutes=5)))
    youtube.one("video000119").title = "Edited"
    assert sorted(ids(polls.poll(hours=1))) == ["video000119", "video000120"]
    # Without its usual door nothing is lost and nothing comes twice.
    youtube.api_status, youtube.api_body = 403, sample("quota.json")
    found = polls.poll(hours=1)
    assert codes(found)[0] == "quota_exceeded"


def test_without_a_key_it_is_said_what_a_playlist_hides(youtube):
    for number in range(16):
        youtube.add(FakeVideo(f"video0000{number:02}", published_at=OLD + timedelta(minutes=number)))
    polls = Polls(youtube, playlist="PLabcdefghijkl")
    assert codes(polls.poll()) == ["playlist_cut_off"]
    again = polls.poll(hours=1)
    assert (again.entries, codes(again)) == ((), ["playlist_cut_off"])


def test_consent_that_can_be_given_is_given(youtube):
    youtube.add(FakeVideo("video000001"))
    youtube.needs_consent = True
    (entry,) = Polls(youtube).poll().entries
    assert entry.metadata["captions"]["by"] == "captions"


@pytest.mark.parametrize("live", ["live", "upcoming"])
def test_with_a_key_a_broadcast_waits_without_its_page_being_asked(youtube, live):
    starts = (NOW + timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    details = {
        "snippet": {"liveBroadcastContent": live},
        "contentDetails": {"duration": "P0D"},
        "liveStreamingDetails": {"scheduledStartTime": starts},
    }
    youtube.add(FakeVideo("video000001", details=details))
    polls = Polls(youtube, key=KEY)
    found = polls.poll()
    assert (left_out(found), codes(found), youtube.count("watch")) == ({"video000001": "live"}, ["live"], 0)
    assert codes(polls.poll(hours=1)) == ["live"]
    youtube.one("video000001").details = {}
    assert ids(polls.poll(hours=5)) == ["video000001"]


def test_with_a_key_a_private_video_is_left_out(youtube):
    youtube.add(FakeVideo("video000001", details={"status": {"privacyStatus": "private"}}))
    assert left_out(Polls(youtube, key=KEY).poll()) == {"video000001": "private"}


# --- Taken back ---


def withdrawn(found):
    return [entry.external_id.removeprefix("yt:video:") for entry in found.entries if entry.withdrawn]


def three(youtube):
    for number in range(3):
        youtube.add(FakeVideo(f"video00000{number}", published_at=OLD + timedelta(days=number)))


def test_with_a_key_a_deleted_video_is_withdrawn_when_it_is_missing_twice(youtube):
    three(youtube)
    polls = Polls(youtube, key=KEY)
    polls.poll()
    youtube.one("video000001").is_there = False
    assert withdrawn(polls.poll(hours=7)) == []
    assert withdrawn(polls.poll(minutes=30)) == ["video000001"]
    assert withdrawn(polls.poll(hours=7)) == []


def test_with_a_key_a_gap_that_closes_withdraws_nothing(youtube):
    three(youtube)
    polls = Polls(youtube, key=KEY)
    polls.poll()
    youtube.one("video000001").is_there = False
    polls.poll(hours=7)
    youtube.one("video000001").is_there = True
    assert withdrawn(polls.poll(hours=1)) == []
    youtube.one("video000001").is_there = False
    assert withdrawn(polls.poll(hours=7)) == []


def test_with_a_key_a_video_that_was_made_private_is_withdrawn_at_once(youtube):
    three(youtube)
    polls = Polls(youtube, key=KEY)
    polls.poll()
    youtube.one("video000002").details = {"status": {"privacyStatus": "private"}}
    assert withdrawn(polls.poll(hours=7)) == ["video000002"]


def test_a_quota_that_is_used_up_withdraws_nothing(youtube):
    three(youtube)
    polls = Polls(youtube, key=KEY)
    polls.poll()
    youtube.api_status, youtube.api_body = 403, sample("quota.json")
    assert withdrawn(polls.poll(hours=7)) == []
    assert withdrawn(polls.poll(hours=7)) == []


def test_without_a_key_a_gap_in_the_feed_is_looked_at(youtube):
    three(youtube)
    polls = Polls(youtube)
    polls.poll()
    youtube.one("video000001").is_listed = youtube.one("video000001").is_there = False
    assert withdrawn(polls.poll(hours=1)) == []
    assert withdrawn(polls.poll(hours=1)) == ["video000001"]
    assert youtube.count("oembed") == 2


def test_without_a_key_an_unlisted_video_stays(youtube):
    three(youtube)
    polls = Polls(youtube)
    polls.poll()
    youtube.one("video000001").is_listed = False
    for _ in range(3):
        youtube.add(FakeVideo(f"video0001{len(youtube.videos):02}"))
        assert withdrawn(polls.poll(hours=1)) == []
    assert youtube.count("oembed") == 1


def test_what_only_moved_out_of_the_feed_is_not_looked_at(youtube):
    three(youtube)
    polls = Polls(youtube)
    polls.poll()
    youtube.one("video000000").is_listed = False
    assert polls.poll(hours=1).entries == ()
    assert youtube.count("oembed") == 0


def test_a_feed_can_say_that_an_entry_was_deleted(youtube):
    three(youtube)
    polls = Polls(youtube)
    polls.poll()
    tombstone = (
        '<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="yt:video:video000001" '
        'when="2026-11-20T11:00:00+00:00"/></feed>'
    )
    head = sample("channel.xml").partition("<entry>")[0]
    youtube.feed_body = head + tombstone
    assert withdrawn(polls.poll(hours=1)) == ["video000001"]


def test_a_withdrawn_video_that_comes_back_is_listed_again(youtube):
    three(youtube)
    polls = Polls(youtube)
    polls.poll()
    video = youtube.one("video000001")
    video.is_listed = video.is_there = False
    polls.poll(hours=1)
    polls.poll(hours=1)
    video.is_listed = video.is_there = True
    (entry,) = polls.poll(hours=1).entries
    assert (entry.external_id, entry.withdrawn) == ("yt:video:video000001", False)


def test_an_edited_video_that_nobody_sees_any_more_is_withdrawn(youtube):
    three(youtube)
    polls = Polls(youtube)
    polls.poll()
    video = youtube.one("video000002")
    video.title, video.is_there = "Edited", False
    video.player = unplayable("ERROR", "This video is unavailable")
    assert polls.poll(hours=1).entries == ()
    assert withdrawn(polls.poll(hours=1)) == ["video000002"]


# --- Slow ---


def test_a_slow_youtube_costs_no_more_than_its_time(youtube, httpserver, monkeypatch):
    monkeypatch.setattr("pipeline.sources.youtube.CAPTIONS_SECONDS", 1)
    youtube.add(FakeVideo("video000001"), FakeVideo("video000002"))
    polls = Polls(youtube)
    found = polls.poll()
    # No time is left for captions, and nothing is lost.
    assert (len(found.entries), youtube.count("watch")) == (2, 0)


@pytest.fixture
def hanging():
    """A server of its own, because calls that nobody waits for any more would reach the next test's."""
    with HTTPServer(host="127.0.0.1", port=0, threaded=True) as server:
        youtube = YouTubeServer(server)
        youtube.over = threading.Event()
        yield youtube
        youtube.over.set()


def test_pages_that_hang_end_the_asking_and_lose_nothing(hanging, monkeypatch):
    monkeypatch.setattr("pipeline.sources.youtube.captions.CALL_SECONDS", 2)
    hanging.add(*(FakeVideo(f"video00000{number}") for number in range(5)))
    found = Polls(hanging).poll()
    assert len(found.entries) == 5
    assert {entry.metadata["captions"] for entry in found.entries} == {None}
    assert hanging.count("watch") <= youtube_poll.MAX_STALLED


def test_a_feed_that_hangs_is_tried_later(hanging, monkeypatch):
    monkeypatch.setattr("pipeline.sources.youtube.listing.FEED_SECONDS", 1)
    hanging.is_feed_slow = True
    assert Polls(hanging).fails().code == "timed_out"


def test_loopback_is_refused_by_default(youtube):
    youtube.add(FakeVideo("video000001"))
    environment = {name: youtube.url if name.endswith("URL") else "" for name in PLUGIN.environment}
    with pytest.raises(TryLater) as caught:
        PLUGIN.fetch(
            {"channel": CHANNEL}, {}, http=Client(Policy(user_agent="x")), now=NOW, environment=environment
        )
    assert (caught.value.code, youtube.asked) == ("address_refused", [])
