"""Where a text has numbers, in digits and in words, before anybody looks at what stands around them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from pipeline.grounding.number_lexicon import FRACTION_SIGNS, SCALES, number_words_of

_SEPARATOR: Final = re.compile(r"[^\d]")
_GROUP: Final = 3
_MAX_DIGITS: Final = 60
_COMMA_IS_DECIMAL: Final = frozenset({"de", "fr", "es"})
Word = tuple[int, int, str, Fraction]
"""A word of a number: its place, its role and its value."""

_TOKEN: Final = re.compile(
    r"\d+(?:[.,\u00a0\u202f\u2009'\u2019\u066b\u066c]\d+)*|[^\W\d_]+|[" + "".join(FRACTION_SIGNS) + "]"
)
_GAP: Final = re.compile(r"(?:-|\u2011|\s+(?:(?:and|et|y|und)\s+)?|-et-)")
_MYRIADS: Final = {"兆": 10**12, "億": 10**8, "亿": 10**8, "万": 10**4, "千": 1000, "百": 100}
_EASTERN: Final = re.compile(r"(?:\d+(?:[.,]\d+)*[兆億亿万千百]*)+")
_EASTERN_PART: Final = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?)(?![\d.,])([兆億亿万千百]{0,4})")
_EASTERN_MOST: Final = 40
"""Characters of such a number: what is longer is none."""
_FIRST_GROUP: Final = re.compile(r"\d{1,3}")
_NEXT_GROUP: Final = re.compile(r"\d{3}(?:,\d+)?")
_GROUPS_MOST: Final = 5
"""Groups of one number, which is less than 10¹⁵ then: more three-digit numbers in a row are a list."""
_RUN_MOST: Final = 30
"""Words of one number: "nine hundred and ninety-nine trillion …" down to the ones."""
_JOINING: Final = frozenset({"and", "et", "y", "und"})
_HUNDRED: Final = 100
_FRENCH_PAIRS: Final = frozenset(
    (Fraction(one), Fraction(other)) for one, other in ((4, 20), (10, 7), (10, 8), (10, 9))
)


@lru_cache(maxsize=4096)
def readings(token: str, language: str) -> tuple[Fraction, ...]:
    """The values of a run of digits and separators; none where it is a version, a date or a telephone number."""
    if len(token) > _MAX_DIGITS:
        return ()
    digits = ascii_digits(token)
    groups = _SEPARATOR.split(digits)
    separators = _SEPARATOR.findall(digits)
    if not separators:
        return (Fraction(int(digits)),)
    whole = Fraction(int("".join(groups)))
    are_thousands = all(len(group) == _GROUP for group in groups[1:]) and 0 < len(groups[0]) <= _GROUP
    if len(set(separators)) == 1 and are_thousands and groups[0] != "0":
        if len(separators) > 1:
            return (whole,)
        mark = separators[0]
        decimal = Fraction(f"{groups[0]}.{groups[1]}")
        if mark == ".":
            return {"en": (decimal,), "": (whole, decimal)}.get(language, (whole,))
        if mark == "," and language in _COMMA_IS_DECIMAL:
            return (decimal,)
        return (whole,)
    if len(separators) == 1 or (len(set(separators[:-1])) == 1 and separators[-1] != separators[0]):
        if separators[-1] not in ".,\u066b":
            return ()
        return (Fraction("".join(groups[:-1]) + "." + groups[-1]),)
    return ()


def ascii_digits(token: str) -> str:
    if token.isascii():
        return token
    return "".join(str(unicodedata.digit(sign)) if sign.isdigit() else sign for sign in token)


@dataclass(slots=True)
class BareNumber:
    """A number without what stands around it."""

    start: int
    end: int
    values: tuple[Fraction, ...]
    role: str
    """`digits`, `words`, `ordinal`, `part`, `ordinal_or_part`, `times`, `many` or `sign`."""


class NumberFinder:
    """Finds the numbers of a text in order."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language
        self.scales = SCALES[language]

    def find_bare_numbers(self) -> list[BareNumber]:
        atoms = number_words_of(self.language)
        cores: list[BareNumber] = []
        words: list[Word] = []
        for match in _TOKEN.finditer(self.text):
            token = match.group()
            if token[0].isdigit():
                self._close(words, cores)
                if cores and match.start() < cores[-1].end:
                    continue
                cores.append(self._eastern(match) or self._digits(match))
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
                if found[0] == "point" and len(words) == 1:
                    words.clear()
        self._close(words, cores)
        return self._joined_groups(cores)

    def _digits(self, match: re.Match[str]) -> BareNumber:
        return BareNumber(match.start(), match.end(), readings(match.group(), self.language), "digits")

    def _eastern(self, match: re.Match[str]) -> BareNumber | None:
        """Digits with the scales of Chinese and Japanese between them: 1億2000万."""
        if self.text[match.end() : match.end() + 1] not in _MYRIADS:
            return None
        whole = _EASTERN.match(self.text, match.start())
        if whole is None:
            return None
        written = whole.group()
        value, position = Fraction(0), 0
        while position < len(written):
            match_part = _EASTERN_PART.match(written, position)
            if match_part is None or len(written) > _EASTERN_MOST:
                # A version or the like, with a sign behind: it is a label.
                return BareNumber(whole.start(), whole.end(), (), "digits")
            digits, signs = match_part.groups()
            position = match_part.end()
            part = Fraction(ascii_digits(digits).replace(",", ""))
            for sign in signs:
                part *= _MYRIADS[sign]
            value += part
        return BareNumber(whole.start(), whole.end(), (value,), "digits")

    def _join_sign(self, match: re.Match[str], cores: list[BareNumber]) -> None:
        value = FRACTION_SIGNS[match.group()]
        last = cores[-1] if cores else None
        if (
            last is not None
            and last.role == "digits"
            and self.text[last.end : match.start()] in {"", " ", "\u2009"}
        ):
            cores[-1] = BareNumber(
                last.start, match.end(), tuple(one + value for one in last.values), "digits"
            )
        else:
            cores.append(BareNumber(match.start(), match.end(), (value,), "sign"))

    def _joined_groups(self, cores: list[BareNumber]) -> list[BareNumber]:
        """`10 000` with a plain space is one number, in English too; more groups than a number has are a list."""
        joined: list[BareNumber] = []
        groups: list[BareNumber] = []
        for core in cores:
            if groups and not self._is_next_group(groups[-1], core):
                joined += self._one_of(groups)
                groups = []
            groups.append(core)
        return joined + self._one_of(groups)

    def _is_next_group(self, last: BareNumber, core: BareNumber) -> bool:
        return (
            last.role == core.role == "digits"
            and self.text[last.end : core.start] == " "
            and _FIRST_GROUP.fullmatch(self.text, last.start, last.end) is not None
            and _NEXT_GROUP.fullmatch(self.text, core.start, core.end) is not None
        )

    def _one_of(self, groups: list[BareNumber]) -> list[BareNumber]:
        if not 1 < len(groups) <= _GROUPS_MOST or groups[-1].end - groups[-1].start > _EASTERN_MOST:
            return groups
        start, end = groups[0].start, groups[-1].end
        whole = self.text[start:end].replace(" ", "").replace(",", ".")
        return [BareNumber(start, end, (Fraction(whole),), "digits")]

    def _close(self, words: list[Word], cores: list[BareNumber]) -> None:
        """Number words that follow each other, as one number or as several."""
        run: list[Word] = []
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
                    cores.append(BareNumber(start, word[1], (value + word[3],), "ordinal"))
                    continue
                self._end_run(run, cores)
                cores.append(BareNumber(word[0], word[1], (word[3],), word[2]))
                continue
            if run and (len(run) == _RUN_MOST or not self._continues(run, word)):
                self._end_run(run, cores)
            if run or word[2] != "point":
                run.append(word)
        self._end_run(run, cores)
        words.clear()

    def _touch(self, one: Word, other: Word) -> bool:
        return _GAP.fullmatch(self.text, one[1], other[0]) is not None

    def _continues(self, run: list[Word], word: Word) -> bool:
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
        if role == "point":
            return all(one[2] != "point" for one in run)
        if any(one[2] == "point" for one in run):
            # Digit by digit.
            return role == "unit" and word[3] < 10
        if before == "unit":
            # "Nineteen eighty-four"; German thousands are words of their own.
            is_year = self.reads("en") and role in {"ten", "unit"} and 10 < last[3] < 100 and word[3] >= 10
            is_french = self.reads("fr") and (last[3], word[3]) in _FRENCH_PAIRS
            return is_year or is_french or (last[3] >= 1000 > word[3])
        if before == "ten":
            is_year = (
                self.reads("en") and (role == "ten" or (role == "unit" and word[3] >= 10)) and len(run) == 1
            )
            is_french = self.reads("fr") and role == "unit" and last[3] in {20, 60} and word[3] < 20
            return is_year or is_french or (role == "unit" and word[3] < 10)
        return True

    def _end_run(self, run: list[Word], cores: list[BareNumber]) -> None:
        if run and run[-1][2] == "point":
            run.pop()
        if not run:
            return
        points = [place for place, word in enumerate(run) if word[2] == "point"]
        if points:
            self._end_spoken(run, points[0], cores)
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
        cores.append(BareNumber(run[0][0], run[-1][1], (total + current,), "words"))
        run.clear()

    def _end_spoken(self, run: list[Word], point: int, cores: list[BareNumber]) -> None:
        """Such as "thirty-six point two"; scales follow the last digit."""
        whole: list[BareNumber] = []
        self._end_run(run[:point], whole)
        digits = [word for word in run[point + 1 :] if word[2] == "unit"]
        scales = [word for word in run[point + 1 :] if word[2] != "unit"]
        value = (
            whole[0].values[0] + Fraction("0." + "".join(str(int(word[3])) for word in digits))
            if digits
            else whole[0].values[0]
        )
        for scale in scales:
            value *= scale[3]
        cores.append(BareNumber(run[0][0], run[-1][1], (value,), "words"))
        run.clear()

    def _is_century(self, run: list[Word], place: int) -> bool:
        before, now = run[place - 1], run[place]
        if not self.reads("en") or now[3] < 10:
            return False
        return before[3] >= 10 and place == 1

    def reads(self, language: str) -> bool:
        """Whether the text is in this language, or may be."""
        return self.language in {language, ""}
