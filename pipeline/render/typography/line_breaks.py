"""Splits a paragraph into pieces that stay on one line, after UAX #14 and good typography."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from pipeline.grounding.number_lexicon import MONTHS, SCALES, units
from pipeline.render.typography.clusters import SOFT_HYPHEN, WORD_JOINER, ZERO_WIDTH_SPACE, is_emoji
from pipeline.render.typography.word_segmentation import split_words

NO_COST: Final = 0.0
_HYPHEN_COST: Final = 0.05
_BEFORE_UNSPACED_DASH_COST: Final = 0.4
_SOFT_HYPHEN_COST: Final = 0.3
_ADDRESS_COST: Final = 0.15
_WORD_COST: Final = 0.5
_PHRASE_COST: Final = 0.4
"""The cost of a break between words of a script that sets no spaces."""
_SHORT_WORD_COST: Final = 0.06
_NUMBER_COST: Final = 0.1
_BEFORE_EMOJI_COST: Final = 1.0
_BETWEEN_EMOJI_COST: Final = 0.3
_BEFORE_DASH_COST: Final = 0.6

_GLUE: Final = frozenset("\u00a0\u202f\u2007\u2060\ufeff\u2011")
_SPACES: Final = frozenset(" \u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u205f\u3000\u1680")
_DASHES: Final = frozenset("\u2012\u2013\u2014\u2015")
_HYPHENS: Final = frozenset("-\u2010")
_NOT_AT_START: Final = frozenset(
    "!),.:;?]}%\u00bb\u2019\u201d\u2026\u203a\u3001\u3002\u3009\u300b\u300d\u300f\u3011\u3015\u30fb\u30fc\u3041"
    "\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087\u30a1\u30a3\u30a5\u30a7\u30a9\u30c3\u30e3\u30e5\u30e7"
    "\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff5d"
)
_NOT_AT_END: Final = frozenset(
    "([{\u00ab\u2018\u201a\u201c\u201e\u2039\u3008\u300a\u300c\u300e\u3010\u3014\uff08"
)
_CONTEXT_CLUSTERS: Final = 16
"""Clusters that are examined on each side of a space."""
_MAX_UNIT_LETTERS: Final = 9
_NUMBER_END: Final = re.compile(r"(?<!\d)\d{1,3}(?: \d{3})*$")
_DIGIT_GROUP: Final = re.compile(r"\d{3}(?!\d)")
_DIGIT_END: Final = re.compile(r"\d$")
_DAY: Final = re.compile(r"(?<!\d)\d{1,2}\.$")
_UNIT: Final = re.compile(r"[^\W\d_]+|[%‰°€$£¥₹]")
_SCALE_WORDS: Final = frozenset(word for scales in SCALES.values() for word in scales)
_NON_SPACE: Final = re.compile(r"\S+")
_ADDRESS: Final = re.compile(
    r"[@#\uff20\uff03]\w|[a-z][a-z0-9+.-]*://|www\.|[^\s/]+\.[a-z]{2,}/|\S+@\S+\.", re.IGNORECASE
)
_VOWELS: Final = frozenset("aeiouyäöüáàâãåæéèêëíìîïóòôõøœúùûýÿаеёиоуыэюяіїєαεηιουωάέήίόύώ")
_SINGLE_SOUNDS: Final = frozenset({"ch", "ck", "ph", "rh", "sh", "th", "wh", "qu", "gh", "sz", "cz", "rz"})
_MIN_HEAD_CLUSTERS: Final = 4
_MIN_TAIL_CLUSTERS: Final = 4
_SHORT_WORD_CLUSTERS: Final = 2


@dataclass(frozen=True)
class UnbrokenRun:
    """A piece that stays on one line: clusters `start` to `end` of the paragraph, without the spaces that follow.

    The next piece begins at `next_start`. `cost` is that of a line that ends after this piece, and `hyphen` is drawn
    then.
    """

    start: int
    end: int
    next_start: int
    cost: float = NO_COST
    hyphen: str = ""


def _is_ideographic(cluster: str) -> bool:
    """Return whether the cluster's script sets no spaces; Korean sets them, and its lines end at spaces."""
    code = ord(cluster[0])
    return (
        0x2E80 <= code <= 0x312F
        or 0x3190 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF01 <= code <= 0xFF60
        or 0x20000 <= code <= 0x3FFFF
    )


def _cost_between(before: str, after: str, earlier: str) -> float | None:
    """Return the cost of a break between two adjacent clusters, or `None` if no break is allowed there."""
    if before[0] in _GLUE or after[0] in _GLUE or after[0] in _NOT_AT_START or before[0] in _NOT_AT_END:
        return None
    if before[0] == ZERO_WIDTH_SPACE:
        return NO_COST
    if before[0] == SOFT_HYPHEN:
        return _SOFT_HYPHEN_COST
    if before[0] in _HYPHENS:
        joins_letters = earlier[:1].isalpha() and after[0].isalpha()
        return _HYPHEN_COST if joins_letters else None
    if before[0] in _DASHES:
        return None if after[0].isdigit() or after[0] in _DASHES or not earlier.strip() else _HYPHEN_COST
    if after[0] in _DASHES:
        return _BEFORE_UNSPACED_DASH_COST if before[0].isalpha() else None
    if is_emoji(before) and is_emoji(after):
        return _BETWEEN_EMOJI_COST
    is_free = is_emoji(before) or is_emoji(after) or _is_ideographic(before) or _is_ideographic(after)
    return NO_COST if is_free else None


def _word_starts(clusters: list[str]) -> frozenset[int]:
    """Return the clusters at which a word begins without a space before it."""
    text = "".join(clusters)
    if text.isascii():
        return frozenset()
    starts: set[int] = set()
    for chunk in _NON_SPACE.finditer(text):
        offset = chunk.start()
        for word in split_words(chunk.group())[:-1]:
            offset += len(word)
            starts.add(offset)
    ends = accumulate(map(len, clusters))
    return (
        frozenset(index for index, end in enumerate(ends, start=1) if end in starts)
        if starts
        else frozenset()
    )


def split_pieces(clusters: list[str]) -> list[UnbrokenRun]:
    """Return the pieces of a paragraph, given as its clusters without spaces at its ends."""
    pieces: list[UnbrokenRun] = []
    start = 0
    index = 1
    word_starts = _word_starts(clusters)
    while index < len(clusters):
        if clusters[index] in _SPACES:
            end = index
            while index < len(clusters) and clusters[index] in _SPACES:
                index += 1
            # French sets a space before these marks, and a line never begins with one.
            is_before_mark = index == end + 1 and index < len(clusters) and clusters[index][0] in "!?:;\u00bb"
            if (
                index < len(clusters)
                and not is_before_mark
                and not _must_stay_together(*_context(clusters, end, index))
            ):
                pieces.append(UnbrokenRun(start, end, index, _cost_at_space(clusters, start, end, index)))
                start = index
            index += 1
            continue
        earlier = clusters[index - 2] if index >= 2 else ""
        cost = _cost_between(clusters[index - 1], clusters[index], earlier)
        if index in word_starts:
            cost = NO_COST
        elif cost == NO_COST and _is_ideographic(clusters[index - 1]) and _is_ideographic(clusters[index]):
            cost = _PHRASE_COST
        if cost is not None:
            hyphen = "-" if clusters[index - 1] == SOFT_HYPHEN else ""
            pieces.append(UnbrokenRun(start, index, index, cost, hyphen))
            start = index
        index += 1
    if start < len(clusters):
        pieces.append(UnbrokenRun(start, len(clusters), len(clusters)))
    return pieces


def _context(clusters: list[str], end: int, after: int) -> tuple[str, str]:
    """Return the text on both sides of a space, up to `_CONTEXT_CLUSTERS` each."""
    return "".join(clusters[max(0, end - _CONTEXT_CLUSTERS) : end]), "".join(
        clusters[after : after + _CONTEXT_CLUSTERS]
    )


def number_goes_on(before: str, after: str) -> bool:
    """Return whether the space between the texts stands within a number, as in "212 000"."""
    return _NUMBER_END.search(before) is not None and _DIGIT_GROUP.match(after) is not None


def holds_unit(before: str, after: str) -> bool:
    """Return whether the space is between a number and its unit or a day and its month: "212 euros", "1. Mai"."""
    unit = _UNIT.match(after)
    if unit is None:
        return False
    word = unit.group().lower()
    if _DAY.search(before):
        return word in MONTHS
    return _DIGIT_END.search(before) is not None and (
        word in units() or word in MONTHS or word in _SCALE_WORDS
    )


def _must_stay_together(before: str, after: str) -> bool:
    """Return whether no line may end at the space; a very long unit may stand on the next line."""
    if number_goes_on(before, after):
        return True
    unit = _UNIT.match(after)
    return unit is not None and len(unit.group()) <= _MAX_UNIT_LETTERS and holds_unit(before, after)


def _cost_at_space(clusters: list[str], start: int, end: int, after: int) -> float:
    """Return the cost of a break at a space: a number stays with what it counts, an emoji or dash with its word."""
    if is_emoji(clusters[after]) and not is_emoji(clusters[end - 1]):
        return _BEFORE_EMOJI_COST
    if clusters[after][0] in _DASHES and clusters[after + 1 : after + 2] == [" "]:
        return _BEFORE_DASH_COST
    if clusters[end - 1].isdigit() and clusters[after][0].isalpha():
        return _NUMBER_COST
    return (
        _SHORT_WORD_COST if end - start <= _SHORT_WORD_CLUSTERS and clusters[start][0].isalpha() else NO_COST
    )


def break_piece(
    piece: UnbrokenRun,
    paragraph_clusters: list[str],
    *,
    anywhere: bool,
    uncut_piece: UnbrokenRun | None = None,
) -> list[UnbrokenRun]:
    """Break a piece that is too long for a line at good places, or with `anywhere` between any two clusters.

    Addresses, accounts and tags are broken after their marks, without a hyphen, which would read as a part of them.
    Words are broken before a consonant that begins a syllable. Scripts without hyphens get none. `uncut_piece` is the
    whole word, if the piece is already a part of one.
    """
    clusters = paragraph_clusters[piece.start : piece.end]
    uncut = uncut_piece or piece
    is_address = _ADDRESS.match("".join(paragraph_clusters[uncut.start : uncut.end])) is not None
    cuts: list[tuple[int, str]] = []
    for index in range(1, len(clusters)):
        before, after = clusters[index - 1], clusters[index]
        # Only letters with a small and a capital form are hyphenated; Arabic would lose its joined forms.
        is_word = before[0].isalpha() and after[0].isalpha()
        hyphen = "-" if is_word and not is_address and before.lower() != before.upper() else ""
        if anywhere or (is_address and index > 1 and before in "/.?&=_-#:@" and after.isalnum()):
            cuts.append((index, hyphen))
        elif is_word and not is_address and _is_syllable_edge(clusters, index):
            cuts.append((index, "-"))
    cost = _ADDRESS_COST if is_address else _WORD_COST
    parts: list[UnbrokenRun] = []
    start = 0
    for index, hyphen in cuts:
        end = piece.start + index
        parts.append(UnbrokenRun(piece.start + start, end, end, cost, hyphen))
        start = index
    parts.append(UnbrokenRun(piece.start + start, piece.end, piece.next_start, piece.cost, piece.hyphen))
    return parts


def _is_syllable_edge(clusters: list[str], index: int) -> bool:
    """Return whether a syllable begins at the cluster, far enough from the word's ends."""
    if index < _MIN_HEAD_CLUSTERS or len(clusters) - index < _MIN_TAIL_CLUSTERS or index + 1 >= len(clusters):
        return False
    before, current, after = (_base_letter(clusters[position]) for position in (index - 1, index, index + 1))
    return current not in _VOWELS and after in _VOWELS and before + current not in _SINGLE_SOUNDS


def _base_letter(cluster: str) -> str:
    return unicodedata.normalize("NFC", cluster)[0].lower()


def is_invisible(cluster: str) -> bool:
    """Return whether the cluster only allows or forbids a line's end, and is never drawn."""
    return cluster[0] in {ZERO_WIDTH_SPACE, SOFT_HYPHEN, WORD_JOINER, "\ufeff"}
