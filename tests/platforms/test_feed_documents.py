"""Feeds as readers read them back."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.platforms.feed.documents import (
    Enclosure,
    FeedEntry,
    FeedMeta,
    remove_illegal_characters,
    render_atom,
    render_json_feed,
    render_rss,
)
from pipeline.text.body_html import to_html

ATOM = "{http://www.w3.org/2005/Atom}"
CONTENT = "{http://purl.org/rss/1.0/modules/content/}"
CREATOR = "{http://purl.org/dc/elements/1.1/}creator"
MORNING = datetime(2026, 11, 20, 9, 30, 15, 999, tzinfo=UTC)

META = FeedMeta(
    id="urn:uuid:00000000-0000-4000-8000-000000000001",
    title="News & <more>",
    self_url="https://app.example.com/feeds/1.xml?a=1&b=2",
    home_url="https://app.example.com/",
    updated=MORNING,
    author="Ann's Office",
)
ENTRY = FeedEntry(
    id="urn:uuid:00000000-0000-4000-8000-000000000002",
    title="Tram <approved> & built",
    url="https://app.example.com/i/2?x=1&y=2",
    content_html='<p>It\'s <b>approved</b> &amp; "built".</p>',
    content_text='It\'s approved & "built".',
    published_at=MORNING.astimezone(timezone(timedelta(hours=5, minutes=30))),
    updated_at=MORNING + timedelta(hours=1),
    language="en-GB",
    author="Ann Reed",
    enclosures=(
        Enclosure("https://m.example.com/a.mp4?x&y", "video/mp4", 1234),
        Enclosure("https://m.example.com/b.jpg", "image/jpeg"),
    ),
)
BARE = FeedEntry(
    id="urn:uuid:00000000-0000-4000-8000-000000000003",
    title="",
    url="",
    content_html="<p>Only words.</p>",
    content_text="Only words.",
    published_at=MORNING,
    updated_at=MORNING,
    language="not a language",
)

ARTICLE = replace(
    BARE,
    title="Shore power",
    summary="What it costs & what it changes.",
    image="https://m.example.com/hero.jpg?a&b",
    tags=("tram", "a <b>"),
    json_ld={"@type": "Article", "headline": "Shore power"},
)

anything = st.text(alphabet=st.characters(), max_size=80)


def parsed(document: bytes) -> Any:
    feed = feedparser.parse(document, sanitize_html=False, resolve_relative_uris=False)
    assert feed.bozo == 0, feed.get("bozo_exception")
    return feed


def test_atom_reads_back() -> None:
    feed = parsed(render_atom(META, [ENTRY, BARE]))

    assert feed.version == "atom10"
    assert (feed.feed.id, feed.feed.title, feed.feed.author) == (META.id, META.title, META.author)
    assert feed.feed.updated == "2026-11-20T09:30:15Z"
    assert [(link.rel, link.href) for link in feed.feed.links] == [
        ("self", META.self_url),
        ("alternate", META.home_url),
    ]
    first, second = feed.entries
    assert (first.id, first.title, first.link, first.author) == (
        ENTRY.id,
        ENTRY.title,
        ENTRY.url,
        ENTRY.author,
    )
    assert (first.published, first.updated) == ("2026-11-20T09:30:15Z", "2026-11-20T10:30:15Z")
    assert [(part.type, part.value, part.language) for part in first.content] == [
        ("text/html", ENTRY.content_html, "en-GB")
    ]
    assert [(file.href, file.type, file.get("length")) for file in first.enclosures] == [
        ("https://m.example.com/a.mp4?x&y", "video/mp4", "1234"),
        ("https://m.example.com/b.jpg", "image/jpeg", None),
    ]
    assert (second.title, second.get("links"), second.content[0].language) == ("Only words.", None, None)


@pytest.mark.parametrize("render", [render_atom, render_rss])
def test_article_has_its_summary_and_tags(render: Any) -> None:
    (entry,) = parsed(render(META, [ARTICLE])).entries

    assert entry.summary == "What it costs & what it changes."
    assert [tag.term for tag in entry.tags] == ["tram", "a <b>"]
    assert entry.content[0].value == "<p>Only words.</p>"


def test_article_in_json_has_its_picture_and_what_search_engines_are_told() -> None:
    article, bare = json.loads(render_json_feed(META, [ARTICLE, BARE]))["items"]

    assert {name: article[name] for name in ("summary", "image", "tags", "_json_ld")} == {
        "summary": "What it costs & what it changes.",
        "image": "https://m.example.com/hero.jpg?a&b",
        "tags": ["tram", "a <b>"],
        "_json_ld": {"@type": "Article", "headline": "Shore power"},
    }
    assert {"summary", "image", "tags", "_json_ld"}.isdisjoint(bare)


def test_rss_reads_back() -> None:
    feed = parsed(render_rss(META, [ENTRY, BARE]))

    assert feed.version == "rss20"
    assert (feed.feed.title, feed.feed.link, feed.feed.updated) == (
        META.title,
        META.home_url,
        "Fri, 20 Nov 2026 09:30:15 GMT",
    )
    first, second = feed.entries
    assert (first.id, first.guidislink, first.link, first.author) == (
        ENTRY.id,
        False,
        ENTRY.url,
        ENTRY.author,
    )
    assert first.published == "Fri, 20 Nov 2026 09:30:15 GMT"
    assert (first.summary, first.content[0].value) == (ENTRY.content_text, ENTRY.content_html)
    assert [(file.href, file.type, file.length) for file in first.enclosures] == [
        ("https://m.example.com/a.mp4?x&y", "video/mp4", "1234")
    ]
    assert (second.id, second.title, second.guidislink) == (BARE.id, "Only words.", False)


def test_json_feed_reads_back() -> None:
    assert json.loads(render_json_feed(META, [ENTRY, BARE])) == {
        "version": "https://jsonfeed.org/version/1.1",
        "title": META.title,
        "home_page_url": META.home_url,
        "feed_url": META.self_url,
        "authors": [{"name": META.author}],
        "items": [
            {
                "id": ENTRY.id,
                "url": ENTRY.url,
                "title": ENTRY.title,
                "language": "en-GB",
                "content_html": ENTRY.content_html,
                "content_text": ENTRY.content_text,
                "date_published": "2026-11-20T09:30:15Z",
                "date_modified": "2026-11-20T10:30:15Z",
                "authors": [{"name": "Ann Reed"}],
                "attachments": [
                    {
                        "url": "https://m.example.com/a.mp4?x&y",
                        "mime_type": "video/mp4",
                        "size_in_bytes": 1234,
                    },
                    {"url": "https://m.example.com/b.jpg", "mime_type": "image/jpeg"},
                ],
            },
            {
                "id": BARE.id,
                "content_html": BARE.content_html,
                "content_text": BARE.content_text,
                "date_published": "2026-11-20T09:30:15Z",
                "date_modified": "2026-11-20T09:30:15Z",
            },
        ],
    }


def test_empty_feed_is_a_feed() -> None:
    assert parsed(render_atom(META, [])).entries == []
    assert parsed(render_rss(META, [])).entries == []
    assert json.loads(render_json_feed(META, []))["items"] == []


def test_atom_feed_always_has_an_author() -> None:
    root = ET.fromstring(render_atom(dataclasses.replace(META, author=" "), []))

    assert root.findtext(f"{ATOM}author/{ATOM}name") == META.title


@given(anything, anything, anything, anything)
def test_any_text_comes_back_as_it_was(title: str, text: str, author: str, url: str) -> None:
    entry = dataclasses.replace(
        ENTRY,
        title=f"t{title}",
        content_text=text,
        content_html=to_html(text, "text"),
        author=f"a{author}",
        url=f"u{url}",
    )

    atom = ET.fromstring(render_atom(META, [entry]))
    rss = ET.fromstring(render_rss(META, [entry]))
    item = json.loads(render_json_feed(META, [entry]))["items"][0]

    link = atom.find(f"{ATOM}entry/{ATOM}link")
    assert link is not None
    in_atom = (
        atom.findtext(f"{ATOM}entry/{ATOM}title"),
        atom.findtext(f"{ATOM}entry/{ATOM}content"),
        atom.findtext(f"{ATOM}entry/{ATOM}author/{ATOM}name"),
        link.get("href"),
    )
    in_rss = tuple(
        rss.findtext(f"channel/item/{tag}") for tag in ("title", f"{CONTENT}encoded", CREATOR, "link")
    )
    in_json = (item["title"], item["content_html"], item["authors"][0]["name"], item["url"])
    expected = tuple(
        remove_illegal_characters(value)
        for value in (entry.title, entry.content_html, entry.author, entry.url)
    )
    assert in_atom == in_rss == in_json == expected
    assert rss.findtext("channel/item/description") == item["content_text"] == remove_illegal_characters(text)


@given(anything, anything)
def test_any_text_makes_a_sound_document(title: str, text: str) -> None:
    meta = dataclasses.replace(META, title=title, author=title)
    entry = dataclasses.replace(
        ENTRY, title=title, content_text=text, content_html=to_html(text, "markdown"), author=title
    )

    assert [found.id for found in parsed(render_atom(meta, [entry])).entries] == [ENTRY.id]
    assert [found.id for found in parsed(render_rss(meta, [entry])).entries] == [ENTRY.id]


@pytest.mark.parametrize("sign", ["\x00", "\x0b", "\x1f", chr(0xD800), "\ufffe", "\uffff"])
def test_characters_that_xml_can_not_hold_are_left_out(sign: str) -> None:
    assert remove_illegal_characters(f"a{sign}b\t\r\n\U0001f600") == "ab\t\r\n\U0001f600"


@pytest.mark.parametrize("render", [render_atom, render_rss, render_json_feed])
def test_moment_without_a_time_zone_is_our_mistake(render: Any) -> None:
    entry = dataclasses.replace(ENTRY, published_at=MORNING.replace(tzinfo=None))

    with pytest.raises(ValueError, match="time zone"):
        render(META, [entry])


def test_every_form_names_the_hubs() -> None:
    hubs = ("https://hub.example.com/?a=1&b=2", "https://other.example.com/")
    meta = dataclasses.replace(META, hubs=hubs)

    for document in (render_atom(meta, [ENTRY]), render_rss(meta, [ENTRY])):
        links = feedparser.parse(document).feed.links
        assert [link.href for link in links if link.rel == "hub"] == list(hubs)
    assert json.loads(render_json_feed(meta, [ENTRY]))["hubs"] == [
        {"type": "WebSub", "url": hub} for hub in hubs
    ]
    for document in (render_atom(META, []), render_rss(META, []), render_json_feed(META, [])):
        assert b"hub" not in document
