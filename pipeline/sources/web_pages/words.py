"""Whether a page says anything of its own beside its title and its links."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pipeline.sources.web_pages.text import PageText

ONLY_LINKS: Final = "only_links"
ONLY_TITLE: Final = "only_title"
_SENTENCE_WORDS: Final = 5
_UNSPACED_LETTERS: Final = 15
"""Letters without a space between them, nor a sign of addresses, of a script that puts none between words."""
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS: Final = re.compile(r"^(?:[-*+>#|]+|\d+[.)])\s+")
_ENDS: Final = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u061f\u0964][\"')\]\u201d\u2019\u00bb]*$")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_AROUND: Final = " \t.,;:!?()[]\"'*_\u2026\u201c\u201d\u2018\u2019\u00ab\u00bb\u2013\u2014"
"""Signs around a word."""
_OF_ADDRESSES: Final = frozenset("./_@=&")


def why_nothing_said(page: PageText) -> str:
    """`only_links` for a list of links, such as a server's index of a folder; `only_title` where nothing but the title
    stands there; empty for a page with a sentence, or with lines that aren't links.
    """
    lines = [line for line in map(_line, page.body.splitlines()) if line]
    own = [line for line in lines if _same(line) != _same(page.title)]
    if not own:
        return ONLY_TITLE if lines else ""
    links = {_same(link.text) for link in page.links}
    others = [rest for line in own if _same(_LINK.sub(r"\1", line)) not in links and (rest := _words(line))]
    if any(_is_sentence(rest) for rest in others):
        return ""
    count = len(own) - len(others)
    return ONLY_LINKS if count and count >= len(others) else ""


def _line(text: str) -> str:
    return _MARKS.sub("", text.strip())


def _words(line: str) -> str:
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
