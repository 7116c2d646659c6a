"""Writes without a model, by repeating a source's most telling sentences verbatim."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeline.engines.base import EVIDENCE, OF_TOPIC, Brief
from pipeline.engines.checks.persona_rules import check_persona, missing_in
from pipeline.plugins import Refused
from pipeline.text.prose.verbatim_edits import is_question
from pipeline.writers.approved_line_drafts import REPETITION, draft_approved_lines
from pipeline.writers.base import NO_HINTS, BriefAnswer, DraftAnswer, Usage, Writer, answer_screened
from pipeline.writers.extractive.telling_sentences import find_facts, find_heading_facts, find_whole_text

if TYPE_CHECKING:
    from pipeline.engines.base import Draft, Engine, Fact, PersonaCard, SourceText
    from pipeline.writers.base import Judge

FROM_SOURCE = "extractive-1"
"""The model name of drafts that are sentences of the source."""
APPROVED_LINES = "approved-lines-1"
"""The model name of drafts that are approved lines of the persona, word for word."""
_MAX_DRAFTS_TRIED = 24
"""The most drafts of one topic that are tried to find one that repeats no recent item."""


def _build_brief(source: SourceText) -> Brief:
    facts = find_facts(source.text, title=source.title)
    return Brief(
        title=source.title,
        language=source.language,
        url=source.url,
        facts=facts,
        summary=facts[0].text if facts else "",
        headings=find_heading_facts(source),
        characters=len(source.text),
        whole=find_whole_text(source.text, source.title),
    )


def brief_of(source: SourceText) -> Brief:
    """Return this writer's brief of a source, which is the same each time."""

    def find(screened: SourceText) -> BriefAnswer:
        return BriefAnswer(_build_brief(screened), Usage("offline", "", offline=True, prompt_version=""))

    return answer_screened(source, find).brief


class Extractive(Writer):
    """Writes without a model, in sentences of the source."""

    kind = "extractive"
    label = "Without AI: sentences taken from the source"
    offline = True
    prompt_version = FROM_SOURCE

    def _usage(self) -> Usage:
        return Usage(provider="offline", model=FROM_SOURCE, offline=True, prompt_version=self.prompt_version)

    def find(self, source: SourceText, *, client: Any = None) -> BriefAnswer:
        del client
        return BriefAnswer(_build_brief(source), self._usage())

    def draft(
        self,
        engine: Engine,
        brief: Brief,
        persona: PersonaCard,
        *,
        variants: int,
        seed: str,
        client: Any = None,
        judge: Judge | None = None,
        hint: str = "",
        former: Draft | None = None,
    ) -> DraftAnswer:
        del client, former
        if hint:
            raise Refused(NO_HINTS, code="needs_ai", field="hint")
        if brief.lane is not None:
            drafts, are_lines = draft_for_lane(
                engine, brief, persona, variants=variants, seed=seed, judge=judge
            )
            usage = self._usage()
            return DraftAnswer(drafts, replace(usage, model=APPROVED_LINES) if are_lines else usage)
        drafts = draft_without_model(engine, brief, persona, variants=variants, seed=seed)
        return DraftAnswer(drafts, self._usage())


def draft_without_model(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str
) -> tuple[Draft, ...]:
    """Return the engine's drafts without a model, at most `variants`.

    A question makes readers expect its answer, so questions are used only if the persona wants one, the engine
    takes whole stretches, or there are fewer drafts without. Raises `Refused` if the engine can make no draft; if
    only the persona's rules prevent it, the message names them.
    """
    preferred_brief = brief if _wants_questions(engine, persona) else _without_questions(brief)
    preferred_drafts: tuple[Draft, ...] = ()
    if preferred_brief.facts and preferred_brief != brief:
        with suppress(Refused):
            preferred_drafts = engine.offline(preferred_brief, persona, variants=variants, seed=seed)
        if len(preferred_drafts) == variants:
            return preferred_drafts
    try:
        drafts = engine.offline(brief, persona, variants=variants, seed=seed)
    except Refused as refused:
        if preferred_drafts:
            return preferred_drafts
        rule = blocking_rule(engine, brief, persona, variants=1, seed=seed)
        if rule is None:
            raise
        message = f"The source's sentences don't keep the persona's rules as a {engine.name}: {rule}"
        raise Refused(message, code=refused.code) from refused
    return drafts if len(drafts) > len(preferred_drafts) else preferred_drafts


def _wants_questions(engine: Engine, persona: PersonaCard) -> bool:
    return engine.takes_stretches or any(
        structure.get("kind") == "ends_with_question" for structure in persona.required_structures
    )


def _without_questions(brief: Brief) -> Brief:
    return replace(brief, facts=tuple(fact for fact in brief.facts if not is_question(fact.text)))


def blocking_rule(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str
) -> str | None:
    """Return the persona's rules that leave fewer than `variants` drafts, or `None` if they don't."""
    if not persona.banned_words and not persona.required_structures:
        return None
    unrestricted = replace(persona, banned_words=(), required_structures=())
    try:
        drafts = engine.offline(brief, unrestricted, variants=variants, seed=seed)
    except Refused:
        return None
    if len(drafts) < variants:
        return None
    for draft in drafts:
        faults = [check.message for check in check_persona(draft, persona) if check.outcome == "failed"]
        if faults := faults or list(missing_in(draft.body, persona)):
            return " ".join(faults)
    return None


# --- Of a topic ------------------------------------------------------------------------------------------------------


def draft_for_lane(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str, judge: Judge | None
) -> tuple[tuple[Draft, ...], bool]:
    """Return a brand lane's drafts without a model, and whether all of them are approved lines.

    Approved lines come first, because a person chose their words; then sentences of the topic's notes and
    evidence. Raises `Refused` if neither gives a draft.
    """
    own_sentences = _topic_sentences(brief) if engine.least_lines else ()
    lines: tuple[Draft, ...] = ()
    try:
        lines = draft_approved_lines(engine, brief, persona, variants=variants, seed=seed, judge=judge)
    except Refused:
        if not own_sentences:
            raise
    if len(lines) == variants or not own_sentences:
        return lines, True
    try:
        topic_posts = _topic_drafts(
            engine,
            brief,
            persona,
            variants=variants - len(lines),
            seed=seed,
            judge=judge,
        )
    except Refused:
        if not lines:
            raise
        return lines, True
    return (*lines, *topic_posts), False


def _topic_sentences(brief: Brief) -> tuple[Fact, ...]:
    """Return the sentences of the topic's notes and evidence, in their order, without its title."""
    title = brief.lane.topic.strip() if brief.lane is not None else ""
    return tuple(fact for fact in brief.facts if fact.kind in {OF_TOPIC, EVIDENCE} and fact.quote != title)


def _topic_drafts(
    engine: Engine,
    brief: Brief,
    persona: PersonaCard,
    *,
    variants: int,
    seed: str,
    judge: Judge | None,
) -> tuple[Draft, ...]:
    """Return at most `variants` drafts whose every claim is a sentence of the topic's notes or evidence.

    Drafts that `judge` fails are skipped. If only drafts that repeat earlier items are left, one of them is
    returned, so that the caller can change the topic. Raises `Refused` if the topic says too little for the
    engine, or if `judge` fails every draft for another reason.
    """
    facts = _ranked_sentences(brief)
    length = sum(len(fact.quote) for fact in facts)
    topic_brief = replace(brief, facts=facts, characters=length)
    drafts = draft_without_model(engine, topic_brief, persona, variants=_MAX_DRAFTS_TRIED, seed=seed)
    accepted: list[Draft] = []
    repeated: list[Draft] = []
    faults: list[str] = []
    # A draft without claims is the topic's title, which says nothing about it.
    for draft in (candidate for candidate in drafts if candidate.claims):
        failed = [] if judge is None else [check for check in judge(draft) if check.outcome == "failed"]
        if not failed:
            accepted.append(draft)
        elif all(check.code == REPETITION for check in failed):
            repeated.append(draft)
        else:
            faults += [check.message for check in failed]
        if len(accepted) == variants:
            break
    if accepted or repeated:
        return tuple(accepted or repeated[:1])
    fault = f" {faults[0]}" if faults else ""
    message = (
        f"The notes and evidence of the topic have no sentence that could stand as a {engine.name}.{fault} Add whole "
        "sentences to them."
    )
    raise Refused(message, code="nothing_to_say")


def _ranked_sentences(brief: Brief) -> tuple[Fact, ...]:
    """Return the topic's most telling sentences, the best first."""
    facts = _topic_sentences(brief)
    rank_by_quote: dict[str, int] = {}
    for ranked in find_facts("\n\n".join(fact.quote for fact in facts), title=brief.title):
        rank_by_quote.setdefault(ranked.quote, len(rank_by_quote))
    # A sentence that isn't among the most telling ones repeats another, or says little.
    return tuple(
        sorted(
            (fact for fact in facts if fact.quote in rank_by_quote),
            key=lambda fact: rank_by_quote[fact.quote],
        )
    )


PLUGIN = Extractive()
