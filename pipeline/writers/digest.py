"""The briefs of several raw items as one: their facts by story, and one text in which each stands at its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Brief, SourceText, Story
from pipeline.engines.newsletter_digest import story_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Fact

FACTS_MOST: Final = 6
"""Of one story: more than fit into seventy words, so that a writer can choose."""
_AFTER_TITLE: Final = "\n\n"
_BETWEEN: Final = "\n\n"


@dataclass(frozen=True)
class Part:
    """One raw item by its id, with its words and what was found in them."""

    id: str
    source: SourceText
    brief: Brief


def _shared_reason(parts: Sequence[Part]) -> str:
    """Facts of a model in one story are enough for it to write from."""
    reasons = [part.brief.without_model for part in parts]
    return reasons[0] if reasons and all(reasons) else ""


def combine(parts: Sequence[Part]) -> tuple[Brief, SourceText]:
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
