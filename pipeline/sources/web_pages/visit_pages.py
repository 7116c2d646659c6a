"""Visits pages one after another, and makes entries of new, edited, withdrawn and left-out ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.plugins import TryLater
from pipeline.sources.base import Entry, Note
from pipeline.sources.web_pages.entry import entry_of, own_address, rules_of, why_left_out
from pipeline.sources.web_pages.page_reader import PageUnreadable
from pipeline.sources.web_pages.polite_fetch import OutOfTime, VisitFailed, check_type
from pipeline.sources.web_pages.poll_state import PageRecord
from pipeline.text.plain_text import content_hash

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from pipeline.sources.web_pages.page_reader import PageLink, PageReader, PageText
    from pipeline.sources.web_pages.polite_fetch import PoliteFetcher, Visit
    from pipeline.sources.web_pages.poll_state import PagePollState
    from pipeline.sources.web_pages.render import Renderer

MAX_TRIES: Final = 5
"""The number of polls at which a new page fails before it is left out."""

_UNREADABLE: Final = {
    "empty": ("no_text", "The page is empty."),
    "too_complex": ("page_too_complex", "The page costs too much to read."),
}


class PageWork:
    """One poll's work on single pages; it writes their records into the state.

    `wait` is the pause that an origin asks for, and `is_stopped` says that no further page may be fetched.
    """

    def __init__(
        self,
        state: PagePollState,
        fetcher: PoliteFetcher,
        reader: PageReader,
        *,
        robot: str,
        home: str,
        now: datetime,
        renderer: Renderer | None = None,
    ) -> None:
        self.entries: list[Entry] = []
        self.wait: timedelta | None = None
        self.is_stopped = False
        self._state = state
        self._fetcher = fetcher
        self._reader = reader
        self._robot = robot
        self._home = home
        self._now = now
        self._renderer = renderer
        self._problems: dict[str, tuple[int, str, str]] = {}
        self._owners = {record.identity: url for url, record in state.pages.items() if record.identity}

    @property
    def at(self) -> int:
        """The moment of the poll in seconds since 1970."""
        return int(self._now.timestamp())

    def visit_all(self, links: Sequence[PageLink], *, limit: int) -> list[PageLink]:
        """Visit the first `limit` pages while there is time. Return the links that are still to be visited.

        A page whose failure stops the poll is returned last, if it is to be tried again.
        """
        for index, link in enumerate(links[:limit]):
            try:
                self.check_page(link)
            except OutOfTime as error:
                self.wait, self.is_stopped = error.after, True
                return list(links[index:])
            except VisitFailed as problem:
                self.wait, self.is_stopped = problem.after, True
                to_retry = [link] if link.url in self._state.tries else []
                return [*links[index + 1 :], *to_retry]
        return list(links[limit:])

    def check_page(self, link: PageLink) -> None:
        """Visit one page, and record the result.

        Raises `OutOfTime` if there is no time for it, and `VisitFailed` if it fails and no further page should
        be fetched.
        """
        record = self._state.pages.get(link.url) or PageRecord()
        try:
            visit = self.visit(link.url, record)
            if visit.is_unchanged:
                self.mark_checked(link, record, visit)
                return
            self.take_page(link, visit, self.read(visit))
        except VisitFailed as problem:
            self.record_failure(link, record, problem)
            if problem.stops:
                raise

    def visit(self, url: str, record: PageRecord) -> Visit:
        """Fetch a page, rendered if the source wants it.

        Raises `OutOfTime` if there is no time for it, and `VisitFailed` if it can't be fetched or rendered.
        """
        # No validators, because a page can change after its JavaScript ran while its document stays the same.
        if self._renderer is not None:
            return self._renderer.render(self._fetcher.visit(url))
        return self._fetcher.visit(url, etag=record.etag, last_modified=record.modified)

    def read(self, visit: Visit, *, xpath: str = "") -> PageText:
        """Return the parsed page. Raises `VisitFailed` if it isn't a page or can't be read."""
        check_type(visit.content_type)
        try:
            return self._reader.read_page(
                visit.body, url=visit.url, content_type=visit.content_type, xpath=xpath, now=self._now
            )
        except PageUnreadable as error:
            code, message = _UNREADABLE.get(
                error.problem, ("page_broken", "The page is too broken to be read.")
            )
            raise VisitFailed(message, code=code, kind="left_out") from error
        except TryLater as error:
            raise VisitFailed(error.message, code=error.code, kind="later") from error

    def take_page(self, link: PageLink, visit: Visit, page: PageText) -> None:
        """Record a page that was read, and make an entry of it if it is new or has changed.

        Raises `VisitFailed` if the address of a known page now leads to another page.
        """
        url = link.url
        record = self._state.pages.get(url) or PageRecord()
        if (record.digest or record.why == "gone") and self._leads_away(url, record, visit):
            message = "The address now leads to another page."
            raise VisitFailed(message, code="gone", kind="gone")
        rules = rules_of(page, visit, robot=self._robot)
        left_out = why_left_out(page, visit, rules)
        digest = content_hash(page.title, page.body)[:16]
        identity = record.identity or self._identity_of(url, page, visit, digest)
        self.mark_checked(link, record, visit)
        left_out_code = left_out.code if left_out else ""
        if not identity:
            record.why = "duplicate"
            return
        has_changed = record.why != left_out_code if left_out else digest != record.digest or record.why != ""
        record.identity, record.why = identity, left_out_code
        if not left_out:
            record.digest = digest
        self._owners[identity] = url
        if has_changed:
            record.changed = self.at
            self.entries.append(entry_of(page, visit, identity=identity, rules=rules, left_out=left_out))

    def notes(self) -> list[Note]:
        """Return a note for each kind of problem that pages had at this poll, with the first address."""
        notes = []
        for code, (count, message, url) in sorted(self._problems.items()):
            others = f" So did {count - 1} more of this poll." if count > 1 else ""
            notes.append(Note(code, f"{url}: {message}{others}"))
        return notes

    def mark_checked(self, link: PageLink, record: PageRecord, visit: Visit) -> None:
        """Record that the page was checked, with its validators and the date in its sitemap."""
        record.checked = self.at
        record.changed = record.changed or self.at
        record.etag, record.modified = visit.etag or record.etag, visit.last_modified or record.modified
        if not visit.is_unchanged:
            record.etag, record.modified = visit.etag, visit.last_modified
        record.stamp = max(record.stamp, link.at or 0)
        self._state.pages[link.url] = record
        self._state.tries.pop(link.url, None)

    def _identity_of(self, url: str, page: PageText, visit: Visit, digest: str) -> str:
        """Return the address that identifies the page: its canonical one, else the visited one.

        It is empty if a known page with the same text has that identity, or other pages have both.
        """
        for candidate in (own_address(page, visit), visit.url):
            owner = self._owners.get(candidate)
            if owner is None or owner == url:
                return candidate
            if self._state.pages[owner].digest == digest:
                return ""
        return ""

    def _leads_away(self, url: str, record: PageRecord, visit: Visit) -> bool:
        """Return whether a known page now redirects to the front page, the list or another known page."""
        target = visit.url
        # An address that has always redirected there hasn't changed.
        if target.rstrip("/") in {url.rstrip("/"), record.identity.rstrip("/")}:
            return False
        owner = self._owners.get(target)
        is_home = target.rstrip("/") == self._home.rstrip("/") or not urlsplit(target).path.strip("/")
        return is_home or target in self._state.pages or (owner is not None and owner != url)

    def record_failure(self, link: PageLink, record: PageRecord, problem: VisitFailed) -> None:
        """Record that the page failed: withdraw or leave out its entry, or keep it for a later poll."""
        url = link.url
        if problem.kind == "later":
            self._count_problem(url, problem)
            if url in self._state.pages:
                record.checked = self.at
                return
            tries = self._state.tries[url] = self._state.tries.get(url, 0) + 1
            if tries < MAX_TRIES:
                if not problem.stops:
                    self._state.waiting.append(link)
                return
            problem = VisitFailed(
                f"{problem.message} It failed at {tries} polls.", code="unreachable", kind="left_out"
            )
        record.checked = self.at
        record.stamp = max(record.stamp, link.at or 0)
        record.etag = record.modified = ""
        self._state.pages[url] = record
        self._state.tries.pop(url, None)
        if problem.kind == "gone":
            self._withdraw(url, record, problem)
        elif record.why != problem.code:
            record.why, record.changed = problem.code, self.at
            record.identity = record.identity or url
            left_out = Note(problem.code, problem.message)
            self.entries.append(
                Entry(external_id=record.identity, url=url, title=link.text, left_out=left_out)
            )

    def _withdraw(self, url: str, record: PageRecord, problem: VisitFailed) -> None:
        """Record that a page is gone, and withdraw its entry if it has one."""
        if record.digest:
            self.entries.append(Entry(external_id=record.identity, url=url, withdrawn=True))
        elif record.why != "gone":
            self._count_problem(url, problem)
        record.why, record.digest, record.changed = "gone", "", self.at

    def _count_problem(self, url: str, problem: VisitFailed) -> None:
        """Count the problem for the notes, which name the first message and address of each code."""
        count, message, first_url = self._problems.get(problem.code, (0, problem.message, url))
        self._problems[problem.code] = (count + 1, message, first_url)
