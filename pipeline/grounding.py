"""Mechanical proof that what a draft says stands in its source: numbers, quotations, verbatim claims."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from pipeline.links import without_links

QUOTATION_LEAST = 12
"""Shorter quoted stretches are names and single words, which no source need hold."""

_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f\u2009'\u2019\u066b\u066c]\d+)*")
_SEPARATOR = re.compile(r"[^\d]")
_QUOTATIONS = re.compile(
    r"\u201c([^\u201c\u201d]*)\u201d|\u201e([^\u201e\u201c\u201d]*)[\u201c\u201d]|\u00ab([^\u00ab\u00bb]*)\u00bb"
    r"|\u300c([^\u300c\u300d]*)\u300d|\"([^\"\n]*)\""
)
_SINGLE_MARKS = "\u2018\u2019\u201a\u201b`\u00b4"
_DOUBLE_MARKS = "\u201c\u201d\u201e\u00ab\u00bb"
_FOLDED = str.maketrans(dict.fromkeys(_SINGLE_MARKS, "'") | dict.fromkeys(_DOUBLE_MARKS, '"'))
_SPACE = re.compile(r"\s+")
_GROUP = 3
_MAX_DIGITS = 60


def _readings(token: str) -> frozenset[str]:
    """The values that the digits can stand for: `1.000` is a thousand in one language and one in another."""
    if len(token) > _MAX_DIGITS:
        return frozenset({token})
    ascii_token = "".join(str(unicodedata.digit(sign)) if sign.isdigit() else sign for sign in token)
    groups = _SEPARATOR.split(ascii_token)
    separators = _SEPARATOR.findall(ascii_token)
    whole = _canonical("".join(groups))
    if not separators:
        return frozenset({whole})
    are_thousands = all(len(group) == _GROUP for group in groups[1:]) and len(groups[0]) <= _GROUP
    if len(set(separators)) == 1 and are_thousands:
        if separators == ["."]:
            return frozenset({whole, _canonical(ascii_token)})
        return frozenset({whole})
    if len(separators) == 1 or (len(set(separators[:-1])) == 1 and separators[-1] != separators[0]):
        return frozenset({_canonical("".join(groups[:-1]) + "." + groups[-1])})
    # Versions, dates and telephone numbers: the same digits in the same groups.
    return frozenset({ascii_token})


def _canonical(number: str) -> str:
    value = Decimal(number)
    return format(value.normalize(), "f") if value else "0"


def numbers(text: str) -> dict[str, frozenset[str]]:
    """Each number as it is written, with the values that it can stand for. Addresses are left out."""
    return {match.group(): _readings(match.group()) for match in _NUMBER.finditer(without_links(text))}


def ungrounded_numbers(draft: str, source: str) -> tuple[str, ...]:
    """The numbers of the draft, as written, whose value the source doesn't hold."""
    said = numbers(draft)
    if not said:
        return ()
    known: set[str] = set()
    for values in numbers(source).values():
        known |= values
    return tuple(written for written, values in said.items() if not values & known)


def fold(text: str) -> str:
    """For comparing quotations: compatibility forms, quotation marks and white space made alike."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text).translate(_FOLDED)).strip()


def quotations(text: str) -> tuple[str, ...]:
    """What stands between quotation marks, from `QUOTATION_LEAST` characters on."""
    found = ("".join(group or "" for group in match.groups()) for match in _QUOTATIONS.finditer(text))
    return tuple(quotation for quotation in found if len(quotation) >= QUOTATION_LEAST)


def ungrounded_quotations(draft: str, source: str) -> tuple[str, ...]:
    """The quotations of the draft that don't stand in the source word for word.

    A closing comma or full stop inside the marks belongs to the draft's sentence and isn't compared.
    """
    quoted = quotations(draft)
    if not quoted:
        return ()
    folded = fold(source)
    return tuple(quotation for quotation in quoted if fold(quotation).rstrip(" .,\u2026") not in folded)
