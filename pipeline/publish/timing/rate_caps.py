"""Limits how fast an outlet may post (caps, gaps, rests) and gives waiting publications their turns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import DurationField, ExpressionWrapper, IntegerField, Max, Q, Value
from django.db.models.functions import Cast

from config.core.datetimes import format_utc
from pipeline.models import Outlet, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.outlet_client import platform_of
from pipeline.states import PUBLICATIONS_IN_FLIGHT
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY: Final = timedelta(hours=24)
GAP_AFTER_REST: Final = timedelta(seconds=1)
"""The gap between posts that waited for the same rest, where the outlet has none: they don't go out all at once."""


@dataclass(frozen=True)
class RateRules:
    """The limits of one outlet: its platform's and its workspace's, the tighter of both."""

    per_day: int | None
    gap: timedelta | None

    def __bool__(self) -> bool:
        return bool(self.per_day or self.gap)


@dataclass(frozen=True)
class RateWait:
    """Why a publication that is due doesn't go out yet, and when its turn comes."""

    code: str
    message: str
    until: datetime

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "until": format_utc(self.until)}


def rules_of(outlet: Outlet) -> RateRules:
    """Return the outlet's rate limits."""
    pace = platform_of(outlet.platform).pace
    caps = [cap for cap in (pace.per_day, outlet.per_day) if cap]
    gaps = [pace.gap, timedelta(minutes=outlet.gap_minutes) if outlet.gap_minutes else None]
    return RateRules(min(caps, default=None), max((gap for gap in gaps if gap), default=None))


def is_paced(outlet: Outlet, now: datetime) -> bool:
    """Return whether the outlet has any limit at present."""
    return bool(rules_of(outlet)) or is_resting(outlet, now)


def is_resting(outlet: Outlet, now: datetime) -> bool:
    """Return whether the platform asked for a pause that isn't over."""
    return outlet.rests_until is not None and outlet.rests_until > now


def wait_of(row: Publication, outlet: Outlet, now: datetime) -> RateWait | None:
    """Return what a due publication waits for at its outlet; None if its turn is now.

    Each of those that wait gets a turn of its own, in the order of their due times.
    """
    if not is_paced(outlet, now):
        return None
    rules = rules_of(outlet)
    start = outlet.rests_until if outlet.rests_until and outlet.rests_until > now else now
    turn_at, code = _turn_at(_count_ahead(row, now), _post_times(outlet, rules, now), rules, start)
    if turn_at <= now:
        return None
    return RateWait(
        "outlet_rests" if start > now else code, _wait_message(outlet, rules, start, now, code), turn_at
    )


def _turn_at(
    place: int, posted: Sequence[datetime], rules: RateRules, start: datetime
) -> tuple[datetime, str]:
    """Return when the turn at that place comes, if all before it post in turn, and which rule decides."""
    history = list(posted)
    moment, code = start, "gap"
    gap = rules.gap or (None if rules.per_day else GAP_AFTER_REST)
    for _turn_number in range(place + 1):
        by_gap = history[-1] + gap if gap and history else start
        by_cap = history[-rules.per_day] + DAY if rules.per_day and len(history) >= rules.per_day else start
        moment = max(start, by_gap, by_cap)
        code = "daily_cap" if by_cap > start and by_cap >= by_gap else "gap"
        history.append(moment)
    return moment, code


def _post_times(outlet: Outlet, rules: RateRules, now: datetime) -> list[datetime]:
    """Return when the newest posts were made, oldest first.

    What is under way, or may have arrived, counts as made.
    """
    if not rules:
        return []
    since = now - max(DAY, rules.gap or DAY)
    rows = Publication.everywhere.filter(outlet=outlet)
    # First what is under way: a post that ends between the two queries is then seen twice, never missed.
    in_flight = rows.filter(status__in=sorted(PUBLICATIONS_IN_FLIGHT)).annotate(
        called_at=Max("attempts_made__started_at")
    )
    times_by_id = {
        key: at for key, at in in_flight.values_list("pk", "called_at") if at is not None and at > since
    }
    # Posts that were removed since count as well: the platform counts them too.
    times_by_id.update(rows.filter(published_at__gt=since).values_list("pk", "published_at"))
    return sorted(times_by_id.values())


def _count_ahead(row: Publication, now: datetime) -> int:
    """Return how many publications of the outlet are due before it and could go, by due time, then id."""
    too_late_after = ExpressionWrapper(
        Cast("max_lateness_minutes", IntegerField()) * Value(timedelta(minutes=1)),
        output_field=DurationField(),
    )
    line = Publication.everywhere.filter(
        Q(due_at__lt=row.due_at) | Q(due_at=row.due_at, id__lt=row.pk),
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
        Q(queue=None) | Q(queue__is_paused=False),
        # One that was claimed again and again crashes its task, and must not keep the others from going.
        outlet_id=row.outlet_id,
        status=PublicationStatus.SCHEDULED,
        item__held="",
        attempts__lte=1,
    )
    # What began to prepare without waiting may take long: it doesn't reserve a turn before the others.
    line = line.exclude(step__in=[PublicationStep.POLL, PublicationStep.COMMIT], waits_for=None)
    line = line.exclude(late_policy="hold", due_at__lt=Value(now) - too_late_after)
    return line.count()


def _wait_message(outlet: Outlet, rules: RateRules, start: datetime, now: datetime, code: str) -> str:
    if start > now:
        return f"{outlet.name} is rate limited by its platform. This one is published when its turn comes."
    if code == "daily_cap":
        return (
            f"{outlet.name} takes {counted(rules.per_day or 0, 'post')} in 24 hours. This one is published "
            "when its turn comes."
        )
    minutes = (rules.gap or GAP_AFTER_REST).total_seconds() / 60
    every = "minute" if minutes == 1 else f"{minutes:g} minutes"
    return f"{outlet.name} takes one post every {every}. This one is published when its turn comes."
