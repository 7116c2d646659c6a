"""A page as an entry: its identity, what its rules and licences allow, and whether it says anything of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pipeline.limits import EXTERNAL_ID_CHARACTERS, TITLE_CHARACTERS
from pipeline.sources.base import Entry, EntryMedia, Note
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
_SENTENCE_WORDS: Final = 5
_LINKS_SAY: Final = 4
"""Times as many words as all else on a page that is a list of links."""
_SERVER_INDEX: Final = re.compile(r"(?:Index of|Directory listing for) ?/", re.IGNORECASE)
_UNSPACED_LETTERS: Final = 15
"""Letters without a space between them, nor a sign of addresses, of a script that puts none between words."""
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS: Final = re.compile(r"^(?:[-*+>#|]+|\d+[.)])\s+")
_ENDS: Final = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u061f\u0964][\"')\]\u201d\u2019\u00bb]*$")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_AROUND: Final = " \t.,;:!?()[]\"'*_\u2026\u201c\u201d\u2018\u2019\u00ab\u00bb\u2013\u2014"
"""Signs around a word."""
_OF_ADDRESSES: Final = frozenset("./_@=&")


_SENTENCES: Final = {
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
    """What the page's head and its `X-Robots-Tag` tell this robot, in known words."""
    found = [word for text in page.robots for word in _words(text)]
    # A header may name the robot that it speaks to: `X-Robots-Tag: otherbot: noindex`.
    speaks_to_us = True
    for part in visit.robots_header.split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip().lower() not in _KNOWN_RULES | {"unavailable_after", "max-snippet"}:
            speaks_to_us = name.strip().lower() == robot
        text = rest if colon else part
        found += _words(text) if speaks_to_us else []
    return tuple(sorted(set(found) & _KNOWN_RULES))


def sentence_of(code: str) -> str:
    """Why a page is left out, for people; empty for one that is taken in, and for one that is gone."""
    return _SENTENCES.get(code, "")


def why_left_out(page: PageText, visit: Visit, rules: tuple[str, ...]) -> Note | None:
    """Why the page's own rules, or its nature, keep it from being worked on."""
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
    return Note(code, _SENTENCES[code]) if code else None


def entry_of(
    page: PageText, visit: Visit, *, identity: str, rules: tuple[str, ...], left_out: Note | None
) -> Entry:
    """The page as an entry; one that is left out brings no text."""
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
    """The page's canonical address, if it is one of the same host: another site's may not stand for this one."""
    canonical = page.canonical
    if not canonical or _bare_host(canonical) != _bare_host(visit.url):
        return visit.url
    # Broken themes name the front page on every page.
    is_front = not urlsplit(canonical).path.strip("/") and not urlsplit(canonical).query
    is_itself_front = not urlsplit(visit.url).path.strip("/")
    return visit.url if is_front and not is_itself_front else canonical.partition("#")[0]


def _metadata(page: PageText, visit: Visit, rules: tuple[str, ...]) -> Mapping[str, Any]:
    found: dict[str, Any] = {"robots": list(rules), "licence": page.licence}
    if page.is_tdm_reserved or visit.tdm_header.strip() == "1":
        found["tdm_reservation"] = True
    if page.site:
        found["site"] = page.site
    if page.description:
        found["description"] = page.description
    if page.canonical and _bare_host(page.canonical) != _bare_host(visit.url):
        found["canonical"] = page.canonical
    return found


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def _bare_host(url: str) -> str:
    return urlsplit(url).netloc.lower().removeprefix("www.")


def why_empty(page: PageText) -> str:
    """`only_links` for a list of links, such as a server's index of a folder; `only_title` where nothing but the title
    stands there; empty for a page with a sentence, or with lines that aren't links.
    """
    lines = [line for line in map(_line, page.body.splitlines()) if line]
    own = [line for line in lines if _same(line) != _same(page.title)]
    if not own:
        return ONLY_TITLE if lines else ""
    others = _beside_links(own, page)
    if any(_is_sentence(rest) for rest in others):
        return ""
    count = len(own) - len(others)
    return ONLY_LINKS if count and count >= len(others) else ""


def is_list_of_links(page: PageText) -> bool:
    """Whether it says nothing itself, or little beside its links: a heading, "Newest first."; no server's index."""
    if _SERVER_INDEX.match(page.title):
        return False
    if not page.body.strip() or why_empty(page):
        return True
    lines = [line for line in map(_line, page.body.splitlines()) if line]
    beside = sum(len(_said(line)) for line in _beside_links(lines, page))
    return beside * _LINKS_SAY < sum(len(_said(link.text)) for link in page.links if link.place != "nav")


def _beside_links(lines: Sequence[str], page: PageText) -> list[str]:
    links = {_same(link.text) for link in page.links}
    return [
        rest
        for line in lines
        if _same(_LINK.sub(r"\1", line)) not in links and (rest := _unlinked_words(line))
    ]


def _line(text: str) -> str:
    return _MARKS.sub("", text.strip())


def _unlinked_words(line: str) -> str:
    """What stands beside the links of a line; empty where that is dates, sizes and marks."""
    rest = _LINK.sub(" ", line).strip()
    return rest if len(_said(rest)) > 1 or _is_sentence(rest) else ""


def _is_sentence(rest: str) -> bool:
    words = _said(rest)
    if len(words) >= _SENTENCE_WORDS or (len(words) > 1 and _ENDS.search(rest)):
        return True
    return any(
        sum(sign.isalpha() for sign in word) >= _UNSPACED_LETTERS and not _OF_ADDRESSES & set(word)
        for word in rest.split()
    )


def _said(rest: str) -> list[str]:
    """Its words; names of files, numbers and addresses are none."""
    return [word for word in rest.split() if _WORD.fullmatch(word.strip(_AROUND))]


def _same(text: str) -> str:
    return " ".join(text.casefold().split())
