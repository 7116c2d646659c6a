"""Runs one poll of the scraper: chooses how to read the address, lists its pages, and fetches some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.plugins import PluginError, Refused, TryLater
from pipeline.sources.base import Fetch, Note
from pipeline.sources.web_pages.entry import is_list_of_links, sentence_of
from pipeline.sources.web_pages.listing import (
    MIN_ARTICLE_LINKS,
    find_articles,
    find_links,
    is_feed,
    is_sitemap,
    list_sitemaps,
)
from pipeline.sources.web_pages.page_reader import MIN_TEXT_CHARACTERS, PageLink
from pipeline.sources.web_pages.polite_fetch import MAX_PAUSE_SECONDS, OutOfTime, VisitFailed
from pipeline.sources.web_pages.poll_state import SEEN_KEPT, WEEK, PageRecord
from pipeline.sources.web_pages.robots import origin_of
from pipeline.sources.web_pages.visit_pages import PageWork
from pipeline.text.links import canonical_url
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.sources.web_pages.page_reader import PageReader, PageText
    from pipeline.sources.web_pages.polite_fetch import PoliteFetcher, Visit
    from pipeline.sources.web_pages.poll_state import PagePollState
    from pipeline.sources.web_pages.render import Renderer
    from pipeline.sources.web_pages.robots import Robots

MIN_FIRST_PAGES: Final = 5
"""The number of newest pages that are read at later polls if the first has no time for them."""
MAX_LICENCES_NAMED: Final = 3
FORBIDDEN_WAIT: Final = timedelta(hours=1)
"""Asking sooner would only confirm to the server that we are the robot that it takes us for."""


@dataclass(frozen=True)
class Settings:
    """The clean settings of one source; `xpath` matches the same elements as `selector`."""

    url: str
    sitemap: str
    selector: str
    xpath: str
    max_pages: int


class PagePoll:
    """The work of one fetch; it writes to `state` as it goes."""

    def __init__(
        self,
        settings: Settings,
        state: PagePollState,
        *,
        fetcher: PoliteFetcher,
        reader: PageReader,
        robots: Robots,
        robot: str,
        renderer: Renderer | None,
        now: datetime,
    ) -> None:
        self._settings = settings
        self._state = state
        self._fetcher = fetcher
        self._reader = reader
        self._robots = robots
        self._work = PageWork(
            state, fetcher, reader, robot=robot, home=settings.url, now=now, renderer=renderer
        )
        self._at = int(now.timestamp())
        self._notes: list[Note] = []
        self._title = ""
        self._moved_to = ""
        self._wait: timedelta | None = None

    def run(self) -> Fetch:
        """Read new, changed and due pages. Raises `Refused` or `TryLater` if the source can't be read at all."""
        try:
            if self._must_save_requests():
                self._visit_pages()
            elif self._state.mode == "page":
                self._run_page()
            elif self._settings.sitemap or self._state.mode == "sitemap":
                self._run_sitemaps()
            else:
                self._run_address()
        except VisitFailed as problem:
            if problem.status == HTTPStatus.GONE:
                return Fetch(entries=(), state={}, gone=True)
            raise failure_of(problem) from problem
        except OutOfTime as error:
            message = "There was no time left to read the page."
            raise TryLater(message, code="out_of_time", after=error.after) from error
        return self._result()

    def _must_save_requests(self) -> bool:
        """Return whether a poll may fetch only one page, and pages wait to be fetched."""
        is_next = self._state.is_started and bool(self._state.waiting)
        return is_next and self._fetcher.delay_of(self._settings.url) > MAX_PAUSE_SECONDS

    # --- One page ---

    def _run_page(self) -> None:
        """Read the address as one article. Raises `VisitFailed` if it can't be read and has no entry to withdraw."""
        link = PageLink(self._settings.url, "", "")
        record = self._state.pages.get(link.url) or PageRecord()
        try:
            visit = self._work.visit(link.url, record)
            self._moved_to = visit.moved_to
            if visit.is_unchanged:
                self._work.mark_checked(link, record, visit)
            else:
                self._take_page(link, visit, self._work.read(visit))
        except VisitFailed as problem:
            # A page that was taken in can be withdrawn; one that never was means that the source doesn't work.
            if not record.digest or problem.kind == "later":
                raise
            self._work.record_failure(link, record, problem)

    def _take_page(self, link: PageLink, visit: Visit, page: PageText) -> None:
        """Make an entry of the address itself, and take the source's title from it."""
        self._title = page.title
        self._work.take_page(link, visit, page)

    # --- A page with links ---

    def _run_address(self) -> None:
        """Read the address, which may turn out to be an article, a list or a sitemap. Raises `Refused` for a feed."""
        state, settings = self._state, self._settings
        record = PageRecord(etag=state.list_etag, modified=state.list_modified)
        visit = self._work.visit(settings.url, record)
        self._moved_to = visit.moved_to
        if visit.is_unchanged:
            self._visit_pages()
            return
        if is_feed(visit):
            message = "The address leads to a feed, not to a page. Add it as a source of type rss."
            raise Refused(message, code="is_feed", field="config.url")
        if not settings.selector and is_sitemap(visit):
            state.roots = [settings.url]
            self._run_sitemaps()
            return
        page = self._work.read(visit, xpath=settings.xpath)
        links = self._selected_links(page) if settings.selector else _article_links(page, visit.url)
        mode = state.mode or ("list" if settings.selector else self._mode_of(page, links))
        if mode == "sitemap" and self._find_sitemaps(page):
            self._run_sitemaps()
        elif mode in {"page", "sitemap"}:
            state.mode, state.is_started = "page", True
            self._take_page(PageLink(settings.url, "", ""), visit, page)
        else:
            self._title = page.site or page.title
            state.mode = "list"
            state.list_etag, state.list_modified = visit.etag, visit.last_modified
            self._run_listed(links, is_complete=False)

    def _selected_links(self, page: PageText) -> list[PageLink]:
        """Return the selected links. Raises `Refused` at the first poll and `TryLater` later if there are none."""
        if page.matches:
            return list(page.matches)
        message = (
            f"Nothing on the page that holds a link matches {self._settings.selector}. Look at the page's source and "
            "give a selector that matches the articles' links or blocks, or leave it out."
        )
        if self._state.is_started:
            raise TryLater(message, code="selector_matches_nothing")
        raise Refused(message, code="selector_matches_nothing", field="config.item_selector")

    def _mode_of(self, page: PageText, links: Sequence[PageLink]) -> str:
        """Return how to read the address: as `page`, `list` or `sitemap`."""
        is_front = not urlsplit(self._settings.url).path.strip("/")
        if self._settings.max_pages == 1 or (page.says_article and not is_front):
            return "page"
        if len(links) >= (1 if is_front or is_list_of_links(page) else MIN_ARTICLE_LINKS):
            return "list"
        return "sitemap" if is_front else "page"

    # --- Sitemaps ---

    def _find_sitemaps(self, page: PageText) -> bool:
        """Store the site's sitemaps as the state's roots. Return `True` if there are any.

        They are those that robots.txt names, or `/sitemap.xml` if the page has nearly no text.
        """
        sitemaps = list(self._robots.sitemaps_of(self._settings.url))
        if not sitemaps and len(page.body) < MIN_TEXT_CHARACTERS:
            default_url = f"{origin_of(self._settings.url)}/sitemap.xml"
            try:
                sitemaps = [default_url] if is_sitemap(self._fetcher.visit(default_url)) else []
            except (VisitFailed, OutOfTime):
                # There is none, or we may not read it: then the page is all that there is.
                sitemaps = []
        self._state.roots = sitemaps
        return bool(sitemaps)

    def _run_sitemaps(self) -> None:
        """Read the sitemaps, and pages that they list. Raises `VisitFailed` if no sitemap can be read."""
        state, settings = self._state, self._settings
        roots = [settings.sitemap] if settings.sitemap else state.roots
        listing = list_sitemaps(
            roots,
            below=settings.url if settings.sitemap else "",
            state=state,
            fetcher=self._fetcher,
            reader=self._reader,
            now=self._at,
        )
        if listing.problem is not None:
            if listing.files_read == 0:
                raise listing.problem
            self._notes.append(Note(listing.problem.code, listing.problem.message))
        if state.files_waiting:
            message = f"{counted(len(state.files_waiting), 'further sitemap file is', 'further sitemap files are')} read at the next polls."
            self._notes.append(Note("sitemaps_waiting", message))
        if listing.files_left_out:
            message = (
                f"{counted(listing.files_left_out, 'sitemap file is', 'sitemap files are')} not read: there are too many. Give the one that lists the "
                "articles as `sitemap`."
            )
            self._notes.append(Note("sitemaps_left_out", message))
        state.mode = "sitemap"
        self._wait = listing.after
        self._run_listed(list(listing.links), is_complete=listing.is_complete)

    # --- What is listed ---

    def _run_listed(self, links: Sequence[PageLink], *, is_complete: bool) -> None:
        """Fetch new, changed and due pages of a list; the first poll marks all but the newest pages as seen."""
        state = self._state
        # Addresses that differ only in tracking parameters are one page.
        canonical_links = [replace(link, url=canonical_url(link.url)) for link in links]
        links = list({link.url: link for link in canonical_links}.values())
        waiting = {link.url for link in state.waiting}
        new_links = [link for link in links if not state.knows(link.url) and link.url not in waiting]
        if state.is_started:
            new_links = self._recently_dated(new_links)
            state.waiting = [*new_links, *state.waiting]
            self._visit_pages(self._changed_pages(links, is_complete=is_complete))
            return
        pool = sorted([*state.waiting, *new_links], key=lambda link: -(link.at or 0))
        state.waiting = pool[: self._settings.max_pages]
        older = pool[self._settings.max_pages :]
        state.mark_seen(link.url for link in older)
        if state.files_waiting:
            return
        state.is_started = True
        visited = self._visit_pages()
        # Pages that stay unread now would later look as if they were new.
        untried = [link for link in state.waiting if link.url not in state.tries]
        dropped = untried[max(0, MIN_FIRST_PAGES - visited) :]
        state.mark_seen(link.url for link in dropped)
        state.waiting = [link for link in state.waiting if link not in dropped]
        older += dropped
        if older:
            message = f"{counted(len(older), 'older page was there before the first poll; it is', 'older pages were there before the first poll; they are')} not read."
            self._notes.append(Note("older_pages", message))

    def _recently_dated(self, links: list[PageLink]) -> list[PageLink]:
        """Return the links, or only those of the last week if the site lists more than is remembered."""
        if not self._state.is_full:
            return links
        message = (
            f"The site lists more than {SEEN_KEPT} pages, so only those that its sitemap dates within the last week are "
            "read as new. Give a sitemap that lists fewer as `sitemap`."
        )
        self._notes.append(Note("too_many_pages", message))
        return [link for link in links if link.at is not None and link.at >= self._at - WEEK]

    def _changed_pages(self, links: Sequence[PageLink], *, is_complete: bool) -> list[PageLink]:
        """Return known pages that the listing dates as changed, and, once and if `is_complete`, the missing ones."""
        pages = self._state.pages
        changed = [
            link
            for link in links
            if (record := pages.get(link.url)) and link.at and link.at > (record.stamp or record.checked)
        ]
        listed_urls = {link.url for link in links}
        for url, record in pages.items() if is_complete else ():
            is_missing = url not in listed_urls
            if record.digest and is_missing and not record.is_missing:
                changed.append(PageLink(url, "", ""))
            record.is_missing = is_missing
        return changed

    def _visit_pages(self, changed: Sequence[PageLink] = ()) -> int:
        """Fetch at most `max_pages`: new, then changed, then due ones. Return the number of new ones visited."""
        state, limit = self._state, self._settings.max_pages
        queue, state.waiting = state.waiting, []
        unvisited = self._work.visit_all(queue, limit=limit)
        visited = len(queue) - len(unvisited)
        state.waiting = [*unvisited, *state.waiting]
        if not self._work.is_stopped and visited < limit:
            known = {link.url for link in (*queue, *changed)}
            due = [
                url for url, record in state.pages.items() if url not in known and record.is_due(now=self._at)
            ]
            due.sort(key=lambda url: state.pages[url].checked)
            rechecks = [*changed, *(PageLink(url, "", "") for url in due)]
            self._work.visit_all(rechecks, limit=limit - visited)
        return visited

    # --- The end ---

    def _result(self) -> Fetch:
        """Return the fetch with its entries, state and notes."""
        state = self._state
        state.robots = self._robots.as_state()
        waits = [wait for wait in (self._wait, self._work.wait) if wait is not None]
        entries = self._work.entries
        licences = [str(entry.metadata["licence"]) for entry in entries if entry.metadata.get("licence")]
        state.licences = list(dict.fromkeys([*licences, *state.licences]))[:MAX_LICENCES_NAMED]
        # Newest first, as far as the pages have dates; withdrawn pages come last.
        entries.sort(
            key=lambda entry: (
                entry.withdrawn,
                -(entry.published_at.timestamp() if entry.published_at else self._at),
            )
        )
        return Fetch(
            entries=tuple(entries),
            state=state.as_state(),
            not_modified=not entries,
            title=self._title,
            wait_at_least=max(waits, default=None),
            moved_to=self._moved_to,
            notes=(
                *self._mode_notes(),
                self._robots.note_on(self._settings.url),
                *self._notes,
                *self._work.notes(),
            ),
        )

    def _mode_notes(self) -> list[Note]:
        """Return notes on how the address is read, the licences of its pages, and pages that wait."""
        state, settings = self._state, self._settings
        notes = []
        if state.mode == "page":
            message = "The page itself is read, as one article. To read the articles that it links to, give an `item_selector`."
            record = state.pages.get(settings.url)
            if record and (reason := sentence_of(record.why)):
                message = f"Nothing is imported yet. {reason} {message}"
            notes.append(Note("reads_page", message))
        elif state.mode == "sitemap":
            sitemaps = settings.sitemap or ", ".join(state.roots[:3])
            below = f", as far as they lie under the folder of {settings.url}" if settings.sitemap else ""
            notes.append(Note("reads_sitemap", f"The pages that {sitemaps} lists are read{below}."))
        elif settings.selector:
            notes.append(Note("reads_list", f"The pages behind what matches {settings.selector} are read."))
        else:
            message = (
                "The page is read as a list: the links on it that look like articles are followed. To choose them, "
                "give an `item_selector`; to read the page itself, set `max_pages` to 1."
            )
            notes.append(Note("reads_list", message))
        if state.licences:
            notes.append(Note("licences", f"Its pages name as their licence {', '.join(state.licences)}."))
        if state.waiting:
            notes.append(
                Note(
                    "pages_waiting",
                    f"{counted(len(state.waiting), 'listed page is', 'listed pages are')} read at the next polls.",
                )
            )
        return notes


def _article_links(page: PageText, url: str) -> list[PageLink]:
    """Return the links that look like articles, or all links of a page that is hardly more than links."""
    articles = find_articles(page.links, page=url)
    if len(articles) < MIN_ARTICLE_LINKS and is_list_of_links(page):
        return find_links(page.links, page=url)
    return articles


def failure_of(problem: VisitFailed) -> PluginError:
    """Return the plug-in error for a failure to read the source's own address."""
    if problem.kind == "left_out":
        message = f"{problem.message} Give another address."
        return Refused(message, code=problem.code, field="config.url", platform_status=problem.status)
    if problem.kind == "gone":
        message = f"{problem.message} If this continues, check the address."
        return TryLater(message, code="not_found", after=problem.after, platform_status=problem.status)
    wait = problem.after
    if wait is None and problem.code in {"forbidden", "challenge"}:
        wait = FORBIDDEN_WAIT
    return TryLater(problem.message, code=problem.code, after=wait, platform_status=problem.status)
