"""Records the result of an attempt in the log, the delivery, the endpoint's health and the next try.

All of it is written in one transaction, under the delivery's lease. The successes of a task are written
together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import notices
from config.core import counters, states
from config.core.clock import utc_now
from config.core.database.bulk_update import update_each
from config.core.database.insert import insert
from config.core.datetimes import format_utc
from config.core.errors import Conflict
from config.core.http_client.retry_after import read_retry_after
from config.core.ids import encode
from webhooks import limits
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, EndpointStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

log = structlog.get_logger(__name__)

THROTTLED_STATUSES: Final = frozenset({429, 502, 504})
"""Statuses after which the wait is at least `WEBHOOK_THROTTLED_WAIT`."""


@dataclass(frozen=True)
class AttemptResult:
    """The result of one attempt; `status_code` is `None` without an answer, `error` is empty for a 2xx."""

    started_at: datetime
    seconds: float
    request_headers: Mapping[str, str]
    status_code: int | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response_body: str = ""
    error: str = ""
    timed_out: bool = False
    url: str = ""

    @property
    def is_success(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300

    @property
    def ended_at(self) -> datetime:
        return self.started_at + timedelta(seconds=self.seconds)


def is_well(endpoint: Endpoint) -> bool:
    """Return whether the endpoint's last attempt succeeded, or it had none yet."""
    return endpoint.failures == 0 and endpoint.status == EndpointStatus.ACTIVE


def is_healthy(endpoint: Endpoint) -> bool:
    """Return whether the endpoint is well and events are sent to it."""
    return is_well(endpoint) and is_open(endpoint)


def is_open(endpoint: Endpoint) -> bool:
    """Return whether events are sent to the endpoint: it isn't removed, nor switched off by anybody."""
    return endpoint.is_on and endpoint.status != EndpointStatus.DISABLED and endpoint.deleted_at is None


def lock_endpoint(endpoint_id: UUID) -> Endpoint:
    """Return the endpoint, locked until the transaction ends. Raises `Conflict` if it was removed."""
    endpoint: Endpoint = Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint_id)
    if endpoint.deleted_at is not None:
        raise Conflict.because(code="endpoint_removed", message="This endpoint was removed; add a new one.")
    return endpoint


# --- The schedule ----------------------------------------------------------------------------------------------------


def next_wait(tries: int, sent: AttemptResult, *, chance: random.Random) -> timedelta | None:
    """Return the wait from the last attempt's end, or `None` if all tries of the schedule are used.

    `tries` counts the failed attempts, and `sent` is the last one. A `Retry-After` may lengthen the wait.
    """
    if tries >= len(limits.WEBHOOK_SCHEDULE):
        return None
    wait = limits.WEBHOOK_SCHEDULE[tries]
    if sent.timed_out or sent.status_code in THROTTLED_STATUSES:
        wait = max(wait, limits.WEBHOOK_THROTTLED_WAIT)
    # The wait only grows, because the documented waits are minimums.
    wait *= 1 + chance.uniform(0, limits.WEBHOOK_JITTER)
    retry_after = read_retry_after(
        sent.response_headers, now=sent.ended_at, longest=limits.WEBHOOK_RETRY_AFTER_MOST
    )
    return max(wait, retry_after or wait)


# --- What is written -------------------------------------------------------------------------------------------------

_default_random: Final = random.Random()  # noqa: S311  spreads retries, guards nothing


def record_result(
    delivery: Delivery, sent: AttemptResult, *, chance: random.Random = _default_random
) -> None:
    """Write the attempt, the delivery and the endpoint's health, all or nothing.

    A failed delivery is retried, held if the endpoint is off, or has failed after the last try or if the endpoint
    was removed. Raises `Overtaken` if the lease is lost.
    """
    values: dict[str, Any] = {
        "attempts": 0,
        "attempt_count": delivery.attempt_count + 1,
        "last_status": sent.status_code,
        "last_error": sent.error,
    }
    attempt = _build_attempt(delivery, sent)
    with transaction.atomic():
        # The endpoint is locked before the delivery, here and everywhere, so that two writers can't deadlock;
        # without the lock, two attempts that end together would count as one failure. `no_key`, because the
        # dispatcher's inserts share a lock on the key.
        endpoint = Endpoint.everywhere.select_for_update(no_key=True).get(pk=delivery.endpoint_id)
        update_health(endpoint, sent)
        if sent.is_success:
            states.move(
                delivery, "delivered", under_lease=True, wake_at=None, delivered_at=sent.ended_at, **values
            )
        else:
            wait = next_wait(_count_tries(delivery), sent, chance=chance)
            if wait is None or endpoint.deleted_at is not None:
                states.move(delivery, "failed", under_lease=True, wake_at=None, **values)
            elif not is_open(endpoint):
                states.move(delivery, "held", under_lease=True, wake_at=None, **values)
            else:
                attempt.next_attempt_at = sent.ended_at + wait
                states.write_as(
                    delivery, "pending", under_lease=True, wake_at=attempt.next_attempt_at, **values
                )
        insert([attempt])
    _log_attempt(delivery, attempt, outcome=delivery.status)


def _count_tries(delivery: Delivery) -> int:
    """Return the number of attempts in the current schedule, this one included.

    Sending again by hand sets `due_at`, which begins a new schedule.
    """
    since = delivery.due_at
    if since is None or since == delivery.created_at:
        # The attempts aren't counted by time, because this process's clock may be behind the database's, and the
        # first attempt before `since`.
        return delivery.attempt_count + 1
    return 1 + DeliveryAttempt.everywhere.filter(delivery=delivery, started_at__gte=since).count()


SuccessfulDelivery = tuple[Delivery, AttemptResult]


def record_successes(done: Sequence[SuccessfulDelivery]) -> None:
    """Write for many successes what `record_result()` writes, in one transaction if possible.

    If one of them was overtaken or fails, each is written separately, and that one is only logged. It raises
    nothing.
    """
    if not done:
        return
    try:
        if _record_together(done):
            return
    # The error may come from one of them only, so each is recorded separately, and its error logged there.
    except Exception as error:  # noqa: BLE001
        log.warning("not_recorded_together", count=len(done), error=str(error))
    for delivery, result in done:
        try:
            record_result(delivery, result)
        except states.Overtaken:
            log.warning("lease_lost", delivery=encode("dlv", delivery.pk))
        # Errors must not spread to the other deliveries: this one is due again after its lease.
        except Exception:
            counters.add("work_failed", "webhooks.deliver_to_endpoint")
            log.exception("work_failed", delivery=encode("dlv", delivery.pk), attempts=delivery.attempts)


def _record_together(done: Sequence[SuccessfulDelivery]) -> bool:
    """Record all of them, or return `False` and write nothing if one of them was overtaken."""
    last_success_by_endpoint: dict[UUID, datetime] = {}
    for delivery, result in done:
        last_success_by_endpoint[delivery.endpoint_id] = max(
            result.ended_at, last_success_by_endpoint.get(delivery.endpoint_id, result.ended_at)
        )
    attempts = [_build_attempt(delivery, result) for delivery, result in done]
    with transaction.atomic():
        # Endpoints before deliveries and in one order, so that two writers, whose writes lock rows, can't
        # deadlock.
        for endpoint_id, ended_at in sorted(last_success_by_endpoint.items()):
            _count_success_of(endpoint_id, ended_at)
        changes = [
            (
                delivery,
                {
                    "wake_at": None,
                    "attempts": 0,
                    "attempt_count": attempt.number,
                    "last_status": result.status_code,
                    "last_error": "",
                    "delivered_at": result.ended_at,
                },
            )
            for (delivery, result), attempt in zip(done, attempts, strict=True)
        ]
        if not states.move_each(changes, "delivered"):
            transaction.set_rollback(True)
            return False
        insert(attempts)
    for (delivery, _sent), attempt in zip(done, attempts, strict=True):
        _log_attempt(delivery, attempt, outcome="delivered")
    return True


def _build_attempt(delivery: Delivery, result: AttemptResult) -> DeliveryAttempt:
    """Return the attempt as an unsaved row of the log."""
    return DeliveryAttempt(
        workspace_id=delivery.workspace_id,
        delivery=delivery,
        number=delivery.attempt_count + 1,
        started_at=result.started_at,
        duration_ms=round(result.seconds * 1000),
        url=result.url,
        request_headers=dict(result.request_headers),
        status_code=result.status_code,
        response_headers=dict(result.response_headers),
        response_body=result.response_body,
        error=result.error,
    )


def _log_attempt(delivery: Delivery, attempt: DeliveryAttempt, *, outcome: str) -> None:
    """Count and log an attempt, after its commit."""
    counters.add("webhook_attempts", "failed" if attempt.error else "delivered")
    if attempt.number == 1:
        counters.add("webhook_first_attempts", "all")
        # A held delivery begins to wait when it is released.
        waited = (attempt.started_at - (delivery.due_at or delivery.created_at)).total_seconds()
        counters.add("webhook_first_wait_seconds", "all", max(waited, 0.0))
    log.info(
        "delivery_attempted",
        # The request that led to the event; a task sends the deliveries of many.
        request_id=delivery.request_id,
        delivery=encode("dlv", delivery.pk),
        endpoint=encode("whe", delivery.endpoint_id),
        number=attempt.number,
        status_code=attempt.status_code,
        error=attempt.error,
        outcome=outcome,
        next_attempt_at=attempt.next_attempt_at and attempt.next_attempt_at.isoformat(),
    )


def update_health(endpoint: Endpoint, sent: AttemptResult) -> None:
    """Count this attempt in the health of the endpoint, whose row the caller has locked.

    Enough failures in a row degrade the endpoint. It is disabled by a 410, or if it has failed often and long
    enough. Members are notified of both.
    """
    now = sent.ended_at
    if sent.is_success:
        _count_success(endpoint, now)
        return
    failures = endpoint.failures + 1
    failing_since = endpoint.failing_since or now
    values: dict[str, Any] = {"failures": failures, "failing_since": failing_since}
    has_failed_too_long = (
        failures >= limits.WEBHOOK_DISABLED_FAILURES and now - failing_since >= limits.WEBHOOK_DISABLED_AFTER
    )
    if endpoint.status != EndpointStatus.DISABLED and (sent.status_code == 410 or has_failed_too_long):
        states.move(endpoint, "disabled", **values)
        log.warning("endpoint_disabled", endpoint=encode("whe", endpoint.pk), failures=failures)
        _notify_members(endpoint, sent, now)
    elif endpoint.status == EndpointStatus.ACTIVE and failures >= limits.WEBHOOK_DEGRADED_FAILURES:
        states.move(endpoint, "degraded", **values)
        log.warning("endpoint_degraded", endpoint=encode("whe", endpoint.pk), failures=failures)
        _notify_members(endpoint, sent, now)
    else:
        states.write_as(endpoint, endpoint.status, **values)


def _notify_members(endpoint: Endpoint, result: AttemptResult, now: datetime) -> None:
    """Notify members, once per status and series of failures, that the endpoint fails or was switched off."""
    names = {"host": endpoint.address, "failures": endpoint.failures}
    if endpoint.status == EndpointStatus.DISABLED:
        title = _("The webhook endpoint at %(host)s was switched off") % names
        text = _("Events are held until you switch it on.")
    else:
        title = _("The webhook endpoint at %(host)s fails") % names
        text = _("%(failures)d deliveries failed in a row. Retrying more slowly.") % names
    notices.record(
        "webhook",
        workspace_id=endpoint.workspace_id,
        key=f"{endpoint.pk.hex}:{endpoint.status}:{format_utc(endpoint.failing_since or now)}",
        title=title,
        text=f"{result.error}\n{text}",
        path="settings/webhooks",
        now=now,
    )


def _count_success_of(endpoint_id: UUID, now: datetime) -> None:
    """Lock the endpoint's row and count a success, in one statement if the endpoint is healthy."""
    healthy_row = {"pk": endpoint_id, "failures": 0, "status": EndpointStatus.ACTIVE}
    if not update_each(Endpoint, [(healthy_row, {"last_success_at": now, "updated_at": utc_now()})]):
        _count_success(Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint_id), now)


def _count_success(endpoint: Endpoint, now: datetime) -> None:
    values: dict[str, Any] = {"failures": 0, "failing_since": None, "last_success_at": now}
    if endpoint.status == EndpointStatus.DEGRADED:
        states.move(endpoint, "active", **values)
    else:
        # A disabled endpoint stays so: only a person switches it on again.
        states.write_as(endpoint, endpoint.status, **values)
