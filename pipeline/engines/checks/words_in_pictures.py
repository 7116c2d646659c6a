"""The words that readers see beside a draft's own: in its pictures or its film, or on one outlet alone; and their checks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Check
from pipeline.engines.checks.allowed_contacts import check_accounts, check_addresses, check_contacts
from pipeline.engines.checks.grounded import check_names, check_numbers, check_quotations, words_of
from pipeline.engines.checks.persona_rules import banned_in
from pipeline.engines.checks.posts import check_characters
from pipeline.engines.shared.fixed_words import source_word
from pipeline.engines.shared.picture_parts import initials_of
from pipeline.grounding import fold
from pipeline.plugins import Refused
from pipeline.render.picture_plan import AvailableMedia, DrawnText
from pipeline.render.typography.word_segmentation import join_words
from pipeline.render.video import storyboard_edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipeline.engines.base import Brief, Draft, Engine, PersonaCard, SourceText
    from pipeline.render.picture_plan import Layout
    from pipeline.render.video.storyboard import Storyboard

_COUNTER: Final = re.compile(r"(\d{1,2})(?:\s*/\s*\d{1,2})?")
"""Which of the pictures it is, or how many points follow."""
_UNSPACED: Final = "\u0e00-\u0eff\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_LINE_END: Final = re.compile(
    rf"\u00ad\s+|(?<=[{_UNSPACED}])\s+(?=[{_UNSPACED}\d\u201c\u201d])|(?<=[\d\u201c\u201d])\s+(?=[{_UNSPACED}])"
)
"""Where a line ended within a word, or within a text that is written without spaces."""
_WORSE: Final = {"passed": 0, "warning": 1, "failed": 2}


def drawn_words(engine: Engine, draft: Draft, source: SourceText, persona: PersonaCard) -> tuple[str, ...]:
    """Every text that the pictures or the film of a draft show as its engine lays them out, each once.

    Empty for an engine that draws nothing, and for words that can't be drawn: the engine's own checks say so.
    """
    if not engine.sizes:
        return ()
    try:
        if engine.bucket == "video":
            board = engine.film(
                draft, persona, AvailableMedia(size=engine.sizes[0], material=source.material)
            )
            return () if board is None else board_words(board, persona)
        layout = engine.plan(draft, persona, AvailableMedia(size=engine.sizes[0]))
    except Refused:
        return ()
    return (
        ()
        if layout is None
        else _without_signs(_layout_words(layout), persona, draft.language, len(layout.pictures))
    )


def board_words(board: Storyboard, persona: PersonaCard) -> tuple[str, ...]:
    """Every text that stands on the screen or in the captions, each once."""
    shown: list[str] = []
    before = ""
    for text in storyboard_edits.editable_texts(board):
        name = text.name.partition(" ")[0]
        if (before, name) == ("figure", "of"):
            # What is counted stands below its number: "12" and "million crowns".
            shown[-1] = f"{shown[-1]} {text.words}"
        else:
            shown.append(text.words)
        before = name
    # A sentence, or a number with its unit, may go on from card to card.
    shown += [
        join_words(word.t for card in cards for word in card.words) for cards in (board.captions, board.told)
    ]
    return _without_signs(shown, persona, board.meta.language, len(board.scenes))


def _layout_words(layout: Layout) -> Iterator[str]:
    for picture in layout.pictures:
        for item in picture.items:
            if isinstance(item, DrawnText):
                yield " ".join(line.text for line in item.block.lines)


def _without_signs(shown: Iterable[str], persona: PersonaCard, language: str, pieces: int) -> tuple[str, ...]:
    """Without initials, the word "Source" and the numbers of the pieces: they are the engine's, and say nothing."""
    signs = {"", initials_of(persona.name), source_word(language)}
    texts = dict.fromkeys(storyboard_edits.normalize_text(_LINE_END.sub("", one)) for one in shown)
    return tuple(text for text in texts if text not in signs and not _is_counter(text, pieces))


def _is_counter(text: str, pieces: int) -> bool:
    found = _COUNTER.fullmatch(text)
    return found is not None and int(found[1]) <= pieces


def check_further(
    checks: Sequence[Check],
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    further: Iterable[str],
    where: str,
) -> tuple[Check, ...]:
    """The checks of a draft, with what is wrong with further words that are shown with it.

    What stands in its own words is judged already, but for numbers of a part of them: "500 m²" is cut out of
    "2 500 m²". `where` begins the sentence of what is found ("In the film"). The draft comes as its engine has marked it.
    """
    texts = (draft.title, *words_of(draft))
    whole = {_folded(one) for text in texts for one in (text, *text.splitlines())}
    shown = tuple(one for one in further if _folded(one) not in whole)
    if not shown:
        return tuple(checks)
    own = "\n".join(_folded(one) for one in texts)
    fresh = "\n|\n".join(one for one in shown if _folded(one) not in own)
    found = [
        check_numbers(("\n|\n".join(shown),), draft, source, persona),
        *(_checks_of(fresh, draft, brief, source, persona) if fresh else ()),
    ]
    told = {
        one.code: replace(one, message=f"{where}: {one.message}") for one in found if one.outcome != "passed"
    }
    both = tuple(_joined(one, told.pop(one.code, None)) for one in checks)
    return (*both, *told.values())


def _checks_of(
    words: str, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
) -> Iterator[Check]:
    yield check_quotations((words,), source)
    yield check_names(words, draft, brief, source, persona)
    yield check_addresses(words, brief, persona, url=source.url)
    yield check_accounts(words, persona)
    yield check_contacts(words, brief, persona, url=source.url)
    yield check_characters(words)
    banned = banned_in(words, persona)
    if banned:
        yield Check("banned_words", "failed", f"The persona never says: {', '.join(banned)}.")


def _joined(own: Check, other: Check | None) -> Check:
    """Both sentences where both have found something, under the worse outcome of the two."""
    if other is None:
        return own
    if own.outcome == "passed":
        return other
    worse = max(own.outcome, other.outcome, key=_WORSE.__getitem__)
    return Check(own.code, worse, f"{own.message} {other.message}")


def _folded(words: str) -> str:
    """To be compared: typeset words, cut into lines and cards, are the words as they were written."""
    return "".join(fold(storyboard_edits.normalize_text(words)).split())
