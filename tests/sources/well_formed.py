"""Well-formed RSS and Atom by the thousand: seeded documents of the words that feeds use, in every order and mixture.

Nothing random is left: the number of a document makes it.
"""

from __future__ import annotations

import random
from unittest.mock import patch
from xml.sax.saxutils import escape, quoteattr

from pipeline.sources.feeds import quick, records

# What feedparser raises over documents that it should read.
BROKEN = (AttributeError, IndexError, KeyError, TypeError, ValueError)
NAMESPACES = (
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/" '
    'xmlns:atom="http://www.w3.org/2005/Atom" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/" '
    'xmlns:slash="http://purl.org/rss/1.0/modules/slash/" xmlns:wfw="http://wellformedweb.org/CommentAPI/" '
    'xmlns:media="http://search.yahoo.com/mrss/" xmlns:own="https://own.example/ns"'
)
TEXTS = (
    "", " ", "Tram line 3", "  two \n lines ", "Fish & chips", "a < b", "<b>bold</b> words", "<p>One.</p><p>Two.</p>",
    '<a href="/relative?a=1&amp;b=2">there</a>', "AT&amp;T", "&#8217;s", "caf\u00e9", "caf\u00c3\u00a9", "\u0093quoted\u0094", "\u4e2d\u6587",
    "&copy; 2026", "<script>x()</script>", "&nbsp;", "x &undefined; y", "]] >", "\U0001f600", "a\u00a0b", "<unknown>x</unknown>",
)  # fmt: skip
ADDRESSES = (
    "https://news.example/1", "/2?a=1&b=2", "3#part", "HTTPS://news.example/4", "//other.example/5", "not an address", "",
    "https://news.example/?a=1&amp;b=2", "https:///news.example/6", "http://[broken", "urn:uuid:7", " https://news.example/8 ",
    "https://news.example/caf\u00e9", "mailto:ada@example.test", "tag:news.example,2026:9",
)  # fmt: skip
DATES = (
    "Mon, 02 Nov 2026 10:00:00 GMT", "2026-11-02T10:00:00Z", "2026-11-02T10:00:00.5+02:00", "yesterday", "", "2 Nov 26 10:00 EST",
    "2026-11-02", "Thu, 01 Jan 1970 00:00:00 GMT",
)  # fmt: skip
NAMES = ("Ada", "ada@example.test (Ada)", "Ada <ada@example.test>", "", " ", "Ad\u00e1", "ada@example.test")
ODD = (
    "<media:content url='https://news.example/a.jpg' type='image/jpeg'/>", "<own:thing>x</own:thing>", "<source url='/s'>S</source>",
    "<dc:date>2026-01-01</dc:date>", "<title>again</title>", "<link>https://news.example/again</link>", "<guid>again</guid>",
    "<atom:link rel='alternate' href='/alt'/>", "<atom:link rel='replies' href='/r'/>", "<summary>s</summary>", "<dc:creator>B</dc:creator>",
    "<description xml:base='https://base.example/'>b</description>", "<title xml:lang='de'>T</title>", "<b>nested</b>",
    "<dc:rights>all</dc:rights>", "<atom:updated>2026-01-01T00:00:00Z</atom:updated>", "<pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate>",
    "<category><title>inside</title></category>", "<comments><guid>inside</guid></comments>", "<media:content url='/m'><title>inside</title></media:content>",
    "<image><url>/i</url><item><title>inside</title></item></image>", "<author><name>B</name><title>inside</title></author>",
    "<slash:comments><link>/inside</link></slash:comments>", "<enclosure url='/e' rel='license'/>", "<textInput><title>T</title></textInput>",
)  # fmt: skip


def read_both_ways(document: bytes, url: str = "https://feed.example/feed.xml"):
    """What the quick reader makes of it and what feedparser does; None where the quick one leaves it to feedparser, or
    feedparser itself breaks.
    """
    answers = []
    read = quick.read
    try:
        with patch.object(quick, "read", lambda *asked: answers.append(read(*asked)) or answers[-1]):
            found = _read(document, url)
        with patch.object(quick, "read", return_value=None):
            expected = _read(document, url) if any(answers) else None
    except BROKEN:
        # The quick reader has no such faults: it would not have answered.
        assert answers
        return None
    return (found, expected) if any(answers) else None


def _read(document, url):
    try:
        return records.read_document(document, url=url, content_type="")
    except records.Unreadable as error:
        return error.problem


def document(number: int) -> bytes:
    chance = random.Random(number)
    return (_rss if chance.random() < 0.6 else _atom)(chance).encode()


def _written(chance, text):
    how = chance.random()
    if how < 0.3 and "]]>" not in text:
        return f"<![CDATA[{text}]]>"
    if how < 0.4:
        return f"{escape(text[:3])}<!-- aside -->{escape(text[3:])}"
    return escape(text)


def _of(chance, name, choices, attributes=""):
    return f"<{name}{attributes}>{_written(chance, chance.choice(choices))}</{name}>"


def _some(chance, parts, odd):
    """Some of them, in any order; now and then one that is out of the ordinary."""
    kept = [part for part in parts if chance.random() < 0.7]
    if chance.random() < 0.15:
        kept.append(odd)
    chance.shuffle(kept)
    return "".join(kept)


def _rss(chance):
    items = "".join(_item(chance) for _ in range(chance.randrange(4)))
    frame = _some(
        chance,
        [
            _of(chance, "title", TEXTS),
            _of(chance, "link", ADDRESSES),
            _of(chance, "description", TEXTS),
            _of(chance, "language", ("en", "de_DE", "")),
            _of(chance, "copyright", TEXTS),
            _of(chance, "ttl", ("60", "x", "")),
            _of(chance, "sy:updatePeriod", ("hourly", " daily ")),
            _of(chance, "sy:updateFrequency", ("2", "0")),
            _of(chance, "pubDate", DATES),
            "<image><url>/i.png</url><title>Picture</title><link>https://news.example/</link><width>1</width></image>",
            f"<atom:link rel={chance.choice(('self', 'HUB', 'license', 'next'))!r} href={quoteattr(chance.choice(ADDRESSES))}/>",
            "<skipHours><hour>1</hour></skipHours>",
        ],
        chance.choice(ODD),
    )
    version = chance.choice(("2.0", "2.0", "2.0", "2.0.1", "0.92"))
    parts = [frame, items] if chance.random() < 0.8 else [items, frame]
    return f"<rss version='{version}' {NAMESPACES}><channel>{''.join(parts)}</channel></rss>"


def _item(chance):
    permanent = chance.choice(("", "", " isPermaLink='false'", " isPermaLink='true'", " isPermaLink='no'"))
    attributes = chance.choice((" type='audio/MPEG' length='1'", " type='x'", ""))
    return "<item>{}</item>".format(
        _some(
            chance,
            [
                _of(chance, "title", TEXTS),
                _of(chance, "link", ADDRESSES),
                _of(chance, "guid", ADDRESSES, permanent),
                _of(chance, "description", TEXTS),
                _of(chance, "content:encoded", TEXTS),
                _of(chance, "pubDate", DATES),
                _of(chance, chance.choice(("author", "dc:creator")), NAMES),
                _of(chance, "category", TEXTS, " domain='x'"),
                _of(chance, "comments", ADDRESSES),
                "<slash:comments>3</slash:comments><wfw:commentRss>/c</wfw:commentRss>",
                f"<enclosure url={quoteattr(chance.choice(ADDRESSES))}{attributes}/>",
                f"<media:content url={quoteattr(chance.choice(ADDRESSES))} medium='image'{attributes}/>",
                "<media:thumbnail url='/t.jpg'/>",
            ],
            chance.choice(ODD),
        )
    )


def _atom(chance):
    language = chance.choice(
        ("", "", " xml:lang='en_GB'", " xml:lang=''", " xml:base='https://base.example/'")
    )
    frame = _some(
        chance,
        [
            _atom_text(chance, "title"),
            _atom_text(chance, "rights"),
            _atom_text(chance, "subtitle"),
            _atom_link(chance),
            _atom_link(chance),
            "<id>tag:news.example,2026:feed</id>",
            "<author><name>Ada</name></author>",
            "<generator uri='/g'>G</generator>",
            _of(chance, "updated", DATES),
        ],
        chance.choice(ODD),
    )
    entries = "".join(_entry(chance) for _ in range(chance.randrange(4)))
    head = f"<feed xmlns='http://www.w3.org/2005/Atom' {NAMESPACES}{language}>"
    return f"<?xml version='1.0' encoding='utf-8'?>{head}{frame}{entries}</feed>"


def _atom_text(chance, name):
    kind = chance.choice(
        ("", "", " type='text'", " type='html'", " type='HTML'", " type='xhtml'", " type='image/png'")
    )
    return _of(chance, name, TEXTS, kind)


def _atom_link(chance):
    rel = chance.choice(
        (
            "",
            " rel='alternate'",
            " rel='enclosure'",
            " rel='self'",
            " rel='license'",
            " rel='hub'",
            " rel='Alternate'",
        )
    )
    kind = chance.choice(
        ("", "", " type='text/html'", " type='audio/mpeg'", " type='TEXT/HTML'", " type='html'")
    )
    return f"<link{rel}{kind} href={quoteattr(chance.choice(ADDRESSES))}/>"


def _entry(chance):
    person = chance.choice(
        (
            f"<name>{escape(chance.choice(NAMES))}</name>",
            f"<name>{escape(chance.choice(NAMES))}</name><email>ada@example.test</email><uri>/ada</uri>",
            "<email>ada@example.test</email>",
        )
    )
    return "<entry>{}</entry>".format(
        _some(
            chance,
            [
                _atom_text(chance, "title"),
                _atom_text(chance, "summary"),
                _atom_text(chance, "content"),
                _atom_text(chance, "rights"),
                _of(chance, "id", ADDRESSES),
                _of(chance, "published", DATES),
                _of(chance, "updated", DATES),
                _atom_link(chance),
                _atom_link(chance),
                f"<author>{person}</author>",
                "<category term='x'/>",
            ],
            chance.choice(ODD),
        )
    )
