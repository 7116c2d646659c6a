"""Finds the pages that a page of links or a sitemap lists, and chooses the links that look like articles."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.limits import SITEMAP_BYTES
from pipeline.plugins import TryLater
from pipeline.sources.web_pages.page_reader import PageUnreadable, SitemapText
from pipeline.sources.web_pages.polite_fetch import OutOfTime, VisitFailed
from pipeline.sources.web_pages.poll_state import DAY, FILES_KEPT
from pipeline.text.prose.verbatim_edits import word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from pipeline.sources.web_pages.page_reader import PageLink, PageReader
    from pipeline.sources.web_pages.polite_fetch import PoliteFetcher, Visit
    from pipeline.sources.web_pages.poll_state import PagePollState

SITEMAP_ACCEPT: Final = "application/xml, text/xml;q=0.9, */*;q=0.1"
MAX_DEPTH: Final = 3
"""The deepest level of sitemap indexes; sitemaps.org allows one, sites nest two."""
MAX_FILES_PER_POLL: Final = 50
MAX_LINKS_PER_POLL: Final = 100_000
"""After so many links no further file is read in one poll; one file has 50,000 at the most."""
MAX_LINKS_NOT_JUDGED: Final = 3
"""The most links that are too few to say that their dates are those of the site's last build."""
BUILD_SECONDS: Final = 60
"""If all changes lie within so many seconds, a site's dates are those of its last build."""


# First or last parts of a path under which sites keep pages that are no articles.
_NON_ARTICLE_PARTS: Final = word_set(
    "about account accounts agb archive archives author authors autor cart categories category checkout contact "
    "cookies customer datenschutz faq feed feeds help imprint impressum jobs kategorie kontakt legal login logout "
    "page pages password-reset policies privacy profile register rss schlagwort search settings shop sign-in sign-up "
    "signin signup sitemap sitemaps subscribe tag tags team terms topic topics ueber-uns user users "
    "wp-admin wp-content wp-includes wp-json wp-login.php"
)
_FILE_NAME: Final = re.compile(
    r"(?i)\.(?:7z|apk|avi|bz2|css|csv|dmg|docx?|epub|exe|gif|gz|ico|ics|jpe?g|js|json|m4a|m4v|mov|mp3|mp4|ogg|pdf|png|"
    r"pptx?|rar|rss|svg|tar|txt|wav|webm|webp|xlsx?|xml|zip)$"
)
_DATE_IN_PATH: Final = re.compile(r"/(?:19|20)[0-9]{2}[/-](?:0?[1-9]|1[0-2])(?:[/-]|$)")
_NUMBER_IN_PATH: Final = re.compile(r"(?:^|[-_/.])[0-9]{4,}(?:[-_/.]|$)")
_LIST_SITEMAP_NAME: Final = re.compile(
    r"(?i)(?:taxonom|categor|tags?\b|post_tag|author|users?\b|image|video|product)"
)

MIN_ARTICLE_LINKS: Final = 3
"""The number of links that look like articles with which a page counts as a list."""
MIN_ARTICLE_SCORE: Final = 3


def find_articles(links: Sequence[PageLink], *, page: str) -> list[PageLink]:
    """Return the links that look like articles of the same host, in the order of the page."""
    return [link for link in find_links(links, page=page) if _article_score(link) >= MIN_ARTICLE_SCORE]


def find_links(links: Sequence[PageLink], *, page: str) -> list[PageLink]:
    """Return the links to other pages of the same host that are in no menu and may be articles."""
    host = bare_host(page)
    page_address = _without_slash(page)
    return [
        link
        for link in links
        if link.place != "nav"
        and bare_host(link.url) == host
        and _without_slash(link.url) != page_address
        and not is_never_article(link.url)
    ]


def is_never_article(url: str) -> bool:
    """Return whether the address alone says that it is a list, a form, a file or the front page."""
    path = urlsplit(url).path
    parts = [part for part in path.lower().split("/") if part]
    if not parts:
        # Sites without path names identify their articles by a number in the query.
        return re.search(r"(?:^|&)(?:p|id|post|article)=[0-9]+", urlsplit(url).query) is None
    is_paged = re.search(r"/page/[0-9]+/?$", path) is not None
    return (
        parts[0] in _NON_ARTICLE_PARTS
        or parts[-1] in _NON_ARTICLE_PARTS
        or is_paged
        or _FILE_NAME.search(path) is not None
    )


def is_sitemap_of_lists(url: str) -> bool:
    """Return whether a sitemap's name says that it lists categories, authors or files, not articles."""
    return _LIST_SITEMAP_NAME.search(urlsplit(url).path.rpartition("/")[2]) is not None


def is_below(url: str, page: str) -> bool:
    """Return whether an address is on the page's host and in its folder, or under it."""
    folder = urlsplit(page).path.rpartition("/")[0] + "/"
    return bare_host(url) == bare_host(page) and (urlsplit(url).path or "/").startswith(folder)


def _article_score(link: PageLink) -> int:
    """Return a score of how much a link looks like an article's, to compare with `MIN_ARTICLE_SCORE`."""
    parts = urlsplit(link.url)
    name = parts.path.rstrip("/").rpartition("/")[2]
    words = [word for word in re.split(r"[-_.+]|%20", name) if word]
    return (
        (2 if link.place == "heading" else 0)
        + (1 if link.place == "article" else 0)
        + (2 if _DATE_IN_PATH.search(parts.path) else 0)
        + (2 if len(words) >= 3 else 0)
        + (1 if _NUMBER_IN_PATH.search(parts.path) or re.search(r"[0-9]", parts.query) else 0)
        + (1 if len(link.text.split()) >= 4 else 0)
    )


def bare_host(url: str) -> str:
    """Return the host of an address, with its port, in lower case and without "www."."""
    return urlsplit(url).netloc.lower().removeprefix("www.")


def _without_slash(url: str) -> str:
    """Return the address without fragment and final slashes, for comparison."""
    return url.partition("#")[0].rstrip("/")


@dataclass(frozen=True)
class PageListing:
    """The pages that are listed now.

    `is_complete` is `True` if a page that isn't among `links` is listed no more. `problem` is the failure of
    the first file that couldn't be read. `after` is the wait that the origin asks for, if time ran out.
    """

    links: tuple[PageLink, ...]
    is_complete: bool = False
    problem: VisitFailed | None = None
    files_read: int = 0
    files_left_out: int = 0
    """The number of files that are dropped, because `FILES_KEPT` others wait for the next polls."""
    after: timedelta | None = None


def is_sitemap(visit: Visit) -> bool:
    """Return whether the answer is a sitemap, an index of sitemaps, or a gzip file, as sitemaps may be."""
    start = visit.body[:2000]
    return (
        start.startswith(b"\x1f\x8b")
        or re.search(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]", start) is not None
    )


def is_feed(visit: Visit) -> bool:
    """Return whether the answer is a feed."""
    return (
        re.search(rb"<(?:rss|feed|rdf:RDF)[\s>]", visit.body[:2000]) is not None
        and b"<html" not in visit.body[:2000]
    )


def list_sitemaps(
    roots: Sequence[str],
    *,
    below: str,
    state: PagePollState,
    fetcher: PoliteFetcher,
    reader: PageReader,
    now: int,
) -> PageListing:
    """Return the addresses in all sitemaps that the roots lead to, newest first if their dates mean anything.

    If the last poll left files over, only those are read. Dates that mean nothing are removed. Only addresses
    under `below` count, unless it is empty, and only those that may be articles. Each file is fetched with its
    validators; an unchanged file is not read. Files beyond the limits of time and number of this poll are kept
    for the next one.
    """
    walk = _SitemapWalk(state, fetcher, reader)
    walk.run(state.files_waiting or [(root, 0) for root in roots])
    links = {link.url: link for link in walk.links if not below or is_below(link.url, below)}
    chosen = [link for link in links.values() if not is_never_article(link.url)]
    if _are_dates_meaningful(chosen, now=now):
        chosen.sort(key=lambda link: -(link.at or 0))
    else:
        chosen = [replace(link, at=None) for link in chosen]
    return PageListing(
        tuple(chosen), walk.is_complete, walk.problem, walk.files_read, walk.files_left_out, walk.after
    )


class _SitemapWalk:
    """Walks through sitemaps and their indexes, breadth first."""

    def __init__(self, state: PagePollState, fetcher: PoliteFetcher, reader: PageReader) -> None:
        self.links: list[PageLink] = []
        self.is_complete = not state.files_waiting
        self.problem: VisitFailed | None = None
        self.files_read = 0
        self.files_left_out = 0
        self.after: timedelta | None = None
        self._state = state
        self._fetcher = fetcher
        self._reader = reader

    def run(self, roots: Iterable[tuple[str, int]]) -> None:
        """Read the files from these roots on, each given with its depth, until a limit of the poll."""
        queue = list(roots)
        seen_urls = {url for url, _ in queue}
        self._state.files_waiting = []
        while queue:
            if self.files_read == MAX_FILES_PER_POLL or len(self.links) >= MAX_LINKS_PER_POLL:
                self._keep_for_next_poll(queue)
                return
            url, depth = queue.pop(0)
            try:
                file = self._read_file(url)
            except OutOfTime as error:
                self.after = error.after
                self._keep_for_next_poll([(url, depth), *queue])
                return
            except VisitFailed as problem:
                self.problem, self.is_complete = self.problem or problem, False
                continue
            self.files_read += 1
            if file.kind == "index":
                children = [
                    each.url for each in file.links if depth < MAX_DEPTH and each.url not in seen_urls
                ]
                to_read = [child for child in children if not is_sitemap_of_lists(child)]
                seen_urls.update(to_read)
                queue += [(child, depth + 1) for child in to_read]
            else:
                self.links += file.links
                self.is_complete = self.is_complete and not file.is_cut

    def _keep_for_next_poll(self, queue: list[tuple[str, int]]) -> None:
        """Keep unread files for the next poll, at most `FILES_KEPT`."""
        self.is_complete = False
        self._state.files_waiting = queue[:FILES_KEPT]
        self.files_left_out = len(queue[FILES_KEPT:])

    def _read_file(self, url: str) -> SitemapText:
        """Fetch and parse a file, which has no links if it didn't change.

        Raises `OutOfTime` before the request, and `VisitFailed` if the file can't be fetched or is no sitemap.
        """
        etag, modified = self._state.files.get(url, ("", "")) if self._state.is_started else ("", "")
        visit = self._fetcher.visit(
            url, etag=etag, last_modified=modified, accept=SITEMAP_ACCEPT, max_bytes=SITEMAP_BYTES
        )
        if visit.is_unchanged:
            # Its addresses are known already, but aren't stored by file, so completeness can't be told.
            self.is_complete = False
            return SitemapText("", (), is_cut=False)
        try:
            sitemap = self._reader.read_sitemap(visit.body, url=visit.url)
        except PageUnreadable as error:
            message = f"The sitemap {url} can't be read ({error.problem.replace('_', ' ')})."
            raise VisitFailed(message, code="sitemap_unreadable", kind="left_out") from error
        except TryLater as error:
            raise VisitFailed(error.message, code=error.code, kind="later") from error
        if not sitemap.kind:
            message = f"What {url} answers is no sitemap."
            raise VisitFailed(message, code="not_a_sitemap", kind="left_out")
        if sitemap.kind == "urlset":
            # No validators for an index: it is always read again, because it decides which files are fetched.
            self._state.files[url] = [visit.etag, visit.last_modified]
        return sitemap


def _are_dates_meaningful(links: Sequence[PageLink], *, now: int) -> bool:
    """Return whether the dates of change mean anything.

    At least half of the pages must have one, none may be more than a day ahead, and the dates of more than
    `MAX_LINKS_NOT_JUDGED` pages must differ by more than `BUILD_SECONDS`.
    """
    dates = [link.at for link in links if link.at is not None]
    if not dates or len(dates) * 2 < len(links) or max(dates) > now + DAY:
        return False
    return len(links) <= MAX_LINKS_NOT_JUDGED or max(dates) - min(dates) > BUILD_SECONDS
