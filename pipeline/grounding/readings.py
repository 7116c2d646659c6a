"""What digits can stand for: `1.000` is a thousand in one language and one in another."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from typing import Final

_SEPARATOR: Final = re.compile(r"[^\d]")
_GROUP: Final = 3
_MAX_DIGITS: Final = 60
_COMMA_IS_DECIMAL: Final = frozenset({"de", "fr", "es"})


@lru_cache(maxsize=4096)
def readings(token: str, language: str) -> tuple[Fraction, ...]:
    """The values of a run of digits and separators; none where it is a version, a date or a telephone number."""
    if len(token) > _MAX_DIGITS:
        return ()
    digits = ascii_digits(token)
    groups = _SEPARATOR.split(digits)
    separators = _SEPARATOR.findall(digits)
    if not separators:
        return (Fraction(int(digits)),)
    whole = Fraction(int("".join(groups)))
    are_thousands = all(len(group) == _GROUP for group in groups[1:]) and 0 < len(groups[0]) <= _GROUP
    if len(set(separators)) == 1 and are_thousands and groups[0] != "0":
        if len(separators) > 1:
            return (whole,)
        mark = separators[0]
        decimal = Fraction(f"{groups[0]}.{groups[1]}")
        if mark == ".":
            return {"en": (decimal,), "": (whole, decimal)}.get(language, (whole,))
        if mark == "," and language in _COMMA_IS_DECIMAL:
            return (decimal,)
        return (whole,)
    if len(separators) == 1 or (len(set(separators[:-1])) == 1 and separators[-1] != separators[0]):
        if separators[-1] not in ".,\u066b":
            return ()
        return (Fraction("".join(groups[:-1]) + "." + groups[-1]),)
    return ()


def ascii_digits(token: str) -> str:
    if token.isascii():
        return token
    return "".join(str(unicodedata.digit(sign)) if sign.isdigit() else sign for sign in token)
