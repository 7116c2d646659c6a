"""Collects and checks texts that readers see besides a draft's own: in its pictures or film, or on one outlet."""

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
from pipeline.grounding import normalize_quotation
from pipeline.plugins import Refused
from pipeline.render.picture_types import AvailableMedia, DrawnText
from pipeline.render.typography.word_segmentation import join_words
from pipeline.render.video import storyboard_edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipeline.engines.base import Brief, Draft, Engine, PersonaCard, SourceText
    from pipeline.render.picture_types import Layout
    from pipeline.render.video.storyboard import Storyboard

_COUNTER: Final = re.compile(r"(\d{1,2})(?:\s*/\s*\d{1,2})?")
"""The number of a picture, or of the points that follow."""
_UNSPACED: Final = "\u0e00-\u0eff\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_LINE_END: Final = re.compile(
    rf"\u00ad\s+|(?<=[{_UNSPACED}])\s+(?=[{_UNSPACED}\d\u201c\u201d])|(?<=[\d\u201c\u201d])\s+(?=[{_UNSPACED}])"
)
"""A line end within a word, or within a text that is written without spaces."""
_SEVERITY: Final = {"passed": 0, "warning": 1, "failed": 2}


def drawn_words(engine: Engine, draft: Draft, source: SourceText, persona: PersonaCard) -> tuple[str, ...]:
    """Return every text that the pictures or the film of a draft show, each once, without the engine's additions.

    There is none if the engine draws nothing, or if the words can't be drawn, which the engine's checks report.
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
        else _without_engine_text(_layout_texts(layout), persona, draft.language, len(layout.pictures))
    )


def board_words(board: Storyboard, persona: PersonaCard) -> tuple[str, ...]:
    """Return every text on the screen or in the captions, each once, without the engine's additions."""
    texts: list[str] = []
    previous_name = ""
    for text in storyboard_edits.editable_texts(board):
        name = text.name.partition(" ")[0]
        if (previous_name, name) == ("figure", "of"):
            # A number's noun or unit stands below it in a text of its own: "12" and "million crowns".
            texts[-1] = f"{texts[-1]} {text.words}"
        else:
            texts.append(text.words)
        previous_name = name
    # A sentence, or a number with its unit, may continue from card to card.
    texts += [
        join_words(word.t for card in cards for word in card.words) for cards in (board.captions, board.told)
    ]
    return _without_engine_text(texts, persona, board.meta.language, len(board.scenes))


def _layout_texts(layout: Layout) -> Iterator[str]:
    for picture in layout.pictures:
        for item in picture.items:
            if isinstance(item, DrawnText):
                yield " ".join(line.text for line in item.block.lines)


def _without_engine_text(
    texts: Iterable[str], persona: PersonaCard, language: str, pieces: int
) -> tuple[str, ...]:
    """Return the texts without initials, the word "Source" and numbers of pictures: they state nothing."""
    engine_texts = {"", initials_of(persona.name), source_word(language)}
    unique_texts = dict.fromkeys(storyboard_edits.normalize_text(_LINE_END.sub("", text)) for text in texts)
    return tuple(text for text in unique_texts if text not in engine_texts and not _is_counter(text, pieces))


def _is_counter(text: str, pieces: int) -> bool:
    match = _COUNTER.fullmatch(text)
    return match is not None and int(match[1]) <= pieces


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
    """Return the checks of a draft together with the faults of further texts that are shown with it.

    Texts that stand in the draft were checked before, except for their numbers: "500 m²" may be cut out of
    "2 500 m²". `where` begins the message of a fault ("In the film"). The draft has to be one that
    `Engine.marked` returned.
    """
    texts = (draft.title, *words_of(draft))
    known_texts = {_comparable(part) for text in texts for part in (text, *text.splitlines())}
    new_texts = tuple(text for text in further if _comparable(text) not in known_texts)
    if not new_texts:
        return tuple(checks)
    draft_text = "\n".join(_comparable(text) for text in texts)
    new_words = "\n|\n".join(text for text in new_texts if _comparable(text) not in draft_text)
    new_checks = [
        check_numbers(("\n|\n".join(new_texts),), draft, source, persona),
        *(_check_new_words(new_words, draft, brief, source, persona) if new_words else ()),
    ]
    faults_by_code = {
        check.code: replace(check, message=f"{where}: {check.message}")
        for check in new_checks
        if check.outcome != "passed"
    }
    merged = tuple(_merge_checks(check, faults_by_code.pop(check.code, None)) for check in checks)
    return (*merged, *faults_by_code.values())


def _check_new_words(
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


def _merge_checks(check: Check, further: Check | None) -> Check:
    """Return both messages, if both checks have a fault, under the worse of their outcomes."""
    if further is None:
        return check
    if check.outcome == "passed":
        return further
    worse = max(check.outcome, further.outcome, key=_SEVERITY.__getitem__)
    return Check(check.code, worse, f"{check.message} {further.message}")


def _comparable(words: str) -> str:
    """Return the words without white space and typography, so that drawn words equal the written ones."""
    return "".join(normalize_quotation(storyboard_edits.normalize_text(words)).split())
