"""What decides over a draft: the engine's rules, what every draft has to prove, and the persona's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engines.grounded import check_grounding
from pipeline.engines.persona_rules import check_persona

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Check, Draft, Engine, PersonaCard, SourceText
    from pipeline.stages.generate.repeating import OwnWords


def judge(
    engine: Engine,
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    own_words: OwnWords | None = None,
) -> tuple[Check, ...]:
    """Every rule with its outcome; one that failed stops the draft. A brand lane has a memory of its own."""
    own = engine.check(draft, brief, source, persona)
    given = {check.code for check in own}
    # What the engine has proven over its own words isn't proven again over all of them.
    shared = [check for check in check_grounding(draft, brief, source, persona) if check.code not in given]
    repeated = own_words.check(draft, source) if own_words is not None else ()
    return (*own, *shared, *check_persona(draft, persona), *repeated)
