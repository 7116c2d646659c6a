"""From a page's address to its feed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.core.http_client import Client, ConnectFailed, Policy, Response
from config.core.http_client.messages import Headers
from pipeline.plugins import Refused, TryLater
from pipeline.sources.base import Note
from pipeline.sources.feeds.discovery import MAX_PROBES, FeedCandidate, discover, feeds_of_known_host
from pipeline.sources.rss import PLUGIN

SAMPLES = Path(__file__).parent / "samples" / "rss"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
FEED = b"<rss version='2.0'><channel><title>Diary</title><item><guid>1</guid><title>One</title></item></channel></rss>"
PAGE = "https://diary.example/blog/"


class Site:
    """Answers by address; what it doesn't know is 404."""

    def __init__(self, pages):
        self.pages = pages
        self.asked = []

    def get(self, url, **options):
        self.asked.append(url)
        found = self.pages.get(url, (404, b"<html>no</html>", {}))
        if isinstance(found, Exception):
            raise found
        status, body, headers = found
        limit = options["max_bytes"]
        return Response(status, Headers(list(headers.items())), body[:limit], url, len(body) > limit, ())


def page(head="", body=""):
    return (200, f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode(), {})


def ok(body=FEED, **headers):
    return (200, body, headers)


def alternate(href, title="", kind="application/rss+xml"):
    return f'<link rel="alternate" type="{kind}" title="{title}" href="{href}">'


def fetch(pages, *, url=PAGE, state=None):
    site = Site(pages)
    return PLUGIN.fetch({"url": url}, state or {}, http=site, now=NOW, environment={}), site


def refusal(pages, url=PAGE):
    with pytest.raises(Refused) as caught:
        fetch(pages, url=url)
    return caught.value


def test_the_one_feed_that_a_page_names_is_read_and_remembered():
    pages = {PAGE: page(alternate("../feed.xml?a=1&amp;b=2")), "https://diary.example/feed.xml?a=1&b=2": ok()}
    found, site = fetch(pages)
    feed = "https://diary.example/feed.xml?a=1&b=2"
    assert site.asked == [PAGE, feed]
    assert [entry.external_id for entry in found.entries] == ["1"]
    assert found.notes == (Note("feed_found", f"The address is a web page's; its feed at {feed} is read."),)
    assert found.state["feed_url"] == feed
    assert found.moved_to == ""
    again, site = fetch(pages, state=found.state)
    assert site.asked == [feed]
    assert again.not_modified
    assert again.notes == found.notes


def test_base_and_other_links_of_a_page_are_heeded():
    pages = {
        PAGE: page(
            '<base href="https://cdn.example/x/"><link rel=stylesheet href=style.css>'
            "<link href='news.atom' type='application/atom+xml' rel='alternate'>"
            '<link rel="alternate" type="application/json" href="https://diary.example/wp-json/wp/v2/posts/1">'
        ),
        "https://cdn.example/x/news.atom": ok(),
    }
    assert fetch(pages)[0].state["feed_url"] == "https://cdn.example/x/news.atom"


def test_a_feed_of_comments_and_another_format_of_the_same_are_no_choice():
    pages = {
        PAGE: page(
            alternate("/feed/", "Diary &raquo; Feed")
            + alternate("/feed/atom/", "Diary &raquo; Atom", "application/atom+xml")
            + alternate("/comments/feed/", "Diary &raquo; Comments Feed")
        ),
        "https://diary.example/feed/": ok(),
    }
    assert fetch(pages)[0].state["feed_url"] == "https://diary.example/feed/"


def test_several_feeds_are_listed_for_a_choice():
    error = refusal({PAGE: page(alternate("/a.xml", "Sport") + alternate("/b.xml", "Weather"))})
    assert (error.code, error.field) == ("several_feeds", "config.url")
    assert error.message == (
        "The address leads to a web page with several feeds. Give the address of one of them: "
        "Sport: https://diary.example/a.xml; Weather: https://diary.example/b.xml."
    )


def test_link_headers_go_before_the_page():
    link = '</h.xml>; rel="alternate"; type="application/rss+xml"; title="Head", </x>; rel="alternate"; hreflang=de'
    status, body, _ = page()
    pages = {PAGE: (status, body, {"Link": link}), "https://diary.example/h.xml": ok()}
    assert fetch(pages)[0].state["feed_url"] == "https://diary.example/h.xml"


def test_an_anchor_that_looks_like_a_feed_is_asked_first():
    pages = {
        PAGE: page(
            body='<a href="/about">About</a> <a href="/sub.php?x=1">Our <b>RSS</b></a> <a href="/feed-the-cat">x</a>'
        ),
        "https://diary.example/sub.php?x=1": ok(),
    }
    found, site = fetch(pages)
    assert found.state["feed_url"] == "https://diary.example/sub.php?x=1"
    assert "https://diary.example/about" not in site.asked


def test_places_where_feeds_often_are_are_tried_in_order_and_bounded():
    found, site = fetch({PAGE: page(), "https://diary.example/atom.xml": ok()})
    assert found.state["feed_url"] == "https://diary.example/atom.xml"
    assert site.asked == [
        PAGE,
        "https://diary.example/blog/feed/",
        "https://diary.example/feed/",
        "https://diary.example/rss.xml",
        "https://diary.example/atom.xml",
        "https://diary.example/atom.xml",
    ]
    site = Site({PAGE: page(), "https://diary.example/rss.xml": ConnectFailed("No connection.")})
    assert discover(PAGE, site, now=NOW) == ()
    assert len(site.asked) == 1 + MAX_PROBES


def test_a_page_without_a_feed_says_what_else_to_do():
    error = refusal({PAGE: page()})
    assert (error.code, error.field) == ("not_a_feed", "config.url")
    assert "type scraper" in error.message


def test_a_page_whose_feed_is_another_page_is_refused():
    error = refusal({PAGE: page(alternate("/feed")), "https://diary.example/feed": page()})
    assert error.code == "not_a_feed"
    assert "https://diary.example/feed is none" in error.message


@pytest.mark.parametrize("answer", [(404, b"", {}), (410, b"", {}), page("moved")])
def test_a_found_feed_that_is_lost_is_looked_for_again(answer):
    pages = {PAGE: page(alternate("/old.xml")), "https://diary.example/old.xml": ok()}
    state = fetch(pages)[0].state
    pages = {
        PAGE: page(alternate("/new.xml")),
        "https://diary.example/old.xml": answer,
        "https://diary.example/new.xml": ok(FEED.replace(b"One", b"Two")),
    }
    found, site = fetch(pages, state=state)
    assert site.asked == ["https://diary.example/old.xml", PAGE, "https://diary.example/new.xml"]
    assert found.state["feed_url"] == "https://diary.example/new.xml"
    assert [entry.title for entry in found.entries] == ["Two"]


def test_a_feed_s_own_address_asks_nothing_else():
    found, site = fetch({PAGE: ok()})
    assert (site.asked, found.notes, found.state["feed_url"]) == ([PAGE], (), "")
    assert discover(PAGE, Site({PAGE: ok()}), now=NOW) == (FeedCandidate(PAGE, "Diary"),)


def test_discovery_lists_what_a_page_names_with_comments_last():
    pages = {
        PAGE: page(
            alternate("/comments.xml", "Comments") + alternate("/b.xml", "Weather", "application/atom+xml")
        )
    }
    assert discover(PAGE, Site(pages), now=NOW) == (
        FeedCandidate("https://diary.example/b.xml", "Weather", "atom"),
        FeedCandidate("https://diary.example/comments.xml", "Comments", "rss"),
    )


def test_discovery_tells_why_an_address_can_t_be_read():
    with pytest.raises(TryLater) as caught:
        discover(PAGE, Site({}), now=NOW)
    assert caught.value.code == "not_found"


@pytest.mark.parametrize(
    ("url", "feeds"),
    [
        (
            "https://www.youtube.com/channel/UCabcdefghijklmnopqrstuv/videos",
            ["https://www.youtube.com/feeds/videos.xml?channel_id=UCabcdefghijklmnopqrstuv"],
        ),
        (
            "https://youtube.com/playlist?list=PLabcdefghijkl",
            ["https://www.youtube.com/feeds/videos.xml?playlist_id=PLabcdefghijkl"],
        ),
        (
            "https://github.com/owner/repository",
            [
                "https://github.com/owner/repository/releases.atom",
                "https://github.com/owner/repository/commits.atom",
            ],
        ),
        ("https://www.reddit.com/r/python/", ["https://www.reddit.com/r/python/.rss"]),
        ("https://medium.com/@ada", ["https://medium.com/feed/@ada"]),
        ("https://bsky.app/profile/ada.example", ["https://bsky.app/profile/ada.example/rss"]),
        ("https://ada.substack.com/archive", ["https://ada.substack.com/feed"]),
        ("https://social.example/@ada", ["https://social.example/@ada.rss"]),
        ("https://github.com/owner/repository/releases.atom", []),
        ("https://www.reddit.com/r/python/.rss", []),
        ("https://medium.com/feed/@ada", []),
        ("https://news.example/", []),
        ("https://[broken", []),
    ],
)
def test_hosts_that_are_known_need_no_page(url, feeds):
    assert [one.url for one in feeds_of_known_host(url)] == feeds


def test_a_profile_s_feed_is_asked_at_once_and_its_page_where_there_is_none():
    profile = "https://social.example/@ada"
    found, site = fetch({f"{profile}.rss": ok()}, url=profile)
    assert (site.asked, found.state["feed_url"]) == ([f"{profile}.rss"], f"{profile}.rss")
    pages = {profile: page(alternate("/ada.xml")), "https://social.example/ada.xml": ok()}
    found, site = fetch(pages, url=profile)
    assert found.state["feed_url"] == "https://social.example/ada.xml"


def test_a_repository_s_two_feeds_are_a_choice():
    url = "https://github.com/owner/repository"
    error = refusal({url: page()}, url=url)
    assert error.code == "several_feeds"
    assert f"Releases of repository: {url}/releases.atom" in error.message


def test_a_feed_is_found_over_a_real_connection(httpserver):
    httpserver.expect_request("/").respond_with_data(
        (SAMPLES / "page.html").read_bytes(), content_type="text/html"
    )
    httpserver.expect_request("/feed.xml").respond_with_data(FEED)
    http = Client(Policy(allow_loopback=True, user_agent="content-pipeline-test"))
    found = PLUGIN.fetch({"url": httpserver.url_for("/")}, {}, http=http, now=NOW, environment={})
    assert found.title == "Diary"
    assert [request.path for request, _ in httpserver.log] == ["/", "/feed.xml"]


@pytest.mark.parametrize("body", ["<a " * 200_000, "<a href=feed>" * 100_000, "<link " + "x='" * 200_000])
def test_a_hostile_page_costs_little(body):
    from tests.sources.test_rss import seconds_of_children

    before = seconds_of_children()
    with pytest.raises(Refused):
        fetch({PAGE: page(body=body)})
    assert seconds_of_children() - before < 6
