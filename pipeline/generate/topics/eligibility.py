"""What a brand lane can make of what its workspace has: asked before it is saved, and again before each run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

from pipeline.generate.checks import run_checks
from pipeline.generate.model.keys import has_key
from pipeline.generate.persona_cards import persona_card
from pipeline.generate.topics.select import pool_of, subject_of
from pipeline.models import Persona, Topic, WorkspaceDefaults
from pipeline.plugins import Refused, Unavailability
from pipeline.sources.brand import PLUGIN, topics_in
from pipeline.switches import availability
from pipeline.writers.extractive import lane_drafts
from pipeline.writers.topic_and_story_briefs import brief_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pipeline.engines.base import Engine, PersonaCard
    from pipeline.generate.topics.select import TopicChoice
    from pipeline.models import Source

_TOPICS_TRIED: Final = 20
"""Topics that are tried before a lane is saved: one of which something can be made is enough."""


def engines_of(source: Source, defaults: WorkspaceDefaults) -> list[Engine]:
    """Those of the source that can be made from a topic and run here.

    Where it names none, those of the workspace that say one thing: a slot has enough to say for them.
    """
    names = source.engines or defaults.engines
    known = {engine.name: engine for engine in availability.engines()}
    able = [known[name] for name in names if name in known and "topic" in known[name].made_from]
    short = [engine for engine in able if engine.least_lines == 1]
    return able if source.engines or not short else short


def unavailable(source: Source) -> Unavailability | None:
    """Why a lane that is set so can make nothing; None where it can, and for other kinds. It needs not be stored.

    It needs an engine and a topic. Without a model there must also be something that a person wrote for it to say: an
    approved line of the persona, or whole sentences in the notes or evidence of a topic.
    """
    if source.type != PLUGIN.kind:
        return None
    defaults = WorkspaceDefaults.everywhere.get(workspace_id=source.workspace_id)
    persona_id = source.persona_id or defaults.persona_id
    persona = _card(persona_id)
    engines = engines_of(source, defaults)
    if not engines:
        reason = _("None of the lane's engines can be made from a topic.")
        remedy = _("Choose one that can: GET /v1/engines lists `topic` in `made_from`.")
        return Unavailability(reason, remedy, code="no_engine", field="engines")
    topics = _topics(source, persona_id)
    has_model = has_key(source)
    if not topics:
        reason = _("The lane has no topic to speak of.")
        remedy = (
            _("Name some in `config.topics`, or add them to the workspace's pool (POST /v1/topics).")
            if has_model or persona.approved_lines
            else _give_words("…")
        )
        return Unavailability(reason, remedy, code="no_topic", field="config.topics")
    if has_model:
        return None
    # Those that say something themselves first: without approved lines no other one can do.
    topics.sort(key=lambda topic: not (topic.notes or topic.evidence))
    if not persona.approved_lines and not (topics[0].notes or topics[0].evidence):
        reason = _(
            "This workspace has no model, and nothing else that the lane may say: none of the topics that it names has "
            "notes or evidence, and the persona has no approved lines."
        )
        remedy = _give_words(topics[0].title)
        if topics_in(source.config) and _pool_says_something(source):
            pool = _(
                "The workspace's pool has topics with notes: leave `topics` out to take them all, or name some by id in "
                "`pool` (GET /v1/topics)."
            )
            remedy = f"{pool} {remedy}"
        return Unavailability(reason, remedy, code="needs_ai", field="config.topics")
    why_not: list[str] = []
    for topic in topics[:_TOPICS_TRIED]:
        able, reasons = divide(engines, topic, next(iter(topic.angles), ""), persona)
        if able:
            return None
        why_not = why_not or reasons
    reason = _("Without a model nothing can be made of what the lane may say. %(why)s") % {
        "why": " ".join(_once_each(why_not))
    }
    remedy = _("Choose other engines, say more in whole sentences, or give the workspace a key for a model.")
    return Unavailability(reason, remedy, code="needs_ai", field="config.topics")


def makeable(
    source: Source, engines: Sequence[Engine], choice: TopicChoice, persona_id: UUID | None
) -> tuple[list[Engine], list[str]]:
    """The engines that can make something of this choice, and for each of the others a sentence that says why not.

    Where a model writes, all of them may.
    """
    if has_key(source):
        return list(engines), []
    return divide(engines, choice.topic, choice.angle, _card(persona_id))


def divide(
    engines: Sequence[Engine], topic: Topic, angle: str, persona: PersonaCard
) -> tuple[list[Engine], list[str]]:
    """As `makeable`, without a model: the writer tries each engine, and nothing is stored."""
    able, why_not = [], []
    for engine in engines:
        reason = _why_not(engine, topic, angle, persona)
        if reason is None:
            able.append(engine)
        else:
            why_not.append(f"{engine.name}: {reason}")
    return able, why_not


def _why_not(engine: Engine, topic: Topic, angle: str, persona: PersonaCard) -> str | None:
    brief, source = brief_of(subject_of(topic, angle), persona)
    try:
        lane_drafts(
            engine,
            brief,
            persona,
            variants=1,
            seed=topic.pk.hex,
            judge=lambda draft: run_checks(engine, draft, brief, source, persona),
        )
    except Refused as refused:
        return refused.message
    return None


def _topics(source: Source, persona_id: UUID | None) -> list[Topic]:
    """What the lane would speak of, those of its own list too that aren't stored yet."""
    stored = list(pool_of(source, persona_id).order_by("id"))
    listed = topics_in(source.config)
    if not listed:
        return stored
    there = {topic.title: topic for topic in stored}
    found = [there.get(title) or Topic(title=title) for title in listed]
    for topic in found:
        topic.notes = listed[topic.title] or topic.notes
    return found


def _card(persona_id: UUID | None) -> PersonaCard:
    persona: Persona | None = Persona.everywhere.filter(pk=persona_id).first() if persona_id else None
    return persona_card(persona_id, persona.version if persona is not None else None)


def _pool_says_something(source: Source) -> bool:
    pool = Topic.objects.of(source.workspace).filter(source=None, deleted_at=None, test=source.test)
    return any(topic.notes or topic.evidence for topic in pool.order_by("id")[:_TOPICS_TRIED])


def _once_each(reasons: Sequence[str]) -> list[str]:
    """`["A: why", "B: why"]` as `["A, B: why"]`."""
    engines: dict[str, list[str]] = {}
    for one in reasons:
        name, _colon, reason = one.partition(": ")
        engines.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in engines.items()]


def _give_words(title: str) -> str:
    return _(
        "Give a topic notes in whole sentences, on the page Topics, with POST or PATCH /v1/topics, or as "
        '`"config": {"topics": [{"title": %(title)s, "notes": "What may be said about it."}]}`. Or give the persona approved lines, or the workspace '
        "a key for a model in its settings."
    ) % {"title": json.dumps(title, ensure_ascii=False)}
