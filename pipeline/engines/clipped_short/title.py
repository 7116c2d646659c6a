"""Makes a title for a clip from the speaker's own words, as many as fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.clipped_short.spans import clean_title
from pipeline.plugins import Refused
from pipeline.render.video.templates import clipped
from pipeline.text.prose.verbatim_edits import clause_cuts, first_words, is_self_contained, trim_conjunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, Fact, PersonaCard

MAX_TITLE_CHARACTERS: Final = 64
_MIN_CLAUSE_CHARACTERS: Final = 16
_SHORTER_CHARACTERS: Final = (60, 40, 24)
"""The lengths to try for the first words of the stretch, if more doesn't fit on the film."""


def verbatim_title(brief: Brief, persona: PersonaCard, sentences: Sequence[Fact]) -> str:
    """Return the best sentence, clause or opening that is allowed and fits on the film, else the shortest opening."""
    ranked = sorted(sentences, key=lambda sentence: (-sentence.score, sentence.start))
    whole_sentences = [
        title
        for sentence in ranked
        if len(title := _as_title(sentence)) <= MAX_TITLE_CHARACTERS
        and is_self_contained(title, brief.language)
    ]
    clauses = [
        title
        for sentence in ranked
        if is_self_contained(_as_title(sentence), brief.language)
        for title in clause_cuts(_as_title(sentence))
        if _MIN_CLAUSE_CHARACTERS <= len(title) <= MAX_TITLE_CHARACTERS
    ]
    openings = [
        first_words(_as_title(sentences[0]), max_characters)
        for max_characters in (MAX_TITLE_CHARACTERS, *_SHORTER_CHARACTERS)
    ]
    for title in (*whole_sentences, *clauses, *openings):
        displayed = title.rstrip(".") if title.endswith(".") and not title.endswith("..") else title
        if _fits(displayed, brief.language) and is_allowed(displayed, brief, persona):
            return displayed
    return openings[-1]


def _fits(title: str, language: str) -> bool:
    try:
        clipped.fit_title(title, language)
    except Refused:
        return False
    return True


def _as_title(sentence: Fact) -> str:
    return trim_conjunction(clean_title(sentence.text))
