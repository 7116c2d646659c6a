"""Figures of a sentence that may stand large beside it: the number as it is written, and the words that say of what."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SCALES: Final = (
    r"million|billion|trillion|thousand|hundred|per cent|percent|percentage points?"
    r"|Millionen|Million|Milliarden|Milliarde|Tausend|Prozent|millions?|milliards?|mille|pour cent|pourcent"
    r"|millones|mil|por ciento|milioni|miliardi|per cento|miljoner|miljarder|procent|miljoen|miljard"
)
_FIGURE: Final = re.compile(
    r"(?<![\w.,/:-])"
    r"(?P<value>[€£$¥]?\s?\d+(?:[.,\u00a0\u202f]\d+)*(?:\s?(?:%|°C|°F|€|£|\$))?"
    r"(?:[ \u00a0](?:to|zu|gegen|à|a)[ \u00a0]\d+)?)"
    rf"(?:[ \u00a0-](?P<scale>{_SCALES})\b)?"
    r"(?![\w/:-])(?P<rest>(?:[ \u00a0][^\W\d_][\w’'-]*){0,3})"
)
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d")
_LOOSE: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "before",
        "but",
        "by",
        "can",
        "could",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "no",
        "not",
        "of",
        "on",
        "or",
        "our",
        "she",
        "so",
        "than",
        "that",
        "the",
        "their",
        "them",
        "they",
        "this",
        "to",
        "until",
        "was",
        "were",
        "when",
        "where",
        "which",
        "while",
        "who",
        "will",
        "with",
        "would",
        "last",
        "each",
        "every",
        "after",
        "der",
        "die",
        "das",
        "den",
        "dem",
        "des",
        "ein",
        "eine",
        "einen",
        "und",
        "oder",
        "in",
        "im",
        "an",
        "am",
        "auf",
        "aus",
        "bei",
        "mit",
        "nach",
        "von",
        "vom",
        "vor",
        "zu",
        "zum",
        "zur",
        "ist",
        "sind",
        "war",
        "waren",
        "wird",
        "werden",
        "für",
        "als",
        "dass",
        "le",
        "la",
        "les",
        "un",
        "une",
        "des",
        "du",
        "de",
        "et",
        "ou",
        "en",
        "au",
        "aux",
        "dans",
        "par",
        "pour",
        "que",
        "qui",
        "sur",
        "avec",
        "est",
        "sont",
        "a",
        "el",
        "los",
        "las",
        "del",
        "y",
        "o",
        "por",
        "con",
        "para",
        "una",
        "unos",
        "al",
        "se",
        "es",
        "son",
        "och",
        "att",
        "för",
        "med",
        "på",
        "av",
        "till",
        "som",
    ]
)


_MONTHS: Final = re.compile(
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez|fév|avr|juin|juil|aoû|déc|ene|abr|ago|dic)"
    r"[a-zäéûô]{0,7}",
    re.IGNORECASE,
)


class Figure(NamedTuple):
    """`value` begins at `start` of the sentence; `of` may be empty."""

    start: int
    value: str
    of: str


def figures_in(text: str) -> tuple[Figure, ...]:
    """In their order, dates left out: they say when, and nothing of how much."""
    found = []
    for match in _FIGURE.finditer(text):
        value = " ".join(match["value"].split())
        scale, words = match["scale"] or "", match["rest"].split()
        if not scale and (_YEAR.fullmatch(value) or (words and _MONTHS.fullmatch(words[0]))):
            continue
        # What begins with such a word says nothing of the number.
        said = [] if words and words[0].lower() in _LOOSE else words
        while said and said[-1].lower() in _LOOSE:
            said.pop()
        if not scale and not said and value.isdigit() and len(value) < 3:
            continue
        start = match.start("value") + match["value"].index(value[0])
        found.append(Figure(start, value, " ".join([*([scale] if scale else []), *said])))
    return tuple(found)
