"""Reads pages and sitemaps into plain records, in a child process that is killed at its limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pipeline.plugins import TryLater
from pipeline.sources.isolated_child import ChildFailed, IsolatedChild, NoProcess

if TYPE_CHECKING:
    from types import TracebackType

WALL_SECONDS: Final = 16
"""Twice the CPU limit of the child, for busy machines."""
CHILD: Final = Path(__file__).with_name("page_reader_child.py")
MIN_TEXT_CHARACTERS: Final = 200
"""A page with less text than this may need its JavaScript to run."""


class PageUnreadable(Exception):
    """Raised if the document can't be read; `problem` is `empty`, `broken`, `entities` or `too_complex`."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True)
class PageLink:
    """An absolute link; `place` is `heading`, `article`, `nav`, `selected`, `sitemap` or empty."""

    url: str
    text: str
    place: str
    at: int | None = None
    """When the page changed according to a sitemap, in seconds since 1970."""


@dataclass(frozen=True)
class PageText:
    """A parsed page.

    `body` is Markdown, `robots` holds the rules for robots in its head, `licence` is an address or a name.
    `says_article` is the page's claim to be an article, `matches` are the links that the selector matches.
    """

    title: str
    body: str
    author: str
    language: str
    published_at: datetime | None
    canonical: str
    image: str
    site: str
    description: str
    licence: str
    robots: tuple[str, ...]
    is_tdm_reserved: bool
    says_article: bool
    is_free: bool
    has_password: bool
    looks_like_app: bool
    links: tuple[PageLink, ...]
    matches: tuple[PageLink, ...]


@dataclass(frozen=True)
class SitemapText:
    """A parsed sitemap; `kind` is `urlset`, `index`, or empty for a document that is no sitemap."""

    kind: str
    links: tuple[PageLink, ...]
    is_cut: bool


class PageReader:
    """Reads documents in one child process, which is started for the first and killed at the end."""

    def __init__(self, *, robot: str) -> None:
        self._child = IsolatedChild(CHILD, library="trafilatura")
        self._robot = robot

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._child.stop()

    def read_page(
        self, document: bytes, *, url: str, content_type: str, xpath: str, now: datetime
    ) -> PageText:
        """Return the parsed page. Raises `PageUnreadable` if it can't be read, `TryLater` on a busy machine."""
        question = {
            "task": "page",
            "url": url,
            "content_type": content_type,
            "robot": self._robot,
            "xpath": xpath,
        }
        return _page_of(self._ask(question, document), now=now)

    def read_sitemap(self, document: bytes, *, url: str) -> SitemapText:
        """Return the parsed sitemap. Raises `PageUnreadable` if it can't be read, `TryLater` on a busy machine."""
        answer = self._ask({"task": "sitemap", "url": url}, document)
        links = tuple(
            PageLink(each["url"], each["text"], "sitemap", each["at"]) for each in answer["locations"]
        )
        return SitemapText(answer["kind"], links, answer["is_cut"])

    def _ask(self, question: dict[str, Any], document: bytes) -> dict[str, Any]:
        """Return the child's answer.

        Raises `PageUnreadable` if the child reports a problem or dies, and `TryLater` if it is too slow or
        can't be started.
        """
        try:
            answer: dict[str, Any] = self._child.ask(question, document, seconds=WALL_SECONDS)
        except ChildFailed as failure:
            if failure.is_slow:
                message = "Reading the page took too long on a busy machine."
                raise TryLater(message, code="page_timed_out") from None
            raise PageUnreadable(problem="too_complex") from None
        except NoProcess:
            message = "No process could be started to read the page."
            raise TryLater(message, code="no_process") from None
        if "problem" in answer:
            raise PageUnreadable(answer["problem"])
        return answer


def _page_of(answer: dict[str, Any], *, now: datetime) -> PageText:
    """Return the child's answer as a page."""
    at = answer["at"]
    is_bare = len(answer["body"]) < MIN_TEXT_CHARACTERS
    return PageText(
        title=answer["title"],
        body=answer["body"],
        author=answer["author"],
        language=answer["language"],
        # A date in the future comes from a wrong clock.
        published_at=min(datetime.fromtimestamp(at, tz=UTC), now) if at is not None else None,
        canonical=answer["canonical"],
        image=answer["image"],
        site=answer["site"],
        description=answer["description"],
        licence=answer["licence"] or answer.get("stated_licence", ""),
        robots=tuple(answer["robots"]),
        is_tdm_reserved=answer["tdm"].strip() == "1",
        says_article=answer["is_article"] or answer["og_type"] == "article",
        is_free=answer["is_free"],
        has_password=answer["has_password"],
        looks_like_app=is_bare and answer["scripts"] > 0 and (answer["is_app"] or answer["wants_scripts"]),
        links=_links_of(answer["links"]),
        matches=_links_of(answer["matches"]),
    )


def _links_of(records: list[dict[str, Any]]) -> tuple[PageLink, ...]:
    """Return the links that have an address, each address once."""
    by_url = {
        record["url"]: PageLink(record["url"], record["text"], record["place"])
        for record in records
        if record["url"]
    }
    return tuple(by_url.values())
