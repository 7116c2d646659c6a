"""Takes a sanitised body apart into its outermost elements, for sites that store an article in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final

BLOCKS: Final = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "center",
            "details",
            "dir",
            "div",
            "dl",
            "figure",
            "footer",
        ),
        *(
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "header",
            "hgroup",
            "hr",
            "main",
            "menu",
            "nav",
            "ol",
            "p",
            "pre",
        ),
        *("section", "table", "ul"),
    }
)
_VOID: Final = frozenset(
    {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)


@dataclass(frozen=True)
class Piece:
    """One outermost element, or a run of words between two; the run is a paragraph."""

    tag: str
    html: str
    is_bare: bool = True
    """The element has no attributes of its own."""


def pieces(html: str) -> list[Piece]:
    """The pieces in their order; words that stand in no element become paragraphs, white space between is dropped."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.end_run()
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        # Character references stay as they were written.
        super().__init__(convert_charrefs=False)
        self.found: list[Piece] = []
        self._run: list[str] = []
        self._block: list[str] = []
        self._tag = ""
        self._is_bare = True
        self._depth = 0

    def end_run(self) -> None:
        words = "".join(self._run).strip()
        self._run = []
        if words:
            self.found.append(Piece("p", f"<p>{words}</p>"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._depth and tag in BLOCKS:
            self.end_run()
            self._tag, self._is_bare = tag, not attrs
            self._block = [self.get_starttag_text() or ""]
            self._depth = 1
            if tag in _VOID:
                self._end_block()
            return
        self._add(self.get_starttag_text() or "")
        if self._depth and tag not in _VOID:
            self._depth += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        self._add(f"</{tag}>")
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self._end_block()

    def handle_data(self, data: str) -> None:
        self._add(data)

    def handle_entityref(self, name: str) -> None:
        self._add(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._add(f"&#{name};")

    def _add(self, html: str) -> None:
        (self._block if self._depth else self._run).append(html)

    def _end_block(self) -> None:
        self._depth = 0
        self.found.append(Piece(self._tag, "".join(self._block), self._is_bare))
        self._block = []
