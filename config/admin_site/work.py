"""The operator's page of what is being done now, for whom and where, and what each queue has slots for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.models import Workspace
from config.core import jobs, work_leases
from config.core import work_queue as due
from config.core.ids import PREFIXES, encode
from config.operations import queue_stats
from pipeline.models import Lease, LeaseState, Worker

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

SHOWN: Final = 100
UNSERVED_SECONDS: Final = 15.0


@dataclass(frozen=True)
class JobQueue:
    name: str
    slots: int
    running: int
    queued: int
    due: int
    oldest_seconds: float

    @property
    def is_unserved(self) -> bool:
        """Something has been due for a while, and no worker takes it."""
        return self.slots == 0 and self.oldest_seconds > UNSERVED_SECONDS


@dataclass(frozen=True)
class Task:
    lease: Lease
    state: str
    row: str
    """Its public id, where it has one."""
    workspace: Workspace | None
    worker: str
    seconds: float
    """Since it began; of one that is queued since it was sent."""


def queues(now: datetime) -> list[JobQueue]:
    there = work_leases.slots(now)
    waiting = queue_stats.waiting() + queue_stats.unread_events()
    now_held = held(now)
    found = []
    for name in jobs.QUEUES:
        late = [one for one in waiting if one.kind.partition(".")[0] == name]
        states = [one.state for one in now_held if one.queue == name]
        if name != "dispatch":
            found.append(
                JobQueue(
                    name,
                    there[name],
                    states.count(LeaseState.RUNNING),
                    states.count(LeaseState.QUEUED),
                    sum(one.due for one in late),
                    max((one.oldest_seconds for one in late), default=0.0),
                )
            )
    return found


def unserved(now: datetime) -> list[JobQueue]:
    """Queues in which something is due and that no living worker takes."""
    return [one for one in queues(now) if one.is_unserved]


def tasks(now: datetime) -> list[Task]:
    """What runs and what is queued, the longest first, at most `SHOWN`."""
    shown = sorted(
        held(now), key=lambda one: (one.state != LeaseState.RUNNING, one.began_at or one.queued_at)
    )
    shown = shown[:SHOWN]
    workspaces = Workspace.everywhere.in_bulk({one.owner for one in shown if one.owner})
    workers = {one.pk: one.name for one in Worker.everywhere.all()}
    return [
        Task(
            one,
            str(LeaseState(one.state).label),
            _row_of(one),
            workspaces.get(one.owner) if one.owner else None,
            workers.get(one.worker, "") if one.worker else "",
            max((now - (one.began_at or one.queued_at)).total_seconds(), 0.0),
        )
        for one in shown
    ]


def _row_of(lease: Lease) -> str:
    job = jobs.jobs().get(lease.job)
    if job is None or isinstance(job, jobs.BatchJob):
        return ""
    if lease.holder:
        return encode("whe", lease.holder)
    prefix = PREFIXES.get(job.model._meta.db_table)
    return encode(prefix, lease.subject) if prefix else str(lease.subject)


def held(now: datetime) -> list[Lease]:
    """Without the leases of dead workers, and of messages that were lost."""
    alive = set(Worker.everywhere.filter(seen_at__gt=now - work_leases.ALIVE).values_list("pk", flat=True))
    there = Lease.everywhere.exclude(state=LeaseState.RESTING)
    return [
        one for one in there if (one.worker in alive if one.state == LeaseState.RUNNING else one.until > now)
    ]


@require_safe
def work_page(request: HttpRequest) -> HttpResponse:
    """Behind `admin_view`, for those who may see workspaces: it names them."""
    if not request.user.has_perm("accounts.view_workspace"):
        raise PermissionDenied
    now = due.database_now()
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": _("Work"),
        "queues": queues(now),
        "tasks": tasks(now),
        "shown_most": SHOWN,
        "workers": [
            (one, sorted(one.slots.items()), (now - one.seen_at).total_seconds())
            for one in Worker.everywhere.order_by("name")
        ],
    }
    return TemplateResponse(request, "admin/work.html", context)
