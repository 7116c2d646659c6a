"""Each type of source does its job from its type and one address, or nothing, on an instance without a key."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from config.core import jobs, task_runner
from pipeline import plugins
from pipeline.models import Source
from pipeline.sources.base import Source as SourceKind
from tests.sources.recorded_tool import RecordedTool
from tests.sources.tiktok_server import TikTokServer
from tests.sources.tiktok_server import sample as tiktok_sample
from tests.sources.youtube_server import FakeVideo, YouTubeServer

STORY = (
    "The harbour has had three cranes since 1974. Each of them lifts forty tonnes over the quay in one minute. "
    "On Monday the city begins to replace the oldest one, which has stood still since the storm of last winter. "
    "The new crane costs four million pounds and is painted green like the other two."
)
FEED = f"""<?xml version="1.0"?><rss version="2.0"><channel><title>Harbour</title><link>https://h.example/</link>
<item><guid>1</guid><title>Cranes</title><link>https://h.example/1</link><description>{STORY}</description></item>
</channel></rss>"""
PAGE = f"""<!doctype html><html lang="en"><head><title>Cranes</title><meta property="og:type" content="article"></head>
<body><article><h1>Cranes</h1><p>{STORY}</p><p>{STORY.replace("crane", "ferry")}</p></article></body></html>"""
LANE = {"topics": [{"title": "Cranes", "notes": STORY}]}
TYPES = plugins.kinds("sources")


@pytest.fixture
def world(httpserver, settings, loopback, tmp_path):
    """Sites on loopback with recorded answers, and a recorded yt-dlp; no model."""
    settings.ANTHROPIC_API_KEY = ""
    # Before TikTok's, which answers every address that is left.
    httpserver.expect_request("/robots.txt").respond_with_data("", status=404)
    httpserver.expect_request("/feed").respond_with_data(FEED, content_type="application/rss+xml")
    httpserver.expect_request("/story").respond_with_data(PAGE, content_type="text/html; charset=utf-8")
    youtube, tiktok = YouTubeServer(httpserver), TikTokServer(httpserver)
    youtube.add(FakeVideo("video000001", title="Rye"))
    tool = RecordedTool(tmp_path).says(tiktok_sample("account.json"))
    settings.SOURCE_ENVIRONMENT = {
        "YOUTUBE_URL": youtube.url,
        "YOUTUBE_API_URL": youtube.url,
        "TIKTOK_URL": tiktok.url,
        "TIKTOK_SHORT_URL": tiktok.url,
        "VIDEO_TOOL": "",
    }
    return {
        "rss": {"url": httpserver.url_for("/feed")},
        "scraper": {"url": httpserver.url_for("/story")},
        "youtube": {"url": "https://www.youtube.com/@harbour"},
        "tiktok": {"username": "harbour.bakery"},
        "webhook": None,
        "brand": None,
        "tool": tool,
    }


def body_of(source_type, config):
    return {"type": source_type} | ({"config": config} if config is not None else {})


def outcome(answer):
    """Fine, or refused: with which status and code, in which words."""
    if answer.status_code < 300:
        return "fine"
    (detail,) = answer.json()["detail"]
    return answer.status_code, answer.json()["error"], detail["code"], detail["message"]


@pytest.mark.parametrize(("source_type", "has_tool"), [*((one, False) for one in TYPES), ("tiktok", True)])
def test_what_is_created_is_what_the_preview_lets_through(alice, world, settings, source_type, has_tool):
    if has_tool:
        settings.SOURCE_ENVIRONMENT["VIDEO_TOOL"] = world["tool"]
    body = body_of(source_type, world[source_type])
    seen, made = alice.api.post("/sources/preview", body), alice.api.post("/sources", body)
    assert outcome(seen) == outcome(made)
    is_refused = source_type == "brand" or (source_type == "tiktok" and not has_tool)
    assert (made.status_code, seen.status_code) == ((409, 409) if is_refused else (201, 200))
    if is_refused:
        # The list says of the setting what the door says.
        assert made.json()["error"] == "source_unavailable"
    (listed,) = [one for one in alice.api.read("/source-types")["data"] if one["type"] == source_type]
    assert listed["available"] is True
    told = {
        f"{one['reason']} {one['remedy']}"
        for one in listed["restrictions"]
        if one["field"] == "config.username"
    }
    assert told == (
        {made.json()["detail"][0]["message"]} if source_type == "tiktok" and not has_tool else set()
    )


@pytest.mark.parametrize("source_type", TYPES)
def test_something_comes_of_each_type(alice, world, settings, client, source_type):
    settings.SOURCE_ENVIRONMENT["VIDEO_TOOL"] = world["tool"]
    config = world[source_type]
    if source_type == "brand":
        # One request, corrected by what the first one was told.
        told = alice.api.post("/sources", {"type": "brand"}).json()["detail"][0]["message"]
        assert '{"topics": [{"title": "…", "notes": "What may be said about it."}]}' in told
        config = LANE
    answer = alice.api.post("/sources", body_of(source_type, config))
    assert answer.status_code == 201
    made = answer.json()
    if source_type == "youtube":
        assert made["config"] == {"handle": "@harbour"}
    if source_type == "webhook":
        sent = json.dumps({"title": "Cranes", "body": STORY})
        path = urlsplit(made["inbound_url"]).path
        assert client.post(path, sent, content_type="application/json").status_code < 300
    task_runner.work_all_due(*(name for name in jobs.jobs() if name.startswith("pipeline.")))
    shown = alice.api.read(f"/sources/{made['id']}")
    assert (shown["status"], shown["last_error"]) == ("active", None)
    items = alice.api.read(f"/generated?source={made['id']}")["data"]
    assert {one["status"] for one in items} == {"ready"}
    assert all(one["body"].strip() for one in items)


def test_every_type_is_listed_with_its_settings(alice):
    listed = alice.api.read("/source-types")["data"]
    assert [one["type"] for one in listed] == list(TYPES)
    for one in listed:
        kind = plugins.get("sources", one["type"], SourceKind)
        assert (one["label"], one["fetches"]) == (kind.label, kind.fetches)
        assert one["config_schema"] == kind.config_schema


def test_type_that_was_taken_out_is_listed_as_such(alice, settings):
    settings.DISABLED_KINDS = frozenset({"sources/tiktok", "engines/thread"})
    (listed,) = [one for one in alice.api.read("/source-types")["data"] if not one["available"]]
    assert (listed["type"], listed["restrictions"]) == ("tiktok", [])
    refused = alice.api.post("/sources", {"type": "tiktok", "config": {"username": "harbour"}})
    assert outcome(refused) == (
        409, "source_unavailable", "source_unavailable", f"{listed['reason']} {listed['remedy']}",
    )  # fmt: skip
    (engine,) = [one for one in alice.api.read("/engines")["data"] if not one["available"]]
    assert engine["name"] == "Thread"
    pushed = alice.api.post("/raw", {"title": "Cranes", "body": STORY, "engines": ["Thread"]})
    assert outcome(pushed) == (
        409, "engine_unavailable", "engine_unavailable", f"{engine['reason']} {engine['remedy']}",
    )  # fmt: skip
    assert Source.everywhere.filter(type="tiktok").count() == 0
    batch = alice.api.post(
        "/raw",
        {
            "items": [
                {"body": STORY, "engines": ["Thread"]},
                {"body": f"{STORY} Soon.", "engines": ["Short Post"]},
            ]
        },
    )
    assert [one["status"] for one in batch.json()["data"]] == [409, 202]
