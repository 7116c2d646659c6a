"""Sitemaps: where they are found, which of their pages are read, and what hostile ones can't do."""

from __future__ import annotations

import gzip
from datetime import timedelta

import pytest

from pipeline.plugins import Refused
from pipeline.sources.web_pages import poll_state

from .fake_site import FakeSite, reply
from .test_scraper import (  # noqa: F401  fixtures
    HOME,
    NOW,
    ROBOTS,
    again,
    article,
    child,
    codes,
    fetch,
    one_child,
    pauses,
    post,
    titles,
)

MAP = "https://blog.example/sitemap.xml"
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def urlset(*pages: str | tuple[str, str]) -> bytes:
    items = ""
    for page in pages:
        address, stamp = (page, "") if isinstance(page, str) else page
        items += f"<url><loc>{address}</loc>{f'<lastmod>{stamp}</lastmod>' if stamp else ''}</url>"
    return f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="{NAMESPACE}">{items}</urlset>'.encode()


def index(*files: str) -> bytes:
    items = "".join(f"<sitemap><loc>{file}</loc></sitemap>" for file in files)
    return f'<sitemapindex xmlns="{NAMESPACE}">{items}</sitemapindex>'.encode()


def xml(body: bytes, **headers):
    return reply(body, kind="application/xml", **headers)


def site_of(*names: str, **pages) -> FakeSite:
    return FakeSite({**{post(name): article(name) for name in names}, **pages})


def test_newest_pages_of_a_sitemap_are_read_first():
    listed = xml(
        urlset(
            (post("rye"), "2026-11-01"), (post("oats"), "2026-11-19T08:00:00Z"), (post("wheat"), "2026-11-10")
        )
    )
    site = site_of("rye", "oats", "wheat", **{MAP: listed})
    found = fetch(site, sitemap=MAP, max_pages=2)
    assert (titles(found), site.asked) == (["oats", "wheat"], [ROBOTS, MAP, post("oats"), post("wheat")])
    assert codes(found) == ["reads_sitemap", "robots_none", "older_pages"]


def test_sitemap_tells_each_change_once():
    dates = {"rye": "2026-11-01", "oats": "2026-11-02", "wheat": "2026-11-03"}
    names = tuple(dates)
    site = site_of(*names, **{MAP: xml(urlset(*((post(name), dates[name]) for name in names)))})
    first = fetch(site, sitemap=MAP)
    site.asked.clear()
    assert again(site, first, sitemap=MAP).entries == ()
    assert site.asked == [MAP]
    dates |= {"spelt": "2026-11-20T12:30:00Z", "rye": "2026-11-20T12:20:00Z"}
    del dates["oats"], site.pages[post("oats")]
    site.pages |= {
        post("spelt"): article("spelt"),
        post("rye"): article("rye", "Other words, and many of them, so that it is an article. "),
        MAP: xml(urlset(*((post(name), stamp) for name, stamp in dates.items()))),
    }
    second = again(site, first, sitemap=MAP)
    assert [(entry.external_id, entry.withdrawn) for entry in second.entries] == [
        (post("spelt"), False),
        (post("rye"), False),
        (post("oats"), True),
    ]
    third = again(site, second, sitemap=MAP, after=timedelta(hours=2))
    assert (third.entries, third.not_modified) == ((), True)


def test_page_that_is_only_delisted_is_kept_and_asked_once():
    names = ("rye", "oats", "wheat")
    site = site_of(
        *names, **{MAP: xml(urlset(*((post(name), f"2026-11-0{at}") for at, name in enumerate(names, 1))))}
    )
    first = fetch(site, sitemap=MAP)
    site.pages[MAP] = xml(urlset((post("rye"), "2026-11-01"), (post("oats"), "2026-11-02")))
    site.asked.clear()
    second = again(site, first, sitemap=MAP)
    third = again(site, second, sitemap=MAP, after=timedelta(hours=2))
    assert (second.entries, third.entries, site.asked) == ((), (), [MAP, post("wheat"), MAP])


@pytest.mark.parametrize("stamp", ["2026-11-20T11:59:30Z", "2027-01-01", ""])
def test_dates_that_tell_nothing_are_not_believed(stamp):
    """All of one build, of the future, or none: then pages are looked at by turns."""
    names = ("rye", "oats", "wheat", "spelt")
    site = site_of(*names, **{MAP: xml(urlset(*((post(name), stamp) for name in names)))})
    first = fetch(site, sitemap=MAP)
    site.pages[post("oats")] = article("oats", "Other words, and many of them, so that it is an article. ")
    second = again(site, first, sitemap=MAP)
    assert [entry.external_id for entry in second.entries] == [post("oats")]


def test_unchanged_sitemap_costs_one_request():
    names = ("rye", "oats", "wheat")
    pages = urlset(*((post(name), f"2026-11-0{at}") for at, name in enumerate(names, 1)))
    site = site_of(*names, **{MAP: xml(pages, ETag='"a"')})
    first = fetch(site, sitemap=MAP)
    site.asked.clear()
    assert again(site, first, sitemap=MAP).entries == ()
    assert (site.asked, site.options[MAP]["headers"]["If-None-Match"]) == ([MAP], '"a"')


def test_index_gzip_and_plain_files_are_read_and_lists_left_out():
    base = "https://blog.example"
    site = site_of(
        "rye",
        "oats",
        **{
            MAP: xml(
                index(
                    f"{base}/posts.xml.gz", f"{base}/wp-sitemap-taxonomies-category-1.xml", f"{base}/more.txt"
                )
            ),
            f"{base}/posts.xml.gz": reply(gzip.compress(urlset(post("rye"))), kind="application/gzip"),
            f"{base}/more.txt": reply(f"{post('oats')}\n\nnot an address\n", kind="text/plain"),
        },
    )
    found = fetch(site, sitemap=MAP)
    assert sorted(titles(found)) == ["oats", "rye"]
    assert f"{base}/wp-sitemap-taxonomies-category-1.xml" not in site.asked


def test_address_of_a_sitemap_is_read_as_one():
    site = site_of("rye", **{MAP: xml(urlset(post("rye"), "https://blog.example/category/bread/", HOME))})
    found = fetch(site, url=MAP)
    assert (titles(found), codes(found)[0]) == (["rye"], "reads_sitemap")


def test_only_pages_under_the_address_count_where_a_sitemap_is_named():
    other = "https://blog.example/shop-and-more/rye-flour-2026"
    site = site_of("rye", **{MAP: xml(urlset(post("rye"), other)), other: article("Flour")})
    assert titles(fetch(site, url="https://blog.example/2026/", sitemap=MAP)) == ["rye"]


def test_news_sitemap_gives_its_dates():
    news = (
        f'<urlset xmlns="{NAMESPACE}" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">'
        f"<url><loc>{post('rye')}</loc><news:news><news:publication_date>2026-11-19</news:publication_date>"
        f"<news:title>Rye</news:title></news:news></url><url><loc>{post('oats')}</loc><news:news>"
        "<news:publication_date>2026-11-20</news:publication_date></news:news></url></urlset>"
    )
    site = site_of("rye", "oats", **{MAP: xml(news.encode())})
    assert titles(fetch(site, sitemap=MAP, max_pages=1)) == ["oats"]


@pytest.mark.parametrize("is_named", [True, False])
def test_front_page_without_articles_leads_to_the_sitemap(is_named):
    where = "https://blog.example/maps/all.xml" if is_named else MAP
    rules = f"Sitemap: {where}" if is_named else ""
    site = site_of("rye", **{HOME: "<p>Welcome</p>", where: xml(urlset(post("rye"))), ROBOTS: reply(rules)})
    first = fetch(site)
    assert (titles(first), codes(first)[0]) == (["rye"], "reads_sitemap")
    site.pages |= {where: xml(urlset(post("rye"), post("oats"))), post("oats"): article("oats")}
    assert titles(again(site, first)) == ["oats"]


def test_loops_and_endless_indexes_end():
    base = "https://blog.example"
    site = site_of("rye", **{MAP: xml(index(MAP, f"{base}/1.xml"))})
    for number in range(1, 200):
        site.pages[f"{base}/{number}.xml"] = xml(index(f"{base}/{number + 1}.xml", MAP))
    site.pages[f"{base}/4.xml"] = xml(urlset(post("rye")))
    found = fetch(site, sitemap=MAP)
    assert (found.entries, site.asked) == (
        (),
        [ROBOTS, MAP, f"{base}/1.xml", f"{base}/2.xml", f"{base}/3.xml"],
    )


def test_wide_index_is_read_in_several_polls_and_nothing_of_it_twice():
    base = "https://blog.example"
    files = [f"{base}/{number}.xml" for number in range(120)]
    site = site_of("old", "new", "next", **{MAP: xml(index(*files))})
    for number, file in enumerate(files):
        site.pages[file] = xml(urlset((post(f"story-{number}"), "2026-01-01")))
    site.pages[files[-1]] = xml(urlset((post("old"), "2026-11-01")))
    polls = [fetch(site, sitemap=MAP, max_pages=1)]
    assert len([url for url in site.asked if url.endswith(".xml")]) == 50
    assert codes(polls[0]) == ["reads_sitemap", "pages_waiting", "robots_none", "sitemaps_waiting"]
    for _ in range(2):
        polls.append(again(site, polls[-1], sitemap=MAP, max_pages=1))
    assert sorted(url for url in site.asked if url.endswith(".xml")) == sorted([MAP, *files])
    assert [title for found in polls for title in titles(found)] == ["old"]
    # A page of the last file is no news to the next round, a new one is.
    site.pages[files[-1]] = xml(urlset((post("old"), "2026-11-01"), (post("new"), "2026-11-20T12:00:00Z")))
    for _ in range(3):
        polls.append(again(site, polls[-1], sitemap=MAP, max_pages=1))
    assert [title for found in polls[3:] for title in titles(found)] == ["new"]


def test_index_of_more_files_than_are_kept_says_so():
    files = [f"https://blog.example/{number}.xml" for number in range(1200)]
    site = FakeSite({MAP: xml(index(*files)), **{file: xml(urlset(post("rye"))) for file in files}})
    found = fetch(site, sitemap=MAP)
    assert len(found.state["files_waiting"]) == 1000
    assert "sitemaps_left_out" in codes(found)


ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    b"<urlset><url><loc>&b;</loc></url></urlset>"
)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (gzip.compress(b"<urlset>" + b" " * (60 * 1024 * 1024)), "sitemap_unreadable"),
        (gzip.compress(b"<urlset/>")[:-12], "not_a_sitemap"),
        (ENTITIES, "sitemap_unreadable"),
        (
            b'<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>',
            "sitemap_unreadable",
        ),
        (b"<html><body>No</body></html>", "not_a_sitemap"),
        (b"\x1f\x8b" + b"\x00" * 40, "sitemap_unreadable"),
        (b"", "not_a_sitemap"),
    ],
    ids=["gzip bomb", "cut gzip", "entities", "external entity", "html", "no gzip", "empty"],
)
def test_hostile_sitemap_is_refused_in_words(body, code):
    with pytest.raises(Refused) as caught:
        fetch(FakeSite({MAP: reply(body, kind="application/xml")}), sitemap=MAP)
    assert (caught.value.code, caught.value.message.endswith(".")) == (code, True)


def test_broken_sitemap_gives_what_can_be_read():
    body = urlset(post("rye"), post("oats")).replace(
        b"</urlset>", b"<url><loc>https://blog.example/2026/11/cut"
    )
    assert sorted(titles(fetch(site_of("rye", "oats", **{MAP: xml(body)}), sitemap=MAP))) == ["oats", "rye"]


def test_one_broken_file_of_an_index_is_told_and_the_others_are_read():
    base = "https://blog.example"
    site = site_of(
        "rye",
        **{MAP: xml(index(f"{base}/a.xml", f"{base}/b.xml")), f"{base}/b.xml": xml(urlset(post("rye")))},
    )
    found = fetch(site, sitemap=MAP)
    assert (titles(found), codes(found)) == (["rye"], ["reads_sitemap", "robots_none", "gone"])


@pytest.mark.slow
def test_fifty_thousand_addresses_are_all_known_and_the_next_one_is_news():
    addresses = [f"https://blog.example/2026/11/story-{number}" for number in range(49_999)]
    site = FakeSite({MAP: xml(urlset(*addresses)), **{url: article("Story") for url in addresses[:1]}})
    found = fetch(site, sitemap=MAP, max_pages=1)
    assert (titles(found), len(site.asked)) == (["Story"], 3)
    site.pages |= {MAP: xml(urlset(*addresses, post("news"))), post("news"): article("news")}
    site.asked.clear()
    second = again(site, found, sitemap=MAP, max_pages=1)
    assert (titles(second), site.asked) == (["news"], [MAP, post("news")])


def test_more_pages_than_can_be_remembered_are_no_news(monkeypatch):
    monkeypatch.setattr(poll_state, "SEEN_KEPT", 20)
    names = [f"story-{number}" for number in range(40)]
    listed = [(post(name), "2026-01-01") for name in names[:-1]]
    site = site_of(*names, "news", **{MAP: xml(urlset(*listed, (post(names[-1]), "2026-02-01")))})
    first = fetch(site, sitemap=MAP, max_pages=1)
    site.pages[MAP] = xml(urlset(*listed, (post(names[-1]), "2026-02-01"), (post("news"), "2026-11-20")))
    second = again(site, first, sitemap=MAP, max_pages=5)
    assert titles(second) == ["news"]
    assert "too_many_pages" in codes(second)


def test_long_crawl_delay_spreads_sitemaps_over_the_polls():
    base = "https://blog.example"
    site = site_of(
        "rye",
        "oats",
        **{
            ROBOTS: reply("User-agent: *\nCrawl-delay: 60"),
            MAP: xml(index(f"{base}/a.xml", f"{base}/b.xml")),
            f"{base}/a.xml": xml(urlset(post("rye"))),
            f"{base}/b.xml": xml(urlset(post("oats"))),
        },
    )
    polls = [fetch(site, sitemap=MAP)]
    for hour in range(1, 5):
        polls.append(fetch(site, polls[-1].state, sitemap=MAP, now=NOW + timedelta(hours=hour)))
    assert sorted(title for found in polls for title in titles(found)) == ["oats", "rye"]
    assert site.asked[:4] == [ROBOTS, MAP, f"{base}/a.xml", f"{base}/b.xml"]
