"""Explains in sentences why the row of a public id hasn't moved, for `manage.py explain`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.db.models import Q

from accounts.ledger import reports
from accounts.models import Workspace
from config.core import jobs, work_leases
from config.core.datetimes import format_utc
from config.core.ids import PREFIXES, decode, encode, name_of_table
from config.core.work_queue import DueModel
from config.operations import doctor, queue_stats
from pipeline import labels
from pipeline.generate import recoverable_failures
from pipeline.generate.model.keys import workspace_has_key
from pipeline.generate.topics import lane_eligibility
from pipeline.ingest.collect import kind_of
from pipeline.ingest.collect.health_text import health_of
from pipeline.models import (
    BrandSlot,
    Event,
    GeneratedItem,
    Generation,
    GenerationQueue,
    InboundDelivery,
    Lease,
    LeaseState,
    Mailing,
    MailQueue,
    Outlet,
    Publication,
    RawItem,
    Source,
    Worker,
)
from pipeline.models.generated_item import items_made_from
from pipeline.publish import blockers
from pipeline.publish.validation import why_closed
from pipeline.review import explanation
from pipeline.states import OPEN_RUNS, OPEN_SLOTS
from pipeline.switches import availability, kill_switch
from pipeline.text.prose.verbatim_edits import counted
from webhooks.models import Delivery, Endpoint, Recovery, RecoveryStatus
from webhooks.results import is_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.db.models import Model

_FLAG_WORDS: Final = {"test": "made with a test token", "is_paused": "paused", "deleted_at": "deleted"}
_ERROR_LABELS: Final = {"error": "Last error", "last_error": "Last error", "reason": "Why", "note": "Why"}
_QUEUES_OF_MODEL_CALLS: Final = frozenset({GenerationQueue.GENERATE, GenerationQueue.REWRITE})
MAX_PARTS: Final = 20
"""The most rows that are explained below the requested one, such as an item's publications."""


def explain(public_id: str, *, now: datetime) -> list[str]:
    """Return the explanation as lines, or no lines if nothing has this id."""
    row = _find(public_id)
    return [] if row is None else list(_explain_row(row, now))


def _find(public_id: str) -> Any:
    """Return the row with this public id, or `None` if there is none."""
    prefix = public_id.partition("_")[0]
    key = decode(prefix, public_id)
    model = next((model for model in apps.get_models() if _prefix_of(model) == prefix), None)
    return model._meta.base_manager.filter(pk=key).first() if model and key else None


def _prefix_of(model: type[Model]) -> str | None:
    """Return the prefix of the public ids of a model's rows, or `None` if they have no public ids."""
    return PREFIXES.get(name_of_table(model._meta.db_table))


def _explain_row(row: Any, now: datetime) -> Iterator[str]:
    """Yield the lines about a row: its state, its reasons, its work, its errors."""
    yield _headline(row)
    if type(row) in _EXPLAINERS:
        yield from _EXPLAINERS[type(row)](row, now)
    if isinstance(row, DueModel):
        yield from _work_lines(row, now)
    yield from _error_lines(row)


def _headline(row: Any) -> str:
    name = name_of_table(row._meta.db_table)
    state = [_state(row)] if hasattr(row, "status") else []
    state += [word for field, word in _FLAG_WORDS.items() if getattr(row, field, None)]
    since = getattr(row, "updated_at", None) or getattr(row, "created_at", None)
    state += [f"last changed at {format_utc(since)}"] if since else []
    workspace_text = f" of {row.workspace.name}" if hasattr(row, "workspace") and row.workspace else ""
    return f"{encode(PREFIXES[name], row.pk)}, {name.replace('_', ' ')}{workspace_text}: {', '.join(state)}."


def _state(row: Any) -> str:
    return str(labels.of_item(row).label if isinstance(row, GeneratedItem) else row.get_status_display())


def _explain_parts(rows: Iterable[Any], now: datetime) -> Iterator[str]:
    """Yield the indented lines about rows that belong to the requested one, at most `MAX_PARTS`."""
    for row in list(rows)[:MAX_PARTS]:
        yield from (f"  {line}" for line in _explain_row(row, now))


def _error_lines(row: Any) -> Iterator[str]:
    """Yield the row's stored errors and, if no task retries the row, what to do."""
    for field, word in _ERROR_LABELS.items():
        text = getattr(row, field, None)
        if isinstance(row, GeneratedItem) and field == "error":
            text = recoverable_failures.current_error(row.workspace, row) or text
        if isinstance(text, dict):
            text = " ".join(str(text[key]) for key in ("message", "action") if text.get(key))
        if text:
            yield f"{word}: {text}"
    if getattr(row, "wake_at", None) is not None:
        # A failing source is still polled.
        return
    for dead in queue_stats.DEAD.values():
        if isinstance(row, dead.model) and dead.rows().filter(pk=row.pk).exists():
            yield f"It isn't retried automatically. {dead.advice}"


# --- When it is taken up, and by whom --------------------------------------------------------------------------------


def _work_lines(row: DueModel, now: datetime) -> Iterator[str]:
    """Yield when the row was promised, which worker has it or when it runs next, and how often it was tried."""
    job = next((job for job in jobs.jobs().values() if _is_of(row, job)), None)
    if job is None or row.wake_at is None:
        return
    if row.due_at is not None:
        yield f"Its time is {format_utc(row.due_at)}."
    leases = Lease.everywhere.filter(Q(subject=row.pk) | Q(holder=getattr(row, "endpoint_id", row.pk)))
    lease = leases.exclude(state=LeaseState.RESTING).order_by("-state").first()
    if lease is not None and lease.state == LeaseState.RUNNING and lease.worker and lease.began_at:
        subject = "it" if lease.subject == row.pk else "its endpoint"
        yield from _running_line(lease.worker, subject, lease.began_at, row.wake_at, now)
    elif lease is not None and lease.until > now:
        yield f"It has been queued for a worker of {job.queue} since {format_utc(lease.queued_at)}."
    elif row.wake_at > now:
        yield f"It runs next at {format_utc(row.wake_at)}."
    else:
        yield f"It has been due since {format_utc(row.wake_at)} and waits for a worker of {job.queue}."
        yield from _queue_problems(job.queue, now)
    if row.attempts and isinstance(job, jobs.RowJob):
        yield f"It was tried {counted(row.attempts, 'time')} without success, of {job.max_attempts} at most."


def _is_of(row: DueModel, job: jobs.Job) -> bool:
    if isinstance(job, jobs.BatchJob) or not isinstance(row, job.model):
        return False
    where = job.where if isinstance(job, jobs.RowJob) else {}
    return all(getattr(row, column) == value for column, value in where.items())


def _running_line(
    worker: UUID, subject: str, began_at: datetime, until: datetime, now: datetime
) -> Iterator[str]:
    alive = Worker.everywhere.filter(pk=worker, seen_at__gt=now - work_leases.ALIVE).first()
    if alive is not None:
        yield f"Worker {alive.name} works {subject} since {format_utc(began_at)}; its lease ends at {format_utc(until)}."
    else:
        yield f"The worker that began {subject} at {format_utc(began_at)} is gone; another takes it after {format_utc(until)}."


def _queue_problems(queue: str, now: datetime) -> Iterator[str]:
    """Yield why due rows of the queue wait: no worker, no free slot, or no dispatcher."""
    slots, load = work_leases.count_slots(now)[queue], work_leases.read_load(now).queues[queue]
    if not slots:
        yield f"No worker takes the queue {queue}: start one that does."
    elif load >= slots:
        yield f"All {slots} slots of the queue {queue} are taken; wait, or start another worker."
    dispatcher = doctor.dispatcher()
    if dispatcher.verdict != "ok":
        yield f"The dispatcher: {dispatcher.said} {dispatcher.advice}"


# --- By kind ---------------------------------------------------------------------------------------------------------


def _blocker_lines(found_blockers: Iterable[blockers.Blocker]) -> Iterator[str]:
    for blocker in found_blockers:
        moments = [f"since {format_utc(blocker.since)}"] if blocker.since else []
        moments += [f"until {format_utc(blocker.until)}"] if blocker.until else []
        yield f"{blocker.message} ({', '.join(moments)})" if moments else blocker.message
        if blocker.clears is not None:
            body = f" {json.dumps(blocker.clears.body)}" if blocker.clears.body else ""
            yield f"→ {blocker.clears.method} /v1{blocker.clears.path}{body}"


def _of_item(item: GeneratedItem, now: datetime) -> Iterator[str]:
    if GeneratedItem.everywhere.in_making().filter(pk=item.pk).exists():
        yield from _explain_parts([item.generation], now)
    elif item.deleted_at is None:
        yield from _explain_parts(Generation.everywhere.filter(rewrites=item).open(), now)
        found_explanation = explanation.explain(item, now=now)
        yield from _blocker_lines(found_explanation.blockers)
        yield from _explain_parts([row for row, _ in found_explanation.publications], now)


def _of_run(run: Generation, now: datetime) -> Iterator[str]:
    if run.status not in OPEN_RUNS:
        return
    yield f"{labels.STAGES[run.stage]}. Its next step: {run.get_queue_display()}."
    stopped = kill_switch.stopped("model_calls", workspace_id=run.workspace_id)
    if stopped is not None:
        yield f"{stopped} {stopped.reason}"
    if run.queue in _QUEUES_OF_MODEL_CALLS and not workspace_has_key(run.workspace):
        yield "There is no key for a model: set ANTHROPIC_API_KEY, or the workspace's own key."
    if run.batch_until is not None and run.batch_until > now:
        yield f"It may wait for a batch of model calls until {format_utc(run.batch_until)}."


def _of_raw_item(row: RawItem, now: datetime) -> Iterator[str]:
    if row.wake_at is not None:
        usage = reports.usage(row.workspace, now)
        yield f"{usage.available} of {usage.limit} credits are left until {format_utc(usage.resets_at)}."
    items = GeneratedItem.everywhere.filter(items_made_from(row.pk), deleted_at=None).order_by("pk")
    yield from _explain_parts(items.in_making(), now)
    yield from (f"  {_headline(item)}" for item in items.exclude(pk__in=items.in_making())[:MAX_PARTS])


def _of_source(source: Source, now: datetime) -> Iterator[str]:
    health = health_of(source, source.workspace)
    says_both = health.sentence.startswith(health.label)
    yield health.sentence if says_both else f"{health.label}. {health.sentence}".strip()
    if source.failing_since is not None:
        yield f"{counted(source.failures, 'poll')} in a row failed, since {format_utc(source.failing_since)}."
    outage = availability.of_source(kind_of(source.type), source.config) or lane_eligibility.why_unavailable(
        source
    )
    if outage is not None:
        yield outage.sentence
    yield from _explain_parts(BrandSlot.everywhere.filter(source=source, status__in=OPEN_SLOTS), now)


def _of_publication(row: Publication, now: datetime) -> Iterator[str]:
    if Publication.everywhere.unsent().by_hand().filter(pk=row.pk).exists():
        yield "It is posted by hand. Post it, then mark it as posted."
    elif row.status not in explanation.ENDED:
        yield from _blocker_lines(explanation.blockers_of(row, now))


def _of_outlet(outlet: Outlet, now: datetime) -> Iterator[str]:
    closed = why_closed(outlet)
    if closed is not None:
        yield closed.message
    if outlet.rests_until is not None and outlet.rests_until > now:
        yield f"Its platform asked to wait until {format_utc(outlet.rests_until)}."
    yield from _of_workspace(outlet.workspace, now, platform=outlet.platform)


def _of_workspace(workspace: Workspace, _now: datetime, *, platform: str = "") -> Iterator[str]:
    yield from _blocker_lines(blockers.workspace_blockers(workspace, platform))
    yield from _blocker_lines(blockers.switch_blockers(workspace.pk, platform))
    if reports.is_used_up(workspace):
        yield "Its credits of this month are used up."


def _of_endpoint(endpoint: Endpoint, now: datetime) -> Iterator[str]:
    if not is_open(endpoint):
        yield "It is switched off. Its deliveries are held until you switch it on."
    if endpoint.failing_since is not None:
        yield f"{counted(endpoint.failures, 'attempt')} in a row failed, since {format_utc(endpoint.failing_since)}."
    waiting = Delivery.everywhere.open().filter(endpoint=endpoint).order_by("pk")
    yield f"{counted(waiting.count(), 'delivery waits', 'deliveries wait')}."
    yield from _explain_parts(
        Recovery.everywhere.filter(endpoint=endpoint, status=RecoveryStatus.RUNNING), now
    )
    yield from _explain_parts(waiting.pending()[:1], now)


def _of_delivery(row: Delivery, _now: datetime) -> Iterator[str]:
    if not is_open(row.endpoint):
        yield f"Its endpoint {encode('whe', row.endpoint_id)} is switched off. Switch it on to send this."
    if row.attempt_count:
        answer = f"; the last answer was {row.last_status}" if row.last_status else ""
        yield f"It was sent {counted(row.attempt_count, 'time')}{answer}."


def _of_event(event: Event, now: datetime) -> Iterator[str]:
    if event.dispatched_at is None:
        yield "It hasn't been queued for the endpoints yet."
        yield from _queue_problems("webhooks", now)
    yield from _explain_parts(Delivery.everywhere.filter(event=event).order_by("pk"), now)


def _of_mailing(mailing: Mailing, now: datetime) -> Iterator[str]:
    for line in MailQueue.everywhere.filter(outlet_id=mailing.outlet_id):
        yield from (*_work_lines(line, now), *_error_lines(line))


def _of_inbound(row: InboundDelivery, now: datetime) -> Iterator[str]:
    yield from _explain_parts([row.raw_item] if row.raw_item else [], now)


_EXPLAINERS: Final[Mapping[type[Model], Callable[[Any, datetime], Iterator[str]]]] = {
    GeneratedItem: _of_item,
    Generation: _of_run,
    RawItem: _of_raw_item,
    Source: _of_source,
    Publication: _of_publication,
    Outlet: _of_outlet,
    Workspace: _of_workspace,
    Endpoint: _of_endpoint,
    Delivery: _of_delivery,
    Event: _of_event,
    Mailing: _of_mailing,
    InboundDelivery: _of_inbound,
}
