"""Finds what Bluesky has to be told to link: addresses, mentions and hashtags, by their places in UTF-8.

Limits and places: lexicons/app/bsky/richtext/facet.json of bluesky-social/atproto; what counts as a mention and as a
hashtag: its packages/api/src/rich-text (read 2026-11-20).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import regex

from pipeline.platforms.counting import graphemes, utf8_bytes
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping

TAG_GRAPHEMES: Final = 64
TAG_BYTES: Final = 640
_HANDLE_CHARACTERS: Final = 253
_INVISIBLE: Final = r"\u00AD\u2060\u200A\u200B\u200C\u200D\u20e2"


@dataclass(frozen=True)
class Span:
    """`text[start:end]` is a link to `value`, a mention of the handle `value`, or the hashtag `value`."""

    start: int
    end: int
    kind: Literal["link", "mention", "tag"]
    value: str


@cache
def _handle() -> regex.Pattern[str]:
    label = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    return regex.compile(
        rf"(?:(?<=^|[\s(]))@(?P<handle>(?:{label}\.)+[a-zA-Z](?:[a-zA-Z0-9-]{{0,61}}[a-zA-Z0-9])?)"
    )


@cache
def _tag() -> regex.Pattern[str]:
    # Something in it has to be neither a digit nor punctuation; "#️⃣" is an emoji and no hashtag.
    return regex.compile(
        rf"(?:(?<=^|\s))[#＃](?!\ufe0f)(?P<tag>(?=[^\s{_INVISIBLE}]*[^\d\s\p{{P}}{_INVISIBLE}])[^\s{_INVISIBLE}]+)"
    )


@cache
def _punctuation_at_the_end() -> regex.Pattern[str]:
    return regex.compile(r"\p{P}++$")


def find_spans(text: str) -> tuple[Span, ...]:
    """In the order in which they stand; none lies over another."""
    found = [
        Span(link.start, link.end, "link", link.url if link.has_scheme else f"https://{link.url}")
        for link in find_links(text)
    ]
    for match in _handle().finditer(text):
        handle = match["handle"].lower()
        if len(handle) <= _HANDLE_CHARACTERS:
            found.append(Span(match.start(), match.end(), "mention", handle))
    for match in _tag().finditer(text):
        tag = _without_punctuation(match["tag"])
        if tag and graphemes(tag) <= TAG_GRAPHEMES and utf8_bytes(tag) <= TAG_BYTES:
            found.append(Span(match.start(), match.start() + 1 + len(tag), "tag", tag))
    apart: list[Span] = []
    for span in sorted(found, key=lambda one: (one.start, -one.end)):
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return tuple(apart)


def _without_punctuation(tag: str) -> str:
    # From the last sign backwards: a search for a run at the end would try each of its signs as the first.
    end = len(tag)
    while end and _punctuation_at_the_end().match(tag, end - 1):
        end -= 1
    return tag[:end]


def mentioned(text: str) -> tuple[str, ...]:
    """The handles that a text names, each once."""
    return tuple(dict.fromkeys(span.value for span in find_spans(text) if span.kind == "mention"))


def facets_of(text: str, dids: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the record says of its links; a mention of whom `dids` doesn't know stays plain words."""
    facets = []
    size, position = 0, 0
    for span in find_spans(text):
        start = size + utf8_bytes(text[position : span.start])
        size = start + utf8_bytes(text[span.start : span.end])
        position = span.end
        feature = _feature(span, dids)
        if feature:
            facets.append({"index": {"byteStart": start, "byteEnd": size}, "features": [feature]})
    return facets


def _feature(span: Span, dids: Mapping[str, str]) -> dict[str, str] | None:
    kind = f"app.bsky.richtext.facet#{span.kind}"
    if span.kind == "link":
        return {"$type": kind, "uri": span.value}
    if span.kind == "tag":
        return {"$type": kind, "tag": span.value}
    did = dids.get(span.value)
    return {"$type": kind, "did": did} if did else None
