"""Finds names of a draft, which are runs of capitalised words, that no known text contains."""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pipeline.grounding.number_lexicon import MONTHS, is_common, language_of, number_words_of, units
from pipeline.text.links import without_links

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD: Final = re.compile(r"[^\W_]+(?:[-'\u2019&.][^\W_]+)*")
# The end of a sentence or of an opening mark, before the first word of a sentence.
_SENTENCE_END: Final = re.compile(
    r"[.!?\u2026:\u201c\u201e\u00ab\"\u2022*#>\n]['\"\u2019\u201d\u00bb)\]]*\s*[-\u2013\u2014(\[\"\u201c\u201e\u00ab'\u2018]*$"
)
# Between two words of one name: " ", " of the ", ". ".
_NAME_JOINER: Final = re.compile(
    r"[ \u00a0](?:(?:of|the|de|del|la|von|van|der|du|des|and|&|y|et|und)[ \u00a0]){0,2}|\.[ \u00a0]"
)
_LATIN: Final = re.compile(r"[A-Za-z\s]")
_POSSESSIVE: Final = re.compile(r"['\u2019]s?$")
_PART_SEPARATOR: Final = re.compile(r"[-.&']")
_STEM_CHARACTERS: Final = 4
_MIN_TITLE_SHARE: Final = 0.75
"""The least share of capitalised words in a line that counts as a heading."""
_MIN_TITLE_WORDS: Final = 4
_LOOK_BACK_CHARACTERS: Final = 6
_CALENDAR: Final = frozenset(
    [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ]
)


def find_unsupported_names(draft: str, known: Iterable[str], *, language: str = "") -> tuple[str, ...]:
    """Return the names of the draft that no `known` text contains, or that the texts contain only in pieces.

    The result is a hint, not a proof. A word at the start of a sentence counts only as part of a run. In German,
    in which every noun is capitalised, only runs and abbreviations count.
    """
    text = without_links(draft)
    draft_language = language_of(text, language)
    known_texts = tuple(known)
    words, pairs, initials = _index_known_texts(known_texts)
    # In another language the days and months have other names, so those can't be compared.
    foreign = (
        _CALENDAR
        if draft_language and _is_other_language(" ".join(known_texts), draft_language)
        else frozenset()
    )
    unsupported: list[str] = []
    for run, is_first in _find_runs(text):
        name_words, opens_sentence = list(run), is_first
        if (
            (opens_sentence or draft_language == "de")
            and len(name_words) > 1
            and is_common(_normalize_word(name_words[0]), draft_language)
        ):
            name_words = name_words[1:]
            opens_sentence = False
        if len(name_words) == 1 and (
            opens_sentence or (draft_language == "de" and not name_words[0].isupper())
        ):
            continue
        normalized = [_normalize_word(word) for word in name_words]
        if all(
            len(word_form) == 1
            or word_form in units()
            or word_form in MONTHS
            or word_form in number_words_of(draft_language)
            for word_form in normalized
        ) and not any(word_form in _CALENDAR for word_form in normalized):
            # Units and numbers are compared by value elsewhere.
            continue
        if draft_language == "de" and any(
            word_form in units() or word_form in number_words_of("de") for word_form in normalized
        ):
            continue
        missing = [
            word
            for word, word_form in zip(name_words, normalized, strict=True)
            if word_form not in foreign and not _is_known(word_form, words) and word_form not in initials
        ]
        if missing or (
            len(normalized) > 1
            and draft_language != "de"
            and any(
                pair not in pairs
                and words.get(pair[0]) == words.get(pair[1]) == "capital"
                and not _CALENDAR.intersection(pair)
                for pair in itertools.pairwise(normalized)
            )
        ):
            unsupported.append(" ".join(name_words))
    return tuple(dict.fromkeys(unsupported))


def _is_other_language(text: str, language: str) -> bool:
    """Return whether the text is in another language than this one.

    An unknown language counts as another one if its script is mostly not Latin.
    """
    other = language_of(text)
    return other != language if other else len(_LATIN.findall(text)) * 2 < len(text)


def _find_runs(text: str) -> list[tuple[tuple[str, ...], bool]]:
    """Return the runs of capitalised words, each with whether it opens a sentence; headings are skipped."""
    runs: list[tuple[tuple[str, ...], bool]] = []
    for line in text.splitlines():
        matches = list(_WORD.finditer(line))
        capitalized_count = sum(match.group()[0].isupper() for match in matches)
        is_title = (
            len(matches) >= _MIN_TITLE_WORDS
            and capitalized_count >= _MIN_TITLE_SHARE * len(matches)
            and not line.rstrip().endswith(".")
        )
        if line.lstrip().startswith("#") or is_title:
            continue
        run: list[str] = []
        opens_sentence, last_end = False, 0
        for match in matches:
            word = match.group()
            is_name = (
                word[0].isupper()
                and not (len(word) == 1 and word in {"I", "A"})
                and not word.startswith(("I'", "I\u2019"))
            )
            if (
                is_name
                and run
                and _NAME_JOINER.fullmatch(line, last_end, match.start())
                and line[last_end] != "."
            ):
                run.append(word)
            else:
                if run:
                    runs.append((tuple(run), opens_sentence))
                run = [word] if is_name else []
                if is_name:
                    text_before = line[max(0, match.start() - _LOOK_BACK_CHARACTERS) : match.start()]
                    opens_sentence = (
                        not re.search(r"[^\W\d_]", line[: match.start()])
                        or _SENTENCE_END.search(text_before) is not None
                    )
            last_end = match.end()
        if run:
            runs.append((tuple(run), opens_sentence))
    return runs


@lru_cache(maxsize=32)
def _index_known_texts(
    texts: tuple[str, ...],
) -> tuple[dict[str, str], frozenset[tuple[str, str]], frozenset[str]]:
    """Return the words with their spelling, the pairs of neighbours, and the initials of capitalised runs.

    The spelling of a word is "small" if it stands in lower case anywhere, else "capital".
    """
    words: dict[str, str] = {}
    pairs: set[tuple[str, str]] = set()
    initials: set[str] = set()
    for text in texts:
        previous_word = ""
        run = ""
        for word in _WORD.findall(text):
            word_form = _normalize_word(word)
            is_capital = word[0].isupper()
            if not is_capital:
                words[word_form] = "small"
            elif word_form not in words:
                words[word_form] = "capital"
            if _PART_SEPARATOR.search(word_form):
                for part in _PART_SEPARATOR.split(word_form):
                    words.setdefault(part, "capital" if is_capital else "small")
            pairs.add((previous_word, word_form))
            previous_word = word_form
            if is_capital:
                run += word_form[0]
                initials |= {run[start:] for start in range(max(0, len(run) - 6), len(run) - 1)}
            elif run and not is_common(word_form, "en"):
                run = ""
    return words, frozenset(pairs), frozenset(initials)


def _normalize_word(word: str) -> str:
    """Return the word in lower case, without a possessive ending."""
    if "'" in word or "\u2019" in word:
        word = _POSSESSIVE.sub("", word).replace("\u2019", "'")
    return word.lower()


def _is_known(word: str, words: dict[str, str]) -> bool:
    """Return whether the word, its plural or singular, all its parts or a word with its stem is known."""
    if word in words or word.rstrip("s") in words or f"{word}s" in words:
        return True
    parts = [part for part in _PART_SEPARATOR.split(word) if part]
    if len(parts) > 1 and all(part in words for part in parts):
        return True
    if word in _CALENDAR or len(word) <= _STEM_CHARACTERS:
        return False
    # "Germany" supports "German" too.
    stem = word[: max(_STEM_CHARACTERS, len(word) - 2)]
    return any(other.startswith(stem) for other in words)
