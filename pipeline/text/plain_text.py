"""What makes two texts the same: content hashes, and plain text out of Markdown and HTML.

Everything here and in `html_text` is pure, takes any string without raising, and runs in time linear in its input. The
standard `html.parser` is not used because it is not: 40 kB of `<a ` cost it 13 s (CPython 3.11.7).
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
    tidy,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token


# Rendering hostile Markdown costs up to 15 µs a character, and no article is longer than this.
MAX_MARKDOWN_CHARS: Final = 300_000


def content_hash(title: str, body: str) -> str:
    """SHA-256 in hex over both, NFC-normalised and with white space folded, so that re-wrapping changes nothing."""
    # Folded text holds no line break, so the one between the two parts can't be forged.
    folded = f"{_fold(title)}\n{_fold(body)}"
    return hashlib.sha256(folded.encode("utf-8", errors="surrogatepass")).hexdigest()


def _fold(text: str) -> str:
    if text.isascii():
        # Nothing to normalise, and looking for marks would cost more than all the rest.
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFC", _overlong_marks().sub(r"\1", text)).split())


@cache
def _overlong_marks() -> re.Pattern[str]:
    """Runs of more than 30 combining marks, the bound of UAX #15's stream-safe form.

    CPython sorts such a run by insertion: 160,000 marks cost 19 s, so the surplus goes before normalising.
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
    """The readable text of a body in one of the formats `text`, `markdown` and `html`."""
    if body_format == "html":
        return html_to_text(body)
    if body_format == "markdown":
        return markdown_to_text(body)
    return tidy(strip_invisible(body))


# "week[^1]" as Markdown refers to a note; the note itself begins a line. Code keeps what it has.
_NOTE_MARK: Final = re.compile(r"(`[^`\n]*`)|(?<=[^\s\[])\[\^[^\]\s]{1,40}\](?!:)")


def seen_text(body: str, body_format: str) -> str:
    """What a body from outside says to a person who sees it: see `read_body`."""
    return read_body(body, body_format).seen


def read_body(body: str, body_format: str) -> HtmlText:
    """The text of a body from outside, in one of the formats `text`, `markdown` and `html`.

    As `plain_text`, and: comments and hidden text are none in all three, for HTML inside Markdown is markup too.
    Blocks that hold no sentences are marked, a line each: `| cell | cell |`, `\u2022 item of a list`, `` `code` `` and
    `[caption]`; `sentences.statements_in` passes them by.
    """
    if body_format == "html":
        return read_html(body, marks_blocks=True)
    if body_format == "markdown" and len(body) <= MAX_MARKDOWN_CHARS:
        try:
            return read_html(_source_renderer().render(_NOTE_MARK.sub(r"\1", body)), marks_blocks=True)
        except (RecursionError, ValueError, IndexError):
            # The renderer chokes on a few malformed inputs; Markdown is readable as it is written.
            pass
    return _read_words(body)


_HEADINGS: Final = tuple(
    (re.compile(rf"<{name}[\s>]", re.IGNORECASE), re.compile(rf"</{name}[\s>]", re.IGNORECASE))
    for name in ("h1", "title")
)
_HEADING_WITHIN: Final = 20_000
"""Characters of HTML in which its heading is looked for."""


def title_in(body: str, body_format: str) -> str:
    """What a body calls itself: Markdown that begins with `# ...`, the first `<h1>` of HTML, or its `<title>`; else empty."""
    if body_format == "markdown":
        line = body.lstrip("\ufeff \t\r\n").partition("\n")[0]
        return markdown_to_text(line) if line.startswith("# ") else ""
    if body_format == "html":
        head = body[:_HEADING_WITHIN]
        for begins, ends in _HEADINGS:
            begun = begins.search(head)
            ended = begun and ends.search(head, begun.end())
            if begun and ended:
                return " ".join(html_to_text(f"<p{head[begun.end() - 1 : ended.start()]}</p>").split())
    return ""


# What mail programs put before a subject, in the languages that have words of their own for it, and lists behind that.
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
"""A pattern for what a press release says of itself."""
_RELEASE_PREFIX: Final = re.compile(
    rf"(?:{RELEASE}\s*(?:[:\uff1a|]\s*|\s[\u2013\u2014-]\s))+(?=\S)", re.IGNORECASE
)
_REFERENCE: Final = re.compile(r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});", re.IGNORECASE)


def without_mail_prefix(title: str) -> str:
    """A title without the "Fwd:" and "Re:" of the mail that it came in, and the "[Allotments]" of a mailing list."""
    return _without(_MAIL_PREFIX, title)


def bare_title(title: str) -> str:
    """A title as it is told: without what mails and press releases put before one, and with its entities as letters."""
    decoded = _REFERENCE.sub(_letter, title)
    return _without(_RELEASE_PREFIX, without_mail_prefix(decoded))


def _letter(reference: re.Match[str]) -> str:
    letter = unescape(reference.group())
    # A title has one line.
    return letter if letter.isprintable() or letter == "\u00a0" else " "


def _without(prefix: re.Pattern[str], title: str) -> str:
    found = prefix.match(title.lstrip())
    return title.lstrip()[found.end() :] if found else title


def _read_words(text: str) -> HtmlText:
    """A comment that is never closed is none where nothing else is markup."""
    seen: list[str] = []
    hidden: list[str] = []
    at = 0
    while (opening := text.find("<!--", at)) != -1 and (closing := text.find("-->", opening)) != -1:
        seen.append(text[at:opening])
        hidden.append(text[opening + len("<!--") : closing])
        at = closing + len("-->")
    seen.append(text[at:])
    return HtmlText(tidy(strip_invisible(" ".join(seen))), tidy(strip_invisible("\n\n".join(hidden))))


def markdown_to_text(md: str) -> str:
    """Markdown as plain text; HTML inside it is shown as written, since the renderer has HTML switched off."""
    if len(md) > MAX_MARKDOWN_CHARS:
        return tidy(strip_invisible(md))
    try:
        return html_to_text(_renderer().render(md))
    except (RecursionError, ValueError, IndexError):
        # The renderer chokes on a few malformed inputs; Markdown is readable as it is written.
        return tidy(strip_invisible(md))


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")


_TAG_NAME: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?=[\s/>])")
_LEAST_PROSE: Final = 6
"""Words a line from which on indented text is taken for prose."""


@cache
def _source_renderer() -> MarkdownIt:
    """HTML in it is markup; what is no element that a page could have is words, as in "a list<int>"."""
    # Its line breaks stay: `sentences` tells a heading and an entry from a wrapped line, a paragraph in one line doesn't.
    renderer = (
        MarkdownIt("commonmark", {"html": True, "breaks": True}).enable("table").enable("strikethrough")
    )
    for kind in ("html_inline", "html_block"):
        renderer.add_render_rule(kind, _markup_or_words)
    renderer.add_render_rule("code_block", _indented)
    return renderer


def _markup_or_words(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    written = tokens[place].content
    if written.startswith("<!--"):
        return written
    tag = _TAG_NAME.match(written.lstrip())
    name = tag[1].lower() if tag else ""
    # What is dropped with all that follows has to end where it stands.
    is_closed = name not in DROPPED or f"</{name}" in written.lower()
    return written if name in ELEMENTS and is_closed else escape(written)


def _indented(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    """Code, unless the lines are as long as those of a letter."""
    written = tokens[place].content
    lines = [line for line in written.splitlines() if line.strip()]
    is_prose = len(written.split()) >= _LEAST_PROSE * len(lines)
    return f"<p>{escape(written)}</p>" if is_prose else f"<pre><code>{escape(written)}</code></pre>"
