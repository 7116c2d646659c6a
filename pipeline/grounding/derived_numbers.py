"""Recomputes the sums that a draft declares for numbers of its own, such as `43 % = 92 / 214`."""

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
"""Numbers that a sum may use even if the source lacks them, for changes in percent."""
_MAX_OPERANDS: Final = 8
_MAX_COMBINATIONS: Final = 256
"""The most combinations of the meanings of a sum's numbers that are tried."""
_MAX_CHARACTERS: Final = 200
_OPERATORS: Final = str.maketrans({"\u00d7": "*", "\u00f7": "/", "\u2212": "-", "\u2013": "-", ":": "/"})
_TOKEN: Final = re.compile(r"\s*(?:(?P<mark>[-+*/()])|(?P<operand>[^-+*/()]+))")
_ENGLISH_DECIMAL: Final = re.compile(r"\d+\.\d+")
# One or two decimals, or four and more; three digits after a mark may be thousands.
_DECIMALS: Final = re.compile(r"\d[.,](\d{1,2}|\d{4,})(?!\d)")


@dataclass(frozen=True)
class DerivedResult:
    """The result of one declared sum."""

    text: str
    """The declaration."""
    values: frozenset[tuple[Fraction, str]] = frozenset()
    """The values, with their units, that the draft may state for it."""
    fault: str = ""
    """The sentence that says why it may not, or ""."""


def recompute_sums(
    declared: str, source: str, *, language: str = "", source_language: str = ""
) -> tuple[DerivedResult, ...]:
    """Recompute each `value = sum` of the declaration from numbers of the source; `;` separates several.

    A sum consists of numbers of the source, 1 and 100, `+ - * /` and brackets. Numbers that are added or subtracted
    need the same unit. The result, rounded as the value is written, must equal the value.
    """
    known = parse_numbers(source, source_language)
    return tuple(
        _recompute_one(declaration.strip(), known, language)
        for declaration in declared.split(";")
        if declaration.strip()
    )


def _recompute_one(text: str, known: ParsedText, language: str) -> DerivedResult:
    """Compute one declared `value = sum`, and return the meanings of the value, or a fault."""
    if len(text) > _MAX_CHARACTERS or text.count("=") != 1:
        return DerivedResult(
            text, fault="A derived number is declared as `value = sum`, for example `43 % = 92 / 214`."
        )
    value_text, _, expression = text.partition("=")
    values = parse_numbers(value_text.strip(), language or known.language).quantities
    if len(values) != 1 or not values[0].readings:
        return DerivedResult(text, fault="A derived number stands alone before its `=`.")
    try:
        tokens = list(_tokenize(expression.translate(_OPERATORS), known, language))
        results = list(_evaluate_all(tokens))
    except _SumError as error:
        return DerivedResult(text, fault=str(error))
    decimals = _DECIMALS.search(value_text)
    digits = len(decimals.group(1)) if decimals else 0
    for result, unit, is_ratio in results:
        for reading in values[0].readings:
            if _is_result(reading, result, unit, digits, is_ratio=is_ratio):
                return DerivedResult(
                    text, values=frozenset((meaning.value, meaning.unit) for meaning in values[0].readings)
                )
    return DerivedResult(text, fault=f"The sum {expression.strip()} doesn't give {value_text.strip()}.")


class _SumError(Exception):
    """Raised for a sum that can't be computed; the message is the fault."""


@dataclass(frozen=True)
class _Term:
    """An intermediate value with its unit; `is_ratio` says that it is a share of two numbers of one unit."""

    value: Fraction
    unit: str
    is_ratio: bool = False


_Token = str | tuple[_Term, ...]
_HUNDRED_PERCENT: Final = _Term(Fraction(100), "free")


def _tokenize(expression: str, known: ParsedText, language: str) -> Iterator[_Token]:
    """Yield the operators and, for each number, its possible terms.

    Raises `_SumError` if the sum is empty, unreadable or too long, or if a number isn't in the source.
    """
    position, operands = 0, 0
    expression = expression.strip()
    if not expression:
        raise _SumError("The sum is empty.")
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise _SumError("The sum can't be read.")
        position = match.end()
        if match["mark"]:
            yield match["mark"]
            continue
        operands += 1
        if operands > _MAX_OPERANDS:
            raise _SumError("The sum has too many numbers.")
        yield _parse_operand(match["operand"].strip(), known, language)


def _parse_operand(number_text: str, known: ParsedText, language: str) -> tuple[_Term, ...]:
    """Return the terms that the number can stand for, one for each value with these figures in the source.

    Raises `_SumError` if the text is no number, or if the source doesn't have it.
    """
    quantities = parse_numbers(number_text, language or known.language).quantities
    if len(quantities) == 1 and _ENGLISH_DECIMAL.fullmatch(number_text):
        # Sums are often written with decimal points, whatever the language.
        value = Fraction(number_text)
        quantities = [
            replace(
                quantities[0],
                readings=[*quantities[0].readings, NumberMeaning(value, "", value)],
                bare_values=quantities[0].bare_values | {value},
            )
        ]
    if len(quantities) != 1 or not quantities[0].readings:
        msg = f"\u201c{number_text}\u201d in the sum isn't a number."
        raise _SumError(msg)
    terms = {
        _Term(meaning.value, meaning.unit)
        for quantity in known.quantities
        for meaning in quantity.readings
        if _matches_source(quantities[0], quantity, meaning)
    }
    if all(reading.unit == "" and reading.value in FREE_CONSTANTS for reading in quantities[0].readings):
        terms |= {_Term(reading.value, "free") for reading in quantities[0].readings}
    if not terms:
        msg = f"\u201c{number_text}\u201d in the sum isn't in the source."
        raise _SumError(msg)
    return tuple(sorted(terms, key=lambda term: (term.value, term.unit)))


def _matches_source(written: Quantity, quantity: Quantity, meaning: NumberMeaning) -> bool:
    """Return whether a number of the sum means this number of the source."""
    for reading in written.readings:
        if reading.unit == meaning.unit and reading.value == meaning.value:
            return True
        # A number without a unit stands for one with any unit.
        if reading.unit == "" and (reading.plain == meaning.plain or reading.plain in quantity.bare_values):
            return True
    return False


def _evaluate_all(tokens: list[_Token]) -> Iterator[tuple[Fraction, str, bool]]:
    """Yield the result for each combination of the meanings of the sum's numbers.

    Raises `_SumError` if the sum has no numbers or too many combinations, or if none can be computed.
    """
    choices = [token for token in tokens if not isinstance(token, str)]
    if not choices:
        raise _SumError("The sum has no numbers.")
    combinations = 1
    for choice in choices:
        combinations *= len(choice)
    if combinations > _MAX_COMBINATIONS:
        raise _SumError("The sum can be read in too many ways; write its numbers with their units.")
    last_error: _SumError | None = None
    has_result = False
    for chosen in product(*choices):
        remaining_terms = iter(chosen)
        try:
            term = _SumParser(
                [token if isinstance(token, str) else next(remaining_terms) for token in tokens]
            ).evaluate()
        except _SumError as error:
            last_error = error
            continue
        has_result = True
        yield term.value, term.unit, term.is_ratio
    if not has_result and last_error is not None:
        raise last_error


class _SumParser:
    """A recursive-descent parser and evaluator of one sum."""

    def __init__(self, tokens: list[str | _Term]) -> None:
        self.tokens = tokens
        self.index = 0

    def evaluate(self) -> _Term:
        """Return the result. Raises `_SumError` if the sum is malformed, or if its units don't match."""
        term = self._parse_sum()
        if self.index != len(self.tokens):
            raise _SumError("The sum can't be read.")
        return term

    def _next(self) -> str | _Term | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def _parse_sum(self) -> _Term:
        """Parse products joined by plus and minus, and return the result with its unit."""
        left = self._parse_product()
        while (mark := self._next()) in {"+", "-"}:
            self.index += 1
            right = self._parse_product()
            if not _can_be_added(left.unit, right.unit):
                raise _SumError("The sum adds or subtracts numbers of different units.")
            is_share = left.unit == right.unit == "ratio" and mark == "+"
            if left == _HUNDRED_PERCENT and right.unit == "ratio":
                # The rest of a hundred percent is a share too.
                left, is_share = _Term(Fraction(1), "ratio"), True
            value = left.value + right.value if mark == "+" else left.value - right.value
            unit = left.unit if left.unit not in {"free", ""} else right.unit
            left = _Term(value, unit, is_share or (unit != "ratio" and (left.is_ratio or right.is_ratio)))
        return left

    def _parse_product(self) -> _Term:
        """Parse factors joined by multiplication and division, and return the result with its unit."""
        left = self._parse_factor()
        while (mark := self._next()) in {"*", "/"}:
            self.index += 1
            right = self._parse_factor()
            if mark == "/":
                if right.value == 0:
                    raise _SumError("The sum divides by nothing.")
                same = left.unit == right.unit and left.unit != "free"
                unit = "" if same else left.unit if right.unit in {"free", ""} else "rate"
                left = _Term(left.value / right.value, unit, left.is_ratio or same)
            elif left.is_ratio and right == _HUNDRED_PERCENT:
                # "× 100" only says percent, so the share stays a share.
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

    def _parse_factor(self) -> _Term:
        token = self._next()
        self.index += 1
        if token == "(":
            term = self._parse_sum()
            if self._next() != ")":
                raise _SumError("The sum has a bracket that isn't closed.")
            self.index += 1
            return term
        if not isinstance(token, _Term):
            raise _SumError("The sum can't be read.")
        return token


def _can_be_added(unit: str, other: str) -> bool:
    """Return whether numbers of these units can be added.

    The units are the same, or one is money and the other has none, as in "1.2 million more".
    """
    if unit == other or "free" in {unit, other}:
        return True
    return "" in {unit, other} and (unit or other).startswith("cur:")


def _is_result(reading: NumberMeaning, result: Fraction, unit: str, digits: int, *, is_ratio: bool) -> bool:
    """Return whether the computed result, rounded as it is written, is the stated number."""
    if reading.unit == "ratio":
        # A difference of two percentages is stated in percentage points.
        return is_ratio and (_round_half_up(result * 100, digits) == reading.plain or result == reading.value)
    if reading.unit == "pp":
        return unit == "ratio" and _round_half_up(result * 100, digits) == reading.plain
    if reading.unit == "times":
        return is_ratio and _round_half_up(result, digits) == reading.plain
    if reading.unit == "month" and unit == "":
        return reading.plain == result
    factor = reading.value / reading.plain if reading.plain else Fraction(1)
    is_same = reading.unit == unit or unit in {"free", "rate"} or reading.unit == ""
    if not is_same and not (reading.unit.startswith("cur") and unit.startswith("cur")):
        return False
    if result == reading.value:
        return True
    # "1.6 million" is rounded in millions.
    scale = _scale_of(reading)
    if _round_half_up(result / factor / scale, digits) * scale == reading.plain:
        return True
    return _is_rounded_to_zeros(reading.plain, result / factor)


def _is_rounded_to_zeros(stated: Fraction, result: Fraction) -> bool:
    """Return whether a whole number that ends in zeros is the result rounded to them, by at most a hundredth."""
    if stated.denominator != 1 or not stated or abs(stated - result) > abs(stated) / 100:
        return False
    zeros = len(str(stated.numerator)) - len(str(stated.numerator).rstrip("0"))
    return zeros > 0 and _round_half_up(result / 10**zeros, 0) * 10**zeros == stated


def _scale_of(reading: NumberMeaning) -> Fraction:
    """Return the scale in which the number was probably written: "1.6 million" is in millions."""
    for scale in (10**12, 10**9, 10**6, 10**3):
        if reading.plain >= scale and (reading.plain / scale * 100).denominator == 1:
            return Fraction(scale)
    return Fraction(1)


def _round_half_up(value: Fraction, digits: int) -> Fraction:
    """Return the value rounded to these digits, half away from zero, as people do."""
    shifted = abs(value) * 10**digits + Fraction(1, 2)
    whole = Fraction(shifted.numerator // shifted.denominator, 10**digits)
    return whole if value >= 0 else -whole
