"""Figures of a sentence that may stand large beside it: a number as it is written, and the words for what it counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.grounding.number_lexicon import MONTHS
from pipeline.grounding.quantities import parse_numbers
from pipeline.text.prose.verbatim_edits import collapse, word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeline.grounding.parsed_numbers import Quantity

_PARTS: Final = re.compile(
    r"(?P<value>\D*\d(?:[\d.,'\u2019\u00a0\u202f\u2009 /]*\d)?"
    r"(?:[ \u00a0](?:in|out of|of every|von|auf|sur|de cada|su)[ \u00a0]\d+)?"
    r"[\u00bc-\u00be\u2150-\u215e]?(?:\s?[%‰٪％€£$¥₹₩]|\s?°\s?[CF]?)?)(?P<rest>.*)",
    re.DOTALL,
)
_BEGINS: Final = re.compile(r"(?:US|A|C|HK|NZ|R)?[€$£¥₹₩]|[A-Z]{3}[ \u00a0]?\d|\d")
_MINUS: Final = re.compile(r"(?:(?:^|(?<=[\s(]))[-\u2212]|\b(?:minus|moins|menos|meno)\s)$")
_JOINS: Final = re.compile(r"\s?[-\u2013\u2014]\s?|[ \u00a0](?:to|bis|à|a|zu|gegen)[ \u00a0]")
_WORD: Final = re.compile(r"[ \n\u00a0\u202f-]([^\W\d_][\w\u2019'-]*)")
_OTHERS_TOO: Final = re.compile(
    r"(?:,[ \u00a0][^\W\d_][\w\u2019'-]*(?:[ \u00a0][^\W\d_][\w\u2019'-]*)?){0,4},?[ \u00a0]"
    r"(?:and|or|und|oder|et|ou|y|o|e|ed)[ \u00a0][^\W\d_]"
)
# "1 hr 50 min", "5 ft 11": one quantity in two numbers.
_GOES_ON: Final = re.compile(r"\.?[ \u00a0](?:(?:and|und|et|y|e|en)[ \u00a0])?(?=\d)")
_PART_BEFORE: Final = re.compile(
    r"\d[ \u00a0](?!(?:to|or|and|in|of|bis|zu|und|oder|von|auf|gegen|à|a|et|ou|sur|y|o|e|ed|de|su)\b)[^\W\d_]{1,4}\.?[ \u00a0]$"
)
_PART_BEHIND: Final = re.compile(r"\.?[ \u00a0]\d")
_WITHIN_A_WORD: Final = re.compile(r"[^\W\d_]-$")
# Whom or what a price is for, where the phrase ends there.
_PRICE_FOR: Final = re.compile(r"[ \u00a0](?:for|per|für|pro|pour|par|para|por)[ \u00a0]")
_PRICE_OF: Final = re.compile(
    _PRICE_FOR.pattern + r"[^\W_][\w\u2019'-]*(?:[ \u00a0][^\W\d_][\w\u2019'-]*){0,2}?"
    r"(?=[.,;:!?)]|$|\s(?:and|or|und|oder|et|ou|y|o|e|ed)\s)"
)
_MONEY: Final = re.compile(r"[€$£¥₹₩]")
_SAYS_WHAT: Final = re.compile(r"[^\d\s.,'\u2019\u2013\u2014/+\u2212-]")
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d")
_ATTACHED_LETTER: Final = re.compile(r"\d[A-Za-z]\.?$")
_OTHER_THAN_HOW_MUCH: Final = ("date", "clock", "ord", "era")
_FIRST_EASTERN: Final = "\u2e80"
_WORDS_MOST: Final = 3
_LEAST_DIGITS: Final = 3
"""A shorter number with nothing beside it says nothing."""

_NO_NOUNS: Final = word_set(
    "about after also always before besides does goes has hers his includes is its less minus nevertheless "
    "ours pas perhaps plus remains says sometimes theirs this thus times towards unless was whereas yes yours "
    "mais alors dans depuis moins puis sans sous toujours vers très après dès hors "
    "más menos después antes tras además entonces nos les las los deles delas "
    "come dove dopo fuori prima quasi sempre oggi ieri ogni anche dalle delle nelle sulle alle degli agli negli"
)
_PLURALS: Final = word_set("people children men women feet staff police cattle sheep fish")
_BEFORE_A_NOUN: Final = word_set(
    "nouveaux nouvelles grands grandes petits petites jeunes premiers premières derniers dernières bons bonnes "
    "autres anciens anciennes nuevos nuevas grandes primeros primeras últimos últimas otros otras buenos buenas "
    "novos novas primeiros primeiras outros outras nuovi nuove grandi piccoli piccole giovani primi prime ultimi altri"
)
_WEEKDAYS: Final = word_set("montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag uhr")

_ENDS_A_PHRASE: Final = word_set(
    "and the are were had for but nor yet who that which from with than will can may our"
)
_NO_ADJECTIVES: Final = word_set(
    "der die den einer eine einen keine keinen diese dieser diesen ihre ihren seine seinen unsere unter über hinter "
    "oder aber wurden wurde werden waren haben hatten sollen sollte können konnten gegen neben wegen außer weder "
    "weniger kamen gingen kosten stehen liegen leben arbeiten"
)


class Figure(NamedTuple):
    """`value` begins at `start` of the sentence, as it is written there; `of` may be empty."""

    start: int
    value: str
    of: str

    @property
    def says_what(self) -> bool:
        """Whether one sees what it counts: "412" alone may be anything."""
        return bool(self.of) or _SAYS_WHAT.search(self.value) is not None


def figures_in(text: str, language: str = "") -> tuple[Figure, ...]:
    """The quantities that are written in digits, in their order; dates, times, years and telephone numbers are none."""
    parsed = parse_numbers(text, language)
    tongue = language.partition("-")[0].lower() or parsed.language
    found: list[Figure] = []
    end = -1
    for quantity, more in _whole(text, parsed.quantities):
        figure = _figure(text, quantity, tongue, goes_on=bool(more))
        if figure is None:
            continue
        if more:
            found.append(Figure(figure.start, text[figure.start : more], ""))
            continue
        if found and end >= 0 and _JOINS.fullmatch(text, end, figure.start):
            # "3–5 %" and "7 to 2" are one.
            first = found.pop()
            figure = Figure(first.start, text[first.start : end] + text[end : _end(figure)], figure.of)
        found.append(figure)
        end = _end(figure) if not figure.of else -1
    return tuple(
        one for one in found if one.of or not one.value.isdecimal() or len(one.value) >= _LEAST_DIGITS
    )


def _whole(text: str, quantities: Sequence[Quantity]) -> Iterator[tuple[Quantity, int]]:
    """The quantities, and where one ends that goes on in a smaller unit ("1 hr 50 min"); 0 for others."""
    place = 0
    while place < len(quantities):
        one = quantities[place]
        place += 1
        more = _GOES_ON.match(text, one.end)
        following = quantities[place] if more and place < len(quantities) else None
        if following is None or more is None or following.start != more.end() or not _is_part(one, following):
            yield one, 0
            continue
        place += 1
        yield one, following.end


def _is_part(one: Quantity, other: Quantity) -> bool:
    if not one.readings or not other.readings:
        return False
    whole, part = one.readings[0], other.readings[0]
    return bool(whole.unit) and whole.unit == part.unit and part.value < whole.value


def _end(figure: Figure) -> int:
    return figure.start + len(figure.value)


def _figure(text: str, quantity: Quantity, language: str, *, goes_on: bool) -> Figure | None:
    written = text[quantity.start : quantity.end]
    parts = _PARTS.fullmatch(written) if _BEGINS.match(written) else None
    if parts is None or quantity.label or not quantity.readings:
        return None
    unit = quantity.readings[0].unit
    before = text[max(0, quantity.start - 12) : quantity.start]
    if _WITHIN_A_WORD.search(before) or _PART_BEFORE.search(before):
        # "under-18s"; the inches of "5 ft 11".
        return None
    if unit.startswith(_OTHER_THAN_HOW_MUCH) or (not unit and _YEAR.fullmatch(written)):
        return None
    if not unit and _ATTACHED_LETTER.search(written):
        # "12B" may be a room.
        return None
    # A unit may stand in the next line.
    value, rest = parts["value"], collapse(parts["rest"]).strip(" \u00a0\u202f\u2009-")
    if rest[:1] >= _FIRST_EASTERN:
        value, rest = written, ""
    sign = _MINUS.search(text, max(0, quantity.start - 8), quantity.start)
    start = sign.start() if sign else quantity.start
    noun = "" if unit else _counted(text, quantity.end, language)
    if _MONEY.search(value) and not rest and _PRICE_FOR.match(text, quantity.end):
        price = _PRICE_OF.match(text, quantity.end)
        if price is None:
            return None
        noun = collapse(price.group())
    behind = text[quantity.end :].removeprefix(f" {noun}") if noun else text[quantity.end :]
    if (rest or noun) and not goes_on and _PART_BEHIND.match(behind):
        return None
    return Figure(start, text[start : quantity.start] + value, " ".join(filter(None, [rest, noun])))


def _counted(text: str, end: int, language: str) -> str:
    """The noun phrase right behind a number; empty where the words there may be something else, or not all of it."""
    words: list[str] = []
    ends: list[int] = []
    while len(words) < _WORDS_MOST and (match := _WORD.match(text, end)):
        words.append(match[1])
        ends.append(end := match.end())
    names = _NOUNS.get(language)
    count = names(words) if names else 0
    # "33 carpenters, potters and builders" are not 33 carpenters.
    if (
        not count
        or _OTHERS_TOO.match(text, ends[count - 1])
        or any(w.lower() in MONTHS for w in words[:count])
    ):
        return ""
    return " ".join(words[:count])


def _english(words: list[str]) -> int:
    for place, word in enumerate(words):
        if word in _NO_NOUNS or not word.islower():
            return 0
        if word in _PLURALS or (len(word) > 3 and word[-1] == "s" and word[-2] not in "siu'\u2019"):
            return place + 1
        if word.endswith(("ed", "ing", "ly")) or len(word) <= 2 or word in _ENDS_A_PHRASE:
            return 0
    return 0


def _german(words: list[str]) -> int:
    for place, word in enumerate(words):
        if word[0].isupper():
            return 0 if word.lower() in _WEEKDAYS else place + 1
        if not word.endswith(("e", "en", "er")) or word in _NO_ADJECTIVES:
            return 0
    return 0


def _romance(endings: str, least: int = 4) -> Callable[[list[str]], int]:
    def count(words: list[str]) -> int:
        for place, word in enumerate(words[:2]):
            if len(word) < least or word[-1] not in endings or word in _NO_NOUNS or not word.islower():
                return 0
            if word not in _BEFORE_A_NOUN:
                return place + 1
        return 0

    return count


_NOUNS: Final[Mapping[str, Callable[[list[str]], int]]] = {
    "en": _english,
    "de": _german,
    "fr": _romance("sx"),
    "es": _romance("s"),
    "pt": _romance("s"),
    "it": _romance("ie"),
}
"""How many words of those behind a number name what it counts, by language; of others nothing is shown."""
