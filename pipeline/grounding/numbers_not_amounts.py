"""Recognises numbers that aren't amounts: dates, times, telephone numbers, versions, names, list marks."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from pipeline.grounding.number_finder import BareNumber, NumberFinder, ascii_digits
from pipeline.grounding.number_lexicon import MONTHS, units
from pipeline.grounding.parsed_numbers import NumberMeaning, Quantity
from pipeline.grounding.quantity_patterns import LAST_DAY_OF_MONTH

# Letters right before a number: "A", "COVID-".
_LABEL_BEFORE: Final = re.compile(r"[A-Za-z\u00c0-\u058f]+\Z|\b[^\W\d_]*[A-Z][^\W_]*-\Z")
_ORDINAL_END: Final = re.compile(r"(?:st|nd|rd|th|ste|te|er|ère|re|ème|e|º|ª|\.º|o)\b")
# "14:30", "14 h 30", "2 p.m.", "14 Uhr 30".
_CLOCK: Final = re.compile(
    r"(?P<h>[01]?\d|2[0-4])(?:(?P<sep>[:.]|\s?h\s?)(?P<m>[0-5]\d))?(?!\d|[:.]\d)(?:\s?(?P<half>[ap]\.?\s?m\b\.?)|(?P<uhr>\s?Uhr\b(?:\s(?P<m2>[0-5]\d)\b)?))?"
)
_ISO: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)")
# "24.12.2026", "24/12/26".
_DATE: Final = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4}|\d\d)(?!\d|[./]\d)")
# "24.12."
_SHORT_DATE: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(?!\d)")
# The end of a keycap emoji, after its digit.
_KEYCAP: Final = re.compile(r"\ufe0f?\u20e3")
_THREAD_COUNTER: Final = re.compile(r"\d{1,2}/\d{1,2}(?=[ \t]*(?:\n|$))")
_PHONE: Final = re.compile(r"\d[\d \t\u00a0\u2009\u202f().\-/\u2011\u2013]{5,22}\d(?!\d)")
"""A candidate telephone number on one line: digits (fifteen at most by ITU-T E.164) with separators."""
_MIN_PHONE_DIGITS: Final = 7
_MAX_COUNTER_SPACES: Final = 40
"""The most spaces between the end of a post and its counter."""
# Between a day and its month: " ", "th of ", ". ".
_DATE_JOIN: Final = re.compile(r"(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+)?")
_MIN_FULL_YEAR: Final = 100
"""A smaller number in "the 90s" is one of the twentieth century."""
# "US$", "EUR ".
_MONEY_BEFORE: Final = re.compile(
    r"(?:(?P<code>(?:US|A|C|HK|NZ|R)?[$€£¥₹₩₽]|\b(?:USD|EUR|GBP|CHF|AUD|CAD|JPY|INR|Rs))[ \u00a0]?)\Z"
)


class NumbersNotAmounts(NumberFinder):
    """Reads the numbers of a text that aren't amounts."""

    read_to = 0
    """The offset at which the last parsed quantity ends."""

    def money_before(self, core: BareNumber) -> re.Match[str] | None:
        """Return the currency that opens this amount, or `None` if there is none."""
        # The search begins at the end of the last quantity, because "1.20 € 7" has one price.
        return _MONEY_BEFORE.search(self.text, max(0, self.read_to, core.start - 8), core.start)

    def is_mark(self, core: BareNumber) -> bool:
        """Return whether the number only marks an item of a list or a post of a thread."""
        return _KEYCAP.match(self.text, core.end) is not None or self._is_counter(core)

    def _is_counter(self, core: BareNumber) -> bool:
        """Return whether the number belongs to the `2/5` at the end of a post of a thread."""
        start = core.start
        if self.text[start - 1 : start] == "/":
            # The number is the second one; the first has one digit or two.
            start -= (
                2
                if self.text[start - 2 : start - 1].isdigit()
                and not self.text[start - 3 : start - 2].isdigit()
                else 3
            )
        counter = _THREAD_COUNTER.match(self.text, max(0, start))
        if counter is None:
            return False
        begin = max(0, start - _MAX_COUNTER_SPACES)
        before = self.text[begin : max(0, start)].rstrip(" ")
        return before[-1] in '\n.!?\u2026"\u201d)' if before else begin == 0

    def date_or_clock(self, core: BareNumber) -> Quantity | None:
        """Return the date, time or telephone number that the number begins, or `None`."""
        text, start = self.text, core.start
        iso = _ISO.match(text, start)
        if iso:
            year, month, day = (Fraction(int(ascii_digits(part))) for part in iso.groups())
            return Quantity(
                start, iso.end(), [NumberMeaning(day, f"date:{month}", day), NumberMeaning(year, "", year)]
            )
        numeric = _DATE.match(text, start)
        if numeric:
            first, second, date_year = (int(ascii_digits(numeric.group(group))) for group in (1, 3, 4))
            day_months = [(first, second), (second, first)] if numeric.group(2) == "/" else [(first, second)]
            if any(day <= LAST_DAY_OF_MONTH and month <= 12 for day, month in day_months):
                readings = [
                    NumberMeaning(Fraction(day), f"date:{month}", Fraction(day))
                    for day, month in day_months
                    if month <= 12
                ]
                return Quantity(
                    start,
                    numeric.end(),
                    [*readings, NumberMeaning(Fraction(date_year), "", Fraction(date_year))],
                )
        phone = _PHONE.match(text, start)
        if (
            phone
            and len(re.findall(r"\d", phone.group())) >= _MIN_PHONE_DIGITS
            and self._begins_phone_number(start)
        ):
            first = start - 1 if text[start - 1 : start] in {"+", "("} else start
            return Quantity(
                first, phone.end(), [], label="".join(re.findall(r"\d", ascii_digits(phone.group())))
            )
        short = _SHORT_DATE.match(text, start) if self.reads("de") else None
        if short and int(short.group(2)) <= 12 and 0 < int(short.group(1)) <= LAST_DAY_OF_MONTH:
            day = Fraction(int(short.group(1)))
            return Quantity(start, short.end(), [NumberMeaning(day, f"date:{int(short.group(2))}", day)])
        clock = _CLOCK.match(text, start)
        if (
            clock
            and "h" in (clock["sep"] or "")
            and (self.language == "en" or re.match(r"\s?min", text[clock.end() : clock.end() + 5]))
        ):
            clock = None
        if clock and (
            ((clock["sep"] or "").strip() in {":", "h"} and clock["m"]) or clock["half"] or clock["uhr"]
        ):
            hours, minutes = int(clock["h"]), int(clock["m"] or clock["m2"] or 0)
            half_of_day = (clock["half"] or "").lower()[:1]
            possible_hours = [hours % 12 + (12 if half_of_day == "p" else 0)] if half_of_day else [hours]
            if not half_of_day and not clock["uhr"] and hours < 12:
                possible_hours.append(hours + 12)
            readings = [
                NumberMeaning(Fraction(part * 60 + minutes), "clock", Fraction(hours))
                for part in possible_hours
            ]
            return Quantity(start, clock.end(), readings)
        return None

    def _begins_phone_number(self, start: int) -> bool:
        """Return whether the number begins a telephone number, by the mark before it or its form."""
        before = self.text[max(0, start - 1) : start]
        return (
            before in {"+", "("}
            or self.text[start] == "0"
            or re.match(r"\d{3}-\d{3}-\d{4}", self.text[start : start + 12]) is not None
        )

    def label(self, core: BareNumber) -> Quantity | None:
        """Return the label of the digits (`a380`, `3d`), or an ordinal, decade or quarter; `None` for an amount."""
        text = self.text
        before = text[max(0, core.start - 12) : core.start]
        attached = _LABEL_BEFORE.search(before)
        digits = text[core.start : core.end]
        if attached and not self.money_before(core):
            name = attached.group().lower()
            name = name if name[:-1] not in {"mid", "pre", "post"} else name[:-1]
            if name == "q" and core.values and core.values[0] <= 4:
                return Quantity(
                    core.start - 1, core.end, [NumberMeaning(core.values[0], "ord", core.values[0])]
                )
            if name not in {"v", "mid", "pre", "post"}:
                tail = re.compile(r"[^\W_]*").match(text, core.end)
                end = tail.end() if tail else core.end
                label = f"{name.rstrip('-')}-{text[core.start : end]}".lower()
                return Quantity(core.start - len(attached.group()), end, [], label=label)
        if not core.values:
            return Quantity(core.start, core.end, [], label=ascii_digits(digits))
        tail = re.compile(r"[A-Za-z\u00b2\u00b3\u00b5\u00ba\u00bc-\u058f][^\W_]*").match(text, core.end)
        if tail is None:
            return None
        letters = tail.group().lower()
        if letters in {"s", "er"} and core.values[0] >= 10 and core.values[0] % 10 == 0:
            year = core.values[0] if core.values[0] >= _MIN_FULL_YEAR else 1900 + core.values[0]
            return Quantity(core.start, tail.end(), [NumberMeaning(year, "era", year)])
        if _ORDINAL_END.fullmatch(letters):
            value = core.values[0]
            month = self.month_at(core.start, tail.end())
            readings = [NumberMeaning(value, "ord", value)]
            return Quantity(
                core.start, tail.end(), [NumberMeaning(value, f"date:{month}", value)] if month else readings
            )
        if letters in self.scales or letters in units() or letters.rstrip("²") in units():
            return None
        return Quantity(core.start, tail.end(), [], label=f"{digits}{letters}".lower())

    def month_at(self, start: int, end: int) -> int:
        """Return the month that stands after a day or before it, from 1 on, or 0 if there is none."""
        after = _DATE_JOIN.match(self.text, end)
        word = re.compile(r"[^\W\d_]+").match(self.text, after.end() if after else end)
        if word and after and (not word.group()[:1].islower() or self.language in {"fr", "es"}):
            month = MONTHS.get(word.group().lower(), 0)
            if month:
                return month
        before = re.search(r"([^\W\d_]+)\.?\s(?:the\s)?$", self.text[max(0, start - 16) : start])
        if before and before.group(1)[:1].isupper():
            return MONTHS.get(before.group(1).lower(), 0)
        return 0
