"""The writer that asks Claude: verified facts first, then words that rest on them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pipeline.engines.base import ANGLES, Brief, Fact
from pipeline.plugins import Refused
from pipeline.text.html_text import strip_invisible
from pipeline.text.links import without_links
from pipeline.text.prose.verbatim_edits import collapse, is_clean
from pipeline.writers.base import (
    Accounted,
    BriefAnswer,
    DraftAnswer,
    Usage,
    Writer,
)
from pipeline.writers.claude import prompts
from pipeline.writers.claude.answers import AnswerUnreadable, parse_answer
from pipeline.writers.claude.conversation import Talk, ready
from pipeline.writers.claude.quotes_in_source import SIGN, Haystack, spelled_out
from pipeline.writers.claude.source_text import FARTHEST, readable, says_more_than_its_title
from pipeline.writers.extractive import PLUGIN as WITHOUT_AI

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.engines.base import Check, Draft, Engine, PersonaCard, SourceText
    from pipeline.writers.base import Judge

LIKENESS: Final = 0.4
"""Two variants that share this much of their words are one idea twice."""
_LEAST_QUOTE: Final = 12
_LEAST_END: Final = 5
"""Characters of the words that name the beginning of a quote, and of those that name its end."""
_FEW_WORDS: Final = 80
_NO_FACTS_FOR_HINT: Final = "The model found no facts in the source that it could write from, so it can't follow a hint. Leave the hint out."

_WORD = re.compile(r"\w+")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")

Answer = TypeVar("Answer")


class Claude(Writer):
    """Two steps: `brief` reads the source and quotes it, `draft` writes from the quotes and never sees the source.

    The split with the stage: the writer repairs, the stage decides. `draft` asks the `judge` that it is handed, has
    what fails written again once, and returns what it has, failing or not; the stage runs the engine's checks on
    what came back and fails an item with the list. A repair that itself fails keeps the drafts that are paid for.
    """

    kind = "claude"
    label = "With AI: Claude"
    offline = False
    prompt_version = prompts.PROMPT_VERSION

    def find(self, source: SourceText, *, client: Any = None) -> BriefAnswer:
        """A source that says nothing beyond its title has no facts and costs nothing.

        Facts keep the order of the model: best first. Where none of them stands in the source, they are those that the
        writer without a model finds, and `without_model` says why.
        """
        text = readable(source)
        if not says_more_than_its_title(source):
            return BriefAnswer(_brief(source, (), is_suspect=False), _no_usage())
        model = ready(client)
        talk = Talk(
            model,
            step="brief",
            model=model.choice.brief,
            system=prompts.brief_system(),
            schema=prompts.BRIEF_SCHEMA,
            max_tokens=prompts.BRIEF_TOKENS,
        )
        answer = talk.answer(
            prompts.brief_request(source, text),
            lambda words: _visible(parse_answer(words, prompts.BRIEF_SCHEMA)),
        )
        listed = answer["facts"]
        facts = _verified(listed, source.text)
        is_suspect = answer["is_instruction_like"]
        language = _language(answer["language"])
        brief = (
            _brief(source, facts, is_suspect=is_suspect, language=language)
            if facts
            else _own_reading(source, is_suspect=is_suspect, language=language, listed=len(listed))
        )
        return BriefAnswer(brief, talk.usage(), talk.calls, dropped=len(listed) - len(facts))

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
        """Without facts of the model's, and for an engine that asks no model, the offline words with the offline label."""
        variant = engine.draft_schema()
        if variant is None or brief.without_model or not brief.facts:
            if hint and variant is not None:
                raise Refused(_NO_FACTS_FOR_HINT, code="needs_ai", field="hint")
            return WITHOUT_AI.draft(
                engine, brief, persona, variants=variants, seed=seed, judge=judge, hint=hint
            )
        wanted = max(1, min(variants, len(ANGLES)))
        schema = prompts.variants_schema(variant)
        model = ready(client)
        talk = Talk(
            model,
            step="draft",
            model=model.choice.draft,
            system=prompts.draft_system(engine, persona, has_source=brief.lane is None),
            schema=schema,
            max_tokens=engine.draft_tokens,
        )

        def drafts_in(words: str) -> list[Draft]:
            return _drafts(_visible(parse_answer(words, schema))["variants"], engine, brief, persona)

        request = prompts.draft_request(
            engine, brief, persona, variants=wanted, seed=seed, hint=hint, former=former
        )
        drafts = talk.answer(request, drafts_in)[:wanted]
        failed = _failures(drafts, judge)
        if failed and talk.can_repair():
            failed = _mend(drafts, failed, talk, drafts_in, judge)
        return DraftAnswer(_distinct(engine, drafts, failed), talk.usage(), talk.calls)


def _no_usage() -> Usage:
    return Usage(provider="anthropic", model="", offline=False, prompt_version=prompts.PROMPT_VERSION)


def _visible(value: Any) -> Any:
    """An answer without hidden characters, in all its strings."""
    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, list):
        return [_visible(member) for member in value]
    if isinstance(value, dict):
        return {name: _visible(member) for name, member in value.items()}
    return value


def _brief(source: SourceText, facts: tuple[Fact, ...], *, is_suspect: bool, language: str = "") -> Brief:
    """Its summary is the first fact, verbatim: a model's own would be the one thing in a brief that nobody checked."""
    return Brief(
        title=source.title,
        language=source.language or language,
        url=source.url,
        facts=facts,
        summary=facts[0].text if facts else "",
        is_suspect=is_suspect,
    )


def _own_reading(source: SourceText, *, is_suspect: bool, language: str, listed: int) -> Brief:
    """What the writer without a model reads, which is never said to be nothing because a model found nothing."""
    read = WITHOUT_AI.brief(source).brief
    why = (
        f"None of the {listed} facts that the model listed can be used: they don't stand in the source, or give orders."
        if listed > 1
        else "The one fact that the model listed can't be used: it doesn't stand in the source, or gives orders."
        if listed
        else "The model found no facts in the source."
    )
    return replace(
        read,
        language=read.language or language,
        is_suspect=read.is_suspect or is_suspect,
        without_model=f"{why} So the words were taken from the source as they stand, without AI.",
    )


def _verified(answered: Sequence[Mapping[str, Any]], text: str) -> tuple[Fact, ...]:
    """Those whose quote the source holds, as the source spells it; each place once."""
    # What no model was shown, none can quote.
    haystack = Haystack(text[:FARTHEST])
    taken: list[tuple[int, int]] = []
    facts: list[Fact] = []
    for answer in answered:
        if len(facts) == prompts.MAX_FACTS:
            break
        if not _LEAST_QUOTE <= len(answer["quote"].strip()) <= prompts.QUOTE_CHARACTERS:
            continue
        span = haystack.find(answer["quote"]) or _between(answer["quote"], haystack)
        if span is None or any(span[0] < end and start < span[1] for start, end in taken):
            continue
        quote = text[slice(*span)]
        if not is_clean(quote):
            continue
        taken.append(span)
        facts.append(
            Fact(
                id=f"f{len(facts) + 1}",
                text=collapse(quote),
                quote=quote,
                start=span[0],
                end=span[1],
                kind=answer["kind"],
            )
        )
    return tuple(facts)


def _between(quote: str, haystack: Haystack) -> tuple[int, int] | None:
    """The place of a quote that is named by its first and its last words."""
    first, sign, last = quote.strip().partition(SIGN)
    if not sign or SIGN in last or min(len(first.strip()), len(last.strip())) < _LEAST_END:
        return None
    span = haystack.find_between(first, last, most=prompts.QUOTE_CHARACTERS)
    return span if span is not None and span[1] - span[0] >= _LEAST_QUOTE else None


def _language(answered: str) -> str:
    tag = answered.strip()
    return tag if _LANGUAGE.fullmatch(tag) else ""


def _drafts(
    variants: Sequence[Mapping[str, Any]], engine: Engine, brief: Brief, persona: PersonaCard
) -> list[Draft]:
    """Raises `AnswerUnreadable` where a variant is none, or repeats our own rules."""
    if not variants:
        raise AnswerUnreadable(["The list of variants is empty."])
    drafts: list[Draft] = []
    for place, variant in enumerate(variants, start=1):
        if any(prompts.lets_rules_out(words) for words in _strings(variant)):
            raise AnswerUnreadable([f"Variant {place} repeats the rules instead of the facts."])
        try:
            told = spelled_out(variant, place)
            drafts.append(engine.draft_from(told, brief, persona, variant["angle"]))
        except Refused as error:
            raise AnswerUnreadable([f"Variant {place}: {error.message}"]) from error
    return drafts


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [words for member in members for words in _strings(member)]


def _failures(drafts: Sequence[Draft], judge: Judge | None) -> dict[int, list[Check]]:
    """The failed checks by the draft's place; none without a judge."""
    if judge is None:
        return {}
    judged = {
        place: [check for check in judge(draft) if check.outcome == "failed"]
        for place, draft in enumerate(drafts)
    }
    return {place: checks for place, checks in judged.items() if checks}


def _mend(
    drafts: list[Draft],
    failed: dict[int, list[Check]],
    talk: Talk,
    drafts_in: Callable[[str], list[Draft]],
    judge: Judge | None,
) -> dict[int, list[Check]]:
    """Has the failed ones written again and puts in what is no worse; answers what fails still."""
    talk.repair(failed)
    try:
        mended = talk.answer(prompts.repair_failed(talk.messages, talk.text, failed), drafts_in)
    except Accounted:
        # The drafts are paid for; an outage of the repair must not have them paid for again.
        return failed
    left = dict(failed)
    for place, draft in zip(talk.variants, mended, strict=False):
        if place not in failed:
            # It failed when the repair was asked, and passes by now.
            continue
        faults = _failures([draft], judge).get(0, [])
        if len(faults) <= len(failed[place]):
            drafts[place] = draft
            left[place] = faults
    return {place: checks for place, checks in left.items() if checks}


def _distinct(
    engine: Engine, drafts: Sequence[Draft], failed: Mapping[int, Sequence[Check]]
) -> tuple[Draft, ...]:
    """In their order, without those that say what a better one says: one that passes is better than one that fails."""
    said: dict[int, frozenset[tuple[str, ...]]] = {}
    for place in sorted(range(len(drafts)), key=lambda place: (place in failed, place)):
        words = _bag(drafts[place].body)
        is_new = not any(len(words & other) >= LIKENESS * len(words | other) for other in said.values())
        if is_new and not any(engine.shares(drafts[place], drafts[other]) for other in said):
            said[place] = words
    return tuple(drafts[place] for place in sorted(said))


def _bag(body: str) -> frozenset[tuple[str, ...]]:
    """What two variants are compared by: words, and of longer texts runs of three words.

    Two articles on the same facts share most of their words, and still say it in other sentences.
    """
    words = _WORD.findall(without_links(body).lower())
    run = 1 if len(words) <= _FEW_WORDS else 3
    return frozenset(tuple(words[place : place + run]) for place in range(len(words) - run + 1))


PLUGIN = Claude()
