"""Computes content hashes, and the plain text of Markdown and HTML.

Everything here and in `html_text` is pure, takes any string without raising, and runs in time linear in its
input. The standard `html.parser` isn't, so it is not used: 40 kB of `<a ` cost it 13 s (CPython 3.11.7).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt

from pipeline.text.html_text import (
    DROPPED,
    ELEMENTS,
    HtmlText,
    html_to_text,
    read_html,
    strip_invisible,
    tidy_lines,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token


MAX_MARKDOWN_CHARACTERS: Final = 300_000
"""Longer Markdown isn't rendered: no article has as much, and hostile Markdown costs up to 15 µs a character."""


def content_hash(title: str, body: str) -> str:
    """Return the SHA-256 of both in hex, which NFC normalization and re-wrapping don't change."""
    # Folded text holds no line break, so the separator can't be forged.
    folded = f"{_normalize(title)}\n{_normalize(body)}"
    return hashlib.sha256(folded.encode("utf-8", errors="surrogatepass")).hexdigest()


def _normalize(text: str) -> str:
    if text.isascii():
        # Nothing to normalise, and searching for marks would cost more than all the rest.
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFC", _overlong_marks().sub(r"\1", text)).split())


@cache
def _overlong_marks() -> re.Pattern[str]:
    """Return a pattern of runs of more than 30 combining marks, the limit of UAX #15's stream-safe form.

    The surplus is removed before normalising, because CPython sorts such a run by insertion: 160,000 marks cost
    19 s.
    """
    marks = [code for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code))]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    members = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    return re.compile(f"([{members}]{{30}})[{members}]+")


def plain_text(body: str, body_format: str) -> str:
    """Return the readable text of a body in `text`, `markdown` or `html`."""
    if body_format == "html":
        return html_to_text(body)
    if body_format == "markdown":
        return markdown_to_text(body)
    return tidy_lines(strip_invisible(body))


# A reference to a Markdown footnote, as in "week[^1]"; the note itself begins a line. In code it stays.
_NOTE_MARK: Final = re.compile(r"(`[^`\n]*`)|(?<=[^\s\[])\[\^[^\]\s]{1,40}\](?!:)")


def seen_text(body: str, body_format: str) -> str:
    """Return the visible text of a body from outside, as `read_body` finds it."""
    return read_body(body, body_format).seen


def read_body(body: str, body_format: str) -> HtmlText:
    """Return the visible and the hidden text of a body from outside, in `text`, `markdown` or `html`.

    Other than by `plain_text`, comments and hidden text are separated, because HTML inside Markdown is markup too.
    In HTML and Markdown, blocks without sentences are marked, one line each: `| cell | cell |`, `• item of a list`,
    `` `code` `` and `[caption]`; `sentences.statements_in` skips them.
    """
    if body_format == "html":
        return read_html(body, marks_blocks=True)
    if body_format == "markdown" and len(body) <= MAX_MARKDOWN_CHARACTERS:
        try:
            return read_html(_source_renderer().render(_NOTE_MARK.sub(r"\1", body)), marks_blocks=True)
        except (RecursionError, ValueError, IndexError):
            # The renderer chokes on a few malformed inputs; Markdown is readable as it is written.
            pass
    return _read_plain(body)


_HEADINGS: Final = tuple(
    (re.compile(rf"<{name}[\s>]", re.IGNORECASE), re.compile(rf"</{name}[\s>]", re.IGNORECASE))
    for name in ("h1", "title")
)
_MAX_HEADING_OFFSET: Final = 20_000
"""The heading of HTML is searched in its first characters up to here."""


def title_in(body: str, body_format: str) -> str:
    """Return a body's own title, a leading `# ...` of Markdown, the first `<h1>` or the `<title>` of HTML, or ""."""
    if body_format == "markdown":
        line = body.lstrip("\ufeff \t\r\n").partition("\n")[0]
        return markdown_to_text(line) if line.startswith("# ") else ""
    if body_format == "html":
        head = body[:_MAX_HEADING_OFFSET]
        for begins, ends in _HEADINGS:
            opening = begins.search(head)
            closing = opening and ends.search(head, opening.end())
            if opening and closing:
                return " ".join(html_to_text(f"<p{head[opening.end() - 1 : closing.start()]}</p>").split())
    return ""


# The prefixes of mail programs in many languages, with the name of a mailing list: "[Allotments] Re: Fwd: ".
_MAIL_PREFIX: Final = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]\s+)?"
    r"(?:(?:re|fwd?|fw|aw|wg|tr|rv|enc|res|sv|vs|vb|vl|antw|doorst|odp|pd|rif|ynt|ilt|回复|回覆|答复|转发|轉寄|返信|転送|답장|전달)"
    r"\s?(?:\[\d+\]|\(\d+\))?\s?(?::\s+|\uff1a\s*)(?:\[[^\[\]\n]{1,40}\]\s+)?)+(?=\S)",
    re.IGNORECASE,
)
RELEASE: Final = (
    r"(?:press (?:release|information)|for immediate release|news release|pressemitteilung|presseinformation|medienmitteilung|communiqué(?: de presse)?"
    r"|nota de prensa|comunicado de prensa|comunicato stampa|nota de imprensa|persbericht|informacja prasowa|pressmeddelande|pressemeddelelse|pressemelding"
    r"|zur sofortigen veröffentlichung|pour diffusion immédiate|para (?:publicación|difusión|divulgação) inmediata|per diffusione immediata)"
)
"""A pattern of the labels of press releases."""
_RELEASE_PREFIX: Final = re.compile(
    rf"(?:{RELEASE}\s*(?:[:\uff1a|]\s*|\s[\u2013\u2014-]\s))+(?=\S)", re.IGNORECASE
)
# "&amp;", "&#8211;".
_REFERENCE: Final = re.compile(r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});", re.IGNORECASE)


def without_mail_prefix(title: str) -> str:
    """Return a title without the "Fwd:" and "Re:" of its mail, and without the "[Allotments]" of a mailing list."""
    return _remove_prefix(_MAIL_PREFIX, title)


def bare_title(title: str) -> str:
    """Return a title with entities decoded, without the prefixes of mails and press releases."""
    decoded = _REFERENCE.sub(_decode_entity, title)
    return _remove_prefix(_RELEASE_PREFIX, without_mail_prefix(decoded))


def _decode_entity(reference: re.Match[str]) -> str:
    letter = unescape(reference.group())
    # A title has one line.
    return letter if letter.isprintable() or letter == "\u00a0" else " "


def _remove_prefix(prefix: re.Pattern[str], title: str) -> str:
    match = prefix.match(title.lstrip())
    return title.lstrip()[match.end() :] if match else title


def _read_plain(text: str) -> HtmlText:
    """Return the text without HTML comments, and these as hidden text.

    A comment that is never closed counts as text, because nothing else is markup here.
    """
    visible_parts: list[str] = []
    hidden_parts: list[str] = []
    position = 0
    while (opening := text.find("<!--", position)) != -1 and (closing := text.find("-->", opening)) != -1:
        visible_parts.append(text[position:opening])
        hidden_parts.append(text[opening + len("<!--") : closing])
        position = closing + len("-->")
    visible_parts.append(text[position:])
    return HtmlText(
        tidy_lines(strip_invisible(" ".join(visible_parts))),
        tidy_lines(strip_invisible("\n\n".join(hidden_parts))),
    )


def markdown_to_text(markdown: str) -> str:
    """Return Markdown as plain text; very long or malformed Markdown stays as it is written.

    HTML in it is shown as written, because the renderer has HTML switched off.
    """
    if len(markdown) > MAX_MARKDOWN_CHARACTERS:
        return tidy_lines(strip_invisible(markdown))
    try:
        return html_to_text(_renderer().render(markdown))
    except (RecursionError, ValueError, IndexError):
        # The renderer chokes on a few malformed inputs; Markdown is readable as it is written.
        return tidy_lines(strip_invisible(markdown))


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")


_TAG_NAME: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?=[\s/>])")
_MIN_PROSE_WORDS: Final = 6
"""Indented text with this many words per line counts as prose."""


@cache
def _source_renderer() -> MarkdownIt:
    """Return a renderer in which HTML is markup; an unknown element counts as text, as in "a list<int>"."""
    # Line breaks are kept: `sentences` needs them to tell headings and entries from wrapped lines.
    renderer = (
        MarkdownIt("commonmark", {"html": True, "breaks": True}).enable("table").enable("strikethrough")
    )
    for kind in ("html_inline", "html_block"):
        renderer.add_render_rule(kind, _render_html)
    renderer.add_render_rule("code_block", _render_indented)
    return renderer


def _render_html(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Render HTML inside Markdown as markup if it is an HTML element or a comment, else as text."""
    source = tokens[index].content
    if source.startswith("<!--"):
        return source
    tag = _TAG_NAME.match(source.lstrip())
    name = tag[1].lower() if tag else ""
    # An unclosed element whose content is dropped would drop the rest of the text.
    is_closed = name not in DROPPED or f"</{name}" in source.lower()
    return source if name in ELEMENTS and is_closed else escape(source)


def _render_indented(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Render indented text as code, or as prose if its lines are as long as those of a letter."""
    source = tokens[index].content
    lines = [line for line in source.splitlines() if line.strip()]
    is_prose = len(source.split()) >= _MIN_PROSE_WORDS * len(lines)
    return f"<p>{escape(source)}</p>" if is_prose else f"<pre><code>{escape(source)}</code></pre>"
