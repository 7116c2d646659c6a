"""Feedparser's two parsers, ended where a document costs them more than an honest one does.

The look before them (`markup_bounds`) can't be all: of a broken document its two parsers and that look don't agree on
where tags begin. Here each call is counted as it comes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import feedparser.api  # type: ignore[import-untyped, unused-ignore]
import feedparser.mixin  # type: ignore[import-untyped, unused-ignore]

from pipeline.text.markup_bounds import MAX_ATTRIBUTES, MAX_DEPTH, MAX_FEED_TAGS

MAX_TEXTS: Final = 1_000_000
"""Pieces of text, references and end tags: 5 MiB of escaped articles have a third of them."""
MAX_BASE_CHARS: Final = 4096
"""Each tag is resolved against the base."""
MAX_LINE_CHARS: Final = 2000
"""Characters of a date or a name; patterns that look for an address in one take the square of it."""

_Mixin: Final = feedparser.mixin._FeedParserMixin  # noqa: SLF001
_LONG: Final = _Mixin.can_contain_dangerous_markup | _Mixin.can_be_relative_uri


class TooMuch(Exception):
    """The document has more of anything than an honest feed."""


def _expect(is_within: object) -> None:
    if not is_within:
        raise TooMuch


class _Counted:
    """What both parsers have in common; stands before feedparser's class."""

    begun = ended = 0

    def unknown_starttag(self: Any, tag: str, attrs: Any) -> None:
        self.begun += 1
        _expect(self.begun <= MAX_FEED_TAGS // 2 and len(attrs) <= MAX_ATTRIBUTES)
        super().unknown_starttag(tag, attrs)  # type: ignore[misc]
        _expect(len(self.baseuri) <= MAX_BASE_CHARS)

    def unknown_endtag(self: Any, tag: str) -> None:
        self.ended += 1
        _expect(self.ended <= MAX_TEXTS)
        super().unknown_endtag(tag)  # type: ignore[misc]

    def handle_data(self: Any, text: str, escape: int = 1) -> None:
        self.ended += 1
        _expect(self.ended <= MAX_TEXTS)
        super().handle_data(text, escape)  # type: ignore[misc]

    def handle_entityref(self: Any, ref: str) -> None:
        self.ended += 1
        _expect(self.ended <= MAX_TEXTS)
        super().handle_entityref(ref)  # type: ignore[misc]

    def pop(self: Any, element: str, strip_whitespace: int = 1) -> Any:
        top = self.elementstack[-1] if self.elementstack else None
        if top is not None and top[0] == element and element not in _LONG:
            pieces = [one.decode("utf-8") if isinstance(one, bytes) else one for one in top[2]]
            if sum(map(len, pieces)) > MAX_LINE_CHARS:
                top[2] = ["".join(pieces).strip()[:MAX_LINE_CHARS]]
        return super().pop(element, strip_whitespace)  # type: ignore[misc]


class _Strict(_Counted, feedparser.api.StrictFeedParser):  # type: ignore[misc]
    depth_now = 0

    def startElementNS(self, name: Any, qname: Any, attrs: Any) -> None:  # noqa: N802  expat calls it so
        self.depth_now += 1
        # Before feedparser looks for each attribute among all of them.
        _expect(self.depth_now <= MAX_DEPTH and len(attrs) <= MAX_ATTRIBUTES)
        super().startElementNS(name, qname, attrs)

    def endElementNS(self, name: Any, qname: Any) -> None:  # noqa: N802
        self.depth_now -= 1
        super().endElementNS(name, qname)


class _Loose(_Counted, feedparser.api.LooseFeedParser):  # type: ignore[misc]
    pass


@cache
def bound() -> None:
    """From now on `feedparser.parse` raises `TooMuch`."""
    feedparser.api.StrictFeedParser = _Strict
    feedparser.api.LooseFeedParser = _Loose
