"""Numbers that a source doesn't say and that follow from it: declared sums, computed again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Final

from pipeline.grounding.parsed_numbers import NumberMeaning
from pipeline.grounding.quantities import parse_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.grounding.parsed_numbers import ParsedText, Quantity

FREE_CONSTANTS: Final = frozenset({Fraction(1), Fraction(100)})
"""What a sum may use without the source: for a change in percent."""
_MOST_OPERANDS: Final = 8
_MOST_WAYS: Final = 256
_LONGEST: Final = 200
_OPERATORS: Final = str.maketrans({"\u00d7": "*", "\u00f7": "/", "\u2212": "-", "\u2013": "-", ":": "/"})
_PIECE: Final = re.compile(r"\s*(?:(?P<mark>[-+*/()])|(?P<operand>[^-+*/()]+))")
_ENGLISH_DECIMAL: Final = re.compile(r"\d+\.\d+")
_DECIMALS: Final = re.compile(r"\d[.,](\d{1,2}|\d{4,})(?!\d)")


@dataclass(frozen=True)
class DerivedResult:
    """What became of one declared sum: `values`, each with its unit, are what the draft may say for it, `fault` why it may not."""

    text: str
    values: frozenset[tuple[Fraction, str]] = frozenset()
    fault: str = ""


def recompute(
    declared: str, source: str, *, language: str = "", source_language: str = ""
) -> tuple[DerivedResult, ...]:
    """Each `value = sum` of the declaration (several with `;` between), computed anew from numbers of the source.

    A sum has numbers of the source, 1 and 100, `+ - * /` and brackets. Numbers that are added or subtracted have one
    unit. The result is rounded to as many places as the value is written with, and must be the value exactly.
    """
    known = parse_numbers(source, source_language)
    return tuple(_outcome(one.strip(), known, language) for one in declared.split(";") if one.strip())


def _outcome(text: str, known: ParsedText, language: str) -> DerivedResult:
    if len(text) > _LONGEST or text.count("=") != 1:
        return DerivedResult(
            text, fault="A derived number is declared as `value = sum`, for example `43 % = 92 / 214`."
        )
    said, _, expression = text.partition("=")
    values = parse_numbers(said.strip(), language or known.language).quantities
    if len(values) != 1 or not values[0].readings:
        return DerivedResult(text, fault="A derived number stands alone before its `=`.")
    try:
        pieces = list(_pieces(expression.translate(_OPERATORS), known, language))
        results = list(_results(pieces))
    except _Wrong as wrong:
        return DerivedResult(text, fault=str(wrong))
    places = _DECIMALS.search(said)
    digits = len(places.group(1)) if places else 0
    for result, unit, is_ratio in results:
        for reading in values[0].readings:
            if _is_result(reading, result, unit, digits, is_ratio=is_ratio):
                return DerivedResult(
                    text, values=frozenset((one.value, one.unit) for one in values[0].readings)
                )
    return DerivedResult(text, fault=f"The sum {expression.strip()} doesn't give {said.strip()}.")


class _Wrong(Exception):
    """A sum that can't be computed; its words say why."""


@dataclass(frozen=True)
class _Term:
    """A value on the way: its unit, and whether it is a share of two of one unit."""

    value: Fraction
    unit: str
    is_ratio: bool = False


_Piece = str | tuple[_Term, ...]
_WHOLE: Final = _Term(Fraction(100), "free")


def _pieces(expression: str, known: ParsedText, language: str) -> Iterator[_Piece]:
    position, operands = 0, 0
    expression = expression.strip()
    if not expression:
        raise _Wrong("The sum is empty.")
    while position < len(expression):
        match = _PIECE.match(expression, position)
        if match is None:
            raise _Wrong("The sum can't be read.")
        position = match.end()
        if match["mark"]:
            yield match["mark"]
            continue
        operands += 1
        if operands > _MOST_OPERANDS:
            raise _Wrong("The sum has too many numbers.")
        yield _operand(match["operand"].strip(), known, language)


def _operand(written: str, known: ParsedText, language: str) -> tuple[_Term, ...]:
    """What the number can be: each value that the source gives these figures."""
    found = parse_numbers(written, language or known.language).quantities
    if len(found) == 1 and _ENGLISH_DECIMAL.fullmatch(written):
        # A sum is often written with points, whatever the language.
        value = Fraction(written)
        found = [
            replace(
                found[0],
                readings=[*found[0].readings, NumberMeaning(value, "", value)],
                bare_values=found[0].bare_values | {value},
            )
        ]
    if len(found) != 1 or not found[0].readings:
        msg = f"\u201c{written}\u201d in the sum isn't a number."
        raise _Wrong(msg)
    terms = {
        _Term(its.value, its.unit)
        for quantity in known.quantities
        for its in quantity.readings
        if _is_meant(found[0], quantity, its)
    }
    if all(reading.unit == "" and reading.value in FREE_CONSTANTS for reading in found[0].readings):
        terms |= {_Term(reading.value, "free") for reading in found[0].readings}
    if not terms:
        msg = f"\u201c{written}\u201d in the sum isn't in the source."
        raise _Wrong(msg)
    return tuple(sorted(terms, key=lambda term: (term.value, term.unit)))


def _is_meant(written: Quantity, quantity: Quantity, its: NumberMeaning) -> bool:
    for reading in written.readings:
        if reading.unit == its.unit and reading.value == its.value:
            return True
        # Bare figures stand for whatever the source says with them.
        if reading.unit == "" and (reading.plain == its.plain or reading.plain in quantity.bare_values):
            return True
    return False


def _results(pieces: list[_Piece]) -> Iterator[tuple[Fraction, str, bool]]:
    """The results of the sum for every way of taking its numbers."""
    choices = [piece for piece in pieces if not isinstance(piece, str)]
    if not choices:
        raise _Wrong("The sum has no numbers.")
    ways = 1
    for choice in choices:
        ways *= len(choice)
    if ways > _MOST_WAYS:
        raise _Wrong("The sum can be read in too many ways; write its numbers with their units.")
    wrong: _Wrong | None = None
    done = False
    for taken in product(*choices):
        given = iter(taken)
        try:
            term = _Sum([piece if isinstance(piece, str) else next(given) for piece in pieces]).result()
        except _Wrong as error:
            wrong = error
            continue
        done = True
        yield term.value, term.unit, term.is_ratio
    if not done and wrong is not None:
        raise wrong


class _Sum:
    """Recursive descent over a few pieces."""

    def __init__(self, pieces: list[str | _Term]) -> None:
        self.pieces = pieces
        self.place = 0

    def result(self) -> _Term:
        term = self._added()
        if self.place != len(self.pieces):
            raise _Wrong("The sum can't be read.")
        return term

    def _next(self) -> str | _Term | None:
        return self.pieces[self.place] if self.place < len(self.pieces) else None

    def _added(self) -> _Term:
        left = self._multiplied()
        while (mark := self._next()) in {"+", "-"}:
            self.place += 1
            right = self._multiplied()
            if not _add_up(left.unit, right.unit):
                raise _Wrong("The sum adds or subtracts numbers of different units.")
            is_share = left.unit == right.unit == "ratio" and mark == "+"
            if left == _WHOLE and right.unit == "ratio":
                # What is left of a hundred percent.
                left, is_share = _Term(Fraction(1), "ratio"), True
            value = left.value + right.value if mark == "+" else left.value - right.value
            unit = left.unit if left.unit not in {"free", ""} else right.unit
            left = _Term(value, unit, is_share or (unit != "ratio" and (left.is_ratio or right.is_ratio)))
        return left

    def _multiplied(self) -> _Term:
        left = self._single()
        while (mark := self._next()) in {"*", "/"}:
            self.place += 1
            right = self._single()
            if mark == "/":
                if right.value == 0:
                    raise _Wrong("The sum divides by nothing.")
                same = left.unit == right.unit and left.unit != "free"
                unit = "" if same else left.unit if right.unit in {"free", ""} else "rate"
                left = _Term(left.value / right.value, unit, left.is_ratio or same)
            elif left.is_ratio and right == _WHOLE:
                # "× 100" says percent; a share is kept as a share.
                continue
            else:
                unit = (
                    left.unit
                    if right.unit in {"free", "", "ratio"}
                    else right.unit
                    if left.unit in {"free", "", "ratio"}
                    else "rate"
                )
                left = _Term(left.value * right.value, unit)
        return left

    def _single(self) -> _Term:
        piece = self._next()
        self.place += 1
        if piece == "(":
            term = self._added()
            if self._next() != ")":
                raise _Wrong("The sum has a bracket that isn't closed.")
            self.place += 1
            return term
        if not isinstance(piece, _Term):
            raise _Wrong("The sum can't be read.")
        return piece


def _add_up(one: str, other: str) -> bool:
    """Whether numbers of these units can be added: of one unit, or one of them without, as in "1.2 million more"."""
    if one == other or "free" in {one, other}:
        return True
    return "" in {one, other} and (one or other).startswith("cur:")


def _is_result(reading: NumberMeaning, result: Fraction, unit: str, digits: int, *, is_ratio: bool) -> bool:
    """Whether what was computed, rounded to the written places, is what is said."""
    if reading.unit == "ratio":
        # A difference of two percentages is counted in points.
        return is_ratio and (_rounded(result * 100, digits) == reading.plain or result == reading.value)
    if reading.unit == "pp":
        return unit == "ratio" and _rounded(result * 100, digits) == reading.plain
    if reading.unit == "times":
        return is_ratio and _rounded(result, digits) == reading.plain
    if reading.unit == "month" and unit == "":
        return reading.plain == result
    factor = reading.value / reading.plain if reading.plain else Fraction(1)
    is_same = reading.unit == unit or unit in {"free", "rate"} or reading.unit == ""
    if not is_same and not (reading.unit.startswith("cur") and unit.startswith("cur")):
        return False
    if result == reading.value:
        return True
    # "1.6 million" is rounded in its millions.
    scale = _scale_of(reading)
    if _rounded(result / factor / scale, digits) * scale == reading.plain:
        return True
    return _is_round(reading.plain, result / factor)


def _is_round(said: Fraction, result: Fraction) -> bool:
    """Whether a whole number that ends in zeros is the result rounded to them, by no more than a hundredth."""
    if said.denominator != 1 or not said or abs(said - result) > abs(said) / 100:
        return False
    zeros = len(str(said.numerator)) - len(str(said.numerator).rstrip("0"))
    return zeros > 0 and _rounded(result / 10**zeros, 0) * 10**zeros == said


def _scale_of(reading: NumberMeaning) -> Fraction:
    for scale in (10**12, 10**9, 10**6, 10**3):
        if reading.plain >= scale and (reading.plain / scale * 100).denominator == 1:
            return Fraction(scale)
    return Fraction(1)


def _rounded(value: Fraction, digits: int) -> Fraction:
    """Half away from nothing, as people round."""
    shifted = abs(value) * 10**digits + Fraction(1, 2)
    whole = Fraction(shifted.numerator // shifted.denominator, 10**digits)
    return whole if value >= 0 else -whole
