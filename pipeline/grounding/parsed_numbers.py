"""Defines the data of parsed texts: numbers with their possible meanings, and texts with their numbers."""

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
    """One meaning of a number."""

    value: Fraction
    """The number in the base unit: seconds, months, metres and so on."""
    unit: str
    """The base unit, such as `s` or `cur:EUR`, `date:5` for a day of May, or "" for none."""
    plain: Fraction
    """The number as it is stated, with its scale and without its unit."""


@dataclass
class Quantity:
    """One number of a text, `text[start:end]`, with its unit."""

    start: int
    end: int
    readings: list[NumberMeaning]
    """The meanings that the number can have."""
    label: str = ""
    """The name that its digits belong to, such as `a380` or `covid-19`, or ""; with a name it has no meaning."""
    is_article: bool = False
    """Whether it is a word for one that is mostly an article."""
    bare_values: frozenset[Fraction] = frozenset()
    """The number without scale and unit, for computing with it."""


@dataclass
class ParsedText:
    """A text with its numbers, indexed by their meanings."""

    text: str
    language: str
    quantities: list[Quantity]
    by_plain: dict[Fraction, list[tuple[Quantity, NumberMeaning]]] = field(default_factory=dict)
    by_value: dict[Fraction, list[tuple[Quantity, NumberMeaning]]] = field(default_factory=dict)
    by_bare_value: dict[Fraction, list[Quantity]] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    unread_text: str = ""
    """The end of a very long text, in which numbers aren't parsed but searched as they are written."""

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
        """The units of dates (`date:5`) in all months that the text names."""
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

    def units_in_sentence(self, quantity: Quantity) -> Collection[str]:
        """Return the units of the other numbers in the number's sentence."""
        first, last = self._sentences_of(quantity)
        counts: Counter[str] = Counter()
        for sentence in range(first, last + 1):
            counts.update(self._units_by_sentence.get(sentence, {}))
        counts.subtract(_units_of(quantity))
        return [unit for unit, count in counts.items() if count > 0]

    def _sentences_of(self, quantity: Quantity) -> tuple[int, int]:
        """Return the indexes of a number's first and last sentence; "5 p.m." may contain the end of one."""
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
        """The counts of the units in each sentence, which can be a table of thousands of numbers."""
        return {
            sentence: Counter(chain.from_iterable(_units_of(quantity) for quantity in quantities))
            for sentence, quantities in self._by_sentence.items()
        }


def _units_of(quantity: Quantity) -> set[str]:
    return {reading.unit for reading in quantity.readings}
