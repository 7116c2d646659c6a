"""Reads from raw markup what feedparser drops: hours and days to skip, deleted entries, links to feeds; cuts long feeds."""

from __future__ import annotations

import html
import re
from collections import deque
from typing import Any, Final
from urllib.parse import urljoin

PAGE_TYPES: Final = frozenset({"html", "text/html", "xhtml", "application/xhtml+xml"})
"""Types of a link that leads to a page; `html` and `xhtml` are what feedparser takes for them."""

MAX_LINKS: Final = 60
MAX_DELETED: Final = 200
MAX_PAGE_CHARS: Final = 1_000_000
FRAME_CHARS: Final = 100_000
TOMBSTONES: Final = "http://purl.org/atompub/tombstones/1.0"
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_FIRST_ENTRY: Final = re.compile(r"<(?:[\w.-]{1,40}:)?(?:item|entry)[\s>/]", re.IGNORECASE)
_ENTRY_END: Final = re.compile(r"</(?:[\w.-]{1,40}:)?(?:item|entry)\s*>", re.IGNORECASE)


def frame_of(text: str) -> str:
    """What stands before the first entry and after the last one."""
    first = _FIRST_ENTRY.search(text)
    if first is None:
        return text[:FRAME_CHARS]
    ends = deque(_ENTRY_END.finditer(text, first.end()), maxlen=1)
    return text[: first.start()][:FRAME_CHARS] + (text[ends[0].end() :][:FRAME_CHARS] if ends else "")


MANY_ENTRIES: Final = 5000
KEPT_AT_EACH_END: Final = 1500


def without_middle(text: str) -> tuple[str, bool]:
    """The text with the entries of both ends, where there are very many, and whether any were cut out.

    Feeds list the newest first or last, and of all entries the newest 200 are kept; feedparser needs twelve seconds for
    50,000.
    """
    if text.count("</item>") + text.count("</entry>") <= MANY_ENTRIES:
        return text, False
    ends = [end.end() for end in _ENTRY_END.finditer(text)]
    return text[: ends[KEPT_AT_EACH_END - 1]] + text[ends[-KEPT_AT_EACH_END - 1] :], True


_SKIP_HOURS: Final = re.compile(r"<skiphours\b[^<>]{0,200}>", re.IGNORECASE)
_SKIP_DAYS: Final = re.compile(r"<skipdays\b[^<>]{0,200}>", re.IGNORECASE)


def _inside(opening: re.Pattern[str], frame: str) -> str:
    """What stands in the first of them; where it doesn't end soon, nothing."""
    found = opening.search(frame)
    told, end, _ = frame[found.end() :][:4000].lower().partition("</skip") if found else ("", "", "")
    return told if end else ""


def skipped_hours(frame: str) -> list[int]:
    """`skipHours` in GMT, 0 to 23; RSS 0.91 counts from 1 to 24. All 24 of them mean nothing."""
    written = re.findall(r"<hour\b[^<>]{0,200}>\s*+([0-9]{1,2})\s*+</hour", _inside(_SKIP_HOURS, frame))
    hours = sorted({int(hour) % 24 for hour in written if int(hour) <= 24})
    return hours if len(hours) < 24 else []


def skipped_days(frame: str) -> list[int]:
    """`skipDays` in GMT, Monday 0; all seven of them mean nothing."""
    written = re.findall(r"<day\b[^<>]{0,200}>\s*+([a-z]{6,9})\s*+</day", _inside(_SKIP_DAYS, frame))
    days = sorted({DAYS.index(day) for day in written if day in DAYS})
    return days if len(days) < 7 else []


def deleted_ids(text: str) -> list[str]:
    """The ids of entries that an Atom feed says were deleted (RFC 6721, `at:deleted-entry`)."""
    bound = re.search(
        r"xmlns:([\w.-]{1,40})\s*=\s*[\"']" + re.escape(TOMBSTONES) + r"/?[\"']", text[:FRAME_CHARS]
    )
    bare = "" if bound or TOMBSTONES not in text else r"(?=[^<>]{0,2000}" + re.escape(TOMBSTONES) + ")"
    if not bound and not bare:
        return []
    prefix = re.escape(bound[1]) + ":" if bound else ""
    elements = re.finditer(rf"<{prefix}deleted-entry\b{bare}([^<>]{{1,4000}})>", text)
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
    """The links of a web page that say, or look as if, they lead to its feeds.

    `kind` is `link` for `<link rel=alternate>` and `anchor` for `<a>`; `type` is a MIME type or empty.
    """
    text = text[:MAX_PAGE_CHARS]
    base = _BASE.search(text)
    written_base = _attribute(base[1], "href") if base else ""
    start = _join(url, written_base) or url
    found: dict[str, dict[str, Any]] = {}
    for link in _LINK.finditer(text):
        kind = _attribute(link[1], "type")
        if "alternate" in _attribute(link[1], "rel").lower().split() and _FEED_TYPE.match(kind):
            record = {"title": _attribute(link[1], "title"), "type": kind.lower()[:60], "kind": "link"}
            _keep(found, _join(start, _attribute(link[1], "href")), record)
    for anchor in _ANCHOR.finditer(text):
        label = html.unescape(re.sub(r"<[^<>]{0,500}>", " ", anchor[2]))
        if _FEED_WORD.search(_attribute(anchor[1], "href")) or _FEED_WORD.search(label):
            record = {"title": label, "type": "", "kind": "anchor"}
            _keep(found, _join(start, _attribute(anchor[1], "href")), record)
    return list(found.values())[:MAX_LINKS]


def _keep(found: dict[str, dict[str, Any]], address: str, record: dict[str, str]) -> None:
    if address and address not in found:
        found[address] = {**record, "url": address, "title": " ".join(record["title"].split())[:200]}


def _attribute(attributes: str, name: str) -> str:
    match = re.search(
        rf"(?:^|[\s\"']){name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", attributes, re.IGNORECASE
    )
    return html.unescape(match[1] or match[2] or match[3] or "").strip() if match else ""


def _join(base: str, written: str) -> str:
    """The absolute http(s) address without its fragment, or nothing."""
    try:
        address = urljoin(base, "".join(written.split())).partition("#")[0] if written else ""
    except ValueError:
        return ""
    return address if address.lower().startswith(("http://", "https://")) and len(address) <= 2048 else ""
