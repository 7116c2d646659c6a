"""Checks whether each number of a draft stands in its source with the same unit, and counts the same things."""

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
# " houses" after "12", "-year" after "12".
_WORDS_AFTER: Final = re.compile(r"[ \u00a0\u202f-]([^\W\d_]+(?:-[^\W\d_]+)*)")
_BOUND: Final = re.compile(
    r"\b(?:" + "|".join(f"({words})" for _, words in BOUNDS) + r")\s+(?:about\s|the\s)?$", re.IGNORECASE
)
_MAX_BOUND_CHARACTERS: Final = 24
"""The most characters before a number in which a bound is searched."""
_MAX_COUNTED_WORDS: Final = 3
_MIN_NOUN_CHARACTERS: Final = 3
_STEM_CHARACTERS: Final = 5
# The end of the range that an indefinite number can stand for: "dozens" are fewer than 120.
_MAX_OF_INDEFINITE: Final = {
    12: 120,
    100: 1_000,
    1_000: 1_000_000,
    10**6: 10**9,
    10**9: 10**12,
    10**12: 10**15,
}
_MAX_AGE_MONTHS: Final = 1_560
"""130 years: "Anna, 42," states an age without a unit."""
_TIME_PREPOSITION: Final = re.compile(r"\b(?:at|from|until|till|by|um|ab|bis|à|las?)\s$", re.IGNORECASE)
# Between the numbers of a score: "4-1", "4 to 1".
_SCORE: Final = re.compile(r"\s?[-\u2013:]\s?|\s(?:to|zu|à|a)\s")
# Between two numbers of a list: ", ", ", 3 and ".
_LIST: Final = re.compile(r"[\d\s,.\u2013-]*(?:(?:or|and|und|oder|et|ou|y|o)\s*)?(?:\d+\s*)?")
_MAX_LIST_NUMBERS: Final = 6
_MAX_LIST_GAP: Final = 120
"""The most characters between two numbers of one list."""
_MIN_OCCASIONS: Final = 20
"""The least number with "times" that counts occasions and is no factor."""
_MAX_SCORE: Final = 200
"""Larger numbers are no parts of a score."""
# The ending of a verb, which names nothing that is counted.
_VERBAL: Final = re.compile(r"(?:ed|en|ing|t|é|ée|és|ado|ada)$")


@dataclass(frozen=True)
class UnsupportedNumber:
    """A number of the draft that the source doesn't state, `draft[start:end]`, with the reason."""

    text: str
    """The number as it is written."""
    start: int
    end: int
    reason: Reason


def find_unsupported_numbers(
    draft: str,
    source: str,
    *,
    language: str = "",
    source_language: str = "",
    declared: Collection[tuple[Fraction, str]] = (),
) -> tuple[UnsupportedNumber, ...]:
    """Return the numbers of the draft that the source doesn't state with the same unit, things and bound.

    `declared` are the values and units of declared sums, which `derived_numbers` has recomputed. The languages
    decide the meaning of `1.000` and "billion"; they are guessed if they aren't given. Web addresses are skipped.
    """
    # A short draft may not show its language while its longer source does. If neither does, one reading holds for
    # both: "€1,5 Mio." is a million and a half in one language, and one and a half euros in another.
    guessed_language = language_of(source, source_language) or language_of(draft, language)
    draft_numbers = parse_numbers(draft, language or guessed_language)
    if not draft_numbers.quantities:
        return ()
    source_numbers = parse_numbers(source, source_language or guessed_language)
    checker = _NumberChecker(draft_numbers, source_numbers)
    unsupported: list[UnsupportedNumber] = []
    for quantity in draft_numbers.quantities:
        reason = checker.find_fault(quantity)
        if reason and not any((reading.value, reading.unit) in declared for reading in quantity.readings):
            text = draft[quantity.start : quantity.end]
            unsupported.append(UnsupportedNumber(text, quantity.start, quantity.end, reason))
    return tuple(unsupported)


def find_unsupported_number_texts(draft: str, source: str) -> tuple[str, ...]:
    """Return the numbers of `find_unsupported_numbers` as they are written, each once."""
    return tuple(dict.fromkeys(number.text for number in find_unsupported_numbers(draft, source)))


class _NumberChecker:
    """Compares the numbers of one draft with those of its source."""

    def __init__(self, draft: ParsedText, source: ParsedText) -> None:
        self.draft = draft
        self.source = source

    def find_fault(self, quantity: Quantity) -> Reason | None:
        """Return the reason why the source doesn't support the number, or `None` if it does.

        A word for one that is an article is always supported.
        """
        if quantity.is_article:
            return None
        reason = self._find_reason(quantity)
        if reason in {"absent", "unit"} and self._is_written_in_rest(quantity):
            return None
        return reason

    def _is_written_in_rest(self, quantity: Quantity) -> bool:
        """Return whether the unparsed end of a very long source has the number and unit word for word."""
        if not self.source.unread_text:
            return False
        number_words = self.draft.text[quantity.start : quantity.end].split()
        pattern = r"\s".join(re.escape(word) for word in number_words)
        return (
            re.search(rf"(?<![\w.,]){pattern}(?!\w|[.,]\d)", self.source.unread_text, re.IGNORECASE)
            is not None
        )

    def _find_reason(self, quantity: Quantity) -> Reason | None:
        """Return the reason why the parsed source doesn't support the number, or `None` if it does."""
        if quantity.label:
            return None if self._source_has_label(quantity.label) else "absent"
        if any(reading.unit == "many" for reading in quantity.readings):
            return None if self._source_has_indefinite(quantity) else "absent"
        matches = self._matches(quantity)
        if matches is None:
            return "absent"
        if not matches:
            return "unit"
        if self._is_unknown_score(quantity):
            return "absent"
        if self._counts_other_things(quantity, matches):
            return "counted"
        return "bound" if self._has_opposite_bound(quantity, matches) else None

    # --- Value and unit ----------------------------------------------------------------------------------------------

    def _matches(self, quantity: Quantity) -> list[Quantity] | None:
        """Return the source's numbers that can mean the same, or `None` if not even the value is there.

        A number that the source states in another way, by an ellipsis or an article, matches itself.
        """
        matches: list[Quantity] = []
        has_value = False
        for reading in quantity.readings:
            for other, other_meaning in self.source.by_value.get(reading.value, ()):
                has_value = True
                if _is_same_unit(reading.unit, other_meaning.unit) and (
                    reading.unit or reading.plain == other_meaning.plain
                ):
                    matches.append(other)
            for other, other_meaning in self.source.by_plain.get(reading.plain, ()):
                has_value = True
                if reading.unit != other_meaning.unit and self._can_mean_same(
                    quantity, reading, other, other_meaning
                ):
                    matches.append(other)
        if not matches and self._is_elliptic(quantity):
            return [quantity]
        if not matches and self._is_stated_by_article(quantity):
            return [quantity]
        if not matches and self._is_unnumbered_first(quantity):
            return [quantity]
        return matches if matches or has_value else None

    def _can_mean_same(
        self, quantity: Quantity, meaning: NumberMeaning, other: Quantity, other_meaning: NumberMeaning
    ) -> bool:
        """Return whether two numbers with the same figures but different units can mean the same."""
        if meaning.unit == "":
            if other_meaning.unit == "times" and other_meaning.plain >= _MIN_OCCASIONS:
                return True
            if _counted_nouns(self.draft, quantity):
                return False
            if other_meaning.unit in {"ratio", "pp"} or other_meaning.unit.startswith("cur"):
                return _has_unit_nearby(self.draft, quantity, other_meaning.unit)
            return True
        if other_meaning.unit != "":
            return meaning.unit == "ord" and other_meaning.unit.startswith("date:")
        if meaning.unit == "month":
            return meaning.value <= _MAX_AGE_MONTHS and not _counted_nouns(self.source, other)
        if meaning.unit == "clock":
            text_before = self.source.text[max(0, other.start - 8) : other.start]
            return (
                meaning.value % 60 == 0
                and _TIME_PREPOSITION.search(text_before) is not None
                and not _counted_nouns(self.source, other)
            )
        if meaning.unit.startswith("cur:"):
            # "14.8 million euros, 1.2 million more than planned" states the currency once.
            return (
                meaning.plain not in other.bare_values
                and not _counted_nouns(self.source, other)
                and _has_unit_nearby(self.source, other, meaning.unit)
            )
        if meaning.unit.startswith("date:"):
            return meaning.unit in self.source.months and not _counted_nouns(self.source, other)
        return False

    def _is_elliptic(self, quantity: Quantity) -> bool:
        """Return whether unit and scale stand once for two numbers: "13.6 million euros were planned, 14.8 spent"."""
        if any(reading.unit for reading in quantity.readings) or _counted_nouns(self.draft, quantity):
            return False
        scaled = {
            (reading.unit, reading.plain / bare_value)
            for neighbour in self.draft.others_in_sentence(quantity)
            for reading in neighbour.readings
            for bare_value in neighbour.bare_values
            if bare_value and reading.plain != bare_value
        }
        return any(
            (other_meaning.unit, other_meaning.plain / bare_value) in scaled
            for reading in quantity.readings
            for other in self.source.by_bare_value.get(reading.plain, ())
            for other_meaning in other.readings
            for bare_value in (reading.plain,)
            if bare_value
        )

    def _is_stated_by_article(self, quantity: Quantity) -> bool:
        """Return whether the source states one of a unit with an article, as in "a day"."""
        if not any(reading.plain == 1 and reading.unit in {"s", "month"} for reading in quantity.readings):
            return False
        word = re.search(r"[^\W\d_]+$", self.draft.text[quantity.start : quantity.end])
        return (
            word is not None
            and re.search(rf"\ban?\s{re.escape(word.group())}\b", self.source.text) is not None
        )

    def _is_unnumbered_first(self, quantity: Quantity) -> bool:
        """Return whether the number is a "first" for which the source has no other ordinal of the same things."""
        if not any(reading.unit == "ord" and reading.value == 1 for reading in quantity.readings):
            return False
        nouns = _counted_nouns(self.draft, quantity)
        other_ordinals = [
            ordinal
            for ordinal in self.source.quantities
            if any(reading.unit == "ord" for reading in ordinal.readings)
        ]
        return not any(_share_word(nouns, _counted_nouns(self.source, ordinal)) for ordinal in other_ordinals)

    def _is_unknown_score(self, quantity: Quantity) -> bool:
        """Return whether a result such as 4-1 has both its numbers in the source, but nowhere together."""
        for first, second in pairwise(self.draft.quantities):
            if quantity not in (first, second) or not _SCORE.fullmatch(
                self.draft.text, first.end, second.start
            ):
                continue
            pair = [_plain_score(part) for part in (first, second)]
            if None in pair or _counted_nouns(self.draft, second):
                continue
            if not all(self._matches(part) for part in (first, second)):
                # A number that the source lacks is reported on its own.
                continue
            if not any(set(pair) == known for known in self._number_pairs()):
                return True
        return False

    def _number_pairs(self) -> Iterator[set[Fraction | None]]:
        """Yield pairs of the source's numbers that are next to each other or in one list; `None` is no score."""
        quantities = self.source.quantities
        for index, first in enumerate(quantities):
            for second in quantities[index + 1 : index + _MAX_LIST_NUMBERS]:
                is_close = second.start - first.end <= _MAX_LIST_GAP
                if second is quantities[index + 1] or (
                    is_close and _LIST.fullmatch(self.source.text, first.end, second.start)
                ):
                    yield {_plain_score(first), _plain_score(second)}

    # --- Counted things and bounds -----------------------------------------------------------------------------------

    def _counts_other_things(self, quantity: Quantity, matches: list[Quantity]) -> bool:
        """Return whether the source counts other things with this number, and its things with another one."""
        if any(reading.unit not in {"", "ord"} for reading in quantity.readings):
            return False
        nouns = _counted_nouns(self.draft, quantity)
        if not nouns:
            return False
        source_nouns = [_counted_nouns(self.source, candidate) for candidate in matches]
        if any(not words or _share_word(nouns, words) or _VERBAL.search(words[0]) for words in source_nouns):
            return False
        values = {reading.value for reading in quantity.readings}
        return any(
            _share_word(nouns, _counted_nouns(self.source, candidate))
            for candidate in self.source.quantities
            if candidate.readings and not any(reading.value in values for reading in candidate.readings)
        )

    def _has_opposite_bound(self, quantity: Quantity, matches: list[Quantity]) -> bool:
        """Return whether the source bounds all matches in the opposite direction: "at least", "at most"."""
        draft_bound = _bound_before(self.draft, quantity)
        return draft_bound != 0 and all(
            _bound_before(self.source, match) == -draft_bound for match in matches
        )

    # --- Numbers without a value -------------------------------------------------------------------------------------

    def _source_has_label(self, label: str) -> bool:
        """Return whether the source has a name with digits such as "A380", also with a hyphen or a space."""
        if label in self.source.labels:
            return True
        spaced = re.escape(label).replace(r"\-", r"[\s\-]?")
        return re.search(rf"(?<!\w){spaced}(?![^\W_])", self.source.lowered) is not None

    def _source_has_indefinite(self, quantity: Quantity) -> bool:
        """Return whether the source has this indefinite number ("thousands") or one that it can stand for."""
        for reading in quantity.readings:
            maximum = _MAX_OF_INDEFINITE.get(int(reading.value), reading.value * 1000)
            for other in self.source.quantities:
                for meaning in other.readings:
                    if meaning.unit == "many" and meaning.value == reading.value:
                        return True
                    if meaning.unit != "many" and 2 * reading.value <= meaning.plain < maximum:
                        return True
        return False


def _plain_score(quantity: Quantity) -> Fraction | None:
    """Return the value of a small whole number without a unit, or `None` for any other."""
    meanings = [reading for reading in quantity.readings if reading.unit == ""]
    is_small = bool(meanings) and len(meanings) == len(quantity.readings) and meanings[0].plain < _MAX_SCORE
    return meanings[0].plain if is_small and meanings[0].plain.denominator == 1 else None


def _has_unit_nearby(parsed: ParsedText, quantity: Quantity, unit: str) -> bool:
    """Return whether another number of the sentence has the unit, as in "from 38 percent to 48"."""
    return any(_is_same_unit(nearby_unit, unit) for nearby_unit in parsed.units_in_sentence(quantity))


def _is_same_unit(unit: str, other: str) -> bool:
    if unit == other:
        return True
    if unit.startswith("cur:") and other.startswith("cur:"):
        pair = {unit, other}
        return "cur:*" in pair or ("cur:$" in pair and bool(pair & _DOLLARS))
    return False


_DOLLARS: Final = frozenset({"cur:USD", "cur:AUD", "cur:CAD", "cur:HKD", "cur:NZD"})


def _counted_nouns(parsed: ParsedText, quantity: Quantity) -> tuple[str, ...]:
    """Return the words after a number that may name the counted things, up to the next function word or mark."""
    words: list[str] = []
    position = quantity.end
    while len(words) < _MAX_COUNTED_WORDS and (match := _WORDS_AFTER.match(parsed.text, position)):
        word = match.group(1).lower()
        if is_common(word, parsed.language):
            break
        if len(word) >= _MIN_NOUN_CHARACTERS:
            words.append(word)
        position = match.end()
    return tuple(words)


def _share_word(words: tuple[str, ...], other_words: tuple[str, ...]) -> bool:
    """Return whether a word of each has the same stem, or one of them begins with the other."""
    return any(
        word[:_STEM_CHARACTERS] == other_word[:_STEM_CHARACTERS]
        or word.startswith(other_word)
        or other_word.startswith(word)
        for word in words
        for other_word in other_words
    )


def _bound_before(parsed: ParsedText, quantity: Quantity) -> int:
    """Return 1 or -1 if the words before the number bound it from below or above, else 0."""
    match = _BOUND.search(parsed.text[max(0, quantity.start - _MAX_BOUND_CHARACTERS) : quantity.start])
    return 0 if match is None else BOUNDS[(match.lastindex or 1) - 1][0]
