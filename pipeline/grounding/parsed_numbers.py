"""A number of a text with what it can mean, and a text with its numbers."""

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
    """One meaning of a number: `value` in the base of `unit`, `plain` as it is said without the unit."""

    value: Fraction
    unit: str
    plain: Fraction


@dataclass
class Quantity:
    """One number of a text: `text[start:end]`, its unit included. `digits` are as written, for what has no value."""

    start: int
    end: int
    readings: list[NumberMeaning]
    label: str = ""
    """What it is the number of, where letters stand at it: `a380`, `covid-19`."""
    is_article: bool = False
    """A word for one, which is mostly no number."""
    bare_values: frozenset[Fraction] = frozenset()
    """The number without scale and unit, for who computes with it."""


@dataclass
class ParsedText:
    text: str
    language: str
    quantities: list[Quantity]
    by_plain: dict[Fraction, list[tuple[Quantity, NumberMeaning]]] = field(default_factory=dict)
    by_value: dict[Fraction, list[tuple[Quantity, NumberMeaning]]] = field(default_factory=dict)
    by_bare_value: dict[Fraction, list[Quantity]] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    unread_text: str = ""
    """What of a very long text wasn't read: its numbers are looked for as they are written."""

    def index(self) -> None:
        for quantity in self.quantities:
            for value in quantity.bare_values:
                self.by_bare_value.setdefault(value, []).append(quantity)
            for reading in quantity.readings:
                self.by_plain.setdefault(reading.plain, []).append((quantity, reading))
                self.by_value.setdefault(reading.value, []).append((quantity, reading))
        self.labels = frozenset(one.label for one in self.quantities if one.label)

    # Each of these looks at the whole text, so it does so once, whatever number asks.

    @cached_property
    def months(self) -> frozenset[str]:
        """The units of days in the months that are named anywhere."""
        words = {word.lower() for word in _WORD.findall(self.text)}
        return frozenset(f"date:{MONTHS[word]}" for word in words & MONTHS.keys())

    @cached_property
    def lowered(self) -> str:
        return self.text.lower()

    def others_in_sentence(self, quantity: Quantity) -> list[Quantity]:
        first, last = self._sentences_of(quantity)
        inside = chain.from_iterable(self._by_sentence.get(place, ()) for place in range(first, last + 1))
        return [one for one in inside if one is not quantity]

    def units_beside(self, quantity: Quantity) -> Collection[str]:
        """The units of the other numbers in its sentence."""
        first, last = self._sentences_of(quantity)
        beside: Counter[str] = Counter()
        for place in range(first, last + 1):
            beside.update(self._units_by_sentence.get(place, {}))
        beside.subtract(_units_of(quantity))
        return [unit for unit, times in beside.items() if times > 0]

    def _sentences_of(self, quantity: Quantity) -> tuple[int, int]:
        """The first and the last that it stands in: a number such as "5 p.m." may hold the end of one."""
        return bisect_right(self._ends, quantity.start), bisect_left(self._ends, quantity.end)

    @cached_property
    def _ends(self) -> list[int]:
        return [match.end() for match in _SENTENCE.finditer(self.text)]

    @cached_property
    def _by_sentence(self) -> dict[int, list[Quantity]]:
        found: dict[int, list[Quantity]] = {}
        for one in self.quantities:
            found.setdefault(bisect_right(self._ends, one.start), []).append(one)
        return found

    @cached_property
    def _units_by_sentence(self) -> dict[int, Counter[str]]:
        """How many numbers of each sentence can have a unit; a sentence can be a table of thousands."""
        return {
            place: Counter(chain.from_iterable(_units_of(one) for one in inside))
            for place, inside in self._by_sentence.items()
        }


def _units_of(quantity: Quantity) -> set[str]:
    return {reading.unit for reading in quantity.readings}
