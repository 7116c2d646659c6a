"""Reads a feed's bytes as records, in a helper process with hard limits, and turns records into entries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypedDict, cast

from pipeline.limits import TITLE_CHARACTERS
from pipeline.plugins import Refused, TryLater
from pipeline.sources.base import Entry, EntryMedia, Hub, Note, Quiet
from pipeline.sources.feeds import parser_pool
from pipeline.text.html_text import html_to_text
from pipeline.text.plain_text import plain_text

WALL_SECONDS: Final = 30
"""Nearly four times the CPU limit of the child, for busy machines."""
_CLOCK_TOLERANCE: Final = timedelta(minutes=5)


class _MediaRecord(TypedDict):
    url: str
    type: str


class EntryRecord(TypedDict):
    """One entry as the helper read it.

    `id` is the id in the document, which may stand for several entries; `at` is its date in seconds since 1970.
    """

    id: str
    url: str
    title: str
    title_format: str
    body: str
    body_format: str
    author: str
    language: str
    at: int | None
    media: list[_MediaRecord]
    licence: str


class LinkRecord(TypedDict):
    """A link of a web page that may lead to a feed. `kind` is `link` or `anchor`, `type` a MIME type or empty."""

    url: str
    title: str
    type: str
    kind: str


class _Answer(TypedDict, total=False):
    """The first line of the helper's answer: the feed without its entries, or a problem."""

    problem: str
    links: list[LinkRecord]
    version: str
    title: str
    malformed: int
    left_out: int
    wait_seconds: int | None
    skip_hours: list[int]
    skip_days: list[int]
    deleted: list[str]
    is_window: bool
    hubs: list[str]
    self: str


@dataclass(frozen=True)
class FeedDocument:
    """A parsed document, its records newest first.

    `wait` is how long the feed asks not to be polled, `deleted` the ids that it declares deleted.
    """

    title: str
    records: tuple[EntryRecord, ...]
    malformed: int
    left_out: int
    """The number of older entries that aren't read."""
    wait: timedelta | None
    quiet: Quiet
    deleted: tuple[str, ...]
    is_window: bool
    hub: Hub | None


class WebPage(Refused):
    """Raised if the document is a web page; `links` are its links that may lead to feeds."""

    def __init__(self, links: tuple[LinkRecord, ...]) -> None:
        message = "The address leads to a web page, not to a feed. Give the address of the page's feed."
        super().__init__(message, code="not_a_feed", field="config.url")
        self.links = links


def read_feed(document: bytes, *, url: str, content_type: str) -> FeedDocument:
    """Return the parsed RSS, RDF, Atom or JSON feed.

    `url` is the address of the document, against which its relative addresses resolve. Raises `WebPage` if
    the document is a web page, `Refused` if it is another document that is no feed, is unsafe or costs too
    much, and `TryLater` if the machine was too busy.
    """
    lines = _ask_helper(document, url=url, content_type=content_type)
    answer = cast("_Answer", json.loads(lines[0]))
    if answer.get("problem") == "html":
        raise WebPage(tuple(answer["links"]))
    if "problem" in answer:
        code, sentence = _REFUSALS[answer["problem"]]
        raise Refused(sentence, code=code, field="config.url")
    wait = answer["wait_seconds"]
    hubs = tuple(answer["hubs"])
    return FeedDocument(
        title=_plain_title(answer["title"], "html"),
        records=tuple(json.loads(line) for line in lines[1:]),
        malformed=answer["malformed"],
        left_out=answer["left_out"],
        wait=timedelta(seconds=wait) if wait else None,
        quiet=Quiet(frozenset(answer["skip_hours"]), frozenset(answer["skip_days"])),
        deleted=tuple(answer["deleted"]),
        is_window=answer["is_window"],
        hub=Hub(hubs, answer["self"] or url) if hubs else None,
    )


def _ask_helper(document: bytes, *, url: str, content_type: str) -> list[bytes]:
    """Return the helper's answer in lines. Raises `TryLater` if there is none within `WALL_SECONDS`."""
    try:
        return parser_pool.ask_child(document, url=url, content_type=content_type, seconds=WALL_SECONDS)
    except TimeoutError:
        message = "Reading the feed took too long on a busy machine."
        raise TryLater(message, code="feed_timed_out") from None
    except parser_pool.HelperDied:
        message = "No process could be started to read the feed."
        raise TryLater(message, code="no_process") from None


_REFUSALS: Final = {
    "empty": (
        "not_a_feed",
        "The address answered with an empty document. Give the address of an RSS or Atom feed.",
    ),
    "not_a_feed": (
        "not_a_feed",
        "The address leads to a document that is not a feed. Give the address of an RSS, Atom or JSON feed.",
    ),
    "broken": (
        "feed_unreadable",
        "The feed is too damaged to be read. Check it with a feed validator, or ask its owner to repair it.",
    ),
    "entities": (
        "feed_unsafe",
        "The feed declares XML entities of its own, which are not read. Ask its owner for a feed without them.",
    ),
    "too_complex": (
        "feed_too_complex",
        "The feed takes too much time or memory to read. Give the address of a smaller or simpler feed.",
    ),
}


def _plain_title(title: str, title_format: str) -> str:
    """Return a title as plain text on one line, cut to the column's length."""
    return " ".join(plain_text(title, title_format).split())[:TITLE_CHARACTERS]


def notes_on(document: FeedDocument, *, now: datetime) -> tuple[Note, ...]:
    """Return notes on entries that aren't read, and on dates that lie in the future."""
    notes = []
    records_read = len(document.records)
    if document.left_out:
        message = f"The feed lists {records_read + document.left_out} entries; the newest {records_read} of them are read."
        notes.append(Note("entries_left_out", message))
    latest = (now + _CLOCK_TOLERANCE).timestamp()
    future = sum(record["at"] is not None and record["at"] > latest for record in document.records)
    if future:
        subject = "1 entry has a date" if future == 1 else f"{future} entries have dates"
        notes.append(Note("future_dates", f"{subject} in the future; the time of reading is used instead."))
    return tuple(notes)


def entry_of(record: EntryRecord, *, identity: str, now: datetime) -> Entry:
    """Return the record as an entry with that identity; a date after `now` becomes `now`."""
    at = record["at"]
    metadata: dict[str, Any] = {"licence": record["licence"]} if record["licence"] else {}
    return Entry(
        external_id=identity or None,
        url=record["url"],
        title=_plain_title(record["title"], record["title_format"]),
        body=record["body"],
        body_format=record["body_format"],
        author=html_to_text(record["author"]),
        language=record["language"][:35],
        published_at=min(datetime.fromtimestamp(at, tz=UTC), now) if at is not None else None,
        media=tuple(EntryMedia(media["url"], media["type"]) for media in record["media"]),
        metadata=metadata,
    )
