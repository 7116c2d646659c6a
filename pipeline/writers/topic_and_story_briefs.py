"""Briefs that are no one raw item's: of a persona and a topic, and of several raw items as one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import APPROVED, EVIDENCE, OF_TOPIC, Brief, Fact, SourceText, Story, TopicBrief
from pipeline.engines.newsletter_digest import story_name
from pipeline.text.html_text import strip_invisible
from pipeline.text.prompt_injection import gives_instructions, without_instructions
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import collapse, is_clean
from pipeline.writers.approved_line_drafts import shared_words
from pipeline.writers.strip_injections import with_orders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import PersonaCard

MAX_APPROVED: Final = 24
"""Approved lines that one draft is shown: those that say most of the topic's words."""
MAX_FACTS: Final = 60
_LEAST_FACT: Final = 3
_BREAK: Final = "\n\n"
FACTS_MOST: Final = 6
"""Of one story: more than fit into seventy words, so that a writer can choose."""
_AFTER_TITLE: Final = "\n\n"
_BETWEEN: Final = "\n\n"


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
    written = [without_instructions(words) for words in (subject.notes, *subject.evidence)]
    lines = (subject.title, subject.angle)
    ordering = [line for line in lines if gives_instructions(line)]
    title, angle = ("" if line in ordering else line for line in lines)
    brief = Brief(
        title=title,
        language=persona.language,
        url="",
        facts=tuple(parts.facts[:MAX_FACTS]),
        lane=TopicBrief(title, angle, subject.said),
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
        shown, orders = without_instructions(words)
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


@dataclass(frozen=True)
class SourcePart:
    """One raw item by its id, with its words and what was found in them."""

    id: str
    source: SourceText
    brief: Brief


def _shared_reason(parts: Sequence[SourcePart]) -> str:
    """Facts of a model in one story are enough for it to write from."""
    reasons = [part.brief.without_model for part in parts]
    return reasons[0] if reasons and all(reasons) else ""


def combine(parts: Sequence[SourcePart]) -> tuple[Brief, SourceText]:
    """The stories in the order given; a fact's name begins with its story's, and its place is that in the one text."""
    text = ""
    stories: list[Story] = []
    facts: list[Fact] = []
    for place, part in enumerate(parts):
        start = len(text)
        # The brief's, for a title that gives orders is none.
        title = part.brief.title
        body = start + len(title) + len(_AFTER_TITLE)
        text += f"{title}{_AFTER_TITLE}{part.source.text}{_BETWEEN}"
        stories.append(Story(part.id, title, part.source.url, start, len(text)))
        facts += [
            replace(fact, id=f"{story_name(place)}{fact.id}", start=body + fact.start, end=body + fact.end)
            for fact in part.brief.facts[:FACTS_MOST]
        ]
    language = next((part.brief.language for part in parts if part.brief.language), "")
    brief = Brief(
        title=parts[0].brief.title if parts else "",
        language=language,
        url="",
        facts=tuple(facts),
        summary=facts[0].text if facts else "",
        is_suspect=any(part.brief.is_suspect for part in parts),
        orders=tuple(order for part in parts for order in part.brief.orders),
        stories=tuple(stories),
        without_model=_shared_reason(parts),
    )
    return brief, SourceText(title="", text=text, language=language, stories=tuple(stories))
