"""What the brand lane may say: the sentences of a persona and a topic as facts, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import APPROVED, EVIDENCE, OF_TOPIC, Brief, Fact, Lane, SourceText
from pipeline.text.normalization import strip_invisible
from pipeline.text.prompt_injection import gives_orders, without_orders
from pipeline.text.sentence_edits import collapse, is_clean
from pipeline.text.sentences import split_sentences
from pipeline.writers.approved_lines import shared_words
from pipeline.writers.screen import with_orders

if TYPE_CHECKING:
    from pipeline.engines.base import PersonaCard

MAX_APPROVED: Final = 24
"""Approved lines that one draft is shown: those that say most of the topic's words."""
MAX_FACTS: Final = 60
_LEAST_FACT: Final = 3
_BREAK: Final = "\n\n"


@dataclass(frozen=True)
class Subject:
    """A topic as it is written about: `evidence` are the texts that back it."""

    title: str
    notes: str = ""
    evidence: tuple[str, ...] = ()
    angle: str = ""
    said: tuple[str, ...] = ()


def brief_of(subject: Subject, persona: PersonaCard) -> tuple[Brief, SourceText]:
    """What may be said, as facts with their places in one text: nobody is asked, and nothing is found out.

    Facts are the sentences of the topic's notes and evidence, of who the persona is, and the approved lines; the topic's
    title joins them where there is any. Sentences that give a model orders are none.
    """
    parts = _Parts()
    approved = sorted(
        persona.approved_lines, key=lambda line: -shared_words(line, f"{subject.title} {subject.angle}")
    )
    for line in approved[:MAX_APPROVED]:
        parts.add(line, APPROVED, is_whole=True)
    parts.add(subject.notes, OF_TOPIC)
    for text in subject.evidence:
        parts.add(text, EVIDENCE)
    parts.add(persona.who_you_are, "persona")
    if parts.facts:
        parts.add(subject.title, OF_TOPIC, is_whole=True)
    written = [without_orders(words) for words in (subject.notes, *subject.evidence)]
    lines = (subject.title, subject.angle)
    ordering = [line for line in lines if gives_orders(line)]
    title, angle = ("" if line in ordering else line for line in lines)
    brief = Brief(
        title=title,
        language=persona.language,
        url="",
        facts=tuple(parts.facts[:MAX_FACTS]),
        lane=Lane(title, angle, subject.said),
    )
    shown = (title, angle, *(words for words, _ in written))
    orders = (*ordering, *(order for _, found in written for order in found))
    source = SourceText(title=title, text=parts.text, language=persona.language)
    return with_orders(brief, orders, shown), source


class _Parts:
    """One text that grows by paragraphs, and the facts in it."""

    def __init__(self) -> None:
        self.text = ""
        self.facts: list[Fact] = []

    def add(self, words: str, kind: str, *, is_whole: bool = False) -> None:
        words = strip_invisible(words).strip()
        if not words:
            return
        start = len(self.text) + len(_BREAK) if self.text else 0
        self.text = f"{self.text}{_BREAK}{words}" if self.text else words
        shown, orders = without_orders(words)
        spans = ((0, len(words)),) if is_whole else split_sentences(shown)
        for first, last in spans:
            quote = words[first:last]
            if len(quote) < _LEAST_FACT or not is_clean(quote) or (is_whole and orders):
                continue
            self.facts.append(
                Fact(
                    id=f"f{len(self.facts) + 1}",
                    text=collapse(quote),
                    quote=quote,
                    start=start + first,
                    end=start + last,
                    kind=kind,
                )
            )
