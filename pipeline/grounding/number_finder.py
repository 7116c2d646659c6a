"""Finds the numbers of a text, in digits and in words, without the units and other words around them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from pipeline.grounding.number_lexicon import FRACTION_SIGNS, SCALES, number_words_of

_SEPARATOR: Final = re.compile(r"[^\d]")
_GROUP_DIGITS: Final = 3
_MAX_DIGITS: Final = 60
"""A longer run of digits and separators has no value."""
_COMMA_IS_DECIMAL: Final = frozenset({"de", "fr", "es"})
Word = tuple[int, int, str, Fraction]
"""A number word with its start, end, role and value."""

_TOKEN: Final = re.compile(
    r"\d+(?:[.,\u00a0\u202f\u2009'\u2019\u066b\u066c]\d+)*|[^\W\d_]+|[" + "".join(FRACTION_SIGNS) + "]"
)
# Between two words of one number: "-", " and ", " ".
_GAP: Final = re.compile(r"(?:-|\u2011|\s+(?:(?:and|et|y|und)\s+)?|-et-)")
_MYRIADS: Final = {"兆": 10**12, "億": 10**8, "亿": 10**8, "万": 10**4, "千": 1000, "百": 100}
# "1億2000万".
_EASTERN: Final = re.compile(r"(?:\d+(?:[.,]\d+)*[兆億亿万千百]*)+")
_EASTERN_PART: Final = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?)(?![\d.,])([兆億亿万千百]{0,4})")
_MAX_EASTERN_CHARACTERS: Final = 40
"""A longer run of such characters is no number."""
_FIRST_GROUP: Final = re.compile(r"\d{1,3}")
_NEXT_GROUP: Final = re.compile(r"\d{3}(?:,\d+)?")
_MAX_GROUPS: Final = 5
"""A number of this many groups is below 10¹⁵; more three-digit numbers in a row are a list."""
_MAX_RUN_WORDS: Final = 30
"""The most words of one number, enough for "nine hundred and ninety-nine trillion …" down to the ones."""
_JOINING_WORDS: Final = frozenset({"and", "et", "y", "und"})
_HUNDRED: Final = 100
# French sums of two words: "quatre" before "vingt", and "dix" before "sept", "huit" and "neuf".
_FRENCH_PAIRS: Final = frozenset(
    (Fraction(one), Fraction(other)) for one, other in ((4, 20), (10, 7), (10, 8), (10, 9))
)


@lru_cache(maxsize=4096)
def readings(token: str, language: str) -> tuple[Fraction, ...]:
    """Return the values that a run of digits and separators can have in this language.

    Return () for a version, a date, a telephone number or the like.
    """
    if len(token) > _MAX_DIGITS:
        return ()
    digits = ascii_digits(token)
    groups = _SEPARATOR.split(digits)
    separators = _SEPARATOR.findall(digits)
    if not separators:
        return (Fraction(int(digits)),)
    whole = Fraction(int("".join(groups)))
    are_thousands = (
        all(len(group) == _GROUP_DIGITS for group in groups[1:]) and 0 < len(groups[0]) <= _GROUP_DIGITS
    )
    if len(set(separators)) == 1 and are_thousands and groups[0] != "0":
        if len(separators) > 1:
            return (whole,)
        separator = separators[0]
        decimal = Fraction(f"{groups[0]}.{groups[1]}")
        if separator == ".":
            return {"en": (decimal,), "": (whole, decimal)}.get(language, (whole,))
        if separator == "," and language in _COMMA_IS_DECIMAL:
            return (decimal,)
        return (whole,)
    if len(separators) == 1 or (len(set(separators[:-1])) == 1 and separators[-1] != separators[0]):
        if separators[-1] not in ".,\u066b":
            return ()
        return (Fraction("".join(groups[:-1]) + "." + groups[-1]),)
    return ()


def ascii_digits(token: str) -> str:
    """Return the token with every script's digits as ASCII digits."""
    if token.isascii():
        return token
    return "".join(
        str(unicodedata.digit(character)) if character.isdigit() else character for character in token
    )


@dataclass(slots=True)
class BareNumber:
    """A number without the unit and other words around it."""

    start: int
    end: int
    values: tuple[Fraction, ...]
    role: str
    """`digits`, `words`, `ordinal`, `part`, `ordinal_or_part`, `times`, `many` or `sign`."""


class NumberFinder:
    """Finds the numbers of a text, in order."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language
        self.scales = SCALES[language]

    def find_bare_numbers(self) -> list[BareNumber]:
        """Return the text's numbers without their units, in order: in digits, words and fraction signs."""
        atoms = number_words_of(self.language)
        cores: list[BareNumber] = []
        words: list[Word] = []
        for match in _TOKEN.finditer(self.text):
            token = match.group()
            if token[0].isdigit():
                self._add_word_numbers(words, cores)
                if cores and match.start() < cores[-1].end:
                    continue
                cores.append(self._read_eastern(match) or self._read_digits(match))
            elif token in FRACTION_SIGNS:
                self._add_word_numbers(words, cores)
                self._add_fraction_sign(match, cores)
            else:
                lower = token.lower()
                number_word = atoms.get(lower)
                if number_word is None:
                    if words and lower not in _JOINING_WORDS:
                        self._add_word_numbers(words, cores)
                    continue
                words.append((match.start(), match.end(), *number_word))
                if number_word[0] == "point" and len(words) == 1:
                    words.clear()
        self._add_word_numbers(words, cores)
        return self._join_digit_groups(cores)

    def _read_digits(self, match: re.Match[str]) -> BareNumber:
        return BareNumber(match.start(), match.end(), readings(match.group(), self.language), "digits")

    def _read_eastern(self, match: re.Match[str]) -> BareNumber | None:
        """Return digits with Chinese or Japanese scales, as in 1億2000万, as one number, or `None` without a scale."""
        if self.text[match.end() : match.end() + 1] not in _MYRIADS:
            return None
        whole = _EASTERN.match(self.text, match.start())
        if whole is None:
            return None
        number_text = whole.group()
        value, position = Fraction(0), 0
        while position < len(number_text):
            part_match = _EASTERN_PART.match(number_text, position)
            if part_match is None or len(number_text) > _MAX_EASTERN_CHARACTERS:
                # A version or the like, followed by a scale: it is a label without a value.
                return BareNumber(whole.start(), whole.end(), (), "digits")
            digits, signs = part_match.groups()
            position = part_match.end()
            part = Fraction(ascii_digits(digits).replace(",", ""))
            for scale in signs:
                part *= _MYRIADS[scale]
            value += part
        return BareNumber(whole.start(), whole.end(), (value,), "digits")

    def _add_fraction_sign(self, match: re.Match[str], cores: list[BareNumber]) -> None:
        value = FRACTION_SIGNS[match.group()]
        previous = cores[-1] if cores else None
        if (
            previous is not None
            and previous.role == "digits"
            and self.text[previous.end : match.start()] in {"", " ", "\u2009"}
        ):
            cores[-1] = BareNumber(
                previous.start, match.end(), tuple(whole + value for whole in previous.values), "digits"
            )
        else:
            cores.append(BareNumber(match.start(), match.end(), (value,), "sign"))

    def _join_digit_groups(self, cores: list[BareNumber]) -> list[BareNumber]:
        """Return the numbers with groups such as `10 000` joined; more groups than a number can have stay a list."""
        joined: list[BareNumber] = []
        groups: list[BareNumber] = []
        for core in cores:
            if groups and not self._is_next_group(groups[-1], core):
                joined += self._join_or_keep(groups)
                groups = []
            groups.append(core)
        return joined + self._join_or_keep(groups)

    def _is_next_group(self, last: BareNumber, core: BareNumber) -> bool:
        return (
            last.role == core.role == "digits"
            and self.text[last.end : core.start] == " "
            and _FIRST_GROUP.fullmatch(self.text, last.start, last.end) is not None
            and _NEXT_GROUP.fullmatch(self.text, core.start, core.end) is not None
        )

    def _join_or_keep(self, groups: list[BareNumber]) -> list[BareNumber]:
        if not 1 < len(groups) <= _MAX_GROUPS or groups[-1].end - groups[-1].start > _MAX_EASTERN_CHARACTERS:
            return groups
        start, end = groups[0].start, groups[-1].end
        whole = self.text[start:end].replace(" ", "").replace(",", ".")
        return [BareNumber(start, end, (Fraction(whole),), "digits")]

    def _add_word_numbers(self, words: list[Word], cores: list[BareNumber]) -> None:
        """Add the one or several numbers in a sequence of number words, and empty `words`."""
        run: list[Word] = []
        for word in words:
            if word[2] in {"ordinal", "part", "ordinal_or_part", "times", "many"}:
                if (
                    run
                    and word[2] in {"ordinal", "ordinal_or_part"}
                    and run[-1][2] == "ten"
                    and self._are_adjacent(run[-1], word)
                ):
                    # "Twenty-third".
                    start, _, _, value = run.pop()
                    self._finish_number(run, cores)
                    cores.append(BareNumber(start, word[1], (value + word[3],), "ordinal"))
                    continue
                self._finish_number(run, cores)
                cores.append(BareNumber(word[0], word[1], (word[3],), word[2]))
                continue
            if run and (len(run) == _MAX_RUN_WORDS or not self._continues_number(run, word)):
                self._finish_number(run, cores)
            if run or word[2] != "point":
                run.append(word)
        self._finish_number(run, cores)
        words.clear()

    def _are_adjacent(self, first: Word, second: Word) -> bool:
        return _GAP.fullmatch(self.text, first[1], second[0]) is not None

    def _continues_number(self, run: list[Word], word: Word) -> bool:
        """Return whether the word continues the number of the run."""
        last = run[-1]
        if not self._are_adjacent(last, word):
            return False
        joiner = self.text[last[1] : word[0]].strip(" -\u2011\n").lower()
        last_role, role = last[2], word[2]
        if joiner:
            return (
                (
                    joiner == "and"
                    and last_role in {"hundred", "scale"}
                    and role in {"unit", "ten", "hundreds"}
                )
                or (joiner == "y" and last_role == "ten" and role == "unit")
                or (joiner == "et" and last_role == "ten" and word[3] in {1, 11})
                or (joiner == "und" and last_role in {"scale", "unit"} and last[3] >= _HUNDRED)
            )
        if role in {"hundred", "scale", "dozen"}:
            return True
        if role == "point":
            return all(one[2] != "point" for one in run)
        if any(one[2] == "point" for one in run):
            # After the point decimals are spoken digit by digit.
            return role == "unit" and word[3] < 10
        if last_role == "unit":
            # "Nineteen eighty-four"; German thousands are words of their own.
            is_year = self.reads("en") and role in {"ten", "unit"} and 10 < last[3] < 100 and word[3] >= 10
            is_french = self.reads("fr") and (last[3], word[3]) in _FRENCH_PAIRS
            return is_year or is_french or (last[3] >= 1000 > word[3])
        if last_role == "ten":
            is_year = (
                self.reads("en") and (role == "ten" or (role == "unit" and word[3] >= 10)) and len(run) == 1
            )
            is_french = self.reads("fr") and role == "unit" and last[3] in {20, 60} and word[3] < 20
            return is_year or is_french or (role == "unit" and word[3] < 10)
        return True

    def _finish_number(self, run: list[Word], cores: list[BareNumber]) -> None:
        """Add the number that the words of the run make, if any, and empty the run."""
        if run and run[-1][2] == "point":
            run.pop()
        if not run:
            return
        points = [index for index, word in enumerate(run) if word[2] == "point"]
        if points:
            self._finish_spoken_decimal(run, points[0], cores)
            return
        total, current = Fraction(0), Fraction(0)
        for index, (_, _, role, value) in enumerate(run):
            if role in {"hundred", "dozen"}:
                current = (current or 1) * value
            elif role == "scale":
                total += (current or 1) * value
                current = Fraction(0)
            elif index and run[index - 1][2] in {"unit", "ten"} and self._is_year_pair(run, index):
                current = current * 100 + value
            elif index and run[index - 1][3] == 4 and value == 20:
                # "Quatre-vingt": the four already counted becomes eighty.
                current += 76
            else:
                current += value
        cores.append(BareNumber(run[0][0], run[-1][1], (total + current,), "words"))
        run.clear()

    def _finish_spoken_decimal(self, run: list[Word], point_index: int, cores: list[BareNumber]) -> None:
        """Add a spoken decimal such as "thirty-six point two"; scales follow its last digit."""
        whole_numbers: list[BareNumber] = []
        self._finish_number(run[:point_index], whole_numbers)
        digits = [word for word in run[point_index + 1 :] if word[2] == "unit"]
        scales = [word for word in run[point_index + 1 :] if word[2] != "unit"]
        value = (
            whole_numbers[0].values[0] + Fraction("0." + "".join(str(int(word[3])) for word in digits))
            if digits
            else whole_numbers[0].values[0]
        )
        for scale in scales:
            value *= scale[3]
        cores.append(BareNumber(run[0][0], run[-1][1], (value,), "words"))
        run.clear()

    def _is_year_pair(self, run: list[Word], index: int) -> bool:
        """Return whether the word at the index is the second half of an English year: "nineteen eighty-four"."""
        previous, current = run[index - 1], run[index]
        if not self.reads("en") or current[3] < 10:
            return False
        return previous[3] >= 10 and index == 1

    def reads(self, language: str) -> bool:
        """Return whether the text is in this language, or may be."""
        return self.language in {language, ""}
