"""The checks that engines of words share: what is claimed, what is hidden, what is tagged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engines.base import Check, judge
from pipeline.engines.checks.allowed_contacts import (
    check_accounts,
    check_addresses,
    check_contacts,
    check_suspicion,
    list_some,
    strange_tags,
)
from pipeline.engines.checks.grounded import check_numbers, check_quotations
from pipeline.engines.checks.persona_rules import count_hashtags
from pipeline.text.prose.verbatim_edits import is_clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText

MAX_LINKS = 1
_COUNTED = {1: "one", 2: "two", 3: "three"}


def check_words(
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    parts: Sequence[str],
    most_tags: int,
    what: str = "post",
) -> tuple[Check, ...]:
    """What every plain text has to keep: who can be reached through it, and that it says what the source says."""
    body = draft.body
    # A sign that no number and no address goes across.
    shown = f"{draft.title}\n|\n{body}"
    return (
        check_addresses(shown, brief, persona, url=source.url),
        check_hashtags(body, strange_tags(body, brief, persona), most=most_tags, what=what),
        check_accounts(shown, persona),
        check_contacts(shown, brief, persona, url=source.url),
        check_characters(body, what),
        check_numbers(parts, draft, source, persona),
        check_quotations(parts, source),
        check_claims(draft, source, what=what),
        check_suspicion(brief),
    )


def check_one_part(draft: Draft, *, is_empty: bool) -> Check:
    """Of a post that is no thread: there are words, and its one part is its body."""
    faults = None
    if is_empty:
        faults = "The post is empty."
    elif draft.content != {"parts": [draft.body]}:
        faults = "The post's one part isn't the same as its body."
    return judge("content", "The post is one part.", faults)


def check_link_count(links: int) -> Check:
    faults = None if links <= MAX_LINKS else f"The post has {links} links; one is the most."
    return judge("link_count", "The post has at most one link.", faults)


def check_characters(words: str, what: str = "post") -> Check:
    faults = None if is_clean(words) else f"The {what} holds hidden or control characters."
    return judge("characters", f"The {what} holds no hidden characters.", faults)


def check_hashtags(words: str, strange: tuple[str, ...], *, most: int, what: str = "post") -> Check:
    """`strange` are those that `allowed_contacts.strange_tags` found."""
    hashtags = count_hashtags(words)
    faults = None
    if hashtags > most:
        faults = f"The {what} has {hashtags} hashtags; {_COUNTED[most]} are the most."
    elif strange:
        faults = f"These hashtags say what no fact says: {list_some(strange)}."
    passed = f"The {what} has at most {_COUNTED[most]} hashtags, of words that the facts say."
    return judge("hashtags", passed, faults)


def check_claims(draft: Draft, source: SourceText, *, needs_claim: bool = True, what: str = "post") -> Check:
    faults = None
    if any(not claim.quote or source.text[claim.start : claim.end] != claim.quote for claim in draft.claims):
        faults = "A claim's quote isn't in the source at the place that it names."
    elif needs_claim and not draft.claims:
        faults = f"The {what} quotes no passage of the source as evidence."
    return judge("claims", f"What the {what} says stands in the source.", faults)
