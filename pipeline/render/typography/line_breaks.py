"""Where a line may end: the pieces of a paragraph that stay together, after UAX #14 and good manners."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from pipeline.grounding.number_lexicon import MONTHS, SCALES, units
from pipeline.render.typography.clusters import SOFT_HYPHEN, WORD_JOINER, ZERO_SPACE, is_emoji
from pipeline.render.typography.word_segmentation import phrases

FREE: Final = 0.0
_AT_HYPHEN: Final = 0.05
_AT_DASH_BEFORE: Final = 0.4
_AT_SOFT_HYPHEN: Final = 0.3
_IN_ADDRESS: Final = 0.15
_IN_WORD: Final = 0.5
_IN_PHRASE: Final = 0.4
"""In a word of a script that sets no spaces."""
_AFTER_SHORT_WORD: Final = 0.06
_AFTER_NUMBER: Final = 0.1
_BEFORE_EMOJI: Final = 1.0
_BETWEEN_EMOJI: Final = 0.3
_BEFORE_DASH: Final = 0.6

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
_BESIDE: Final = 16
"""Clusters looked at on each side of a space."""
_LONGEST_HELD: Final = 9
_LAST_OF_NUMBER: Final = re.compile(r"(?<!\d)\d{1,3}(?: \d{3})*$")
_GROUP: Final = re.compile(r"\d{3}(?!\d)")
_NUMBER: Final = re.compile(r"\d$")
_DAY: Final = re.compile(r"(?<!\d)\d{1,2}\.$")
_UNIT: Final = re.compile(r"[^\W\d_]+|[%‰°€$£¥₹]")
_SCALE_WORDS: Final = frozenset(word for scales in SCALES.values() for word in scales)
_RUN: Final = re.compile(r"\S+")
_ADDRESS: Final = re.compile(
    r"[@#\uff20\uff03]\w|[a-z][a-z0-9+.-]*://|www\.|[^\s/]+\.[a-z]{2,}/|\S+@\S+\.", re.IGNORECASE
)
_VOWELS: Final = frozenset("aeiouyäöüáàâãåæéèêëíìîïóòôõøœúùûýÿаеёиоуыэюяіїєαεηιουωάέήίόύώ")
_ONE_SOUND: Final = frozenset({"ch", "ck", "ph", "rh", "sh", "th", "wh", "qu", "gh", "sz", "cz", "rz"})
_LEAST_HEAD: Final = 4
_LEAST_TAIL: Final = 4
_SHORT: Final = 2


@dataclass(frozen=True)
class UnbrokenRun:
    """What stays on one line: clusters `start` to `end` of the paragraph, without the spaces that follow.

    `next_start` is where the next piece begins; `cost` is the price of ending a line here, `hyphen` what is then
    drawn after it.
    """

    start: int
    end: int
    next_start: int
    cost: float = FREE
    hyphen: str = ""


def _is_ideographic(cluster: str) -> bool:
    """Of a script that sets no spaces; Korean does, and its lines end at them."""
    code = ord(cluster[0])
    return (
        0x2E80 <= code <= 0x312F
        or 0x3190 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF01 <= code <= 0xFF60
        or 0x20000 <= code <= 0x3FFFF
    )


def _cost_between(before: str, after: str, earlier: str) -> float | None:
    """The price of a break between two clusters that no space parts; None where there is none to have."""
    if before[0] in _GLUE or after[0] in _GLUE or after[0] in _NOT_AT_START or before[0] in _NOT_AT_END:
        return None
    if before[0] == ZERO_SPACE:
        return FREE
    if before[0] == SOFT_HYPHEN:
        return _AT_SOFT_HYPHEN
    if before[0] in _HYPHENS:
        joins_letters = earlier[:1].isalpha() and after[0].isalpha()
        return _AT_HYPHEN if joins_letters else None
    if before[0] in _DASHES:
        return None if after[0].isdigit() or after[0] in _DASHES or not earlier.strip() else _AT_HYPHEN
    if after[0] in _DASHES:
        return _AT_DASH_BEFORE if before[0].isalpha() else None
    if is_emoji(before) and is_emoji(after):
        return _BETWEEN_EMOJI
    is_free = is_emoji(before) or is_emoji(after) or _is_ideographic(before) or _is_ideographic(after)
    return FREE if is_free else None


def _word_starts(found: list[str]) -> frozenset[int]:
    """The clusters at which a word begins that no space parts from the one before it."""
    text = "".join(found)
    if text.isascii():
        return frozenset()
    at: set[int] = set()
    for run in _RUN.finditer(text):
        place = run.start()
        for phrase in phrases(run.group())[:-1]:
            place += len(phrase)
            at.add(place)
    ends = accumulate(map(len, found))
    return frozenset(number for number, end in enumerate(ends, start=1) if end in at) if at else frozenset()


def pieces(found: list[str]) -> list[UnbrokenRun]:
    """The pieces of a paragraph that is given as its clusters, without spaces at its ends."""
    cut: list[UnbrokenRun] = []
    start = 0
    place = 1
    words = _word_starts(found)
    while place < len(found):
        if found[place] in _SPACES:
            end = place
            while place < len(found) and found[place] in _SPACES:
                place += 1
            # French sets a space before these marks, and a line never begins with one.
            is_held = place == end + 1 and place < len(found) and found[place][0] in "!?:;\u00bb"
            if place < len(found) and not is_held and not _holds(*_beside(found, end, place)):
                cut.append(UnbrokenRun(start, end, place, _cost_at_space(found, start, end, place)))
                start = place
            place += 1
            continue
        earlier = found[place - 2] if place >= 2 else ""
        cost_here = _cost_between(found[place - 1], found[place], earlier)
        if place in words:
            cost_here = FREE
        elif cost_here == FREE and _is_ideographic(found[place - 1]) and _is_ideographic(found[place]):
            cost_here = _IN_PHRASE
        if cost_here is not None:
            hyphen = "-" if found[place - 1] == SOFT_HYPHEN else ""
            cut.append(UnbrokenRun(start, place, place, cost_here, hyphen))
            start = place
        place += 1
    if start < len(found):
        cut.append(UnbrokenRun(start, len(found), len(found)))
    return cut


def _beside(found: list[str], end: int, after: int) -> tuple[str, str]:
    return "".join(found[max(0, end - _BESIDE) : end]), "".join(found[after : after + _BESIDE])


def number_goes_on(before: str, after: str) -> bool:
    """Whether a space stands within a number: "212 000"."""
    return _LAST_OF_NUMBER.search(before) is not None and _GROUP.match(after) is not None


def holds_unit(before: str, after: str) -> bool:
    """Whether a space stands between a number and its unit, or a day and its month: "212 euros", "zum 1. Mai"."""
    unit = _UNIT.match(after)
    if unit is None:
        return False
    word = unit.group().lower()
    if _DAY.search(before):
        return word in MONTHS
    return _NUMBER.search(before) is not None and (word in units() or word in MONTHS or word in _SCALE_WORDS)


def _holds(before: str, after: str) -> bool:
    """Whether no line ends there; a very long unit may stand in the next one."""
    if number_goes_on(before, after):
        return True
    unit = _UNIT.match(after)
    return unit is not None and len(unit.group()) <= _LONGEST_HELD and holds_unit(before, after)


def _cost_at_space(found: list[str], start: int, end: int, after: int) -> float:
    """A number stays with what it counts, an emoji or a dash with the word that it follows."""
    if is_emoji(found[after]) and not is_emoji(found[end - 1]):
        return _BEFORE_EMOJI
    if found[after][0] in _DASHES and found[after + 1 : after + 2] == [" "]:
        return _BEFORE_DASH
    if found[end - 1].isdigit() and found[after][0].isalpha():
        return _AFTER_NUMBER
    return _AFTER_SHORT_WORD if end - start <= _SHORT and found[start][0].isalpha() else FREE


def broken(
    piece: UnbrokenRun, found: list[str], *, anywhere: bool, whole: UnbrokenRun | None = None
) -> list[UnbrokenRun]:
    """A piece that is too long for a line, cut where it hurts least; with `anywhere` between any two clusters.

    Addresses, accounts and tags are cut after their marks and get no hyphen, which would read as a part of them.
    Words are cut before a consonant that begins a syllable. Scripts that know no hyphen get none. `whole` is the
    word that the piece was cut from before.
    """
    clusters = found[piece.start : piece.end]
    word = whole or piece
    is_address = _ADDRESS.match("".join(found[word.start : word.end])) is not None
    cuts: list[tuple[int, str]] = []
    for place in range(1, len(clusters)):
        before, after = clusters[place - 1], clusters[place]
        # Letters that know a small and a capital form are hyphenated; Arabic would lose its joined forms.
        is_word = before[0].isalpha() and after[0].isalpha()
        hyphen = "-" if is_word and not is_address and before.lower() != before.upper() else ""
        if anywhere or (is_address and place > 1 and before in "/.?&=_-#:@" and after.isalnum()):
            cuts.append((place, hyphen))
        elif is_word and not is_address and _is_syllable_edge(clusters, place):
            cuts.append((place, "-"))
    price = _IN_ADDRESS if is_address else _IN_WORD
    made: list[UnbrokenRun] = []
    start = 0
    for place, hyphen in cuts:
        end = piece.start + place
        made.append(UnbrokenRun(piece.start + start, end, end, price, hyphen))
        start = place
    made.append(UnbrokenRun(piece.start + start, piece.end, piece.next_start, piece.cost, piece.hyphen))
    return made


def _is_syllable_edge(clusters: list[str], place: int) -> bool:
    if place < _LEAST_HEAD or len(clusters) - place < _LEAST_TAIL or place + 1 >= len(clusters):
        return False
    before, here, after = (_base(clusters[at]) for at in (place - 1, place, place + 1))
    return here not in _VOWELS and after in _VOWELS and before + here not in _ONE_SOUND


def _base(cluster: str) -> str:
    return unicodedata.normalize("NFC", cluster)[0].lower()


def is_unseen(cluster: str) -> bool:
    """What only says where a line may end, and is never drawn."""
    return cluster[0] in {ZERO_SPACE, SOFT_HYPHEN, WORD_JOINER, "\ufeff"}
