"""Resends the deliveries that an endpoint missed since a time, with few queued ahead of newer events."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Q

from accounts import audit
from config.core import dispatcher, states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import Conflict, Invalid
from config.core.ids import encode, lowest_id_at, uuid7
from webhooks import limits
from webhooks.models import Delivery, DeliveryStatus, Endpoint, Recovery, RecoveryStatus
from webhooks.results import is_healthy, is_open, lock_endpoint

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=60)
PORTION_ROWS: Final = 50
"""Deliveries that are queued in one transaction."""
MAX_QUEUED_SECONDS: Final = 2
"""Deliveries that may be queued, in seconds of the endpoint's rate: new events wait no longer than that."""
MAX_QUEUED_OF_FAILING: Final = 2
"""Deliveries that may be queued for a failing endpoint, which is tried one delivery at a time."""
QUEUE_FULL_PAUSE: Final = timedelta(seconds=1)
"""The wait of a recovery if as many deliveries are queued as may be."""
ENDPOINT_OFF_PAUSE: Final = timedelta(days=1)
"""The wait if the endpoint is off; `webhooks.endpoints` wakes the recovery when it is switched on or removed."""
_MAX_CLOCK_DIFFERENCE: Final = timedelta(minutes=5)
"""How far a process's clock, which makes ids, may differ from the database's."""


def start(
    endpoint: Endpoint,
    since: datetime,
    *,
    is_everything: bool = False,
    actor: str,
    now: datetime | None = None,
) -> Recovery:
    """Start to resend deliveries in the background; an endpoint has one recovery at a time.

    It resends deliveries that failed, are held or wait for a later try, and with `is_everything` those that
    arrived. Events from now on aren't part of it, nor those older than `EVENT_PAYLOADS_KEPT`. Raises `Invalid`
    for a future time, `Conflict` if the endpoint is off or removed, or a recovery is running.
    """
    now = now or utc_now()
    if since > now:
        raise Invalid.one("since", "in_the_future", "Choose a time that is past.")
    # The content of older events is no longer kept.
    since = max(since, now - limits.EVENT_PAYLOADS_KEPT)
    with transaction.atomic():
        locked = lock_endpoint(endpoint.pk)
        if not is_open(locked):
            raise Conflict.because(code="endpoint_is_off", message="Switch the endpoint on first.")
        try:
            with transaction.atomic():
                recovery: Recovery = Recovery.everywhere.create(
                    workspace_id=locked.workspace_id,
                    endpoint=locked,
                    since=since,
                    is_everything=is_everything,
                    cursor=lowest_id_at(since - _MAX_CLOCK_DIFFERENCE),
                    until=uuid7(),
                    asked_by=actor,
                    created_at=now,
                    due_at=now,
                    wake_at=now,
                )
        except IntegrityError:
            message = "Another recovery is in progress. Wait until it ends, or stop it."
            raise Conflict.because(code="recovery_running", message=message) from None
        _audit("endpoint.recovery_started", recovery, actor)
        dispatcher.wake()
    return recovery


def stop(recovery: Recovery, *, actor: str, now: datetime | None = None) -> None:
    """Stop the recovery; queued deliveries are still sent. Raises `MoveRefused` if the recovery has ended."""
    with transaction.atomic():
        states.move(recovery, "stopped", wake_at=None, ended_at=now or utc_now(), **work_queue.overtake())
        _audit("endpoint.recovery_stopped", recovery, actor)


def find_newest(endpoint: Endpoint) -> Recovery | None:
    """Return the endpoint's newest recovery, ended or not, or `None` if there was none."""
    recovery: Recovery | None = (
        Recovery.objects.of(endpoint.workspace_id).filter(endpoint=endpoint).order_by("-id").first()
    )
    return recovery


def run_recovery(recovery: Recovery) -> None:
    """Queue portions, each in a transaction with the cursor, until none is left, it must wait, or loses its lease."""
    crash_point("recover.claimed")
    try:
        if recovery.total is None:
            # Counted once; a worker killed before the write counts again.
            total = _deliveries_to_resend(recovery).count()
            if not recovery.under_lease().update(total=total):
                return
            recovery.total = total
        while _queue_portion(recovery):
            crash_point("recover.committed")
            if not recovery.renew_lease(LEASE):
                return
    except states.Overtaken:
        # Somebody stopped it, or another worker has it.
        log.info("recovery_overtaken", recovery=str(recovery.pk))


def give_up(recovery: Recovery) -> None:
    """Stop a recovery whose workers died again and again. Raises `Overtaken` if the lease is lost."""
    states.move(recovery, "stopped", under_lease=True, wake_at=None, attempts=0, ended_at=utc_now())


def _queue_portion(recovery: Recovery) -> bool:
    """Queue a portion, or return `False` if the recovery ended or sleeps. Raises `Overtaken` without lease."""
    with transaction.atomic():
        # The endpoint is locked before its deliveries, as everywhere, so that two writers can't deadlock.
        endpoint = Endpoint.everywhere.select_for_update(no_key=True).get(pk=recovery.endpoint_id)
        now = work_queue.database_now()
        if endpoint.deleted_at is not None:
            states.move(recovery, "stopped", under_lease=True, wake_at=None, attempts=0, ended_at=now)
            return False
        if not is_open(endpoint):
            recovery.sleep_until(now + ENDPOINT_OFF_PAUSE, attempts=0)
            return False
        queued = Delivery.everywhere.filter(endpoint=endpoint, wake_at__lte=now)
        max_queued = endpoint.rate * MAX_QUEUED_SECONDS if is_healthy(endpoint) else MAX_QUEUED_OF_FAILING
        max_portion = min(PORTION_ROWS, max_queued - queued[:max_queued].count())
        if max_portion <= 0:
            recovery.sleep_until(now + QUEUE_FULL_PAUSE, attempts=0)
            return False
        remaining = _deliveries_to_resend(recovery).filter(pk__gt=recovery.cursor)
        portion = list(remaining.order_by("pk")[:max_portion])
        sent = recovery.sent + sum(_requeue(delivery, now) for delivery in portion)
        if not portion:
            states.move(recovery, "done", under_lease=True, wake_at=None, attempts=0, ended_at=now)
            _audit("endpoint.recovered", recovery, recovery.asked_by, {"sent": recovery.sent})
            return False
        states.write_as(recovery, "running", under_lease=True, cursor=portion[-1].pk, sent=sent, attempts=1)
        dispatcher.wake()
        crash_point("recover.queued")
    return True


def _deliveries_to_resend(recovery: Recovery) -> QuerySet[Delivery]:
    """Return the recovery's deliveries whose event still has its body, by the index of the endpoint's log."""
    deliveries: QuerySet[Delivery] = Delivery.everywhere.filter(
        endpoint_id=recovery.endpoint_id,
        pk__gt=lowest_id_at(recovery.since - _MAX_CLOCK_DIFFERENCE),
        pk__lte=recovery.until,
        created_at__gte=recovery.since,
        event__body__isnull=False,
    )
    if recovery.is_everything:
        return deliveries.exclude(status=DeliveryStatus.PENDING, attempt_count=0)
    # What waits for its first attempt, or is being sent, needs no recovery.
    return deliveries.filter(
        Q(status__in=[DeliveryStatus.FAILED, DeliveryStatus.HELD])
        | Q(status=DeliveryStatus.PENDING, attempt_count__gt=0)
    )


def _requeue(delivery: Delivery, now: datetime) -> bool:
    """Queue a delivery with a fresh schedule, or return `False` if it is due, being sent, or was changed."""
    if delivery.status == DeliveryStatus.PENDING and (
        delivery.attempts or (delivery.wake_at and delivery.wake_at <= now)
    ):
        return False
    values = {"wake_at": now, "due_at": now, **work_queue.overtake()}
    try:
        if delivery.status == DeliveryStatus.PENDING:
            # A worker that has claimed it since it was read keeps it.
            states.write_as(delivery, "pending", under_lease=True, **values)
        else:
            states.move(delivery, "pending", **values)
    except states.Overtaken:
        return False
    return True


def _audit(action: str, recovery: Recovery, actor: str, details: dict[str, object] | None = None) -> None:
    request = {"since": recovery.since.isoformat(), "everything": recovery.is_everything}
    audit.note(
        action,
        workspace=recovery.workspace,
        actor=actor,
        subject=encode("whe", recovery.endpoint_id),
        details=request | (details or {}),
    )


def forget(now: datetime) -> int:
    """Delete up to 500 ended recoveries that are too old, found by their ids, and return how many rows."""
    too_old = Recovery.everywhere.filter(pk__lt=lowest_id_at(now - limits.DELIVERY_ATTEMPTS_KEPT)).exclude(
        status=RecoveryStatus.RUNNING
    )
    ids = list(too_old.order_by("pk").values_list("pk", flat=True)[:500])
    return int(Recovery.everywhere.filter(pk__in=ids).delete()[0]) if ids else 0
