"""Checks the parts that text engines share: claims, hidden characters, hashtags, links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engines.base import Check, make_check
from pipeline.engines.checks.allowed_contacts import (
    check_accounts,
    check_addresses,
    check_contacts,
    check_suspicion,
    list_some,
    unlisted_tags,
)
from pipeline.engines.checks.grounded import check_numbers, check_quotations
from pipeline.engines.checks.persona_rules import count_hashtags
from pipeline.text.prose.verbatim_edits import is_clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText

MAX_LINKS = 1
_NUMBER_WORDS = {1: "one", 2: "two", 3: "three"}


def check_words(
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    parts: Sequence[str],
    max_tags: int,
    noun: str = "post",
) -> tuple[Check, ...]:
    """Return the checks of every plain text: where it leads readers, and that its source says the same.

    `parts` are the texts whose numbers and quotations are checked; `noun` names the text in messages.
    """
    body = draft.body
    # A separator that no number and no address spans.
    title_and_body = f"{draft.title}\n|\n{body}"
    return (
        check_addresses(title_and_body, brief, persona, url=source.url),
        check_hashtags(body, unlisted_tags(body, brief, persona), max_tags=max_tags, noun=noun),
        check_accounts(title_and_body, persona),
        check_contacts(title_and_body, brief, persona, url=source.url),
        check_characters(body, noun),
        check_numbers(parts, draft, source, persona),
        check_quotations(parts, source),
        check_claims(draft, source, noun=noun),
        check_suspicion(brief),
    )


def check_one_part(draft: Draft, *, is_empty: bool) -> Check:
    """Check that a post that is no thread has words, and that its one part is its body."""
    fault = None
    if is_empty:
        fault = "The post is empty."
    elif draft.content != {"parts": [draft.body]}:
        fault = "The post's one part isn't the same as its body."
    return make_check("content", "The post is one part.", fault)


def check_link_count(links: int) -> Check:
    """Check that a post has at most one link."""
    fault = None if links <= MAX_LINKS else f"The post has {links} links; the maximum is one."
    return make_check("link_count", "The post has at most one link.", fault)


def check_characters(words: str, noun: str = "post") -> Check:
    """Check that the words hold no hidden or control characters; `noun` names the text in messages."""
    fault = None if is_clean(words) else f"The {noun} holds hidden or control characters."
    return make_check("characters", f"The {noun} holds no hidden characters.", fault)


def check_hashtags(words: str, unlisted: tuple[str, ...], *, max_tags: int, noun: str = "post") -> Check:
    """Check the number of hashtags, and that none is `unlisted`, as `unlisted_tags` returns them."""
    hashtags = count_hashtags(words)
    fault = None
    if hashtags > max_tags:
        fault = f"The {noun} has {hashtags} hashtags; the maximum is {_NUMBER_WORDS[max_tags]}."
    elif unlisted:
        fault = f"These hashtags say what no fact says: {list_some(unlisted)}."
    passed = f"The {noun} has at most {_NUMBER_WORDS[max_tags]} hashtags, of words that the facts say."
    return make_check("hashtags", passed, fault)


def check_claims(draft: Draft, source: SourceText, *, needs_claim: bool = True, noun: str = "post") -> Check:
    """Check that every claim's quote stands in the source at its offsets, and with `needs_claim` that one exists."""
    fault = None
    if any(not claim.quote or source.text[claim.start : claim.end] != claim.quote for claim in draft.claims):
        fault = "A claim's quote isn't in the source at the place that it names."
    elif needs_claim and not draft.claims:
        fault = f"The {noun} quotes no passage of the source as evidence."
    return make_check("claims", f"What the {noun} says is in the source.", fault)
