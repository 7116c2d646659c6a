"""Renders a feed as Atom (RFC 4287), RSS 2.0 and JSON Feed 1.1."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import format_datetime
from html import escape
from typing import TYPE_CHECKING, Any

from pipeline.text.prose.verbatim_edits import first_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

ATOM_TYPE = "application/atom+xml; charset=utf-8"
RSS_TYPE = "application/rss+xml; charset=utf-8"
JSON_TYPE = "application/feed+json; charset=utf-8"

_ILLEGAL_IN_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_MAX_TITLE_CHARACTERS = 80
_RSS_NAMESPACES = {
    "xmlns:atom": "http://www.w3.org/2005/Atom",
    "xmlns:content": "http://purl.org/rss/1.0/modules/content/",
    "xmlns:dc": "http://purl.org/dc/elements/1.1/",
}


@dataclass(frozen=True)
class FeedMeta:
    """The data of a feed: `id` is a URI that never changes (`urn:uuid:…`), `self_url` the document's address."""

    id: str
    title: str
    self_url: str
    home_url: str
    updated: datetime
    author: str
    hubs: Sequence[str] = ()
    """The hubs at which readers can subscribe to changes (WebSub)."""


@dataclass(frozen=True)
class Enclosure:
    """A file of an entry; `bytes` is 0 if its size isn't known."""

    url: str
    mime_type: str
    bytes: int = 0


@dataclass(frozen=True)
class FeedEntry:
    """An entry of a feed.

    `id` is a URI that never changes; `content_html` is sanitised; the datetimes are aware.
    """

    id: str
    title: str
    url: str
    content_html: str
    content_text: str
    published_at: datetime
    updated_at: datetime
    language: str = ""
    author: str = ""
    enclosures: Sequence[Enclosure] = ()
    summary: str = ""
    """The plain text that lists show of the entry."""
    image: str = ""
    """The address of the picture above the entry."""
    tags: Sequence[str] = ()
    json_ld: Mapping[str, Any] = field(default_factory=dict)
    """The entry as schema.org describes it, only for the JSON Feed, which allows extensions."""


def remove_illegal_characters(text: str) -> str:
    """Return the text without the characters that XML 1.0 doesn't allow."""
    return _ILLEGAL_IN_XML.sub("", text)


def _escape_xml(text: str) -> str:
    # A carriage return is escaped too, because a parser turns a bare one into a line feed.
    return escape(remove_illegal_characters(text)).replace("\r", "&#13;")


def _render_attributes(values: dict[str, str]) -> str:
    # White space is escaped too, because a parser turns it into blanks in an attribute.
    quoted = (
        (name, _escape_xml(value).replace("\n", "&#10;").replace("\t", "&#9;"))
        for name, value in values.items()
    )
    return "".join(f' {name}="{value}"' for name, value in quoted)


def _element(name: str, text: str, **attributes: str) -> str:
    return f"<{name}{_render_attributes(attributes)}>{_escape_xml(text)}</{name}>"


def _empty_element(name: str, **attributes: str) -> str:
    return f"<{name}{_render_attributes(attributes)}/>"


def _document(lines: Iterable[str]) -> bytes:
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', *lines, ""]).encode()


def _to_utc(moment: datetime) -> datetime:
    """Return the moment in UTC. Raises `ValueError` if it is naive."""
    if moment.tzinfo is None:
        message = "A feed's moments have to know their time zone."
        raise ValueError(message)
    return moment.astimezone(UTC)


def _format_rfc3339(moment: datetime) -> str:
    return _to_utc(moment).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _format_rfc822(moment: datetime) -> str:
    return format_datetime(_to_utc(moment), usegmt=True)


def _valid_language(tag: str) -> str:
    """Return the language tag, or an empty string if it is malformed."""
    return tag if _LANGUAGE_TAG.fullmatch(tag) else ""


def _title_of(entry: FeedEntry) -> str:
    """Return the entry's title, or its first words, because Atom demands a title and readers show it in lists."""
    if remove_illegal_characters(entry.title).strip():
        return entry.title
    return first_words(entry.content_text, _MAX_TITLE_CHARACTERS)


def _render_atom_entry(entry: FeedEntry) -> Iterable[str]:
    """Yield the lines of an entry in Atom."""
    language = _valid_language(entry.language)
    yield f"<entry{_render_attributes({'xml:lang': language} if language else {})}>"
    yield _element("id", entry.id)
    yield _element("title", _title_of(entry), type="text")
    yield _element("published", _format_rfc3339(entry.published_at))
    yield _element("updated", _format_rfc3339(entry.updated_at))
    if remove_illegal_characters(entry.author).strip():
        yield f"<author>{_element('name', entry.author)}</author>"
    if entry.url:
        yield _empty_element("link", rel="alternate", type="text/html", href=entry.url)
    for enclosure in entry.enclosures:
        size = {"length": str(enclosure.bytes)} if enclosure.bytes else {}
        yield _empty_element("link", rel="enclosure", type=enclosure.mime_type, href=enclosure.url, **size)
    for tag in entry.tags:
        yield _empty_element("category", term=tag)
    if entry.summary:
        yield _element("summary", entry.summary, type="text")
    yield _element("content", entry.content_html, type="html")
    yield "</entry>"


def render_atom(meta: FeedMeta, entries: Sequence[FeedEntry]) -> bytes:
    """Return the feed as an Atom document."""
    # RFC 4287 demands an author of the feed, because entries without one take it.
    author = meta.author if remove_illegal_characters(meta.author).strip() else meta.title
    lines = [
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        _element("id", meta.id),
        _element("title", meta.title, type="text"),
        _element("updated", _format_rfc3339(meta.updated)),
        f"<author>{_element('name', author)}</author>",
        _empty_element("link", rel="self", type="application/atom+xml", href=meta.self_url),
        _empty_element("link", rel="alternate", type="text/html", href=meta.home_url),
        *(_empty_element("link", rel="hub", href=hub) for hub in meta.hubs),
    ]
    for entry in entries:
        lines.extend(_render_atom_entry(entry))
    return _document([*lines, "</feed>"])


def _render_rss_item(entry: FeedEntry) -> Iterable[str]:
    """Yield the lines of an entry in RSS, with its first enclosure only."""
    yield "<item>"
    yield _element("guid", entry.id, isPermaLink="false")
    yield _element("title", _title_of(entry))
    if entry.url:
        yield _element("link", entry.url)
    yield _element("pubDate", _format_rfc822(entry.published_at))
    if remove_illegal_characters(entry.author).strip():
        # RSS's own author element has to be a mail address.
        yield _element("dc:creator", entry.author)
    for tag in entry.tags:
        yield _element("category", tag)
    yield _element("description", entry.summary or entry.content_text)
    yield _element("content:encoded", entry.content_html)
    # RSS allows one enclosure per item; the other two formats list all.
    for enclosure in entry.enclosures[:1]:
        yield _empty_element(
            "enclosure", url=enclosure.url, length=str(enclosure.bytes), type=enclosure.mime_type
        )
    yield "</item>"


def render_rss(meta: FeedMeta, entries: Sequence[FeedEntry]) -> bytes:
    """Return the feed as an RSS 2.0 document."""
    lines = [
        f'<rss version="2.0"{_render_attributes(_RSS_NAMESPACES)}>',
        "<channel>",
        _element("title", meta.title),
        _element("link", meta.home_url),
        _element("description", meta.title),
        _element("lastBuildDate", _format_rfc822(meta.updated)),
        _empty_element("atom:link", rel="self", type="application/rss+xml", href=meta.self_url),
        *(_empty_element("atom:link", rel="hub", href=hub) for hub in meta.hubs),
    ]
    for entry in entries:
        lines.extend(_render_rss_item(entry))
    return _document([*lines, "</channel>", "</rss>"])


def _render_json_item(entry: FeedEntry) -> dict[str, Any]:
    """Return an entry as JSON Feed has it; fields without a value are left out."""
    item: dict[str, Any] = {"id": remove_illegal_characters(entry.id)}
    texts = (("url", entry.url), ("title", entry.title), ("language", _valid_language(entry.language)))
    item.update(
        {name: remove_illegal_characters(text) for name, text in texts if remove_illegal_characters(text)}
    )
    item["content_html"] = remove_illegal_characters(entry.content_html)
    item["content_text"] = remove_illegal_characters(entry.content_text)
    item["date_published"] = _format_rfc3339(entry.published_at)
    item["date_modified"] = _format_rfc3339(entry.updated_at)
    if remove_illegal_characters(entry.author).strip():
        item["authors"] = [{"name": remove_illegal_characters(entry.author)}]
    optional = (
        ("summary", remove_illegal_characters(entry.summary)),
        ("image", remove_illegal_characters(entry.image)),
        ("tags", list(map(remove_illegal_characters, entry.tags))),
    )
    item.update({name: value for name, value in optional if value})
    if entry.json_ld:
        item["_json_ld"] = dict(entry.json_ld)
    if entry.enclosures:
        item["attachments"] = [_json_attachment(enclosure) for enclosure in entry.enclosures]
    return item


def _json_attachment(enclosure: Enclosure) -> dict[str, Any]:
    attachment: dict[str, Any] = {
        "url": remove_illegal_characters(enclosure.url),
        "mime_type": remove_illegal_characters(enclosure.mime_type),
    }
    if enclosure.bytes:
        attachment["size_in_bytes"] = enclosure.bytes
    return attachment


def render_json_feed(meta: FeedMeta, entries: Sequence[FeedEntry]) -> bytes:
    """Return the feed as a JSON Feed document."""
    document: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": remove_illegal_characters(meta.title),
        "home_page_url": meta.home_url,
        "feed_url": meta.self_url,
    }
    if remove_illegal_characters(meta.author).strip():
        document["authors"] = [{"name": remove_illegal_characters(meta.author)}]
    if meta.hubs:
        document["hubs"] = [{"type": "WebSub", "url": remove_illegal_characters(hub)} for hub in meta.hubs]
    document["items"] = [_render_json_item(entry) for entry in entries]
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
