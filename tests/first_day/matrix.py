"""What becomes of an engine that was asked for: acceptance, draft, judge, as pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from pipeline import plugins
from pipeline.engines.base import Engine, PersonaCard, SourceText
from pipeline.generate.checks import run_checks
from pipeline.generate.generation_plan import ask_writer, refusal_by_rules
from pipeline.plugins import Refused
from pipeline.render.audio.transcript_sentences import text_of
from pipeline.render.video.material import Clip, FilmMaterial, StillImage
from pipeline.render.video.storyboard import Word
from pipeline.text.plain_text import seen_text
from pipeline.writers.base import screen_source
from pipeline.writers.extractive import PLUGIN as WRITER
from pipeline.writers.topic_and_story_briefs import SourcePart, combine
from tests.first_day.texts import Text, texts

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Draft

ENGINES: Final = tuple(sorted(plugins.every("engines", Engine), key=lambda one: one.name))
URLS: Final = ("", "https://news24.example/2026/story", "http://127.0.0.1:8012/story")
PERSONAS: Final = (PersonaCard("Harbour Desk"), PersonaCard("Harbour 24", "harbour24"))
_TOKEN: Final = 4
"""Characters of a spoken stretch, in scripts without spaces."""


@dataclass(frozen=True)
class Outcome:
    """`ready`, `skipped` with the reason that acceptance gave, or `failed` with what the judge or the writer said."""

    engine: Engine
    status: str
    reason: str = ""
    drafts: tuple[Draft, ...] = ()


def with_url(
    text: Text, engine: Engine, url: str, *, language: str | None = None
) -> tuple[SourceText, Brief]:
    """What the engine is asked with, at that address; `language` in the place of the text's own."""
    source, brief = _asked(text, engine, text.language if language is None else language)
    return replace(source, url=url), replace(brief, url=url)


def outcome(engine: Engine, source: SourceText, brief: Brief, persona: PersonaCard) -> Outcome:
    shown, _ = screen_source(source)
    ruled_out = refusal_by_rules(engine, shown)
    if ruled_out is not None:
        return Outcome(engine, "skipped", ruled_out.message)
    able, refusal = ask_writer(engine, source, brief, persona, variants=1)
    if refusal is not None and not able:
        return Outcome(engine, "skipped", refusal.message)
    try:
        drafts = WRITER.draft(engine, engine.told(brief, source), persona, variants=1, seed="1").drafts
    except Refused as refused:
        return Outcome(engine, "failed", f"{refused.code}: {refused.message}")
    if not drafts:
        return Outcome(engine, "failed", "vanished: no draft and no reason")
    told = engine.told(brief, source)
    faults = [
        f"{check.code}: {check.message}"
        for draft in drafts
        for check in run_checks(engine, draft, told, source, persona)
        if check.outcome == "failed"
    ]
    return Outcome(engine, "failed" if faults else "ready", " ".join(faults), drafts)


@cache
def _asked(text: Text, engine: Engine, language: str) -> tuple[SourceText, Brief]:
    """The source as this engine is asked with it: with a video, pictures or other stories where it needs them."""
    source, brief = briefed(text, language)
    if "series" in engine.made_from:
        return _digest(text, language)
    if "video" not in engine.made_from:
        return source, brief
    words = spoken(source.text)
    source = replace(source, text=text_of(words), material=material(words))
    return source, WRITER.brief(source).brief


@cache
def briefed(text: Text, language: str) -> tuple[SourceText, Brief]:
    source = SourceText(text.title, seen_text(text.body, text.body_format), language=language)
    return source, WRITER.brief(source).brief


@cache
def _digest(text: Text, language: str) -> tuple[SourceText, Brief]:
    """It and the next two, as three stories."""
    every = texts()
    at = every.index(text)
    told = [text, every[(at + 1) % len(every)], every[(at + 2) % len(every)]]
    brief, source = combine([SourcePart(one.name, *briefed(one, language)) for one in told])
    return source, brief


def spoken(text: str) -> tuple[Word, ...]:
    """The text as somebody speaks it, with a rest after each sentence."""
    words: list[Word] = []
    at = 0.5
    for word in text.split():
        is_long = not word.isascii() and len(word) > 3 * _TOKEN
        tokens = (
            [word[place : place + _TOKEN] for place in range(0, len(word), _TOKEN)] if is_long else [word]
        )
        for token in tokens:
            words.append(Word(token, round(at, 2), round(at + 0.3, 2)))
            at += 0.34
        if word[-1] in ".!?\u3002\u061f":
            at += 0.6
    return tuple(words)


def material(words: tuple[Word, ...]) -> FilmMaterial:
    """What came with it: a video in which it is said, a short silent one, two pictures."""
    return FilmMaterial(
        clips=(
            Clip("upl_01jd0000000000000000000001", words, seconds=words[-1].end + 1.0),
            Clip("upl_01jd0000000000000000000002", seconds=7.5, author="Quay TV", licence="CC BY 4.0"),
        ),
        stills=(
            StillImage("upl_01jd0000000000000000000003", 1600, 1067, "Ines Duarte", "CC0"),
            StillImage("upl_01jd0000000000000000000004", 1080, 1620),
        ),
        credit="Night Desk",
    )


def asked(text: Text, engine: Engine, url: str, persona: PersonaCard) -> Outcome:
    """What becomes of one engine of the matrix."""
    return _asked_once(text, engine, url, PERSONAS.index(persona))


@cache
def _asked_once(text: Text, engine: Engine, url: str, persona: int) -> Outcome:
    return outcome(engine, *with_url(text, engine, url), PERSONAS[persona])
