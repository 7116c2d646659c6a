"""Pages: how an address is read, what becomes an entry, and how each trouble is told."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from config.core.http_client import AddressRefused, ConnectFailed, ResponseTooLarge, TimedOut
from pipeline.plugins import Refused, TryLater
from pipeline.sources import scraper
from pipeline.sources.base import Entry, EntryMedia
from pipeline.sources.isolated_child import IsolatedChild
from pipeline.sources.scraper import PLUGIN
from pipeline.sources.web_pages import page_reader, polite_fetch
from pipeline.sources.web_pages.entry import why_empty

from .fake_site import FakeSite, reply

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOME = "https://blog.example/"
ROBOTS = "https://blog.example/robots.txt"
WORDS = "Hold the blade flat and cut quickly through the skin of the dough, as deep as a finger is wide. "


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """How long a worker would have waited between two requests."""
    waited: list[float] = []
    monkeypatch.setattr(polite_fetch, "pause", waited.append)
    # A busy machine must not run out of it.
    monkeypatch.setattr(scraper, "FETCH_SECONDS", 600)
    return waited


@pytest.fixture(scope="module")
def child():
    with IsolatedChild(page_reader.CHILD, library="trafilatura") as shared:
        yield shared


@pytest.fixture(autouse=True)
def one_child(child, monkeypatch):
    """One reader for all: starting it costs more than everything that is asked of it here."""
    monkeypatch.setattr(page_reader, "IsolatedChild", lambda *_, **__: child)
    monkeypatch.setattr(page_reader.PageReader, "__exit__", lambda *_: None)


def article(title: str, text: str = WORDS, *, head: str = "", lang: str = "en") -> str:
    paragraphs = "".join(f"<p>{text}Part {number} of {title}.</p>" for number in range(4))
    return (
        f"<!doctype html><html lang={lang}><head><title>{title} - Blog</title>"
        f'<meta property="og:type" content="article"><meta property="og:title" content="{title}">{head}</head>'
        f"<body><nav><a href='/about'>About this site of ours</a></nav><article><h1>{title}</h1>{paragraphs}</article>"
        "</body></html>"
    )


def listing(*names: str) -> str:
    items = "".join(
        f"<article class=post><h2><a href='/2026/11/{name}'>The story of {name}</a></h2><p>Teaser</p></article>"
        for name in names
    )
    return f"<html><head><title>Blog</title></head><body><nav><a href=/about>About</a></nav><main>{items}</main></body></html>"


def post(name: str) -> str:
    return f"https://blog.example/2026/11/{name}"


def blog(*names: str, **pages) -> FakeSite:
    site = FakeSite({HOME: listing(*names), **{post(name): article(name) for name in names}})
    site.pages |= pages
    return site


def fetch(site, state=None, *, now=NOW, url=HOME, **config):
    settings = PLUGIN.clean_config({"url": url, **config})
    found = PLUGIN.fetch(settings, state or {}, http=site, now=now, environment={})
    # It is stored as JSON.
    assert json.loads(json.dumps(found.state)) == found.state
    return found


def again(site, before, *, after=timedelta(hours=1), **config):
    return fetch(site, before.state, now=NOW + after, **config)


def titles(found):
    return [entry.title for entry in found.entries]


def codes(found):
    return [note.code for note in found.notes]


def left_out(found):
    return {entry.url: entry.left_out.code for entry in found.entries if entry.left_out}


def test_article_is_read_with_what_it_says_of_itself():
    data = {
        "@context": "https://schema.org",
        "@graph": [
            {
                "@type": "BlogPosting",
                "headline": "Scoring a loaf",
                "datePublished": "2026-11-02T09:00:00+01:00",
                "author": {"@type": "Person", "name": "Ada Baker"},
                "license": "https://creativecommons.org/licenses/by/4.0/",
            }
        ],
    }
    head = (
        f'<script type="application/ld+json">{json.dumps(data)}</script>'
        '<meta property="og:image" content="/loaf.jpg"><meta property="og:site_name" content="Bakery">'
        '<meta name="description" content="How to cut."><link rel=canonical href="/scoring">'
    )
    url = "https://blog.example/scoring?utm_source=x"
    found = fetch(FakeSite({url: article("Scoring a loaf", head=head, lang="en-GB")}), url=url)
    (entry,) = found.entries
    assert entry == Entry(
        external_id="https://blog.example/scoring",
        url="https://blog.example/scoring",
        title="Scoring a loaf",
        body=entry.body,
        body_format="markdown",
        author="Ada Baker",
        language="en-GB",
        published_at=datetime(2026, 11, 2, 8, tzinfo=UTC),
        media=(EntryMedia("https://blog.example/loaf.jpg"),),
        metadata={
            "robots": [],
            "licence": "https://creativecommons.org/licenses/by/4.0/",
            "site": "Bakery",
            "description": "How to cut.",
        },
    )
    assert entry.body.startswith("Hold the blade flat")
    assert "About this site" not in entry.body
    assert (found.title, codes(found), found.is_window) == (
        "Scoring a loaf",
        ["reads_page", "licences", "robots_none"],
        False,
    )


def test_one_page_that_stays_the_same_is_told_once():
    url = post("rye")
    site = FakeSite({url: reply(article("Rye"), ETag='"1"')})
    first = fetch(site, url=url)
    second = again(site, first, url=url)
    assert (titles(first), second.entries, second.not_modified) == (["Rye"], (), True)
    assert site.options[url]["headers"]["If-None-Match"] == '"1"'


def test_change_of_the_frame_around_a_text_is_no_change():
    url = post("rye")
    site = FakeSite({url: article("Rye")})
    first = fetch(site, url=url)
    site.pages[url] = article("Rye", head="<meta name=generator content=2>").replace(
        "About this", "Around that"
    )
    assert again(site, first, url=url).entries == ()


def test_edited_page_keeps_its_identity():
    url = post("rye")
    site = FakeSite({url: article("Rye")})
    first = fetch(site, url=url)
    site.pages[url] = article(
        "Rye", WORDS.replace("quickly", "slowly"), head="<link rel=canonical href=/elsewhere>"
    )
    second = again(site, first, url=url)
    assert [entry.external_id for entry in second.entries] == [url]
    assert "slowly" in second.entries[0].body
    assert again(site, second, url=url).entries == ()


@pytest.mark.parametrize("status", [404, 410])
def test_page_that_is_gone_withdraws_its_entry_once(status):
    url = post("rye")
    site = FakeSite({url: article("Rye")})
    first = fetch(site, url=url)
    site.pages[url] = reply("", status=status)
    second = again(site, first, url=url)
    assert second.entries == (Entry(external_id=url, url=url, withdrawn=True),)
    if status == 410:
        assert again(site, second, url=url).gone is True
        return
    with pytest.raises(TryLater) as caught:
        again(site, second, url=url)
    assert caught.value.code == "not_found"


def test_list_page_gives_the_pages_behind_its_links():
    site = blog("rye", "wheat", "oats")
    found = fetch(site)
    assert titles(found) == ["rye", "wheat", "oats"]
    assert codes(found) == ["reads_list", "robots_none"]
    assert site.asked == [ROBOTS, HOME, post("rye"), post("wheat"), post("oats")]


def test_list_tells_each_change_once():
    site = blog("rye", "wheat", "oats")
    first = fetch(site)
    assert again(site, first).entries == ()
    site.pages[HOME] = listing("spelt", "rye", "wheat", "oats")
    site.pages[post("spelt")] = article("spelt")
    site.pages[post("rye")] = article("rye", WORDS + "More. ")
    del site.pages[post("oats")]
    second = again(site, first)
    assert [(entry.external_id, entry.title, entry.withdrawn) for entry in second.entries] == [
        (post("spelt"), "spelt", False),
        (post("rye"), "rye", False),
        (post("oats"), "", True),
    ]
    assert again(site, second, after=timedelta(hours=2)).entries == ()


def test_withdrawn_page_that_comes_back_is_told_again():
    site = blog("rye", "wheat", "oats")
    first = fetch(site)
    del site.pages[post("oats")]
    second = again(site, first)
    site.pages[post("oats")] = article("oats")
    third = again(site, second, after=timedelta(days=2))
    assert [(entry.external_id, entry.title) for entry in third.entries] == [(post("oats"), "oats")]


def test_page_that_leads_to_the_front_page_is_withdrawn():
    site = blog("rye", "wheat", "oats")
    first = fetch(site)
    site.pages[post("rye")] = reply(status=301, Location="/")
    assert again(site, first).entries == (Entry(external_id=post("rye"), url=post("rye"), withdrawn=True),)


def test_page_that_moved_keeps_its_identity():
    site = blog("rye", "wheat", "oats")
    first = fetch(site)
    site.pages[post("rye")] = reply(status=301, Location="/bread/rye-and-more")
    site.pages["https://blog.example/bread/rye-and-more"] = article("rye", WORDS + "More. ")
    second = again(site, first)
    assert [(entry.external_id, entry.url) for entry in second.entries] == [
        (post("rye"), "https://blog.example/bread/rye-and-more")
    ]


def test_two_addresses_of_one_page_are_one_entry():
    head = "<link rel=canonical href=/2026/11/rye>"
    site = blog("rye", "rye-again", "oats")
    site.pages[post("rye")] = article("rye", head=head)
    site.pages[post("rye-again")] = article("rye", head=head)
    first = fetch(site)
    assert [entry.external_id for entry in first.entries] == [post("rye"), post("oats")]
    assert again(site, first).entries == ()


@pytest.mark.parametrize("canonical", ["/", "https://other.example/post", "/2026/11/rye"])
def test_canonical_address_may_not_swallow_other_pages(canonical):
    site = blog("rye", "wheat", "oats")
    for name in ("rye", "wheat", "oats"):
        site.pages[post(name)] = article(name, head=f"<link rel=canonical href='{canonical}'>")
    found = fetch(site)
    assert [entry.external_id for entry in found.entries] == [post("rye"), post("wheat"), post("oats")]


def test_links_that_tell_where_a_reader_came_from_are_one_page():
    site = blog("rye", "wheat", "oats")
    first = fetch(site)
    site.pages[HOME] = listing(
        "rye?utm_source=front&amp;utm_term=2", "wheat?fbclid=3", "rye#comments", "oats"
    )
    site.asked.clear()
    assert again(site, first).entries == ()
    assert sorted(site.asked) == sorted([HOME, post("rye"), post("wheat"), post("oats")])


def test_selector_says_which_links_count():
    page = "<div class=teaser><a href=/pic><img></a><h3><a href=/a>A</a></h3></div><div class=teaser>None</div><a href=/b>B</a>"
    site = FakeSite({HOME: page, "https://blog.example/a": article("A")})
    found = fetch(site, item_selector="div.teaser")
    assert (titles(found), site.asked[2:]) == (["A"], ["https://blog.example/a"])


def test_selector_that_matches_nothing_is_refused():
    with pytest.raises(Refused) as caught:
        fetch(blog("rye"), item_selector="div.teaser a")
    assert (caught.value.code, caught.value.field) == ("selector_matches_nothing", "config.item_selector")


def test_selector_that_matches_no_longer_is_a_trouble():
    site = blog("rye")
    first = fetch(site, item_selector="article h2 a")
    site.pages[HOME] = "<p>Redesigned</p>"
    with pytest.raises(TryLater) as caught:
        again(site, first, item_selector="article h2 a")
    assert caught.value.code == "selector_matches_nothing"


@pytest.mark.parametrize("selector", ["a:hover", "a >", "> a", "a[", "a{}", "a..b"])
def test_selector_that_cannot_be_read_is_refused_before_anything_is_asked(selector):
    site = blog("rye")
    with pytest.raises(Refused) as caught:
        fetch(site, item_selector=selector)
    assert (caught.value.code, site.asked) == ("selector_unreadable", [])


def test_one_page_is_read_where_one_page_is_asked_for():
    site = blog("rye", "wheat", "oats")
    site.pages[HOME] = listing("rye", "wheat", "oats").replace("Teaser", WORDS * 3)
    found = fetch(site, max_pages=1)
    assert (codes(found)[0], site.asked) == ("reads_page", [ROBOTS, HOME])


PLAIN_LISTS = {
    "two-links": "".join(f"<li><a href=/m{n}.html>Story {n}</a></li>" for n in range(2)),
    "numbered": "".join(f"<li><a href=/story/401{n}.html>Story {n}</a></li>" for n in range(7)),
    "dated": "".join(
        f"<div class=item><span>1{n} November 2026</span> <a href=/f{n}.html>Story {n}</a></div>"
        for n in range(7)
    ),
    "with-a-heading": "<h1>All our stories</h1><p>Newest first.</p>"
    + "".join(
        f"<li><a href=/m{n}.html>Harbour pilot {n} retires after long service</a></li>" for n in range(4)
    ),
}


@pytest.mark.parametrize("shape", PLAIN_LISTS)
@pytest.mark.parametrize("path", ["", "news/list.html"])
def test_a_page_of_plain_links_is_read_as_a_list(shape, path):
    listed = HOME + path
    nav = "<nav><a href=/about>About</a><a href=/team>Our team</a></nav>"
    page = f"<html><head><title>Stories</title></head><body>{nav}{PLAIN_LISTS[shape]}</body></html>"
    names = re.findall(r"href=/([mfs][^>]+)>", PLAIN_LISTS[shape])
    site = FakeSite({listed: page, **{HOME + name: article(f"Story {name}") for name in names}})
    found = fetch(site, url=listed)
    assert codes(found)[0] == "reads_list"
    assert {entry.url for entry in found.entries} == {HOME + name for name in names}
    site.pages[listed] = page.replace("</body>", "<a href=/m9.html>Story 9</a></body>")
    site.pages[HOME + "m9.html"] = article("Story 9")
    assert titles(again(site, found, url=listed)) == ["Story 9"]


def test_first_poll_reads_the_newest_and_leaves_older_pages_alone():
    names = [f"story-of-bread-{number}" for number in range(12)]
    site = blog(*names)
    first = fetch(site, max_pages=4)
    second = again(site, first, max_pages=4)
    assert titles(first) == names[:4]
    assert "8 older pages were there before the first poll; they are not read." in [
        note.message for note in first.notes
    ]
    assert second.entries == ()


def test_failing_page_of_the_first_poll_is_not_lost_among_older_ones():
    names = [f"story-of-bread-{number}" for number in range(12)]
    site = blog(*names)
    site.pages[post(names[2])] = reply(status=500)
    first = fetch(site, max_pages=8)
    site.pages[post(names[2])] = article(names[2])
    second = again(site, first, max_pages=8)
    assert (len(first.entries), titles(second)) == (7, [names[2]])


def test_first_poll_without_time_leaves_the_newest_for_later(monkeypatch):
    names = [f"story-of-bread-{number}" for number in range(12)]
    site = blog(*names)
    monkeypatch.setattr(polite_fetch, "MAX_PAUSE_SECONDS", float("-inf"))
    first = fetch(site)
    monkeypatch.undo()
    monkeypatch.setattr(polite_fetch, "pause", lambda seconds: None)
    second = again(site, first)
    assert (titles(first), titles(second)) == ([], names[:5])


def test_licences_of_the_pages_are_told_with_the_source():
    site = blog("rye", "wheat", "oats")
    site.pages[post("rye")] = article("rye").replace(
        "</article>", "<a rel=license href=/cc-by>CC</a></article>"
    )
    first = fetch(site)
    told = "Its pages name as their licence https://blog.example/cc-by."
    assert told in [note.message for note in first.notes]
    assert told in [note.message for note in again(site, first).notes]


def test_later_poll_reads_new_pages_first_and_the_rest_next_time():
    site = blog("rye", "wheat", "oats")
    first = fetch(site, max_pages=2)
    names = [f"news-of-today-{number}" for number in range(5)]
    site.pages |= blog(*names, "rye", "wheat", "oats").pages
    second = again(site, first, max_pages=2)
    third = again(site, second, max_pages=2)
    fourth = again(site, third, max_pages=2)
    assert [titles(found) for found in (second, third, fourth)] == [names[:2], names[2:4], names[4:]]
    assert "pages_waiting" in codes(second)
    assert "pages_waiting" not in codes(fourth)


def test_page_is_looked_at_again_the_rarer_the_longer_it_stays():
    url = post("rye")
    site = blog("rye", "wheat", "oats")
    first = fetch(site)
    later = fetch(site, first.state, now=NOW + timedelta(days=10))
    site.asked.clear()
    fetch(site, later.state, now=NOW + timedelta(days=10, hours=20))
    assert url not in site.asked
    fetch(site, later.state, now=NOW + timedelta(days=11, hours=4))
    assert url in site.asked


def test_sitemap_as_an_address_and_feed_as_one():
    site = FakeSite(
        {"https://blog.example/map.xml": reply("<rss version='2.0'><channel/></rss>", kind="text/xml")}
    )
    with pytest.raises(Refused) as caught:
        fetch(site, url="https://blog.example/map.xml")
    assert caught.value.code == "is_feed"


# --- Permission ---


@pytest.mark.parametrize(
    ("head", "headers", "code"),
    [
        ("<meta name=robots content='NOINDEX, follow'>", {}, "noindex"),
        ("<meta name=robots content=none>", {}, "noindex"),
        ("<meta name=content-pipeline content=noindex>", {}, "noindex"),
        ("<meta name=robots content=noarchive>", {}, "noarchive"),
        ("<meta name=robots content=noai>", {}, "noai"),
        ("<meta name=tdm-reservation content=1>", {}, "tdm_reserved"),
        ("", {"X_Robots_Tag": "noindex"}, "noindex"),
        ("", {"X_Robots_Tag": "otherbot: nofollow, content-pipeline: noindex"}, "noindex"),
        ("", {"tdm_reservation": "1"}, "tdm_reserved"),
        (
            '<script type="application/ld+json">{"@type": "NewsArticle", "isAccessibleForFree": "False"}</script>',
            {},
            "paywall",
        ),
    ],
)
def test_page_that_does_not_want_to_be_used_is_left_out_without_its_text(head, headers, code):
    url = post("rye")
    site = FakeSite({url: reply(article("Rye", head=head), **headers)})
    first = fetch(site, url=url)
    (entry,) = first.entries
    assert (entry.left_out.code, entry.title, entry.body, entry.url) == (code, "Rye", "", url)
    assert entry.left_out.message.endswith(".")
    assert again(site, first, url=url, after=timedelta(days=3)).entries == ()
    site.pages[url] = article("Rye")
    (entry,) = again(site, first, url=url, after=timedelta(days=3)).entries
    assert (entry.left_out, entry.external_id) == (None, url)


@pytest.mark.parametrize(
    ("head", "headers", "rules"),
    [
        ("<meta name=robots content='index, nofollow'>", {}, ["index", "nofollow"]),
        ("<meta name=otherbot content=noindex>", {}, []),
        ("", {"X_Robots_Tag": "otherbot: noindex, nofollow"}, []),
        ("", {"X_Robots_Tag": "nosnippet, otherbot: noindex"}, ["nosnippet"]),
        ("<meta name=tdm-reservation content=0>", {}, []),
    ],
)
def test_rules_that_allow_are_kept_with_the_entry(head, headers, rules):
    url = post("rye")
    (entry,) = fetch(FakeSite({url: reply(article("Rye", head=head), **headers)}), url=url).entries
    assert (entry.left_out, entry.metadata["robots"]) == (None, rules)


def test_licence_of_a_link_is_kept():
    url = post("rye")
    page = article("Rye").replace(
        "</article>", "<a rel='nofollow license' href='/licence'>Our licence</a></article>"
    )
    (entry,) = fetch(FakeSite({url: page}), url=url).entries
    assert entry.metadata["licence"] == "https://blog.example/licence"


def test_disallowed_page_is_listed_and_not_asked_for():
    site = blog(
        "rye",
        "wheat",
        "oats",
        **{ROBOTS: reply("User-agent: *\nDisallow: /2026/11/wheat", kind="text/plain")},
    )
    first = fetch(site)
    assert left_out(first) == {post("wheat"): "robots_disallow"}
    assert [entry.title for entry in first.entries if not entry.left_out] == ["rye", "oats"]
    assert post("wheat") not in site.asked
    assert again(site, first).entries == ()


def test_disallowed_address_is_refused_in_words():
    site = blog("rye", **{ROBOTS: reply("User-agent: content-pipeline\nDisallow: /", kind="text/plain")})
    with pytest.raises(Refused) as caught:
        fetch(site)
    assert (caught.value.code, caught.value.field, site.asked) == ("robots_disallow", "config.url", [ROBOTS])
    assert caught.value.message == (
        "robots.txt of blog.example disallows this address to automatic readers. Give another address."
    )


def test_each_hop_of_a_redirect_is_asked_of_robots():
    site = FakeSite(
        {
            HOME: reply(status=302, Location="https://other.example/private/page"),
            "https://other.example/robots.txt": reply("User-agent: *\nDisallow: /private", kind="text/plain"),
        }
    )
    with pytest.raises(Refused) as caught:
        fetch(site)
    assert caught.value.code == "robots_disallow"
    assert "https://other.example/private/page" not in site.asked


# --- Pace ---


def test_crawl_delay_is_waited_for(pauses, monkeypatch):
    # What a busy machine needs to read a page is part of the wait, and this is about the rest.
    monkeypatch.setattr(polite_fetch, "monotonic", lambda: 1_000.0)
    rules = reply("User-agent: *\nCrawl-delay: 4", kind="text/plain")
    found = fetch(blog("rye", "wheat", "oats", **{ROBOTS: rules}))
    assert len(found.entries) == 3
    assert pauses == [4, 4, 4]
    assert "it asks for 4 seconds between two requests" in found.notes[-1].message


@pytest.mark.parametrize(("delay", "paused"), [(None, 0.5), (4, 4), (90, 10)])
def test_redirect_within_an_origin_waits_as_another_request_does(pauses, monkeypatch, delay, paused):
    monkeypatch.setattr(polite_fetch, "monotonic", lambda: 1_000.0)
    rules = "" if delay is None else f"User-agent: *\nCrawl-delay: {delay}"
    site = FakeSite({ROBOTS: reply(rules, kind="text/plain"), HOME: reply(status=301, Location="/home")})
    site.pages["https://blog.example/home"] = article("rye")
    fetch(site, max_pages=1)
    assert site.asked[:3] == [ROBOTS, HOME, "https://blog.example/home"]
    assert pauses[0] == paused


def test_redirect_to_another_origin_does_not_wait(pauses):
    site = FakeSite({HOME: reply(status=301, Location="https://www.blog.example/")})
    site.pages["https://www.blog.example/"] = article("rye")
    fetch(site, max_pages=1)
    assert "https://www.blog.example/" in site.asked
    assert pauses == []


def test_redirect_is_followed_although_no_time_is_left_to_wait(pauses, monkeypatch):
    monkeypatch.setattr(polite_fetch, "monotonic", lambda: 1_000.0)
    monkeypatch.setattr(scraper, "FETCH_SECONDS", polite_fetch.RESERVE_SECONDS)
    site = FakeSite({HOME: reply(status=301, Location="/home")})
    site.pages["https://blog.example/home"] = article("rye")
    fetch(site, max_pages=1)
    assert "https://blog.example/home" in site.asked
    assert pauses == []


def test_long_crawl_delay_makes_each_poll_one_request(pauses):
    rules = reply("User-agent: *\nCrawl-delay: 90", kind="text/plain")
    site = blog("rye", "wheat", "oats", **{ROBOTS: rules})
    polls = [fetch(site)]
    for hour in range(1, 5):
        polls.append(again(site, polls[-1], after=timedelta(hours=hour)))
    assert [titles(found) for found in polls] == [[], ["rye"], ["wheat"], ["oats"], []]
    assert (pauses, polls[0].wait_at_least) == ([], timedelta(seconds=60))
    assert codes(polls[0])[:2] == ["reads_list", "pages_waiting"]
    assert site.asked == [ROBOTS, HOME, post("rye"), post("wheat"), post("oats"), HOME]


def test_robots_is_kept_for_a_day():
    site = blog("rye", "wheat", "oats")
    first = fetch(site)
    again(site, first, after=timedelta(hours=23))
    assert site.asked.count(ROBOTS) == 1
    again(site, first, after=timedelta(hours=25))
    assert site.asked.count(ROBOTS) == 2


# --- Trouble with single pages ---


def page_trouble():
    return [
        (reply(status=401), "login_required"),
        (reply(status=402), "paywall"),
        (reply(status=451), "legal_reasons"),
        (reply(b"%PDF-1.7", kind="application/pdf"), "not_html"),
        (reply(b"MZ\x00", kind="application/octet-stream"), "not_html"),
        (ResponseTooLarge("large"), "page_too_large"),
        (AddressRefused("10.0.0.1 is not a public internet address."), "address_refused"),
        (reply(status=302, Location="/2026/11/wheat"), "redirect_loop"),
        (reply(status=302, Location="/login?next=/2026/11/wheat"), "login_required"),
        (reply("<html><body></body></html>"), "no_text"),
        (reply(""), "no_text"),
        (
            reply(
                "<div id=root></div><noscript>You need to enable JavaScript to run this app.</noscript><script></script>"
            ),
            "needs_javascript",
        ),
        (reply("<form><input type=password></form>"), "login_required"),
        (reply("<title>Wheat</title><p>Wheat</p>"), "only_title"),
        (reply(PYTHON_INDEX), "only_links"),
        (reply(APACHE_INDEX), "only_links"),
        (reply(NGINX_INDEX), "only_links"),
        (reply(NEWS_LIST), "only_links"),
    ]


PYTHON_INDEX = """<title>Directory listing for /</title><h1>Directory listing for /</h1><hr><ul>
<li><a href="a.html">a.html</a></li><li><a href="b/">b/</a></li></ul><hr>"""
APACHE_INDEX = """<title>Index of /pub</title><h1>Index of /pub</h1><table><tr><th><a href="?C=N">Name</a></th>
<th>Last modified</th><th>Size</th></tr><tr><td><a href="/">Parent Directory</a></td><td>&nbsp;</td><td>-</td></tr>
<tr><td><a href="foo.zip">foo.zip</a></td><td>2026-01-02 12:00</td><td>12K</td></tr></table>
<address>Apache/2.4 Server at blog.example Port 80</address>"""
NGINX_INDEX = """<title>Index of /pub/</title><h1>Index of /pub/</h1><hr><pre><a href="../">../</a>
<a href="a.txt">a.txt</a>             01-Jan-2026 10:00       1234
</pre><hr>"""
NEWS_LIST = "<title>News</title><h1>News</h1><ul>" + "".join(
    f'<li><a href="/n/{number}">The council decided on the matter {number} today.</a></li>'
    for number in range(3)
)


@pytest.mark.parametrize(
    ("answer", "code"), page_trouble(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_page_that_cannot_be_read_is_left_out_and_the_others_go_on(answer, code):
    site = blog("rye", "wheat", "oats", **{"https://blog.example/login?next=/2026/11/wheat": "<p>Log in</p>"})
    site.pages[post("wheat")] = answer
    first = fetch(site)
    assert left_out(first) == {post("wheat"): code}
    assert sorted(entry.title for entry in first.entries if not entry.left_out) == ["oats", "rye"]
    assert again(site, first).entries == ()


def test_front_page_that_is_a_servers_index_is_left_out():
    found = fetch(FakeSite({HOME: PYTHON_INDEX}))
    assert left_out(found) == {HOME: "only_links"}
    assert "only links" in found.entries[0].left_out.message
    assert found.notes[0].message.startswith("Nothing is imported yet. This page holds only links")


@pytest.mark.parametrize(
    "body",
    [
        "The ferry leaves at nine. See [the table](https://x.example/table).",
        "Closed today.",
        "- 2 eggs\n- flour, one cup\n- a pinch of salt",
        "\u5e02\u8b70\u4f1a\u306f\u3001\u6c34\u66dc\u65e5\u306b\u65b0\u3057\u3044\u8def\u7dda\u3092\u627f\u8a8d\u3057\u305f",
        "[Alpha](https://x.example/a)\n\nThe council approved a line to the harbour",
        "Alpha\nBeta\nOpen from nine to five, but not on Sundays",
    ],
)
def test_page_that_says_little_but_something_is_read(body):
    links = tuple(page_reader.PageLink(f"https://x.example/{text}", text, "") for text in ("Alpha", "Beta"))
    page = SimpleNamespace(title="Wheat", body=f"Wheat\n{body}", links=links)
    assert why_empty(page) == ""


@pytest.mark.slow
def test_page_that_costs_too_much_is_left_out_and_the_others_go_on(monkeypatch):
    # The limit is one of CPU time, which a busy machine gives slowly.
    monkeypatch.setattr(page_reader, "WALL_SECONDS", 90)
    site = blog("rye", "wheat", "oats")
    site.pages[post("wheat")] = "<p " + "<a href=x>y" * 400_000
    first = fetch(site)
    assert left_out(first) == {post("wheat"): "page_too_complex"}
    assert sorted(entry.title for entry in first.entries if not entry.left_out) == ["oats", "rye"]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (TimedOut("blog.example did not answer in full within 20 seconds."), "timed_out"),
        (ConnectFailed("refused"), "connect_failed"),
        (reply(status=500), "server_error"),
        (reply(status=403), "forbidden"),
        (reply(status=418), "unexpected_status"),
    ],
)
def test_page_that_fails_for_now_is_tried_again_and_given_up_in_words(answer, code):
    site = blog("rye", "wheat", "oats")
    site.pages[post("wheat")] = answer
    found = fetch(site)
    assert (titles(found), code in codes(found)) == (["rye", "oats"], True)
    for hour in range(1, 4):
        found = again(site, found, after=timedelta(hours=hour))
        assert (found.entries, code in codes(found)) == ((), True)
    found = again(site, found, after=timedelta(hours=4))
    assert left_out(found) == {post("wheat"): "unreachable"}


def test_page_that_failed_for_now_is_read_later():
    site = blog("rye", "wheat", "oats")
    site.pages[post("wheat")] = reply(status=500)
    first = fetch(site)
    site.pages[post("wheat")] = article("wheat")
    assert titles(again(site, first)) == ["wheat"]


@pytest.mark.parametrize(
    ("answer", "code", "wait"),
    [
        (reply(status=429, Retry_After="600"), "rate_limited", timedelta(minutes=10)),
        (reply(status=503, Retry_After="Fri, 20 Nov 2026 13:00:00 GMT"), "server_error", timedelta(hours=1)),
        (reply("<title>Just a moment...</title>", status=403), "challenge", None),
        (reply(status=403, cf_mitigated="challenge"), "challenge", None),
    ],
)
def test_server_that_wants_to_be_left_alone_is(answer, code, wait):
    site = blog("rye", "wheat", "oats")
    site.pages[post("wheat")] = answer
    first = fetch(site)
    assert (titles(first), code in codes(first), first.wait_at_least) == (["rye"], True, wait)
    assert post("oats") not in site.asked
    site.pages[post("wheat")] = article("wheat")
    assert sorted(titles(again(site, first))) == ["oats", "wheat"]


# --- Trouble with the address ---


@pytest.mark.parametrize(
    ("answer", "kind", "code", "after"),
    [
        (reply(status=404), TryLater, "not_found", None),
        (reply(status=500), TryLater, "server_error", None),
        (reply(status=403), TryLater, "forbidden", timedelta(hours=1)),
        (reply(status=429, Retry_After="60"), TryLater, "rate_limited", timedelta(minutes=1)),
        (TimedOut("It was slow."), TryLater, "timed_out", None),
        (reply(status=401), Refused, "login_required", None),
        (reply(b"GIF89a", kind="image/gif"), Refused, "not_html", None),
        (ResponseTooLarge("large"), Refused, "page_too_large", None),
        (AddressRefused("Not public."), Refused, "address_refused", None),
        (reply(status=301, Location="/"), Refused, "redirect_loop", None),
    ],
)
def test_address_that_cannot_be_read_fails_in_words(answer, kind, code, after):
    with pytest.raises(kind) as caught:
        fetch(FakeSite({HOME: answer}))
    assert (caught.value.code, getattr(caught.value, "after", None)) == (code, after)
    assert caught.value.message.endswith(".")


def test_list_that_is_gone_for_good_says_so():
    assert fetch(FakeSite({HOME: reply(status=410)})).gone is True


def test_permanent_move_of_the_address_is_told():
    site = blog("rye", "wheat", "oats")
    site.pages["https://old.example/"] = reply(status=308, Location=HOME)
    assert fetch(site, url="https://old.example/").moved_to == HOME
    site.pages["https://old.example/"] = reply(status=302, Location=HOME)
    assert fetch(site, url="https://old.example/").moved_to == ""


@pytest.mark.parametrize(
    "state",
    [
        {"address": 3},
        {"address": "x", "pages": []},
        {"seen": "A"},
        {"address": None, "robots": {"a": {"text": "x"}}},
    ],
)
def test_state_that_cannot_be_read_is_forgotten(state):
    first = fetch(blog("rye", "wheat", "oats"))
    broken = {**first.state, **state}
    assert titles(fetch(blog("rye", "wheat", "oats"), broken)) == ["rye", "wheat", "oats"]


def test_state_stays_small():
    names = [f"story-of-bread-{number}" for number in range(3000)]
    first = fetch(blog(*names), max_pages=20)
    assert len(json.dumps(first.state)) < 40_000


def test_other_encodings_are_read():
    url = post("rye")
    page = article(
        "Käse", "Süße Grüße aus der Küche, für alle, die Käse mögen und gern davon lesen. ", lang="de"
    )
    for encoding in ("utf-16", "iso-8859-1"):
        site = FakeSite({url: reply(page.encode(encoding), kind="text/html; charset=iso-8859-1")})
        (entry,) = fetch(site, url=url).entries
        assert (entry.title, "Süße Grüße" in entry.body) == ("Käse", True)


@pytest.mark.parametrize("address", ["HTTP://[0]", "https://[abc]/x"])
@pytest.mark.parametrize("name", ["url", "sitemap"])
def test_address_that_no_host_can_be_read_of_is_refused(name, address):
    config = PLUGIN.clean_config({"url": "https://site.example/", name: address})
    assert PLUGIN.host({"url": address}, {}) == ""
    with pytest.raises(Refused) as caught:
        PLUGIN.fetch(config, {}, http=None, now=NOW, environment={})
    assert (caught.value.code, caught.value.field) == ("address_refused", f"config.{name}")
