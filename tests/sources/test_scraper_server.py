"""Pages from a real server through the real client: what a fake can't show."""

from __future__ import annotations

import gzip
import threading
from datetime import UTC, datetime

import pytest
from werkzeug import Response

from config.core.http_client import Client, Policy
from pipeline.sources.scraper import PLUGIN
from pipeline.sources.web_pages import polite_fetch, robots

from .fake_site import USER_AGENT
from .test_scraper import article, child, listing, one_child, pauses  # noqa: F401  fixtures

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NAMES = ("rye", "wheat", "oats")


@pytest.fixture
def bare(httpserver):
    httpserver.expect_request("/robots.txt").respond_with_data("", status=404)
    return httpserver


@pytest.fixture
def blog(httpserver):
    httpserver.expect_request("/robots.txt").respond_with_data("User-agent: *\nDisallow: /private")
    httpserver.expect_request("/").respond_with_data(listing(*NAMES), content_type="text/html")
    for name in NAMES:
        httpserver.expect_request(f"/2026/11/{name}").respond_with_data(
            article(name), content_type="text/html"
        )
    return httpserver


def fetch(server, state=None, **config):
    settings = PLUGIN.clean_config({"url": server.url_for("/"), **config})
    client = Client(Policy(allow_loopback=True, user_agent=USER_AGENT))
    return PLUGIN.fetch(settings, state or {}, http=client, now=NOW, environment={})


def told(found):
    return {
        entry.title or entry.url: entry.left_out.code if entry.left_out else "" for entry in found.entries
    }


def test_list_is_read_by_an_honest_guest(blog):
    found = fetch(blog)
    assert told(found) == dict.fromkeys(NAMES, "")
    assert {request.headers["User-Agent"] for request, _ in blog.log} == {USER_AGENT}
    assert fetch(blog, found.state).entries == ()


def test_conditional_requests_are_made_and_understood(bare):
    asked = []

    def page(request):
        asked.append((request.headers.get("If-None-Match"), request.headers.get("If-Modified-Since")))
        if asked[-1][0]:
            return Response(status=304)
        headers = {"ETag": 'W/"opaque"', "Last-Modified": "Fri, 13 Nov 2026 10:00:00 GMT"}
        return Response(article("Rye"), content_type="text/html", headers=headers)

    bare.expect_request("/").respond_with_handler(page)
    found = fetch(bare, max_pages=1)
    assert fetch(bare, found.state, max_pages=1).not_modified is True
    assert asked == [(None, None), ('W/"opaque"', "Fri, 13 Nov 2026 10:00:00 GMT")]


def test_page_that_unpacks_to_too_much_is_left_out(blog):
    bomb = gzip.compress(b"<p>" + b" " * (20 * 1024 * 1024))
    headers = {"Content-Encoding": "gzip"}
    blog.expect_oneshot_request("/2026/11/bomb").respond_with_response(
        Response(bomb, content_type="text/html", headers=headers)
    )
    page = listing("bomb", *NAMES)
    blog.expect_oneshot_request("/selected").respond_with_data(page, content_type="text/html")
    found = fetch(blog, url=blog.url_for("/selected"))
    assert told(found) == {"The story of bomb": "page_too_large", **dict.fromkeys(NAMES, "")}


def test_page_that_drips_is_given_up_and_the_others_are_read(blog, monkeypatch):
    monkeypatch.setattr(polite_fetch, "TIMEOUT_SECONDS", 2.0)
    ended = threading.Event()

    def drip(_):
        def pieces():
            while not ended.wait(0.2):
                yield b"<p>"

        return Response(pieces(), content_type="text/html")

    blog.expect_request("/2026/11/drip").respond_with_handler(drip)
    blog.expect_request("/selected").respond_with_data(listing(*NAMES, "drip"), content_type="text/html")
    try:
        found = fetch(blog, url=blog.url_for("/selected"))
    finally:
        ended.set()
    assert told(found) == dict.fromkeys(NAMES, "")
    assert "timed_out" in [note.code for note in found.notes]


def test_robots_of_more_than_its_bytes_is_cut_not_refused(httpserver, monkeypatch):
    monkeypatch.setattr(robots, "ROBOTS_BYTES", 1000)
    rules = "User-agent: *\nDisallow: /private\n" + "# " + "x" * 5000 + "\nDisallow: /"
    httpserver.expect_request("/robots.txt").respond_with_data(rules)
    httpserver.expect_request("/").respond_with_data(article("Rye"), content_type="text/html")
    assert told(fetch(httpserver, max_pages=1)) == {"Rye": ""}


def test_redirects_are_followed_five_times(bare):
    for number in range(6):
        bare.expect_request(f"/{number}").respond_with_data(
            status=302, headers={"Location": f"/{number + 1}"}
        )
    bare.expect_request("/6").respond_with_data(article("Rye"), content_type="text/html")
    assert told(fetch(bare, url=bare.url_for("/1"))) == {"Rye": ""}
    with pytest.raises(Exception, match="more than 5 times") as caught:
        fetch(bare, url=bare.url_for("/0"))
    assert caught.value.code == "redirect_loop"
