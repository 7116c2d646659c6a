"""Stores what the scraper remembers between two polls, as bounded JSON."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from pipeline.sources.web_pages.page_reader import PageLink

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_PAGES_FOLLOWED: Final = 2000
"""The most pages of one source that are checked for changes; of older pages only the address is known."""
SEEN_KEPT: Final = 250_000
"""The most addresses remembered, which are two MB of state; most sites have some hundred."""
MAX_WAITING: Final = 1000
FILES_KEPT: Final = 1000
_DIGEST_BYTES: Final = 6

DAY: Final = 24 * 3600
"""A day in seconds."""
WEEK: Final = 7 * DAY


@dataclass
class PageRecord:
    """One page. Times are seconds since 1970.

    `digest` is a hash of the text, empty for a page that was never taken in or is gone. `stamp` is the change that
    its sitemap dates, `changed` the change that we saw. `why` is the code of the reason if no item is made of it.
    """

    digest: str = ""
    etag: str = ""
    modified: str = ""
    stamp: int = 0
    checked: int = 0
    changed: int = 0
    identity: str = ""
    why: str = ""
    is_missing: bool = False
    """Whether its sitemap lists the page no more, for which one check is enough."""

    def is_due(self, *, now: int) -> bool:
        """Return whether to check the page again.

        The pause is a tenth of the time for which the page stayed the same, at most a week, or a week if its
        sitemap dates changes. A page that is left out rests for at least a day.
        """
        # Where a sitemap dates the changes, checking is only a safety net.
        rest = WEEK if self.stamp else min(0.1 * (now - self.changed), WEEK)
        return now - self.checked >= (max(rest, DAY) if self.why else rest)


@dataclass
class PagePollState:
    """Everything remembered of one source.

    `mode` is how its address is read: `page`, `list` or `sitemap`, empty at first. `tries` counts the polls at
    which a waiting page failed.
    """

    address: str
    mode: str = ""
    list_etag: str = ""
    list_modified: str = ""
    pages: dict[str, PageRecord] = field(default_factory=dict)
    waiting: list[PageLink] = field(default_factory=list)
    tries: dict[str, int] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    """The sitemaps that the site itself named."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """The validators of each sitemap file."""
    licences: list[str] = field(default_factory=list)
    """The licences that the newest pages named."""
    files_waiting: list[tuple[str, int]] = field(default_factory=list)
    """Sitemap files that there was no time for, with their depth under the first."""
    is_started: bool = False
    """Whether all pages that were there at the first poll are known; before that, no page counts as new."""
    robots: Mapping[str, Any] = field(default_factory=dict)
    seen: dict[bytes, None] = field(default_factory=dict)
    """Digests of addresses that were there before the first poll, or are too old to be followed."""

    @classmethod
    def of(cls, state: Mapping[str, Any], *, address: str) -> PagePollState:
        """Return the stored state, or an empty state if it can't be read or is of another address."""
        if state.get("address") != address:
            return cls(address)
        try:
            packed = base64.b64decode(state["seen"])
            return cls(
                address,
                mode=str(state["mode"]),
                list_etag=str(state["list_etag"]),
                list_modified=str(state["list_modified"]),
                pages={url: PageRecord(**record) for url, record in state["pages"].items()},
                waiting=[PageLink(*each) for each in state["waiting"]],
                tries={url: int(count) for url, count in state["tries"].items()},
                roots=[str(url) for url in state["roots"]],
                files={url: [str(etag), str(modified)] for url, (etag, modified) in state["files"].items()},
                licences=[str(each) for each in state["licences"]],
                files_waiting=[(str(url), int(depth)) for url, depth in state["files_waiting"]],
                is_started=state["is_started"] is True,
                robots=dict(state["robots"]),
                seen={packed[at : at + _DIGEST_BYTES]: None for at in range(0, len(packed), _DIGEST_BYTES)},
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return cls(address)

    def knows(self, url: str) -> bool:
        """Return whether an earlier poll read the page or marked it as seen."""
        return url in self.pages or _digest(url) in self.seen

    @property
    def is_full(self) -> bool:
        """Whether older pages may have been forgotten, so that an unknown address needn't be a new one."""
        return len(self.seen) >= SEEN_KEPT

    def mark_seen(self, urls: Iterable[str]) -> None:
        """Remember addresses as known, without following their pages."""
        self.seen.update(dict.fromkeys(map(_digest, urls)))

    def as_state(self) -> dict[str, Any]:
        """Cut the state to its bounds, and return it as JSON to store."""
        self._prune()
        empty = PageRecord()
        names = [each.name for each in fields(PageRecord)]
        return {
            "address": self.address,
            "mode": self.mode,
            "list_etag": self.list_etag,
            "list_modified": self.list_modified,
            "pages": {
                url: {
                    name: getattr(record, name)
                    for name in names
                    if getattr(record, name) != getattr(empty, name)
                }
                for url, record in self.pages.items()
            },
            "waiting": [list(asdict(link).values()) for link in self.waiting],
            "tries": {link.url: self.tries[link.url] for link in self.waiting if link.url in self.tries},
            "roots": self.roots,
            "files": dict(list(self.files.items())[:FILES_KEPT]),
            "licences": self.licences,
            "files_waiting": [list(each) for each in self.files_waiting],
            "is_started": self.is_started,
            "robots": dict(self.robots),
            "seen": base64.b64encode(b"".join(self.seen)).decode("ascii"),
        }

    def _prune(self) -> None:
        """Cut pages, waiting links and digests to their bounds; dropped pages stay marked as seen."""
        surplus = len(self.pages) - MAX_PAGES_FOLLOWED
        if surplus > 0:
            oldest = sorted(self.pages, key=lambda url: self.pages[url].changed)[:surplus]
            self.mark_seen(oldest)
            for url in oldest:
                del self.pages[url]
        self.mark_seen(link.url for link in self.waiting[MAX_WAITING:])
        del self.waiting[MAX_WAITING:]
        self.seen = dict.fromkeys(list(self.seen)[-SEEN_KEPT:])


def _digest(url: str) -> bytes:
    """Return a short hash of an address."""
    return hashlib.sha256(url.encode("utf-8", errors="surrogatepass")).digest()[:_DIGEST_BYTES]
