"""The workspace's own feed as a source: refused at creation, change and preview, and where a redirect leads to it."""

from __future__ import annotations

import pytest

from config.core import task_runner
from pipeline.models import HostSlot, RawItem, Source, SourceEntry
from tests.contracts.conftest import Api, problem

MESSAGE = "This is the workspace's own feed: items would be made of its own posts. Give the address of another feed."


@pytest.fixture
def addresses(alice):
    return alice.api.read(f"/outlets/{alice.feed}")["feeds"]


def refusal(field="config.url"):
    return problem("invalid_request", (field, "own_feed", MESSAGE))


def polled(address):
    HostSlot.everywhere.all().delete()
    task_runner.work_all_due("ingest.poll_source")
    return Source.everywhere.get(config__url=address)


@pytest.mark.parametrize("form", ["atom", "rss", "json"])
def test_own_feed_is_refused_at_creation_and_preview(alice, charlie, addresses, form):
    body = {"type": "rss", "config": {"url": addresses[form].replace("127.0.0.1", "localhost")}}
    for path in ("/sources", "/sources/preview"):
        answer = alice.api.post(path, body)
        assert (answer.status_code, answer.json()) == (400, refusal())
    # Another workspace may read it as any other feed.
    assert charlie.api.post("/sources", body).status_code == 201


@pytest.mark.parametrize(
    ("config", "field"),
    [({"url": "{}"}, "config.url"), ({"url": "https://a.test/", "sitemap": "{}"}, "config.sitemap")],
)
def test_own_feed_is_refused_in_every_setting_that_is_fetched(alice, addresses, config, field):
    given = {name: value.format(addresses["atom"]) for name, value in config.items()}
    answer = alice.api.post("/sources", {"type": "scraper", "config": given})
    assert (answer.status_code, answer.json()) == (400, refusal(field))


def test_own_feed_is_refused_at_a_change(alice, addresses):
    source = alice.source(type="rss", config={"url": "https://example.test/feed"})
    answer = alice.api.patch(f"/sources/{source['id']}", {"config": {"url": addresses["atom"]}})
    assert (answer.status_code, answer.json()) == (400, refusal())


@pytest.mark.parametrize("form", ["atom", "rss", "json"])
def test_own_feed_behind_another_address_is_refused_at_the_poll(alice, addresses, httpserver, loopback, form):
    alice.published()
    there = RawItem.everywhere.count()
    answer = Api(None).client.get(addresses[form].removeprefix("http://127.0.0.1:8000"))
    httpserver.expect_request("/feed").respond_with_data(answer.content, content_type=answer["Content-Type"])
    address = httpserver.url_for("/feed")
    preview = alice.api.post("/sources/preview", {"type": "rss", "config": {"url": address}})
    assert (preview.status_code, preview.json()) == (400, refusal())
    alice.source(type="rss", config={"url": address})
    assert polled(address).last_error["message"] == MESSAGE
    assert RawItem.everywhere.count() == there


def test_own_posts_in_a_feed_of_several_are_left_out(alice, addresses, httpserver, loopback):
    there = RawItem.everywhere.count()
    items = f"""<item><guid>mine</guid><title>Cranes</title><link>{addresses["atom"]}#urn:uuid:1</link></item>
    <item><guid>theirs</guid><title>Ferry</title><link>https://h.example/1</link></item>"""
    httpserver.expect_request("/planet").respond_with_data(
        f'<rss version="2.0"><channel><title>Planet</title>{items}</channel></rss>',
        content_type="application/rss+xml",
    )
    address = httpserver.url_for("/planet")
    alice.source(type="rss", config={"url": address})
    source = polled(address)
    assert source.last_error is None
    assert RawItem.everywhere.count() == there + 1
    told = SourceEntry.everywhere.filter(source=source).values_list("external_id", "decision", "code")
    assert set(told) == {("mine", "filtered", "own_feed"), ("theirs", "new", "new")}
