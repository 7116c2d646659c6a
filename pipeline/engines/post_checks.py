"""The checks that engines of words share: what is claimed, what is hidden, what is tagged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engines.allow_list import named
from pipeline.engines.base import Check
from pipeline.engines.persona_rules import count_hashtags
from pipeline.wording import is_clean

if TYPE_CHECKING:
    from pipeline.engines.base import Draft, SourceText

_COUNTED = {1: "one", 2: "two", 3: "three"}


def judged(code: str, passed: str, faults: str | None) -> Check:
    """One check: `faults` is the sentence for a failure, None where all is well."""
    return Check(code, "passed", passed) if faults is None else Check(code, "failed", faults)


def check_characters(words: str, what: str = "post") -> Check:
    faults = None if is_clean(words) else f"The {what} holds hidden or control characters."
    return judged("characters", f"The {what} holds no hidden characters.", faults)


def check_hashtags(words: str, strange: tuple[str, ...], *, most: int, what: str = "post") -> Check:
    """`strange` are those that `allow_list.strange_tags` found."""
    hashtags = count_hashtags(words)
    faults = None
    if hashtags > most:
        faults = f"The {what} has {hashtags} hashtags; {_COUNTED[most]} are the most."
    elif strange:
        faults = f"These hashtags say what no fact says: {named(strange)}."
    passed = f"The {what} has at most {_COUNTED[most]} hashtags, of words that the facts say."
    return judged("hashtags", passed, faults)


def check_claims(draft: Draft, source: SourceText, *, needs_claim: bool = True, what: str = "post") -> Check:
    faults = None
    if any(not claim.quote or source.text[claim.start : claim.end] != claim.quote for claim in draft.claims):
        faults = "A claim's quote isn't in the source at the place that it names."
    elif needs_claim and not draft.claims:
        faults = f"The {what} names no place in the source that says what it says."
    return judged("claims", f"What the {what} says stands in the source.", faults)
