"""GET /feeds/<secret>.<form>: the workspace's own public feed."""

from __future__ import annotations

import json
import time

import feedparser
import pytest

from config.ground import ids
from pipeline.models import Outlet
from tests.contracts.conftest import NOT_FOUND, Api

TYPES = {
    "atom": "application/atom+xml",
    "rss": "application/rss+xml",
    "json": "application/feed+json",
}


def _get(newsroom_or_path, form="atom", **more):
    path = newsroom_or_path
    if not isinstance(path, str):
        address = path.api.read(f"/outlets/{path.feed}")["feeds"][form]
        path = address.removeprefix("http://127.0.0.1:8000")
    return Api(None).client.get(path, **more)


def _titles(answer, form):
    if form == "json":
        return [item["title"] for item in json.loads(answer.content)["items"]]
    return [entry.title for entry in feedparser.parse(answer.content).entries]


@pytest.mark.parametrize("form", TYPES)
def test_feed_shows_published_items_newest_first(alice, charlie, form):
    first, second = alice.published(), alice.published()
    alice.ready()
    alice.scheduled()
    alice.publish(alice.ready(), {"outlets": [alice.simulated]})
    charlie.published()
    answer = _get(alice, form)
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (200, TYPES[form])
    assert _titles(answer, form) == [second["title"], first["title"]]
    assert b"Alice" in answer.content
    assert b"Charlie" not in answer.content
    assert "no-store" not in answer["Cache-Control"]
    assert not answer.cookies


@pytest.mark.parametrize("form", ["atom", "rss"])
def test_feed_is_well_formed_for_readers(alice, form):
    item = alice.published()
    parsed = feedparser.parse(_get(alice, form).content)
    assert parsed.bozo is False or parsed.bozo == 0
    assert parsed.version == {"atom": "atom10", "rss": "rss20"}[form]
    entry = parsed.entries[0]
    assert item["body"].split(".")[0] in (entry.get("summary", "") + str(entry.get("content", "")))
    assert entry.id == item["publications"][0]["external_id"]


@pytest.mark.parametrize("form", TYPES)
def test_empty_feed_is_a_feed(alice, form):
    answer = _get(alice, form)
    assert (answer.status_code, _titles(answer, form)) == (200, [])


@pytest.mark.parametrize("form", TYPES)
def test_feed_is_not_sent_again_unchanged(alice, form):
    alice.published()
    answer = _get(alice, form)
    same = _get(alice, form, headers={"If-None-Match": answer["ETag"]})
    assert (same.status_code, same.content, same["ETag"]) == (304, b"", answer["ETag"])
    since = _get(alice, form, headers={"If-Modified-Since": answer["Last-Modified"]})
    assert (since.status_code, since.content) == (304, b"")
    time.sleep(1.1)
    alice.published()
    changed = _get(alice, form, headers={"If-None-Match": answer["ETag"]})
    assert (changed.status_code, len(_titles(changed, form))) == (200, 2)
    assert _get(alice, form, headers={"If-Modified-Since": answer["Last-Modified"]}).status_code == 200


def test_feed_shows_what_was_sent_and_not_a_later_edit(alice):
    item = alice.publish(alice.ready(), {"overrides": {alice.feed: {"title": "For the feed"}}})
    assert _titles(_get(alice), "atom") == ["For the feed"]
    alice.api.delete(f"/generated/{item['id']}")
    assert _titles(_get(alice), "atom") == []


def test_unknown_addresses_are_not_told_apart(alice):
    secret = Outlet.everywhere.get(pk=ids.decode("out", alice.simulated)).secret
    for path in ("/feeds/AAAAAAAAAAAAAAAAAAAAAA.atom", f"/feeds/{secret}.atom", "/feeds/x.atom", "/feeds/"):
        answer = _get(path)
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
    known = alice.api.read(f"/outlets/{alice.feed}")["feeds"]["atom"].removeprefix("http://127.0.0.1:8000")
    assert _get(known.replace(".atom", ".xml")).json() == NOT_FOUND


def test_feed_is_only_read(alice):
    path = alice.api.read(f"/outlets/{alice.feed}")["feeds"]["atom"].removeprefix("http://127.0.0.1:8000")
    answer = Api(None).client.post(path)
    assert (answer.status_code, answer.json()["error"], answer["Allow"]) == (
        405,
        "method_not_allowed",
        "GET, HEAD",
    )
    head = Api(None).client.head(path)
    assert (head.status_code, head.content) == (200, b"")


def test_feed_of_a_deleted_outlet_is_gone(alice):
    alice.published()
    path = alice.api.read(f"/outlets/{alice.feed}")["feeds"]["atom"].removeprefix("http://127.0.0.1:8000")
    Outlet.everywhere.filter(platform="feed").update(deleted_at="2026-01-01T00:00:00Z")
    assert _get(path).json() == NOT_FOUND
