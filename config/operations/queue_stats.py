"""Counts waiting and dead rows of every kind, for the doctor, the operator's pages and the metrics."""

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
    """Rows of one kind that no task retries automatically, and the advice to an operator."""

    name: str
    model: type[Any]
    find: Callable[[], QuerySet[Any]]
    advice: str

    def rows(self) -> QuerySet[Any]:
        """Return the dead rows of every workspace."""
        return self.find()


@dataclass(frozen=True)
class JobBacklog:
    """The waiting rows of one job, whose name is `kind`."""

    kind: str
    due: int
    """The number of rows that are due now."""
    oldest_seconds: float
    """The time for which the oldest due row has been due."""
    depth: int = 0
    """The number of rows that wait for their time or a worker."""
    is_late: bool = False
    """True if the oldest has waited for longer than its job allows."""


# A failed run stays failed for good and a retry is another run, so the dead row is the run's item.
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
            "Generating it failed; its error says why.",
        ),
        DeadRows(
            "persona_drafts",
            PersonaDraft,
            PersonaDraft.everywhere.failed,
            "Its error says why, and what to do next.",
        ),
        DeadRows(
            "publications",
            Publication,
            Publication.everywhere.unresolved,
            "Retry what failed. An unknown outcome is looked up before anything is sent again.",
        ),
        DeadRows(
            "deliveries", Delivery, Delivery.everywhere.failed, "Send it again when the receiver works."
        ),
    )
}


def dead_counts() -> dict[str, int]:
    """Return the number of dead rows by kind."""
    return {name: dead.rows().count() for name, dead in DEAD.items()}


def backlog_of_jobs() -> list[JobBacklog]:
    """Return one backlog per job, without batch jobs; jobs of the same rows share the first one's."""
    now = due.database_now()
    backlogs: dict[tuple[Any, ...], JobBacklog] = {}
    for job in jobs.jobs().values():
        if isinstance(job, jobs.BatchJob):
            continue
        where = job.where if isinstance(job, jobs.RowJob) else {}
        key = (job.model, *where.items())
        if key in backlogs:
            continue
        waiting = job.model.everywhere.filter(wake_at__isnull=False, **where)
        due_rows = waiting.filter(wake_at__lte=now)
        oldest = due_rows.aggregate(oldest=Min("wake_at"))["oldest"]
        age = max((now - oldest).total_seconds(), 0.0) if oldest else 0.0
        backlogs[key] = JobBacklog(
            job.name, due_rows.count(), age, waiting.count(), age > job.late_after.total_seconds()
        )
    return list(backlogs.values())


def unread_events() -> list[JobBacklog]:
    """Return a backlog of events for each of their two readers; an event is due as soon as it is written."""
    now = due.database_now()
    backlogs = []
    for kind, column in (("webhooks.fan_out", "dispatched_at"), ("analytics.count_events", "counted_at")):
        unread = Event.everywhere.filter(**{f"{column}__isnull": True})
        # Ordered by id, which holds the time and which the index of unread events has.
        oldest = unread.order_by("id").values_list("created_at", flat=True).first()
        age = max((now - oldest).total_seconds(), 0.0) if oldest else 0.0
        count = unread.count()
        backlogs.append(JobBacklog(kind, count, age, count))
    return backlogs
