"""Finds a model's quotes and claims in the source, and keeps them in the source's own characters."""

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
# A cluster is a character with its combining marks, or with the vowels and finals of a Korean syllable.
# Longer runs of marks are no real text, and normalising them takes quadratic time.
_MAX_CLUSTER_CHARACTERS = 30
_MAX_BEGINNINGS_TRIED = 200
"""Words that occur more often than this identify no passage, and searching further would cost time."""
_NUMBER_SEPARATORS = frozenset(".,'")
"""Characters that may stand between the digits of one number."""
_JAMO = ("\u1160", "\u11ff")
"""The first and the last of the vowels and finals of Korean syllables."""
# Scripts without spaces, in which a quote may begin or end between any two characters.
_SPACELESS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
ELLIPSIS: Final = "\u2026"
"""The mark at the end of a statement's first words; a claim without it is the statement in full."""
_DOTS: Final = "..."


class Haystack:
    """A source in which quotes are searched; it is folded for the first one that isn't in it literally."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded: FoldedText | None = None

    def find(self, quote: str) -> tuple[int, int] | None:
        """Return the start and end of the quote's first occurrence, or `None` if the text doesn't contain it.

        Compatibility forms and the kinds of quotation marks and of white space count as equal, and invisible
        characters don't count; nothing else is folded. Only whole words and whole numbers match: "rose 4" isn't
        in "rose 48", nor in "rose 4.8".
        """
        wanted = quote.strip()
        span = _find_whole(self._text, wanted)
        if span is not None:
            return span
        if self._folded is None:
            self._folded = FoldedText(self._text)
        return self._folded.find(wanted)

    def find_between(self, first: str, last: str, *, max_characters: int) -> tuple[int, int] | None:
        """Return the span that begins with `first` and ends with the next `last`, within `max_characters`.

        Return `None` if there is no such span or more than one, because a guess would be no quote, or if `first`
        occurs more than `_MAX_BEGINNINGS_TRIED` times.
        """
        if self._folded is None:
            self._folded = FoldedText(self._text)
        return self._folded.find_between(first.strip(), last.strip(), max_characters=max_characters)


class FoldedText:
    """A text with compatibility forms, quotation marks and white space made equal, and the original offsets."""

    def __init__(self, text: str) -> None:
        """Fold the text cluster by cluster, with the original offsets of each character."""
        self.text = text
        folded: list[str] = []
        # Two arrays of numbers: tuples would take a hundred bytes per character.
        starts, ends = array("L"), array("L")
        for start, end in _clusters(text):
            # Each cluster is normalised alone, so that the origin of every folded character is known.
            for character in unicodedata.normalize("NFKC", text[start:end]).translate(_MARKS):
                if character.isspace():
                    if folded and folded[-1] == " ":
                        ends[-1] = end
                        continue
                    character = " "  # noqa: PLW2901 - every kind of space is one
                elif unicodedata.category(character) == "Cf":
                    # It is invisible to the reader, and was removed from the model's text.
                    continue
                folded.append(character)
                starts.append(start)
                ends.append(end)
        self.folded = "".join(folded)
        self._starts, self._ends = starts, ends

    def find(self, quote: str) -> tuple[int, int] | None:
        """Find as `Haystack.find` does, in the folded text; the span is in the original text."""
        span = _find_whole(self.folded, FoldedText(quote).folded.strip())
        return None if span is None else (self._starts[span[0]], self._ends[span[1] - 1])

    def find_between(self, first: str, last: str, *, max_characters: int) -> tuple[int, int] | None:
        """Find as `Haystack.find_between` does, in the folded text; the span is in the original text."""
        folded_first, folded_last = FoldedText(first).folded.strip(), FoldedText(last).folded.strip()
        span: tuple[int, int] | None = None
        start = self.folded.find(folded_first) if folded_first and folded_last else -1
        for _ in range(_MAX_BEGINNINGS_TRIED):
            if start == -1:
                break
            last_at = self.folded.find(folded_last, start + len(folded_first), start + max_characters)
            end = last_at + len(folded_last)
            if last_at != -1 and _is_whole(self.folded, start, end):
                if span is not None:
                    return None
                span = (start, end)
            start = self.folded.find(folded_first, start + 1)
        # Not every beginning was tried, so the span that was found may not be the only one.
        if start != -1:
            return None
        return None if span is None else (self._starts[span[0]], self._ends[span[1] - 1])


def _find_whole(text: str, wanted: str) -> tuple[int, int] | None:
    start = text.find(wanted) if wanted else -1
    while start != -1:
        if _is_whole(text, start, start + len(wanted)):
            return start, start + len(wanted)
        start = text.find(wanted, start + 1)
    return None


def _clusters(text: str) -> list[tuple[int, int]]:
    """Return the spans of the text's clusters, each a character with those that combine with it."""
    clusters: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and end - start <= _MAX_CLUSTER_CHARACTERS and _is_combining(text[end]):
            continue
        clusters.append((start, end))
        start = end
    return clusters if text else []


def _is_combining(character: str) -> bool:
    """Return whether the character combines with the one before it."""
    return character > "\u02ff" and (
        unicodedata.combining(character) > 0 or _JAMO[0] <= character <= _JAMO[1]
    )


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether the span cuts neither a word nor a number at its ends."""
    before, first = text[start - 1 : start], text[start]
    last, after = text[end - 1], text[end : end + 1]
    if _is_one_word(before, first) or _is_one_word(last, after):
        return False
    if last.isdigit() and after in _NUMBER_SEPARATORS and text[end + 1 : end + 2].isdigit():
        return False
    return not (
        first.isdigit()
        and (before == "-" or (before in _NUMBER_SEPARATORS and text[start - 2 : start - 1].isdigit()))
    )


def _is_one_word(first: str, second: str) -> bool:
    """Return whether both characters belong to one word."""
    both = first + second
    return len(both) == 2 and first.isalnum() and second.isalnum() and not _SPACELESS.search(both)


@dataclass(frozen=True)
class _Statement:
    """The beginning of a statement, and the end of its sentence, in one of the draft's texts."""

    text_index: int
    start: int
    end: int


def expand_claims(variant: Mapping[str, Any], variant_number: int) -> dict[str, Any]:
    """Return the variant with each claim's statement in full.

    A statement goes from its first words to the end of their sentence, or to the beginning of another claim in it.
    Raises `AnswerUnreadable`, with the `variant_number`, if the words don't stand in the draft.
    """
    claims = variant["claims"]
    texts = list(
        _texts_in({name: value for name, value in variant.items() if name not in {"claims", "angle"}})
    )
    statements = [
        _find_statement(claim["text"], texts) if _is_abbreviated(claim["text"]) else None for claim in claims
    ]
    faults = [
        f"Variant {variant_number}: `{claim['text']}` of a claim has to stand in the draft."
        for claim, statement in zip(claims, statements, strict=True)
        if statement is None and _is_abbreviated(claim["text"])
    ]
    if faults:
        raise AnswerUnreadable(faults)
    full_claims = [
        claim if statement is None else {**claim, "text": _full_text(statement, statements, texts)}
        for claim, statement in zip(claims, statements, strict=True)
    ]
    return {**variant, "claims": full_claims}


def _is_abbreviated(text: str) -> bool:
    return text.rstrip().endswith((ELLIPSIS, _DOTS))


def _find_statement(abbreviated: str, texts: Sequence[str]) -> _Statement | None:
    """Return the statement that begins with these words, or `None` if the texts don't contain them.

    Of several the longest is taken, so that as much as possible is checked.
    """
    first_words = abbreviated.rstrip().removesuffix(ELLIPSIS).removesuffix(_DOTS).strip()
    if not first_words:
        return None
    matches = [
        _Statement(index, match.start(), _sentence_end(text, match.start()))
        for index, text in enumerate(texts)
        for match in re.finditer(rf"(?<!\w){re.escape(first_words)}(?!\w)", text)
    ]
    return max(matches, key=lambda statement: statement.end - statement.start, default=None)


def _sentence_end(text: str, start: int) -> int:
    return next((last for first, last in _sentences(text) if first <= start < last), len(text))


def _full_text(statement: _Statement, statements: Sequence[_Statement | None], texts: Sequence[str]) -> str:
    """Return the statement's text, up to the next statement in its sentence."""
    next_starts = [
        other.start
        for other in statements
        if other is not None
        and other.text_index == statement.text_index
        and statement.start < other.start < statement.end
    ]
    end = min(next_starts, default=statement.end)
    return texts[statement.text_index][statement.start : end].strip().rstrip(",;")


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the text's sentences; a line end always ends a sentence."""
    line_start = 0
    for line in text.splitlines(keepends=True):
        for first, last in split_sentences(line):
            yield line_start + first, line_start + last
        line_start += len(line)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from _texts_in(member)
