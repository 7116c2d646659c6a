"""Send again what an endpoint missed since a time, however much it is; newer events wait for a few of it at most."""

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
from webhooks.results import is_healthy, is_open

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=60)
PORTION: Final = 50
"""Deliveries that are put in line in one transaction."""
AHEAD_SECONDS: Final = 2
"""Deliveries in line beyond which it waits, as seconds of the endpoint's rate: what happens meanwhile has at most these
before it.
"""
AHEAD_OF_FAILING: Final = 2
"""The same of one that fails, which is tried one by one."""
PAUSE: Final = timedelta(seconds=1)
CLOSED_PAUSE: Final = timedelta(seconds=30)
_SLACK: Final = timedelta(minutes=5)
"""By how much the clock of a process, which makes ids, may differ from the database's."""


def start(
    endpoint: Endpoint,
    since: datetime,
    *,
    is_everything: bool = False,
    actor: str,
    now: datetime | None = None,
) -> Recovery:
    """Ask for it; tasks do it in the background. One at a time for an endpoint.

    What hasn't arrived is what failed, what is held, and what waits for a later try; with `is_everything` also what was
    delivered. What happens from now on is none of it. Raises `Invalid` for a time to come, `Conflict` where the endpoint is
    off or removed, or one is under way.
    """
    now = now or utc_now()
    if since > now:
        raise Invalid.one("since", "in_the_future", "Choose a time that is past.")
    # Contents from before then are gone.
    since = max(since, now - limits.EVENT_PAYLOADS_KEPT)
    with transaction.atomic():
        locked = Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint.pk)
        if locked.deleted_at is not None:
            raise Conflict.because(
                code="endpoint_removed", message="This endpoint was removed; add a new one."
            )
        if not is_open(locked):
            raise Conflict.because(code="endpoint_is_off", message="Switch the endpoint on first.")
        try:
            with transaction.atomic():
                made: Recovery = Recovery.everywhere.create(
                    workspace_id=locked.workspace_id,
                    endpoint=locked,
                    since=since,
                    is_everything=is_everything,
                    cursor=lowest_id_at(since - _SLACK),
                    until=uuid7(),
                    asked_by=actor,
                    created_at=now,
                    due_at=now,
                    wake_at=now,
                )
        except IntegrityError:
            message = "Another one is under way; wait for its end or stop it."
            raise Conflict.because(code="recovery_running", message=message) from None
        _note("endpoint.recovery_started", made, actor)
        dispatcher.wake()
    return made


def stop(recovery: Recovery, *, actor: str, now: datetime | None = None) -> None:
    """Nothing more is put in line; what is in line is sent. Raises `MoveRefused` where it has ended."""
    with transaction.atomic():
        states.move(recovery, "stopped", wake_at=None, ended_at=now or utc_now(), **work_queue.overtake())
        _note("endpoint.recovery_stopped", recovery, actor)


def newest(endpoint: Endpoint) -> Recovery | None:
    """The last one that was asked for, ended ones too; None where none was."""
    found: Recovery | None = (
        Recovery.objects.of(endpoint.workspace_id).filter(endpoint=endpoint).order_by("-id").first()
    )
    return found


def run_recovery(recovery: Recovery) -> None:
    """Portion after portion, each in one transaction with its place in the list, until enough is in line."""
    crash_point("recover.claimed")
    try:
        if recovery.total is None:
            # Once: killed before it is kept, it is counted again.
            total = _wanted(recovery).count()
            if not recovery.under_lease().update(total=total):
                return
            recovery.total = total
        while _put_in_line(recovery):
            crash_point("recover.committed")
            if not recovery.renew_lease(LEASE):
                return
    except states.Overtaken:
        # Somebody stopped it, or another task has it.
        log.info("recovery_overtaken", recovery=str(recovery.pk))


def give_up(recovery: Recovery) -> None:
    """The end of one whose workers died, time after time: what is in line is sent."""
    states.move(recovery, "stopped", under_lease=True, wake_at=None, attempts=0, ended_at=utc_now())


def _put_in_line(recovery: Recovery) -> bool:
    """One portion; False where it has ended or sleeps."""
    with transaction.atomic():
        # Locked before its deliveries, as everywhere.
        endpoint = Endpoint.everywhere.select_for_update(no_key=True).get(pk=recovery.endpoint_id)
        now = work_queue.database_now()
        if endpoint.deleted_at is not None:
            states.move(recovery, "stopped", under_lease=True, wake_at=None, attempts=0, ended_at=now)
            return False
        if not is_open(endpoint):
            recovery.sleep_until(now + CLOSED_PAUSE, attempts=0)
            return False
        in_line = Delivery.everywhere.filter(endpoint=endpoint, wake_at__lte=now)
        ahead = endpoint.rate * AHEAD_SECONDS if is_healthy(endpoint) else AHEAD_OF_FAILING
        room = min(PORTION, ahead - in_line[:ahead].count())
        if room <= 0:
            recovery.sleep_until(now + PAUSE, attempts=0)
            return False
        some = list(_wanted(recovery).filter(pk__gt=recovery.cursor).order_by("pk")[:room])
        sent = recovery.sent + sum(_send_again(delivery, now) for delivery in some)
        if not some:
            states.move(recovery, "done", under_lease=True, wake_at=None, attempts=0, ended_at=now)
            _note("endpoint.recovered", recovery, recovery.asked_by, {"sent": recovery.sent})
            return False
        states.write_as(recovery, "running", under_lease=True, cursor=some[-1].pk, sent=sent, attempts=1)
        dispatcher.wake()
        crash_point("recover.queued")
    return True


def _wanted(recovery: Recovery) -> QuerySet[Delivery]:
    """By the index of the endpoint's log, from the place in it that the time has."""
    found: QuerySet[Delivery] = Delivery.everywhere.filter(
        endpoint_id=recovery.endpoint_id,
        pk__gt=lowest_id_at(recovery.since - _SLACK),
        pk__lte=recovery.until,
        created_at__gte=recovery.since,
        event__body__isnull=False,
    )
    if recovery.is_everything:
        return found.exclude(status=DeliveryStatus.PENDING, attempt_count=0)
    # What waits for its first try, or is on its way, comes by itself.
    return found.filter(
        Q(status__in=[DeliveryStatus.FAILED, DeliveryStatus.HELD])
        | Q(status=DeliveryStatus.PENDING, attempt_count__gt=0)
    )


def _send_again(delivery: Delivery, now: datetime) -> bool:
    """With a fresh schedule; False for one that is on its way anyway, or that somebody was faster with."""
    if delivery.status == DeliveryStatus.PENDING and (
        delivery.attempts or (delivery.wake_at and delivery.wake_at <= now)
    ):
        return False
    again = {"wake_at": now, "due_at": now, **work_queue.overtake()}
    try:
        if delivery.status == DeliveryStatus.PENDING:
            # A hand that has claimed it since it was read keeps it.
            states.write_as(delivery, "pending", under_lease=True, **again)
        else:
            states.move(delivery, "pending", **again)
    except states.Overtaken:
        return False
    return True


def _note(action: str, recovery: Recovery, actor: str, details: dict[str, object] | None = None) -> None:
    asked_for = {"since": recovery.since.isoformat(), "everything": recovery.is_everything}
    audit.note(
        action,
        workspace=recovery.workspace,
        actor=actor,
        subject=encode("whe", recovery.endpoint_id),
        details=asked_for | (details or {}),
    )


def forget(now: datetime) -> int:
    """Delete some ended ones that are too old; how many. By their ids, which carry the moment."""
    too_old = Recovery.everywhere.filter(pk__lt=lowest_id_at(now - limits.DELIVERY_ATTEMPTS_KEPT)).exclude(
        status=RecoveryStatus.RUNNING
    )
    some = list(too_old.order_by("pk").values_list("pk", flat=True)[:500])
    return int(Recovery.everywhere.filter(pk__in=some).delete()[0]) if some else 0
