"""TikTok: links by oEmbed, accounts by the operator's tool, and how each failure is told."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from werkzeug import Response

from config.core.http_client import Client, Policy
from pipeline.plugins import TryLater
from pipeline.sources.base import EntryMedia
from pipeline.sources.tiktok import PLUGIN
from pipeline.sources.tiktok.oembed import NoVideo, OEmbed
from pipeline.sources.tiktok.video import from_oembed, video_id_of

from .fake_http import FakeHttp, answer
from .recorded_tool import RecordedTool
from .tiktok_server import TikTokServer, sample

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SCOUT = "https://www.tiktok.com/@scout2015/video/6718335390845095173"
NUMBER = "6718335390845095173"


@pytest.fixture
def tiktok(httpserver):
    return TikTokServer(httpserver)


class Polls:
    """The polls of one source, each with the state that the one before it left."""

    def __init__(self, server, *, tool="", **config):
        self.server, self.tool, self.config = server, tool, config
        self.state, self.now = {}, NOW

    def poll(self, **after):
        self.now += timedelta(**after)
        found = PLUGIN.fetch(
            self.config,
            json.loads(json.dumps(self.state)),
            http=Client(Policy(allow_loopback=True, user_agent="content-pipeline-test")),
            now=self.now,
            environment={
                "TIKTOK_URL": self.server.url,
                "TIKTOK_SHORT_URL": self.server.url,
                "VIDEO_TOOL": self.tool,
            },
        )
        self.state = found.state
        return found

    def fails(self):
        with pytest.raises(TryLater) as caught:
            self.poll()
        assert str(caught.value).endswith(".")
        return caught.value


def link(number):
    return f"https://www.tiktok.com/@scout2015/video/{number}"


def ids(found):
    return [entry.external_id for entry in found.entries]


def codes(found):
    return [note.code for note in found.notes]


def withdrawn(found):
    return [entry.external_id for entry in found.entries if entry.withdrawn]


def left_out(found):
    return {entry.external_id: entry.left_out.code for entry in found.entries if entry.left_out}


# --- Links ---


def test_a_link_is_told_with_its_words_and_its_author(tiktok):
    tiktok.captions[NUMBER] = "Scramble up your name\n#petsoftiktok"
    found = Polls(tiktok, links=[f"{SCOUT}?is_from_webapp=1&sender_device=pc"]).poll()
    (entry,) = found.entries
    assert (entry.external_id, entry.url) == (f"tiktok:{NUMBER}", SCOUT)
    assert (entry.title, entry.body) == ("Scramble up your name", "Scramble up your name\n#petsoftiktok")
    assert entry.author == "Scout, Suki & Stella"
    assert entry.media == (
        EntryMedia("https://p16-sign.tiktokcdn.example/obj/cover.jpeg?x-expires=1795000000", "image/jpeg"),
        EntryMedia(SCOUT),
    )
    assert entry.metadata == {
        "video_id": NUMBER,
        "author": "scout2015",
        "duration_seconds": None,
        "by": "oembed",
    }
    assert found.notes == ()


def test_the_recorded_answer_is_read():
    video = from_oembed(json.loads(sample("oembed.json")), SCOUT)
    assert (video.id, video.author_name, video.url) == (NUMBER, "scout2015", SCOUT)


@pytest.mark.parametrize(
    ("address", "number"),
    [
        (SCOUT, NUMBER),
        ("https://www.tiktok.com/@scout.2015/photo/6718335390845095173", NUMBER),
        ("https://m.tiktok.com/v/6718335390845095173.html?x=1", NUMBER),
        ("https://www.tiktok.com/embed/v2/6718335390845095173", NUMBER),
        ("https://www.tiktok.com/@scout2015", ""),
        ("https://vm.tiktok.com/ZMabc123/", ""),
        ("https://www.tiktok.com/t/ZTabc123/", ""),
    ],
)
def test_the_number_of_a_video_is_in_its_address(address, number):
    assert video_id_of(address) == number


def test_each_link_is_asked_for_once(tiktok):
    tiktok.captions |= {"6718335390845095173": "One", "6718335390845095174": "Two"}
    polls = Polls(tiktok, links=[link("6718335390845095173"), link("6718335390845095174")])
    assert len(polls.poll().entries) == 2
    asked = len(tiktok.asked)
    again = polls.poll(hours=6)
    assert (again.entries, again.not_modified, len(tiktok.asked)) == ((), True, asked)
    tiktok.captions["6718335390845095175"] = "Three"
    polls.config["links"].append(link("6718335390845095175"))
    assert ids(polls.poll(hours=6)) == ["tiktok:6718335390845095175"]


def test_many_links_are_asked_for_some_at_a_time(tiktok):
    numbers = [str(6718335390845095000 + number) for number in range(60)]
    tiktok.captions |= dict.fromkeys(numbers, "Words")
    polls = Polls(tiktok, links=[link(number) for number in numbers])
    first = polls.poll()
    assert (len(first.entries), codes(first)) == (50, ["links_wait"])
    second = polls.poll(hours=6)
    assert (len(second.entries), codes(second)) == (10, [])


def test_an_edited_caption_is_listed_again_after_a_week(tiktok):
    tiktok.captions[NUMBER] = "Before"
    polls = Polls(tiktok, links=[SCOUT])
    polls.poll()
    tiktok.captions[NUMBER] = "After"
    assert polls.poll(days=6).entries == ()
    (entry,) = polls.poll(days=1).entries
    assert (entry.external_id, entry.title) == (f"tiktok:{NUMBER}", "After")
    assert polls.poll(days=7).entries == ()


def test_a_video_that_is_gone_twice_is_withdrawn(tiktok):
    tiktok.captions[NUMBER] = "Words"
    polls = Polls(tiktok, links=[SCOUT])
    polls.poll()
    del tiktok.captions[NUMBER]
    assert withdrawn(polls.poll(days=7)) == []
    assert withdrawn(polls.poll(days=1)) == [f"tiktok:{NUMBER}"]
    asked = len(tiktok.asked)
    assert polls.poll(days=30).entries == ()
    assert len(tiktok.asked) == asked


def test_a_video_that_nobody_sees_is_left_out_and_asked_for_thrice(tiktok):
    polls = Polls(tiktok, links=[SCOUT])
    assert left_out(polls.poll()) == {f"tiktok:{NUMBER}": "unavailable"}
    for _day in range(5):
        assert polls.poll(days=1).entries == ()
    assert len(tiktok.asked) == 3


def test_a_video_that_appears_later_is_taken_in(tiktok):
    polls = Polls(tiktok, links=[SCOUT])
    polls.poll()
    tiktok.captions[NUMBER] = "Words"
    (entry,) = polls.poll(days=1).entries
    assert (entry.external_id, entry.left_out) == (f"tiktok:{NUMBER}", None)


def test_a_video_without_words_is_left_out(tiktok):
    tiktok.captions[NUMBER] = " \n"
    assert left_out(Polls(tiktok, links=[SCOUT]).poll()) == {f"tiktok:{NUMBER}": "no_words"}


def test_short_links_lead_to_the_video_and_are_resolved_once(tiktok):
    tiktok.captions[NUMBER] = "Words"
    tiktok.short |= {
        "/ZMabc123/": f"https://m.tiktok.com/v/{NUMBER}.html?_r=1",
        "/t/ZTabc123/": "https://vm.tiktok.com/ZMabc123/",
    }
    polls = Polls(
        tiktok, links=["https://vm.tiktok.com/ZMabc123/", "https://www.tiktok.com/t/ZTabc123/", SCOUT]
    )
    found = polls.poll()
    # Three ways to one video are one entry.
    assert ids(found) == [f"tiktok:{NUMBER}"]
    tiktok.captions[NUMBER] = "Edited"
    asked = len(tiktok.asked)
    assert ids(polls.poll(days=7)) == [f"tiktok:{NUMBER}"]
    assert len(tiktok.asked) == asked + 1


@pytest.mark.parametrize(
    "target",
    [
        None,
        "https://elsewhere.example/",
        "http://127.0.0.1:1/",
        "https://vm.tiktok.com/ZMabc123/",
    ],
)
def test_short_links_that_lead_nowhere_are_told(tiktok, target):
    if target:
        tiktok.short["/ZMabc123/"] = target
    found = Polls(tiktok, links=["https://vm.tiktok.com/ZMabc123/"]).poll()
    assert left_out(found) == {"tiktok:https://vm.tiktok.com/ZMabc123/": "unavailable"}


@pytest.mark.parametrize("target", ["http://[", "https://[::1/", "//", "\\\\", "javascript:x", "/" * 9000])
def test_an_address_that_is_none_is_no_video(target):
    http = FakeHttp(*[answer(status=301, Location=target)] * 5)
    oembed = OEmbed(http, "https://www.tiktok.com", "https://vm.tiktok.com", monotonic() + 60, NOW)
    with pytest.raises(NoVideo) as caught:
        oembed.resolve_link("https://vm.tiktok.com/ZMabc123/")
    assert caught.value.kind == "unavailable"
    # The short hosts are asked themselves.
    assert http.asked[0][0] == "https://vm.tiktok.com/ZMabc123/"


def test_a_link_to_something_else_is_told_and_not_asked_for_again(tiktok):
    polls = Polls(tiktok, links=[SCOUT])
    tiktok.answer = Response('{"type": "rich", "embed_type": "profile", "title": 5}')
    assert list(left_out(polls.poll()).values()) == ["not_a_video"]
    polls.poll(days=30)
    assert len(tiktok.asked) == 1


@pytest.mark.parametrize(
    ("given", "code", "after"),
    [
        (Response("no", status=403), "blocked", timedelta(hours=6)),
        (Response("", status=429, headers={"Retry-After": "60"}), "blocked", timedelta(minutes=1)),
        (
            Response("", status=429, headers={"Retry-After": "Fri, 20 Nov 2026 12:02:00 GMT"}),
            "blocked",
            timedelta(minutes=2),
        ),
        (Response("<html>Please wait…</html>"), "blocked", timedelta(hours=6)),
        (Response("[" * 100_000), "blocked", timedelta(hours=6)),
        (Response("[]"), "tiktok_away", None),
        (Response("", status=500), "tiktok_away", None),
        (Response("x" * 600_000), "tiktok_away", None),
    ],
)
def test_a_tiktok_that_gives_nothing_is_tried_later(tiktok, given, code, after):
    tiktok.answer = given
    error = Polls(tiktok, links=[SCOUT, link("1718335390845095174"), link("1718335390845095175")]).fails()
    assert (error.code, error.after) == (code, after)
    # Nobody asks on after that.
    assert len(tiktok.asked) <= 2


def test_a_block_in_the_middle_keeps_what_came_before(tiktok):
    numbers = [str(6718335390845095000 + number) for number in range(4)]
    tiktok.captions |= dict.fromkeys(numbers, "Words")
    tiktok.blocked_after = 2
    polls = Polls(tiktok, links=[link(number) for number in numbers])
    found = polls.poll()
    assert (len(found.entries), codes(found), len(tiktok.asked)) == (2, ["blocked"], 3)
    assert "20 November, 18:00 UTC" in found.notes[0].message
    assert polls.poll(hours=1).entries == ()
    assert len(tiktok.asked) == 3
    tiktok.blocked_after = None
    assert len(polls.poll(hours=6).entries) == 2


@pytest.mark.parametrize(
    "state",
    [
        {"place": "links", "records": []},
        {"place": "links", "records": {SCOUT: 5}},
        {"place": "links", "records": {SCOUT: {"next": 1, "fate": 3}}, "paused_until": "x"},
        {"place": "username:x", "records": {SCOUT: {"fate": "given"}}},
    ],
)
def test_a_state_of_no_sense_is_forgotten(tiktok, state):
    tiktok.captions[NUMBER] = "Words"
    polls = Polls(tiktok, links=[SCOUT])
    polls.state = state
    assert ids(polls.poll()) == [f"tiktok:{NUMBER}"]


def test_time_that_is_used_up_leaves_the_rest(tiktok, monkeypatch):
    monkeypatch.setattr("pipeline.sources.tiktok.CALLS_SECONDS", 0)
    assert Polls(tiktok, links=[SCOUT]).fails().code == "tiktok_away"
    assert tiktok.asked == []


# --- Accounts ---


@pytest.fixture
def tool(tmp_path):
    return RecordedTool(tmp_path)


def test_an_account_is_listed_by_the_tool(tiktok, tool):
    path = tool.says(sample("account.json"))
    found = Polls(tiktok, tool=path, username="harbour.bakery").poll()
    assert tool.arguments[-2:] == ["--", "https://www.tiktok.com/@harbour.bakery"]
    assert "--ignore-config" in tool.arguments
    assert ids(found) == [f"tiktok:{number}" for number in ("7440000000000000003", "7430000000000000002", "7420000000000000001")]  # fmt: skip
    assert left_out(found) == {"tiktok:7430000000000000002": "no_words"}
    first = found.entries[0]
    assert first.body == "Rye on day three: the crust cracks first. #rye"
    assert first.published_at == datetime.fromtimestamp(1795000000, tz=UTC).replace(microsecond=0)
    assert first.media[0].url == "https://p16-sign.tiktokcdn.example/obj/cover3.jpeg"
    assert first.metadata == {
        "video_id": "7440000000000000003",
        "author": "harbour.bakery",
        "duration_seconds": 31,
        "by": "tool",
    }


def account(*changes):
    found = json.loads(sample("account.json"))
    for change in changes:
        change(found["entries"])
    return json.dumps(found)


def test_an_accounts_videos_are_listed_once_and_again_when_edited(tiktok, tool):
    polls = Polls(tiktok, tool=tool.says(sample("account.json")), username="harbour.bakery")
    polls.poll()
    again = polls.poll(hours=6)
    assert (again.entries, again.not_modified) == ((), True)

    def edit(entries):
        entries[0]["description"] = "Edited"

    tool.says(account(edit))
    (entry,) = polls.poll(hours=6).entries
    assert (entry.external_id, entry.title) == ("tiktok:7440000000000000003", "Edited")


def test_a_video_that_left_the_list_is_withdrawn_when_oembed_agrees_twice(tiktok, tool):
    polls = Polls(tiktok, tool=tool.says(sample("account.json")), username="harbour.bakery")
    polls.poll()
    tool.says(account(lambda entries: entries.pop(0)))
    tiktok.captions["7440000000000000003"] = "Still there"
    assert withdrawn(polls.poll(hours=6)) == []
    del tiktok.captions["7440000000000000003"]
    # It is newer than what is listed, so it isn't only pushed out.
    assert withdrawn(polls.poll(hours=6)) == []
    assert withdrawn(polls.poll(hours=6)) == ["tiktok:7440000000000000003"]


@pytest.mark.parametrize("config", [{"username": "harbour"}, {"hashtag": "rye"}])
def test_without_the_tool_it_is_said_what_to_do(tiktok, config):
    error = Polls(tiktok, **config).fails()
    assert (error.code, error.after) == ("tool_missing", timedelta(hours=24))
    assert "VIDEO_TOOL" in str(error)


def test_a_hashtag_is_asked_for_by_its_page(tiktok, tool):
    Polls(tiktok, tool=tool.says(sample("account.json")), hashtag="rye brød").poll()
    assert tool.arguments[-1] == "https://www.tiktok.com/tag/rye%20br%C3%B8d"


NOT_REACHED = """\
WARNING: [tiktok:user] x: Unable to download user webpage: [Errno -2] Name or service not known
WARNING: [tiktok:user] This user's account is either private or has embedding disabled
ERROR: [tiktok:user] x: Unable to extract secondary user ID. Try tiktokuser:channel_id"""


@pytest.mark.parametrize(
    ("words", "code", "after"),
    [
        ("ERROR: [TikTok] 7: Your IP address is blocked from accessing this post", "blocked", timedelta(hours=6)),
        ("ERROR: [tiktok:user] x: Unable to download webpage: HTTP Error 403: Forbidden", "blocked", timedelta(hours=6)),
        ("ERROR: [tiktok:user] x: Unable to extract secondary user ID. Try tiktokuser:channel_id", "tool_outdated", None),
        ("ERROR: [tiktok:tag] The program functionality for this site has been marked as broken", "tool_outdated", None),
        (NOT_REACHED, "unreachable", None),
        ("ERROR: [tiktok:tag] x: Unable to download webpage: [Errno -2] Name or service not known", "unreachable", None),
        ("WARNING: HTTP Error 429\nERROR: [tiktok:user] x: This user's account is private. Log into an account that has access", "private", None),
        ("ERROR: [tiktok:user] x: This user's account is private. Log into an account that has access", "private", None),
        ("ERROR: [tiktok:user] x: HTTP Error 404: Not Found", "not_found", None),
        ("Traceback", "tool_failed", None),
        ("", "tool_failed", None),
    ],
)  # fmt: skip
def test_what_the_tool_fails_with_is_told(tiktok, tool, words, code, after):
    polls = Polls(tiktok, tool=tool.says(words=words, status=1), username="harbour")
    error = polls.fails()
    assert (error.code, error.after) == (code, after)


@pytest.mark.parametrize("output", ["", "no JSON", "[]", "[" * 100_000])
def test_what_the_tool_prints_beside_json_is_a_failure(tiktok, tool, output):
    assert Polls(tiktok, tool=tool.says(output), username="harbour").fails().code == "tool_failed"


def test_a_list_without_entries_is_an_empty_one(tiktok, tool):
    assert Polls(tiktok, tool=tool.says('{"entries": null}'), username="harbour").poll().entries == ()


def test_a_tool_that_is_not_there_is_told(tiktok, tmp_path):
    error = Polls(tiktok, tool=str(tmp_path / "nothing"), username="harbour").fails()
    assert (error.code, error.after) == ("tool_missing", timedelta(hours=24))
