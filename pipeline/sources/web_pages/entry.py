"""Turns a page into an entry, and finds reasons to leave it out: its rules, its terms, or the lack of a text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pipeline.limits import EXTERNAL_ID_CHARACTERS, TITLE_CHARACTERS
from pipeline.sources.base import Entry, EntryMedia, Note
from pipeline.sources.web_pages.listing import bare_host
from pipeline.text.html_text import strip_invisible
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.sources.web_pages.page_reader import PageText
    from pipeline.sources.web_pages.polite_fetch import Visit

_KNOWN_RULES: Final = frozenset(
    {"all", "index", "follow", "none", "noindex", "nofollow", "noarchive", "nosnippet", "noai", "noimageai"}
)
ONLY_LINKS: Final = "only_links"
ONLY_TITLE: Final = "only_title"
_MIN_SENTENCE_WORDS: Final = 5
_LINK_WORDS_FACTOR: Final = 4
"""A page is a list of links if its links have more than this many times the words of the other text."""
_SERVER_INDEX: Final = re.compile(r"(?:Index of|Directory listing for) ?/", re.IGNORECASE)
_MIN_UNSPACED_LETTERS: Final = 15
"""So many letters without a space, and without characters of addresses, count as a script without spaces."""
_MARKDOWN_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_LINE_MARKS: Final = re.compile(r"^(?:[-*+>#|]+|\d+[.)])\s+")
_SENTENCE_END: Final = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u061f\u0964][\"')\]\u201d\u2019\u00bb]*$")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_CHARACTERS_AROUND_WORDS: Final = " \t.,;:!?()[]\"'*_\u2026\u201c\u201d\u2018\u2019\u00ab\u00bb\u2013\u2014"
"""Punctuation that may stand around a word."""
_ADDRESS_CHARACTERS: Final = frozenset("./_@=&")


_MESSAGES: Final = {
    "noindex": "The page tells automatic readers not to index it.",
    "noarchive": "The page tells automatic readers to keep no copy of it.",
    "noai": "The page tells automatic readers not to use it with AI.",
    "tdm_reserved": "The page reserves the right of text and data mining (tdm-reservation).",
    "paywall": "The page says of itself that its text is not free to read (isAccessibleForFree).",
    "login_required": "The page asks for a login. Only open pages can be read.",
    "needs_javascript": (
        "The page has nearly no text before its JavaScript runs. Set `render` to true to have it run, or give the "
        "address of the site's feed."
    ),
    "no_text": "The page has no text that could be told from its menus and frames.",
    ONLY_LINKS: (
        "This page holds only links, and no text of its own. Give the address of an article, or of the site's feed."
    ),
    ONLY_TITLE: "This page holds nothing beyond its title. Give the address of a page with text.",
}


def rules_of(page: PageText, visit: Visit, *, robot: str) -> tuple[str, ...]:
    """Return the known rules for this robot in the page's head and `X-Robots-Tag`, sorted."""
    words = [word for text in page.robots for word in _rule_words(text)]
    # A header may name the robot that it speaks to: `X-Robots-Tag: otherbot: noindex`.
    speaks_to_us = True
    for part in visit.robots_header.split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip().lower() not in _KNOWN_RULES | {"unavailable_after", "max-snippet"}:
            speaks_to_us = name.strip().lower() == robot
        text = rest if colon else part
        words += _rule_words(text) if speaks_to_us else []
    return tuple(sorted(set(words) & _KNOWN_RULES))


def sentence_of(code: str) -> str:
    """Return the reason for people why a page is left out, or an empty string for another code."""
    return _MESSAGES.get(code, "")


def why_left_out(page: PageText, visit: Visit, rules: tuple[str, ...]) -> Note | None:
    """Return why no item may be made of the page, by its rules or for want of text, or `None` if one may."""
    code = ""
    if {"noindex", "none"} & set(rules):
        code = "noindex"
    elif "noarchive" in rules:
        code = "noarchive"
    elif "noai" in rules:
        code = "noai"
    elif page.is_tdm_reserved or visit.tdm_header.strip() == "1":
        code = "tdm_reserved"
    elif not page.is_free:
        code = "paywall"
    elif page.looks_like_app and not visit.is_rendered:
        code = "needs_javascript"
    elif not page.body.strip():
        code = "login_required" if page.has_password else "no_text"
    else:
        code = why_empty(page)
    return Note(code, _MESSAGES[code]) if code else None


def entry_of(
    page: PageText, visit: Visit, *, identity: str, rules: tuple[str, ...], left_out: Note | None
) -> Entry:
    """Return the page as an entry, without its body if it is left out."""
    return Entry(
        external_id=identity[:EXTERNAL_ID_CHARACTERS],
        url=own_address(page, visit),
        title=" ".join(plain_text(page.title, "text").split())[:TITLE_CHARACTERS],
        body="" if left_out else strip_invisible(page.body),
        body_format="markdown",
        author=page.author,
        language=page.language,
        published_at=page.published_at,
        media=(EntryMedia(page.image),) if page.image else (),
        metadata=_metadata(page, visit, rules),
        left_out=left_out,
    )


def own_address(page: PageText, visit: Visit) -> str:
    """Return the page's canonical address, or the visited one if the canonical one can't be trusted.

    That is so for an address of another host, and for a front page that isn't the visited page.
    """
    canonical = page.canonical
    if not canonical or bare_host(canonical) != bare_host(visit.url):
        return visit.url
    # Broken themes name the front page as canonical address of every page.
    is_front = not urlsplit(canonical).path.strip("/") and not urlsplit(canonical).query
    is_itself_front = not urlsplit(visit.url).path.strip("/")
    return visit.url if is_front and not is_itself_front else canonical.partition("#")[0]


def _metadata(page: PageText, visit: Visit, rules: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the metadata of the entry: rules, licence, and what the page says of itself and its site."""
    metadata: dict[str, Any] = {"robots": list(rules), "licence": page.licence}
    if page.is_tdm_reserved or visit.tdm_header.strip() == "1":
        metadata["tdm_reservation"] = True
    if page.site:
        metadata["site"] = page.site
    if page.description:
        metadata["description"] = page.description
    if page.canonical and bare_host(page.canonical) != bare_host(visit.url):
        metadata["canonical"] = page.canonical
    return metadata


def _rule_words(text: str) -> list[str]:
    """Return the words of a rule for robots."""
    return re.findall(r"[a-z]+", text.lower())


def why_empty(page: PageText) -> str:
    """Return why a page has no text of its own, or an empty string if it has, or has no body at all.

    Text of its own is a sentence, or more other lines than lines that are links. `only_links` is a list of
    links, such as a server's index of a folder; `only_title` a page with nothing but its title.
    """
    lines = [line for line in map(_clean_line, page.body.splitlines()) if line]
    lines_below_title = [line for line in lines if _comparable(line) != _comparable(page.title)]
    if not lines_below_title:
        return ONLY_TITLE if lines else ""
    texts = _texts_outside_links(lines_below_title, page)
    if any(_is_sentence(text) for text in texts):
        return ""
    link_line_count = len(lines_below_title) - len(texts)
    return ONLY_LINKS if link_line_count and link_line_count >= len(texts) else ""


def is_list_of_links(page: PageText) -> bool:
    """Return whether a page has no text of its own, or little next to its links.

    A heading or "Newest first." is little. A server's index of a folder isn't such a list.
    """
    if _SERVER_INDEX.match(page.title):
        return False
    if not page.body.strip() or why_empty(page):
        return True
    lines = [line for line in map(_clean_line, page.body.splitlines()) if line]
    other_words = sum(len(_words_in(line)) for line in _texts_outside_links(lines, page))
    link_words = sum(len(_words_in(link.text)) for link in page.links if link.place != "nav")
    return other_words * _LINK_WORDS_FACTOR < link_words


def _texts_outside_links(lines: Sequence[str], page: PageText) -> list[str]:
    """Return the text outside of links of each line that has some and isn't a link as a whole."""
    links = {_comparable(link.text) for link in page.links}
    return [
        text
        for line in lines
        if _comparable(_MARKDOWN_LINK.sub(r"\1", line)) not in links and (text := _text_outside_links(line))
    ]


def _clean_line(text: str) -> str:
    """Return a line without its list mark or number."""
    return _LINE_MARKS.sub("", text.strip())


def _text_outside_links(line: str) -> str:
    """Return the text outside of a line's links, or an empty string if it is only dates, sizes and marks."""
    text = _MARKDOWN_LINK.sub(" ", line).strip()
    return text if len(_words_in(text)) > 1 or _is_sentence(text) else ""


def _is_sentence(text: str) -> bool:
    """Return whether a text is a sentence: by its words, its end mark, or its unspaced letters."""
    words = _words_in(text)
    if len(words) >= _MIN_SENTENCE_WORDS or (len(words) > 1 and _SENTENCE_END.search(text)):
        return True
    return any(
        sum(character.isalpha() for character in word) >= _MIN_UNSPACED_LETTERS
        and not _ADDRESS_CHARACTERS & set(word)
        for word in text.split()
    )


def _words_in(text: str) -> list[str]:
    """Return the words of a text, without file names, numbers and addresses."""
    return [word for word in text.split() if _WORD.fullmatch(word.strip(_CHARACTERS_AROUND_WORDS))]


def _comparable(text: str) -> str:
    """Return a text in lower case and with single spaces, for comparison."""
    return " ".join(text.casefold().split())
