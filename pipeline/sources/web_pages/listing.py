"""Where pages are listed, in a page with links or in sitemaps, and which of the links look like articles."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.limits import SITEMAP_BYTES
from pipeline.plugins import TryLater
from pipeline.sources.web_pages.memory import DAY, FILES_KEPT
from pipeline.sources.web_pages.page_reader import PageUnreadable, SitemapText
from pipeline.sources.web_pages.polite_fetch import OutOfTime, VisitFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from pipeline.sources.web_pages.memory import PageMemory
    from pipeline.sources.web_pages.page_reader import PageLink, PageReader
    from pipeline.sources.web_pages.polite_fetch import Visit, Visitor

SITEMAP_ACCEPT: Final = "application/xml, text/xml;q=0.9, */*;q=0.1"
MAX_DEPTH: Final = 3
"""Levels of sitemap indexes; sitemaps.org allows one, sites nest two."""
FILES_AT_ONCE: Final = 50
LINKS_AT_ONCE: Final = 100_000
"""After so many no further file is read in one poll; one file has 50,000 at the most."""
ENOUGH_TO_JUDGE: Final = 3
MOMENT: Final = 60
"""Seconds between the first and the last change within which a site's dates are those of its last build."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# First or only parts of a path under which sites keep what is no article.
_NEVER: Final = _words(
    "about account accounts agb archive archives author authors autor cart categories category checkout contact "
    "cookies customer datenschutz faq feed feeds help imprint impressum jobs kategorie kontakt legal login logout "
    "page pages password-reset policies privacy profile register rss schlagwort search settings shop sign-in sign-up "
    "signin signup sitemap sitemaps subscribe tag tags team terms topic topics ueber-uns user users "
    "wp-admin wp-content wp-includes wp-json wp-login.php"
)
_FILES: Final = re.compile(
    r"(?i)\.(?:7z|apk|avi|bz2|css|csv|dmg|docx?|epub|exe|gif|gz|ico|ics|jpe?g|js|json|m4a|m4v|mov|mp3|mp4|ogg|pdf|png|"
    r"pptx?|rar|rss|svg|tar|txt|wav|webm|webp|xlsx?|xml|zip)$"
)
_DATE: Final = re.compile(r"/(?:19|20)[0-9]{2}[/-](?:0?[1-9]|1[0-2])(?:[/-]|$)")
_NUMBER: Final = re.compile(r"(?:^|[-_/.])[0-9]{4,}(?:[-_/.]|$)")
_SITEMAPS_OF_LISTS: Final = re.compile(
    r"(?i)(?:taxonom|categor|tags?\b|post_tag|author|users?\b|image|video|product)"
)

ENOUGH: Final = 3
"""Links that look like articles from which a page counts as a list."""
SCORE: Final = 3


def find_articles(links: Sequence[PageLink], *, page: str) -> list[PageLink]:
    """The links to what looks like an article of the same host, in the order of the page."""
    return [link for link in find_links(links, page=page) if _score(link) >= SCORE]


def find_links(links: Sequence[PageLink], *, page: str) -> list[PageLink]:
    """The links to other pages of the same host that stand in no menu, and may be articles by their address."""
    host = _bare_host(page)
    own = _without_slash(page)
    return [
        link
        for link in links
        if link.place != "nav"
        and _bare_host(link.url) == host
        and _without_slash(link.url) != own
        and not is_never_article(link.url)
    ]


def is_never_article(url: str) -> bool:
    """Whether the address alone says that it is a list, a form, a file or the front page."""
    path = urlsplit(url).path
    parts = [part for part in path.lower().split("/") if part]
    if not parts:
        # Sites without readable addresses tell their articles apart by a number in the query.
        return re.search(r"(?:^|&)(?:p|id|post|article)=[0-9]+", urlsplit(url).query) is None
    is_paged = re.search(r"/page/[0-9]+/?$", path) is not None
    return parts[0] in _NEVER or parts[-1] in _NEVER or is_paged or _FILES.search(path) is not None


def is_sitemap_of_lists(url: str) -> bool:
    """Whether a sitemap's name says that it holds categories, authors or files instead of articles."""
    return _SITEMAPS_OF_LISTS.search(urlsplit(url).path.rpartition("/")[2]) is not None


def is_below(url: str, page: str) -> bool:
    """Whether an address lies on the page's host, in its folder or under it."""
    folder = urlsplit(page).path.rpartition("/")[0] + "/"
    return _bare_host(url) == _bare_host(page) and (urlsplit(url).path or "/").startswith(folder)


def _score(link: PageLink) -> int:
    parts = urlsplit(link.url)
    name = parts.path.rstrip("/").rpartition("/")[2]
    words = [word for word in re.split(r"[-_.+]|%20", name) if word]
    return (
        (2 if link.place == "heading" else 0)
        + (1 if link.place == "article" else 0)
        + (2 if _DATE.search(parts.path) else 0)
        + (2 if len(words) >= 3 else 0)
        + (1 if _NUMBER.search(parts.path) or re.search(r"[0-9]", parts.query) else 0)
        + (1 if len(link.text.split()) >= 4 else 0)
    )


def _bare_host(url: str) -> str:
    return urlsplit(url).netloc.lower().removeprefix("www.")


def _without_slash(url: str) -> str:
    return url.partition("#")[0].rstrip("/")


@dataclass(frozen=True)
class PageListing:
    """What is listed now. `is_complete` is True where a page that isn't among `links` is listed no more."""

    links: tuple[PageLink, ...]
    is_complete: bool = False
    problem: VisitFailed | None = None
    files_read: int = 0
    files_left_out: int = 0
    """Files that are beyond what is kept for the next polls."""
    after: timedelta | None = None


def is_sitemap(visit: Visit) -> bool:
    """Whether what was answered is a sitemap or an index of sitemaps."""
    start = visit.body[:2000]
    return (
        start.startswith(b"\x1f\x8b")
        or re.search(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]", start) is not None
    )


def is_feed(visit: Visit) -> bool:
    return (
        re.search(rb"<(?:rss|feed|rdf:RDF)[\s>]", visit.body[:2000]) is not None
        and b"<html" not in visit.body[:2000]
    )


def list_sitemaps(
    roots: Sequence[str], *, below: str, memory: PageMemory, visitor: Visitor, reader: PageReader, now: int
) -> PageListing:
    """Addresses of all sitemaps that the roots lead to, newest first where they say so.

    Those under `below` count, where it is given. Each file is asked for with its validators; one that didn't change
    is not read. Files that this poll has no time or room for are kept for the next one.
    """
    walk = _Walk(memory, visitor, reader)
    walk.run(memory.files_waiting or [(root, 0) for root in roots])
    links = {link.url: link for link in walk.links if not below or is_below(link.url, below)}
    chosen = [link for link in links.values() if not is_never_article(link.url)]
    if _are_stamps_true(chosen, now=now):
        chosen.sort(key=lambda link: -(link.at or 0))
    else:
        chosen = [replace(link, at=None) for link in chosen]
    return PageListing(
        tuple(chosen), walk.is_complete, walk.problem, walk.files_read, walk.files_left_out, walk.after
    )


class _Walk:
    """One way through sitemaps and their indexes, breadth first."""

    def __init__(self, memory: PageMemory, visitor: Visitor, reader: PageReader) -> None:
        self.links: list[PageLink] = []
        self.is_complete = not memory.files_waiting
        self.problem: VisitFailed | None = None
        self.files_read = 0
        self.files_left_out = 0
        self.after: timedelta | None = None
        self._memory = memory
        self._visitor = visitor
        self._reader = reader

    def run(self, roots: Iterable[tuple[str, int]]) -> None:
        queue = list(roots)
        met = {url for url, _ in queue}
        self._memory.files_waiting = []
        while queue:
            if self.files_read == FILES_AT_ONCE or len(self.links) >= LINKS_AT_ONCE:
                self._wait_with(queue)
                return
            url, depth = queue.pop(0)
            try:
                found = self._read(url)
            except OutOfTime as error:
                self.after = error.after
                self._wait_with([(url, depth), *queue])
                return
            except VisitFailed as problem:
                self.problem, self.is_complete = self.problem or problem, False
                continue
            self.files_read += 1
            if found.kind == "index":
                children = [each.url for each in found.links if depth < MAX_DEPTH and each.url not in met]
                wanted = [child for child in children if not is_sitemap_of_lists(child)]
                met.update(wanted)
                queue += [(child, depth + 1) for child in wanted]
            else:
                self.links += found.links
                self.is_complete = self.is_complete and not found.is_cut

    def _wait_with(self, queue: list[tuple[str, int]]) -> None:
        self.is_complete = False
        self._memory.files_waiting = queue[:FILES_KEPT]
        self.files_left_out = len(queue[FILES_KEPT:])

    def _read(self, url: str) -> SitemapText:
        etag, modified = self._memory.files.get(url, ("", "")) if self._memory.is_started else ("", "")
        visit = self._visitor.visit(
            url, etag=etag, modified=modified, accept=SITEMAP_ACCEPT, max_bytes=SITEMAP_BYTES
        )
        if visit.is_unchanged:
            # What it lists is known, but not by name.
            self.is_complete = False
            return SitemapText("", (), is_cut=False)
        try:
            found = self._reader.read_sitemap(visit.body, url=visit.url)
        except PageUnreadable as error:
            message = f"The sitemap {url} can't be read ({error.problem.replace('_', ' ')})."
            raise VisitFailed(message, code="sitemap_unreadable", kind="left_out") from error
        except TryLater as error:
            raise VisitFailed(error.message, code=error.code, kind="later") from error
        if not found.kind:
            message = f"What {url} answers is no sitemap."
            raise VisitFailed(message, code="not_a_sitemap", kind="left_out")
        if found.kind == "urlset":
            # An index is always read again: which of its files are asked hangs on it.
            self._memory.files[url] = [visit.etag, visit.modified]
        return found


def _are_stamps_true(links: Sequence[PageLink], *, now: int) -> bool:
    """Whether the dates of change tell anything: most pages have one, none lies ahead, and they differ."""
    stamps = [link.at for link in links if link.at is not None]
    if not stamps or len(stamps) * 2 < len(links) or max(stamps) > now + DAY:
        return False
    return len(links) <= ENOUGH_TO_JUDGE or max(stamps) - min(stamps) > MOMENT
