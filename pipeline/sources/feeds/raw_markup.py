"""Reads from raw markup what feedparser drops: skip hours and days, deleted entries, feed links.

It also makes the links of an entry's HTML absolute.
"""

from __future__ import annotations

import html
import re
from collections import deque
from typing import Any, Final
from urllib.parse import urljoin

PAGE_TYPES: Final = frozenset({"html", "text/html", "xhtml", "application/xhtml+xml"})
"""Types of a link that leads to a page; feedparser shortens some to `html` and `xhtml`."""

MAX_LINKS: Final = 60
MAX_DELETED: Final = 200
MAX_PAGE_CHARACTERS: Final = 1_000_000
MAX_FRAME_CHARACTERS: Final = 100_000
TOMBSTONES_NAMESPACE: Final = "http://purl.org/atompub/tombstones/1.0"
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_FIRST_ENTRY: Final = re.compile(r"<(?:[\w.-]{1,40}:)?(?:item|entry)[\s>/]", re.IGNORECASE)
_ENTRY_END: Final = re.compile(r"</(?:[\w.-]{1,40}:)?(?:item|entry)\s*>", re.IGNORECASE)


def frame_of(text: str) -> str:
    """Return the text before the first entry and after the last one, each cut to `MAX_FRAME_CHARACTERS`."""
    first = _FIRST_ENTRY.search(text)
    if first is None:
        return text[:MAX_FRAME_CHARACTERS]
    # `deque` keeps only the last match, so that many entries cost no memory.
    ends = deque(_ENTRY_END.finditer(text, first.end()), maxlen=1)
    after_entries = text[ends[0].end() :][:MAX_FRAME_CHARACTERS] if ends else ""
    return text[: first.start()][:MAX_FRAME_CHARACTERS] + after_entries


MAX_UNCUT_ENTRIES: Final = 5000
ENTRIES_KEPT_AT_EACH_END: Final = 1500


def without_middle(text: str) -> tuple[str, bool]:
    """Return the text, and whether entries were cut out of its middle because there are very many.

    Feeds list the newest first or last, and of all entries the newest 200 are kept; feedparser needs twelve
    seconds for 50,000.
    """
    if text.count("</item>") + text.count("</entry>") <= MAX_UNCUT_ENTRIES:
        return text, False
    ends = [end.end() for end in _ENTRY_END.finditer(text)]
    return text[: ends[ENTRIES_KEPT_AT_EACH_END - 1]] + text[ends[-ENTRIES_KEPT_AT_EACH_END - 1] :], True


_SKIP_HOURS: Final = re.compile(r"<skiphours\b[^<>]{0,200}>", re.IGNORECASE)
_SKIP_DAYS: Final = re.compile(r"<skipdays\b[^<>]{0,200}>", re.IGNORECASE)


def _content_of(opening: re.Pattern[str], frame: str) -> str:
    """Return the content of the first such element in lower case.

    It is empty if there is no such element, or if it doesn't end within 4,000 characters.
    """
    match = opening.search(frame)
    content, end, _ = frame[match.end() :][:4000].lower().partition("</skip") if match else ("", "", "")
    return content if end else ""


def skipped_hours(frame: str) -> list[int]:
    """Return `skipHours` in GMT, 0 to 23, or an empty list if all 24 are named. RSS 0.91 counts to 24."""
    values = re.findall(r"<hour\b[^<>]{0,200}>\s*+([0-9]{1,2})\s*+</hour", _content_of(_SKIP_HOURS, frame))
    hours = sorted({int(hour) % 24 for hour in values if int(hour) <= 24})
    return hours if len(hours) < 24 else []


def skipped_days(frame: str) -> list[int]:
    """Return `skipDays` in GMT, with Monday as 0, or an empty list if all seven are named."""
    values = re.findall(r"<day\b[^<>]{0,200}>\s*+([a-z]{6,9})\s*+</day", _content_of(_SKIP_DAYS, frame))
    days = sorted({DAYS.index(day) for day in values if day in DAYS})
    return days if len(days) < 7 else []


def deleted_ids(text: str) -> list[str]:
    """Return the ids of at most `MAX_DELETED` entries that an Atom feed declares deleted (RFC 6721)."""
    bound_prefix = re.search(
        r"xmlns:([\w.-]{1,40})\s*=\s*[\"']" + re.escape(TOMBSTONES_NAMESPACE) + r"/?[\"']",
        text[:MAX_FRAME_CHARACTERS],
    )
    if bound_prefix is None and TOMBSTONES_NAMESPACE not in text:
        return []
    if bound_prefix:
        prefix, namespace_inside = re.escape(bound_prefix[1]) + ":", ""
    else:
        # Without a prefix each element declares the namespace itself: `<deleted-entry xmlns="…" ref="…">`.
        prefix, namespace_inside = "", r"(?=[^<>]{0,2000}" + re.escape(TOMBSTONES_NAMESPACE) + ")"
    elements = re.finditer(rf"<{prefix}deleted-entry\b{namespace_inside}([^<>]{{1,4000}})>", text)
    ids: dict[str, None] = {}
    for element in elements:
        ref = re.search(r"\bref\s*=\s*(?:\"([^\"]{1,2000})\"|'([^']{1,2000})')", element[1])
        if ref:
            ids[html.unescape(ref[1] or ref[2]).strip()] = None
        if len(ids) >= MAX_DELETED:
            break
    return list(ids)


_LINK: Final = re.compile(r"<link\b([^<>]{1,2000})>", re.IGNORECASE)
_ANCHOR: Final = re.compile(r"<a\b([^<>]{1,2000})>(.{0,200}?)</a", re.IGNORECASE | re.DOTALL)
_BASE: Final = re.compile(r"<base\b([^<>]{1,2000})>", re.IGNORECASE)
_FEED_TYPE: Final = re.compile(
    r"^(?:application/(?:rss\+xml|atom\+xml|rdf\+xml|feed\+json|json)|text/xml)\b", re.IGNORECASE
)
_FEED_WORD: Final = re.compile(r"(?:^|[^a-z])(?:feeds?|rss2?|atom|rdf)(?:[^a-z]|$)", re.IGNORECASE)


def links_of(text: str, url: str) -> list[dict[str, Any]]:
    """Return the links of a web page that lead, or seem to lead, to its feeds; at most `MAX_LINKS`.

    `kind` is `link` for `<link rel=alternate>` and `anchor` for `<a>`; `type` is a MIME type or empty.
    """
    text = text[:MAX_PAGE_CHARACTERS]
    base = _BASE.search(text)
    base_href = _attribute(base[1], "href") if base else ""
    base_url = _absolute_address(url, base_href) or url
    links_by_url: dict[str, dict[str, Any]] = {}
    for link in _LINK.finditer(text):
        mime_type = _attribute(link[1], "type")
        if "alternate" in _attribute(link[1], "rel").lower().split() and _FEED_TYPE.match(mime_type):
            record = {"title": _attribute(link[1], "title"), "type": mime_type.lower()[:60], "kind": "link"}
            _add_once(links_by_url, _absolute_address(base_url, _attribute(link[1], "href")), record)
    for anchor in _ANCHOR.finditer(text):
        label = html.unescape(re.sub(r"<[^<>]{0,500}>", " ", anchor[2]))
        if _FEED_WORD.search(_attribute(anchor[1], "href")) or _FEED_WORD.search(label):
            record = {"title": label, "type": "", "kind": "anchor"}
            _add_once(links_by_url, _absolute_address(base_url, _attribute(anchor[1], "href")), record)
    return list(links_by_url.values())[:MAX_LINKS]


def _add_once(links_by_url: dict[str, dict[str, Any]], address: str, record: dict[str, str]) -> None:
    """Add a link unless its address is empty or there already."""
    if address and address not in links_by_url:
        links_by_url[address] = {**record, "url": address, "title": " ".join(record["title"].split())[:200]}


def _attribute(attributes: str, name: str) -> str:
    """Return an attribute's value, or an empty string if there is no such attribute."""
    match = re.search(
        rf"(?:^|[\s\"']){name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", attributes, re.IGNORECASE
    )
    return html.unescape(match[1] or match[2] or match[3] or "").strip() if match else ""


def _absolute_address(base: str, href: str) -> str:
    """Return the absolute http(s) address without its fragment, or "" if it isn't one or is too long."""
    try:
        address = urljoin(base, "".join(href.split())).partition("#")[0] if href else ""
    except ValueError:
        return ""
    return address if address.lower().startswith(("http://", "https://")) and len(address) <= 2048 else ""


_START_TAG: Final = re.compile(r"<[a-z][^<>]{1,8000}>", re.IGNORECASE)
_RELATIVE_ADDRESS: Final = re.compile(
    r"""(\s(?:href|src|cite|action|background|longdesc|poster|data)\s*=\s*)"""
    r"""(?:"((?![a-z][a-z0-9+.-]*:)[^"]+)"|'((?![a-z][a-z0-9+.-]*:)[^']+)'|((?![a-z][a-z0-9+.-]*:)[^\s"'>]+))""",
    re.IGNORECASE,
)


def make_links_absolute(html: str, base: str) -> str:
    """Return the HTML with the addresses in its attributes made absolute, unless they can't be read."""

    def resolve_attribute(attribute: re.Match[str]) -> str:
        value = attribute[2] or attribute[3] or attribute[4]
        try:
            address = urljoin(base, value.strip())
        except ValueError:
            return attribute[0]
        quote = "'" if attribute[3] else '"'
        return f"{attribute[1]}{quote}{address}{quote}"

    if "=" not in html:
        return html
    return _START_TAG.sub(lambda tag: _RELATIVE_ADDRESS.sub(resolve_attribute, tag[0]), html)
