"""The workspace's own feed as people see it: a page, where feed readers get what they always got."""

from __future__ import annotations

import pytest
from django.test import Client

from pipeline.models import GeneratedItem, Outlet, Publication, Revision
from tests.pages.answers import at
from tests.pipeline.steps import make_items, promise, send

WINDOW = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate", "Accept": "text/html,*/*;q=0.8"}


@pytest.fixture
def feed(newsroom):
    return Outlet.everywhere.get(workspace=newsroom, platform="feed")


@pytest.fixture
def published(newsroom, feed, posts):
    return send(promise(make_items(newsroom, title="Trams & ferries")[0], feed))


def get(address, **headers):
    return Client(headers=headers).get(address)


def test_a_window_is_led_to_the_page_and_a_reader_is_not(published, feed):
    for form in ("atom", "rss"):
        led = get(f"/feeds/{feed.secret}.{form}", **WINDOW)
        assert (led.status_code, led["Location"], led["Cache-Control"]) == (
            303,
            f"http://127.0.0.1:8000/posts/{feed.secret}",
            "no-store",
        )
    # Readers ask for pages too, and scripts of other sites fetch.
    for headers in ({}, {"Accept": WINDOW["Accept"]}, {"Sec-Fetch-Dest": "empty"}):
        answer = get(f"/feeds/{feed.secret}.atom", **headers)
        assert (answer.status_code, answer["Content-Type"]) == (200, "application/atom+xml; charset=utf-8")
    assert get(f"/feeds/{feed.secret}.json", **WINDOW)["Content-Type"].startswith("application/feed+json")


def test_the_page_shows_each_post_at_the_fragment_of_its_address(published, feed, alice, as_person):
    html = get(f"/posts/{feed.secret}").content.decode()
    fragment = published.url.partition("#")[2]
    assert f'<article id="{fragment}"' in html
    assert "Trams &amp; ferries" in html
    assert (
        f'type="application/atom+xml; charset=utf-8" href="http://127.0.0.1:8000/feeds/{feed.secret}.atom"'
        in html
    )
    link = f"http://127.0.0.1:8000/posts/{feed.secret}#{fragment}"
    item = as_person(alice).get(at(published.workspace, "item_page", gen=published.item_id))
    assert f'href="{link}"' in item.content.decode()
    assert Publication.everywhere.get().url.endswith(f".atom#{fragment}"), "the API's address stays"
    outlet = as_person(alice).get(at(published.workspace, "outlet_page", out=feed.pk))
    assert f'href="http://127.0.0.1:8000/posts/{feed.secret}"' in outlet.content.decode()


def test_the_words_of_a_post_can_do_nothing_to_the_page(published, feed):
    words = (
        '<h1>Big</h1><script>alert(1)</script><img src="https://spy.example/x.png"><p onclick="x()">Fine</p>'
    )
    Revision.everywhere.update(body=words, body_format="html", title="<b>Bold</b>")
    html = get(f"/posts/{feed.secret}").content.decode()
    assert "<h3>Big</h3>" in html
    assert "&lt;b&gt;Bold" in html
    for part in ("alert(1)", "spy.example", "onclick"):
        assert part not in html


def test_the_page_is_not_indexed_and_goes_with_its_feed(published, feed):
    answer = get(f"/posts/{feed.secret}")
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    GeneratedItem.everywhere.update(deleted_at=published.created_at)
    assert "No posts yet" in get(f"/posts/{feed.secret}").content.decode()
    assert get(f"/posts/{'A' * 22}").status_code == 404
    Outlet.everywhere.filter(pk=feed.pk).update(deleted_at=published.created_at)
    for address in (f"/posts/{feed.secret}", f"/feeds/{feed.secret}.atom"):
        assert get(address, **WINDOW).status_code == 404
