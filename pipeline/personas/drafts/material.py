"""What a draft rests on: the site, read as a source of web pages reads it, and the posts that were pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core.http_client import shared
from pipeline import plugins
from pipeline.plugins import Refused
from pipeline.sources.base import Source
from pipeline.switches.availability import environment_of_source
from pipeline.text.normalization import plain_text, seen_text
from pipeline.writers.persona_draft import LONGEST_POST, Material

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.sources.base import Entry, Fetch

POSTS_READ: Final = 40
"""Newest entries of a feed that are looked at."""
# Reasons of a page to be left out that say nothing against what else was given.
_HARMLESS: Final = frozenset({"no_text", "needs_javascript", "only_links", "only_title"})


def gather(url: str, posts: Sequence[str], *, now: datetime) -> Material:
    """Ask the site once, within the time of one fetch. Raises a `PluginError` in words for people.

    One page, or one feed: robots.txt and what pages tell robots are heeded as by the source `scraper`, which also tells
    the two apart, so a feed that robots.txt closes is never asked for as one.
    """
    if not url:
        return Material(posts=tuple(posts))
    try:
        return _of_page(_fetch("scraper", {"url": url, "max_pages": 1}, now), posts)
    except Refused as refused:
        if refused.code != "is_feed":
            raise
    return _of_feed(_fetch("rss", {"url": url}, now), posts)


def _fetch(name: str, given: dict[str, object], now: datetime) -> Fetch:
    kind = plugins.get("sources", name, Source)
    asked = environment_of_source(kind)
    found = kind.fetch(kind.clean_config(given), {}, http=shared.client(), now=now, environment=asked)
    if found.gone:
        message = "The site says that this address is gone for good (410). Give another address."
        raise Refused(message, code="gone")
    return found


def _of_page(found: Fetch, posts: Sequence[str]) -> Material:
    entry = next(iter(found.entries), None)
    if entry is None:
        return Material(site=_line(found.title), posts=tuple(posts))
    if entry.left_out is not None and entry.left_out.code not in _HARMLESS:
        message = f"{entry.left_out.message} Give another address, or paste some posts instead."
        raise Refused(message, code=entry.left_out.code)
    text = _text(entry)
    return Material(
        site=_line(str(entry.metadata.get("site") or entry.title or found.title)),
        description=_line(str(entry.metadata.get("description") or "")),
        language=entry.language,
        posts=tuple(posts),
        texts=(text,) if text else (),
    )


def _of_feed(found: Fetch, posts: Sequence[str]) -> Material:
    """Short entries are posts; long ones are articles, of which a post's voice isn't told."""
    entries = [entry for entry in found.entries if not entry.withdrawn][:POSTS_READ]
    said = [words for entry in entries if (words := _text(entry) or _line(entry.title))]
    return Material(
        site=_line(found.title),
        language=next((entry.language for entry in entries if entry.language), ""),
        posts=(*posts, *(words for words in said if len(words) <= LONGEST_POST)),
        texts=tuple(words for words in said if len(words) > LONGEST_POST),
    )


def _text(entry: Entry) -> str:
    return seen_text(entry.body, entry.body_format).strip()


def _line(words: str) -> str:
    return " ".join(plain_text(words, "text").split())
