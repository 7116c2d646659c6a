"""Serves the operators' page of running and queued tasks, with their workspaces, workers and queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.models import Workspace
from config.core import jobs
from config.core import work_queue as due
from config.core.ids import PREFIXES, encode, name_of_table
from config.operations import running_tasks
from pipeline.models import Lease, LeaseState, Worker

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

MAX_TASKS_SHOWN: Final = 100


@dataclass(frozen=True)
class TaskLine:
    """A row of the table of tasks."""

    lease: Lease
    state: str
    row: str
    """The id of the row that the task works on, in its public form if it has one; empty for a batch job."""
    workspace: Workspace | None
    worker: str
    seconds: float
    """Seconds since the task began or, while it is queued, since it was sent."""


def list_tasks(now: datetime) -> list[TaskLine]:
    """Return the running tasks and then the queued ones, the oldest first, at most `MAX_TASKS_SHOWN`."""
    leases = sorted(
        running_tasks.running_or_queued(now),
        key=lambda entry: (entry.state != LeaseState.RUNNING, entry.began_at or entry.queued_at),
    )
    leases = leases[:MAX_TASKS_SHOWN]
    workspaces = Workspace.everywhere.in_bulk({entry.owner for entry in leases if entry.owner})
    workers = {entry.pk: entry.name for entry in Worker.everywhere.all()}
    return [
        TaskLine(
            entry,
            str(LeaseState(entry.state).label),
            _row_of(entry),
            workspaces.get(entry.owner) if entry.owner else None,
            workers.get(entry.worker, "") if entry.worker else "",
            max((now - (entry.began_at or entry.queued_at)).total_seconds(), 0.0),
        )
        for entry in leases
    ]


def _row_of(lease: Lease) -> str:
    """Return the id of the row that the task works on, or an empty text for a batch job or an unknown one."""
    job = jobs.jobs().get(lease.job)
    if job is None or isinstance(job, jobs.BatchJob):
        return ""
    if lease.holder:
        # The only holders are webhook endpoints.
        return encode("whe", lease.holder)
    prefix = PREFIXES.get(name_of_table(job.model._meta.db_table))
    return encode(prefix, lease.subject) if prefix else str(lease.subject)


@require_safe
def work_page(request: HttpRequest) -> HttpResponse:
    """Show the tasks to people who may view workspaces, because it names them; behind `admin_view`."""
    if not request.user.has_perm("accounts.view_workspace"):
        raise PermissionDenied
    now = due.database_now()
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": _("Work"),
        "queues": running_tasks.job_queues(now),
        "tasks": list_tasks(now),
        "shown_most": MAX_TASKS_SHOWN,
        "workers": [
            (worker, sorted(worker.slots.items()), (now - worker.seen_at).total_seconds())
            for worker in Worker.everywhere.order_by("name")
        ],
    }
    return TemplateResponse(request, "admin/work.html", context)
