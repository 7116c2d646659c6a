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
from config.core import jobs
from config.core import work_queue as due
from config.core.ids import PREFIXES, encode
from config.operations import running_tasks
from pipeline.models import Lease, LeaseState, Worker

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

SHOWN: Final = 100


@dataclass(frozen=True)
class TaskLine:
    lease: Lease
    state: str
    row: str
    """Its public id, where it has one."""
    workspace: Workspace | None
    worker: str
    seconds: float
    """Since it began; of one that is queued since it was sent."""


def list_tasks(now: datetime) -> list[TaskLine]:
    """What runs and what is queued, the longest first, at most `SHOWN`."""
    shown = sorted(
        running_tasks.running_or_queued(now),
        key=lambda one: (one.state != LeaseState.RUNNING, one.began_at or one.queued_at),
    )
    shown = shown[:SHOWN]
    workspaces = Workspace.everywhere.in_bulk({one.owner for one in shown if one.owner})
    workers = {one.pk: one.name for one in Worker.everywhere.all()}
    return [
        TaskLine(
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


@require_safe
def work_page(request: HttpRequest) -> HttpResponse:
    """Behind `admin_view`, for those who may see workspaces: it names them."""
    if not request.user.has_perm("accounts.view_workspace"):
        raise PermissionDenied
    now = due.database_now()
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": _("Work"),
        "queues": running_tasks.job_queues(now),
        "tasks": list_tasks(now),
        "shown_most": SHOWN,
        "workers": [
            (one, sorted(one.slots.items()), (now - one.seen_at).total_seconds())
            for one in Worker.everywhere.order_by("name")
        ],
    }
    return TemplateResponse(request, "admin/work.html", context)
