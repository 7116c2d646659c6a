"""Measures how far a passage of the source supports a statement, by shared words, negations and opposites."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pipeline.grounding.number_lexicon import is_common, language_of, number_words_of, units
from pipeline.grounding.quotations import normalize_quotation
from pipeline.text.prose.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_COVERAGE: Final = 0.6
"""The least share of a statement's content words that must stand in its passage."""
_SAME_SENTENCE_SIMILARITY: Final = 0.75
"""From this similarity on two sentences differ in few words, so that an added "not" reverses one of them."""
_OPPOSITE_SIMILARITY: Final = 0.4
"""From this share of content words in the quote on, an opposite word is a reversal and not just another wording.

It is less than for a negation, because a pair of opposites shows that both speak of one thing, while a "not" may
belong to any part of a sentence.
"""
_STEM_CHARACTERS: Final = 5
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_NEGATIONS: Final = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "neither",
        "nor",
        "without",
        "cannot",
        "can't",
        "won't",
        "don't",
        "doesn't",
        "didn't",
        "isn't",
        "aren't",
        "wasn't",
        "weren't",
        "hasn't",
        "haven't",
        "hadn't",
        "wouldn't",
        "couldn't",
        "shouldn't",
        "nobody",
        "nothing",
        "nowhere",
        "hardly",
        "barely",
        "scarcely",
        "fails",
        "failed",
        "nicht",
        "kein",
        "keine",
        "keinen",
        "keiner",
        "keinem",
        "keines",
        "nie",
        "niemals",
        "nichts",
        "niemand",
        "ohne",
        "weder",
        "kaum",
        "ne",
        "pas",
        "jamais",
        "aucun",
        "aucune",
        "rien",
        "personne",
        "sans",
        "ni",
        "sin",
        "nunca",
        "jamás",
        "ningún",
        "ninguna",
        "ninguno",
        "nada",
        "nadie",
        "tampoco",
    ]
)
# Pairs of lists: a word of the first list is the opposite of each word of the second. English, German, French, Spanish.
_OPPOSITES: Final[tuple[tuple[str, str], ...]] = (
    (("rise rises rose risen rising increase increases increased increasing grow grows grew grown growing gain gains gained climb climbed climbs "
     "jump jumped jumps surge surged soar soared up higher more expand expanded stieg steigt stiegen gestiegen wuchs gewachsen zugenommen "
     "augmenté augmente augmentation hausse subió sube aumentó aumenta aumento creció"),
     ("fall falls fell fallen falling decrease decreases decreased decreasing decline declines declined declining drop drops dropped shrink shrank shrunk "
     "slide slid slip slipped plunge plunged tumble tumbled down lower fewer less sank sinkt sanken gesunken fiel fielen gefallen abgenommen "
     "baissé baisse diminué chute bajó baja cayó cae disminuyó descendió")),
    ("won wins win winning victory beat beats gewann gewonnen gagné gagne ganó", "lost loses lose losing defeat defeated verlor verloren perdu perd perdió"),
    (("approve approved approves approving accept accepted accepts back backed backs support supported supports favour favours favor favors agreed agrees passed adopted "
     "genehmigt genehmigte beschlossen approuvé aprobó aprobado"),
     ("reject rejected rejects rejecting refuse refused refuses decline declined oppose opposed opposes against block blocked blocks veto vetoed "
     "abgelehnt ablehnte rejeté rechazó rechazado")),
    ("open opens opened opening reopened reopens öffnet öffnete eröffnet ouvert ouvre abrió abre", "close closes closed closing shut shuts schließt schloss geschlossen fermé ferme cerró cierra"),
    ("before vor avant antes", "after nach après después"),
    ("profit profits gewinn bénéfice beneficio", "loss losses verlust perte pérdida"),
    ("begin begins began begun start starts started launch launched", "end ends ended stop stops stopped finish finished"),
    ("hire hired hires hiring", "fire fired dismiss dismissed sack sacked"),
    ("best largest biggest highest most longest fastest maximum", "worst smallest lowest least shortest slowest minimum"),
    ("safe safer", "unsafe dangerous"), ("legal", "illegal"), ("allow allowed allows permit permitted permits", "ban bans banned forbid forbidden prohibit prohibited prohibits"),
    ("confirm confirmed confirms admit admitted", "deny denied denies"), ("guilty convicted", "acquitted innocent"),
    ("north northern", "south southern"), ("east eastern", "west western"), ("buy buys bought", "sell sells sold"),
    ("import imports imported", "export exports exported"), ("male men man boys", "female women woman girls"),
)  # fmt: skip


@lru_cache(maxsize=1)
def _sides_by_word() -> Mapping[str, tuple[tuple[int, int], ...]]:
    """Return, for each word, the indexes of its pairs in `_OPPOSITES`, each with that of its side, 0 or 1."""
    sides_by_word: dict[str, list[tuple[int, int]]] = {}
    for pair_index, sides in enumerate(_OPPOSITES):
        for side_index, words in enumerate(sides):
            for word in words.split():
                sides_by_word.setdefault(word, []).append((pair_index, side_index))
    return {word: tuple(pairs) for word, pairs in sides_by_word.items()}


@dataclass(frozen=True)
class Support:
    """How far a passage supports a statement."""

    reversal: tuple[str, str] | None
    """A word of the statement and its opposite in the quote, or `None` if nothing is reversed.

    If only one of them is negated, they are the negation and "".
    """
    is_sure: bool
    """Whether both are so similar that the reversal isn't just another wording."""
    coverage: float
    """The share of the statement's content words in the passage, 0 to 1.

    It is 1 if the languages differ, or if the statement has no content words.
    """


def passage_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of a quote's sentences with the one before and the one after."""
    spans = _spans(text)
    touching = [index for index, (first, last) in enumerate(spans) if first < end and start < last]
    if not touching:
        return start, end
    before, after = max(0, touching[0] - 1), min(len(spans) - 1, touching[-1] + 1)
    return min(start, spans[before][0]), max(end, spans[after][1])


@lru_cache(maxsize=32)
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of the text's sentences; cached, because each claim of a draft asks for the same source."""
    return split_sentences(text)


def measure_support(
    statement: str, quote: str, passage: str, *, language: str = "", source_language: str = ""
) -> Support:
    """Return how far the passage, which is the `quote` with its neighbours, supports the statement."""
    statement_language = language_of(statement, language)
    passage_language = language_of(passage, source_language)
    words, quote_words, passage_words = (_words(text) for text in (statement, quote, passage))
    if statement_language and passage_language and statement_language != passage_language:
        return Support(None, is_sure=False, coverage=1.0)
    content = [word for word in words if _is_content_word(word, statement_language or "en")]
    stems = {word[:_STEM_CHARACTERS] for word in passage_words}
    matches = sum(word[:_STEM_CHARACTERS] in stems for word in content)
    coverage = matches / len(content) if content else 1.0
    reversal = _find_opposite(words, quote_words, passage_words)
    quote_stems = {word[:_STEM_CHARACTERS] for word in quote_words}
    shared = (
        sum(word[:_STEM_CHARACTERS] in quote_stems for word in content) / len(content) if content else 0.0
    )
    if reversal is None:
        reversal = _find_negation(words, quote_words, passage_words)
        quote_content = [word for word in quote_words if _is_content_word(word, statement_language or "en")]
        if (
            reversal is not None
            and not reversal[0]
            and len(content) < _SAME_SENTENCE_SIMILARITY * len(quote_content)
        ):
            # The statement repeats only a part of the quote, and the negation may stand in the other part.
            reversal = None
        return Support(reversal, is_sure=shared >= _SAME_SENTENCE_SIMILARITY, coverage=coverage)
    return Support(reversal, is_sure=shared >= _OPPOSITE_SIMILARITY, coverage=coverage)


def _is_content_word(word: str, language: str) -> bool:
    """Return whether the word carries content; numbers and units don't, as they are compared by value elsewhere."""
    return (
        len(word) > 2
        and not is_common(word, language)
        and word not in units()
        and word not in number_words_of(language)
    )


def _words(text: str) -> list[str]:
    return [word.replace("\u2019", "'") for word in _WORD.findall(text.lower())]


def _find_opposite(
    words: list[str], quote_words: list[str], passage_words: list[str]
) -> tuple[str, str] | None:
    """Return a word of the statement and its opposite in the quote, or `None` if there is no such pair."""
    sides_by_word = _sides_by_word()
    quote_word_by_side = {side: word for word in quote_words for side in sides_by_word.get(word, ())}
    passage_sides = {side for word in passage_words for side in sides_by_word.get(word, ())}
    own_sides = {side for word in words for side in sides_by_word.get(word, ())}
    for word in words:
        for side in sides_by_word.get(word, ()):
            pair_index, side_index = side
            other = (pair_index, 1 - side_index)
            if side not in passage_sides and other in quote_word_by_side and other not in own_sides:
                return word, quote_word_by_side[other]
    return None


def _find_negation(
    words: list[str], quote_words: list[str], passage_words: list[str]
) -> tuple[str, str] | None:
    """Return (negation, "") if only the statement is negated, ("", negation) if only the quote is, else `None`."""
    own_negations = [word for word in words if word in _NEGATIONS]
    quote_negations = [word for word in quote_words if word in _NEGATIONS]
    if own_negations and not any(word in _NEGATIONS for word in passage_words):
        return own_negations[0], ""
    if quote_negations and not own_negations:
        return "", quote_negations[0]
    return None


def find_in_draft(draft: str, statement: str) -> tuple[int, int] | None:
    """Return the span of the statement in the draft, in code points, or `None` if it isn't there.

    Case, white space, quotation marks and the punctuation at its end may differ.
    """
    start = draft.find(statement)
    if start != -1 and statement:
        return start, start + len(statement)
    words = normalize_quotation(statement).rstrip(" .,;:!?\u2026").split(" ")
    if not words or not words[0]:
        return None
    pattern = r"\s+".join(_tolerant_pattern(word) for word in words)
    match = re.search(pattern, draft, re.IGNORECASE)
    return match.span() if match else None


def _tolerant_pattern(word: str) -> str:
    """Return a pattern of the word that accepts any kind of quotation mark and apostrophe."""
    mark_patterns = {"'": "['\u2018\u2019`]", '"': '["\u201c\u201d\u201e\u00ab\u00bb]'}
    return "".join(mark_patterns.get(character) or re.escape(character) for character in word)
