"""Data of parsed texts: a number with what it can mean, and a text with its numbers."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.grounding.number_lexicon import MONTHS

if TYPE_CHECKING:
    from collections.abc import Collection
    from fractions import Fraction

_SENTENCE: Final = re.compile(r"[.!?\u3002\uff01\uff1f](?=\s|$)|\n")
_WORD: Final = re.compile(r"\b[^\W\d_]{3,}")


class NumberMeaning(NamedTuple):
    """One meaning of a number: `value` in the base unit `unit`, `plain` as it is stated, without the unit."""

    value: Fraction
    unit: str
    plain: Fraction


@dataclass
class Quantity:
    """One number of a text: `text[start:end]`, including its unit."""

    start: int
    end: int
    readings: list[NumberMeaning]
    label: str = ""
    """The name that its digits belong to, such as `a380` or `covid-19`; it has no value then."""
    is_article: bool = False
    """Whether it is a word for one that is mostly an article."""
    bare_values: frozenset[Fraction] = frozenset()
    """The number without scale and unit, for computing with it."""


@dataclass
class ParsedText:
    """A text with its numbers, indexed by what they can mean."""

    text: str
    language: str
    quantities: list[Quantity]
    by_plain: dict[Fraction, list[tuple[Quantity, NumberMeaning]]] = field(default_factory=dict)
    by_value: dict[Fraction, list[tuple[Quantity, NumberMeaning]]] = field(default_factory=dict)
    by_bare_value: dict[Fraction, list[Quantity]] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    unread_text: str = ""
    """The end of a very long text, which isn't parsed: its numbers are searched for as they are written."""

    def index(self) -> None:
        """Fill the indexes; call it once `quantities` are complete."""
        for quantity in self.quantities:
            for value in quantity.bare_values:
                self.by_bare_value.setdefault(value, []).append(quantity)
            for reading in quantity.readings:
                self.by_plain.setdefault(reading.plain, []).append((quantity, reading))
                self.by_value.setdefault(reading.value, []).append((quantity, reading))
        self.labels = frozenset(quantity.label for quantity in self.quantities if quantity.label)

    # Each property reads the whole text, so it is cached for all numbers that ask.

    @cached_property
    def months(self) -> frozenset[str]:
        """Return the units of dates (`date:5`) in the months that are named anywhere."""
        words = {word.lower() for word in _WORD.findall(self.text)}
        return frozenset(f"date:{MONTHS[word]}" for word in words & MONTHS.keys())

    @cached_property
    def lowered(self) -> str:
        return self.text.lower()

    def others_in_sentence(self, quantity: Quantity) -> list[Quantity]:
        """Return the other numbers in the number's sentence."""
        first, last = self._sentences_of(quantity)
        quantities = chain.from_iterable(
            self._by_sentence.get(sentence, ()) for sentence in range(first, last + 1)
        )
        return [other for other in quantities if other is not quantity]

    def units_beside(self, quantity: Quantity) -> Collection[str]:
        """Return the units of the other numbers in the number's sentence."""
        first, last = self._sentences_of(quantity)
        counts: Counter[str] = Counter()
        for sentence in range(first, last + 1):
            counts.update(self._units_by_sentence.get(sentence, {}))
        counts.subtract(_units_of(quantity))
        return [unit for unit, count in counts.items() if count > 0]

    def _sentences_of(self, quantity: Quantity) -> tuple[int, int]:
        """Return the indexes of the first and the last sentence of a number: "5 p.m." may hold the end of
        one.
        """
        return bisect_right(self._sentence_ends, quantity.start), bisect_left(
            self._sentence_ends, quantity.end
        )

    @cached_property
    def _sentence_ends(self) -> list[int]:
        return [match.end() for match in _SENTENCE.finditer(self.text)]

    @cached_property
    def _by_sentence(self) -> dict[int, list[Quantity]]:
        quantities: dict[int, list[Quantity]] = {}
        for quantity in self.quantities:
            quantities.setdefault(bisect_right(self._sentence_ends, quantity.start), []).append(quantity)
        return quantities

    @cached_property
    def _units_by_sentence(self) -> dict[int, Counter[str]]:
        """Return the counts of the units in each sentence, which can be a table of thousands of numbers."""
        return {
            sentence: Counter(chain.from_iterable(_units_of(quantity) for quantity in quantities))
            for sentence, quantities in self._by_sentence.items()
        }


def _units_of(quantity: Quantity) -> set[str]:
    return {reading.unit for reading in quantity.readings}
