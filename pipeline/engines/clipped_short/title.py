"""A title for a clip: the speaker's own words, as many as fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.clipped_short.spans import (
    clean_title,
)
from pipeline.plugins import Refused
from pipeline.render.video.templates import clipped
from pipeline.text.prose.verbatim_edits import clause_cuts, first_words, is_self_contained, trim_conjunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, Fact, PersonaCard

TITLE_MOST: Final = 64
_SHORTER: Final = (60, 40, 24)
"""Characters of the beginning of a sentence that is no title, where more don't fit on the film."""


def verbatim_title(brief: Brief, persona: PersonaCard, said: Sequence[Fact]) -> str:
    """A sentence of the stretch, else its beginning, word for word."""
    best = sorted(said, key=lambda one: (-one.score, one.start))
    whole = [
        title
        for one in best
        if len(title := _as_title(one)) <= TITLE_MOST and is_self_contained(title, brief.language)
    ]
    cut = [
        title
        for one in best
        if is_self_contained(_as_title(one), brief.language)
        for title in clause_cuts(_as_title(one))
        if 16 <= len(title) <= TITLE_MOST
    ]
    begun = [first_words(_as_title(said[0]), most) for most in (TITLE_MOST, *_SHORTER)]
    for title in (*whole, *cut, *begun):
        shown_as = title.rstrip(".") if title.endswith(".") and not title.endswith("..") else title
        if _fits(shown_as, brief.language) and is_allowed(shown_as, brief, persona):
            return shown_as
    return begun[-1]


def _fits(title: str, language: str) -> bool:
    try:
        clipped.fit_title(title, language)
    except Refused:
        return False
    return True


def _as_title(one: Fact) -> str:
    return trim_conjunction(clean_title(one.text))
