"""Every number of a text with its unit: digits and words, shares, money, measures, dates, times, ordinals."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.grounding.lexicon import (
    ARTICLES,
    FRACTION_SIGNS,
    LONGEST_UNIT,
    MONTHS,
    SCALES,
    STRETCHING,
    atoms_of,
    language_of,
    units,
)
from pipeline.grounding.readings import ascii_digits, readings
from pipeline.links import find_links

if TYPE_CHECKING:
    from collections.abc import Iterable


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


_TOKEN: Final = re.compile(
    r"\d+(?:[.,\u00a0\u202f\u2009'\u2019\u066b\u066c]\d+)*|[^\W\d_]+|[" + "".join(FRACTION_SIGNS) + "]"
)
_LINKISH: Final = re.compile(r"://|\w\.\w")
_GAP: Final = re.compile(r"(?:-|\u2011|\s+(?:(?:and|et|y|und)\s+)?|-et-)")
_NEXT: Final = re.compile(
    r"(?P<gap>[ \t\n\u00a0\u202f\u2009]?[-\u2010\u2011]?)(?P<word>(?:US|A|C|HK|NZ|R)?[$€£¥₹₩₽]|%-points|[%‰٪]|°\s?[CF]?(?![^\W\d_])"
    r"|[^\W\d_]+[²]?(?:/h)?|[×])"
)
_BEFORE: Final = re.compile(
    r"(?:(?P<code>(?:US|A|C|HK|NZ|R)?[$€£¥₹₩₽]|\b(?:USD|EUR|GBP|CHF|AUD|CAD|JPY|INR|Rs))[ \u00a0]?)$"
)
_MINUS: Final = re.compile(r"(?:(?:^|[\s(])[-\u2212]|\b(?:minus|moins|menos)\s)$")
_LABEL_BEFORE: Final = re.compile(r"[^\W\d_]+$|\b[^\W\d_]*[A-Z][^\W_]*-$")
_ORDINAL_END: Final = re.compile(r"(?:st|nd|rd|th|ste|te|er|ère|re|ème|e|º|ª|\.º|o)\b")
_CLOCK: Final = re.compile(
    r"(?P<h>[01]?\d|2[0-4])(?:(?P<sep>[:.]|\s?h\s?)(?P<m>[0-5]\d))?(?!\d|[:.]\d)(?:\s?(?P<half>[ap]\.?\s?m\b\.?)|(?P<uhr>\s?Uhr\b(?:\s(?P<m2>[0-5]\d)\b)?))?"
)
_ISO: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)")
_DATE: Final = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4}|\d\d)(?!\d|[./]\d)")
_FRACTION: Final = re.compile(r"\s?/\s?(\d{1,3})(?![\d/]|\.\d)")
_IN: Final = re.compile(
    r"\s+(?:in|in every|out of|of every|von|sur|de cada|auf|aus)\s+|\s?(?:to|:)\s?(?=\b$)"
)
_RANGE: Final = re.compile(
    r"\s*(?:[-\u2013\u2014]|to|and|or|through|bis|und|oder|à|et|ou|a|y|o|,|, and|, or)\s*(?:(?:US|A|C)?[$€£¥₹]\s?)?"
)
_DE_YEARS: Final = re.compile(r"er\s(?:Jahre|years)")
_DATE_JOIN: Final = re.compile(r"(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+)?")
_JOINING: Final = frozenset({"and", "et", "y", "und"})
_HALF_MORE: Final = re.compile(r"\s+(?:and a half|y media|et demie?|einhalb)\b")
_LARGEST_PART: Final = 100
_DAYS: Final = 31
_HUNDRED: Final = 100


def parse(text: str, language: str = "") -> Parsed:
    """The numbers of a text in order. What stands in a web address is no number of the text."""
    return _parse(text, language_of(text, language))


@lru_cache(maxsize=32)
def _parse(text: str, language: str) -> Parsed:
    said = _without_addresses(text)
    found = _Reader(said, language).read()
    parsed = Parsed(said, language, found)
    parsed.index()
    return parsed


def _without_addresses(text: str) -> str:
    """The same length, so that every place stays the same."""
    if not _LINKISH.search(text):
        return text
    parts: list[str] = []
    position = 0
    for link in find_links(text):
        parts += [text[position : link.start], " " * (link.end - link.start)]
        position = link.end
    return "".join([*parts, text[position:]])


@dataclass(slots=True)
class _Core:
    """A number without what stands around it."""

    start: int
    end: int
    values: tuple[Fraction, ...]
    role: str
    """`digits`, `words`, `ordinal`, `part`, `ordinal_or_part`, `times`, `many` or `sign`."""


class _Reader:
    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language
        self.scales = SCALES[language]

    def read(self) -> list[Quantity]:
        cores = self._cores()
        quantities: list[Quantity] = []
        ends: list[int] = []
        for place, core in enumerate(cores):
            if ends and core.start < ends[-1]:
                continue
            following = cores[place + 1] if place + 1 < len(cores) else None
            quantity = self._quantity(core, following)
            if quantity is not None:
                quantities.append(quantity)
                ends.append(quantity.end)
        self._spread(quantities)
        return quantities

    # --- Cores -------------------------------------------------------------------------------------------------------

    def _cores(self) -> list[_Core]:
        atoms = atoms_of(self.language)
        cores: list[_Core] = []
        words: list[tuple[int, int, str, Fraction]] = []
        for match in _TOKEN.finditer(self.text):
            token = match.group()
            if token[0].isdigit():
                self._close(words, cores)
                cores.append(_Core(match.start(), match.end(), readings(token, self.language), "digits"))
            elif token in FRACTION_SIGNS:
                self._close(words, cores)
                self._join_sign(match, cores)
            else:
                lower = token.lower()
                found = atoms.get(lower)
                if found is None:
                    if words and lower not in _JOINING:
                        self._close(words, cores)
                    continue
                words.append((match.start(), match.end(), *found))
        self._close(words, cores)
        return self._joined_groups(cores)

    def _join_sign(self, match: re.Match[str], cores: list[_Core]) -> None:
        value = FRACTION_SIGNS[match.group()]
        last = cores[-1] if cores else None
        if (
            last is not None
            and last.role == "digits"
            and self.text[last.end : match.start()] in {"", " ", "\u2009"}
        ):
            cores[-1] = _Core(last.start, match.end(), tuple(one + value for one in last.values), "digits")
        else:
            cores.append(_Core(match.start(), match.end(), (value,), "sign"))

    def _joined_groups(self, cores: list[_Core]) -> list[_Core]:
        """`10 000` with a plain space is one number where a language writes so."""
        if self.language == "en":
            return cores
        joined: list[_Core] = []
        for core in cores:
            last = joined[-1] if joined else None
            written = self.text[core.start : core.end]
            if (
                last is not None
                and last.role == core.role == "digits"
                and self.text[last.end : core.start] == " "
                and re.fullmatch(r"\d{3}(?:,\d+)?", written)
                and re.fullmatch(r"\d{1,3}(?: \d{3})*", self.text[last.start : last.end])
            ):
                whole = self.text[last.start : core.end].replace(" ", "").replace(",", ".")
                joined[-1] = _Core(last.start, core.end, (Fraction(whole),), "digits")
            else:
                joined.append(core)
        return joined

    def _close(self, words: list[tuple[int, int, str, Fraction]], cores: list[_Core]) -> None:
        """Number words that follow each other, as one number or as several."""
        run: list[tuple[int, int, str, Fraction]] = []
        for word in words:
            if word[2] in {"ordinal", "part", "ordinal_or_part", "times", "many"}:
                if (
                    run
                    and word[2] in {"ordinal", "ordinal_or_part"}
                    and run[-1][2] == "ten"
                    and self._touch(run[-1], word)
                ):
                    # "Twenty-third".
                    start, _, _, value = run.pop()
                    self._end_run(run, cores)
                    cores.append(_Core(start, word[1], (value + word[3],), "ordinal"))
                    continue
                self._end_run(run, cores)
                cores.append(_Core(word[0], word[1], (word[3],), word[2]))
                continue
            if run and not self._continues(run, word):
                self._end_run(run, cores)
            run.append(word)
        self._end_run(run, cores)
        words.clear()

    def _touch(self, one: tuple[int, int, str, Fraction], other: tuple[int, int, str, Fraction]) -> bool:
        return _GAP.fullmatch(self.text, one[1], other[0]) is not None

    def _continues(
        self, run: list[tuple[int, int, str, Fraction]], word: tuple[int, int, str, Fraction]
    ) -> bool:
        last = run[-1]
        if not self._touch(last, word):
            return False
        gap = self.text[last[1] : word[0]].strip(" -\u2011\n").lower()
        before, role = last[2], word[2]
        if gap:
            return (
                (gap == "and" and before in {"hundred", "scale"} and role in {"unit", "ten", "hundreds"})
                or (gap == "y" and before == "ten" and role == "unit")
                or (gap == "et" and before == "ten" and word[3] in {1, 11})
                or (gap == "und" and before in {"scale", "unit"} and last[3] >= _HUNDRED)
            )
        if role in {"hundred", "scale", "dozen"}:
            return True
        if before == "unit":
            # "Nineteen eighty-four"; German thousands are words of their own.
            is_year = self._reads("en") and role in {"ten", "unit"} and 10 < last[3] < 100 and word[3] >= 10
            is_french = self._reads("fr") and (last[3], word[3]) in _FRENCH_PAIRS
            return is_year or is_french or (last[3] >= 1000 > word[3])
        if before == "ten":
            is_year = (
                self._reads("en") and (role == "ten" or (role == "unit" and word[3] >= 10)) and len(run) == 1
            )
            is_french = self._reads("fr") and role == "unit" and last[3] in {20, 60} and word[3] < 20
            return is_year or is_french or (role == "unit" and word[3] < 10)
        return True

    def _end_run(self, run: list[tuple[int, int, str, Fraction]], cores: list[_Core]) -> None:
        if not run:
            return
        total, current = Fraction(0), Fraction(0)
        for place, (_, _, role, value) in enumerate(run):
            if role in {"hundred", "dozen"}:
                current = (current or 1) * value
            elif role == "scale":
                total += (current or 1) * value
                current = Fraction(0)
            elif place and run[place - 1][2] in {"unit", "ten"} and self._is_century(run, place):
                current = current * 100 + value
            elif place and run[place - 1][3] == 4 and value == 20:
                # "Quatre-vingt".
                current += 76
            else:
                current += value
        cores.append(_Core(run[0][0], run[-1][1], (total + current,), "words"))
        run.clear()

    def _is_century(self, run: list[tuple[int, int, str, Fraction]], place: int) -> bool:
        before, now = run[place - 1], run[place]
        if not self._reads("en") or now[3] < 10:
            return False
        return before[3] >= 10 and place == 1

    def _reads(self, language: str) -> bool:
        """Whether the text is in this language, or may be."""
        return self.language in {language, ""}

    # --- What stands around a number ---------------------------------------------------------------------------------

    def _quantity(self, core: _Core, following: _Core | None) -> Quantity | None:
        if core.role == "digits":
            special = self._date_or_clock(core) or self._label(core)
            if special is not None:
                return special
        if core.role in {"part", "ordinal_or_part", "ordinal"} and not self._is_part(core):
            return self._ordinal(core)
        if core.role in {"part", "ordinal_or_part"}:
            return self._share(core.start, core.end, Fraction(1) / core.values[0])
        if core.role in {"times", "many"}:
            return Quantity(core.start, core.end, [Reading(one, core.role, one) for one in core.values])
        pair = self._pair(core, following)
        return pair if pair is not None else self._measured(core)

    def _is_part(self, core: _Core) -> bool:
        """Whether a word such as "third" names a part rather than a place."""
        if core.role == "ordinal":
            return False
        word = self.text[core.start : core.end].lower()
        before = re.search(r"([^\W\d_]+)[\s-]*$", self.text[max(0, core.start - 14) : core.start])
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
        after = _NEXT.match(self.text, core.end)
        return after is None or after["word"].lower() in _AFTER_A_PART

    def _share(self, start: int, end: int, value: Fraction) -> Quantity:
        """A part of something: of a unit ("half an hour"), of a scale ("half a million"), or a share."""
        found = [Reading(value, "ratio", value)]
        tail = re.compile(r"(?:\s+(?:of\s+)?an?|\s+d'une?|-|\s+(?:einer|eine|ein|une?|una?))?\s*").match(
            self.text, end
        )
        position = tail.end() if tail else end
        word = re.compile(r"[^\W\d_]+").match(self.text, position)
        if word and position > end:
            scale = self.scales.get(word.group().lower())
            if scale and len(word.group()) > 3:
                core = _Core(start, word.end(), (value * scale,), "words")
                return self._measured(core)
            meaning = units().get(word.group().lower())
            if meaning and meaning[0][0] in {"s", "month", "m", "g", "l"}:
                found += [Reading(value * factor, unit, value) for unit, factor in meaning]
                end = word.end()
        return Quantity(start, end, found, said=frozenset({value}))

    def _pair(self, core: _Core, following: _Core | None) -> Quantity | None:
        """`3/4`, "one in five", "two thirds"."""
        if not core.values or core.values[0].denominator != 1:
            return None
        if core.role == "digits":
            slash = _FRACTION.match(self.text, core.end)
            if (
                slash
                and 0 < core.values[0] < int(slash.group(1)) <= _LARGEST_PART
                and self.text[core.start - 1 : core.start] != "/"
            ):
                return self._share(core.start, slash.end(), core.values[0] / int(slash.group(1)))
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
                return self._share(core.start, following.end, core.values[0] / following.values[0])
            return None
        joins = _IN.fullmatch(gap)
        if joins is None or following.role not in {"digits", "words"} or core.role not in {"digits", "words"}:
            return None
        small, large = core.values[0], following.values[0]
        if not 0 < small < large <= _LARGEST_PART or large.denominator != 1:
            return None
        tail = self._measured(following)
        if any(reading.unit for reading in tail.readings) or gap.strip() == "auf":
            return None
        return Quantity(
            core.start,
            following.end,
            [Reading(small / large, "ratio", small / large)],
            said=frozenset({small, large}),
        )

    def _ordinal(self, core: _Core) -> Quantity | None:
        tail = self.text[core.end : core.end + 7].lower()
        if tail.startswith(("-hand", "-party", "-class", "-rate", "-guess")):
            return None
        if core.role == "part":
            return None
        before = self.text[max(0, core.start - 8) : core.start].lower()
        word = self.text[core.start : core.end].lower()
        if (
            word == "second"
            and re.search(r"\b(?:per|split|every|each|a)\s$|-$", before)
            and not re.match(r"\s[a-z]", tail)
        ):
            return None
        if re.search(r"(?:^|[.!?:\n]\s*)$", before) and tail.startswith(","):
            return None
        return Quantity(core.start, core.end, [Reading(one, "ord", one) for one in core.values])

    def _date_or_clock(self, core: _Core) -> Quantity | None:
        text, start = self.text, core.start
        iso = _ISO.match(text, start)
        if iso:
            year, month, day = (Fraction(int(ascii_digits(one))) for one in iso.groups())
            return Quantity(start, iso.end(), [Reading(day, f"date:{month}", day), Reading(year, "", year)])
        numeric = _DATE.match(text, start)
        if numeric:
            first, second, of = (int(ascii_digits(numeric.group(place))) for place in (1, 3, 4))
            days = [(first, second), (second, first)] if numeric.group(2) == "/" else [(first, second)]
            if any(day <= _DAYS and month <= 12 for day, month in days):
                found = [
                    Reading(Fraction(day), f"date:{month}", Fraction(day))
                    for day, month in days
                    if month <= 12
                ]
                return Quantity(start, numeric.end(), [*found, Reading(Fraction(of), "", Fraction(of))])
        clock = _CLOCK.match(text, start)
        if clock and (
            ((clock["sep"] or "").strip() in {":", "h"} and clock["m"]) or clock["half"] or clock["uhr"]
        ):
            hours, minutes = int(clock["h"]), int(clock["m"] or clock["m2"] or 0)
            half = (clock["half"] or "").lower()[:1]
            options = [hours % 12 + (12 if half == "p" else 0)] if half else [hours]
            if not half and not clock["uhr"] and hours < 12:
                options.append(hours + 12)
            found = [Reading(Fraction(one * 60 + minutes), "clock", Fraction(hours)) for one in options]
            return Quantity(start, clock.end(), found)
        return None

    def _label(self, core: _Core) -> Quantity | None:
        text = self.text
        before = text[max(0, core.start - 12) : core.start]
        attached = _LABEL_BEFORE.search(before)
        written = text[core.start : core.end]
        if attached and not _BEFORE.search(before):
            name = attached.group().lower()
            name = name if name[:-1] not in {"mid", "pre", "post"} else name[:-1]
            if name == "q" and core.values and core.values[0] <= 4:
                return Quantity(core.start - 1, core.end, [Reading(core.values[0], "ord", core.values[0])])
            if name not in {"v", "mid", "pre", "post"}:
                tail = re.compile(r"[^\W_]*").match(text, core.end)
                end = tail.end() if tail else core.end
                label = f"{name.rstrip('-')}-{text[core.start : end]}".lower()
                return Quantity(core.start - len(attached.group()), end, [], label=label)
        if not core.values:
            return Quantity(core.start, core.end, [], label=ascii_digits(written))
        tail = re.compile(r"[^\W\d_]+[^\W_]*").match(text, core.end)
        if tail is None:
            return None
        letters = tail.group().lower()
        if letters in {"s", "er"} and core.values[0] >= 10 and core.values[0] % 10 == 0:
            year = core.values[0] if core.values[0] >= _HUNDRED else 1900 + core.values[0]
            return Quantity(core.start, tail.end(), [Reading(year, "era", year)])
        if _ORDINAL_END.fullmatch(letters):
            value = core.values[0]
            month = self._month_at(core.start, tail.end())
            found = [Reading(value, "ord", value)]
            return Quantity(
                core.start, tail.end(), [Reading(value, f"date:{month}", value)] if month else found
            )
        if letters in self.scales or letters in units() or letters.rstrip("²") in units():
            return None
        return Quantity(core.start, tail.end(), [], label=f"{written}{letters}".lower())

    def _measured(self, core: _Core) -> Quantity:
        text = self.text
        before = text[max(0, core.start - 8) : core.start]
        prefix = _BEFORE.search(before)
        values = list(core.values)
        end = core.end
        half = _HALF_MORE.match(text, end)
        if half:
            values, end = [one + Fraction(1, 2) for one in values], half.end()
        said = frozenset(values)
        scaled, also_unscaled = values, list[Reading]()
        if half or core.role != "words":
            scaled, end, also_unscaled = self._scale(values, end, has_prefix=prefix is not None)
        meanings: tuple[tuple[str, Fraction], ...] = ()
        if prefix:
            code = prefix["code"].lower()
            meanings = units().get("inr" if code == "rs" else code, ())
            # "$214 million US" and "US$ 5 dollars" say it twice.
        after, after_end = self._unit(end)
        if after and not (prefix and not after[0][0].startswith("cur")):
            meanings, end = (meanings or after), after_end
        found = [Reading(one * factor, unit, one) for one in scaled for unit, factor in meanings]
        found += also_unscaled
        if not meanings:
            month = self._month_at(core.start, core.end) if core.values and core.values[0] <= _DAYS else 0
            found += [Reading(one, f"date:{month}" if month else "", one) for one in scaled]
            if (
                self.language == "de"
                and core.role == "digits"
                and re.compile(r"\.\s+[^\W\d_]").match(text, core.end)
                and not month
            ):
                found += [Reading(one, "ord", one) for one in scaled if one <= _HUNDRED]
            if re.search(
                r"(?:\b(?:no|nr|number|platz|rank|place|nummer|numéro|número)\.?|[#№])\s?$", before.lower()
            ):
                found += [Reading(one, "ord", one) for one in scaled]
        if (
            meanings
            and meanings[0][0] in {"°C", "°F", "°"}
            and _MINUS.search(text[max(0, core.start - 7) : core.start])
        ):
            found = [Reading(-one.value, one.unit, one.plain) for one in found]
        is_article = (
            core.role == "words"
            and text[core.start : core.end].lower() in ARTICLES
            and not meanings
            and end == core.end
        )
        return Quantity(
            prefix.start() + core.start - len(before) if prefix else core.start,
            end,
            found,
            is_article=is_article,
            said=said,
        )

    def _scale(
        self, values: list[Fraction], end: int, *, has_prefix: bool
    ) -> tuple[list[Fraction], int, list[Reading]]:
        """Values with the scales that follow; a short one that could be a unit leaves both meanings."""
        unscaled: list[Reading] = []
        while match := _NEXT.match(self.text, end):
            word = match["word"]
            scale = self.scales.get(word.lower())
            if scale is None or (
                len(word) <= 2
                and match["gap"]
                and not (has_prefix or self.language == "de" or scale >= 10**9 or word.lower() == "mn")
            ):
                break
            if word.lower() in {"m", "mm", "b", "k"} and not has_prefix:
                after, _ = self._unit(match.end())
                meaning = units().get(word.lower())
                if (
                    meaning
                    and not (after and after[0][0].startswith("cur"))
                    and not (word == "M" and not match["gap"])
                ):
                    unscaled += [
                        Reading(one * factor, unit, one) for one in values for unit, factor in meaning
                    ]
            values = [one * scale for one in values]
            end = match.end()
            if self.text[end : end + 1] == "." and len(word) <= 3:
                end += 1
        return values, end, unscaled

    def _unit(self, end: int) -> tuple[tuple[tuple[str, Fraction], ...], int]:
        """The unit after a number, and where it ends; one word such as "full" may stand between."""
        words: list[str] = []
        position, found, found_end = end, (), end  # type: tuple[int, tuple[tuple[str, Fraction], ...], int]
        while len(words) < LONGEST_UNIT and (match := _NEXT.match(self.text, position)):
            word = match["word"].lower().replace("° ", "°")
            if not words and word in {"de", "d", "of", "us"} and match["gap"] != "-":
                apostrophe = 1 if word == "d" else 0
                position = match.end() + apostrophe
                if word == "us":
                    words.append("us")
                continue
            if not words and word in STRETCHING and position == end and not found:
                position = match.end()
                continue
            words.append(word)
            position = match.end()
            meaning = units().get(" ".join(words))
            if meaning is not None and not (
                len(word) == 1 and word.isalpha() and match["gap"] == "" and False
            ):
                found, found_end = meaning, position
        return found, found_end

    def _month_at(self, start: int, end: int) -> int:
        """The month that a day stands beside; 0 where none does."""
        after = _DATE_JOIN.match(self.text, end)
        word = re.compile(r"[^\W\d_]+").match(self.text, after.end() if after else end)
        if word and after and word.group()[:1].isupper() | (self.language in {"fr", "es"}):
            month = MONTHS.get(word.group().lower(), 0)
            if month:
                return month
        before = re.search(r"([^\W\d_]+)\.?\s(?:the\s)?$", self.text[max(0, start - 16) : start])
        if before and before.group(1)[:1].isupper():
            return MONTHS.get(before.group(1).lower(), 0)
        return 0

    # --- Lists and ranges --------------------------------------------------------------------------------------------

    def _spread(self, quantities: list[Quantity]) -> None:
        """In "5 to 10 million dollars", "12 or 15 percent" and "12–14 November" the first shares what the last says."""
        for place in range(len(quantities) - 2, -1, -1):
            one, other = quantities[place], quantities[place + 1]
            joins = _RANGE.fullmatch(self.text, one.end, other.start) if other.start >= one.end else None
            if joins is None or one.label or other.label or not one.readings or not other.readings:
                continue
            if all(reading.unit == "" for reading in one.readings):
                self._share_unit(one, other)
            elif all(reading.unit == "" for reading in other.readings):
                self._hand_on_unit(one, other)
                if one.readings[0].unit.startswith("cur"):
                    self._share_unit(one, other)
            elif one.readings[0].unit.startswith("cur") and other.readings[0].unit == one.readings[0].unit:
                self._share_unit(one, other)

    def _share_unit(self, one: Quantity, other: Quantity) -> None:
        more: list[Reading] = []
        has_own_scale = any(reading.plain not in one.said for reading in one.readings)
        for reading in other.readings:
            for said in other.said:
                if not said or reading.unit in {"ord", "times", "clock"}:
                    continue
                scale = reading.plain / said
                if has_own_scale and scale != 1:
                    continue
                factor = reading.value / reading.plain if reading.plain else Fraction(1)
                more += [Reading(own * scale * factor, reading.unit, own * scale) for own in one.said]
        one.readings += [reading for reading in more if reading not in one.readings]

    def _hand_on_unit(self, one: Quantity, other: Quantity) -> None:
        """In "$5 to 10" and "38 percent to 48" the last shares what the first says, where nothing else is counted."""
        if re.compile(r"\s+[^\W\d_]").match(self.text, other.end) and not one.readings[0].unit.startswith(
            ("cur", "date")
        ):
            return
        more: list[Reading] = []
        for reading in one.readings:
            if reading.unit in {"ord", "times", "clock", "era"} or not reading.plain:
                continue
            factor = reading.value / reading.plain
            more += [Reading(own.plain * factor, reading.unit, own.plain) for own in other.readings]
        other.readings += [reading for reading in more if reading not in other.readings]


_FRENCH_PAIRS: Final = frozenset(
    (Fraction(one), Fraction(other)) for one, other in ((4, 20), (10, 7), (10, 8), (10, 9))
)
_AFTER_A_PART: Final = frozenset(
    [
        "of",
        "de",
        "der",
        "des",
        "du",
        "d",
        "from",
        "to",
        "in",
        "at",
        "by",
        "on",
        "over",
        "between",
        "more",
        "less",
        "than",
        "and",
        "or",
        "was",
        "were",
        "is",
        "are",
        "had",
        "have",
        "has",
        "für",
        "von",
        "vom",
        "del",
        "a",
        "que",
    ]
)


def known(quantities: Iterable[Quantity]) -> frozenset[Fraction]:
    return frozenset(reading.value for quantity in quantities for reading in quantity.readings)
