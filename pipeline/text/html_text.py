"""Extracts from HTML the text that a reader sees, and the text that it hides."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class HtmlText(NamedTuple):
    """The text of a body that a person sees, and the text in it that is hidden."""

    seen: str
    hidden: str


# Zero-width, bidirectional and tag characters, variation selectors of the supplement, C0 and C1 controls:
# invisible to a reviewer and readable to a model, so none may pass. Joiners stay only between two characters
# beyond ASCII, where emoji and several scripts need them.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200c\u200d])"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def strip_invisible(text: str) -> str:
    """Return the text without invisible characters, which only a model reads, and lone surrogates."""
    return _INVISIBLE.sub("", _SURROGATE.sub("\ufffd", text))


def tidy_lines(text: str) -> str:
    """Return the text with single spaces in its lines and single blank lines between its paragraphs."""
    lines: list[str] = []
    for line in text.splitlines():
        folded = " ".join(line.split())
        if folded or (lines and lines[-1]):
            lines.append(folded)
    return "\n".join(lines).strip()


def _name_set(names: str) -> frozenset[str]:
    return frozenset(names.split())


VOID: Final = _name_set("area base br col embed hr img input link meta param source track wbr")
BLOCKS: Final = _name_set(
    "address article aside blockquote body caption center details dialog dd div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre section summary table "
    "tbody td tfoot th thead tr ul"
)
LINES: Final = _name_set("li dt dd tr br option")
CELLS: Final = _name_set("td th")
# Elements whose content is never shown as text of the page.
DROPPED: Final = _name_set(
    "script style template noscript iframe object head title svg math canvas audio video textarea select noembed "
    "noframes xmp"
)
# All elements of HTML: those above, and those within a text or around one.
ELEMENTS: Final = (
    VOID
    | BLOCKS
    | LINES
    | CELLS
    | DROPPED
    | _name_set(
        "a abbr acronym b bdi bdo big button cite code data del dfn em font i ins kbd label map mark meter nobr optgroup "
        "output picture progress q rp rt ruby s samp slot small span strike strong sub sup time tt u var"
    )
)
# Elements whose content is no markup: it ends at their own end tag and nowhere else.
RAW: Final = _name_set("script style iframe noembed noframes xmp textarea title")
_RAW_ENDS: Final = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW}
_NAME: Final = re.compile(r"[a-zA-Z][^\s/>]*")
_ATTRIBUTE: Final = re.compile(
    r"""[\s/]*+(?:(>)|([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|(?!["'])([^\s>]*+)|(["'])))?)"""
)
_BARE_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,30})>")
_COMMENT_END: Final = re.compile(r"--!?>")
_HIDING_STYLE: Final = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+(?:hidden|collapse)|(?:font-size|opacity)\s*+:\s*+0(?![0-9]*+[.]?[0-9]*?[1-9])"
    r"|font-size\s*+:\s*+(?:0?[.][0-9]|1)(?:[.][0-9]++)?px|clip\s*+:\s*+rect\(\s*+[01](?:px)?[\s,]"
    r"|text-indent\s*+:\s*+-[0-9]{3}|(?<![-a-z])(?:left|top)\s*+:\s*+-[0-9]{3}"
)
_TINY: Final = re.compile(r"(?<![-a-z])(?:max-)?(?:height|width)\s*+:\s*+[01](?:px)?\s*+(?:;|$)")
_CLIPPED: Final = re.compile(r"overflow\s*+:\s*+hidden")
_WHITE: Final = re.compile(
    r"(?<![-a-z])color\s*+:\s*+(?:white\b|transparent\b|#fff(?:f{3})?\b|rgb\(\s*+255\s*+,\s*+255\s*+,\s*+255\s*+\))"
)
_COLOURED_STYLE: Final = re.compile(r"(?<![-a-z])background(?:-color|-image)?\s*+:")
# Python refuses to convert numbers of over 4,300 digits, and `html.unescape` doesn't expect that.
_HUGE_REFERENCE: Final = re.compile(r"&#[0-9]{8,};?")
# Browsers stop nesting at 512 elements as well; the look-back bounds what a flood of stray end tags can cost.
MAX_DEPTH: Final = 512
LOOK_BACK: Final = 64
# The most tags and texts that are read; the longest real body, of 5 MiB, has fewer. The rest is left out.
MAX_TOKENS: Final = 400_000


def html_to_text(html: str) -> str:
    """Return the text that a reader of the rendered page would see.

    Blank lines separate blocks; each list item and table row is a line. Comments, scripts, styles, hidden nodes and
    invisible characters are left out, and so is all text after an unclosed tag or comment, as in a browser.
    """
    return read_html(html, marks_blocks=False).seen


_CELL, _ITEM, _CODE, _CAPTION = "\x01", "\x02", "\x03", "\x04"
"""Signs before cells, items and lines of code or captions, until `_mark_line`; no text has them."""
_SIGN_SPACES: Final = str.maketrans(dict.fromkeys(f"{_CELL}{_ITEM}{_CODE}{_CAPTION}", " "))
_MAX_CELL_CHARACTERS: Final = 300
"""A longer cell is no cell of a table but a part of the page."""
_BOLD: Final = _name_set("b strong")
_MAX_RUN_IN_CHARACTERS: Final = 80
_OPENS_SENTENCE: Final = re.compile(
    r"\s+(?:The|An|In|On|At|From|It|We|You|Our|For|With|There|Der|Die|Das|Ein|Eine|Im|Am|Wir|Sie|Es|Le|La|Les|L['\u2019]|Un|Une|Des|Du|Nous|En|El|Los|Las|Una|Il|Lo|Gli"
    r"|Os|As|Um|Uma|De|Het|Een|Den|Det|Ett|Na|Od|На|От)(?![^\W\d_])"
)


class _RunInHeading:
    """Detects a run-in heading: bold words that open a paragraph, followed by a sentence."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces
        self._start: int | None = None

    def read_tag(self, tag: _Tag) -> None:
        if tag.name not in _BOLD:
            self._start = None
        elif not tag.is_end:
            before = next((piece for piece in reversed(self._pieces) if piece.strip(" ")), "\n")
            self._start = len(self._pieces) if before.endswith("\n") else None

    def end_before(self, text: str) -> str:
        """Return the line end that separates the heading from the text after it, or "" if it is no heading."""
        if self._start is None:
            return ""
        words = "".join(self._pieces[self._start :]).strip()
        is_heading = 0 < len(words) <= _MAX_RUN_IN_CHARACTERS and (words[-1].isalnum() or words[-1] in ")%")
        return "\n" if is_heading and _OPENS_SENTENCE.match(text) else ""


def read_html(html: str, *, marks_blocks: bool) -> HtmlText:
    """Return the page's visible text; if `marks_blocks`, with marks for blocks, and the text that it hides."""
    pieces: list[str] = []
    hidden: list[str] = []
    page = _OpenElements()
    run_in = _RunInHeading(pieces)
    for token in islice(_tokens(html), MAX_TOKENS):
        if isinstance(token, str):
            if page.is_visible:
                text = _decode_text(token, is_preformatted=page.is_preformatted)
                pieces.append(run_in.end_before(text) + page.mark_text(text) if marks_blocks else text)
            elif page.is_veiled:
                hidden.append(_decode_text(token, is_preformatted=page.is_preformatted))
            continue
        if isinstance(token, _Comment):
            hidden.append(f"\n\n{strip_invisible(_unescape(token.text))}\n\n")
            continue
        if token.is_end:
            page.close(token.name)
        else:
            page.open(token)
        run_in.read_tag(token)
        if page.is_visible:
            pieces.append(_separator_for(token))
        elif page.is_veiled:
            hidden.append(_separator_for(token))
    lines = tidy_lines("".join(pieces))
    if not marks_blocks:
        return HtmlText(lines, "")
    return HtmlText(tidy_lines("\n".join(map(_mark_line, lines.split("\n")))), tidy_lines("".join(hidden)))


def _mark_line(line: str) -> str:
    """Return the line with Markdown-like marks; a cell alone in its row gets none, because it serves the layout."""
    words = " ".join(line.translate(_SIGN_SPACES).split())
    if not words:
        return ""
    if _CODE in line:
        return f"`{words}`"
    if _CAPTION in line:
        return f"[{words}]"
    cells = [cell for part in line.split(_CELL) if (cell := " ".join(part.translate(_SIGN_SPACES).split()))]
    if line.count(_CELL) > 1 and len(cells) > 1 and max(map(len, cells)) <= _MAX_CELL_CHARACTERS:
        return f"| {' | '.join(cells)} |"
    return f"\u2022 {words}" if line.startswith(_ITEM) else words


def _decode_text(token: str, *, is_preformatted: bool) -> str:
    text = _unescape(token)
    if text.isascii() and text.isprintable():
        # All its characters are visible, and its spaces are folded later with the whole line.
        return text
    text = strip_invisible(text)
    # Line breaks of the source are spaces to a reader, except in `<pre>`.
    return text if is_preformatted else re.sub(r"\s+", " ", text)


def _unescape(text: str) -> str:
    return unescape(_HUGE_REFERENCE.sub("\ufffd", text)) if "&" in text else text


def _separator_for(tag: _Tag) -> str:
    if tag.name in LINES:
        return "\n"
    if tag.name in CELLS:
        return " "
    return "\n\n" if tag.name in BLOCKS else ""


class _Comment(NamedTuple):
    text: str


@dataclass(frozen=True)
class _Tag:
    name: str
    is_end: bool
    is_hidden: bool = False
    is_white: bool = False
    has_background: bool = False


_ENDS_MARK: Final = _name_set("li ul ol td th tr table")
"""Elements whose end drops a pending mark."""


class _OpenElements:
    """The stack of open elements, only as exact as the detection of hidden text needs."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._counts: Counter[str] = Counter()
        self._hidden_from: int | None = None
        self._coloured_from: int | None = None
        self._mark = ""

    @property
    def is_visible(self) -> bool:
        return self._hidden_from is None

    @property
    def is_veiled(self) -> bool:
        """Whether the current text is part of the page and only hidden by its style."""
        return self._hidden_from is not None and not any(self._counts[name] for name in DROPPED)

    @property
    def is_preformatted(self) -> bool:
        return self._counts["pre"] > 0

    def mark_text(self, text: str) -> str:
        """Return the text with the pending sign of its cell or item, and the sign of its code or caption."""
        sign = _CODE if self._counts["pre"] and self._counts["code"] else ""
        sign = sign or (_CAPTION if self._counts["figcaption"] or self._counts["caption"] else "")
        if not text.strip():
            return text
        before, self._mark = self._mark, ""
        return f"{before}{sign}{text.replace(chr(10), chr(10) + sign)}" if sign else f"{before}{text}"

    def open(self, tag: _Tag) -> None:
        if tag.name in VOID:
            return
        if tag.name in CELLS:
            self._mark = _CELL
        elif tag.name == "li":
            self._mark = _ITEM
        top = self._names[-1] if self._names else ""
        # The next one ends these elements, without an end tag.
        if (top == "p" and tag.name in BLOCKS) or (
            top == tag.name and top in {"li", "dt", "dd", "tr", "td", "th"}
        ):
            self._pop_to(len(self._names) - 1)
        if len(self._names) >= MAX_DEPTH:
            return
        if self._coloured_from is None and tag.has_background:
            self._coloured_from = len(self._names)
        is_unseen = tag.is_hidden or (tag.is_white and self._coloured_from is None)
        if self._hidden_from is None and (is_unseen or tag.name in DROPPED):
            self._hidden_from = len(self._names)
        self._names.append(tag.name)
        self._counts[tag.name] += 1

    def close(self, name: str) -> None:
        if name in _ENDS_MARK:
            self._mark = ""
        if not self._counts[name]:
            return
        lowest = max(0, len(self._names) - LOOK_BACK)
        for index in range(len(self._names) - 1, lowest - 1, -1):
            if self._names[index] == name:
                self._pop_to(index)
                return
            # An inline end tag never closes a block, so it can't make a hidden block visible.
            if name not in BLOCKS and self._names[index] in BLOCKS:
                return

    def _pop_to(self, length: int) -> None:
        for name in self._names[length:]:
            self._counts[name] -= 1
        del self._names[length:]
        if self._hidden_from is not None and length <= self._hidden_from:
            self._hidden_from = None
        if self._coloured_from is not None and length <= self._coloured_from:
            self._coloured_from = None


@lru_cache(maxsize=512)
def _bare_tag(name: str, *, is_end: bool) -> _Tag:
    return _Tag(name, is_end)


def _tokens(html: str) -> Iterator[str | _Comment | _Tag]:
    """Yield texts, comments and tags in order; each character is read a bounded number of times."""
    position = 0
    while position < len(html):
        opening = html.find("<", position)
        if opening == -1:
            yield html[position:]
            return
        if opening > position:
            yield html[position:opening]
        bare = _BARE_TAG.match(html, opening)
        if bare is not None and (lower_name := bare[2].lower()) not in RAW:
            yield _bare_tag(lower_name, is_end=bool(bare[1]))
            position = bare.end()
            continue
        comment_end = _after_comment(html, opening)
        if comment_end is not None:
            if html.startswith("<!--", opening):
                yield _Comment(html[opening + len("<!--") : comment_end].removesuffix("-->"))
            position = comment_end
            continue
        is_end = html.startswith("/", opening + 1)
        name = _NAME.match(html, opening + 1 + is_end)
        if name is None:
            yield "<"
            position = opening + 1
            continue
        tag, position = _tag_at(html, name[0].lower(), name.end(), is_end=is_end)
        yield tag
        if tag.name in RAW and not is_end:
            closing = _RAW_ENDS[tag.name].search(html, position)
            position = closing.start() if closing else len(html)


def _after_comment(html: str, opening: int) -> int | None:
    """Return the end of the comment, or of markup that a browser takes for one, at this offset, or `None`."""
    if html.startswith("<!--", opening):
        end = _COMMENT_END.search(html, opening + 2)
        return end.end() if end else len(html)
    is_bogus = html.startswith(("<!", "<?"), opening) or (
        html.startswith("</", opening) and _NAME.match(html, opening + 2) is None
    )
    if not is_bogus:
        return None
    closing = html.find(">", opening)
    return closing + 1 if closing != -1 else len(html)


def _tag_at(html: str, name: str, position: int, *, is_end: bool) -> tuple[_Tag, int]:
    """Return the tag with the marks of its style, and its end; `position` is after its name."""
    is_hidden = is_white = has_background = False
    while (attribute := _ATTRIBUTE.match(html, position)) is not None:
        position = attribute.end()
        if attribute[1]:
            return _Tag(name, is_end, is_hidden, is_white, has_background), position
        if attribute[6]:
            break
        key, value = attribute[2].lower(), attribute[3] or attribute[4] or attribute[5] or ""
        is_hidden = is_hidden or _is_hiding(key, value)
        if key == "style":
            style = _unescape(value).lower()
            is_white = is_white or _WHITE.search(style) is not None
            has_background = has_background or _COLOURED_STYLE.search(style) is not None
        has_background = has_background or key in {"bgcolor", "background"}
    return _Tag(name, is_end, is_hidden, is_white, has_background), len(html)


def _is_hiding(attribute: str, value: str) -> bool:
    if attribute == "hidden":
        return True
    if attribute == "aria-hidden":
        return value.strip().lower() == "true"
    if attribute != "style":
        return False
    style = _unescape(value).lower()
    is_nothing = _TINY.search(style) is not None and _CLIPPED.search(style) is not None
    return is_nothing or _HIDING_STYLE.search(style) is not None
