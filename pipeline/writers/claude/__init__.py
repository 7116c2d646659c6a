"""Writes with Claude: one call lists the source's facts, which are verified, and a second writes from them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pipeline.engines.base import ANGLES, Brief, Fact
from pipeline.plugins import Refused
from pipeline.text.html_text import strip_invisible
from pipeline.text.links import without_links
from pipeline.text.prose.verbatim_edits import collapse, is_clean
from pipeline.text.similarity import is_same_idea
from pipeline.writers.base import (
    Accounted,
    BriefAnswer,
    DraftAnswer,
    Usage,
    Writer,
)
from pipeline.writers.claude import prompts
from pipeline.writers.claude.answers import AnswerUnreadable, parse_answer
from pipeline.writers.claude.conversation import Conversation, require_client
from pipeline.writers.claude.quotes_in_source import ELLIPSIS, Haystack, expand_claims
from pipeline.writers.claude.source_text import (
    MAX_RANKED_CHARACTERS,
    has_text_beyond_title,
    select_readable_text,
)
from pipeline.writers.extractive import PLUGIN as WITHOUT_AI

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.engines.base import Check, Draft, Engine, PersonaCard, SourceText
    from pipeline.writers.base import Judge

_MIN_QUOTE_CHARACTERS: Final = 12
_MIN_QUOTE_END_CHARACTERS: Final = 5
"""The least length of each of the two parts that name the beginning and the end of a quote."""
_MAX_WORDS_COMPARED_SINGLY: Final = 80
"""Longer texts are compared by runs of three words."""
_NO_FACTS_FOR_HINT: Final = "The model found no facts in the source that it could write from, so it can't follow a hint. Leave the hint out."

_WORD = re.compile(r"\w+")
# "pt-BR".
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")

Answer = TypeVar("Answer")


class Claude(Writer):
    """Writes in two steps: `brief` quotes the source, and `draft` writes from the quotes without the source.

    The writer repairs, and its caller decides: `draft` calls `judge`, has the drafts that fail written again once,
    and returns all of them, failing or not. The caller runs the engine's checks again and fails an item with
    their list. After a repair that fails itself, the drafts that are paid for are kept.
    """

    kind = "claude"
    label = "With AI: Claude"
    offline = False
    prompt_version = prompts.PROMPT_VERSION

    def find(self, source: SourceText, *, client: Any = None) -> BriefAnswer:
        """Find the facts with one call, which may be remedied as `Conversation` says.

        A source that says nothing beyond its title has no facts, and costs nothing. Facts keep the order of the
        model, the best first. If none of them stands in the source, the brief is that of the writer without a
        model, and `without_model` gives the reason.
        """
        text = select_readable_text(source)
        if not has_text_beyond_title(source):
            return BriefAnswer(_brief(source, (), is_suspect=False), _no_usage())
        model = require_client(client)
        conversation = Conversation(
            model,
            step="brief",
            model=model.choice.brief,
            system=prompts.system(prompts.BRIEF_RULES),
            schema=prompts.BRIEF_SCHEMA,
            max_tokens=prompts.MAX_BRIEF_TOKENS,
        )
        answer = conversation.answer(
            prompts.brief_request(source, text),
            lambda reply: _without_hidden_characters(parse_answer(reply, prompts.BRIEF_SCHEMA)),
        )
        listed_facts = answer["facts"]
        facts = _verify_facts(listed_facts, source.text)
        is_suspect = answer["is_instruction_like"]
        language = _valid_language(answer["language"])
        brief = (
            _brief(source, facts, is_suspect=is_suspect, language=language)
            if facts
            else _brief_without_model(
                source, is_suspect=is_suspect, language=language, listed_count=len(listed_facts)
            )
        )
        return BriefAnswer(
            brief, conversation.usage(), conversation.calls, dropped=len(listed_facts) - len(facts)
        )

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
        """Write drafts with one call and at most one repair; drafts that are like a better one are dropped.

        If the brief has no facts of the model's, or the engine uses no model, the drafts are the offline writer's,
        with its label. A hint can't be followed without the model's facts and is refused.
        """
        variant = engine.draft_schema()
        if variant is None or brief.without_model or not brief.facts:
            if hint and variant is not None:
                raise Refused(_NO_FACTS_FOR_HINT, code="needs_ai", field="hint")
            return WITHOUT_AI.draft(
                engine, brief, persona, variants=variants, seed=seed, judge=judge, hint=hint
            )
        wanted_variants = max(1, min(variants, len(ANGLES)))
        schema = prompts.variants_schema(variant)
        model = require_client(client)
        conversation = Conversation(
            model,
            step="draft",
            model=model.choice.draft,
            system=prompts.draft_system(engine, persona, has_source=brief.lane is None),
            schema=schema,
            max_tokens=engine.draft_tokens,
        )

        def parse_drafts(text: str) -> list[Draft]:
            return _parse_drafts(
                _without_hidden_characters(parse_answer(text, schema))["variants"], engine, brief, persona
            )

        request = prompts.draft_request(
            engine, brief, persona, variants=wanted_variants, seed=seed, hint=hint, former=former
        )
        drafts = conversation.answer(request, parse_drafts)[:wanted_variants]
        failed_by_index = _failed_checks(drafts, judge)
        if failed_by_index and conversation.can_repair():
            failed_by_index = _repair_drafts(drafts, failed_by_index, conversation, parse_drafts, judge)
        return DraftAnswer(
            _without_similar(engine, drafts, failed_by_index), conversation.usage(), conversation.calls
        )


def _no_usage() -> Usage:
    return Usage(provider="anthropic", model="", offline=False, prompt_version=prompts.PROMPT_VERSION)


def _without_hidden_characters(value: Any) -> Any:
    """Return the value without hidden characters in any of its strings."""
    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, list):
        return [_without_hidden_characters(member) for member in value]
    if isinstance(value, dict):
        return {name: _without_hidden_characters(member) for name, member in value.items()}
    return value


def _brief(source: SourceText, facts: tuple[Fact, ...], *, is_suspect: bool, language: str = "") -> Brief:
    """Return the brief; its summary is the first fact, because a summary by the model would be unchecked."""
    return Brief(
        title=source.title,
        language=source.language or language,
        url=source.url,
        facts=facts,
        summary=facts[0].text if facts else "",
        is_suspect=is_suspect,
    )


def _brief_without_model(source: SourceText, *, is_suspect: bool, language: str, listed_count: int) -> Brief:
    """Return the brief of the writer without a model, which may find facts even if a model listed none."""
    brief = WITHOUT_AI.brief(source).brief
    if listed_count > 1:
        reason = (
            f"None of the {listed_count} facts that the model listed can be used: they aren't in the "
            "source, or give orders."
        )
    elif listed_count:
        reason = "The one fact that the model listed can't be used: it isn't in the source, or gives orders."
    else:
        reason = "The model found no facts in the source."
    return replace(
        brief,
        language=brief.language or language,
        is_suspect=brief.is_suspect or is_suspect,
        without_model=f"{reason} So the words were taken from the source as they stand, without AI.",
    )


def _verify_facts(listed_facts: Sequence[Mapping[str, Any]], text: str) -> tuple[Fact, ...]:
    """Return the facts whose quote stands in the source, in its spelling; of overlapping quotes the first.

    Quotes that are too short, too long or unclean are dropped.
    """
    # Nothing beyond this was shown to the model, so it can't be quoted.
    haystack = Haystack(text[:MAX_RANKED_CHARACTERS])
    used_spans: list[tuple[int, int]] = []
    facts: list[Fact] = []
    for listed in listed_facts:
        if len(facts) == prompts.MAX_FACTS:
            break
        if not _MIN_QUOTE_CHARACTERS <= len(listed["quote"].strip()) <= prompts.MAX_QUOTE_CHARACTERS:
            continue
        span = haystack.find(listed["quote"]) or _find_by_ends(listed["quote"], haystack)
        if span is None or any(span[0] < end and start < span[1] for start, end in used_spans):
            continue
        quote = text[slice(*span)]
        if not is_clean(quote):
            continue
        used_spans.append(span)
        facts.append(
            Fact(
                id=f"f{len(facts) + 1}",
                text=collapse(quote),
                quote=quote,
                start=span[0],
                end=span[1],
                kind=listed["kind"],
            )
        )
    return tuple(facts)


def _find_by_ends(quote: str, haystack: Haystack) -> tuple[int, int] | None:
    """Return the span of a quote that is given by its first and its last words, or `None` if there is none."""
    first_words, separator, last_words = quote.strip().partition(ELLIPSIS)
    if (
        not separator
        or ELLIPSIS in last_words
        or min(len(first_words.strip()), len(last_words.strip())) < _MIN_QUOTE_END_CHARACTERS
    ):
        return None
    span = haystack.find_between(first_words, last_words, max_characters=prompts.MAX_QUOTE_CHARACTERS)
    return span if span is not None and span[1] - span[0] >= _MIN_QUOTE_CHARACTERS else None


def _valid_language(tag_text: str) -> str:
    tag = tag_text.strip()
    return tag if _LANGUAGE.fullmatch(tag) else ""


def _parse_drafts(
    variants: Sequence[Mapping[str, Any]], engine: Engine, brief: Brief, persona: PersonaCard
) -> list[Draft]:
    """Return the drafts of the variants.

    Raises `AnswerUnreadable` if there are none, or if one is refused by the engine, repeats the prompt's rules, or
    claims words that don't stand in it.
    """
    if not variants:
        raise AnswerUnreadable(["The list of variants is empty."])
    drafts: list[Draft] = []
    for number, variant in enumerate(variants, start=1):
        if any(prompts.repeats_rules(text) for text in _strings_in(variant)):
            raise AnswerUnreadable([f"Variant {number} repeats the rules instead of the facts."])
        try:
            expanded = expand_claims(variant, number)
            drafts.append(engine.draft_from(expanded, brief, persona, variant["angle"]))
        except Refused as error:
            raise AnswerUnreadable([f"Variant {number}: {error.message}"]) from error
    return drafts


def _strings_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for member in members for text in _strings_in(member)]


def _failed_checks(drafts: Sequence[Draft], judge: Judge | None) -> dict[int, list[Check]]:
    """Return the failed checks by the draft's index, or `{}` without a judge."""
    if judge is None:
        return {}
    failed = {
        index: [check for check in judge(draft) if check.outcome == "failed"]
        for index, draft in enumerate(drafts)
    }
    return {index: checks for index, checks in failed.items() if checks}


def _repair_drafts(
    drafts: list[Draft],
    failed_by_index: dict[int, list[Check]],
    conversation: Conversation,
    parse_drafts: Callable[[str], list[Draft]],
    judge: Judge | None,
) -> dict[int, list[Check]]:
    """Have the failed drafts written again, replace those that get no worse, and return the failed checks by index.

    If the repair fails, the drafts stay as they are.
    """
    conversation.use_repair(failed_by_index)
    try:
        repaired = conversation.answer(
            prompts.repair_failed(conversation.messages, conversation.text, failed_by_index), parse_drafts
        )
    except Accounted:
        # The drafts are paid for; if the repair fails, they must not be paid for again.
        return failed_by_index
    remaining = dict(failed_by_index)
    for index, draft in zip(conversation.variants, repaired, strict=False):
        if index not in failed_by_index:
            # It failed when the repair was sent to a batch, and passes by now.
            continue
        failed_checks = _failed_checks([draft], judge).get(0, [])
        if len(failed_checks) <= len(failed_by_index[index]):
            drafts[index] = draft
            remaining[index] = failed_checks
    return {index: checks for index, checks in remaining.items() if checks}


def _without_similar(
    engine: Engine, drafts: Sequence[Draft], failed_by_index: Mapping[int, Sequence[Check]]
) -> tuple[Draft, ...]:
    """Return the drafts in their order, without those that are like a better one.

    A draft that passes is better than one that fails, and an earlier one than a later one.
    """
    runs_by_index: dict[int, frozenset[tuple[str, ...]]] = {}
    for index in sorted(range(len(drafts)), key=lambda index: (index in failed_by_index, index)):
        runs = _word_runs(drafts[index].body)
        is_new = not any(is_same_idea(runs, other) for other in runs_by_index.values())
        if is_new and not any(engine.shares(drafts[index], drafts[other]) for other in runs_by_index):
            runs_by_index[index] = runs
    return tuple(drafts[index] for index in sorted(runs_by_index))


def _word_runs(body: str) -> frozenset[tuple[str, ...]]:
    """Return the words of a text, or the runs of three words of a longer one, by which variants are compared.

    Two articles on the same facts share most of their words, and still have different sentences.
    """
    words = _WORD.findall(without_links(body).lower())
    run_length = 1 if len(words) <= _MAX_WORDS_COMPARED_SINGLY else 3
    return frozenset(tuple(words[start : start + run_length]) for start in range(len(words) - run_length + 1))


PLUGIN = Claude()
