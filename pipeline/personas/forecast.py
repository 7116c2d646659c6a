"""What a lane would do as it is set: its next slots, the topics that it may take, what it costs. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from config.core import limits
from pipeline.generate.topics import select
from pipeline.generate.topics.eligibility import engines_of, unavailable
from pipeline.models import WorkspaceDefaults
from pipeline.personas import slots
from pipeline.sources.brand import next_slot, zone_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.models import Source

NEXT_SHOWN: Final = 5
_WEEK: Final = timedelta(days=7)


@dataclass(frozen=True)
class Outlook:
    """`next_at` are the next slots; `week` is how many of them come within seven days, `eligible` how many topics may be
    taken today, `price` the credits of one slot.
    """

    next_at: Sequence[datetime]
    week: int
    timezone: str
    engines: Sequence[str]
    price: int
    eligible: int
    trouble: str = ""
    """Why the lane is refused as it is set, and what to do; empty where it can be saved."""

    @property
    def is_short_of_topics(self) -> bool:
        return self.eligible < limits.TOPICS_ELIGIBLE_LEAST

    @property
    def price_of_week(self) -> int:
        return self.price * self.week


def foresee(source: Source, *, now: datetime) -> Outlook:
    """Of a source as it stands, which needs not be stored yet."""
    workspace = source.workspace
    defaults = WorkspaceDefaults.objects.of(workspace).get()
    zone = zone_of(source.config, workspace.timezone)
    engines = engines_of(source, defaults)
    moments = _moments(source, now)
    why = unavailable(source)
    found = select.candidates(source, source.persona_id or defaults.persona_id, now.astimezone(zone).date())
    return Outlook(
        next_at=moments[:NEXT_SHOWN],
        week=sum(moment < now + _WEEK for moment in moments),
        timezone=zone.key,
        engines=[engine.name for engine in engines],
        price=sum(engine.credits for engine in engines) * source.variants,
        eligible=len(found),
        trouble=why.sentence if why is not None else "",
    )


def _moments(source: Source, now: datetime) -> list[datetime]:
    """Those of a week, and as many as are shown where a week has fewer."""
    previous = slots.last_worked(source)
    found: list[datetime] = []
    while len(found) < NEXT_SHOWN or found[-1] < now + _WEEK:
        after = found[-1] if found else now
        found.append(
            next_slot(source.config, after=after, previous=previous, default_zone=source.workspace.timezone)
        )
        previous = found[-1]
    return found
