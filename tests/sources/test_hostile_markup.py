"""Hostile markup costs no reader more than an honest document of the largest size, which it reads."""

from __future__ import annotations

import gzip
import json
from html import escape
from time import process_time

import pytest

from pipeline.limits import BODY_CHARACTERS, FEED_BYTES, PAGE_BYTES
from pipeline.platforms.article_html import article_elements
from pipeline.platforms.email_newsletter.frame import NewsletterStyle, inline_styles
from pipeline.sources.feeds import parse, parser_pool, read_feed
from pipeline.sources.web_pages import page_reader_child, sitemap_reader
from pipeline.text import html_text
from pipeline.text.body_html import to_html
from pipeline.text.html_text import html_to_text
from pipeline.text.markup_bounds import is_feed_too_much, is_page_too_much, is_sitemap_too_much
from pipeline.text.plain_text import read_body
from tests.sizes import IS_PROOF

from .hostile_documents import ARTICLE, HOSTILE, atom, item, page, rss, sitemap

URL = "https://x.example/feed"


def feed(text):
    """What the helper answers, read in this process, whose time is known."""
    try:
        return parse.read_document(text.encode(), url=URL, content_type="")
    except parse.FeedUnreadable as error:
        return {"problem": error.problem}
    except MemoryError:
        return {"problem": "too_complex"}


def read_page(text):
    question = {"url": URL, "content_type": "", "robot": "x", "xpath": "//article"}
    return page_reader_child.read_page(page(text).encode(), question)


def read_sitemap(text):
    return sitemap_reader.read_sitemap(text.encode(), {"url": URL})


def article_of(length):
    return ARTICLE * (length // len(ARTICLE))


HONEST = {
    "RSS of 500 articles in XHTML": rss(*(item(ARTICLE, number) for number in range(500))),
    "RSS of 500 articles in CDATA": rss(*(item(f"<![CDATA[{ARTICLE}]]>", number) for number in range(500))),
    "RSS of 380 escaped articles": rss(*(item(escape(ARTICLE), number) for number in range(380))),
    "Atom of 500 articles in XHTML": atom(*[ARTICLE] * 500),
    "RSS of 500 articles, one of them broken": rss(
        item("<p>a<br>b & c"), *(item(ARTICLE, number) for number in range(400))
    ),
}
SITEMAP = (
    "<urlset>"
    + "".join(
        f"<url><loc>https://x.example/{n}</loc><lastmod>2026-11-20</lastmod><changefreq>daily</changefreq>"
        + "".join(
            f"<xhtml:link xmlns:xhtml='http://www.w3.org/1999/xhtml' hreflang='l{k}' href='/{k}'/>"
            for k in range(5)
        )
        + "</url>"
        for n in range(50_000)
    )
    + "</urlset>"
)


def test_an_article_is_as_large_as_it_is_said_to_be():
    sizes = [len(text.encode()) for text in HONEST.values()]
    assert all(4_000_000 < one <= FEED_BYTES for one in sizes), sizes


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_an_honest_feed_is_within_bounds(text):
    assert is_feed_too_much(text) is False


def test_an_honest_page_and_sitemap_are_within_bounds():
    paragraphs = page(article_of(PAGE_BYTES - 1000))
    lines = page("<p>A line without an end<br>and<li>one" * 10_000)
    script = page(f"<script>{'if (a<b) {x=`<div>`}' * 100_000}</script><p>x</p>")
    drawing = page(f"<img alt='a > b' src='data:image/png;base64,{'a' * 2_000_000}'>")
    assert [is_page_too_much(text) for text in (paragraphs, lines, script, drawing)] == [False] * 4
    assert is_sitemap_too_much(SITEMAP.encode()) is False


@pytest.mark.parametrize(
    "name",
    [
        "nested tags",
        "end tags alone",
        "line breaks",
        "tags that never end",
        "many huge names",
        "ampersands",
        "comments that stay open",
        "sections that stay open",
        "quotes that stay open",
        "namespaces",
        "signs",
        "a section that isn't one",
    ],
)
def test_a_hostile_feed_is_refused_before_it_is_parsed(name, monkeypatch):
    monkeypatch.setattr(parse, "_read_xml_feed", None)
    assert feed(rss(item(HOSTILE[name]))) == {"problem": "too_complex"}


@pytest.mark.parametrize("opening", ["<!--", "<![CDATA[", "<!", "<?"])
def test_a_mistake_that_a_small_feed_repeats_is_no_attack(opening):
    assert feed(rss(item("The tram.")).replace("</channel></rss>", f"</cha{opening}nnel></rss>" * 50))[
        "entries"
    ]


@pytest.mark.parametrize("name", ["attributes", "nested tables", "bases"])
def test_a_hostile_feed_is_refused_while_it_is_parsed(name):
    assert feed(rss(item(HOSTILE[name]))) == {"problem": "too_complex"}


@pytest.mark.parametrize(
    "name",
    [
        "nested tags",
        "nested tables",
        "formatting left open",
        "tags that end each other's way",
        "attributes",
        "one attribute again and again",
        "many tags of many attributes",
        "line breaks",
        "paragraphs",
        "a huge name",
        "quotes that stay open",
        "signs",
        "lists",
    ],
)
def test_a_hostile_page_is_refused_before_it_is_parsed(name):
    assert read_page(HOSTILE[name]) == {"problem": "too_complex"}


@pytest.mark.parametrize(
    "name", ["tags that never end", "quotes that stay open", "instructions that stay open"]
)
def test_a_hostile_sitemap_is_refused_before_it_is_parsed(name):
    assert read_sitemap(sitemap(HOSTILE[name])) == {"problem": "too_complex"}


def test_a_source_s_page_shows_the_sentence():
    helped = read_feed.read_feed
    with pytest.raises(read_feed.Refused) as caught:
        helped(rss(item(HOSTILE["nested tags"])).encode(), url=URL, content_type="")
    parser_pool.close()
    assert (caught.value.code, caught.value.field) == ("feed_too_complex", "config.url")
    assert caught.value.message.endswith("Give the address of a smaller or simpler feed.")


def test_long_dates_and_names_are_read_as_far_as_a_line_goes():
    long = "a" * 1_000_000
    told = [
        feed(rss(f"<item><guid>g</guid>{extra}<author>{long}</author><pubDate>{long}</pubDate></item>"))
        for extra in ("", "<odd/>")
    ]
    assert [len(one["entries"][0]["author"]) for one in told] == [2000, 2000]
    assert told[0] == told[1]


def test_of_a_body_so_many_tags_are_read(monkeypatch):
    monkeypatch.setattr(html_text, "MAX_TOKENS", 6)
    assert html_to_text("<p>one</p><p>two</p><p>three</p>") == "one\n\ntwo"


# What each of them costs, measured by the time of the processor against an honest document of the largest size.


def measured(test):
    for mark in (
        pytest.mark.slow,
        pytest.mark.sqlite,
        pytest.mark.timeout(1800),
        pytest.mark.skipif(not IS_PROOF, reason="make prove-feeds measures it."),
    ):
        test = mark(test)
    return test


def honest_feed():
    return max(cost(feed, text) for text in list(HONEST.values())[:1] + list(HONEST.values())[-1:])


def cost(reader, text):
    """Seconds of this process; the better of two, as a busy machine slows either."""
    return min(_seconds(reader, text) for _ in range(2))


def _seconds(reader, text):
    began = process_time()
    reader(text)
    return process_time() - began


def of_a_body(name):
    return {
        "html": lambda text: read_body(text, "html"),
        "markdown": lambda text: read_body(text, "markdown"),
        "text": lambda text: read_body(text, "text"),
        "title": html_to_text,
    }[name]


def of_a_push(name):
    """As many characters as a body may have."""
    return {
        "html": lambda text: to_html(text[:BODY_CHARACTERS], "html"),
        "markdown": lambda text: to_html(text[:BODY_CHARACTERS], "markdown"),
        "text": lambda text: to_html(text[:BODY_CHARACTERS], "text"),
        "blocks": lambda text: article_elements(to_html(text[:BODY_CHARACTERS], "html")),
        "mail": lambda text: inline_styles(
            to_html(text[:BODY_CHARACTERS], "html"), NewsletterStyle("#17594a")
        ),
    }[name]


@measured
@pytest.mark.parametrize(
    "around",
    [
        lambda text: rss(item(text)),
        lambda text: rss(item(f"<![CDATA[{text}]]>")),
        lambda text: rss(item("x"), head=text),
        atom,
        lambda text: f"<html><body>{text}",
    ],
    ids=["a description", "CDATA", "a channel", "XHTML", "a page in the place of a feed"],
)
def test_no_hostile_feed_costs_more_than_an_honest_one(around):
    floor = honest_feed()
    took = {name: cost(feed, around(text)) for name, text in HOSTILE.items()}
    assert {name: round(one / floor, 2) for name, one in took.items() if one > 2 * floor} == {}


@measured
def test_no_hostile_page_costs_more_than_an_honest_one():
    floor = cost(read_page, article_of(PAGE_BYTES - 1000))
    took = {name: cost(read_page, text) for name, text in HOSTILE.items()}
    assert {name: round(one / floor, 2) for name, one in took.items() if one > 2 * floor} == {}


@measured
def test_no_hostile_sitemap_costs_more_than_an_honest_one():
    floor = cost(read_sitemap, SITEMAP)
    hostile = {
        **{name: sitemap(text) for name, text in HOSTILE.items()},
        "elements of no meaning": sitemap("<a/>" * 10_000_000),
        "addresses in each other": "<urlset>" + "<url>" * 5_000_000,
    }
    took = {name: cost(read_sitemap, text) for name, text in hostile.items()}
    packed = gzip.compress(bytes(60 * 1024 * 1024))
    with pytest.raises(sitemap_reader.TooLarge):
        sitemap_reader.read_sitemap(packed, {"url": URL})
    assert {name: round(one / floor, 2) for name, one in took.items() if one > 2 * floor} == {}


@measured
@pytest.mark.parametrize("name", ["html", "markdown", "text", "title"])
def test_no_hostile_body_costs_more_than_an_honest_feed(name):
    reader, floor = of_a_body(name), honest_feed()
    took = {kind: cost(reader, text) for kind, text in HOSTILE.items()}
    assert {kind: round(one / floor, 2) for kind, one in took.items() if one > 2 * floor} == {}


@measured
@pytest.mark.parametrize("name", ["html", "markdown", "text", "blocks", "mail"])
def test_no_hostile_push_costs_more_than_an_honest_feed(name):
    reader, floor = of_a_push(name), honest_feed()
    took = {kind: cost(reader, text) for kind, text in HOSTILE.items()}
    assert {kind: round(one / floor, 2) for kind, one in took.items() if one > 2 * floor} == {}


@pytest.mark.parametrize("nested", ["[" * 2_000_000, '{"a":' * 800_000, "[" * 1_000_000 + "]" * 1_000_000])
def test_deep_json_is_no_feed(nested):
    told = [feed(nested), feed('{"version": "https://jsonfeed.org/version/1.1", "items": ' + nested + "}")]
    assert all(one["problem"] in {"broken", "not_a_feed"} for one in told)


def test_a_feed_of_empty_items_is_read_up_to_a_bound():
    given = json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [{}] * 1_000_000})
    assert feed(given)["malformed"] == parse.MAX_JSON_ITEMS
