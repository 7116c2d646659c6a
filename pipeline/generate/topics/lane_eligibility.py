"""Finds the formats that a brand lane can make in its workspace, before it is saved and before each run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

from pipeline.generate.checks import run_checks
from pipeline.generate.model.keys import has_key
from pipeline.generate.persona_cards import persona_card
from pipeline.generate.topics.select import pool_of, subject_of
from pipeline.models import Topic, WorkspaceDefaults
from pipeline.plugins import Refused, Unavailability
from pipeline.sources.brand import PLUGIN, topics_in
from pipeline.switches import availability
from pipeline.writers.extractive import draft_for_lane
from pipeline.writers.topic_and_story_briefs import brief_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pipeline.engines.base import Engine, PersonaCard
    from pipeline.generate.topics.select import TopicChoice
    from pipeline.models import Source

_TOPICS_TRIED: Final = 20
"""The most topics that are tried before a lane is saved; one from which something can be made is enough."""


def engines_of(source: Source, defaults: WorkspaceDefaults) -> list[Engine]:
    """Return the lane's engines that are available and can be made from a topic.

    A lane that names no engines has the workspace's, and of these only the short ones (`least_lines` 1) if there
    are any.
    """
    names = source.engines or defaults.engines
    available = {engine.name: engine for engine in availability.engines()}
    topic_engines = [
        available[name] for name in names if name in available and "topic" in available[name].made_from
    ]
    short_engines = [engine for engine in topic_engines if engine.least_lines == 1]
    return topic_engines if source.engines or not short_engines else short_engines


def why_unavailable(source: Source) -> Unavailability | None:
    """Return the reason and remedy if this lane could make nothing, or `None` if it can make something.

    It is `None` for other kinds of sources too. The source need not be stored. A lane needs an engine and a
    topic. Without a model it also needs words by a person: an approved line of the persona, or whole sentences
    in the notes or evidence of a topic.
    """
    if source.type != PLUGIN.kind:
        return None
    defaults = WorkspaceDefaults.everywhere.get(workspace_id=source.workspace_id)
    persona_id = source.persona_id or defaults.persona_id
    persona = persona_card(persona_id, None)
    engines = engines_of(source, defaults)
    if not engines:
        reason = _("None of the lane's formats can be made from a topic.")
        remedy = _("Choose one that can: GET /v1/engines lists `topic` in `made_from`.")
        return Unavailability(reason, remedy, code="no_engine", field="engines")
    topics = _topics_of_lane(source, persona_id)
    has_model = has_key(source)
    if not topics:
        return _why_no_topic(needs_words=not has_model and not persona.approved_lines)
    if has_model:
        return None
    # Topics with own text first: without approved lines only those can be made into something.
    topics.sort(key=lambda topic: not _says_something(topic))
    return _why_no_words(source, topics[0], persona) or _why_nothing_passes(engines, topics, persona)


def _why_no_topic(*, needs_words: bool) -> Unavailability:
    """Return that the lane has no topic. `needs_words` says that a topic must also bring its own text."""
    reason = _("The lane has no topic to speak of.")
    remedy = (
        _remedy_words("…")
        if needs_words
        else _("Name some in `config.topics`, or add them to the workspace's pool (POST /v1/topics).")
    )
    return Unavailability(reason, remedy, code="no_topic", field="config.topics")


def _why_no_words(source: Source, first: Topic, persona: PersonaCard) -> Unavailability | None:
    """Return that a lane without a model has no words by a person to use, or `None` if it has some.

    `first` is a topic with notes or evidence if the lane has one.
    """
    if persona.approved_lines or _says_something(first):
        return None
    reason = _(
        "This workspace has no model, and nothing else that the lane may say: none of the topics that it names has "
        "notes or evidence, and the persona has no approved lines."
    )
    remedy = _remedy_words(first.title)
    if topics_in(source.config) and _pool_says_something(source):
        pool = _(
            "The workspace's pool has topics with notes: leave `topics` out to take them all, or name some by id in "
            "`pool` (GET /v1/topics)."
        )
        remedy = f"{pool} {remedy}"
    return Unavailability(reason, remedy, code="needs_ai", field="config.topics")


def _why_nothing_passes(
    engines: Sequence[Engine], topics: Sequence[Topic], persona: PersonaCard
) -> Unavailability | None:
    """Return that every engine refuses the topics of a lane without a model, or `None` if one can be made.

    At most `_TOPICS_TRIED` topics are tried.
    """
    refusals: list[str] = []
    for topic in topics[:_TOPICS_TRIED]:
        makeable, topic_refusals = makeable_engines_without_model(
            engines, topic, next(iter(topic.angles), ""), persona
        )
        if makeable:
            return None
        refusals = refusals or topic_refusals
    reason = _("Without a model nothing can be made of what the lane may say. %(why)s") % {
        "why": " ".join(_grouped_by_reason(refusals))
    }
    remedy = _("Choose other formats, say more in whole sentences, or give the workspace a key for a model.")
    return Unavailability(reason, remedy, code="needs_ai", field="config.topics")


def makeable_engines(
    source: Source, engines: Sequence[Engine], choice: TopicChoice, persona_id: UUID | None
) -> tuple[list[Engine], list[str]]:
    """Return the engines that can make something of this choice, and the refusal of each other one.

    If a model writes, all of them can.
    """
    if has_key(source):
        return list(engines), []
    return makeable_engines_without_model(engines, choice.topic, choice.angle, persona_card(persona_id, None))


def makeable_engines_without_model(
    engines: Sequence[Engine], topic: Topic, angle: str, persona: PersonaCard
) -> tuple[list[Engine], list[str]]:
    """Return what `makeable_engines` does, without a model; each engine is tried, and nothing is stored."""
    makeable, refusals = [], []
    for engine in engines:
        refusal = _refusal_of(engine, topic, angle, persona)
        if refusal is None:
            makeable.append(engine)
        else:
            refusals.append(f"{engine.name}: {refusal}")
    return makeable, refusals


def _refusal_of(engine: Engine, topic: Topic, angle: str, persona: PersonaCard) -> str | None:
    """Return the sentence with which the engine refuses the topic, or `None` if it can be made."""
    brief, source = brief_of(subject_of(topic, angle), persona)
    try:
        draft_for_lane(
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


def _topics_of_lane(source: Source, persona_id: UUID | None) -> list[Topic]:
    """Return the lane's topics, including those of its own list that aren't stored yet."""
    stored = list(pool_of(source, persona_id).order_by("id"))
    listed = topics_in(source.config)
    if not listed:
        return stored
    by_title = {topic.title: topic for topic in stored}
    topics = [by_title.get(title) or Topic(title=title) for title in listed]
    for topic in topics:
        topic.notes = listed[topic.title] or topic.notes
    return topics


def _says_something(topic: Topic) -> bool:
    return bool(topic.notes or topic.evidence)


def _pool_says_something(source: Source) -> bool:
    pool = Topic.objects.of(source.workspace).filter(source=None, deleted_at=None, test=source.test)
    return any(_says_something(topic) for topic in pool.order_by("id")[:_TOPICS_TRIED])


def _grouped_by_reason(refusals: Sequence[str]) -> list[str]:
    """Return `["A: why", "B: why"]` as `["A, B: why"]`."""
    engines: dict[str, list[str]] = {}
    for refusal in refusals:
        name, _colon, reason = refusal.partition(": ")
        engines.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in engines.items()]


def _remedy_words(title: str) -> str:
    return _(
        "Give a topic notes in whole sentences, on the page Topics, with POST or PATCH /v1/topics, or as "
        '`"config": {"topics": [{"title": %(title)s, "notes": "What may be said about it."}]}`. Or give the persona approved lines, or the workspace '
        "a key for a model in its settings."
    ) % {"title": json.dumps(title, ensure_ascii=False)}
