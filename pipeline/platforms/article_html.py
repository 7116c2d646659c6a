"""Renders articles as HTML, and splits them into outermost elements, for the platforms that take articles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms.base import Setting
from pipeline.platforms.fitting import FITTING_SETTINGS
from pipeline.platforms.payload_types import AdaptationStep, Adapted, Payload
from pipeline.platforms.rules import images_of
from pipeline.plugins import Problem
from pipeline.text.body_html import to_html
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping

ARTICLE_SETTINGS: Final = (
    *(setting for setting in FITTING_SETTINGS if setting.name == "link"),
    Setting(
        "ai_line",
        "Line under generated articles",
        "Added to articles made with AI, such as “Written with AI”: this platform has no field for that.",
        is_required=False,
    ),
)
BLOCK_TAGS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "center", "details", "dir", "div", "dl"),
        *("figure", "footer"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr"),
        *("main", "menu", "nav", "ol", "p", "pre", "section", "table", "ul"),
    }
)
_VOID_TAGS: Final = frozenset(
    {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)


def as_html(payload: Payload, config: Mapping[str, Any]) -> Adapted:
    """Return the article as HTML with only its images; each addition and omission of files is a step."""
    steps: list[AdaptationStep] = []
    html = to_html(payload.body, payload.body_format)
    if config.get("link") == "end" and payload.link and escape(payload.link) not in html:
        address = escape(payload.link)
        html = f'{html}\n<p><a href="{address}">{address}</a></p>'
        steps.append(AdaptationStep("link_added", "The source's address was added at the end."))
    line = str(config.get("ai_line") or "")
    if line and payload.is_ai_generated:
        html = f"{html}\n<p><em>{escape(line)}</em></p>"
        steps.append(AdaptationStep("disclosure_added", "The line about AI was added at the end."))
    images = tuple(images_of(payload.assets))
    if len(images) < len(payload.assets):
        steps.append(AdaptationStep("files_left_out", "Files that aren't images were left out."))
    fitted = replace(
        payload,
        title=remove_half_characters(payload.title).strip(),
        body=html,
        body_format="html",
        assets=images,
    )
    return Adapted(fitted, (html,), tuple(steps))


def empty_article_problems(post: Adapted, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Return the problem of an article that is markup without text, unless `problems` has one of its body."""
    if plain_text(post.parts[0], "html").strip() or any(problem.field == "body" for problem in problems):
        return ()
    return (Problem("body", "empty", "There are no words to publish."),)


def remove_half_characters(text: str) -> str:
    """Return the text with lone surrogates replaced, which no server accepts."""
    return text.encode("utf-8", "replace").decode("utf-8")


def unique_tags(values: object) -> list[str]:
    """Return the tags as they are written, each once regardless of case, or none if `values` is no list."""
    by_folded_name: dict[str, str] = {}
    for value in values if isinstance(values, list | tuple) else ():
        name = " ".join(remove_half_characters(str(value)).split())
        if name:
            by_folded_name.setdefault(name.casefold(), name)
    return list(by_folded_name.values())


@dataclass(frozen=True)
class ArticleElement:
    """One outermost element, or text between two elements as a paragraph."""

    tag: str
    html: str
    is_bare: bool = True
    """Whether the element has no attributes."""


def article_elements(html: str) -> list[ArticleElement]:
    """Return the outermost elements in order.

    Text outside any element becomes paragraphs; white space between elements is dropped.
    """
    reader = _ElementReader()
    reader.feed(html)
    reader.close()
    reader.end_run()
    return reader.elements


class _ElementReader(HTMLParser):
    """Splits HTML into its outermost elements."""

    def __init__(self) -> None:
        # Character references stay as they were written.
        super().__init__(convert_charrefs=False)
        self.elements: list[ArticleElement] = []
        self._run: list[str] = []
        self._block: list[str] = []
        self._tag = ""
        self._is_bare = True
        self._depth = 0

    def end_run(self) -> None:
        """Add the text since the last element as a paragraph, unless it is white space."""
        text = "".join(self._run).strip()
        self._run = []
        if text:
            self.elements.append(ArticleElement("p", f"<p>{text}</p>"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._depth and tag in BLOCK_TAGS:
            self.end_run()
            self._tag, self._is_bare = tag, not attrs
            self._block = [self.get_starttag_text() or ""]
            self._depth = 1
            if tag in _VOID_TAGS:
                self._end_block()
            return
        self._add(self.get_starttag_text() or "")
        if self._depth and tag not in _VOID_TAGS:
            self._depth += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID_TAGS:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID_TAGS:
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
        self.elements.append(ArticleElement(self._tag, "".join(self._block), self._is_bare))
        self._block = []
