"""RSS, RDF, Atom and JSON feeds, fetched with conditional requests, found from the address of a web page too."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from config.core.http_client import OutboundError
from pipeline.limits import FEED_BYTES
from pipeline.plugins import Evidence, Refused, TryLater
from pipeline.sources.base import FETCH_SECONDS, Entry, Fetch, Hub, Note, Quiet, Source
from pipeline.sources.config_fields import BATCH_HOURS, Group, WebAddress, clean
from pipeline.sources.feeds import discovery
from pipeline.sources.feeds.answers import (
    fail,
    from_outbound,
    hub_in_headers,
    moved_to,
    validators_of,
    wait_of,
)
from pipeline.sources.feeds.identity import KnownIdentities, identify
from pipeline.sources.feeds.read_feed import FeedDocument, WebPage, entry_of, notes_on, read_feed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response

ACCEPT: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
    "application/xml;q=0.8, */*;q=0.1"
)
TIMEOUT_SECONDS: Final = 20
MAX_REDIRECTS: Final = 5

SETTINGS: Final = Group(
    "the settings of the feed",
    {
        "url": WebAddress("the address of an RSS, Atom or JSON feed, or of a web page that has one"),
        "batch_hours": BATCH_HOURS,
    },
    required=("url",),
)


@dataclass(frozen=True)
class _Memory:
    """What the last poll left: validators as the server sent them, and a hash for those that lie.

    `feed_url` is where the feed of a web page was found, empty where the address given is the feed's own. `wait_seconds`,
    `quiet` and `hub` are what the document said, for the answers that hold no document.
    """

    url: str
    feed_url: str = ""
    etag: str = ""
    last_modified: str = ""
    body_sha256: str = ""
    wait_seconds: int = 0
    quiet: Quiet = field(default_factory=Quiet)
    hub: Hub | None = None
    known: KnownIdentities = field(default_factory=KnownIdentities)

    @classmethod
    def of(cls, state: Mapping[str, Any], *, url: str) -> _Memory:
        # After a change of the address, the validators speak of another document.
        if state.get("url") != url:
            return cls(url)
        texts = {
            key: value if isinstance(value := state.get(key), str) else ""
            for key in ("feed_url", "etag", "last_modified", "body_sha256")
        }
        wait = state.get("wait_seconds")
        hubs, topic = _texts(state.get("hubs")), state.get("topic")
        return cls(
            url,
            **texts,
            wait_seconds=wait if isinstance(wait, int) and wait > 0 else 0,
            quiet=Quiet(_numbers(state.get("skip_hours")), _numbers(state.get("skip_days"))),
            hub=Hub(hubs, topic) if hubs and isinstance(topic, str) else None,
            known=KnownIdentities.of(state.get("known")),
        )

    def as_state(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "feed_url": self.feed_url,
            "etag": self.etag,
            "last_modified": self.last_modified,
            "body_sha256": self.body_sha256,
            "wait_seconds": self.wait_seconds,
            "skip_hours": sorted(self.quiet.hours),
            "skip_days": sorted(self.quiet.days),
            "hubs": list(self.hub.urls) if self.hub else [],
            "topic": self.hub.topic if self.hub else "",
            "known": self.known.as_state(),
        }

    @property
    def address(self) -> str:
        return self.feed_url or self.url

    @property
    def notes(self) -> tuple[Note, ...]:
        if not self.feed_url:
            return ()
        return (Note("feed_found", f"The address is a web page's; its feed at {self.feed_url} is read."),)

    def headers(self) -> dict[str, str]:
        found = {"Accept": ACCEPT}
        # Without the hash there was no body that "not modified" could speak of.
        if self.body_sha256 and self.etag:
            found["If-None-Match"] = self.etag
        if self.body_sha256 and self.last_modified:
            found["If-Modified-Since"] = self.last_modified
        return found

    @property
    def is_conditional(self) -> bool:
        return len(self.headers()) > 1


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _numbers(value: object) -> frozenset[int]:
    return (
        frozenset(each for each in value if isinstance(each, int)) if isinstance(value, list) else frozenset()
    )


class _FoundFeedLost(Exception):
    """The feed that was found from a page is no longer there."""


class Rss(Source):
    kind = "rss"
    label = "RSS or Atom feed"
    evidence = Evidence("server", "WordPress 6.1", "tests/sources/test_real_wordpress.py")
    fetches = True
    config_schema: ClassVar[Mapping[str, Any]] = SETTINGS.schema()

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return clean(SETTINGS, config)

    def fetch(
        self,
        config: Mapping[str, Any],
        state: Mapping[str, Any],
        *,
        http: Client,
        now: datetime,
        environment: Mapping[str, str],
    ) -> Fetch:
        """Ask the feed once; an empty `state` makes the request unconditional.

        The address of a web page is as good where the page has one feed: it is remembered in `state` and told in a
        note. A page with several is refused with their addresses.
        """
        del environment
        reading = _Reading(http, now, monotonic() + FETCH_SECONDS)
        memory = _Memory.of(state, url=config["url"])
        if memory.feed_url:
            try:
                return reading.poll(memory)
            except _FoundFeedLost:
                memory = _Memory(memory.url, known=memory.known)
        special = discovery.of_special_host(memory.url)
        if len(special) == 1:
            try:
                return reading.poll(replace(memory, feed_url=special[0].url))
            except TryLater as error:
                if error.code != "not_found":
                    raise
        try:
            return reading.poll(memory)
        except WebPage as page:
            found = discovery.of_page(page.links, reading.page, http, until=reading.until)
            return reading.poll(replace(memory, feed_url=discovery.choose_feed(found or special).url))


class _Reading:
    """One fetch: its client, its moment, and when it has to be over (of `monotonic()`)."""

    def __init__(self, http: Client, now: datetime, until: float) -> None:
        self.http = http
        self.now = now
        self.until = until
        self.page: Response | None = None
        """The last answer that was read as a document."""

    def poll(self, memory: _Memory) -> Fetch:
        try:
            response = self.http.get(
                memory.address,
                headers=memory.headers(),
                timeout=max(1, min(TIMEOUT_SECONDS, round(self.until - monotonic()))),
                max_bytes=FEED_BYTES,
                max_redirects=MAX_REDIRECTS,
            )
        except OutboundError as error:
            raise from_outbound(error) from error
        is_lost = response.status in {HTTPStatus.GONE, HTTPStatus.NOT_FOUND}
        if is_lost and memory.feed_url and memory.body_sha256:
            raise _FoundFeedLost
        if response.status == HTTPStatus.GONE:
            return Fetch(entries=(), state={}, gone=True)
        if response.status == HTTPStatus.NOT_MODIFIED and memory.is_conditional:
            # A 304 may renew either validator (RFC 9111, 3.2 and 4.3.4); what it leaves out stays.
            etag, last_modified = validators_of(response)
            return self._unchanged(
                replace(
                    memory,
                    etag=etag or memory.etag,
                    last_modified=last_modified or memory.last_modified,
                ),
                response,
            )
        if response.status not in {HTTPStatus.OK, HTTPStatus.NON_AUTHORITATIVE_INFORMATION}:
            fail(response, now=self.now)
        etag, last_modified = validators_of(response)
        digest = hashlib.sha256(response.body).hexdigest()
        # Some servers give a fresh ETag with every answer, and many give none.
        if digest == memory.body_sha256:
            return self._unchanged(replace(memory, etag=etag, last_modified=last_modified), response)
        return self._changed(
            replace(memory, etag=etag, last_modified=last_modified, body_sha256=digest), response
        )

    def _unchanged(self, memory: _Memory, response: Response) -> Fetch:
        return Fetch(entries=(), not_modified=True, **self._about(memory, response))

    def _changed(self, memory: _Memory, response: Response) -> Fetch:
        self.page = response
        document = self._read(memory, response)
        identities, known = identify(document.records, memory.known)
        entries = [
            entry_of(record, identity=identity, now=self.now)
            for record, identity in zip(document.records, identities, strict=True)
        ]
        taken_back = [
            Entry(external_id=identity, withdrawn=True)
            for identity in document.deleted
            if identity not in identities
        ]
        read = replace(
            memory,
            wait_seconds=int(document.wait.total_seconds()) if document.wait else 0,
            quiet=document.quiet,
            hub=hub_in_headers(response) or document.hub,
            known=known,
        )
        about = self._about(read, response)
        about["notes"] = (*about["notes"], *notes_on(document, now=self.now))
        return Fetch(
            entries=(*entries, *taken_back),
            malformed=document.malformed,
            title=document.title,
            is_window=document.is_window,
            **about,
        )

    def _read(self, memory: _Memory, response: Response) -> FeedDocument:
        kind = response.headers.get("Content-Type", "")
        try:
            return read_feed(response.body, url=response.url, content_type=kind)
        except WebPage:
            if memory.feed_url:
                if memory.known.places:
                    raise _FoundFeedLost from None
                message = (
                    f"The address leads to a web page, and what it calls its feed at {memory.feed_url} is none. Give "
                    "the address of the feed itself."
                )
                raise Refused(message, code="not_a_feed", field="config.url") from None
            raise

    def _about(self, memory: _Memory, response: Response) -> dict[str, Any]:
        wait = wait_of(response, memory.wait_seconds, now=self.now)
        soonest = self.now + (wait or timedelta(0))
        held_back = memory.quiet.end_after(soonest) - self.now
        return {
            "state": memory.as_state(),
            "wait_at_least": held_back if held_back > timedelta(0) else None,
            "moved_to": "" if memory.feed_url else moved_to(response, memory.url),
            "notes": memory.notes,
            "quiet": memory.quiet,
            "hub": memory.hub,
        }


PLUGIN = Rss()
