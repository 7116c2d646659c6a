"""What came of an attempt, and what is written about it: the attempt, the delivery, the endpoint's health, the next try.

All of it in one transaction, under the delivery's lease. The successes of a task are written together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import notices
from config.core import counters, states
from config.core.clock import utc_now
from config.core.database.bulk_update import update_each
from config.core.database.insert import insert
from config.core.datetimes import as_z
from config.core.ids import encode
from webhooks import limits
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, EndpointStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

log = structlog.get_logger(__name__)

THROTTLED: Final = frozenset({429, 502, 504})


@dataclass(frozen=True)
class AttemptResult:
    """What came of one attempt. `status_code` is None where there was no answer; `error` is empty for a 2xx."""

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
    """Its last attempt succeeded, or it had none yet."""
    return endpoint.failures == 0 and endpoint.status == EndpointStatus.ACTIVE


def is_healthy(endpoint: Endpoint) -> bool:
    """It is well, and events are sent to it."""
    return is_well(endpoint) and is_open(endpoint)


def is_open(endpoint: Endpoint) -> bool:
    """Events are sent to it: neither a person nor the service has switched it off, and it isn't removed."""
    return endpoint.is_on and endpoint.status != EndpointStatus.DISABLED and endpoint.deleted_at is None


# --- The schedule ----------------------------------------------------------------------------------------------------


def next_wait(tries: int, sent: AttemptResult, *, chance: random.Random) -> timedelta | None:
    """How long to wait after `tries` failed attempts, counted from the attempt's end; None after the last."""
    if tries >= len(limits.WEBHOOK_SCHEDULE):
        return None
    wait = limits.WEBHOOK_SCHEDULE[tries]
    if sent.timed_out or sent.status_code in THROTTLED:
        wait = max(wait, limits.WEBHOOK_THROTTLED_WAIT)
    # Upwards only: a promise of at least so long is kept.
    wait *= 1 + chance.uniform(0, limits.WEBHOOK_JITTER)
    retry_after = read_retry_after(sent.response_headers.get("retry-after", ""), now=sent.ended_at)
    return max(wait, min(retry_after, limits.WEBHOOK_RETRY_AFTER_MOST))


def read_retry_after(value: str, *, now: datetime) -> timedelta:
    """The wait that seconds or an HTTP date ask for; none for whatever can't be read."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        # Cut before it becomes a number: a receiver may write as many digits as it likes.
        return timedelta(seconds=int(value[:9]))
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return timedelta(0)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(moment - now, timedelta(0))


# --- What is written -------------------------------------------------------------------------------------------------

_chance: Final = random.Random()  # noqa: S311  spreads retries, guards nothing


def record_result(delivery: Delivery, sent: AttemptResult, *, chance: random.Random = _chance) -> None:
    """Write the attempt, the delivery and the endpoint's health, all or nothing; `Overtaken` without the lease."""
    values: dict[str, Any] = {
        "attempts": 0,
        "attempt_count": delivery.attempt_count + 1,
        "last_status": sent.status_code,
        "last_error": sent.error,
    }
    attempt = _attempt(delivery, sent)
    with transaction.atomic():
        # Locked before the delivery, here and everywhere, so that two writers can't wait for each other; two
        # attempts that end together would else count as one failure. Not the key: the dispatcher's inserts share it.
        endpoint = Endpoint.everywhere.select_for_update(no_key=True).get(pk=delivery.endpoint_id)
        note_health(endpoint, sent)
        if sent.is_success:
            states.move(
                delivery, "delivered", under_lease=True, wake_at=None, delivered_at=sent.ended_at, **values
            )
        else:
            wait = next_wait(_tries(delivery), sent, chance=chance)
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


def _tries(delivery: Delivery) -> int:
    """Attempts of the schedule that stands, with this one; a person's wish to send again sets `due_at` and begins it anew."""
    since = delivery.due_at
    if since is None or since == delivery.created_at:
        # Without a look at the clock: this process's may be behind the database's, and the first attempt before `since`.
        return delivery.attempt_count + 1
    return 1 + DeliveryAttempt.everywhere.filter(delivery=delivery, started_at__gte=since).count()


SuccessfulDelivery = tuple[Delivery, AttemptResult]


def record_successes(done: Sequence[SuccessfulDelivery]) -> None:
    """Of many at once what `record_result()` writes, in one transaction; those that were overtaken are left out and logged.

    It raises nothing: whatever befalls one of them, the others are written.
    """
    if not done:
        return
    try:
        if _record_together(done):
            return
    # Whatever it was, it may have been one of them only; each is tried by itself, and there it is logged.
    except Exception as error:  # noqa: BLE001
        log.warning("not_recorded_together", count=len(done), error=str(error))
    for delivery, sent in done:
        try:
            record_result(delivery, sent)
        except states.Overtaken:
            log.warning("lease_lost", delivery=encode("dlv", delivery.pk))
        # The edge of this delivery's task, which may belong to another thread: it is due again after its lease.
        except Exception:
            counters.add("work_failed", "webhooks.deliver_to_endpoint")
            log.exception("work_failed", delivery=encode("dlv", delivery.pk), attempts=delivery.attempts)


def _record_together(done: Sequence[SuccessfulDelivery]) -> bool:
    """False, and nothing is written, where one of them was overtaken."""
    latest: dict[UUID, datetime] = {}
    for delivery, sent in done:
        latest[delivery.endpoint_id] = max(sent.ended_at, latest.get(delivery.endpoint_id, sent.ended_at))
    attempts = [_attempt(delivery, sent) for delivery, sent in done]
    with transaction.atomic():
        # In one order for everybody, and before the deliveries: what is written is locked.
        for endpoint_id, ended_at in sorted(latest.items()):
            _note_success_of(endpoint_id, ended_at)
        delivered = [
            (
                delivery,
                {
                    "wake_at": None,
                    "attempts": 0,
                    "attempt_count": attempt.number,
                    "last_status": sent.status_code,
                    "last_error": "",
                    "delivered_at": sent.ended_at,
                },
            )
            for (delivery, sent), attempt in zip(done, attempts, strict=True)
        ]
        if not states.move_each(delivered, "delivered"):
            transaction.set_rollback(True)
            return False
        insert(attempts)
    for (delivery, _sent), attempt in zip(done, attempts, strict=True):
        _log_attempt(delivery, attempt, outcome="delivered")
    return True


def _attempt(delivery: Delivery, sent: AttemptResult) -> DeliveryAttempt:
    """The row of the log, not stored."""
    return DeliveryAttempt(
        workspace_id=delivery.workspace_id,
        delivery=delivery,
        number=delivery.attempt_count + 1,
        started_at=sent.started_at,
        duration_ms=round(sent.seconds * 1000),
        url=sent.url,
        request_headers=dict(sent.request_headers),
        status_code=sent.status_code,
        response_headers=dict(sent.response_headers),
        response_body=sent.response_body,
        error=sent.error,
    )


def _log_attempt(delivery: Delivery, attempt: DeliveryAttempt, *, outcome: str) -> None:
    """The tallies and the log, once it is committed."""
    counters.add("webhook_attempts", "failed" if attempt.error else "delivered")
    if attempt.number == 1:
        counters.add("webhook_first_attempts", "all")
        # What was held begins to wait when it is let go.
        waited = (attempt.started_at - (delivery.due_at or delivery.created_at)).total_seconds()
        counters.add("webhook_first_wait_seconds", "all", max(waited, 0.0))
    log.info(
        "delivery_attempted",
        # Of the call that led to it: a task sends those of many.
        request_id=delivery.request_id,
        delivery=encode("dlv", delivery.pk),
        endpoint=encode("whe", delivery.endpoint_id),
        number=attempt.number,
        status_code=attempt.status_code,
        error=attempt.error,
        outcome=outcome,
        next_attempt_at=attempt.next_attempt_at and attempt.next_attempt_at.isoformat(),
    )


def note_health(endpoint: Endpoint, sent: AttemptResult) -> None:
    """Count this attempt in the endpoint's health; the row is locked by the caller."""
    now = sent.ended_at
    if sent.is_success:
        _note_success(endpoint, now)
        return
    failures = endpoint.failures + 1
    failing_since = endpoint.failing_since or now
    counted: dict[str, Any] = {"failures": failures, "failing_since": failing_since}
    is_worn_out = (
        failures >= limits.WEBHOOK_DISABLED_FAILURES and now - failing_since >= limits.WEBHOOK_DISABLED_AFTER
    )
    if endpoint.status != EndpointStatus.DISABLED and (sent.status_code == 410 or is_worn_out):
        states.move(endpoint, "disabled", **counted)
        log.warning("endpoint_disabled", endpoint=encode("whe", endpoint.pk), failures=failures)
        _tell_people(endpoint, sent, now)
    elif endpoint.status == EndpointStatus.ACTIVE and failures >= limits.WEBHOOK_DEGRADED_FAILURES:
        states.move(endpoint, "degraded", **counted)
        log.warning("endpoint_degraded", endpoint=encode("whe", endpoint.pk), failures=failures)
        _tell_people(endpoint, sent, now)
    else:
        states.write_as(endpoint, endpoint.status, **counted)


def _tell_people(endpoint: Endpoint, sent: AttemptResult, now: datetime) -> None:
    words = {"host": endpoint.address, "failures": endpoint.failures}
    if endpoint.status == EndpointStatus.DISABLED:
        title = _("The webhook endpoint at %(host)s was switched off") % words
        text = _("Events are held until you switch it on.")
    else:
        title = _("The webhook endpoint at %(host)s fails") % words
        text = _("%(failures)d deliveries failed in a row. Retrying more slowly.") % words
    notices.record(
        "webhook",
        workspace_id=endpoint.workspace_id,
        key=f"{endpoint.pk.hex}:{endpoint.status}:{as_z(endpoint.failing_since or now)}",
        title=title,
        text=f"{sent.error}\n{text}",
        path="settings/webhooks",
        now=now,
    )


def _note_success_of(endpoint_id: UUID, now: datetime) -> None:
    """Lock the endpoint's row until the transaction ends, and count the success: by one statement where it is well."""
    well = {"pk": endpoint_id, "failures": 0, "status": EndpointStatus.ACTIVE}
    if not update_each(Endpoint, [(well, {"last_success_at": now, "updated_at": utc_now()})]):
        _note_success(Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint_id), now)


def _note_success(endpoint: Endpoint, now: datetime) -> None:
    well: dict[str, Any] = {"failures": 0, "failing_since": None, "last_success_at": now}
    if endpoint.status == EndpointStatus.DEGRADED:
        states.move(endpoint, "active", **well)
    else:
        # A disabled one stays so: only a person switches it on again.
        states.write_as(endpoint, endpoint.status, **well)
