"""Reads RSS, RDF, Atom and JSON feeds by conditional requests, and finds the feed of a web page."""

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
    as_plugin_error,
    hub_in_headers,
    permanent_address,
    raise_for_response,
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
class _PollState:
    """The state between two polls: validators as the server sent them, and a hash in case they are wrong.

    `feed_url` is where the feed of a web page was found, or an empty string if `url` is the feed's address.
    `wait_seconds`, `quiet` and `hub` come from the last document, for answers that hold none. `known` are the
    identities of the entries.
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
    def of(cls, state: Mapping[str, Any], *, url: str) -> _PollState:
        """Return the stored state, or an empty state if it is of another address."""
        # After a change of the address, the validators belong to another document.
        if state.get("url") != url:
            return cls(url)
        texts = {
            key: value if isinstance(value := state.get(key), str) else ""
            for key in ("feed_url", "etag", "last_modified", "body_sha256")
        }
        wait = state.get("wait_seconds")
        hubs, topic = _strings_in(state.get("hubs")), state.get("topic")
        return cls(
            url,
            **texts,
            wait_seconds=wait if isinstance(wait, int) and wait > 0 else 0,
            quiet=Quiet(_integers_in(state.get("skip_hours")), _integers_in(state.get("skip_days"))),
            hub=Hub(hubs, topic) if hubs and isinstance(topic, str) else None,
            known=KnownIdentities.of(state.get("known")),
        )

    def as_state(self) -> dict[str, Any]:
        """Return the state as JSON to store."""
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
        """The address to fetch."""
        return self.feed_url or self.url

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note that the feed was found from a web page, or nothing if it wasn't."""
        if not self.feed_url:
            return ()
        return (Note("feed_found", f"The address is a web page's; its feed at {self.feed_url} is read."),)

    def headers(self) -> dict[str, str]:
        """Return the headers of a request, with the validators if there are any."""
        headers = {"Accept": ACCEPT}
        # Without the hash no body was read, so "not modified" would have no meaning.
        if self.body_sha256 and self.etag:
            headers["If-None-Match"] = self.etag
        if self.body_sha256 and self.last_modified:
            headers["If-Modified-Since"] = self.last_modified
        return headers

    @property
    def is_conditional(self) -> bool:
        """Whether the request has validators, so that a 304 may come."""
        return len(self.headers()) > 1


def _strings_in(value: object) -> tuple[str, ...]:
    """Return the strings in a list, or an empty tuple for any other value."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _integers_in(value: object) -> frozenset[int]:
    """Return the integers in a list, or an empty set for any other value."""
    values = value if isinstance(value, list) else []
    return frozenset(each for each in values if isinstance(each, int))


class _FoundFeedGone(Exception):
    """Raised if the feed that an earlier poll found from a web page is no longer there."""


class Rss(Source):
    """Reads a feed, or the one feed of a web page."""

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
        """Fetch the feed once; an empty `state` makes the request unconditional.

        The address of a web page will do if the page has one feed: it is remembered in `state` and named
        in a note. A page with several feeds is refused with their addresses.
        """
        del environment
        feed_fetch = _FeedFetch(http, now, monotonic() + FETCH_SECONDS)
        poll_state = _PollState.of(state, url=config["url"])
        if poll_state.feed_url:
            try:
                return feed_fetch.poll(poll_state)
            except _FoundFeedGone:
                poll_state = _PollState(poll_state.url, known=poll_state.known)
        known_feeds = discovery.feeds_of_known_host(poll_state.url)
        if len(known_feeds) == 1:
            try:
                return feed_fetch.poll(replace(poll_state, feed_url=known_feeds[0].url))
            except TryLater as error:
                if error.code != "not_found":
                    raise
        try:
            return feed_fetch.poll(poll_state)
        except WebPage as page:
            candidates = discovery.find_feeds_on_page(
                page.links, feed_fetch.page, http, deadline=feed_fetch.deadline
            )
            feed = discovery.choose_feed(candidates or known_feeds)
            return feed_fetch.poll(replace(poll_state, feed_url=feed.url))


class _FeedFetch:
    """One fetch: its client, its moment, and its deadline (of `monotonic()`)."""

    def __init__(self, http: Client, now: datetime, deadline: float) -> None:
        self.http = http
        self.now = now
        self.deadline = deadline
        self.page: Response | None = None
        """The last response that was parsed as a document."""

    def poll(self, poll_state: _PollState) -> Fetch:
        """Fetch the feed and return the result.

        Raises `_FoundFeedGone` if a feed that was found from a web page is lost, `WebPage` if the address is
        a web page's, and `Refused` or `TryLater` if it gives no feed.
        """
        try:
            response = self.http.get(
                poll_state.address,
                headers=poll_state.headers(),
                timeout=max(1, min(TIMEOUT_SECONDS, round(self.deadline - monotonic()))),
                max_bytes=FEED_BYTES,
                max_redirects=MAX_REDIRECTS,
            )
        except OutboundError as error:
            raise as_plugin_error(error) from error
        is_lost = response.status in {HTTPStatus.GONE, HTTPStatus.NOT_FOUND}
        if is_lost and poll_state.feed_url and poll_state.body_sha256:
            raise _FoundFeedGone
        if response.status == HTTPStatus.GONE:
            return Fetch(entries=(), state={}, gone=True)
        if response.status == HTTPStatus.NOT_MODIFIED and poll_state.is_conditional:
            # A 304 may renew either validator (RFC 9111, 3.2 and 4.3.4); one that it doesn't name stays.
            etag, last_modified = validators_of(response)
            return self._unchanged_fetch(
                replace(
                    poll_state,
                    etag=etag or poll_state.etag,
                    last_modified=last_modified or poll_state.last_modified,
                ),
                response,
            )
        if response.status not in {HTTPStatus.OK, HTTPStatus.NON_AUTHORITATIVE_INFORMATION}:
            raise_for_response(response, now=self.now)
        etag, last_modified = validators_of(response)
        body_hash = hashlib.sha256(response.body).hexdigest()
        # The hash is needed because some servers send a new ETag with every answer, and many send none.
        if body_hash == poll_state.body_sha256:
            return self._unchanged_fetch(
                replace(poll_state, etag=etag, last_modified=last_modified), response
            )
        return self._changed_fetch(
            replace(poll_state, etag=etag, last_modified=last_modified, body_sha256=body_hash), response
        )

    def _unchanged_fetch(self, poll_state: _PollState, response: Response) -> Fetch:
        """Return the result for a feed that hasn't changed."""
        return Fetch(entries=(), not_modified=True, **self._common_fields(poll_state, response))

    def _changed_fetch(self, poll_state: _PollState, response: Response) -> Fetch:
        """Return the result for a feed that has changed, with its entries."""
        self.page = response
        document = self._read_document(poll_state, response)
        identities, known = identify(document.records, poll_state.known)
        entries = [
            entry_of(record, identity=identity, now=self.now)
            for record, identity in zip(document.records, identities, strict=True)
        ]
        withdrawn = [
            Entry(external_id=identity, withdrawn=True)
            for identity in document.deleted
            if identity not in identities
        ]
        new_state = replace(
            poll_state,
            wait_seconds=int(document.wait.total_seconds()) if document.wait else 0,
            quiet=document.quiet,
            hub=hub_in_headers(response) or document.hub,
            known=known,
        )
        common_fields = self._common_fields(new_state, response)
        common_fields["notes"] = (*common_fields["notes"], *notes_on(document, now=self.now))
        return Fetch(
            entries=(*entries, *withdrawn),
            malformed=document.malformed,
            title=document.title,
            is_window=document.is_window,
            **common_fields,
        )

    def _read_document(self, poll_state: _PollState, response: Response) -> FeedDocument:
        """Return the parsed document.

        Raises `WebPage` if the source's address is a web page's, `_FoundFeedGone` if the found feed has
        become a page, `Refused` if it never was a feed or can't be read, and `TryLater` on a busy machine.
        """
        content_type = response.headers.get("Content-Type", "")
        try:
            return read_feed(response.body, url=response.url, content_type=content_type)
        except WebPage:
            if poll_state.feed_url:
                if poll_state.known.places:
                    raise _FoundFeedGone from None
                message = (
                    f"The address leads to a web page, and what it calls its feed at {poll_state.feed_url} is none. Give "
                    "the address of the feed itself."
                )
                raise Refused(message, code="not_a_feed", field="config.url") from None
            raise

    def _common_fields(self, poll_state: _PollState, response: Response) -> dict[str, Any]:
        """Return the fields that every result has."""
        wait = wait_of(response, poll_state.wait_seconds, now=self.now)
        earliest_poll = self.now + (wait or timedelta(0))
        wait_at_least = poll_state.quiet.end_after(earliest_poll) - self.now
        return {
            "state": poll_state.as_state(),
            "wait_at_least": wait_at_least if wait_at_least > timedelta(0) else None,
            "moved_to": "" if poll_state.feed_url else permanent_address(response, poll_state.url),
            "notes": poll_state.notes,
            "quiet": poll_state.quiet,
            "hub": poll_state.hub,
        }


PLUGIN = Rss()
