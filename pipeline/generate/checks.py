"""What decides over a draft: the engine's rules, what every draft has to prove, and the persona's rules."""

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
from pipeline.text.prompt_injection import obeyed_in
from pipeline.writers.strip_injections import screened

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Draft, Engine, PersonaCard, SourceText
    from pipeline.generate.repetition import OwnWords

READING: Final = "reading"
"""The check that warns where a model was asked and its facts couldn't be used."""

LANGUAGE: Final = "language"
"""The check that warns where the text is plainly in another language than was stated."""


def run_checks(
    engine: Engine,
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    own_words: OwnWords | None = None,
) -> tuple[Check, ...]:
    """Every rule with its outcome; one that failed stops the draft. A brand lane has a memory of its own."""
    draft = engine.marked(draft, brief, persona)
    own = [
        _check_orders(draft, brief, source, persona) or check if check.code == "instructions" else check
        for check in engine.check(draft, brief, source, persona)
    ]
    given = {check.code for check in own}
    # What the engine has proven over its own words isn't proven again over all of them.
    shared = [check for check in check_grounding(draft, brief, source, persona) if check.code not in given]
    repeated = (
        own_words.check(draft, source, is_verbatim=bool(brief.without_model)) if own_words is not None else ()
    )
    reading = (Check(READING, "warning", brief.without_model),) if brief.without_model else ()
    return (*own, *shared, *check_persona(draft, persona), *repeated, *reading, *check_language(source))


def check_language(source: SourceText) -> tuple[Check, ...]:
    """A warning for a source that is plainly written in another language than its sender stated."""
    written = other_language(source.language, source.text)
    if not written or source.stories:
        return ()
    stated = _called(source.language)
    message = (
        f"The source is stated to be in {stated}, and its text is in {_called(written)}; what isn't the source's own, such as "
        f"\u201cRead more\u201d, is in {stated}. Send it again with the language {written}, or with none, under another "
        "external_id and address."
    )
    return (Check(LANGUAGE, "warning", message),)


def _called(language: str) -> str:
    """Such as "German (de)"; the tag alone where its name isn't known."""
    try:
        return f"{get_language_info(language.lower())['name']} ({language})"
    except KeyError:
        return language


def _check_orders(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> Check | None:
    """The failure of a draft that does what an order in its source wants; None for any other."""
    if not brief.orders:
        return None
    shown, _ = screened(source)
    required = (str(one.get("text") or "") for one in persona.required_structures)
    own = (persona.name, persona.handle, persona.who_you_are, persona.voice, *persona.approved_lines)
    known = "\n".join((shown.title, shown.author, shown.text, shown.url, *own, *required))
    words = remove_added_words("\n".join((draft.title, *words_of(draft))), draft)
    done = obeyed_in(words, brief.orders, known)
    if not done:
        return None
    message = f"The text does what orders to a machine in the source want; leave this out: {list_some(done)}."
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
    """The same, with what its pictures or its film show. That is the engine's doing: it warns, and no writer can mend it."""
    checks = run_checks(engine, draft, brief, source, persona, own_words=own_words)
    if any(check.outcome == "failed" for check in checks):
        return checks
    draft = engine.marked(draft, brief, persona)
    shown = drawn_words(engine, draft, source, persona)
    found = check_further(checks, draft, brief, source, persona, further=shown, where=place_of(engine))
    return tuple(replace(one, outcome="warning") if one.outcome == "failed" else one for one in found)


def place_of(engine: Engine) -> str:
    """Where the words of its pictures or its film are read, as a sentence begins with it."""
    return "In the film" if engine.bucket == "video" else "In the picture"
