"""Finds the feeds of a web page: the named ones, those known for its host, those at frequent addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from config.core.http_client import OutboundError
from pipeline.limits import FEED_BYTES
from pipeline.plugins import Refused
from pipeline.sources.feeds.answers import as_plugin_error, links_in_headers, raise_for_response
from pipeline.sources.feeds.read_feed import LinkRecord, WebPage, read_feed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from config.core.http_client import Client, Response

DISCOVERY_SECONDS: Final = 40
"""The time limit of all requests together."""
TIMEOUT_SECONDS: Final = 20
"""The time limit of the request for a page or feed."""
PROBE_SECONDS: Final = 5
"""The time limit of a request that only asks whether there is a feed."""
PROBE_BYTES: Final = 4096
MAX_REDIRECTS: Final = 5
MAX_CANDIDATES: Final = 20
MAX_FEEDS_NAMED: Final = 5
WELL_KNOWN: Final = ("feed/", "rss.xml", "atom.xml", "feed.xml", "index.xml", "rss", "feed.json")
"""Names under the page, then at the root of its host, the most frequent first."""
MAX_PROBES: Final = 8
"""The most requests that look for a feed: half of them at most for links, the rest for frequent addresses."""

_KIND_BY_TYPE: Final = {
    "application/rss+xml": "rss",
    "application/rdf+xml": "rss",
    "text/xml": "rss",
    "application/atom+xml": "atom",
    "application/feed+json": "json",
    "application/json": "json",
}
_FORMAT_WORD: Final = re.compile(r"\b(?:rss|atom|rdf|json|xml|feed|2\.0|1\.0|0\.92)\b", re.IGNORECASE)
_COMMENTS_WORD: Final = re.compile(r"\b(?:comments?|kommentare?|commentaires|comentarios)\b", re.IGNORECASE)


@dataclass(frozen=True)
class FeedCandidate:
    """A feed that a page may have; `kind` is `rss`, `atom`, `json`, or empty if it isn't known."""

    url: str
    title: str = ""
    kind: str = ""


def discover(url: str, http: Client, *, now: datetime) -> tuple[FeedCandidate, ...]:
    """Return the feeds of an address: those known for its host, itself if it is a feed, else its page's.

    The likeliest feed comes first. Makes at most nine requests within 40 seconds. An empty result means that
    the address is a page without feeds. Raises `Refused` if the address must be changed, and `TryLater` if it
    can't be read now.
    """
    deadline = monotonic() + DISCOVERY_SECONDS
    known_feeds = feeds_of_known_host(url)
    if known_feeds:
        return known_feeds
    try:
        response = http.get(
            url,
            headers={
                "Accept": "text/html, application/xhtml+xml, application/atom+xml, application/rss+xml, */*;q=0.5"
            },
            timeout=TIMEOUT_SECONDS,
            max_bytes=FEED_BYTES,
            max_redirects=MAX_REDIRECTS,
        )
    except OutboundError as error:
        raise as_plugin_error(error) from error
    if response.status != HTTPStatus.OK:
        raise_for_response(response, now=now)
    try:
        feed = read_feed(
            response.body, url=response.url, content_type=response.headers.get("Content-Type", "")
        )
    except WebPage as page:
        return find_feeds_on_page(page.links, response, http, deadline=deadline)
    return (FeedCandidate(response.url, feed.title),)


def find_feeds_on_page(
    links: Sequence[LinkRecord], page: Response | None, http: Client, *, deadline: float
) -> tuple[FeedCandidate, ...]:
    """Return the feeds that a page names, else those of its anchors, else the first at a frequent address.

    A page names feeds in `Link` headers and `<link>` elements, which are believed. The other addresses are fetched,
    with at most `MAX_PROBES` requests. Feeds of comments stand last. The result is empty if there is no `page`.
    """
    if page is None:
        return ()
    named_feeds = [
        FeedCandidate(address, _link_parameter(parameters, "title"), _KIND_BY_TYPE[mime_type])
        for address, relations, parameters in links_in_headers(page)
        if "alternate" in relations.split()
        and (mime_type := _link_parameter(parameters, "type").lower()) in _KIND_BY_TYPE
    ]
    named_feeds += [
        FeedCandidate(
            link["url"], link["title"], _KIND_BY_TYPE.get(link["type"].partition(";")[0].strip(), "")
        )
        for link in links
        if link["kind"] == "link" and not _is_wordpress_api(link)
    ]
    if named_feeds:
        return _distinct_sorted(named_feeds)
    anchors = [FeedCandidate(link["url"], link["title"]) for link in links if link["kind"] == "anchor"]
    confirmed = [anchor for anchor in anchors[: MAX_PROBES // 2] if _is_feed(anchor.url, http, deadline)]
    if confirmed:
        return _distinct_sorted(confirmed)
    probes = [url for url in _well_known_addresses(page.url) if url not in {each.url for each in anchors}]
    for address in probes[: MAX_PROBES - len(anchors[: MAX_PROBES // 2])]:
        if _is_feed(address, http, deadline):
            return (FeedCandidate(address),)
    return ()


def choose_feed(feeds: Sequence[FeedCandidate]) -> FeedCandidate:
    """Return the one feed of a page.

    Formats of the same feed count as one, and feeds of comments only if there are no others. Raises
    `Refused` if there is no feed, or, with the addresses, if there are several.
    """
    candidates = [feed for feed in feeds if not _is_comments_feed(feed)] or list(feeds)
    titles = {" ".join(_FORMAT_WORD.sub(" ", feed.title).split()).lower() for feed in candidates}
    kinds = [feed.kind for feed in candidates]
    if len(titles) == 1 and (len(candidates) == 1 or len(set(kinds)) == len(kinds)):
        return candidates[0]
    if not feeds:
        message = (
            "The address leads to a web page that names no feed, and none was found where feeds often are. Give the "
            "feed's own address, or add the page as a source of type scraper."
        )
        raise Refused(message, code="not_a_feed", field="config.url")
    feed_list = "; ".join(
        f"{feed.title}: {feed.url}" if feed.title else feed.url for feed in candidates[:MAX_FEEDS_NAMED]
    )
    others = f"; and {len(candidates) - MAX_FEEDS_NAMED} more" if len(candidates) > MAX_FEEDS_NAMED else ""
    message = f"The address leads to a web page with several feeds. Give the address of one of them: {feed_list}{others}."
    raise Refused(message, code="several_feeds", field="config.url")


def _is_wordpress_api(link: LinkRecord) -> bool:
    """Return whether a link leads to the page's data in WordPress's API, not to a feed."""
    # WordPress links to its REST API with `rel=alternate`, too.
    return link["type"].startswith("application/json") and "/wp-json/" in link["url"]


def _is_comments_feed(feed: FeedCandidate) -> bool:
    """Return whether a feed is one of comments, by its title or path."""
    return bool(_COMMENTS_WORD.search(feed.title) or _COMMENTS_WORD.search(urlsplit(feed.url).path))


def _distinct_sorted(feeds: list[FeedCandidate]) -> tuple[FeedCandidate, ...]:
    """Return the feeds, each address once, feeds of comments last; at most `MAX_CANDIDATES`."""
    distinct = list({feed.url: feed for feed in reversed(feeds)}.values())[::-1]
    return tuple(sorted(distinct, key=_is_comments_feed))[:MAX_CANDIDATES]


def _link_parameter(parameters: str, name: str) -> str:
    """Return a parameter of a `Link` header, or an empty string if it has none of that name."""
    match = re.search(rf"\b{name}\s*=\s*(?:\"([^\"]*)\"|([^\s\";,]+))", parameters, re.IGNORECASE)
    return (match[1] or match[2] or "") if match else ""


def _well_known_addresses(url: str) -> list[str]:
    """Return the addresses at which a page's host often has a feed."""
    folder = urljoin(url, ".")
    root = urljoin(url, "/")
    addresses = [root + name for name in WELL_KNOWN]
    if folder != root:
        # A blog often lives in a folder of its own.
        addresses = [folder + WELL_KNOWN[0], *addresses]
    return addresses


def _is_feed(url: str, http: Client, deadline: float) -> bool:
    """Return whether the first bytes at an address look like a feed's.

    The answer is no if the address can't be fetched, or if the time left is needed for the feed itself.
    """
    left = deadline - monotonic() - TIMEOUT_SECONDS
    if left <= 0:
        return False
    try:
        response = http.get(
            url,
            timeout=min(PROBE_SECONDS, left),
            max_bytes=PROBE_BYTES,
            max_redirects=MAX_REDIRECTS,
            truncate=True,
        )
    except OutboundError:
        return False
    start = response.body[:PROBE_BYTES].replace(b"\0", b"")
    is_feed = re.search(rb"<(?:rss|feed|rdf:RDF)\b|jsonfeed\.org/version", start) is not None
    return response.status == HTTPStatus.OK and is_feed and not re.search(rb"(?i)<html\b", start)


# --- Hosts whose feeds are known by their addresses (read in their documents, November 2026) ---


def feeds_of_known_host(url: str) -> tuple[FeedCandidate, ...]:
    """Return the feeds of a page at a host whose feed addresses are known, without fetching it.

    The result is empty for any other host or page, and if the address is a feed's.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return ()
    steps = [step for step in parts.path.split("/") if step]
    origin = f"https://{parts.netloc}"
    if not steps:
        return ()
    if host in {"youtube.com", "m.youtube.com"}:
        return _youtube_feeds(parts.query, steps)
    if host == "github.com" and len(steps) == 2:
        repository = f"https://github.com/{steps[0]}/{steps[1]}"
        return (
            FeedCandidate(f"{repository}/releases.atom", f"Releases of {steps[1]}", "atom"),
            FeedCandidate(f"{repository}/commits.atom", f"Commits of {steps[1]}", "atom"),
        )
    if host in {"reddit.com", "old.reddit.com"} and steps[0] in {"r", "user", "u"} and len(steps) == 2:
        return (FeedCandidate(f"{origin}/{steps[0]}/{steps[1]}/.rss", f"{steps[0]}/{steps[1]}", "atom"),)
    if host == "medium.com" and steps[0] not in {"feed", "m"} and len(steps) == 1:
        return (FeedCandidate(f"https://medium.com/feed/{steps[0]}", steps[0], "rss"),)
    if host == "bsky.app" and steps[0] == "profile" and len(steps) == 2:
        return (FeedCandidate(f"https://bsky.app/profile/{steps[1]}/rss", steps[1], "rss"),)
    if host.endswith(".substack.com") and steps[0] in {"archive", "about"} and len(steps) == 1:
        return (FeedCandidate(f"{origin}/feed", host, "rss"),)
    # Mastodon and similar servers; Medium, YouTube and TikTok, with such addresses too, are handled elsewhere.
    if (
        host not in {"tiktok.com", "medium.com"}
        and len(steps) == 1
        and re.fullmatch(r"@[A-Za-z0-9_]{1,30}", steps[0])
    ):
        return (FeedCandidate(f"{origin}/{steps[0]}.rss", steps[0], "rss"),)
    return ()


def _youtube_feeds(query: str, steps: list[str]) -> tuple[FeedCandidate, ...]:
    """Return the feed of a channel or playlist on YouTube, or nothing for other addresses."""
    feeds = "https://www.youtube.com/feeds/videos.xml"
    if steps[0] == "channel" and len(steps) >= 2:
        return (FeedCandidate(f"{feeds}?channel_id={steps[1]}", "YouTube channel", "atom"),)
    playlist = re.search(r"(?:^|&)list=([A-Za-z0-9_-]{10,60})", query)
    if steps[0] == "playlist" and playlist:
        return (FeedCandidate(f"{feeds}?playlist_id={playlist[1]}", "YouTube playlist", "atom"),)
    return ()
