"""Whether the names of a draft stand in what it may draw from. A name is a run of capitalised words."""

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
_SENTENCE_END: Final = re.compile(
    r"[.!?\u2026:\u201c\u201e\u00ab\"\u2022*#>\n]['\"\u2019\u201d\u00bb)\]]*\s*[-\u2013\u2014(\[\"\u201c\u201e\u00ab'\u2018]*$"
)
_BETWEEN: Final = re.compile(
    r"[ \u00a0](?:(?:of|the|de|del|la|von|van|der|du|des|and|&|y|et|und)[ \u00a0]){0,2}|\.[ \u00a0]"
)
_LATIN: Final = re.compile(r"[A-Za-z\s]")
_POSSESSIVE: Final = re.compile(r"['\u2019]s?$")
_PARTS: Final = re.compile(r"[-.&']")
_STEM: Final = 4
_TITLE_SHARE: Final = 0.75
_LEAST_TITLE: Final = 4
_LOOKED_BACK: Final = 6
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


def unsupported_names(draft: str, known: Iterable[str], *, language: str = "") -> tuple[str, ...]:
    """The names of the draft that none of the `known` texts holds, or holds only in pieces. A sign, not a proof.

    A word at the start of a sentence is looked at only as part of a run. In German, where every noun is capitalised,
    only runs are.
    """
    text = without_links(draft)
    told = language_of(text, language)
    texts = tuple(known)
    words, pairs, initials = _known(texts)
    # In another language days and months have other names.
    foreign = _CALENDAR if told and _is_other_language(" ".join(texts), told) else frozenset()
    strange: list[str] = []
    for run, is_first in _runs(text):
        kept, opens = list(run), is_first
        if (opens or told == "de") and len(kept) > 1 and is_common(_bare(kept[0]), told):
            kept = kept[1:]
            opens = False
        if len(kept) == 1 and (opens or (told == "de" and not kept[0].isupper())):
            continue
        bare = [_bare(word) for word in kept]
        if all(
            len(low) == 1 or low in units() or low in MONTHS or low in number_words_of(told) for low in bare
        ) and not any(low in _CALENDAR for low in bare):
            # Units and numbers are compared by their value, elsewhere.
            continue
        if told == "de" and any(low in units() or low in number_words_of("de") for low in bare):
            continue
        missing = [
            word
            for word, low in zip(kept, bare, strict=True)
            if low not in foreign and not _is_known(low, words) and low not in initials
        ]
        if missing or (
            len(bare) > 1
            and told != "de"
            and any(
                pair not in pairs
                and words.get(pair[0]) == words.get(pair[1]) == "capital"
                and not _CALENDAR.intersection(pair)
                for pair in itertools.pairwise(bare)
            )
        ):
            strange.append(" ".join(kept))
    return tuple(dict.fromkeys(strange))


def _is_other_language(text: str, told: str) -> bool:
    other = language_of(text)
    return other != told if other else len(_LATIN.findall(text)) * 2 < len(text)


def _runs(text: str) -> list[tuple[tuple[str, ...], bool]]:
    """Runs of capitalised words, and whether each opens a sentence. Lines that are headings have none."""
    found: list[tuple[tuple[str, ...], bool]] = []
    for line in text.splitlines():
        matches = list(_WORD.finditer(line))
        capital = sum(match.group()[0].isupper() for match in matches)
        is_title = (
            len(matches) >= _LEAST_TITLE
            and capital >= _TITLE_SHARE * len(matches)
            and not line.rstrip().endswith(".")
        )
        if line.lstrip().startswith("#") or is_title:
            continue
        run: list[str] = []
        opens, last_end = False, 0
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
                and _BETWEEN.fullmatch(line, last_end, match.start())
                and line[last_end] != "."
            ):
                run.append(word)
            else:
                if run:
                    found.append((tuple(run), opens))
                run = [word] if is_name else []
                if is_name:
                    head = line[max(0, match.start() - _LOOKED_BACK) : match.start()]
                    opens = (
                        not re.search(r"[^\W\d_]", line[: match.start()])
                        or _SENTENCE_END.search(head) is not None
                    )
            last_end = match.end()
        if run:
            found.append((tuple(run), opens))
    return found


@lru_cache(maxsize=32)
def _known(texts: tuple[str, ...]) -> tuple[dict[str, str], frozenset[tuple[str, str]], frozenset[str]]:
    """The words with how they are written, pairs of neighbours, and the initials of capitalised runs."""
    words: dict[str, str] = {}
    pairs: set[tuple[str, str]] = set()
    initials: set[str] = set()
    for text in texts:
        before = ""
        run = ""
        for word in _WORD.findall(text):
            low = _bare(word)
            is_capital = word[0].isupper()
            if not is_capital:
                words[low] = "small"
            elif low not in words:
                words[low] = "capital"
            if _PARTS.search(low):
                for part in _PARTS.split(low):
                    words.setdefault(part, "capital" if is_capital else "small")
            pairs.add((before, low))
            before = low
            if is_capital:
                run += low[0]
                initials |= {run[place:] for place in range(max(0, len(run) - 6), len(run) - 1)}
            elif run and not is_common(low, "en"):
                run = ""
    return words, frozenset(pairs), frozenset(initials)


def _bare(word: str) -> str:
    if "'" in word or "\u2019" in word:
        word = _POSSESSIVE.sub("", word).replace("\u2019", "'")
    return word.lower()


def _is_known(word: str, words: dict[str, str]) -> bool:
    if word in words or word.rstrip("s") in words or f"{word}s" in words:
        return True
    parts = [part for part in _PARTS.split(word) if part]
    if len(parts) > 1 and all(part in words for part in parts):
        return True
    if word in _CALENDAR or len(word) <= _STEM:
        return False
    # "German" is said by "Germany".
    stem = word[: max(_STEM, len(word) - 2)]
    return any(other.startswith(stem) for other in words)
