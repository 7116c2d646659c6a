"""What waits and what is dead, of every kind of due row: for the doctor, the operator's pages and the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Min

from config.core import jobs
from config.core import work_queue as due
from pipeline.models import Event, GeneratedItem, PersonaDraft, Publication, RawItem, Source
from webhooks.models import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.db.models import QuerySet


@dataclass(frozen=True)
class DeadRows:
    """Rows of one kind that no task takes up again by itself, and what an operator can do with them."""

    name: str
    model: type[Any]
    find: Callable[[], QuerySet[Any]]
    advice: str

    def rows(self) -> QuerySet[Any]:
        return self.find()


@dataclass(frozen=True)
class JobBacklog:
    """Of the due rows of one job: how many are due now, for how long the oldest has been, and how many wait at all."""

    kind: str
    due: int
    oldest_seconds: float
    depth: int = 0
    is_late: bool = False
    """The oldest has waited for longer than its job allows."""


# A failed run stays failed for good and a retry is a run of its own, so what is dead is the item that it left.
DEAD: Final[Mapping[str, DeadRows]] = {
    dead.name: dead
    for dead in (
        DeadRows(
            "sources",
            Source,
            Source.everywhere.failing,
            "Its last error says why; switch it on again when its server answers.",
        ),
        DeadRows(
            "raw_items",
            RawItem,
            RawItem.everywhere.failed,
            "Nothing could be made from it; its reason says why.",
        ),
        DeadRows(
            "generated_items",
            GeneratedItem,
            GeneratedItem.everywhere.failed,
            "Making it failed; its error says why.",
        ),
        DeadRows(
            "persona_drafts",
            PersonaDraft,
            PersonaDraft.everywhere.failed,
            "Its error says why, and what whoever asked for it was told to do.",
        ),
        DeadRows(
            "publications",
            Publication,
            Publication.everywhere.unresolved,
            "Retry what failed; what is unknown is looked up, never sent again blindly.",
        ),
        DeadRows(
            "deliveries",
            Delivery,
            Delivery.everywhere.dead,
            "Send it again when the receiver works.",
        ),
    )
}


def dead_counts() -> dict[str, int]:
    return {name: dead.rows().count() for name, dead in DEAD.items()}


def backlog_of_jobs() -> list[JobBacklog]:
    """One entry for each job; one alone for those that work the same rows."""
    now = due.database_now()
    found: dict[tuple[Any, ...], JobBacklog] = {}
    for job in jobs.jobs().values():
        if isinstance(job, jobs.BatchJob):
            continue
        where = job.where if isinstance(job, jobs.RowJob) else {}
        key = (job.model, *where.items())
        if key in found:
            continue
        waiting = job.model.everywhere.filter(wake_at__isnull=False, **where)
        late = waiting.filter(wake_at__lte=now)
        oldest = late.aggregate(oldest=Min("wake_at"))["oldest"]
        age = max((now - oldest).total_seconds(), 0.0) if oldest else 0.0
        found[key] = JobBacklog(
            job.name, late.count(), age, waiting.count(), age > job.late_after.total_seconds()
        )
    return list(found.values())


def unread_events() -> list[JobBacklog]:
    """What the readers of the events haven't marked yet: all of it is due as soon as it is written."""
    now = due.database_now()
    found = []
    for kind, column in (("webhooks.fan_out", "dispatched_at"), ("analytics.count_events", "counted_at")):
        unread = Event.everywhere.filter(**{f"{column}__isnull": True})
        # By the id, which carries the moment and which the index of what is unread has.
        oldest = unread.order_by("id").values_list("created_at", flat=True).first()
        age = max((now - oldest).total_seconds(), 0.0) if oldest else 0.0
        count = unread.count()
        found.append(JobBacklog(kind, count, age, count))
    return found
