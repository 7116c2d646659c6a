"""A `QuantityReader` turns a text into its quantities: each number with the unit, the scale and the range around it.

Units are counted in one base each: durations and ages in seconds or months, lengths in metres, money in its currency.
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
from pipeline.grounding.parsed_numbers import NumberMeaning, Quantity
from pipeline.grounding.quantity_patterns import (
    ABBREVIATION_CONTINUES,
    EASTERN_FACTORS,
    EASTERN_FIRST_CHARACTERS,
    EASTERN_UNITS,
    FRACTION,
    LARGEST_GERMAN_ORDINAL,
    LAST_DAY_OF_MONTH,
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
from pipeline.grounding.special_numbers import SpecialNumbers


class QuantityReader(SpecialNumbers):
    """Reads one text: the finder gives its numbers, the special ones are sorted out, the others get their units."""

    def read(self) -> list[Quantity]:
        """The quantities in the order of the text, none of which overlap."""
        cores = self.find_bare_numbers()
        quantities: list[Quantity] = []
        ends: list[int] = []
        for place, core in enumerate(cores):
            if ends and core.start < ends[-1]:
                continue
            following = cores[place + 1] if place + 1 < len(cores) else None
            quantity = self._quantity_at(core, following)
            if quantity is not None:
                quantities.append(quantity)
                ends.append(quantity.end)
                self.read_to = quantity.end
        self._copy_units(quantities)
        return quantities

    # --- What stands around a number ---------------------------------------------------------------------------------

    def _quantity_at(self, core: BareNumber, following: BareNumber | None) -> Quantity | None:
        """The quantity of one number, `following` being the next in the text; None where it is no quantity."""
        if core.role == "digits":
            if self.is_mark(core):
                return None
            special = self.date_or_clock(core) or self.label(core)
            if special is not None:
                return special
        if core.role in {"part", "ordinal_or_part", "ordinal"} and not self._is_part(core):
            return self._ordinal(core)
        if core.role in {"part", "ordinal_or_part"}:
            return self._read_share(core.start, core.end, Fraction(1) / core.values[0])
        if core.role in {"times", "many"}:
            return Quantity(core.start, core.end, [NumberMeaning(one, core.role, one) for one in core.values])
        pair = self._pair(core, following)
        return pair if pair is not None else self._measured(core)

    def _is_part(self, core: BareNumber) -> bool:
        """Whether a word such as "third" names a part rather than a place."""
        if core.role == "ordinal":
            return False
        word = self.text[core.start : core.end].lower()
        before = re.search(r"([^\W\d_]+)[\s-]*$", self.text[max(0, core.start - WINDOW_OF_WORD) : core.start])
        said = before.group(1).lower() if before else ""
        if word in {"half", "hälfte", "moitié", "mitad"}:
            return said not in {
                "first",
                "second",
                "other",
                "latter",
                "ersten",
                "zweiten",
                "erste",
                "zweite",
                "première",
                "seconde",
                "primera",
                "segunda",
            }
        if core.role == "part" and word not in {"quarter", "viertel", "quart", "quarts", "tiers"}:
            return True
        if said not in ARTICLES | {"a"}:
            return False
        after = NEXT.match(self.text, core.end)
        return after is None or after["word"].lower() in WORDS_AFTER_FRACTION

    def _read_share(self, start: int, end: int, value: Fraction) -> Quantity:
        """A part of something: of a unit ("half an hour"), of a scale ("half a million"), or a share."""
        found = [NumberMeaning(value, "ratio", value)]
        more = (
            UNIT_AND_A_HALF.search(self.text[max(0, start - WINDOW_OF_AND_A_HALF) : start])
            if value == Fraction(1, 2)
            else None
        )
        meaning = units().get(more.group(1).lower()) if more else None
        if more and meaning:
            # "A year and a half".
            said = value + 1
            return Quantity(
                start - len(more.group()),
                end,
                [NumberMeaning(said * factor, unit, said) for unit, factor in meaning],
            )
        tail = re.compile(r"(?:\s+(?:of\s+)?an?|\s+d'une?|-|\s+(?:einer|eine|ein|une?|una?))?\s*").match(
            self.text, end
        )
        position = tail.end() if tail else end
        word = re.compile(r"[^\W\d_]+").match(self.text, position)
        if word and position > end:
            scale = self.scales.get(word.group().lower())
            if scale and len(word.group()) > 3:
                core = BareNumber(start, word.end(), (value * scale,), "words")
                return self._measured(core)
            meaning, unit_end = self._unit(position)
            if not meaning:
                meaning, unit_end = units().get(word.group().lower(), ()), word.end()
            if meaning and meaning[0].unit in {"s", "month", "m", "g", "l", "pp", "ratio"}:
                found += [NumberMeaning(value * factor, unit, value) for unit, factor in meaning]
                end = unit_end
        return Quantity(start, end, found, bare_values=frozenset({value}))

    def _pair(self, core: BareNumber, following: BareNumber | None) -> Quantity | None:
        """`3/4`, "one in five", "two thirds"."""
        if not core.values or core.values[0].denominator != 1:
            return None
        if core.role == "digits":
            slash = FRACTION.match(self.text, core.end)
            if (
                slash
                and 0 < core.values[0] < int(slash.group(1)) <= MAX_SHARE_OF
                and self.text[core.start - 1 : core.start] != "/"
            ):
                return self._read_share(core.start, slash.end(), core.values[0] / int(slash.group(1)))
        if following is None or not following.values:
            return None
        gap = self.text[core.end : following.start]
        if following.role in {"part", "ordinal_or_part"}:
            is_close = re.fullmatch(r"[\s-]{1,2}", gap) is not None
            word = self.text[following.start : following.end].lower()
            is_one = core.values[0] == 1
            plural = word.endswith("s") or self.language == "de"
            if (
                is_close
                and (plural or is_one)
                and core.values[0] < following.values[0]
                and (not is_one or self._is_part(following))
            ):
                return self._read_share(core.start, following.end, core.values[0] / following.values[0])
            return None
        joins = SHARE_JOIN.fullmatch(gap)
        if joins is None or following.role not in {"digits", "words"} or core.role not in {"digits", "words"}:
            return None
        small, large = core.values[0], following.values[0]
        if not 0 < small < large <= MAX_SHARE_OF or large.denominator != 1:
            return None
        tail = self._measured(following)
        if any(reading.unit for reading in tail.readings) or gap.strip() == "auf":
            return None
        return Quantity(
            core.start,
            following.end,
            [NumberMeaning(small / large, "ratio", small / large)],
            bare_values=frozenset({small, large}),
        )

    def _ordinal(self, core: BareNumber) -> Quantity | None:
        """A place in an order; None where the word is none, as in "second-hand" or "per second"."""
        tail = self.text[core.end : core.end + WINDOW_AFTER_ORDINAL].lower()
        if tail.startswith(("-hand", "-party", "-class", "-rate", "-guess")):
            return None
        if core.role == "part":
            return None
        before = self.text[max(0, core.start - WINDOW_BEFORE) : core.start].lower()
        word = self.text[core.start : core.end].lower()
        if (
            word == "second"
            and re.search(r"\b(?:per|split|every|each|a)\s$|-$", before)
            and not re.match(r"\s[a-z]", tail)
        ):
            return None
        if re.search(r"(?:^|[.!?:\n]\s*)$", before) and tail.startswith(","):
            return None
        return Quantity(core.start, core.end, [NumberMeaning(one, "ord", one) for one in core.values])

    def _measured(self, core: BareNumber) -> Quantity:
        """A number with the half, the scale, the money and the unit that stand at it."""
        text = self.text
        before = text[max(0, core.start - WINDOW_BEFORE) : core.start]
        prefix = self.money_before(core)
        values = list(core.values)
        end = core.end
        half = NUMBER_AND_A_HALF.match(text, end)
        if half:
            values, end = [one + Fraction(1, 2) for one in values], half.end()
        said = frozenset(values)
        scaled, also_unscaled = values, list[NumberMeaning]()
        if half or core.role != "words":
            scaled, end, also_unscaled = self._scale(values, end, has_prefix=prefix is not None)
        meanings: tuple[UnitMeaning, ...] = ()
        if prefix:
            code = prefix["code"].lower()
            meanings = units().get("inr" if code == "rs" else code, ())
            # "$214 million US" and "US$ 5 dollars" say it twice.
        after, after_end = self._unit(end)
        if after and not (prefix and not after[0].unit.startswith("cur")):
            meanings, end = (meanings or after), after_end
        found = [NumberMeaning(one * factor, unit, one) for one in scaled for unit, factor in meanings]
        found += also_unscaled
        if not meanings:
            month = (
                self.month_at(core.start, core.end)
                if core.values and core.values[0] <= LAST_DAY_OF_MONTH
                else 0
            )
            found += [NumberMeaning(one, f"date:{month}" if month else "", one) for one in scaled]
            if (
                self.language == "de"
                and core.role == "digits"
                and WORD_AFTER_FULL_STOP.match(text, core.end)
                and not month
            ):
                found += [NumberMeaning(one, "ord", one) for one in scaled if one <= LARGEST_GERMAN_ORDINAL]
            if PLACE_BEFORE.search(before.lower()):
                found += [NumberMeaning(one, "ord", one) for one in scaled]
        if (
            meanings
            and meanings[0].unit in {"°C", "°F", "°"}
            and MINUS.search(text[max(0, core.start - WINDOW_OF_MINUS) : core.start])
        ):
            found = [NumberMeaning(-one.value, one.unit, one.plain) for one in found]
        is_article = (
            core.role == "words"
            and text[core.start : core.end].lower() in ARTICLES
            and (not meanings or self._is_a_while(meanings))
        )
        return Quantity(
            prefix.start() if prefix else core.start,
            end,
            found,
            is_article=is_article,
            bare_values=said,
        )

    def _is_a_while(self, meanings: tuple[UnitMeaning, ...]) -> bool:
        """In "un an", where the word for one is the article, nothing is counted."""
        return meanings[0].unit in {"s", "month"} and self.language != "en"

    def _scale(
        self, values: list[Fraction], end: int, *, has_prefix: bool
    ) -> tuple[list[Fraction], int, list[NumberMeaning]]:
        """Values with the scales that follow; a short one that could be a unit leaves both meanings."""
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
                after, _ = self._unit(match.end())
                meaning = units().get(word.lower())
                if (
                    meaning
                    and not (after and after[0].unit.startswith("cur"))
                    and not (word == "M" and not match["gap"])
                ):
                    unscaled += [
                        NumberMeaning(one * factor, unit, one) for one in values for unit, factor in meaning
                    ]
            values = [one * scale for one in values]
            end = match.end()
            if self.text[end : end + 1] == "." and len(word) <= 3:
                end += 1
        return values, end, unscaled

    def _unit(self, end: int) -> tuple[tuple[UnitMeaning, ...], int]:
        """The unit after a number, and where it ends; one word such as "full" may stand between."""
        if self.text[end : end + 1] in EASTERN_FIRST_CHARACTERS:
            for word, unit in EASTERN_UNITS.items():
                if self.text.startswith(word, end):
                    return (UnitMeaning(unit, EASTERN_FACTORS.get(word, Fraction(1))),), end + len(word)
        words: list[str] = []
        position, found_end = end, end
        found: tuple[UnitMeaning, ...] = ()
        while len(words) < MAX_UNIT_WORDS and (match := NEXT.match(self.text, position)):
            word = match["word"].lower().replace("° ", "°")
            if not words and word in {"de", "d", "of", "us"} and match["gap"] != "-":
                apostrophe = 1 if word == "d" else 0
                position = match.end() + apostrophe
                if word == "us":
                    words.append("us")
                continue
            if not words and word in UNIT_MODIFIERS and position == end and not found:
                position = match.end()
                continue
            if len(word) == 1 and ABBREVIATION_CONTINUES.match(self.text, match.end()):
                # "p.m." is no pence, and the first letter of "m.p.h." no metres.
                break
            words.append(word)
            position = match.end()
            meaning = units().get(" ".join(words))
            if meaning is not None:
                found, found_end = meaning, position
        return found, found_end

    # --- Lists and ranges --------------------------------------------------------------------------------------------

    def _copy_units(self, quantities: list[Quantity]) -> None:
        """In "5 to 10 million dollars", "12 or 15 percent" and "12–14 November" the first shares what the last says."""
        for place in range(len(quantities) - 2, -1, -1):
            one, other = quantities[place], quantities[place + 1]
            joins = RANGE.fullmatch(self.text, one.end, other.start) if other.start >= one.end else None
            if joins is None or one.label or other.label or not one.readings or not other.readings:
                continue
            if all(reading.unit == "" for reading in one.readings):
                self._copy_unit_back(one, other)
            elif all(reading.unit == "" for reading in other.readings):
                self._copy_unit_on(one, other)
                if one.readings[0].unit.startswith("cur"):
                    self._copy_unit_back(one, other)
            elif one.readings[0].unit.startswith("cur") and other.readings[0].unit == one.readings[0].unit:
                self._copy_unit_back(one, other)

    def _copy_unit_back(self, one: Quantity, other: Quantity) -> None:
        """In "5 to 10 million dollars" the first shares scale and unit of the last."""
        more: list[NumberMeaning] = []
        has_own_scale = any(reading.plain not in one.bare_values for reading in one.readings)
        for reading in other.readings:
            for said in other.bare_values:
                if not said or reading.unit in {"ord", "times", "clock"}:
                    continue
                scale = reading.plain / said
                if has_own_scale and scale != 1:
                    continue
                factor = reading.value / reading.plain if reading.plain else Fraction(1)
                more += [
                    NumberMeaning(own * scale * factor, reading.unit, own * scale) for own in one.bare_values
                ]
        _add(one, more)

    def _copy_unit_on(self, one: Quantity, other: Quantity) -> None:
        """In "$5 to 10" and "38 percent to 48" the last shares what the first says, where nothing else is counted."""
        if WORD_AFTER.match(self.text, other.end) and not one.readings[0].unit.startswith(("cur", "date")):
            return
        more: list[NumberMeaning] = []
        for reading in one.readings:
            if reading.unit in {"ord", "times", "clock", "era"} or not reading.plain:
                continue
            factor = reading.value / reading.plain
            more += [NumberMeaning(own.plain * factor, reading.unit, own.plain) for own in other.readings]
        _add(other, more)


def _add(quantity: Quantity, more: list[NumberMeaning]) -> None:
    """Give a quantity further readings, each once, up to `MAX_READINGS`."""
    quantity.readings = list(dict.fromkeys([*quantity.readings, *more]))[:MAX_READINGS]
