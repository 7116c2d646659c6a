"""Finds the figures of a sentence that may stand large next to it: each number as written, and what it counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.grounding.number_lexicon import MONTHS
from pipeline.grounding.quantities import parse_numbers
from pipeline.text.prose.verbatim_edits import collapse, word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeline.grounding.parsed_numbers import Quantity

_FIGURE_PARTS: Final = re.compile(
    r"(?P<value>\D*\d(?:[\d.,'\u2019\u00a0\u202f\u2009 /]*\d)?"
    r"(?:[ \u00a0](?:in|out of|of every|von|auf|sur|de cada|su)[ \u00a0]\d+)?"
    r"[\u00bc-\u00be\u2150-\u215e]?(?:\s?[%‰٪％€£$¥₹₩]|\s?°\s?[CF]?)?)(?P<rest>.*)",
    re.DOTALL,
)
_FIGURE_START: Final = re.compile(r"(?:US|A|C|HK|NZ|R)?[€$£¥₹₩]|[A-Z]{3}[ \u00a0]?\d|\d")
_MINUS_BEFORE: Final = re.compile(r"(?:(?:^|(?<=[\s(]))[-\u2212]|\b(?:minus|moins|menos|meno)\s)$")
_RANGE_JOINER: Final = re.compile(r"\s?[-\u2013\u2014]\s?|[ \u00a0](?:to|bis|à|a|zu|gegen)[ \u00a0]")
_NEXT_WORD: Final = re.compile(r"[ \n\u00a0\u202f-]([^\W\d_][\w\u2019'-]*)")
_ENUMERATION: Final = re.compile(
    r"(?:,[ \u00a0][^\W\d_][\w\u2019'-]*(?:[ \u00a0][^\W\d_][\w\u2019'-]*)?){0,4},?[ \u00a0]"
    r"(?:and|or|und|oder|et|ou|y|o|e|ed)[ \u00a0][^\W\d_]"
)
# "1 hr 50 min", "5 ft 11": one quantity in two numbers.
_BEFORE_SMALLER_UNIT: Final = re.compile(r"\.?[ \u00a0](?:(?:and|und|et|y|e|en)[ \u00a0])?(?=\d)")
_PART_BEFORE: Final = re.compile(
    r"\d[ \u00a0](?!(?:to|or|and|in|of|bis|zu|und|oder|von|auf|gegen|à|a|et|ou|sur|y|o|e|ed|de|su)\b)[^\W\d_]{1,4}\.?[ \u00a0]$"
)
_PART_BEHIND: Final = re.compile(r"\.?[ \u00a0]\d")
_WITHIN_A_WORD: Final = re.compile(r"[^\W\d_]-$")
# "for" and its translations behind a price, and the same with the words up to the end of the phrase.
_PRICE_FOR: Final = re.compile(r"[ \u00a0](?:for|per|für|pro|pour|par|para|por)[ \u00a0]")
_PRICE_OF: Final = re.compile(
    _PRICE_FOR.pattern + r"[^\W_][\w\u2019'-]*(?:[ \u00a0][^\W\d_][\w\u2019'-]*){0,2}?"
    r"(?=[.,;:!?)]|$|\s(?:and|or|und|oder|et|ou|y|o|e|ed)\s)"
)
_MONEY: Final = re.compile(r"[€$£¥₹₩]")
_UNIT_CHARACTER: Final = re.compile(r"[^\d\s.,'\u2019\u2013\u2014/+\u2212-]")
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d")
_ATTACHED_LETTER: Final = re.compile(r"\d[A-Za-z]\.?$")
_NOT_AN_AMOUNT: Final = ("date", "clock", "ord", "era")
_FIRST_EAST_ASIAN: Final = "\u2e80"
_MAX_WORDS: Final = 3
_MIN_BARE_DIGITS: Final = 3
"""A number of fewer digits without a unit or a noun says nothing."""

_NOT_NOUNS: Final = word_set(
    "about after also always before besides does goes has hers his includes is its less minus nevertheless "
    "ours pas perhaps plus remains says sometimes theirs this thus times towards unless was whereas yes yours "
    "mais alors dans depuis moins puis sans sous toujours vers très après dès hors "
    "más menos después antes tras además entonces nos les las los deles delas "
    "come dove dopo fuori prima quasi sempre oggi ieri ogni anche dalle delle nelle sulle alle degli agli negli"
)
_PLURALS: Final = word_set("people children men women feet staff police cattle sheep fish")
_ADJECTIVES: Final = word_set(
    "nouveaux nouvelles grands grandes petits petites jeunes premiers premières derniers dernières bons bonnes "
    "autres anciens anciennes nuevos nuevas grandes primeros primeras últimos últimas otros otras buenos buenas "
    "novos novas primeiros primeiras outros outras nuovi nuove grandi piccoli piccole giovani primi prime ultimi altri"
)
_WEEKDAYS: Final = word_set("montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag uhr")

_PHRASE_ENDS: Final = word_set(
    "and the are were had for but nor yet who that which from with than will can may our"
)
_NOT_ADJECTIVES: Final = word_set(
    "der die den einer eine einen keine keinen diese dieser diesen ihre ihren seine seinen unsere unter über hinter "
    "oder aber wurden wurde werden waren haben hatten sollen sollte können konnten gegen neben wegen außer weder "
    "weniger kamen gingen kosten stehen liegen leben arbeiten"
)


class Figure(NamedTuple):
    """A figure: `value` begins at offset `start` of the text, as written there; `of` is its unit or noun, or ""."""

    start: int
    value: str
    of: str

    @property
    def says_what(self) -> bool:
        """Whether the figure has a unit or a noun: "412" alone may be anything."""
        return bool(self.of) or _UNIT_CHARACTER.search(self.value) is not None


def figures_in(text: str, language: str = "") -> tuple[Figure, ...]:
    """Return the quantities written in digits, in order, a range as one.

    Dates, times, years, telephone numbers, and short numbers without a unit or a noun are left out.
    """
    parsed = parse_numbers(text, language)
    language_code = language.partition("-")[0].lower() or parsed.language
    figures: list[Figure] = []
    range_end = -1
    for quantity, compound_end in _merge_compound_units(text, parsed.quantities):
        figure = _to_figure(text, quantity, language_code, goes_on=bool(compound_end))
        if figure is None:
            continue
        if compound_end:
            figures.append(Figure(figure.start, text[figure.start : compound_end], ""))
            continue
        if figures and range_end >= 0 and _RANGE_JOINER.fullmatch(text, range_end, figure.start):
            # "3–5 %" and "7 to 2" are one figure.
            range_start = figures.pop()
            figure = Figure(
                range_start.start,
                text[range_start.start : range_end] + text[range_end : _end_of_value(figure)],
                figure.of,
            )
        figures.append(figure)
        range_end = _end_of_value(figure) if not figure.of else -1
    return tuple(
        candidate
        for candidate in figures
        if candidate.of or not candidate.value.isdecimal() or len(candidate.value) >= _MIN_BARE_DIGITS
    )


def _merge_compound_units(text: str, quantities: Sequence[Quantity]) -> Iterator[tuple[Quantity, int]]:
    """Yield each quantity with the end of its smaller unit ("1 hr 50 min"), or with 0 if it has none."""
    index = 0
    while index < len(quantities):
        quantity = quantities[index]
        index += 1
        separator = _BEFORE_SMALLER_UNIT.match(text, quantity.end)
        following = quantities[index] if separator and index < len(quantities) else None
        if (
            following is None
            or separator is None
            or following.start != separator.end()
            or not _is_part(quantity, following)
        ):
            yield quantity, 0
            continue
        index += 1
        yield quantity, following.end


def _is_part(first: Quantity, second: Quantity) -> bool:
    """Return whether `second` is a smaller amount in the same unit, as the minutes of "1 hr 50 min"."""
    if not first.readings or not second.readings:
        return False
    larger, smaller = first.readings[0], second.readings[0]
    return bool(larger.unit) and larger.unit == smaller.unit and smaller.value < larger.value


def _end_of_value(figure: Figure) -> int:
    return figure.start + len(figure.value)


def _to_figure(text: str, quantity: Quantity, language: str, *, goes_on: bool) -> Figure | None:
    """Return the quantity as a figure, or `None` if it isn't an amount, or may mean something else."""
    quantity_text = text[quantity.start : quantity.end]
    parts = _FIGURE_PARTS.fullmatch(quantity_text) if _FIGURE_START.match(quantity_text) else None
    if parts is None or quantity.label or not quantity.readings:
        return None
    unit = quantity.readings[0].unit
    before = text[max(0, quantity.start - 12) : quantity.start]
    if _WITHIN_A_WORD.search(before) or _PART_BEFORE.search(before):
        # "under-18s", or the inches of "5 ft 11".
        return None
    if unit.startswith(_NOT_AN_AMOUNT) or (not unit and _YEAR.fullmatch(quantity_text)):
        return None
    if not unit and _ATTACHED_LETTER.search(quantity_text):
        # "12B" may be a room.
        return None
    # A unit may stand on the next line.
    value, rest = parts["value"], collapse(parts["rest"]).strip(" \u00a0\u202f\u2009-")
    if rest[:1] >= _FIRST_EAST_ASIAN:
        value, rest = quantity_text, ""
    minus = _MINUS_BEFORE.search(text, max(0, quantity.start - 8), quantity.start)
    start = minus.start() if minus else quantity.start
    noun = "" if unit else _counted_noun(text, quantity.end, language)
    if _MONEY.search(value) and not rest and _PRICE_FOR.match(text, quantity.end):
        price = _PRICE_OF.match(text, quantity.end)
        if price is None:
            return None
        noun = collapse(price.group())
    behind = text[quantity.end :].removeprefix(f" {noun}") if noun else text[quantity.end :]
    if (rest or noun) and not goes_on and _PART_BEHIND.match(behind):
        return None
    return Figure(start, text[start : quantity.start] + value, " ".join(filter(None, [rest, noun])))


def _counted_noun(text: str, end: int, language: str) -> str:
    """Return the noun phrase after a number, or "" if the words may be something else or incomplete."""
    words: list[str] = []
    ends: list[int] = []
    while len(words) < _MAX_WORDS and (match := _NEXT_WORD.match(text, end)):
        words.append(match[1])
        ends.append(end := match.end())
    count_noun_words = _NOUN_COUNTERS.get(language)
    count = count_noun_words(words) if count_noun_words else 0
    # "33 carpenters, potters and builders" are not 33 carpenters.
    if (
        not count
        or _ENUMERATION.match(text, ends[count - 1])
        or any(w.lower() in MONTHS for w in words[:count])
    ):
        return ""
    return " ".join(words[:count])


def _count_english(words: list[str]) -> int:
    """Return the number of the words that make a phrase with a plural noun at its end, or 0 if none do."""
    for index, word in enumerate(words):
        if word in _NOT_NOUNS or not word.islower():
            return 0
        if word in _PLURALS or (len(word) > 3 and word[-1] == "s" and word[-2] not in "siu'\u2019"):
            return index + 1
        if word.endswith(("ed", "ing", "ly")) or len(word) <= 2 or word in _PHRASE_ENDS:
            return 0
    return 0


def _count_german(words: list[str]) -> int:
    """Return the number of the words that make a phrase with a noun, which is capitalized, at its end, or 0."""
    for index, word in enumerate(words):
        if word[0].isupper():
            return 0 if word.lower() in _WEEKDAYS else index + 1
        if not word.endswith(("e", "en", "er")) or word in _NOT_ADJECTIVES:
            return 0
    return 0


def _romance_counter(endings: str, min_length: int = 4) -> Callable[[list[str]], int]:
    """Return a counter for a Romance language, whose plural nouns end with one of `endings`."""

    def count(words: list[str]) -> int:
        for index, word in enumerate(words[:2]):
            if len(word) < min_length or word[-1] not in endings or word in _NOT_NOUNS or not word.islower():
                return 0
            if word not in _ADJECTIVES:
                return index + 1
        return 0

    return count


_NOUN_COUNTERS: Final[Mapping[str, Callable[[list[str]], int]]] = {
    "en": _count_english,
    "de": _count_german,
    "fr": _romance_counter("sx"),
    "es": _romance_counter("s"),
    "pt": _romance_counter("s"),
    "it": _romance_counter("ie"),
}
"""By language, the counter of the words after a number that name what it counts; other languages have no nouns."""
