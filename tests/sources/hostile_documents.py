"""Markup that parsers take long for, and honest documents as large as any."""

from __future__ import annotations

from typing import Final

HOSTILE: Final = {
    "nested tags": "<a>" * 200_000 + "x" + "</a>" * 200_000,
    "nested tags that stay open": "<div>" * 200_000 + "x",
    "nested tables": "<table><tr><td>" * 60_000,
    "formatting left open": "<b><i><font>" * 60_000 + "<p>x</p>" * 1000,
    "tags that end each other's way": "<b><p></b>" * 100_000,
    "formatting left open in each block": "".join(f"<p><b id={n}></p>" for n in range(100_000)),
    "links around blocks": "<a><div>" * 50_000,
    "attributes": "<a " + " ".join(f"a{n}='1'" for n in range(100_000)) + ">x</a>",
    "one attribute again and again": "<a " + "a " * 500_000 + ">x</a>",
    "many tags of many attributes": ("<a " + " ".join(f"a{n}='1'" for n in range(1000)) + ">x</a>") * 300,
    "tags that never end": "<a " * 400_000,
    "end tags alone": "</p>" * 1_000_000,
    "line breaks": "<br>" * 1_000_000,
    "paragraphs": "<p>x" * 1_000_000,
    "styles": "<p style='color:red;margin:1px'>x</p>" * 100_000,
    "links": "".join(f"<a href='/2026/11/a-b-c-d{n}'>a b c d</a>" for n in range(80_000)),
    "a huge name": "<" + "a" * 4_000_000 + ">x",
    "many huge names": ("<" + "a" * 10_000 + ">") * 400,
    "a huge value": "<a href='" + "a" * 4_000_000 + "'>x</a>",
    "entities": "&amp;" * 900_000,
    "ampersands": "&" * 4_000_000,
    "comments that stay open": "<!--" * 1_000_000,
    "declarations that stay open": "<!" * 2_000_000,
    "sections that stay open": "<![CDATA[" * 400_000,
    "instructions that stay open": "<?" * 2_000_000,
    "quotes that stay open": '<a href="' * 400_000,
    "signs": "<" * 4_000_000,
    "ends of nothing": "</" * 2_000_000,
    "namespaces": "<x " + " ".join(f"xmlns:n{n}='urn:{n}'" for n in range(50_000)) + "><n1:a/></x>",
    "nested namespaces": "".join(f"<n{n}:a xmlns:n{n}='urn:{n}'>" for n in range(100_000)),
    "a section that isn't one": '<a b="<![CDATA[">' + "<i>x</i>" * 300_000 + "]]>",
    "scripts": "<script>" * 400_000,
    "templates": "<template>" * 200_000,
    "lists": "<ul><li>" * 200_000,
    "rows": "<table>" + "<tr><td>x" * 400_000,
    "hidden parts": "<div hidden>x</div>" * 200_000,
    "bases": f"<a xml:base='https://x.example/{'a/' * 4000}'>" * 400,
    "spaces": " " * 4_000_000,
    "marks": "a" + "\u0301" * 1_500_000,
}
_WORDS: Final = "Some words of an article that go on for a while, as those of a paragraph do. "
_PARAGRAPH: Final = (
    f"<p>{_WORDS * 7}<a href='https://x.example/2026/11/a-long-read'>link</a> <b>bold</b></p>\n"
)
# Fifteen elements inside each other, as content systems nest them.
ARTICLE: Final = "<div class='c' data-id='7'>" * 15 + _PARAGRAPH * 16 + "</div>" * 15


def rss(*items: str, head: str = "") -> str:
    return f"<?xml version='1.0'?><rss version='2.0'><channel><title>x</title>{head}{''.join(items)}</channel></rss>"


def item(body: str, number: int = 0) -> str:
    return (
        f"<item><guid>g{number}</guid><title>t</title><link>https://x.example/{number}</link><dc>1</dc>"
        f"<description>{body}</description></item>"
    )


def atom(*bodies: str) -> str:
    entries = "".join(
        f"<entry><id>g{n}</id><title>t</title><content type='xhtml'><div>{body}</div></content></entry>"
        for n, body in enumerate(bodies)
    )
    return f"<feed xmlns='http://www.w3.org/2005/Atom'><title>x</title>{entries}</feed>"


def page(inside: str) -> str:
    return f"<!doctype html><html><head><title>T</title></head><body>{inside}</body></html>"


def sitemap(inside: str) -> str:
    return f"<urlset><url><loc>https://x.example/a</loc>{inside}</url></urlset>"
