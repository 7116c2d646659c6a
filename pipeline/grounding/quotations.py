"""Checks whether the quotations of a draft stand in its source word for word."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import count_words, display_width, without_gershayim

MIN_QUOTATION_WIDTH: Final = 12
"""The least width of a checked quotation, in Latin letters; a Chinese, Japanese or Korean character has two.

A shorter one is a name or a single word, which the source need not contain, unless it is set as speech.
"""
_MAX_NEAREST_CHARACTERS: Final = 200
_MIN_SHARED_FRACTION: Final = 0.3
"""The least share of a quotation's words in the nearest passage."""

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
_SENTENCE_MARKS: Final = re.compile(r"[.!?,;:](?=\s|$)")
# Signs of speech: before the opening mark, at the end inside the marks, or after the closing one.
_SAID_BEFORE: Final = re.compile(r":\s*$")
_SAID_INSIDE: Final = re.compile(r"\w[.!?,\u2026]$")
_SAID_BEHIND: Final = re.compile(
    r"\s*,?\s*[\u2014\u2013-]\s|\s*,\s+[a-z\u00e0-\u00ff\u0430-\u045f\u05d0-\u05ea]|と(?:話|語|述|言|説|コメ|強調|振|訴|明)"
)
_MIN_TRANSCRIPT_WORDS: Final = 40
_MIN_WORDS_PER_MARK: Final = 60
"""The least words per punctuation mark of a transcript without marks."""
_MIN_SPOKEN_WORDS: Final = 2
_LOOK_AROUND: Final = 4
"""The characters that are searched on each side of a quotation."""


@dataclass(frozen=True)
class Misquotation:
    """A quotation of the draft that isn't in the source."""

    text: str
    nearest: str
    """The most similar sentence of the source, or "" if none is."""


def normalize_quotation(text: str) -> str:
    """Return the text with compatibility forms, quotation marks and white space made equal, for comparisons."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text).translate(_FOLDED)).strip()


@lru_cache(maxsize=32)
def _normalize_source(text: str) -> str:
    return normalize_quotation(text)


@lru_cache(maxsize=32)
def _is_unpunctuated(text: str) -> bool:
    """Return whether the text is a transcript with hardly any marks, so that a quotation has to add them."""
    words = len(_WORD.findall(text))
    return words >= _MIN_TRANSCRIPT_WORDS and len(_SENTENCE_MARKS.findall(text)) * _MIN_WORDS_PER_MARK < words


def _words_only(text: str) -> str:
    """Return the words in lower case, separated and enclosed by single spaces."""
    return f" {' '.join(_BARE_WORD.findall(normalize_quotation(text).casefold()))} "


def find_quoted_texts(text: str) -> tuple[str, ...]:
    """Return the quotations of a draft: between marks, after an unclosed mark, and in block quotations.

    Those shorter than `MIN_QUOTATION_WIDTH` are left out unless they are set as speech. A line "|" separates the
    parts of a draft, such as its title and sections, and no quotation continues into the next part.
    """
    return tuple(quoted for part in text.split("\n|\n") for quoted in _find_in_part(part))


def _find_in_part(text: str) -> tuple[str, ...]:
    """Return the quotations of one part of a draft."""
    if not any(mark in text for mark in _MARKS) and ">" not in text:
        return ()
    spans = [
        (match.start(group), text[match.start(group) : match.end(group)])
        for match in PAIRED_QUOTES.finditer(without_gershayim(text))
        for group in (match.lastindex,)
        if group is not None
    ]
    if any(mark in text for mark in "\u201c\u201e\u00ab\u300c"):
        closed = [(start, start + len(quoted)) for start, quoted in spans]
        spans += [
            (match.start(1), match.group(1))
            for match in _UNCLOSED.finditer(text)
            if not any(start <= match.start() <= end for start, end in closed)
        ]
    spans += [(match.start(1), match.group(1).strip(f"{_MARKS} ")) for match in _BLOCK.finditer(text)]
    return tuple(quoted for start, quoted in sorted(spans) if _is_quotation(text, start, quoted))


def _is_quotation(text: str, start: int, quoted: str) -> bool:
    """Return whether the quoted text is long enough, or has two words and is set as speech."""
    if display_width(quoted) >= MIN_QUOTATION_WIDTH:
        return True
    if count_words(quoted) < _MIN_SPOKEN_WORDS:
        return False
    end = start + len(quoted) + 1
    return bool(
        _SAID_INSIDE.search(quoted)
        or _SAID_BEFORE.search(text[max(start - _LOOK_AROUND, 0) : start - 1])
        or _SAID_BEHIND.match(text[end : end + _LOOK_AROUND])
    )


def find_misquotations(draft: str, source: str) -> tuple[Misquotation, ...]:
    """Return the quotations of the draft that aren't in the source word for word, with the nearest passage.

    A closing comma or full stop inside the marks belongs to the draft's sentence and isn't compared, and a first
    letter may change its case. Nothing else may differ, so an omission, with dots or without, makes another
    quotation. A source without marks, such as a transcript, is compared by its words alone.
    """
    quoted_passages = find_quoted_texts(draft)
    if not quoted_passages:
        return ()
    normalized_source = _normalize_source(source)
    source_words = _words_only(source) if _is_unpunctuated(source) else None
    return tuple(
        Misquotation(quoted, _find_nearest(quoted, source))
        for quoted in quoted_passages
        if not _stands_in(quoted, normalized_source)
        and not (source_words is not None and _words_only(quoted) in source_words)
    )


def _find_nearest(quoted: str, source: str) -> str:
    """Return the source's sentence that shares most words with the quotation, or "" if none shares enough."""
    own_words = set(_WORD.findall(quoted.lower()))
    best, best_share = "", 0.0
    for start, end in split_sentences(source):
        sentence = source[start:end]
        sentence_words = set(_WORD.findall(sentence.lower()))
        share = len(own_words & sentence_words) / len(own_words) if own_words else 0.0
        if share > best_share:
            best, best_share = sentence, share
    if best_share < _MIN_SHARED_FRACTION:
        return ""
    collapsed = _SPACE.sub(" ", best).strip()
    if len(collapsed) <= _MAX_NEAREST_CHARACTERS:
        return collapsed
    return f"{collapsed[: _MAX_NEAREST_CHARACTERS - 1]}\u2026"


def _stands_in(quoted: str, source: str) -> bool:
    """Return whether the normalized source has the quotation as whole words."""
    wanted = normalize_quotation(quoted).rstrip(" .,\u2026").lstrip(" ")
    if not wanted:
        return True
    first = wanted[0]
    for form in dict.fromkeys((wanted, first.upper() + wanted[1:], first.lower() + wanted[1:])):
        start = source.find(form)
        while start != -1:
            if _is_whole(source, start, start + len(form)):
                return True
            start = source.find(form, start + 1)
    return False


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether the span cuts neither a word nor a number at its ends."""
    return not (_is_cut(text, start) or _is_cut(text, end))


def _is_cut(text: str, position: int) -> bool:
    """Return whether a word or a number continues across the position."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if before.isalnum() and after.isalnum():
        # Scripts without spaces have no visible word ends.
        return before < "\u2e80" and after < "\u2e80"
    if before.isdigit() and after in ".,'" and text[position + 1 : position + 2].isdigit():
        return True
    return after.isdigit() and before in ".,'" and position > 1 and text[position - 2].isdigit()
