"""Every dialect of feed, and what a feed and its server say beside the entries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.sources.base import Entry, EntryMedia, Hub, Quiet
from pipeline.sources.feeds.parse import FeedUnreadable, read_document
from pipeline.sources.feeds.raw_markup import make_links_absolute
from pipeline.sources.rss import PLUGIN

from .fake_http import FakeHttp, answer

SAMPLES = Path(__file__).parent / "samples" / "rss"
# A Friday.
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
URL = "https://feed.example/feed.xml"


def sample(name):
    return (SAMPLES / name).read_bytes()


def fetch(*answers, state=None, now=NOW, url=URL):
    return PLUGIN.fetch({"url": url}, state or {}, http=FakeHttp(*answers), now=now, environment={})


def feed(*items, head=""):
    return f"<rss version='2.0'><channel><title>x</title>{head}{''.join(items)}</channel></rss>".encode()


def item(guid, hour, *, link=""):
    place = f"<link>{link}</link>" if link else ""
    return f"<item><guid>{guid}</guid>{place}<title>{guid}</title><pubDate>Mon, 02 Nov 2026 {hour:02}:00:00 GMT</pubDate></item>"


@pytest.mark.parametrize(
    ("name", "title", "entries"),
    [
        (
            "rss090.xml",
            "Mill news",
            (
                Entry(url="http://mill.example/wheel", title="Wheel turns again"),
                Entry(url="http://mill.example/flour", title="Flour on sale"),
            ),
        ),
        (
            "rss091.xml",
            "Lighthouse log",
            (
                Entry(
                    url="http://light.example/fog",
                    title="Fog & horn",
                    body="Four hours of fog.",
                    language="en",
                    metadata={"licence": "Copyright 1999, the keeper"},
                ),
            ),
        ),
        (
            "rss092.xml",
            "Radio notes",
            (
                Entry(
                    body='A note without a title, with <a href="http://radio.example/x">a link</a>.',
                    body_format="html",
                    media=(EntryMedia("http://radio.example/one.mp3", "audio/mpeg"),),
                ),
            ),
        ),
        (
            "atom03.xml",
            "Old Atom",
            (
                Entry(
                    external_id="tag:old.example,2003:3.2397",
                    url="http://old.example/robots",
                    title="Robots",
                    body="<p>Beep.</p>",
                    body_format="html",
                    author="Marie",
                    language="en",
                    published_at=datetime(2003, 12, 13, 12, 29, 29, tzinfo=UTC),
                ),
            ),
        ),
        (
            "json_feed_1.json",
            "Old JSON",
            (
                Entry(
                    external_id="https://json.example/1",
                    url="https://json.example/1",
                    body="One goose.",
                    author="Mo",
                    published_at=datetime(2026, 11, 1, 7, tzinfo=UTC),
                ),
            ),
        ),
    ],
)
def test_old_dialects_are_read(name, title, entries):
    found = fetch(answer(sample(name)))
    assert (found.title, found.entries, found.malformed) == (title, entries, 0)


@pytest.mark.parametrize(
    "kind", ["text/html", "application/xhtml+xml", "Application/XHTML+XML", "text/html; charset=utf-8", ""]
)
@pytest.mark.parametrize("more", ["", '<category term="a"/><x:y xmlns:x="urn:x"><x:z>1</x:z></x:y>'])
def test_page_of_an_atom_entry_is_known_whatever_its_type_of_html(kind, more):
    given = f' type="{kind}"' if kind else ""
    document = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>x</title><entry><id>tag:atom.example,2026:1</id><title>a</title>"
        f"<link rel='alternate'{given} href='https://atom.example/1'/>{more}</entry></feed>"
    )
    assert [one.url for one in fetch(answer(document.encode())).entries] == ["https://atom.example/1"]


@pytest.mark.parametrize("kind", ["audio/mpeg", "application/json"])
def test_other_representations_of_an_atom_entry_are_no_page(kind):
    document = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>x</title><entry><id>tag:atom.example,2026:1</id><title>a</title>"
        f"<link rel='alternate' type='{kind}' href='https://atom.example/1'/></entry></feed>"
    )
    assert [one.url for one in fetch(answer(document.encode())).entries] == [""]


@pytest.mark.parametrize(
    "head",
    [
        "<!DOCTYPE html>",
        "<!doctype HTML>\n<!-- made by hand -->\n",
        '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/x.dtd">',
    ],
)
def test_feed_below_the_document_type_of_a_page_is_read(head):
    feed = "<rss version='2.0'><channel><title>One</title><item><title>a</title></item></channel></rss>"
    assert fetch(answer((head + feed).encode())).title == "One"


@pytest.mark.parametrize("start", ["<html><p>An &lt;rss> feed.", "<body><rss>", "<p>Nothing</p>"])
def test_page_is_called_one(start):
    with pytest.raises(FeedUnreadable) as caught:
        read_document(
            f"<!DOCTYPE html>{start}".encode(), url="https://page.example/", content_type="text/html"
        )
    assert caught.value.problem == "html"


def test_entries_that_were_deleted_are_told_by_their_identity():
    found = fetch(answer(sample("tombstones.xml")))
    assert [(entry.external_id, entry.withdrawn) for entry in found.entries] == [
        ("tag:tomb.example,2026:3", False),
        ("tag:tomb.example,2026:0", False),
        ("tag:tomb.example,2026:2&x", True),
        ("tag:tomb.example,2026:1", True),
    ]
    assert found.entries[0].url == "https://tomb.example/blog/three"


def test_licences_of_an_entry_go_before_those_of_the_feed():
    found = fetch(answer(sample("tombstones.xml")))
    assert [entry.metadata for entry in found.entries[:2]] == [
        {"licence": "https://creativecommons.org/licenses/by-sa/4.0/"},
        {"licence": "CC BY 4.0"},
    ]


def test_a_creative_commons_licence_is_read():
    document = (
        b"<rss version='2.0' xmlns:creativeCommons='http://backend.userland.com/creativeCommonsRssModule'><channel>"
        b"<title>x</title><creativeCommons:license>http://cc.example/by</creativeCommons:license>"
        b"<item><title>a</title></item></channel></rss>"
    )
    assert fetch(answer(document)).entries[0].metadata == {"licence": "http://cc.example/by"}


# --- When it may be asked ---


def test_hours_and_days_to_be_skipped_are_told_and_waited_for():
    friday_evening = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    found = fetch(answer(sample("rss091.xml")), now=friday_evening)
    assert found.quiet == Quiet(frozenset({0, 1}), frozenset({5, 6}))
    # It may be read on Friday evening itself; the next poll is what `quiet` is for.
    assert found.wait_at_least is None
    assert found.quiet.end_after(friday_evening + timedelta(minutes=40)) == datetime(
        2026, 11, 23, 2, tzinfo=UTC
    )
    # Half an hour of max-age ends in Saturday, which is skipped, and so is Monday's first hour.
    later = fetch(answer(sample("rss091.xml"), Cache_Control="max-age=3600"), now=friday_evening)
    assert friday_evening + later.wait_at_least == datetime(2026, 11, 23, 2, tzinfo=UTC)


def test_what_the_document_said_holds_for_answers_without_one():
    first = fetch(answer(sample("rss091.xml"), ETag='"1"'))
    saturday = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
    second = fetch(answer(status=304), state=first.state, now=saturday)
    assert second.not_modified
    assert saturday + second.wait_at_least == datetime(2026, 11, 23, 2, tzinfo=UTC)
    assert second.quiet == first.quiet


def test_a_feed_that_leaves_no_hour_is_asked_all_the_same():
    hours = "".join(f"<hour>{hour}</hour>" for hour in range(24))
    found = fetch(answer(feed(head=f"<skipHours>{hours}</skipHours>")))
    assert (found.quiet, found.wait_at_least) == (Quiet(), None)
    assert Quiet(frozenset(range(24))).end_after(NOW) == NOW


def test_an_article_about_skipping_hours_is_not_an_order():
    article = "<item><title>a</title><description><![CDATA[<skipHours><hour>3</hour></skipHours>]]></description></item>"
    assert fetch(answer(feed(article))).quiet == Quiet()


# --- Where it went ---


@pytest.mark.parametrize(
    ("asked", "redirects", "target"),
    [
        (URL, ((301, "https://new.example/feed"),), "https://new.example/feed"),
        (URL, ((308, "https://a.example/"), (301, "https://b.example/")), "https://b.example/"),
        (URL, ((302, "https://new.example/feed"),), ""),
        (URL, ((301, "https://a.example/"), (307, "https://b.example/")), ""),
        (URL, ((301, "http://new.example/feed"),), ""),
        (URL, ((301, "http://a.example/"), (301, "https://b.example/")), ""),
        ("http://feed.example/feed", ((301, "https://feed.example/feed"),), "https://feed.example/feed"),
        (URL, (), ""),
    ],
)
def test_only_permanent_redirects_that_keep_https_are_a_move(asked, redirects, target):
    came_from = redirects[-1][1] if redirects else asked
    first = fetch(answer(feed(item("a", 1)), url=came_from, redirects=redirects, ETag='"1"'), url=asked)
    assert first.moved_to == target
    unchanged = fetch(answer(status=304, url=came_from, redirects=redirects), url=asked, state=first.state)
    assert unchanged.moved_to == target


# --- What is missing from it ---


@pytest.mark.parametrize(
    ("items", "is_window"),
    [
        ((item("a", 3), item("b", 2), item("c", 2)), True),
        ((item("a", 1), item("b", 2)), True),
        # One that is pinned to the top, or a list by something else than time.
        ((item("a", 1), item("c", 3), item("b", 2)), False),
        ((item("a", 3), "<item><title>no date</title></item>"), False),
        ((item("a", 3), "<item></item>"), False),
        (
            (
                item("a", 3),
                "<item><title>a & b</title><pubDate>Mon, 02 Nov 2026 02:00:00 GMT</pubDate></item>",
            ),
            False,
        ),
        ((), False),
    ],
)
def test_only_a_whole_list_in_order_of_time_proves_what_is_missing(items, is_window):
    assert fetch(answer(feed(*items))).is_window is is_window


# --- Who tells of changes ---


def test_hubs_are_told_from_the_document_and_kept_for_answers_without_one():
    first = fetch(answer(sample("tombstones.xml"), ETag='"1"'))
    assert first.hub == Hub(("https://hub.example/",), "https://tomb.example/feed.atom")
    assert fetch(answer(status=304), state=first.state).hub == first.hub
    assert fetch(answer(sample("json_feed_1.json"))).hub == Hub(
        ("https://hub.example/",), "https://json.example/feed.json"
    )
    assert fetch(answer(feed())).hub is None


def test_hubs_in_headers_go_before_the_document():
    link = (
        '<https://other.example/hub>; rel="hub", <https://feed.example/self>; rel=self, </next>; rel="next"'
    )
    assert fetch(answer(sample("tombstones.xml"), Link=link)).hub == Hub(
        ("https://other.example/hub",), "https://feed.example/self"
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('<a href="/a?x=1&amp;y">', '<a href="https://x.example/a?x=1&amp;y">'),
        ("<img alt='a' src='b.png' class=c>", "<img alt='a' src='https://x.example/d/b.png' class=c>"),
        ("<img src=b.png>", '<img src="https://x.example/d/b.png">'),
        ('<a href="//cdn.example/x">', '<a href="https://cdn.example/x">'),
        ('<a href="#foot">', '<a href="https://x.example/d/e#foot">'),
        ('<a href="mailto:a@b.example">', '<a href="mailto:a@b.example">'),
        ('<a href="http://y.example/">', '<a href="http://y.example/">'),
        ('<a href="http://[broken">', '<a href="http://[broken">'),
        ('<a href="//[broken">', '<a href="//[broken">'),
        ("a < b = href='x'", "a < b = href='x'"),
    ],
)
def test_addresses_in_bodies_no_longer_depend_on_their_place(written, read):
    assert make_links_absolute(written, "https://x.example/d/e") == read


def test_addresses_in_bodies_follow_xml_base():
    document = (
        b"<feed xmlns='http://www.w3.org/2005/Atom' xml:base='https://x.example/a/'><title>t</title><entry>"
        b"<id>1</id><content type='html' xml:base='b/'>&lt;img src='c.png'&gt;</content></entry></feed>"
    )
    assert fetch(answer(document)).entries[0].body == "<img src='https://x.example/a/b/c.png'>"
