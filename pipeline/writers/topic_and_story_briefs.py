"""Builds briefs of a persona and a topic, and of several raw items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import APPROVED, EVIDENCE, OF_TOPIC, Brief, Fact, SourceText, Story, TopicBrief
from pipeline.engines.newsletter_digest import story_name
from pipeline.text.html_text import strip_invisible
from pipeline.text.prompt_injection import gives_instructions, without_instructions
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import collapse, is_clean
from pipeline.writers.approved_line_drafts import count_shared_words
from pipeline.writers.base import with_orders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import PersonaCard

MAX_APPROVED: Final = 24
"""The most approved lines that one brief gets, those most relevant to the topic."""
MAX_FACTS: Final = 60
_MIN_FACT_CHARACTERS: Final = 3
_PARAGRAPH_BREAK: Final = "\n\n"
MAX_FACTS_PER_STORY: Final = 6
"""The most facts of one story: more than fit into seventy words, so that a writer can choose."""
_AFTER_TITLE: Final = "\n\n"
_AFTER_STORY: Final = "\n\n"


@dataclass(frozen=True)
class Subject:
    """A topic to write about. `evidence` are texts that back it, `openings` those of the persona's newest items."""

    title: str
    notes: str = ""
    evidence: tuple[str, ...] = ()
    angle: str = ""
    openings: tuple[str, ...] = ()


def brief_of(subject: Subject, persona: PersonaCard) -> tuple[Brief, SourceText]:
    """Return a brief of facts, and the text in which they stand; no model is asked.

    Facts are the approved lines, and the sentences of the topic's notes and evidence and of the persona's
    `who_you_are`, `MAX_FACTS` at most. The topic's title is one too unless it would be the only one. Sentences
    that give a model orders are left out.
    """
    facts = _FactCollector()
    approved = sorted(
        persona.approved_lines, key=lambda line: -count_shared_words(line, f"{subject.title} {subject.angle}")
    )
    for line in approved[:MAX_APPROVED]:
        facts.add(line, APPROVED, is_whole=True)
    facts.add(subject.notes, OF_TOPIC)
    for text in subject.evidence:
        facts.add(text, EVIDENCE)
    facts.add(persona.who_you_are, "persona")
    if facts.facts:
        facts.add(subject.title, OF_TOPIC, is_whole=True)
    screened_texts = [without_instructions(text) for text in (subject.notes, *subject.evidence)]
    heading_lines = (subject.title, subject.angle)
    order_lines = [line for line in heading_lines if gives_instructions(line)]
    title, angle = ("" if line in order_lines else line for line in heading_lines)
    brief = Brief(
        title=title,
        language=persona.language,
        url="",
        facts=tuple(facts.facts[:MAX_FACTS]),
        lane=TopicBrief(title, angle, subject.openings),
    )
    visible_texts = (title, angle, *(text for text, _ in screened_texts))
    orders = (*order_lines, *(order for _, found_orders in screened_texts for order in found_orders))
    source = SourceText(title=title, text=facts.text, language=persona.language)
    return with_orders(brief, orders, visible_texts), source


class _FactCollector:
    """Collects facts and the text in which they stand, which grows by paragraphs."""

    def __init__(self) -> None:
        self.text = ""
        self.facts: list[Fact] = []

    def add(self, text: str, kind: str, *, is_whole: bool = False) -> None:
        """Add a paragraph with its sentences as facts, or as one fact if `is_whole`.

        Fragments, unclean text and orders to a machine stay in the paragraph, but are no facts.
        """
        text = strip_invisible(text).strip()
        if not text:
            return
        start = len(self.text) + len(_PARAGRAPH_BREAK) if self.text else 0
        self.text = f"{self.text}{_PARAGRAPH_BREAK}{text}" if self.text else text
        screened_text, orders = without_instructions(text)
        spans = ((0, len(text)),) if is_whole else split_sentences(screened_text)
        for first, last in spans:
            quote = text[first:last]
            if len(quote) < _MIN_FACT_CHARACTERS or not is_clean(quote) or (is_whole and orders):
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
    """One raw item's public id, its text and its brief."""

    id: str
    source: SourceText
    brief: Brief


def _shared_reason(parts: Sequence[SourcePart]) -> str:
    """Return the reason why no model's facts could be used, or "" if one story has some to write from."""
    reasons = [part.brief.without_model for part in parts]
    return reasons[0] if reasons and all(reasons) else ""


def combine(parts: Sequence[SourcePart]) -> tuple[Brief, SourceText]:
    """Return the stories in the given order as one brief and one text.

    Each story keeps its first facts, `MAX_FACTS_PER_STORY` at most. A fact's id begins with its story's name, and
    its offsets are those in the combined text.
    """
    text = ""
    stories: list[Story] = []
    facts: list[Fact] = []
    for index, part in enumerate(parts):
        start = len(text)
        # The brief's title, which is empty if the item's title gives orders.
        title = part.brief.title
        body_start = start + len(title) + len(_AFTER_TITLE)
        text += f"{title}{_AFTER_TITLE}{part.source.text}{_AFTER_STORY}"
        stories.append(Story(part.id, title, part.source.url, start, len(text)))
        facts += [
            replace(
                fact,
                id=f"{story_name(index)}{fact.id}",
                start=body_start + fact.start,
                end=body_start + fact.end,
            )
            for fact in part.brief.facts[:MAX_FACTS_PER_STORY]
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
