"""Converts a body of any format to HTML that is safe to serve."""

from __future__ import annotations

import re
from html import escape

import nh3
from markdown_it import MarkdownIt

from pipeline.text.html_text import html_to_text
from pipeline.text.links import find_links
from pipeline.text.markup_bounds import is_page_too_much

BODY_FORMATS = ("text", "markdown", "html")

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_SCHEMES = {"http", "https", "mailto"}


def _link_addresses(text: str) -> str:
    """Return the text escaped, with each address that has a scheme as a link."""
    parts: list[str] = []
    position = 0
    for link in find_links(text):
        if not link.has_scheme:
            continue
        url = escape(link.url)
        parts.append(f'{escape(text[position : link.start])}<a href="{url}">{url}</a>')
        position = link.end
    parts.append(escape(text[position:]))
    return "".join(parts)


def _to_paragraphs(text: str) -> str:
    """Return the plain text as HTML paragraphs."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    blocks = (block for block in _BLANK_LINE.split(lines) if block)
    return "\n".join(f"<p>{_link_addresses(block).replace(chr(10), '<br>')}</p>" for block in blocks)


def to_html(body: str, body_format: str) -> str:
    """Return sanitised HTML of a body in `text`, `markdown` or `html`.

    HTML beyond the bounds of `markup_bounds` is reduced to its text, because a parser would take time in the square
    of its length. Raises `ValueError` if the format is another one.
    """
    # A lone surrogate can't be encoded as UTF-8, and neither library accepts it.
    encodable = body.encode("utf-8", "replace").decode("utf-8")
    if body_format == "text":
        html = _to_paragraphs(encodable)
    elif body_format == "markdown":
        html = _MARKDOWN.render(encodable)
    elif body_format == "html":
        html = _to_paragraphs(html_to_text(encodable)) if is_page_too_much(encodable) else encodable
    else:
        message = f"A body can't be {body_format!r}; it is one of {', '.join(BODY_FORMATS)}."
        raise ValueError(message)
    return nh3.clean(html, url_schemes=_SCHEMES)
