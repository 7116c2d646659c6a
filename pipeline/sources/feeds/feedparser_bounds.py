"""Bounds feedparser's two parsers: they end if a document costs more than an honest feed does.

The check before them (`markup_bounds`) can't suffice, because the two parsers and that check don't agree on
where the tags of a broken document begin. Here each call is counted as it comes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import feedparser.api  # type: ignore[import-untyped, unused-ignore]
import feedparser.mixin  # type: ignore[import-untyped, unused-ignore]

from pipeline.text.markup_bounds import MAX_ATTRIBUTES, MAX_DEPTH, MAX_FEED_TAGS

MAX_TEXTS: Final = 1_000_000
"""The most pieces of text, references and end tags: 5 MiB of escaped articles have a third of that."""
MAX_BASE_CHARACTERS: Final = 4096
"""The longest base address, against which the addresses of each tag are resolved."""
MAX_LINE_CHARACTERS: Final = 2000
"""The longest date or name; searching it for an address takes time in the square of its length."""

_Mixin: Final = feedparser.mixin._FeedParserMixin  # noqa: SLF001
_LONG_ELEMENTS: Final = _Mixin.can_contain_dangerous_markup | _Mixin.can_be_relative_uri


class TooMuch(Exception):
    """Raised if the document has more tags, texts or levels, or a longer base, than an honest feed."""


def _raise_unless(is_within: object) -> None:
    """Raise `TooMuch` unless the condition holds."""
    if not is_within:
        raise TooMuch


class _CountingParser:
    """Counts the calls of both parsers; it comes before feedparser's class in the bases."""

    # Not `pieces`: feedparser's loose parser has an attribute of that name.
    started_tags = counted_pieces = 0

    def unknown_starttag(self: Any, tag: str, attrs: Any) -> None:
        self.started_tags += 1
        _raise_unless(self.started_tags <= MAX_FEED_TAGS // 2 and len(attrs) <= MAX_ATTRIBUTES)
        super().unknown_starttag(tag, attrs)  # type: ignore[misc]
        _raise_unless(len(self.baseuri) <= MAX_BASE_CHARACTERS)

    def unknown_endtag(self: Any, tag: str) -> None:
        self.counted_pieces += 1
        _raise_unless(self.counted_pieces <= MAX_TEXTS)
        super().unknown_endtag(tag)  # type: ignore[misc]

    def handle_data(self: Any, text: str, escape: int = 1) -> None:
        self.counted_pieces += 1
        _raise_unless(self.counted_pieces <= MAX_TEXTS)
        super().handle_data(text, escape)  # type: ignore[misc]

    def handle_entityref(self: Any, ref: str) -> None:
        self.counted_pieces += 1
        _raise_unless(self.counted_pieces <= MAX_TEXTS)
        super().handle_entityref(ref)  # type: ignore[misc]

    def pop(self: Any, element: str, strip_whitespace: int = 1) -> Any:
        top = self.elementstack[-1] if self.elementstack else None
        if top is not None and top[0] == element and element not in _LONG_ELEMENTS:
            texts = [text.decode("utf-8") if isinstance(text, bytes) else text for text in top[2]]
            if sum(map(len, texts)) > MAX_LINE_CHARACTERS:
                top[2] = ["".join(texts).strip()[:MAX_LINE_CHARACTERS]]
        return super().pop(element, strip_whitespace)  # type: ignore[misc]


class _CountingStrictParser(_CountingParser, feedparser.api.StrictFeedParser):  # type: ignore[misc]
    """The parser of well-formed XML, with counted calls and depth."""

    current_depth = 0

    def startElementNS(self, name: Any, qname: Any, attrs: Any) -> None:  # noqa: N802  expat calls it so
        self.current_depth += 1
        # Checked before feedparser compares each attribute with all the others.
        _raise_unless(self.current_depth <= MAX_DEPTH and len(attrs) <= MAX_ATTRIBUTES)
        super().startElementNS(name, qname, attrs)

    def endElementNS(self, name: Any, qname: Any) -> None:  # noqa: N802
        self.current_depth -= 1
        super().endElementNS(name, qname)


class _CountingLooseParser(_CountingParser, feedparser.api.LooseFeedParser):  # type: ignore[misc]
    """The parser of broken documents, with counted calls."""


@cache
def bound() -> None:
    """Make `feedparser.parse` raise `TooMuch` from now on, in this process."""
    feedparser.api.StrictFeedParser = _CountingStrictParser
    feedparser.api.LooseFeedParser = _CountingLooseParser
