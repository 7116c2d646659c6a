"""Finds the topics that a lane may take, and chooses one repeatably by weight and days since the last use."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import Q

from config.core.ids import decode
from pipeline import limits
from pipeline.models import BrandPick, Topic
from pipeline.sources.brand import is_in_season
from pipeline.writers.topic_and_story_briefs import Subject

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from pipeline.models import Source

NEVER_USED_DAYS: Final = 90
"""A topic that was never used counts as rested for this many days; longer rest counts no more."""
_COUNTED: Final = ("taken", "used")
"""Decisions on a pick that count towards a topic's `max_per_month`."""
_RESTING: Final = ("taken", "used", "too_near")
"""Decisions after which a topic and angle rest. Too similar words would be so again tomorrow."""


@dataclass(frozen=True)
class TopicUse:
    """One use of a topic with an angle; `is_counted` if something came of it, or may still come."""

    slot_id: UUID
    angle: str
    on: date
    is_counted: bool


@dataclass(frozen=True)
class TopicCandidate:
    """A topic that may be taken, with the angles that don't rest, the longest rested first."""

    topic: Topic
    angles: tuple[str, ...]
    rested_days: int

    @property
    def chance(self) -> int:
        """The weight of this candidate in the random choice."""
        return int(self.topic.weight * max(self.rested_days, 1))


@dataclass(frozen=True)
class TopicChoice:
    """The topic and angle that were chosen."""

    topic: Topic
    angle: str


def pool_of(source: Source, persona_id: UUID | None) -> QuerySet[Topic]:
    """Return the topics that the lane may take, resting ones too; of its own list only those that are stored."""
    pool: QuerySet[Topic] = Topic.objects.of(source.workspace_id).filter(
        test=source.test, is_active=True, deleted_at=None
    )
    if source.config.get("topics"):
        return pool.filter(source_id=source.pk)
    pool = pool.filter(Q(persona=None) | Q(persona_id=persona_id), source=None)
    if source.config.get("pool"):
        pool = pool.filter(pk__in=[decode("top", topic_id) for topic_id in source.config["pool"]])
    return pool


def topic_candidates(source: Source, persona_id: UUID | None, today: date) -> list[TopicCandidate]:
    """Return every topic of the lane's pool that may be taken on that day, by id, in two statements."""
    topics = list(pool_of(source, persona_id).order_by("id"))
    uses = _uses([topic.pk for topic in topics], today)
    candidates = (_candidate(topic, uses[topic.pk], today) for topic in topics)
    return [candidate for candidate in candidates if candidate is not None]


def choose_topic(
    candidates: Sequence[TopicCandidate], *, seed: str, without: Collection[UUID] = ()
) -> TopicChoice | None:
    """Choose a topic at random, by weight times days of rest; `None` if all are in `without`.

    The same seed and candidates give the same choice.
    """
    remaining = [candidate for candidate in candidates if candidate.topic.pk not in without]
    if not remaining:
        return None
    generator = random.Random(seed)  # noqa: S311  repeatable, not secret
    chosen = generator.choices(remaining, weights=[candidate.chance for candidate in remaining])[0]
    return TopicChoice(chosen.topic, chosen.angles[0])


def _uses(topic_ids: Sequence[UUID], today: date) -> Mapping[UUID, list[TopicUse]]:
    since = today - timedelta(days=max(limits.TOPIC_COOLDOWN_DAYS, NEVER_USED_DAYS))
    rows = BrandPick.everywhere.filter(topic_id__in=topic_ids, used_on__gte=since, decision__in=_RESTING)
    uses: defaultdict[UUID, list[TopicUse]] = defaultdict(list)
    for topic_id, slot_id, angle, on, decision in rows.values_list(
        "topic_id", "slot_id", "angle", "used_on", "decision"
    ):
        uses[topic_id].append(TopicUse(slot_id, angle, on, decision in _COUNTED))
    return uses


def _candidate(topic: Topic, uses: Sequence[TopicUse], today: date) -> TopicCandidate | None:
    """Return the topic with its usable angles, the longest rested first, or `None` if it can't be used today."""
    if not is_in_season(today.strftime("%m-%d"), topic.season_from, topic.season_to):
        return None
    # The engines of one slot speak of its topic together, which is one use.
    slots_this_month = {use.slot_id for use in uses if use.is_counted and use.on >= today.replace(day=1)}
    if topic.max_per_month is not None and len(slots_this_month) >= topic.max_per_month:
        return None
    last_use = {use.angle: max(each.on for each in uses if each.angle == use.angle) for use in uses}
    rested_days = {
        angle: NEVER_USED_DAYS if angle not in last_use else (today - last_use[angle]).days
        for angle in topic.angles or [""]
    }
    usable_angles = [
        angle for angle, days in rested_days.items() if angle not in last_use or days >= topic.cooldown_days
    ]
    if not usable_angles:
        return None
    # Sorting keeps the person's own order among those that rested equally long.
    usable_angles.sort(key=lambda angle: -rested_days[angle])
    topic_days = min(((today - on).days for on in last_use.values()), default=NEVER_USED_DAYS)
    return TopicCandidate(topic, tuple(usable_angles), min(topic_days, NEVER_USED_DAYS))


def subject_of(topic: Topic, angle: str, openings: tuple[str, ...] = ()) -> Subject:
    """Return the topic as a writer gets it; `openings` are those of the persona's newest items."""
    evidence = tuple(entry["text"] for entry in topic.evidence if entry["text"])
    return Subject(title=topic.title, notes=topic.notes, evidence=evidence, angle=angle, openings=openings)
