"""Whether a stranger's XML or HTML stays within what parsers can take, told in one linear look before any of them reads it.

Depth, attributes of a tag and unclosed openings cost parsers the square of their number: 200,000 nested tags took 16 s,
100,000 attributes 13 s. It imports nothing of the project: the child processes use it that read hostile input.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 256
"""Open elements. Libxml2 nests XML no deeper; pages are twenty to forty deep."""
MAX_ATTRIBUTES: Final = 128
"""Attributes of one tag; pages of scripts and drawings have up to fifty."""
MAX_NAME_CHARS: Final = 1000
MAX_LOOKED_THROUGH: Final = 100_000_000
"""Characters that parsers look through for the ends of comments and the like that have none: from each opening to the end
of the document. It is twenty openings in 5 MiB; 400 kB of `<!--` are two hundred times as much.
"""
MAX_FEED_TAGS: Final = 120_000
"""Tags of a feed outside CDATA, beginnings and ends: 5 MiB of articles in XHTML have 70,000."""
MAX_FEED_REFERENCES: Final = 600_000
"""Ampersands of a feed outside CDATA: 5 MiB of articles in escaped HTML have half as many."""
MAX_FEED_NAMESPACES: Final = 200
MAX_PAGE_ELEMENTS: Final = 50_000
"""Elements of a page: a usual one has 1500, the longest articles and lists some 30,000."""
MAX_REOPENED: Final = 50_000
"""Elements that `<p><b></p>` makes a parser of HTML5 open again in each block that follows: their number is a square."""
MAX_PAGE_OPENINGS: Final = 400_000
"""Signs that could begin a tag, in scripts and texts too; each that begins none is a text of its own to a parser."""
MAX_NEVER_ENDED: Final = 5000
"""Tags of a sitemap in which the next one begins. XML has none but in CDATA."""
MAX_SITEMAP_TAGS: Final = 1_500_000
"""Tags of a sitemap, beginnings and ends: 50,000 addresses with ten languages each have a million."""

_LONG_NAME: Final = re.compile(rf"<[^\s<>/]{{{MAX_NAME_CHARS}}}")
_NAMESPACE: Final = re.compile(r"xmlns:([^\s=<>]{1,100}+)\s*+=")
_CLOSED_BY: Final = (("<!--", "-->"), ("<?", ">"), ("<!", ">"), ("<![CDATA[", "]]>"))


def is_feed_too_much(text: str) -> bool:
    """Whether an XML document has more of anything than an honest feed."""
    marked = without_cdata(text)
    return (
        marked.count("<") > MAX_FEED_TAGS
        or marked.count("&") > MAX_FEED_REFERENCES
        or _has_many_unclosed(marked)
        or _LONG_NAME.search(marked) is not None
        or len({name[1] for name in _NAMESPACE.finditer(marked)}) > MAX_FEED_NAMESPACES
    )


def without_cdata(text: str) -> str:
    """The text without its CDATA sections; comments and instructions stay, and count as markup.

    Within a tag, as in an attribute's value, none begins.
    """
    kept: list[str] = []
    at = 0
    while (opening := text.find("<![CDATA[", at)) != -1:
        if text.rfind("<", at, opening) > text.rfind(">", at, opening):
            kept.append(text[at : opening + 1])
            at = opening + 1
            continue
        closing = text.find("]]>", opening)
        if closing == -1:
            break
        kept.append(text[at:opening])
        at = closing + len("]]>")
    return "".join([*kept, text[at:]]) if kept else text


def _has_many_unclosed(text: str) -> bool:
    return any(_looked_through(text, opening, end) > MAX_LOOKED_THROUGH for opening, end in _CLOSED_BY)


def _looked_through(text: str, opening: str, end: str) -> int:
    """At most so many characters, as if each opening stood right behind the last place that could close one."""
    begun = text.rfind(end) + 1
    return text.count(opening, begun) * (len(text) - begun)


# As browsers and libxml2 read tags: a quotation mark opens a value behind an equals sign alone.
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
"""What a start tag ends that has no end tag of its own."""
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
"""Left open in a block, they are open in the next one too."""
_LOOK_BACK: Final = 64


def is_page_too_much(text: str) -> bool:
    """Whether an HTML document has more of anything than an honest page."""
    if text.count("<") - text.count("</") > MAX_PAGE_OPENINGS:
        return True
    open_names: list[str] = []
    begun = ended = left_open = reopened = 0
    for is_end, name, attributes in _page_tags(text):
        begun += not is_end
        ended += is_end
        if begun > MAX_PAGE_ELEMENTS or ended > 3 * MAX_PAGE_ELEMENTS or len(name) > MAX_NAME_CHARS:
            return True
        if len(attributes) > 2 * MAX_ATTRIBUTES and _counts_over(attributes):
            return True
        if is_end:
            closed = _close(open_names, name)
            left_open += sum(1 for one in closed[1:] if one in _FORMATTING)
            if not closed and name in _FORMATTING:
                left_open = max(0, left_open - 1)
        elif name not in _VOID:
            ended_by_it = _ENDS.get(name, ())
            while open_names and open_names[-1] in ended_by_it:
                open_names.pop()
            open_names.append(name)
            reopened += left_open if name not in _INLINE else 0
            if len(open_names) > MAX_DEPTH or reopened > MAX_REOPENED:
                return True
    return False


def _page_tags(text: str) -> Iterator[tuple[bool, str, str]]:
    """Whether it is an end tag, its name in small letters, and its attributes; a comment counts as a nameless end."""
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        tag = _TAG.match(text, opening.start())
        if tag is None:
            # A comment, or what a browser takes for one.
            is_comment = text.startswith("<!--", opening.start()) and not text.startswith(
                (">", "->"), opening.start() + 4
            )
            end = text.find("-->" if is_comment else ">", opening.start())
            if end == -1:
                return
            yield True, "", ""
            at = end + 1
            continue
        name = tag[2].lower()
        yield bool(tag[1]), name, tag[3]
        at = tag.end()
        if name in {"script", "style"} and not tag[1]:
            closing = _SCRIPT_END.search(text, at)
            if closing is None:
                return
            at = closing.start()


def _counts_over(attributes: str) -> bool:
    return sum(1 for _ in _ONE_ATTRIBUTE.finditer(attributes)) > MAX_ATTRIBUTES


def _close(open_names: list[str], name: str) -> list[str]:
    """What an end tag ends: what stands in it too. That of an inline element ends no block, as in libxml2."""
    for place in range(len(open_names) - 1, max(-1, len(open_names) - 1 - _LOOK_BACK), -1):
        if open_names[place] == name:
            closed = open_names[place:]
            del open_names[place:]
            return closed
        if name in _INLINE and open_names[place] not in _INLINE:
            break
    return []


_NEVER_ENDED: Final = re.compile(rb"<[^<>]*+(?=<|\Z)")


def is_sitemap_too_much(data: bytes) -> bool:
    """Whether a sitemap has more markup than one of 50,000 addresses, or markup that isn't any."""
    if data.count(b"<") > MAX_SITEMAP_TAGS or _has_many_unclosed(data.decode("latin-1")):
        return True
    # Libxml2 reads on behind each, and takes the square of their number.
    return sum(1 for _ in islice(_NEVER_ENDED.finditer(data), MAX_NEVER_ENDED + 1)) > MAX_NEVER_ENDED
