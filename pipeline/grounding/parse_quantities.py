"""Reads the quantities of a text: each number with the unit, the scale and the range around it.

Units have base units: durations and ages are in seconds or months, lengths in metres, money in its currency.
"""

from __future__ import annotations

import re
from fractions import Fraction

from pipeline.grounding.number_finder import BareNumber
from pipeline.grounding.number_lexicon import (
    ARTICLES,
    MAX_UNIT_WORDS,
    UNIT_MODIFIERS,
    WORDS_AFTER_FRACTION,
    UnitMeaning,
    units,
)
from pipeline.grounding.numbers_not_amounts import NumbersNotAmounts
from pipeline.grounding.parsed_numbers import NumberMeaning, Quantity
from pipeline.grounding.quantity_patterns import (
    ABBREVIATION_CONTINUES,
    EASTERN_FACTORS,
    EASTERN_FIRST_CHARACTERS,
    EASTERN_UNITS,
    FRACTION,
    LAST_DAY_OF_MONTH,
    MAX_GERMAN_ORDINAL,
    MAX_READINGS,
    MAX_SCALES,
    MAX_SHARE_OF,
    MINUS,
    NEXT,
    NUMBER_AND_A_HALF,
    PLACE_BEFORE,
    RANGE,
    SHARE_JOIN,
    UNIT_AND_A_HALF,
    WINDOW_AFTER_ORDINAL,
    WINDOW_BEFORE,
    WINDOW_OF_AND_A_HALF,
    WINDOW_OF_MINUS,
    WINDOW_OF_WORD,
    WORD_AFTER,
    WORD_AFTER_FULL_STOP,
)
from pipeline.text.prose.verbatim_edits import word_set

_BEFORE_NUMBERED_HALF = word_set(
    "first second other latter ersten zweiten erste zweite première seconde primera segunda"
)
"""Words before a half that is no fraction: "the second half"."""


class QuantityReader(NumbersNotAmounts):
    """Reads the quantities of one text; numbers that aren't amounts, such as dates, come first."""

    def read(self) -> list[Quantity]:
        """Return the quantities in the order of the text; none overlap."""
        numbers = self.find_bare_numbers()
        quantities: list[Quantity] = []
        ends: list[int] = []
        for index, bare in enumerate(numbers):
            if ends and bare.start < ends[-1]:
                continue
            following = numbers[index + 1] if index + 1 < len(numbers) else None
            quantity = self._quantity_at(bare, following)
            if quantity is not None:
                quantities.append(quantity)
                ends.append(quantity.end)
                self.read_to = quantity.end
        self._share_units(quantities)
        return quantities

    def _quantity_at(self, bare: BareNumber, following: BareNumber | None) -> Quantity | None:
        """Return the quantity of one number, or `None` if it is none; `following` is the next number."""
        if bare.role == "digits":
            if self.is_mark(bare):
                return None
            special = self.date_or_clock(bare) or self.label(bare)
            if special is not None:
                return special
        if bare.role in {"part", "ordinal_or_part", "ordinal"} and not self._is_fraction_word(bare):
            return self._ordinal_quantity(bare)
        if bare.role in {"part", "ordinal_or_part"}:
            return self._read_share(bare.start, bare.end, Fraction(1) / bare.values[0])
        if bare.role in {"times", "many"}:
            return Quantity(
                bare.start, bare.end, [NumberMeaning(value, bare.role, value) for value in bare.values]
            )
        pair = self._share_of_two(bare, following)
        return pair if pair is not None else self._measured_quantity(bare)

    def _is_fraction_word(self, bare: BareNumber) -> bool:
        """Return whether a word such as "third" is a fraction rather than an ordinal."""
        if bare.role == "ordinal":
            return False
        word = self.text[bare.start : bare.end].lower()
        before = re.search(r"([^\W\d_]+)[\s-]*$", self.text[max(0, bare.start - WINDOW_OF_WORD) : bare.start])
        word_before = before.group(1).lower() if before else ""
        if word in {"half", "hälfte", "moitié", "mitad"}:
            return word_before not in _BEFORE_NUMBERED_HALF
        if bare.role == "part" and word not in {"quarter", "viertel", "quart", "quarts", "tiers"}:
            return True
        if word_before not in ARTICLES | {"a"}:
            return False
        after = NEXT.match(self.text, bare.end)
        return after is None or after["word"].lower() in WORDS_AFTER_FRACTION

    def _read_share(self, start: int, end: int, value: Fraction) -> Quantity:
        """Return a fraction of a unit ("half an hour") or of a scale ("half a million"), or a share.

        The half of "a year and a half" is read with the year before it.
        """
        readings = [NumberMeaning(value, "ratio", value)]
        unit_before = (
            UNIT_AND_A_HALF.search(self.text[max(0, start - WINDOW_OF_AND_A_HALF) : start])
            if value == Fraction(1, 2)
            else None
        )
        meaning = units().get(unit_before.group(1).lower()) if unit_before else None
        if unit_before and meaning:
            # "A year and a half".
            total = value + 1
            return Quantity(
                start - len(unit_before.group()),
                end,
                [NumberMeaning(total * factor, unit, total) for unit, factor in meaning],
            )
        tail = re.compile(r"(?:\s+(?:of\s+)?an?|\s+d'une?|-|\s+(?:einer|eine|ein|une?|una?))?\s*").match(
            self.text, end
        )
        position = tail.end() if tail else end
        word = re.compile(r"[^\W\d_]+").match(self.text, position)
        if word and position > end:
            scale = self.scales.get(word.group().lower())
            if scale and len(word.group()) > 3:
                bare = BareNumber(start, word.end(), (value * scale,), "words")
                return self._measured_quantity(bare)
            meaning, unit_end = self._unit_after(position)
            if not meaning:
                meaning, unit_end = units().get(word.group().lower(), ()), word.end()
            if meaning and meaning[0].unit in {"s", "month", "m", "g", "l", "pp", "ratio"}:
                readings += [NumberMeaning(value * factor, unit, value) for unit, factor in meaning]
                end = unit_end
        return Quantity(start, end, readings, bare_values=frozenset({value}))

    def _share_of_two(self, bare: BareNumber, following: BareNumber | None) -> Quantity | None:
        """Return the share of two numbers (`3/4`, "one in five", "two thirds"), or `None` if they are none."""
        if not bare.values or bare.values[0].denominator != 1:
            return None
        if bare.role == "digits":
            slash = FRACTION.match(self.text, bare.end)
            if (
                slash
                and 0 < bare.values[0] < int(slash.group(1)) <= MAX_SHARE_OF
                and self.text[bare.start - 1 : bare.start] != "/"
            ):
                return self._read_share(bare.start, slash.end(), bare.values[0] / int(slash.group(1)))
        if following is None or not following.values:
            return None
        gap = self.text[bare.end : following.start]
        if following.role in {"part", "ordinal_or_part"}:
            is_close = re.fullmatch(r"[\s-]{1,2}", gap) is not None
            word = self.text[following.start : following.end].lower()
            is_one = bare.values[0] == 1
            plural = word.endswith("s") or self.language == "de"
            if (
                is_close
                and (plural or is_one)
                and bare.values[0] < following.values[0]
                and (not is_one or self._is_fraction_word(following))
            ):
                return self._read_share(bare.start, following.end, bare.values[0] / following.values[0])
            return None
        join = SHARE_JOIN.fullmatch(gap)
        if join is None or following.role not in {"digits", "words"} or bare.role not in {"digits", "words"}:
            return None
        part, whole = bare.values[0], following.values[0]
        if not 0 < part < whole <= MAX_SHARE_OF or whole.denominator != 1:
            return None
        tail = self._measured_quantity(following)
        if any(reading.unit for reading in tail.readings) or gap.strip() == "auf":
            return None
        return Quantity(
            bare.start,
            following.end,
            [NumberMeaning(part / whole, "ratio", part / whole)],
            bare_values=frozenset({part, whole}),
        )

    def _ordinal_quantity(self, bare: BareNumber) -> Quantity | None:
        """Return an ordinal, or `None` if the word isn't one here, as in "second-hand" or "per second"."""
        tail = self.text[bare.end : bare.end + WINDOW_AFTER_ORDINAL].lower()
        if tail.startswith(("-hand", "-party", "-class", "-rate", "-guess")):
            return None
        if bare.role == "part":
            return None
        before = self.text[max(0, bare.start - WINDOW_BEFORE) : bare.start].lower()
        word = self.text[bare.start : bare.end].lower()
        if (
            word == "second"
            and re.search(r"\b(?:per|split|every|each|a)\s$|-$", before)
            and not re.match(r"\s[a-z]", tail)
        ):
            return None
        if re.search(r"(?:^|[.!?:\n]\s*)$", before) and tail.startswith(","):
            return None
        return Quantity(bare.start, bare.end, [NumberMeaning(value, "ord", value) for value in bare.values])

    def _measured_quantity(self, bare: BareNumber) -> Quantity:
        """Return a number with its half ("and a half"), its scale, its currency and its unit."""
        text = self.text
        before = text[max(0, bare.start - WINDOW_BEFORE) : bare.start]
        prefix = self.money_before(bare)
        values = list(bare.values)
        end = bare.end
        half = NUMBER_AND_A_HALF.match(text, end)
        if half:
            values, end = [value + Fraction(1, 2) for value in values], half.end()
        bare_values = frozenset(values)
        scaled, also_unscaled = values, list[NumberMeaning]()
        if half or bare.role != "words":
            scaled, end, also_unscaled = self._apply_scales(values, end, has_prefix=prefix is not None)
        meanings: tuple[UnitMeaning, ...] = ()
        if prefix:
            code = prefix["code"].lower()
            meanings = units().get("inr" if code == "rs" else code, ())
            # "$214 million US" and "US$ 5 dollars" state the currency twice.
        unit_meanings, after_end = self._unit_after(end)
        if unit_meanings and not (prefix and not unit_meanings[0].unit.startswith("cur")):
            meanings, end = (meanings or unit_meanings), after_end
        readings = [NumberMeaning(one * factor, unit, one) for one in scaled for unit, factor in meanings]
        readings += also_unscaled
        if not meanings:
            month = (
                self.month_at(bare.start, bare.end)
                if bare.values and bare.values[0] <= LAST_DAY_OF_MONTH
                else 0
            )
            readings += [NumberMeaning(value, f"date:{month}" if month else "", value) for value in scaled]
            if (
                self.language == "de"
                and bare.role == "digits"
                and WORD_AFTER_FULL_STOP.match(text, bare.end)
                and not month
            ):
                readings += [NumberMeaning(one, "ord", one) for one in scaled if one <= MAX_GERMAN_ORDINAL]
            if PLACE_BEFORE.search(before.lower()):
                readings += [NumberMeaning(value, "ord", value) for value in scaled]
        if (
            meanings
            and meanings[0].unit in {"°C", "°F", "°"}
            and MINUS.search(text[max(0, bare.start - WINDOW_OF_MINUS) : bare.start])
        ):
            readings = [NumberMeaning(-reading.value, reading.unit, reading.plain) for reading in readings]
        is_article = (
            bare.role == "words"
            and text[bare.start : bare.end].lower() in ARTICLES
            and (not meanings or self._is_articled_duration(meanings))
        )
        return Quantity(
            prefix.start() if prefix else bare.start,
            end,
            readings,
            is_article=is_article,
            bare_values=bare_values,
        )

    def _is_articled_duration(self, meanings: tuple[UnitMeaning, ...]) -> bool:
        """Return whether the word for one is an article before a duration: "un an" counts nothing."""
        return meanings[0].unit in {"s", "month"} and self.language != "en"

    def _apply_scales(
        self, values: list[Fraction], end: int, *, has_prefix: bool
    ) -> tuple[list[Fraction], int, list[NumberMeaning]]:
        """Return the values with the scales after them, the end of these, and the meanings without a scale.

        Only a word that may be a unit as well, as in "5 m", has meanings without a scale.
        """
        unscaled: list[NumberMeaning] = []
        for _ in range(MAX_SCALES):
            match = NEXT.match(self.text, end)
            if match is None:
                break
            word = match["word"]
            scale = self.scales.get(word.lower())
            if scale is None or (
                len(word) <= 2
                and match["gap"]
                and not (
                    has_prefix
                    or self.language == "de"
                    or scale >= 10**9
                    or word.lower() == "mn"
                    or self.text[match.end() : match.end() + 1] in {"€", "$", "£"}
                )
            ):
                break
            if word.lower() in {"m", "mm", "b", "k"} and not has_prefix:
                unit_meanings, _ = self._unit_after(match.end())
                meaning = units().get(word.lower())
                if (
                    meaning
                    and not (unit_meanings and unit_meanings[0].unit.startswith("cur"))
                    and not (word == "M" and not match["gap"])
                ):
                    unscaled += [
                        NumberMeaning(one * factor, unit, one) for one in values for unit, factor in meaning
                    ]
            values = [value * scale for value in values]
            end = match.end()
            if self.text[end : end + 1] == "." and len(word) <= 3:
                end += 1
        return values, end, unscaled

    def _unit_after(self, end: int) -> tuple[tuple[UnitMeaning, ...], int]:
        """Return the meanings of the unit after a number, and its end; a word such as "full" may stand between."""
        if self.text[end : end + 1] in EASTERN_FIRST_CHARACTERS:
            for word, unit in EASTERN_UNITS.items():
                if self.text.startswith(word, end):
                    return (UnitMeaning(unit, EASTERN_FACTORS.get(word, Fraction(1))),), end + len(word)
        words: list[str] = []
        position, unit_end = end, end
        meanings: tuple[UnitMeaning, ...] = ()
        while len(words) < MAX_UNIT_WORDS and (match := NEXT.match(self.text, position)):
            word = match["word"].lower().replace("° ", "°")
            if not words and word in {"de", "d", "of", "us"} and match["gap"] != "-":
                apostrophe = 1 if word == "d" else 0
                position = match.end() + apostrophe
                if word == "us":
                    words.append("us")
                continue
            if not words and word in UNIT_MODIFIERS and position == end and not meanings:
                position = match.end()
                continue
            if len(word) == 1 and ABBREVIATION_CONTINUES.match(self.text, match.end()):
                # "p.m." is no pence, and the first letter of "m.p.h." no metres.
                break
            words.append(word)
            position = match.end()
            meaning = units().get(" ".join(words))
            if meaning is not None:
                meanings, unit_end = meaning, position
        return meanings, unit_end

    # --- Lists and ranges --------------------------------------------------------------------------------------------

    def _share_units(self, quantities: list[Quantity]) -> None:
        """Give both numbers of a range the unit and scale of one: "5 to 10 million dollars", "12–14 November"."""
        for index in range(len(quantities) - 2, -1, -1):
            first, last = quantities[index], quantities[index + 1]
            join = RANGE.fullmatch(self.text, first.end, last.start) if last.start >= first.end else None
            if join is None or first.label or last.label or not first.readings or not last.readings:
                continue
            if all(reading.unit == "" for reading in first.readings):
                self._share_unit_backward(first, last)
            elif all(reading.unit == "" for reading in last.readings):
                self._share_unit_forward(first, last)
                if first.readings[0].unit.startswith("cur"):
                    self._share_unit_backward(first, last)
            elif first.readings[0].unit.startswith("cur") and last.readings[0].unit == first.readings[0].unit:
                self._share_unit_backward(first, last)

    def _share_unit_backward(self, first: Quantity, last: Quantity) -> None:
        """Give the first number the scale and unit of the last: "5 to 10 million dollars"."""
        added: list[NumberMeaning] = []
        has_own_scale = any(reading.plain not in first.bare_values for reading in first.readings)
        for reading in last.readings:
            for bare_value in last.bare_values:
                if not bare_value or reading.unit in {"ord", "times", "clock"}:
                    continue
                scale = reading.plain / bare_value
                if has_own_scale and scale != 1:
                    continue
                factor = reading.value / reading.plain if reading.plain else Fraction(1)
                added += [
                    NumberMeaning(own * scale * factor, reading.unit, own * scale)
                    for own in first.bare_values
                ]
        _add_readings(first, added)

    def _share_unit_forward(self, first: Quantity, last: Quantity) -> None:
        """Give the last number the unit of the first, unless it counts something: "38 percent to 48"."""
        if WORD_AFTER.match(self.text, last.end) and not first.readings[0].unit.startswith(("cur", "date")):
            return
        added: list[NumberMeaning] = []
        for reading in first.readings:
            if reading.unit in {"ord", "times", "clock", "era"} or not reading.plain:
                continue
            factor = reading.value / reading.plain
            added += [NumberMeaning(own.plain * factor, reading.unit, own.plain) for own in last.readings]
        _add_readings(last, added)


def _add_readings(quantity: Quantity, added: list[NumberMeaning]) -> None:
    """Give a quantity further readings, each once, up to `MAX_READINGS`."""
    quantity.readings = list(dict.fromkeys([*quantity.readings, *added]))[:MAX_READINGS]
