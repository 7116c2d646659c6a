"""Whether each number of a draft stands in its source with the same unit, for the same things."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from pipeline.grounding.number_lexicon import BOUNDS, is_common, language_of
from pipeline.grounding.quantities import parse_numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from fractions import Fraction

    from pipeline.grounding.parsed_numbers import NumberMeaning, ParsedText, Quantity

Reason = Literal["absent", "unit", "counted", "bound"]
_WORDS_AFTER: Final = re.compile(r"[ \u00a0\u202f-]([^\W\d_]+(?:-[^\W\d_]+)*)")
_BOUND: Final = re.compile(
    r"\b(?:" + "|".join(f"({words})" for _, words in BOUNDS) + r")\s+(?:about\s|the\s)?$", re.IGNORECASE
)
_LONGEST_BOUND: Final = 24
_MOST_COUNTED: Final = 3
_LEAST_NOUN: Final = 3
_SAME_STEM: Final = 5
_MANY_MOST: Final = {12: 120, 100: 1_000, 1_000: 1_000_000, 10**6: 10**9, 10**9: 10**12, 10**12: 10**15}
_AGE: Final = 1_560
"""130 years in months: "Anna, 42," says how old she is without a unit."""
_AT: Final = re.compile(r"\b(?:at|from|until|till|by|um|ab|bis|à|las?)\s$", re.IGNORECASE)
_SCORE: Final = re.compile(r"\s?[-\u2013:]\s?|\s(?:to|zu|à|a)\s")
_LIST: Final = re.compile(r"[\d\s,.\u2013-]*(?:(?:or|and|und|oder|et|ou|y|o)\s*)?(?:\d+\s*)?")
_LONGEST_LIST: Final = 6
_LONGEST_BETWEEN: Final = 120
"""Characters between two numbers of one list."""
_OFTEN: Final = 20
"""Said with "times", more than this counts occasions."""
_LARGEST_SCORE: Final = 200
_VERBAL: Final = re.compile(r"(?:ed|en|ing|t|é|ée|és|ado|ada)$")


@dataclass(frozen=True)
class UnsupportedNumber:
    """A number of the draft, as written, that the source doesn't say so: `draft[start:end]`."""

    text: str
    start: int
    end: int
    reason: Reason


def unsupported_numbers(
    draft: str,
    source: str,
    *,
    language: str = "",
    source_language: str = "",
    declared: Collection[tuple[Fraction, str]] = (),
) -> tuple[UnsupportedNumber, ...]:
    """The numbers of the draft that the source doesn't hold with the same unit.

    `declared` are the values and units of declared sums, which were computed again by `derived_numbers`. The languages decide what `1.000`
    and "billion" are; they are guessed where they aren't told. What stands in a web address isn't looked at.
    """
    # A short draft doesn't show the language that its source, which is longer, shows. Where neither does, one reading
    # holds for both: "€1,5 Mio." is a million and a half in one language, and one and a half euros in another.
    seen = language_of(source, source_language) or language_of(draft, language)
    said = parse_numbers(draft, language or seen)
    if not said.quantities:
        return ()
    known = parse_numbers(source, source_language or seen)
    judge = _Judge(said, known)
    found: list[UnsupportedNumber] = []
    for quantity in said.quantities:
        reason = judge.reason(quantity)
        if reason and not any((reading.value, reading.unit) in declared for reading in quantity.readings):
            text = draft[quantity.start : quantity.end]
            found.append(UnsupportedNumber(text, quantity.start, quantity.end, reason))
    return tuple(found)


def ungrounded_numbers(draft: str, source: str) -> tuple[str, ...]:
    """The same, as written, each once."""
    return tuple(dict.fromkeys(one.text for one in unsupported_numbers(draft, source)))


class _Judge:
    def __init__(self, said: ParsedText, known: ParsedText) -> None:
        self.said = said
        self.known = known

    def reason(self, quantity: Quantity) -> Reason | None:
        if quantity.is_article:
            return None
        reason = self._reason(quantity)
        if reason in {"absent", "unit"} and self._is_written_in_rest(quantity):
            return None
        return reason

    def _is_written_in_rest(self, quantity: Quantity) -> bool:
        """Whether the part of a very long source that isn't read has it word for word, its unit included."""
        if not self.known.unread_text:
            return False
        written = self.said.text[quantity.start : quantity.end].split()
        words = r"\s".join(re.escape(word) for word in written)
        return (
            re.search(rf"(?<![\w.,]){words}(?!\w|[.,]\d)", self.known.unread_text, re.IGNORECASE) is not None
        )

    def _reason(self, quantity: Quantity) -> Reason | None:
        if quantity.label:
            return None if self._holds_label(quantity.label) else "absent"
        if any(reading.unit == "many" for reading in quantity.readings):
            return None if self._holds_many(quantity) else "absent"
        matches = self._matches(quantity)
        if matches is None:
            return "absent"
        if not matches:
            return "unit"
        if self._is_other_score(quantity):
            return "absent"
        if self._is_swapped(quantity, matches):
            return "counted"
        return "bound" if self._is_bound_otherwise(quantity, matches) else None

    # --- Value and unit ----------------------------------------------------------------------------------------------

    def _matches(self, quantity: Quantity) -> list[Quantity] | None:
        """The source's numbers that say the same; None where not even the value is there."""
        found: list[Quantity] = []
        has_value = False
        for reading in quantity.readings:
            for other, its in self.known.by_value.get(reading.value, ()):
                has_value = True
                if _is_same_unit(reading.unit, its.unit) and (reading.unit or reading.plain == its.plain):
                    found.append(other)
            for other, its in self.known.by_plain.get(reading.plain, ()):
                has_value = True
                if reading.unit != its.unit and self._goes_with(quantity, reading, other, its):
                    found.append(other)
        if not found and self._is_elliptic(quantity):
            return [quantity]
        if not found and self._is_one_unit(quantity):
            return [quantity]
        if not found and self._is_first(quantity):
            return [quantity]
        return found if found or has_value else None

    def _goes_with(
        self, quantity: Quantity, said: NumberMeaning, other: Quantity, its: NumberMeaning
    ) -> bool:
        """Whether numbers of the same figures but of other units can say the same."""
        if said.unit == "":
            if its.unit == "times" and its.plain >= _OFTEN:
                return True
            if _counted(self.said, quantity):
                return False
            if its.unit in {"ratio", "pp"} or its.unit.startswith("cur"):
                return _says_unit_nearby(self.said, quantity, its.unit)
            return True
        if its.unit != "":
            return said.unit == "ord" and its.unit.startswith("date:")
        if said.unit == "month":
            return said.value <= _AGE and not _counted(self.known, other)
        if said.unit == "clock":
            before = self.known.text[max(0, other.start - 8) : other.start]
            return said.value % 60 == 0 and _AT.search(before) is not None and not _counted(self.known, other)
        if said.unit.startswith("cur:"):
            # "14.8 million euros, 1.2 million more than planned".
            return (
                said.plain not in other.bare_values
                and not _counted(self.known, other)
                and _says_unit_nearby(self.known, other, said.unit)
            )
        if said.unit.startswith("date:"):
            return said.unit in self.known.months and not _counted(self.known, other)
        return False

    def _is_elliptic(self, quantity: Quantity) -> bool:
        """In "13.6 million euros were planned and 14.8 spent" unit and scale are said once for both."""
        if any(reading.unit for reading in quantity.readings) or _counted(self.said, quantity):
            return False
        scaled = {
            (reading.unit, reading.plain / said)
            for one in self.said.others_in_sentence(quantity)
            for reading in one.readings
            for said in one.bare_values
            if said and reading.plain != said
        }
        return any(
            (its.unit, its.plain / said) in scaled
            for reading in quantity.readings
            for other in self.known.by_bare_value.get(reading.plain, ())
            for its in other.readings
            for said in (reading.plain,)
            if said
        )

    def _is_one_unit(self, quantity: Quantity) -> bool:
        """One day is said by "a day" too."""
        if not any(reading.plain == 1 and reading.unit in {"s", "month"} for reading in quantity.readings):
            return False
        word = re.search(r"[^\W\d_]+$", self.said.text[quantity.start : quantity.end])
        return (
            word is not None
            and re.search(rf"\ban?\s{re.escape(word.group())}\b", self.known.text) is not None
        )

    def _is_first(self, quantity: Quantity) -> bool:
        """A first is mostly no number; it is one where the source has another place for the same thing."""
        if not any(reading.unit == "ord" and reading.value == 1 for reading in quantity.readings):
            return False
        nouns = _counted(self.said, quantity)
        others = [
            one for one in self.known.quantities if any(reading.unit == "ord" for reading in one.readings)
        ]
        return not any(_share(nouns, _counted(self.known, one)) for one in others)

    def _is_other_score(self, quantity: Quantity) -> bool:
        """Whether a result such as 4-1 has both its numbers in the source, but nowhere together."""
        for one, other in pairwise(self.said.quantities):
            if quantity not in (one, other) or not _SCORE.fullmatch(self.said.text, one.end, other.start):
                continue
            pair = [_plain_score(part) for part in (one, other)]
            if None in pair or _counted(self.said, other):
                continue
            if not all(self._matches(part) for part in (one, other)):
                # The one that isn't there is told by itself.
                continue
            if not any(set(pair) == known for known in self._neighbours()):
                return True
        return False

    def _neighbours(self) -> Iterator[set[Fraction | None]]:
        """The source's small numbers by twos: next to each other, or in one list."""
        known = self.known.quantities
        for place, one in enumerate(known):
            for other in known[place + 1 : place + _LONGEST_LIST]:
                is_close = other.start - one.end <= _LONGEST_BETWEEN
                if other is known[place + 1] or (
                    is_close and _LIST.fullmatch(self.known.text, one.end, other.start)
                ):
                    yield {_plain_score(one), _plain_score(other)}

    # --- What is counted, and what bounds it -------------------------------------------------------------------------

    def _is_swapped(self, quantity: Quantity, matches: list[Quantity]) -> bool:
        """Whether the source counts other things with this number, and these things with another one."""
        if any(reading.unit not in {"", "ord"} for reading in quantity.readings):
            return False
        nouns = _counted(self.said, quantity)
        if not nouns:
            return False
        theirs = [_counted(self.known, one) for one in matches]
        if any(not words or _share(nouns, words) or _VERBAL.search(words[0]) for words in theirs):
            return False
        values = {reading.value for reading in quantity.readings}
        return any(
            _share(nouns, _counted(self.known, one))
            for one in self.known.quantities
            if one.readings and not any(reading.value in values for reading in one.readings)
        )

    def _is_bound_otherwise(self, quantity: Quantity, matches: list[Quantity]) -> bool:
        bound = _bound(self.said, quantity)
        return bound != 0 and all(_bound(self.known, one) == -bound for one in matches)

    # --- Numbers without a value -------------------------------------------------------------------------------------

    def _holds_label(self, label: str) -> bool:
        if label in self.known.labels:
            return True
        spaced = re.escape(label).replace(r"\-", r"[\s\-]?")
        return re.search(rf"(?<!\w){spaced}(?![^\W_])", self.known.lowered) is not None

    def _holds_many(self, quantity: Quantity) -> bool:
        for reading in quantity.readings:
            most = _MANY_MOST.get(int(reading.value), reading.value * 1000)
            for other in self.known.quantities:
                for its in other.readings:
                    if its.unit == "many" and its.value == reading.value:
                        return True
                    if its.unit != "many" and 2 * reading.value <= its.plain < most:
                        return True
        return False


def _plain_score(quantity: Quantity) -> Fraction | None:
    """A small number without a unit; None for any other."""
    found = [reading for reading in quantity.readings if reading.unit == ""]
    is_small = bool(found) and len(found) == len(quantity.readings) and found[0].plain < _LARGEST_SCORE
    return found[0].plain if is_small and found[0].plain.denominator == 1 else None


def _says_unit_nearby(parsed: ParsedText, quantity: Quantity, unit: str) -> bool:
    """In "from 38 percent to 48" the unit is said once for both."""
    return any(_is_same_unit(one, unit) for one in parsed.units_beside(quantity))


def _is_same_unit(one: str, other: str) -> bool:
    if one == other:
        return True
    if one.startswith("cur:") and other.startswith("cur:"):
        pair = {one, other}
        return "cur:*" in pair or ("cur:$" in pair and bool(pair & _DOLLARS))
    return False


_DOLLARS: Final = frozenset({"cur:USD", "cur:AUD", "cur:CAD", "cur:HKD", "cur:NZD"})


def _counted(parsed: ParsedText, quantity: Quantity) -> tuple[str, ...]:
    """The words after a number that say what it counts, up to the next common word or mark."""
    words: list[str] = []
    position = quantity.end
    while len(words) < _MOST_COUNTED and (match := _WORDS_AFTER.match(parsed.text, position)):
        word = match.group(1).lower()
        if is_common(word, parsed.language):
            break
        if len(word) >= _LEAST_NOUN:
            words.append(word)
        position = match.end()
    return tuple(words)


def _share(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return any(
        word[:_SAME_STEM] == its[:_SAME_STEM] or word.startswith(its) or its.startswith(word)
        for word in one
        for its in other
    )


def _bound(parsed: ParsedText, quantity: Quantity) -> int:
    match = _BOUND.search(parsed.text[max(0, quantity.start - _LONGEST_BOUND) : quantity.start])
    return 0 if match is None else BOUNDS[(match.lastindex or 1) - 1][0]
