"""What makes two texts or two addresses the same: canonical URLs, content hashes, and plain text out of HTML.

Everything here is pure, takes any string without raising, and runs in time linear in its input. The standard
`html.parser` is not used because it is not: 40 kB of `<a ` cost it 13 s (CPython 3.11.7).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache
from html import unescape
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

import idna
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACKING_PARAMETERS: Final = frozenset(
    {
        "_hsenc", "_hsmi", "dclid", "fbclid", "gbraid", "gclid", "gclsrc", "igsh", "igshid", "li_fat_id", "mc_cid",
        "mc_eid", "mkt_tok", "msclkid", "oly_anon_id", "oly_enc_id", "ref_src", "ref_url", "srsltid", "ttclid",
        "twclid", "vero_id", "wbraid", "yclid",
    }
)  # fmt: skip
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Every printable ASCII character stays as it is written; the rest is percent-encoded as browsers do.
_URL_SAFE: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

# `urlsplit` normalises the host in quadratic time: 200,000 combining marks in it cost 30 s.
MAX_URL_CHARS: Final = 8192
# DNS allows 253 characters; IDNA of anything longer is wasted work.
MAX_HOST_CHARS: Final = 253
# Rendering hostile Markdown costs up to 15 µs a character, and no article is longer than this.
MAX_MARKDOWN_CHARS: Final = 300_000


def canonical_url(url: str) -> str:
    """The address by which two entries are the same page; what isn't an http(s) address comes back stripped."""
    stripped = url.strip()
    if len(stripped) > MAX_URL_CHARS:
        return stripped
    try:
        parts = urlsplit(re.sub(r"[\t\r\n]", "", stripped))
    except ValueError:
        return stripped
    if parts.scheme not in DEFAULT_PORTS:
        return stripped
    netloc = _canonical_netloc(parts.netloc.rpartition("@")[2], DEFAULT_PORTS[parts.scheme])
    if netloc is None:
        return stripped
    path = quote(parts.path or "/", safe=_URL_SAFE, errors="replace")
    query = "&".join(pair for pair in parts.query.split("&") if not _is_tracking(pair))
    query = quote(query, safe=_URL_SAFE, errors="replace")
    return f"{parts.scheme}://{netloc}{path}" + (f"?{query}" if query else "")


def _canonical_netloc(netloc: str, default_port: int) -> str | None:
    match = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?", netloc)
    if match is None:
        return None
    host, port = match[1].lower(), match[2]
    if not host.isascii() and len(host) <= MAX_HOST_CHARS:
        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            # A name that no registry would take still has to compare equal to itself.
            return None
    host = host.rstrip(".")
    if not host or re.search(r"[\s\x00-\x20\x7f%\\]|[^\x00-\x7f]", host):
        return None
    return host if not port or int(port) == default_port else f"{host}:{int(port)}"


def _is_tracking(pair: str) -> bool:
    name = unquote(pair.partition("=")[0][:80]).lower()
    return name.startswith("utm_") or name in TRACKING_PARAMETERS


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
    return _tidy(strip_invisible(body))


def markdown_to_text(md: str) -> str:
    """Markdown as plain text; HTML inside it is shown as written, since the renderer has HTML switched off."""
    if len(md) > MAX_MARKDOWN_CHARS:
        return _tidy(strip_invisible(md))
    try:
        return html_to_text(_renderer().render(md))
    except (RecursionError, ValueError, IndexError):
        # The renderer chokes on a few malformed inputs; Markdown is readable as it is written.
        return _tidy(strip_invisible(md))


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")


# Zero-width, bidirectional and tag characters, variation selectors of the supplement, C0 and C1 controls. They are
# invisible to a reviewer and readable to a model, so none may pass. Joiners stay only between two characters beyond
# ASCII, where emoji and several scripts need them.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200c\u200d])"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def strip_invisible(text: str) -> str:
    """Without the characters that a person can't see, nor the lone surrogates that a database can't store."""
    return _INVISIBLE.sub("", _SURROGATE.sub("\ufffd", text))


def _tidy(text: str) -> str:
    """Lines with single spaces, paragraphs apart by one blank line."""
    lines: list[str] = []
    for line in text.splitlines():
        folded = " ".join(line.split())
        if folded or (lines and lines[-1]):
            lines.append(folded)
    return "\n".join(lines).strip()


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


VOID: Final = _words("area base br col embed hr img input link meta param source track wbr")
BLOCKS: Final = _words(
    "address article aside blockquote body caption center details dialog dd div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre section summary table "
    "tbody td tfoot th thead tr ul"
)
LINES: Final = _words("li dt dd tr br option")
CELLS: Final = _words("td th")
# What is inside is never shown as text of the page.
DROPPED: Final = _words(
    "script style template noscript iframe object head title svg math canvas audio video textarea select noembed "
    "noframes xmp"
)
# Their content is not markup: it ends at their own end tag and nowhere else.
RAW: Final = _words("script style iframe noembed noframes xmp textarea title")
_RAW_ENDS: Final = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW}

_NAME: Final = re.compile(r"[a-zA-Z][^\s/>]*")
_ATTRIBUTE: Final = re.compile(
    r"""[\s/]*+(?:(>)|([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|(?!["'])([^\s>]*+)|(["'])))?)"""
)
_BARE_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,30})>")
_COMMENT_END: Final = re.compile(r"--!?>")
_UNSEEN_STYLE: Final = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+(?:hidden|collapse)|(?:font-size|opacity)\s*+:\s*+0(?![0-9]*+[.]?[0-9]*?[1-9])"
)
# Python refuses to convert numbers of over 4,300 digits, and `html.unescape` doesn't expect that.
_HUGE_REFERENCE: Final = re.compile(r"&#[0-9]{8,};?")

# Browsers stop nesting at 512 elements as well; the look-back bounds what a flood of stray end tags can cost.
MAX_DEPTH: Final = 512
LOOK_BACK: Final = 64


def html_to_text(html: str) -> str:
    """What a reader of the rendered page would see, as text.

    Blocks are apart by a blank line, list items and table rows stand on lines of their own. Comments, scripts,
    styles, hidden nodes and invisible characters are left out, and so is what follows an unclosed tag or comment,
    as in a browser.
    """
    pieces: list[str] = []
    page = _OpenElements()
    for token in _tokens(html):
        if isinstance(token, str):
            if page.is_visible:
                pieces.append(_text_of(token, is_preformatted=page.is_preformatted))
            continue
        if token.is_end:
            page.close(token.name)
        else:
            page.open(token)
        if page.is_visible:
            pieces.append(_break_of(token))
    return _tidy("".join(pieces))


def _text_of(token: str, *, is_preformatted: bool) -> str:
    text = _unescape(token)
    if text.isascii() and text.isprintable():
        # Nothing in it is invisible, and its spaces are folded with its line.
        return text
    text = strip_invisible(text)
    # Line breaks of the source are spaces to a reader, but for those in `<pre>`.
    return text if is_preformatted else re.sub(r"\s+", " ", text)


def _unescape(text: str) -> str:
    return unescape(_HUGE_REFERENCE.sub("\ufffd", text)) if "&" in text else text


def _break_of(tag: _Tag) -> str:
    if tag.name in LINES:
        return "\n"
    if tag.name in CELLS:
        return " "
    return "\n\n" if tag.name in BLOCKS else ""


@dataclass(frozen=True)
class _Tag:
    name: str
    is_end: bool
    is_hidden: bool = False


class _OpenElements:
    """The stack of open elements, no more exact than hiding needs it."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._counts: Counter[str] = Counter()
        self._hidden_from: int | None = None

    @property
    def is_visible(self) -> bool:
        return self._hidden_from is None

    @property
    def is_preformatted(self) -> bool:
        return self._counts["pre"] > 0

    def open(self, tag: _Tag) -> None:
        if tag.name in VOID:
            return
        top = self._names[-1] if self._names else ""
        # These end where the next one begins, with no end tag of their own.
        if (top == "p" and tag.name in BLOCKS) or (
            top == tag.name and top in {"li", "dt", "dd", "tr", "td", "th"}
        ):
            self._pop_to(len(self._names) - 1)
        if len(self._names) >= MAX_DEPTH:
            return
        if self._hidden_from is None and (tag.is_hidden or tag.name in DROPPED):
            self._hidden_from = len(self._names)
        self._names.append(tag.name)
        self._counts[tag.name] += 1

    def close(self, name: str) -> None:
        if not self._counts[name]:
            return
        lowest = max(0, len(self._names) - LOOK_BACK)
        for position in range(len(self._names) - 1, lowest - 1, -1):
            if self._names[position] == name:
                self._pop_to(position)
                return
            # An inline end tag never closes a block, so it can't bring a hidden block's text to light.
            if name not in BLOCKS and self._names[position] in BLOCKS:
                return

    def _pop_to(self, length: int) -> None:
        for name in self._names[length:]:
            self._counts[name] -= 1
        del self._names[length:]
        if self._hidden_from is not None and length <= self._hidden_from:
            self._hidden_from = None


@lru_cache(maxsize=512)
def _bare_tag(name: str, *, is_end: bool) -> _Tag:
    return _Tag(name, is_end)


def _tokens(html: str) -> Iterator[str | _Tag]:
    """Text and tags in order; each character is looked at a bounded number of times."""
    at = 0
    while at < len(html):
        opening = html.find("<", at)
        if opening == -1:
            yield html[at:]
            return
        if opening > at:
            yield html[at:opening]
        bare = _BARE_TAG.match(html, opening)
        if bare is not None and (known := bare[2].lower()) not in RAW:
            yield _bare_tag(known, is_end=bool(bare[1]))
            at = bare.end()
            continue
        after = _after_comment(html, opening)
        if after is not None:
            at = after
            continue
        is_end = html.startswith("/", opening + 1)
        name = _NAME.match(html, opening + 1 + is_end)
        if name is None:
            yield "<"
            at = opening + 1
            continue
        tag, at = _tag_at(html, name[0].lower(), name.end(), is_end=is_end)
        yield tag
        if tag.name in RAW and not is_end:
            closing = _RAW_ENDS[tag.name].search(html, at)
            at = closing.start() if closing else len(html)


def _after_comment(html: str, opening: int) -> int | None:
    """Where a comment, or what a browser takes for one, ends; None when none begins here."""
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


def _tag_at(html: str, name: str, at: int, *, is_end: bool) -> tuple[_Tag, int]:
    is_hidden = False
    while (attribute := _ATTRIBUTE.match(html, at)) is not None:
        at = attribute.end()
        if attribute[1]:
            return _Tag(name, is_end, is_hidden), at
        if attribute[6]:
            break
        value = attribute[3] or attribute[4] or attribute[5] or ""
        is_hidden = is_hidden or _hides(attribute[2].lower(), value)
    return _Tag(name, is_end, is_hidden), len(html)


def _hides(attribute: str, value: str) -> bool:
    if attribute == "hidden":
        return True
    if attribute == "aria-hidden":
        return value.strip().lower() == "true"
    return attribute == "style" and _UNSEEN_STYLE.search(_unescape(value).lower()) is not None
