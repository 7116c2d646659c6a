"""Whether what a draft quotes stands in its source word for word."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import count_words, drawn_length, without_gershayim

MIN_QUOTATION_WIDTH: Final = 12
"""Of usual width; a sign of Chinese, Japanese or Korean has twice as much. Shorter quoted stretches are names and single
words, which no source need hold, unless they are set as something that was said."""
_NEAREST_LONGEST: Final = 200
_LEAST_SHARED: Final = 0.3

PAIRED_QUOTES: Final = re.compile(
    r"\u201c([^\u201c\u201d]*)\u201d|\u201e([^\u201e\u201c\u201d]*)[\u201c\u201d]|\u201e([^\u201e\"\n]*)\""
    r"|\u00ab([^\u00ab\u00bb]*)\u00bb|\u00bb([^\u00ab\u00bb]*)\u00ab|\u2039([^\u2039\u203a]*)\u203a|\u203a([^\u2039\u203a]*)\u2039"
    r"|\u300c([^\u300c\u300d]*)\u300d|\u300e([^\u300e\u300f]*)\u300f|\"([^\"\n]*)\"|\u05f4([^\u05f4\n]*)\u05f4"
    # Swedish and Finnish open and close with the same mark.
    r"|(?<![^\s(\[\u2014\u2013])\u201d([^\s\u201c\u201d][^\u201c\u201d\n]*)\u201d|(?<![^\s(\[\u2014\u2013])\u00bb([^\s\u00ab\u00bb][^\u00ab\u00bb\n]*)\u00bb"
    # Single marks are apostrophes too: they open after a space and close before one.
    r"|(?<![^\s(\[\u2014\u2013])\u2018([^\u2018\n]*?\S)\u2019(?![^\W_])|(?<![^\s(\[\u2014\u2013])\u201a([^\u201a\n]*?\S)[\u2018\u2019](?![^\W_])"
    r"|(?<![^\s(\[\u2014\u2013])'(?=[^'\s])([^\n]*?[^\s'])'(?![^\W_])"
)
# A mark that is never closed quotes the rest of its line.
_UNCLOSED: Final = re.compile(
    r"[\u201c\u201e\u00ab\u300c]([^\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\n]*)(?=\n|$)"
)
_BLOCK: Final = re.compile(r"^>[ \t]?(.*)$", re.MULTILINE)
_MARKS: Final = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f\u05f4"
_FOLDED: Final = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a`\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u05f4", '"')
    | dict.fromkeys("\u2010\u2011", "-")
)
_SPACE: Final = re.compile(r"\s+")
_WORD: Final = re.compile(r"\w+")
_BARE_WORD: Final = re.compile(r"\w+(?:[.,']\w+)*")
_ENDS: Final = re.compile(r"[.!?,;:](?=\s|$)")
# What stands before the opening mark of something that was said, at its end inside the marks, or behind the closing one.
_SAID_BEFORE: Final = re.compile(r":\s*$")
_SAID_INSIDE: Final = re.compile(r"\w[.!?,\u2026]$")
_SAID_BEHIND: Final = re.compile(
    r"\s*,?\s*[\u2014\u2013-]\s|\s*,\s+[a-z\u00e0-\u00ff\u0430-\u045f\u05d0-\u05ea]|と(?:話|語|述|言|説|コメ|強調|振|訴|明)"
)
_LEAST_TRANSCRIPT: Final = 40
_WORDS_A_MARK: Final = 60
_LEAST_SAID_WORDS: Final = 2
_BESIDE: Final = 4
"""Characters looked at on each side of a quotation."""


@dataclass(frozen=True)
class Misquotation:
    """A quotation of the draft that the source doesn't hold, and what it says instead; empty where nothing is near."""

    text: str
    nearest: str


def fold(text: str) -> str:
    """For comparing quotations: compatibility forms, quotation marks and white space made alike."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text).translate(_FOLDED)).strip()


@lru_cache(maxsize=32)
def _folded_source(text: str) -> str:
    return fold(text)


@lru_cache(maxsize=32)
def _is_unpunctuated(text: str) -> bool:
    """Whether it is a transcript that has hardly any marks: whoever quotes it has to set them."""
    words = len(_WORD.findall(text))
    return words >= _LEAST_TRANSCRIPT and len(_ENDS.findall(text)) * _WORDS_A_MARK < words


def _bare(text: str) -> str:
    """The words alone, small, as they follow each other."""
    return f" {' '.join(_BARE_WORD.findall(fold(text).casefold()))} "


def quotations(text: str) -> tuple[str, ...]:
    """What is quoted: between marks, after an open one, as a block; what is too short by `MIN_QUOTATION_WIDTH` is left out.

    None reaches from one part of a draft into the next (a title, a section): those are handed over with a line "|" between.
    """
    return tuple(words for part in text.split("\n|\n") for words in _quotations_of(part))


def _quotations_of(text: str) -> tuple[str, ...]:
    if not any(mark in text for mark in _MARKS) and ">" not in text:
        return ()
    spans = [
        (match.start(group), text[match.start(group) : match.end(group)])
        for match in PAIRED_QUOTES.finditer(without_gershayim(text))
        for group in (match.lastindex,)
        if group is not None
    ]
    if any(mark in text for mark in "\u201c\u201e\u00ab\u300c"):
        closed = [(start, start + len(words)) for start, words in spans]
        spans += [
            (match.start(1), match.group(1))
            for match in _UNCLOSED.finditer(text)
            if not any(start <= match.start() <= end for start, end in closed)
        ]
    spans += [(match.start(1), match.group(1).strip(f"{_MARKS} ")) for match in _BLOCK.finditer(text)]
    return tuple(words for start, words in sorted(spans) if _is_one(text, start, words))


def _is_one(text: str, start: int, words: str) -> bool:
    """Whether it is long enough, or has two words and is set as something that was said."""
    if drawn_length(words) >= MIN_QUOTATION_WIDTH:
        return True
    if count_words(words) < _LEAST_SAID_WORDS:
        return False
    end = start + len(words) + 1
    return bool(
        _SAID_INSIDE.search(words)
        or _SAID_BEFORE.search(text[max(start - _BESIDE, 0) : start - 1])
        or _SAID_BEHIND.match(text[end : end + _BESIDE])
    )


def find_misquotations(draft: str, source: str) -> tuple[Misquotation, ...]:
    """The quotations of the draft that don't stand in the source word for word, with the nearest passage.

    A closing comma or full stop inside the marks belongs to the draft's sentence and isn't compared, and a first
    letter may have become a capital or a small one. Nothing else may differ: what is left out, with dots or without,
    makes another quotation. A source without marks, as transcripts are, is compared by its words alone.
    """
    quoted = quotations(draft)
    if not quoted:
        return ()
    folded = _folded_source(source)
    bare = _bare(source) if _is_unpunctuated(source) else None
    return tuple(
        Misquotation(words, nearest_passage(words, source))
        for words in quoted
        if not _stands_in(words, folded) and not (bare is not None and _bare(words) in bare)
    )


def nearest_passage(words: str, source: str) -> str:
    """The source's sentence that shares most words with these; empty where none shares enough to be meant."""
    wanted = set(_WORD.findall(words.lower()))
    best, most = "", 0.0
    for start, end in split_sentences(source):
        sentence = source[start:end]
        theirs = set(_WORD.findall(sentence.lower()))
        share = len(wanted & theirs) / len(wanted) if wanted else 0.0
        if share > most:
            best, most = sentence, share
    if most < _LEAST_SHARED:
        return ""
    collapsed = _SPACE.sub(" ", best).strip()
    return collapsed if len(collapsed) <= _NEAREST_LONGEST else f"{collapsed[: _NEAREST_LONGEST - 1]}\u2026"


def _stands_in(words: str, folded: str) -> bool:
    wanted = fold(words).rstrip(" .,\u2026").lstrip(" ")
    if not wanted:
        return True
    first = wanted[0]
    for form in dict.fromkeys((wanted, first.upper() + wanted[1:], first.lower() + wanted[1:])):
        place = folded.find(form)
        while place != -1:
            if _is_whole(folded, place, place + len(form)):
                return True
            place = folded.find(form, place + 1)
    return False


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether neither a word nor a number is cut at either end."""
    return not (_is_cut(text, start) or _is_cut(text, end))


def _is_cut(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before.isalnum() and after.isalnum():
        # Scripts that write without spaces have no such ends.
        return before < "\u2e80" and after < "\u2e80"
    if before.isdigit() and after in ".,'" and text[place + 1 : place + 2].isdigit():
        return True
    return after.isdigit() and before in ".,'" and place > 1 and text[place - 2].isdigit()
