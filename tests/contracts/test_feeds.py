"""GET /feeds/<secret>.<form>: the workspace's own public feed."""

from __future__ import annotations

import json
import time
from urllib.parse import parse_qs

import feedparser
import pytest

from accounts import workspace_deletion
from config.core import ids, task_runner
from config.core.http_client import Client, ConnectFailed
from pipeline.models import Asset, Outlet, Publication
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


@pytest.mark.parametrize("form", TYPES)
def test_feed_carries_the_files_of_its_items(alice, form):
    item = alice.published()
    for number in range(2):
        Asset.everywhere.create(
            workspace=alice.workspace,
            item_id=ids.decode("gen", item["id"]),
            kind="image",
            role="image",
            position=number,
            name=f"tram-{number}.png",
            path=f"x/tram-{number}.png",
            mime_type="image/png",
            bytes=2048 + number,
            sha256="0" * 64,
        )
    item = alice.api.read(f"/generated/{item['id']}")
    wanted = [(one["url"], one["mime_type"], one["bytes"]) for one in item["assets"]]
    assert [size for _, _, size in wanted] == [2048, 2049]
    answer = _get(alice, form)
    if form == "json":
        (shown,) = json.loads(answer.content)["items"]
        found = [(one["url"], one["mime_type"], one["size_in_bytes"]) for one in shown["attachments"]]
    else:
        (entry,) = feedparser.parse(answer.content).entries
        found = [(one.href, one.type, int(one.length)) for one in entry.enclosures]
    assert found == (wanted[:1] if form == "rss" else wanted)


@pytest.mark.parametrize("form", TYPES)
def test_feed_names_the_operators_hubs(alice, form, settings):
    assert "Link" not in _get(alice, form)
    settings.WEBSUB_HUBS = ["https://hub.example.com/"]
    answer = _get(alice, form)
    address = alice.api.read(f"/outlets/{alice.feed}")["feeds"][form]
    assert answer["Link"] == f'<{address}>; rel="self", <https://hub.example.com/>; rel="hub"'
    assert b"https://hub.example.com/" in answer.content


def test_a_hub_that_fails_leaves_the_post_published(alice, settings, monkeypatch):
    told = []

    def refuse(self, method, url, **options):
        told.append((method, url, options["body"].decode()))
        message = "Nobody listens."
        raise ConnectFailed(message)

    monkeypatch.setattr(Client, "request", refuse)
    settings.WEBSUB_HUBS = ["https://hub.example.com/"]
    publication = alice.published()["publications"][0]
    task_runner.work_all_due("publish.send_publication")
    row = Publication.everywhere.get(external_id=publication["external_id"])
    assert (row.status, row.error, row.step) == ("published", None, "finish")
    assert [(method, url) for method, url, _ in told] == [("POST", "https://hub.example.com/")]
    feeds = alice.api.read(f"/outlets/{alice.feed}")["feeds"]
    assert parse_qs(told[0][2]) == {"hub.mode": ["publish"], "hub.url": list(feeds.values())}


def test_feed_and_files_of_a_deleted_workspace_are_gone_before_its_rows(alice, settings, tmp_path):
    """Erasing takes as long as there are rows, and nobody may see meanwhile what was deleted."""
    settings.MEDIA_ROOT = tmp_path / "media"
    made = alice.publish(alice.ready(engines=["Persona Tweet"]))
    feed = alice.api.read(f"/outlets/{alice.feed}")["feeds"]["atom"].removeprefix("http://127.0.0.1:8000")
    file = alice.api.read(f"/generated/{made['id']}")["assets"][0]["url"].removeprefix(
        "http://127.0.0.1:8000"
    )
    assert [_get(feed).status_code, _get(file).status_code] == [200, 200]
    alice.workspace.deletes_at = alice.workspace.created_at
    alice.workspace.save(update_fields=["deletes_at"])
    # For the week in which it rests, what is published stays readable.
    assert [_get(feed).status_code, _get(file).status_code] == [200, 200]
    assert workspace_deletion.erase_some() == 1
    assert [_get(feed).status_code, _get(file).status_code] == [404, 404]
    assert Outlet.everywhere.filter(workspace=alice.workspace).exists()
    assert Asset.everywhere.filter(workspace=alice.workspace).exists()
