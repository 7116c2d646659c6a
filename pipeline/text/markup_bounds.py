"""Checks, in one linear pass before any parser reads it, that foreign XML or HTML isn't too much for parsers.

Depth, attributes of a tag and unclosed openings cost parsers the square of their number: 200,000 nested tags took
16 s, 100,000 attributes 13 s. This module imports nothing of the project, because child processes that read
hostile input use it.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 256
"""The most open elements. Libxml2 nests XML no deeper; real pages are twenty to forty deep."""
MAX_ATTRIBUTES: Final = 128
"""The most attributes of one tag; pages of scripts and drawings have up to fifty."""
MAX_NAME_CHARACTERS: Final = 1000
MAX_CHARACTERS_SEARCHED: Final = 100_000_000
"""The most characters that parsers search for missing ends of comments and the like, from each opening on.

It allows twenty openings in 5 MiB; 400 kB of `<!--` need two hundred times as much.
"""
MAX_FEED_TAGS: Final = 120_000
"""The most tags of a feed outside CDATA, end tags too: 5 MiB of articles in XHTML have 70,000."""
MAX_FEED_REFERENCES: Final = 600_000
"""The most ampersands of a feed outside CDATA: 5 MiB of articles in escaped HTML have half as many."""
MAX_FEED_NAMESPACES: Final = 200
MAX_PAGE_ELEMENTS: Final = 50_000
"""The most elements of a page: a usual one has 1500, the longest articles and lists some 30,000."""
MAX_REOPENED: Final = 50_000
"""The most elements that an HTML5 parser opens again in following blocks, as after `<p><b></p>`.

Their number grows with the square of the markup.
"""
MAX_PAGE_OPENINGS: Final = 400_000
"""The most characters that could begin a start tag, also in scripts and texts.

Each that begins none is a separate text to a parser.
"""
MAX_UNENDED_TAGS: Final = 5000
"""The most tags of a sitemap in which the next tag begins; XML has none but in CDATA."""
MAX_SITEMAP_TAGS: Final = 1_500_000
"""The most tags of a sitemap, end tags too: 50,000 addresses with ten languages each have a million."""

_LONG_NAME: Final = re.compile(rf"<[^\s<>/]{{{MAX_NAME_CHARACTERS}}}")
_NAMESPACE: Final = re.compile(r"xmlns:([^\s=<>]{1,100}+)\s*+=")
_CLOSED_BY: Final = (("<!--", "-->"), ("<?", ">"), ("<!", ">"), ("<![CDATA[", "]]>"))


def is_feed_too_much(text: str) -> bool:
    """Return whether an XML document has more tags, references, namespaces or the like than a real feed."""
    marked = without_cdata(text)
    return (
        marked.count("<") > MAX_FEED_TAGS
        or marked.count("&") > MAX_FEED_REFERENCES
        or _has_many_unclosed(marked)
        or _LONG_NAME.search(marked) is not None
        or len({name[1] for name in _NAMESPACE.finditer(marked)}) > MAX_FEED_NAMESPACES
    )


def without_cdata(text: str) -> str:
    """Return the text without its CDATA sections; comments and instructions stay, and count as markup.

    An opening within a tag, as in an attribute's value, begins no section. A section that is never closed stays.
    """
    parts: list[str] = []
    position = 0
    while (opening := text.find("<![CDATA[", position)) != -1:
        if text.rfind("<", position, opening) > text.rfind(">", position, opening):
            parts.append(text[position : opening + 1])
            position = opening + 1
            continue
        closing = text.find("]]>", opening)
        if closing == -1:
            break
        parts.append(text[position:opening])
        position = closing + len("]]>")
    return "".join([*parts, text[position:]]) if parts else text


def _has_many_unclosed(text: str) -> bool:
    return any(
        _characters_searched(text, opening, end) > MAX_CHARACTERS_SEARCHED for opening, end in _CLOSED_BY
    )


def _characters_searched(text: str, opening: str, end: str) -> int:
    """Return an upper bound of the characters that are searched for the missing end of each opening.

    Each opening counts as if it stood right after the last `end`.
    """
    search_start = text.rfind(end) + 1
    return text.count(opening, search_start) * (len(text) - search_start)


# Tags as browsers and libxml2 read them: a quotation mark opens a value only after an equals sign.
_ATTRIBUTE: Final = r"""[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?)?"""
_ONE_ATTRIBUTE: Final = re.compile(_ATTRIBUTE)
_TAG: Final = re.compile(rf"<(/?)([a-zA-Z][^\s/>]*+)((?:[\s/]++|{_ATTRIBUTE})*+)>?")
_OPENING: Final = re.compile(r"<(?=[a-zA-Z/!?])")
_SCRIPT_END: Final = re.compile(r"</(?:script|style)(?=[\s/>])", re.IGNORECASE)
_VOID: Final = frozenset(
    ["area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)  # fmt: skip
_CELLS: Final = frozenset({"p", "td", "th"})
_ROWS: Final = _CELLS | {"tr"}
_GROUPS: Final = _ROWS | {"tbody", "tfoot", "thead"}
_ENDS: Final = {
    "p": frozenset({"p"}),
    "li": frozenset({"li", "p"}),
    **dict.fromkeys(("dd", "dt"), frozenset({"dd", "dt", "p"})),
    "option": frozenset({"option"}),
    **dict.fromkeys(("rp", "rt"), frozenset({"rp", "rt"})),
    **dict.fromkeys(("td", "th"), _CELLS),
    "tr": _ROWS,
    **dict.fromkeys(("tbody", "tfoot", "thead"), _GROUPS),
}
"""The elements without an end tag that a start tag ends, by its name."""
_INLINE: Final = frozenset(
    [
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "code",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
        "kbd",
        "label",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "tt",
        "u",
        "var",
    ]
)
_FORMATTING: Final = frozenset(
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]
)
"""Elements that stay open into the next block if they aren't closed."""
_LOOK_BACK: Final = 64
"""The most open elements in which an end tag searches its start tag."""


def is_page_too_much(text: str) -> bool:
    """Return whether an HTML document has more openings, elements, depth or attributes than a real page."""
    if text.count("<") - text.count("</") > MAX_PAGE_OPENINGS:
        return True
    open_names: list[str] = []
    started = ended = unclosed = reopened = 0
    for is_end, name, attributes in _page_tags(text):
        started += not is_end
        ended += is_end
        if started > MAX_PAGE_ELEMENTS or ended > 3 * MAX_PAGE_ELEMENTS or len(name) > MAX_NAME_CHARACTERS:
            return True
        # An attribute takes two characters at least, with the space before it.
        if len(attributes) > 2 * MAX_ATTRIBUTES and _has_too_many_attributes(attributes):
            return True
        if is_end:
            closed = _close_element(open_names, name)
            unclosed += sum(1 for closed_name in closed[1:] if closed_name in _FORMATTING)
            if not closed and name in _FORMATTING:
                unclosed = max(0, unclosed - 1)
        elif name not in _VOID:
            implied_ends = _ENDS.get(name, ())
            while open_names and open_names[-1] in implied_ends:
                open_names.pop()
            open_names.append(name)
            reopened += unclosed if name not in _INLINE else 0
            if len(open_names) > MAX_DEPTH or reopened > MAX_REOPENED:
                return True
    return False


def _page_tags(text: str) -> Iterator[tuple[bool, str, str]]:
    """Yield for each tag whether it is an end tag, its lower-case name and its attributes.

    A comment is an end tag without a name.
    """
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        tag = _TAG.match(text, opening.start())
        if tag is None:
            # A comment, or markup that a browser takes for one.
            is_comment = text.startswith("<!--", opening.start()) and not text.startswith(
                (">", "->"), opening.start() + 4
            )
            end = text.find("-->" if is_comment else ">", opening.start())
            if end == -1:
                return
            yield True, "", ""
            position = end + 1
            continue
        name = tag[2].lower()
        yield bool(tag[1]), name, tag[3]
        position = tag.end()
        if name in {"script", "style"} and not tag[1]:
            closing = _SCRIPT_END.search(text, position)
            if closing is None:
                return
            position = closing.start()


def _has_too_many_attributes(attributes: str) -> bool:
    return sum(1 for _ in _ONE_ATTRIBUTE.finditer(attributes)) > MAX_ATTRIBUTES


def _close_element(open_names: list[str], name: str) -> list[str]:
    """Close an element and those in it, and return their names, or [] if there is none to close.

    An inline end tag closes no block, as in libxml2.
    """
    for index in range(len(open_names) - 1, max(-1, len(open_names) - 1 - _LOOK_BACK), -1):
        if open_names[index] == name:
            closed = open_names[index:]
            del open_names[index:]
            return closed
        if name in _INLINE and open_names[index] not in _INLINE:
            break
    return []


_UNENDED_TAG: Final = re.compile(rb"<[^<>]*+(?=<|\Z)")


def is_sitemap_too_much(data: bytes) -> bool:
    """Return whether a sitemap has more markup than one of 50,000 addresses, or malformed markup."""
    if data.count(b"<") > MAX_SITEMAP_TAGS or _has_many_unclosed(data.decode("latin-1")):
        return True
    # Libxml2 reads on after each tag without an end, which costs the square of their number.
    return sum(1 for _ in islice(_UNENDED_TAG.finditer(data), MAX_UNENDED_TAGS + 1)) > MAX_UNENDED_TAGS


_SPAN_START: Final = re.compile(r"<!--|<!\[CDATA\[|<\?|<!ENTITY", re.IGNORECASE)
_SPAN_ENDS: Final = {"<!--": "-->", "<![cdata[": "]]>", "<?": "?>"}


def declares_entities(text: str) -> bool:
    """Return whether a DTD in the text declares entities; comments and CDATA sections don't count."""
    position = 0
    while (span := _SPAN_START.search(text, position)) is not None:
        end = _SPAN_ENDS.get(span[0].lower())
        if end is None:
            return True
        closing = text.find(end, span.end())
        if closing == -1:
            return False
        position = closing + len(end)
    return False
