"""Parses one document into records of plain JSON types: what a feed says, entry by entry.

It runs in the child process that parses hostile input, so it imports nothing that the child doesn't need.
"""

from __future__ import annotations

import io
import json
import re
from calendar import timegm
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urljoin

from pipeline.sources.feeds.decoding import ILLEGAL_CHARACTERS, decode
from pipeline.sources.feeds.entry_order import arrange
from pipeline.sources.feeds.raw_markup import (
    PAGE_TYPES,
    deleted_ids,
    frame_of,
    links_of,
    make_links_absolute,
    skipped_days,
    skipped_hours,
    without_middle,
)
from pipeline.text.markup_bounds import declares_entities, is_feed_too_much

# A million empty objects fit into a feed of 5 MiB.
MAX_JSON_ITEMS: Final = 5000
MAX_MEDIA: Final = 20
MAX_URL_CHARACTERS: Final = 2048
MAX_LINE_CHARACTERS: Final = 2000
MAX_LICENCE_CHARACTERS: Final = 500
MAX_HUBS: Final = 3
# No feed is older than the web, and servers without a clock say 1970.
EARLIEST_YEAR: Final = 1990
LATEST_YEAR: Final = 9999

# A feed behind the document type of a page is still a feed; some generators write that.
_PAGE_START: Final = re.compile(
    r"(?:<\?.{0,200}?>\s*)?(?:<!--.{0,1000}?-->\s*)?"
    r"<(?:html\b|!doctype\s+html\b(?![^>]{0,500}>\s*(?:<!--.{0,1000}?-->\s*)?<(?:rss|feed|rdf:RDF)\b))",
    re.IGNORECASE | re.DOTALL,
)

Record = dict[str, Any]


class FeedUnreadable(Exception):
    """Raised for a document that is no readable feed, with a word for the parent and a page's links."""

    def __init__(self, problem: str, links: list[Record] | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.links = links or []


def read_document(document: bytes, *, url: str, content_type: str) -> Record:
    """Return the feed in plain JSON types, newest entry first. Raises `FeedUnreadable`."""
    text = decode(document, content_type)
    # Feedparser takes quadratic time over white space before the first element.
    text = text.lstrip("\ufeff \t\r\n")
    start = text[:2000]
    if not start:
        raise FeedUnreadable(problem="empty")
    if start.startswith("{"):
        feed = _read_json_feed(text, url)
    else:
        if _PAGE_START.match(start):
            raise FeedUnreadable(problem="html", links=links_of(text, url))
        if declares_entities(text):
            raise FeedUnreadable(problem="entities")
        text, is_cut = without_middle(text)
        if is_feed_too_much(text):
            raise FeedUnreadable(problem="too_complex")
        feed = _read_xml_feed(text, url)
        feed["is_whole"] = feed["is_whole"] and not is_cut
    return arrange(feed)


def _read_xml_feed(text: str, url: str) -> Record:
    parsed = _parse_xml(text, url)
    if not parsed.get("version") and not parsed["entries"]:
        raise FeedUnreadable(
            problem="html" if re.search(r"(?i)<(?:html|body|head)\b", text) else "not_a_feed"
        )
    feed = parsed["feed"]
    entries = [_read_xml_entry(entry, url) for entry in parsed["entries"]]
    usable = [entry for entry in entries if _has_content(entry)]
    if not usable and parsed.get("bozo") and (entries or not feed.get("title")):
        raise FeedUnreadable(problem="broken")
    language = _clean_line(feed.get("language"))
    licence = _licence_of(feed)
    for entry in usable:
        entry["language"] = entry["language"] or language
        entry["licence"] = entry["licence"] or licence
    frame = frame_of(text)
    return {
        "version": parsed.get("version") or "",
        "title": _clean_line(feed.get("title")),
        "entries": usable,
        "malformed": len(entries) - len(usable),
        "wait_seconds": _wait_seconds(feed),
        "skip_hours": skipped_hours(frame),
        "skip_days": skipped_days(frame),
        "deleted": deleted_ids(text),
        "is_whole": not parsed.get("bozo") and len(entries) == len(usable),
        **_hubs_of(feed.get("links") or [], url),
    }


def _parse_xml(text: str, url: str) -> Any:
    # Imported here, so that the limits apply to it and the parent never pays for it.
    import feedparser  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415
    import feedparser.mixin  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    from pipeline.sources.feeds import feedparser_bounds  # noqa: PLC0415

    feedparser_bounds.bound()
    # Ids must stay exact strings: resolved, they would change with the feed's address.
    feedparser.mixin._FeedParserMixin.can_be_relative_uri.discard("id")  # noqa: SLF001
    # A stream, since feedparser takes other things for a URL to fetch or a file to open. It doesn't sanitise: that
    # doubles the cost, and whoever shows a body has to do it anyway, since pushed ones come as they are.
    try:
        return feedparser.parse(
            io.BytesIO(text.encode("utf-8")),
            response_headers={"content-type": "application/xml; charset=utf-8", "content-location": url},
            # Resolving addresses in bodies would be half of the cost; those of elements are always resolved.
            resolve_relative_uris=False,
            sanitize_html=False,
        )
    except feedparser_bounds.TooMuch:
        raise FeedUnreadable(problem="too_complex") from None


def _read_xml_entry(entry: Any, url: str) -> Record:
    body, body_format = _body_of(entry, url)
    title_detail = entry.get("title_detail") or {}
    author_detail = entry.get("author_detail") or {}
    content = (entry.get("content") or [{}])[0]
    identity = _clean(entry.get("id")).strip()
    # feedparser uses the guid as address where there is none; most guids that aren't URLs lead nowhere.
    address = _address_of(entry)
    is_named_only = address == identity and not re.match(r"(?i)https?:", identity)
    return {
        "id": identity,
        "url": "" if is_named_only else _web_address(address, url),
        "title": _clean(entry.get("title")),
        "title_format": "html" if "html" in str(title_detail.get("type")) else "text",
        "body": body,
        "body_format": body_format,
        "author": _clean_line(author_detail.get("name") or entry.get("author")),
        "language": _clean_line(content.get("language") or title_detail.get("language")),
        # `in`, because feedparser otherwise answers `published` for a missing `updated`, with a warning.
        "at": _timestamp(entry.get("published_parsed"))
        or (_timestamp(entry["updated_parsed"]) if "updated_parsed" in entry else None)
        or _timestamp(entry.get("created_parsed")),
        "media": _media_of(entry, url),
        "licence": _licence_of(entry),
    }


def _address_of(entry: Any) -> Any:
    """Return the entry's page; feedparser answers the id where a link's type has a `; charset=utf-8`."""
    address = entry.get("link")
    if address and address != entry.get("id"):
        return address
    pages = [
        link.get("href")
        for link in entry.get("links") or []
        if link.get("rel") == "alternate"
        and str(link.get("type")).partition(";")[0].strip().lower() in PAGE_TYPES
    ]
    return pages[-1] if pages else address


def _licence_of(element: Any) -> str:
    """Return a licence's address (creativeCommons, cc, `rel=license`), else the text about rights."""
    links = [link.get("href") for link in element.get("links") or [] if link.get("rel") == "license"]
    candidates = [element.get("license"), element.get("cc_license"), *links, element.get("rights")]
    for value in candidates:
        text = value.get("rdf:resource") if isinstance(value, dict) else value
        if line := _clean_line(text)[:MAX_LICENCE_CHARACTERS]:
            return line
    return ""


def _hubs_of(links: list[Any], url: str) -> Record:
    """Return the addresses of WebSub hubs, and the feed's own address, which is its topic there."""
    hubs = [_web_address(link.get("href"), url) for link in links if link.get("rel") == "hub"]
    own = [_web_address(link.get("href"), url) for link in links if link.get("rel") == "self"]
    return {"hubs": [hub for hub in hubs if hub][:MAX_HUBS], "self": next(filter(None, own), "")}


def _body_of(entry: Any, url: str) -> tuple[str, str]:
    """Return the fullest text and its format: `content` before the summary, HTML before text."""
    contents = [content for content in entry.get("content") or [] if _clean(content.get("value")).strip()]
    contents.sort(key=lambda content: "html" not in str(content.get("type")))
    detail = entry.get("summary_detail") or {}
    summary = {"value": entry.get("summary"), "type": detail.get("type"), "base": detail.get("base")}
    chosen = contents[0] if contents else summary
    value = _clean(chosen.get("value"))
    # feedparser calls every RSS description HTML; without markup its line breaks would mean nothing.
    is_html = "html" in str(chosen.get("type")) and re.search(r"[<&]", value) is not None
    if not is_html:
        return value, "text"
    return make_links_absolute(value, _web_address(chosen.get("base"), url) or url), "html"


def _media_of(entry: Any, url: str) -> list[Record]:
    files = [(link.get("href"), link.get("type")) for link in entry.get("enclosures") or []]
    files += [(media.get("url"), media.get("type")) for media in entry.get("media_content") or []]
    return _media_records(files, url)


def _media_records(files: list[tuple[Any, Any]], url: str) -> list[Record]:
    media = {}
    for href, mime in files[: 10 * MAX_MEDIA]:
        address = _web_address(href, url)
        if address and address not in media:
            is_type = isinstance(mime, str) and re.fullmatch(r"[\w.+-]{1,60}/[\w.+-]{1,60}", mime, re.ASCII)
            media[address] = {"url": address, "type": mime.lower() if is_type else ""}
    return list(media.values())[:MAX_MEDIA]


def _read_json_feed(text: str, url: str) -> Record:
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError):
        raise FeedUnreadable(problem="broken") from None
    if not isinstance(feed, dict) or "jsonfeed.org/version" not in str(feed.get("version"))[:100]:
        raise FeedUnreadable(problem="not_a_feed")
    items = feed.get("items")
    language = _clean_line(feed.get("language"))
    listed = items[:MAX_JSON_ITEMS] if isinstance(items, list) else []
    entries = [_read_json_item(item, url, language) for item in listed if isinstance(item, dict)]
    usable = [entry for entry in entries if _has_content(entry)]
    return {
        "version": "json",
        "title": _clean_line(feed.get("title")),
        "entries": usable,
        "malformed": len(listed) - len(usable),
        "wait_seconds": None,
        "skip_hours": [],
        "skip_days": [],
        "deleted": [],
        "is_whole": len(listed) == len(usable),
        **_json_hubs_of(feed, url),
    }


def _json_hubs_of(feed: Record, url: str) -> Record:
    hubs = feed.get("hubs")
    listed = [hub.get("url") for hub in hubs if isinstance(hub, dict)] if isinstance(hubs, list) else []
    return _hubs_of(
        [*({"rel": "hub", "href": hub} for hub in listed), {"rel": "self", "href": feed.get("feed_url")}], url
    )


def _read_json_item(item: Record, url: str, language: str) -> Record:
    body = _clean(item.get("content_html"))
    body_format = "html" if body.strip() else "text"
    identity = item.get("id")
    # Version 1.1 asks for a string; a number is to be taken as one (jsonfeed.org/version/1.1).
    is_number = isinstance(identity, int | float) and not isinstance(identity, bool)
    authors = item.get("authors")
    first_author = authors[0] if isinstance(authors, list) and authors else item.get("author")
    attachments = item.get("attachments")
    listed = attachments if isinstance(attachments, list) else []
    return {
        "id": str(identity)[:100] if is_number else _clean(identity).strip(),
        "url": _web_address(item.get("url") or item.get("external_url"), url),
        "title": _clean(item.get("title")),
        "title_format": "text",
        "body": body if body.strip() else _clean(item.get("content_text")) or _clean(item.get("summary")),
        "body_format": body_format,
        "author": _clean_line(first_author.get("name")) if isinstance(first_author, dict) else "",
        "language": _clean_line(item.get("language")) or language,
        "at": _iso_timestamp(item.get("date_published")) or _iso_timestamp(item.get("date_modified")),
        "media": _media_records(
            [(each.get("url"), each.get("mime_type")) for each in listed if isinstance(each, dict)], url
        ),
        "licence": "",
    }


def _has_content(entry: Record) -> bool:
    return any(entry[key].strip() for key in ("id", "url", "title", "body"))


def _clean(value: object) -> str:
    return ILLEGAL_CHARACTERS.sub("", value) if isinstance(value, str) else ""


def _clean_line(value: object) -> str:
    return " ".join(_clean(value)[:MAX_LINE_CHARACTERS].split())


def _web_address(value: object, base: str) -> str:
    """Return the absolute http(s) address, or ""."""
    text = "".join(_clean(value)[: 4 * MAX_URL_CHARACTERS].split())
    try:
        address = urljoin(base, text) if text else ""
    except ValueError:
        return ""
    is_web = address.lower().startswith(("http://", "https://")) and len(address) <= MAX_URL_CHARACTERS
    return address if is_web else ""


def _timestamp(parsed: Any) -> int | None:
    if not parsed or not EARLIEST_YEAR <= parsed[0] <= LATEST_YEAR:
        return None
    try:
        return timegm(parsed)
    except (ValueError, OverflowError):
        return None


def _iso_timestamp(written: object) -> int | None:
    if not isinstance(written, str):
        return None
    try:
        moment = datetime.fromisoformat(written[:64].strip())
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return int(moment.timestamp()) if moment.year >= EARLIEST_YEAR else None


_PERIOD_SECONDS: Final = {
    "hourly": 3600,
    "daily": 86_400,
    "weekly": 604_800,
    "monthly": 2_592_000,
    "yearly": 31_536_000,
}


def _wait_seconds(feed: Any) -> int | None:
    """Return how long the feed asks to be left alone: `ttl` in minutes, or `sy:updatePeriod`'s share."""
    waits = []
    ttl = str(feed.get("ttl") or "").strip()
    if re.fullmatch(r"[0-9]{1,6}", ttl):
        waits.append(int(ttl) * 60)
    period = _PERIOD_SECONDS.get(str(feed.get("sy_updateperiod") or "").strip().lower())
    frequency = str(feed.get("sy_updatefrequency") or "1").strip()
    if period and re.fullmatch(r"[0-9]{1,4}", frequency):
        waits.append(period // max(1, int(frequency)))
    return max(waits) or None if waits else None
