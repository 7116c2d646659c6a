"""Whatever YouTube, TikTok and yt-dlp answer, a fetch ends in what it can use or in a failure that has a name."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.core.http_client import BadResponse
from pipeline.sources.caption_text import read_json3, to_text
from pipeline.sources.tiktok.oembed import NoVideo, OEmbed
from pipeline.sources.tiktok.video import from_yt_dlp, plain_address, video_id_of
from pipeline.sources.youtube.api import ApiFailed, DataApi, next_midnight, parse_moment, seconds_of
from pipeline.sources.youtube.captions import CaptionReader, NoCaptions
from pipeline.sources.youtube.poll_state import YouTubePollState

from .fake_http import answer
from .tiktok_server import sample as tiktok_sample
from .youtube_server import sample

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.sampled_from(["0001-01-01T00:00:00+14:00", "http://[", "https://www.youtube.com/api/timedtext?v=x", "7" * 19])
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
every = settings(max_examples=150, deadline=None)


def mutated(text):
    """The recorded answer with one of its values replaced by any other."""
    return st.builds(_replace, st.just(text), st.integers(0, 400), JSON)


def _replace(text, number, value):
    document = json.loads(text)
    places = list(_places(document))
    holder, key = places[number % len(places)]
    holder[key] = value
    return document


def _places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


class Answers:
    """A client that answers by the end of the path."""

    def __init__(self, **bodies):
        self.bodies = bodies

    def request(self, _method, url, **_options):
        name = url.partition("?")[0].rsplit("/", 1)[-1]
        if name not in self.bodies:
            message = "Nobody is there."
            raise BadResponse(message)
        return answer(self.bodies[name].encode(errors="replace"))

    def get(self, url, **options):
        return self.request("GET", url, **options)


@every
@given(player=JSON | mutated(sample("player.json")))
def test_any_player_ends_in_words_or_a_reason(player):
    http = Answers(watch=sample("watch.html"), player=json.dumps(player), timedtext=sample("timedtext.xml"))
    captions = CaptionReader(http, "https://www.youtube.com", "", monotonic() + 1000)
    try:
        said = captions.read("ryeBread003")
    except NoCaptions as error:
        kind = error.kind
    else:
        kind = "none" if "third loaf" in said.text else "nonsense"
    assert kind in {"none", "blocked", "gone", "private", "failed", "region", "upcoming"}


@every
@given(found=JSON | mutated(sample("videos.json")))
def test_any_details_are_read_as_far_as_they_go(found):
    http = Answers(videos=json.dumps(found))
    try:
        found = DataApi(http, "https://api.example", "key").details_of(["ryeBread003"], now=NOW)
    except ApiFailed:
        found = {}
    assert all(one.live in {"none", "live", "upcoming"} for one in found.values())


@every
@given(found=JSON | mutated(sample("playlist_items.json")))
def test_any_playlist_is_read_as_far_as_it_goes(found):
    http = Answers(playlistItems=json.dumps(found), channels=json.dumps(found))
    api = DataApi(http, "https://api.example", "key")
    for video in api.videos_of("PL1", pages=2, now=NOW):
        assert video.published_at <= NOW
        assert len(video.id) == 11
    assert isinstance(api.channel_of("@x", by="forHandle", now=NOW), str)


@every
@given(found=JSON | mutated(tiktok_sample("oembed.json")))
def test_any_oembed_is_a_video_or_a_reason(found):
    http = Answers(oembed=json.dumps(found))
    oembed = OEmbed(http, "https://www.tiktok.com", "https://vm.tiktok.com", monotonic() + 1000, NOW)
    try:
        said = oembed.video("https://www.tiktok.com/@scout2015/video/6718335390845095173").entry.external_id
    except NoVideo as error:
        said = error.kind
    assert said in {"tiktok:6718335390845095173", "unavailable", "not_a_video", "away"}


@every
@given(found=JSON | mutated(tiktok_sample("account.json")))
def test_any_entry_of_the_tool_is_a_video_or_none(found):
    for one in found.get("entries") or [] if isinstance(found, dict) and isinstance(found.get("entries"), list) else [found]:  # fmt: skip
        video = from_yt_dlp(one, NOW)
        assert video is None or (video.entry.url.startswith("https://") and len(video.id) >= 6)


@every
@given(found=JSON | mutated(sample("timedtext.json")))
def test_any_captions_of_the_tool_become_a_text(found):
    assert isinstance(to_text(read_json3(found)), str)


@every
@given(state=st.dictionaries(st.sampled_from(["begun", "records", "waiting", "digest", "floor"]), JSON) | mutated(json.dumps({"begun": 1, "records": {"ryeBread003": {"fingerprint": "x", "fate": "given", "published": 1}}, "waiting": {"ryeBread004": {"title": "x", "published": 1, "next": 1, "first": 1}}})))  # fmt: skip
def test_any_state_is_remembered_as_far_as_it_makes_sense(state):
    poll_state = YouTubePollState.of({**state, "place": "channel:x"}, place="channel:x")
    again = YouTubePollState.of(json.loads(json.dumps(poll_state.as_state())), place="channel:x")
    assert again == poll_state


@given(st.text())
def test_any_text_has_an_address_or_none(text):
    assert isinstance(plain_address(text) + video_id_of(text), str)


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("PT1H2M3S", 3723), ("PT45S", 45), ("P1DT1S", 86_401), ("P0D", None), ("", None), ("1:30", None)],
)
def test_durations_are_read(duration, seconds):
    assert seconds_of(duration) == seconds


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-11-18T15:00:12Z", datetime(2026, 11, 18, 15, 0, 12, tzinfo=UTC)),
        ("2026-11-18T15:00:12.5+02:00", datetime(2026, 11, 18, 13, 0, 12, 500_000, tzinfo=UTC)),
        ("2026-11-18T15:00:12", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("soon", None),
        (5, None),
    ],
)
def test_moments_are_read(written, read):
    assert parse_moment(written) == read


@pytest.mark.parametrize(
    ("now", "midnight"),
    [
        (datetime(2026, 11, 20, 12, tzinfo=UTC), datetime(2026, 11, 21, 8, tzinfo=UTC)),
        (datetime(2026, 7, 1, 6, 59, tzinfo=UTC), datetime(2026, 7, 1, 7, tzinfo=UTC)),
        # The day on which clocks go back has 25 hours.
        (datetime(2026, 11, 1, 12, tzinfo=UTC), datetime(2026, 11, 2, 8, tzinfo=UTC)),
    ],
)
def test_the_quota_begins_anew_at_midnight_at_the_pacific(now, midnight):
    assert next_midnight(now) == midnight
