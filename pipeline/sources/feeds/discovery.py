"""From the address of a web page to its feeds: what the page says, what its host is known for, where feeds often are."""

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
from pipeline.sources.feeds.answers import fail, from_outbound, links_in_headers
from pipeline.sources.feeds.read_feed import LinkRecord, WebPage, read_feed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from config.core.http_client import Client, Response

SECONDS: Final = 40
TIMEOUT_SECONDS: Final = 20
PROBE_SECONDS: Final = 5
PROBE_BYTES: Final = 4096
MAX_REDIRECTS: Final = 5
MAX_CANDIDATES: Final = 20
MAX_SAID: Final = 5
WELL_KNOWN: Final = ("feed/", "rss.xml", "atom.xml", "feed.xml", "index.xml", "rss", "feed.json")
"""Under the page, then at the root of its host, in the order of how often they are there."""
MAX_PROBES: Final = 8

_KINDS: Final = {
    "application/rss+xml": "rss",
    "application/rdf+xml": "rss",
    "text/xml": "rss",
    "application/atom+xml": "atom",
    "application/feed+json": "json",
    "application/json": "json",
}
_FORMAT_WORD: Final = re.compile(r"\b(?:rss|atom|rdf|json|xml|feed|2\.0|1\.0|0\.92)\b", re.IGNORECASE)
_COMMENTS: Final = re.compile(r"\b(?:comments?|kommentare?|commentaires|comentarios)\b", re.IGNORECASE)


@dataclass(frozen=True)
class FeedCandidate:
    """A feed that a page may have: `kind` is `rss`, `atom`, `json` or empty where nobody said."""

    url: str
    title: str = ""
    kind: str = ""


def discover(url: str, http: Client, *, now: datetime) -> tuple[FeedCandidate, ...]:
    """The feeds behind an address, the likeliest first: the address itself where it is a feed, else its page's.

    At most nine requests within 40 seconds. Raises `Refused` or `TryLater` where the address can't be read at all;
    an empty answer means that it is a page without feeds.
    """
    until = monotonic() + SECONDS
    special = of_special_host(url)
    if special:
        return special
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
        raise from_outbound(error) from error
    if response.status != HTTPStatus.OK:
        fail(response, now=now)
    try:
        feed = read_feed(
            response.body, url=response.url, content_type=response.headers.get("Content-Type", "")
        )
    except WebPage as page:
        return of_page(page.links, response, http, until=until)
    return (FeedCandidate(response.url, feed.title),)


def of_page(
    links: Sequence[LinkRecord], page: Response | None, http: Client, *, until: float
) -> tuple[FeedCandidate, ...]:
    """What a page's `Link` headers and `<link>` elements name, else its anchors, else where feeds often are.

    Feeds of comments stand last. The first two are believed; the others are asked, with at most `MAX_PROBES` requests.
    """
    if page is None:
        return ()
    named = [
        FeedCandidate(address, _parameter(rest, "title"), _KINDS.get(_parameter(rest, "type").lower(), ""))
        for address, relations, rest in links_in_headers(page)
        if "alternate" in relations.split() and _parameter(rest, "type").lower() in _KINDS
    ]
    named += [
        FeedCandidate(link["url"], link["title"], _KINDS.get(link["type"].partition(";")[0].strip(), ""))
        for link in links
        if link["kind"] == "link" and not _is_api(link)
    ]
    if named:
        return _sorted(named)
    asked = [FeedCandidate(link["url"], link["title"]) for link in links if link["kind"] == "anchor"]
    found = [one for one in asked[: MAX_PROBES // 2] if _is_feed(one.url, http, until)]
    if found:
        return _sorted(found)
    probes = [one for one in _well_known(page.url) if one not in {each.url for each in asked}]
    for address in probes[: MAX_PROBES - len(asked[: MAX_PROBES // 2])]:
        if _is_feed(address, http, until):
            return (FeedCandidate(address),)
    return ()


def choose_feed(found: Sequence[FeedCandidate]) -> FeedCandidate:
    """The one feed of a page; formats of the same feed are one, and feeds of comments count only where they are alone.

    Raises `Refused` with the addresses where there are several, or none.
    """
    own = [one for one in found if not _is_of_comments(one)] or list(found)
    groups: dict[str, FeedCandidate] = {}
    for one in own:
        groups.setdefault(" ".join(_FORMAT_WORD.sub(" ", one.title).split()).lower(), one)
    kinds = [one.kind for one in own]
    if len(groups) == 1 and (len(own) == 1 or len(set(kinds)) == len(kinds)):
        return own[0]
    if not found:
        message = (
            "The address leads to a web page that names no feed, and none was found where feeds often are. Give the "
            "feed's own address, or add the page as a source of type scraper."
        )
        raise Refused(message, code="not_a_feed", field="config.url")
    listed = "; ".join(f"{one.title}: {one.url}" if one.title else one.url for one in own[:MAX_SAID])
    more = f"; and {len(own) - MAX_SAID} more" if len(own) > MAX_SAID else ""
    message = f"The address leads to a web page with several feeds. Give the address of one of them: {listed}{more}."
    raise Refused(message, code="several_feeds", field="config.url")


def _is_api(link: LinkRecord) -> bool:
    # WordPress names its API in the same way.
    return link["type"].startswith("application/json") and "/wp-json/" in link["url"]


def _is_of_comments(one: FeedCandidate) -> bool:
    return bool(_COMMENTS.search(one.title) or _COMMENTS.search(urlsplit(one.url).path))


def _sorted(found: list[FeedCandidate]) -> tuple[FeedCandidate, ...]:
    distinct = list({one.url: one for one in reversed(found)}.values())[::-1]
    return tuple(sorted(distinct, key=_is_of_comments))[:MAX_CANDIDATES]


def _parameter(written: str, name: str) -> str:
    found = re.search(rf"\b{name}\s*=\s*(?:\"([^\"]*)\"|([^\s\";,]+))", written, re.IGNORECASE)
    return (found[1] or found[2] or "") if found else ""


def _well_known(url: str) -> list[str]:
    folder = urljoin(url, ".")
    root = urljoin(url, "/")
    addresses = [root + name for name in WELL_KNOWN]
    if folder != root:
        # A blog often lives in a folder of its own.
        addresses = [folder + WELL_KNOWN[0], *addresses]
    return addresses


def _is_feed(url: str, http: Client, until: float) -> bool:
    """Whether the first bytes look like a feed's; a page says so soon enough."""
    left = until - monotonic() - TIMEOUT_SECONDS
    if left <= 0:
        # What is left is for the feed itself.
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


def of_special_host(url: str) -> tuple[FeedCandidate, ...]:
    """The feeds of a page at a host whose addresses tell, without asking; nothing where the address is a feed's."""
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
        return _of_youtube(parts.query, steps)
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
    # Mastodon and its kin; other hosts with such addresses (Medium, YouTube, TikTok) are named above or elsewhere.
    if (
        host not in {"tiktok.com", "medium.com"}
        and len(steps) == 1
        and re.fullmatch(r"@[A-Za-z0-9_]{1,30}", steps[0])
    ):
        return (FeedCandidate(f"{origin}/{steps[0]}.rss", steps[0], "rss"),)
    return ()


def _of_youtube(query: str, steps: list[str]) -> tuple[FeedCandidate, ...]:
    feeds = "https://www.youtube.com/feeds/videos.xml"
    if steps[0] == "channel" and len(steps) >= 2:
        return (FeedCandidate(f"{feeds}?channel_id={steps[1]}", "YouTube channel", "atom"),)
    playlist = re.search(r"(?:^|&)list=([A-Za-z0-9_-]{10,60})", query)
    if steps[0] == "playlist" and playlist:
        return (FeedCandidate(f"{feeds}?playlist_id={playlist[1]}", "YouTube playlist", "atom"),)
    return ()
