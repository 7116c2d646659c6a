"""One poll of the scraper: how the address is read, what is listed there, which pages are looked at."""

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
    ENOUGH,
    find_articles,
    find_links,
    is_feed,
    is_sitemap,
    list_sitemaps,
)
from pipeline.sources.web_pages.memory import SEEN_KEPT, WEEK, PageRecord
from pipeline.sources.web_pages.page_reader import NEARLY_NO_TEXT, PageLink
from pipeline.sources.web_pages.polite_fetch import LONGEST_PAUSE, OutOfTime, VisitFailed
from pipeline.sources.web_pages.robots import origin_of
from pipeline.sources.web_pages.visit_pages import PageWork
from pipeline.text.links import canonical_url
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.sources.web_pages.memory import PageMemory
    from pipeline.sources.web_pages.page_reader import PageReader, PageText
    from pipeline.sources.web_pages.polite_fetch import Visit, Visitor
    from pipeline.sources.web_pages.render import Renderer
    from pipeline.sources.web_pages.robots import Robots

LEAST_AT_FIRST: Final = 5
"""Newest pages of a first poll that wait for the next one where there was no time for them."""
LICENCES_TOLD: Final = 3
# Asking a server that refuses us again sooner only confirms its judgement.
FORBIDDEN_WAIT: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Settings:
    url: str
    sitemap: str
    selector: str
    xpath: str
    max_pages: int


class PagePoll:
    """Everything of one fetch; `memory` is written as it goes."""

    def __init__(
        self,
        settings: Settings,
        memory: PageMemory,
        *,
        visitor: Visitor,
        reader: PageReader,
        robots: Robots,
        robot: str,
        renderer: Renderer | None,
        now: datetime,
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._visitor = visitor
        self._reader = reader
        self._robots = robots
        self._work = PageWork(
            memory, visitor, reader, robot=robot, home=settings.url, now=now, renderer=renderer
        )
        self._at = int(now.timestamp())
        self._notes: list[Note] = []
        self._title = ""
        self._moved_to = ""
        self._wait: timedelta | None = None

    def run(self) -> Fetch:
        """Raises `Refused` and `TryLater` where the source as a whole can't be read."""
        try:
            if self._must_save_requests():
                self._look_at_pages()
            elif self._memory.mode == "page":
                self._run_page()
            elif self._settings.sitemap or self._memory.mode == "sitemap":
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
        """Whether one request is all that a poll may make, and pages wait for theirs."""
        is_next = self._memory.is_started and bool(self._memory.waiting)
        return is_next and self._visitor.delay_of(self._settings.url) > LONGEST_PAUSE

    # --- One page ---

    def _run_page(self) -> None:
        link = PageLink(self._settings.url, "", "")
        record = self._memory.pages.get(link.url) or PageRecord()
        try:
            visit = self._work.visit(link.url, record)
            self._moved_to = visit.moved_to
            if visit.is_unchanged:
                self._work.stay(link, record, visit)
            else:
                self._take_page(link, visit, self._work.read(visit))
        except VisitFailed as problem:
            # What was taken in can be withdrawn or closed; what never was is a source that doesn't work.
            if not record.digest or problem.kind == "later":
                raise
            self._work.tell(link, record, problem)

    def _take_page(self, link: PageLink, visit: Visit, page: PageText) -> None:
        self._title = page.title
        self._work.take(link, visit, page)

    # --- A page with links ---

    def _run_address(self) -> None:
        """Read the address, which at the first poll may turn out to be any of the three."""
        memory, settings = self._memory, self._settings
        record = PageRecord(etag=memory.list_etag, modified=memory.list_modified)
        visit = self._work.visit(settings.url, record)
        self._moved_to = visit.moved_to
        if visit.is_unchanged:
            self._look_at_pages()
            return
        if is_feed(visit):
            message = "The address leads to a feed, not to a page. Add it as a source of type rss."
            raise Refused(message, code="is_feed", field="config.url")
        if not settings.selector and is_sitemap(visit):
            memory.roots = [settings.url]
            self._run_sitemaps()
            return
        page = self._work.read(visit, xpath=settings.xpath)
        links = self._selected(page) if settings.selector else _articles_on(page, visit.url)
        mode = memory.mode or ("list" if settings.selector else self._mode_of(page, links))
        if mode == "sitemap" and self._find_sitemaps(page):
            self._run_sitemaps()
        elif mode in {"page", "sitemap"}:
            memory.mode, memory.is_started = "page", True
            self._take_page(PageLink(settings.url, "", ""), visit, page)
        else:
            self._title = page.site or page.title
            memory.mode = "list"
            memory.list_etag, memory.list_modified = visit.etag, visit.modified
            self._run_listed(links, is_complete=False)

    def _selected(self, page: PageText) -> list[PageLink]:
        if page.matches:
            return list(page.matches)
        message = (
            f"Nothing on the page that holds a link matches {self._settings.selector}. Look at the page's source and "
            "give a selector that matches the articles' links or blocks, or leave it out."
        )
        if self._memory.is_started:
            raise TryLater(message, code="selector_matches_nothing")
        raise Refused(message, code="selector_matches_nothing", field="config.item_selector")

    def _mode_of(self, page: PageText, links: Sequence[PageLink]) -> str:
        is_front = not urlsplit(self._settings.url).path.strip("/")
        if self._settings.max_pages == 1 or (page.says_article and not is_front):
            return "page"
        if len(links) >= (1 if is_front or is_list_of_links(page) else ENOUGH):
            return "list"
        return "sitemap" if is_front else "page"

    # --- Sitemaps ---

    def _find_sitemaps(self, page: PageText) -> bool:
        """Whether the site names sitemaps; one that says nothing and shows nothing may still have the usual one."""
        named = list(self._robots.sitemaps_of(self._settings.url))
        if not named and len(page.body) < NEARLY_NO_TEXT:
            usual = f"{origin_of(self._settings.url)}/sitemap.xml"
            try:
                named = [usual] if is_sitemap(self._visitor.visit(usual)) else []
            except (VisitFailed, OutOfTime):
                # Not there, or not for us: then the page is all that there is.
                named = []
        self._memory.roots = named
        return bool(named)

    def _run_sitemaps(self) -> None:
        memory, settings = self._memory, self._settings
        roots = [settings.sitemap] if settings.sitemap else memory.roots
        listing = list_sitemaps(
            roots,
            below=settings.url if settings.sitemap else "",
            memory=memory,
            visitor=self._visitor,
            reader=self._reader,
            now=self._at,
        )
        if listing.problem is not None:
            if listing.files_read == 0:
                raise listing.problem
            self._notes.append(Note(listing.problem.code, listing.problem.message))
        if memory.files_waiting:
            message = f"{counted(len(memory.files_waiting), 'further sitemap file is', 'further sitemap files are')} read at the next polls."
            self._notes.append(Note("sitemaps_waiting", message))
        if listing.files_left_out:
            message = (
                f"{counted(listing.files_left_out, 'sitemap file is', 'sitemap files are')} not read: there are too many. Give the one that lists the "
                "articles as `sitemap`."
            )
            self._notes.append(Note("sitemaps_left_out", message))
        memory.mode = "sitemap"
        self._wait = listing.after
        self._run_listed(list(listing.links), is_complete=listing.is_complete)

    # --- What is listed ---

    def _run_listed(self, links: Sequence[PageLink], *, is_complete: bool) -> None:
        memory = self._memory
        # Addresses that differ only in what tells where a reader came from are one page.
        named = [replace(link, url=canonical_url(link.url)) for link in links]
        links = list({link.url: link for link in named}.values())
        waiting = {link.url for link in memory.waiting}
        fresh = [link for link in links if not memory.knows(link.url) and link.url not in waiting]
        if memory.is_started:
            fresh = self._surely_new(fresh)
            memory.waiting = [*fresh, *memory.waiting]
            self._look_at_pages(self._changed(links, is_complete=is_complete))
            return
        pool = sorted([*memory.waiting, *fresh], key=lambda link: -(link.at or 0))
        memory.waiting = pool[: self._settings.max_pages]
        older = pool[self._settings.max_pages :]
        memory.mark_seen(link.url for link in older)
        if memory.files_waiting:
            return
        memory.is_started = True
        looked_at = self._look_at_pages()
        # Whatever stays unread now would come later as if it were news.
        untried = [link for link in memory.waiting if link.url not in memory.tries]
        dropped = untried[max(0, LEAST_AT_FIRST - looked_at) :]
        memory.mark_seen(link.url for link in dropped)
        memory.waiting = [link for link in memory.waiting if link not in dropped]
        older += dropped
        if older:
            message = f"{counted(len(older), 'older page was there before the first poll; it is', 'older pages were there before the first poll; they are')} not read."
            self._notes.append(Note("older_pages", message))

    def _surely_new(self, fresh: list[PageLink]) -> list[PageLink]:
        """Where more is listed than can be remembered, only what is dated of late is no page of long ago."""
        if not self._memory.is_full:
            return fresh
        message = (
            f"The site lists more than {SEEN_KEPT} pages, so only those that its sitemap dates within the last week are "
            "read as new. Give a sitemap that lists fewer as `sitemap`."
        )
        self._notes.append(Note("too_many_pages", message))
        return [link for link in fresh if link.at is not None and link.at >= self._at - WEEK]

    def _changed(self, links: Sequence[PageLink], *, is_complete: bool) -> list[PageLink]:
        """Pages that the listing says were changed or taken away."""
        pages = self._memory.pages
        found = [
            link
            for link in links
            if (record := pages.get(link.url)) and link.at and link.at > (record.stamp or record.checked)
        ]
        listed = {link.url for link in links}
        for url, record in pages.items() if is_complete else ():
            is_missing = url not in listed
            if record.digest and is_missing and not record.is_missing:
                found.append(PageLink(url, "", ""))
            record.is_missing = is_missing
        return found

    def _look_at_pages(self, changed: Sequence[PageLink] = ()) -> int:
        """New pages first, then changed ones, then those whose time has come; the number of new ones looked at."""
        memory, most = self._memory, self._settings.max_pages
        queue, memory.waiting = memory.waiting, []
        left = self._work.visit_all(queue, most=most)
        looked_at = len(queue) - len(left)
        memory.waiting = [*left, *memory.waiting]
        if not self._work.is_stopped and looked_at < most:
            known = {link.url for link in (*queue, *changed)}
            due = [
                url
                for url, record in memory.pages.items()
                if url not in known and record.is_due(now=self._at)
            ]
            due.sort(key=lambda url: memory.pages[url].checked)
            again = [*changed, *(PageLink(url, "", "") for url in due)]
            self._work.visit_all(again, most=most - looked_at)
        return looked_at

    # --- The end ---

    def _result(self) -> Fetch:
        memory = self._memory
        memory.robots = self._robots.as_state()
        waits = [wait for wait in (self._wait, self._work.wait) if wait is not None]
        entries = self._work.entries
        named = [str(entry.metadata["licence"]) for entry in entries if entry.metadata.get("licence")]
        memory.licences = list(dict.fromkeys([*named, *memory.licences]))[:LICENCES_TOLD]
        # Newest first, as far as the pages say; what was taken back comes last.
        entries.sort(
            key=lambda entry: (
                entry.withdrawn,
                -(entry.published_at.timestamp() if entry.published_at else self._at),
            )
        )
        return Fetch(
            entries=tuple(entries),
            state=memory.as_state(),
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
        memory, settings = self._memory, self._settings
        found = []
        if memory.mode == "page":
            message = "The page itself is read, as one article. To read the articles that it links to, give an `item_selector`."
            record = memory.pages.get(settings.url)
            if record and (why := sentence_of(record.why)):
                message = f"Nothing is taken in yet. {why} {message}"
            found.append(Note("reads_page", message))
        elif memory.mode == "sitemap":
            where = settings.sitemap or ", ".join(memory.roots[:3])
            below = f", as far as they lie under the folder of {settings.url}" if settings.sitemap else ""
            found.append(Note("reads_sitemap", f"The pages that {where} lists are read{below}."))
        elif settings.selector:
            found.append(Note("reads_list", f"The pages behind what matches {settings.selector} are read."))
        else:
            message = (
                "The page is read as a list: the links on it that look like articles are followed. To choose them, "
                "give an `item_selector`; to read the page itself, set `max_pages` to 1."
            )
            found.append(Note("reads_list", message))
        if memory.licences:
            found.append(Note("licences", f"Its pages name as their licence {', '.join(memory.licences)}."))
        if memory.waiting:
            found.append(
                Note(
                    "pages_waiting",
                    f"{counted(len(memory.waiting), 'listed page is', 'listed pages are')} read at the next polls.",
                )
            )
        return found


def _articles_on(page: PageText, url: str) -> list[PageLink]:
    """Links that look like articles; on a page that is hardly more than links, all that its reader could follow."""
    found = find_articles(page.links, page=url)
    return find_links(page.links, page=url) if len(found) < ENOUGH and is_list_of_links(page) else found


def failure_of(problem: VisitFailed) -> PluginError:
    """What keeps the source's own address from being read, as the failure of the poll."""
    if problem.kind == "left_out":
        message = f"{problem.message} Give another address."
        return Refused(message, code=problem.code, field="config.url", platform_status=problem.status)
    if problem.kind == "gone":
        message = f"{problem.message} If it goes on, check the address."
        return TryLater(message, code="not_found", after=problem.after, platform_status=problem.status)
    after = problem.after
    if after is None and problem.code in {"forbidden", "challenge"}:
        after = FORBIDDEN_WAIT
    return TryLater(problem.message, code=problem.code, after=after, platform_status=problem.status)
