"""The quick reader of feeds gives what feedparser gives, to the letter, or nothing."""

from __future__ import annotations

import pytest

from pipeline.sources.feeds import quick as feed_quick
from tests.sources.mutations import samples
from tests.sources.well_formed import document, read_both_ways

BLOG = """<?xml version='1.0' encoding='UTF-8'?>
<rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:content='http://purl.org/rss/1.0/modules/content/'>
<channel><title>News</title><link>https://news.example/</link><description>d</description><item>
<guid isPermaLink='false'>1</guid><title>Rye</title><link>/1</link><dc:creator>Ada</dc:creator><category>City</category>
<pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate><content:encoded><![CDATA[<p>Hold it <a href='/flat'>flat</a>.</p>]]></content:encoded>
</item></channel></rss>"""


def test_a_blog_s_feed_is_read_quickly_and_the_same():
    quick, slow = read_both_ways(BLOG.encode())
    assert quick == slow
    (entry,) = quick["entries"]
    assert (entry["id"], entry["url"], entry["title"]) == ("1", "https://feed.example/1", "Rye")
    assert entry["body"] == "<p>Hold it <a href='https://feed.example/flat'>flat</a>.</p>"


def test_the_recorded_feeds_are_the_same():
    ways = {name: read_both_ways(content) for name, content in samples().items()}
    assert {name for name, both in ways.items() if both and both[0] != both[1]} == set()
    assert {name for name, both in ways.items() if both} >= {"rss20.xml", "no_dates.xml"}


@pytest.mark.parametrize("first", [0, 500, 1000, 1500])
def test_thousands_of_well_formed_feeds_are_the_same(first):
    ways = {number: read_both_ways(document(number)) for number in range(first, first + 500)}
    assert [number for number, both in ways.items() if both and both[0] != both[1]] == []
    # Enough of them are read quickly for the comparison to mean something.
    assert sum(both is not None for both in ways.values()) > 100


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_and_many_more():
    differing = [
        number
        for number in range(2000, 12_000)
        if (both := read_both_ways(document(number))) and both[0] != both[1]
    ]
    assert differing == []


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("<title>Rye", "<title>Rye</title><title>Wheat"),
        ("<title>Rye", "<title type='html'>Rye"),
        ("<title>Rye", "<title>Rye <b>bread</b>"),
        ("<category>City", "<category><title>City</title>"),
        ("<rss version='2.0'", "<rss version='0.91'"),
        ("<channel>", "<channel xml:base='https://base.example/'>"),
        ("<channel>", "<channel xmlns='http://purl.org/rss/1.0/'>"),
        ("<?xml version='1.0' encoding='UTF-8'?>", "<?xml version='1.0' encoding='ISO-8859-1'?>"),
        ("<rss", "<!DOCTYPE rss><rss"),
        ("</rss>", ""),
    ],
)
def test_what_it_doesn_t_know_is_left_to_feedparser(written, instead):
    assert written in BLOG
    assert feed_quick.read(BLOG.replace(written, instead, 1), "https://feed.example/") is None
