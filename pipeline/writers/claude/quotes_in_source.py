"""A model's quotes and claims, found in the source and kept in the source's own characters."""

from __future__ import annotations

import re
import unicodedata
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline.text.prose.sentences import split_sentences
from pipeline.writers.claude.answers import AnswerUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MARKS = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b`\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"')
)
# A character with what joins it: combining marks, and the vowels and finals of Korean syllables. Longer runs of marks
# than this are no writing, and normalising them takes quadratic time.
_MOST_JOINED = 30
_MOST_BEGINNINGS = 200
"""Words that stand more often than this name no place, and looking further would cost time."""
_INSIDE = frozenset(".,'")
"""What stands between the digits of one number."""
_JAMO = ("\u1160", "\u11ff")
# Scripts that write without spaces, where any two characters may part.
_SPACELESS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
SIGN: Final = "\u2026"
"""Ends the first words of a statement. A claim without it is the statement in full."""
_DOTS: Final = "..."


class Haystack:
    """The source in which quotes are looked for. It is folded at the first quote that isn't in it as it is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded: FoldedText | None = None

    def find(self, quote: str) -> tuple[int, int] | None:
        """Where the text says this, as `text[start:end]`; None where it doesn't say exactly this.

        Compatibility forms, kinds of quotation marks and of white space are the same; nothing else is. Only whole
        words and whole numbers count: "rose 4" is not said by "rose 48", nor by "rose 4.8".
        """
        wanted = quote.strip()
        found = _find_whole(self._text, wanted)
        if found is not None:
            return found
        if self._folded is None:
            self._folded = FoldedText(self._text)
        return self._folded.find(wanted)

    def find_between(self, first: str, last: str, *, most: int) -> tuple[int, int] | None:
        """Where the text begins with `first` and ends with the next `last`, within `most` characters.

        None where it says so nowhere, or at two places: a guess would be no quote.
        """
        if self._folded is None:
            self._folded = FoldedText(self._text)
        return self._folded.find_between(first.strip(), last.strip(), most=most)


class FoldedText:
    """A text with compatibility forms, quotation marks and white space made alike, and the way back from it."""

    def __init__(self, text: str) -> None:
        self.text = text
        folded: list[str] = []
        # Two numbers for each character: tuples would take a hundred bytes.
        starts, ends = array("L"), array("L")
        for start, end in _clusters(text):
            # Each cluster by itself, so that every folded character knows where it came from.
            for sign in unicodedata.normalize("NFKC", text[start:end]).translate(_MARKS):
                if sign.isspace():
                    if folded and folded[-1] == " ":
                        ends[-1] = end
                        continue
                    sign = " "  # noqa: PLW2901 - every kind of space is one
                elif unicodedata.category(sign) == "Cf":
                    # Invisible to the reader, and taken out of what the model was shown.
                    continue
                folded.append(sign)
                starts.append(start)
                ends.append(end)
        self.folded = "".join(folded)
        self._starts, self._ends = starts, ends

    def find(self, quote: str) -> tuple[int, int] | None:
        found = _find_whole(self.folded, FoldedText(quote).folded.strip())
        return None if found is None else (self._starts[found[0]], self._ends[found[1] - 1])

    def find_between(self, first: str, last: str, *, most: int) -> tuple[int, int] | None:
        begun, ended = FoldedText(first).folded.strip(), FoldedText(last).folded.strip()
        found: tuple[int, int] | None = None
        start = self.folded.find(begun) if begun and ended else -1
        for _ in range(_MOST_BEGINNINGS):
            if start == -1:
                break
            last_at = self.folded.find(ended, start + len(begun), start + most)
            end = last_at + len(ended)
            if last_at != -1 and _is_whole(self.folded, start, end):
                if found is not None:
                    return None
                found = (start, end)
            start = self.folded.find(begun, start + 1)
        if start != -1:
            return None
        return None if found is None else (self._starts[found[0]], self._ends[found[1] - 1])


def _find_whole(text: str, wanted: str) -> tuple[int, int] | None:
    place = text.find(wanted) if wanted else -1
    while place != -1:
        if _is_whole(text, place, place + len(wanted)):
            return place, place + len(wanted)
        place = text.find(wanted, place + 1)
    return None


def _clusters(text: str) -> list[tuple[int, int]]:
    clusters: list[tuple[int, int]] = []
    start = 0
    for position in range(1, len(text) + 1):
        if position < len(text) and position - start <= _MOST_JOINED and _joins(text[position]):
            continue
        clusters.append((start, position))
        start = position
    return clusters if text else []


def _joins(sign: str) -> bool:
    return sign > "\u02ff" and (unicodedata.combining(sign) > 0 or _JAMO[0] <= sign <= _JAMO[1])


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether neither a word nor a number is cut at either end."""
    before, first = text[start - 1 : start], text[start]
    last, after = text[end - 1], text[end : end + 1]
    if _is_one_word(before, first) or _is_one_word(last, after):
        return False
    if last.isdigit() and after in _INSIDE and text[end + 1 : end + 2].isdigit():
        return False
    return not (
        first.isdigit() and (before == "-" or (before in _INSIDE and text[start - 2 : start - 1].isdigit()))
    )


def _is_one_word(one: str, other: str) -> bool:
    both = one + other
    return len(both) == 2 and one.isalnum() and other.isalnum() and not _SPACELESS.search(both)


@dataclass(frozen=True)
class _Place:
    """Where a statement begins: in which text of the draft, and in which of its sentences."""

    text: int
    start: int
    end: int


def spelled_out(variant: Mapping[str, Any], place: int) -> dict[str, Any]:
    """The answered variant with each claim's statement in full.

    A statement goes from its first words to the end of their sentence, or to where another claim begins in it. Raises
    `AnswerUnreadable` where the words don't stand in the draft: `place` is told.
    """
    claims = variant["claims"]
    texts = list(_texts({name: value for name, value in variant.items() if name not in {"claims", "angle"}}))
    places = [_place_of(claim["text"], texts) if _is_short(claim["text"]) else None for claim in claims]
    faults = [
        f"Variant {place}: `{claim['text']}` of a claim has to stand in the draft."
        for claim, found in zip(claims, places, strict=True)
        if found is None and _is_short(claim["text"])
    ]
    if faults:
        raise AnswerUnreadable(faults)
    told = [
        claim if found is None else {**claim, "text": _statement(found, places, texts)}
        for claim, found in zip(claims, places, strict=True)
    ]
    return {**variant, "claims": told}


def _is_short(words: str) -> bool:
    return words.rstrip().endswith((SIGN, _DOTS))


def _place_of(words: str, texts: Sequence[str]) -> _Place | None:
    """Where it is said more than once, as in a summary, the longest: whatever is said has to be proven."""
    begun = words.rstrip().removesuffix(SIGN).removesuffix(_DOTS).strip()
    if not begun:
        return None
    found = [
        _Place(index, match.start(), _end_of(text, match.start()))
        for index, text in enumerate(texts)
        for match in re.finditer(rf"(?<!\w){re.escape(begun)}(?!\w)", text)
    ]
    return max(found, key=lambda place: place.end - place.start, default=None)


def _end_of(text: str, start: int) -> int:
    return next((last for first, last in _sentences(text) if first <= start < last), len(text))


def _statement(found: _Place, places: Sequence[_Place | None], texts: Sequence[str]) -> str:
    others = [
        other.start
        for other in places
        if other is not None and other.text == found.text and found.start < other.start < found.end
    ]
    return texts[found.text][found.start : min(others, default=found.end)].strip().rstrip(",;")


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """A line ends a sentence, whatever it ends with."""
    start = 0
    for line in text.splitlines(keepends=True):
        for first, last in split_sentences(line):
            yield start + first, start + last
        start += len(line)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from _texts(member)
