"""Selects a lane's topic: finds those that may be taken, and chooses repeatably by weight and days since the
last use.
"""

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
"""A topic that was never used counts as rested for so many days, and no rest counts for more."""
_COUNTED: Final = ("taken", "used")
_RESTING: Final = ("taken", "used", "too_near")
"""A topic and angle that came out too similar would do so again tomorrow: they rest as if they had been used.
"""


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
        """Return the weight of this candidate in the random choice."""
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
    """Return every topic of the lane's pool that may be taken on that day, in the order of ids, in two
    statements.
    """
    topics = list(pool_of(source, persona_id).order_by("id"))
    uses = _uses([topic.pk for topic in topics], today)
    candidates = (_candidate(topic, uses[topic.pk], today) for topic in topics)
    return [candidate for candidate in candidates if candidate is not None]


def choose_topic(
    found: Sequence[TopicCandidate], *, seed: str, without: Collection[UUID] = ()
) -> TopicChoice | None:
    """Choose a topic by weight times days of rest.

    The same seed and candidates give the same choice. None if none is left.
    """
    remaining = [chosen for chosen in found if chosen.topic.pk not in without]
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
    """Return the topic with its usable angles, the longest rested first; None if it can't be used today."""
    if not is_in_season(today.strftime("%m-%d"), topic.season_from, topic.season_to):
        return None
    # The engines of one slot speak of its topic together, which is one use.
    month = {use.slot_id for use in uses if use.is_counted and use.on >= today.replace(day=1)}
    if topic.max_per_month is not None and len(month) >= topic.max_per_month:
        return None
    last = {use.angle: max(each.on for each in uses if each.angle == use.angle) for use in uses}
    rested = {
        angle: NEVER_USED_DAYS if angle not in last else (today - last[angle]).days
        for angle in topic.angles or [""]
    }
    awake = [
        angle
        for angle, days_since in rested.items()
        if angle not in last or days_since >= topic.cooldown_days
    ]
    if not awake:
        return None
    # Sorting keeps the person's own order among those that rested equally long.
    awake.sort(key=lambda angle: -rested[angle])
    since = min(((today - on).days for on in last.values()), default=NEVER_USED_DAYS)
    return TopicCandidate(topic, tuple(awake), min(since, NEVER_USED_DAYS))


def subject_of(topic: Topic, angle: str, said: tuple[str, ...] = ()) -> Subject:
    """Return the topic as a writer gets it; `said` are the newest titles of the persona."""
    evidence = tuple(entry["text"] for entry in topic.evidence if entry["text"])
    return Subject(title=topic.title, notes=topic.notes, evidence=evidence, angle=angle, said=said)
