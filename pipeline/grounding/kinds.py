"""A number of a text with what it can mean, and a text with its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction


class Reading(NamedTuple):
    """One meaning of a number: `value` in the base of `unit`, `plain` as it is said without the unit."""

    value: Fraction
    unit: str
    plain: Fraction


@dataclass
class Quantity:
    """One number of a text: `text[start:end]`, its unit included. `digits` are as written, for what has no value."""

    start: int
    end: int
    readings: list[Reading]
    label: str = ""
    """What it is the number of, where letters stand at it: `a380`, `covid-19`."""
    is_article: bool = False
    """A word for one, which is mostly no number."""
    said: frozenset[Fraction] = frozenset()
    """The number without scale and unit, for who computes with it."""


@dataclass
class Parsed:
    text: str
    language: str
    quantities: list[Quantity]
    by_plain: dict[Fraction, list[tuple[Quantity, Reading]]] = field(default_factory=dict)
    by_value: dict[Fraction, list[tuple[Quantity, Reading]]] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()

    def index(self) -> None:
        for quantity in self.quantities:
            for reading in quantity.readings:
                self.by_plain.setdefault(reading.plain, []).append((quantity, reading))
                self.by_value.setdefault(reading.value, []).append((quantity, reading))
        self.labels = frozenset(one.label for one in self.quantities if one.label)
