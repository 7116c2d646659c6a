"""Checks a draft by its engine's rules, by those for every draft (facts, repetition), and by the persona's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from django.utils.translation import get_language_info

from pipeline.engines.base import Check
from pipeline.engines.checks.allowed_contacts import list_some
from pipeline.engines.checks.grounded import check_grounding, remove_added_words, words_of
from pipeline.engines.checks.persona_rules import check_persona
from pipeline.engines.checks.words_in_pictures import check_further, drawn_words
from pipeline.text.language_detection import other_language
from pipeline.text.prompt_injection import find_obeyed
from pipeline.writers.base import screen_source

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Draft, Engine, PersonaCard, SourceText
    from pipeline.generate.repetition import OwnWords

READING: Final = "reading"
"""Code of the warning that the facts of a model's brief couldn't be used."""

LANGUAGE: Final = "language"
"""Code of the warning that the text is plainly in another language than its sender stated."""


def run_checks(
    engine: Engine,
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    own_words: OwnWords | None = None,
) -> tuple[Check, ...]:
    """Return every check with its outcome; a failed one stops the draft.

    `own_words` are the earlier items to compare with; a topic's run compares with `PersonaHistory` instead.
    """
    draft = engine.marked(draft, brief, persona)
    engine_checks = [
        _check_obeyed_orders(draft, brief, source, persona) or check
        if check.code == "instructions"
        else check
        for check in engine.check(draft, brief, source, persona)
    ]
    engine_codes = {check.code for check in engine_checks}
    # An engine that checks its own words under a code replaces the shared check of the whole text.
    shared_checks = [
        check for check in check_grounding(draft, brief, source, persona) if check.code not in engine_codes
    ]
    repeated = (
        own_words.check(draft, source, is_verbatim=bool(brief.without_model)) if own_words is not None else ()
    )
    reading = (Check(READING, "warning", brief.without_model),) if brief.without_model else ()
    return (
        *engine_checks,
        *shared_checks,
        *check_persona(draft, persona),
        *repeated,
        *reading,
        *check_language(source),
    )


def check_language(source: SourceText) -> tuple[Check, ...]:
    """Return a warning if the source is plainly written in another language than its sender stated.

    A source of several stories is never warned about.
    """
    actual_language = other_language(source.language, source.text)
    if not actual_language or source.stories:
        return ()
    stated_name = _language_name(source.language)
    message = (
        f"The source is stated to be in {stated_name}, and its text is in {_language_name(actual_language)}; what isn't the source's own, such as "
        f"\u201cRead more\u201d, is in {stated_name}. Send it again with the language {actual_language}, or with none, under another "
        "external_id and address."
    )
    return (Check(LANGUAGE, "warning", message),)


def _language_name(language: str) -> str:
    """Return a name such as "German (de)", or the tag alone if the name isn't known."""
    try:
        return f"{get_language_info(language.lower())['name']} ({language})"
    except KeyError:
        return language


def _check_obeyed_orders(
    draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
) -> Check | None:
    """Return the failed check of a draft that obeys an order in its source, or `None` for any other draft."""
    if not brief.orders:
        return None
    screened_source, _ = screen_source(source)
    required_texts = (str(structure.get("text") or "") for structure in persona.required_structures)
    persona_texts = (
        persona.name,
        persona.handle,
        persona.who_you_are,
        persona.voice,
        *persona.approved_lines,
    )
    known_text = "\n".join(
        (
            screened_source.title,
            screened_source.author,
            screened_source.text,
            screened_source.url,
            *persona_texts,
            *required_texts,
        )
    )
    draft_text = remove_added_words("\n".join((draft.title, *words_of(draft))), draft)
    obeyed_orders = find_obeyed(draft_text, brief.orders, known_text)
    if not obeyed_orders:
        return None
    message = f"The text does what orders to a machine in the source want; leave this out: {list_some(obeyed_orders)}."
    return Check("instructions", "failed", message)


def run_checks_with_visuals(
    engine: Engine,
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    own_words: OwnWords | None = None,
) -> tuple[Check, ...]:
    """Return the checks of `run_checks` and those of the words that the draft's pictures or film show.

    The engine makes these words, so no writer can mend them: a failed check of them is a warning. They aren't
    checked if the draft itself failed.
    """
    checks = run_checks(engine, draft, brief, source, persona, own_words=own_words)
    if any(check.outcome == "failed" for check in checks):
        return checks
    draft = engine.marked(draft, brief, persona)
    visible_words = drawn_words(engine, draft, source, persona)
    all_checks = check_further(
        checks, draft, brief, source, persona, further=visible_words, where=visuals_phrase(engine)
    )
    return tuple(
        replace(check, outcome="warning") if check.outcome == "failed" else check for check in all_checks
    )


def visuals_phrase(engine: Engine) -> str:
    """Return the beginning of a sentence about the words that are drawn."""
    return "In the film" if engine.bucket == "video" else "In the picture"
