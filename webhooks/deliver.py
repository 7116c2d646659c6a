"""Delivers events: a task takes some of an endpoint's due deliveries, sends them in turn, and records them.

Deliveries are taken, then sent by POST without a transaction, then one transaction writes the attempts, the
deliveries and the endpoint's health under their leases. A worker that dies between a POST and that
transaction leaves the row to the next one: the event is delivered again, and recorded once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings
from django.db import transaction

from config.core import counters, jobs, logs, states, task_runner, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.prepared_queries import Prepared
from config.core.http_client import Client, OutboundError, Policy, TimedOut
from config.core.ids import encode
from pipeline.models import Event
from webhooks import limits, signing
from webhooks.endpoint_rate import EndpointRate
from webhooks.models import Delivery, DeliveryStatus, Endpoint
from webhooks.results import (
    AttemptResult,
    SuccessfulDelivery,
    is_healthy,
    is_open,
    record_result,
    record_successes,
)
from webhooks.states import OPEN_DELIVERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from uuid import UUID

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)
"""Longer than a whole exchange plus the longest that a busy database lets a write wait."""
FAILING_SLOTS: Final = 1
"""Deliveries to a failing endpoint at the same time."""
MAX_ATTEMPTS: Final = 10
"""Tries that ended without a record, after which the delivery fails."""
TASK_SECONDS: Final = 5.0
"""Seconds after which a task takes no more deliveries, so that every endpoint gets its turn."""
MAX_TAKEN: Final = 10
"""The most deliveries that a task takes at a time."""
FIRST_TAKEN: Final = 5
"""Deliveries that a task takes first, before it is known how fast the endpoint answers."""
SEND_WITHIN_SECONDS: Final = 0.2
"""Seconds within which taken deliveries are sent; the others are given back.

The endpoint's rate counts deliveries when they are taken, so `PACE` adds this time to its window.
"""
SLOW_SECONDS: Final = 2.0
"""A task ends at an answer that took more seconds, and leaves its slot to another endpoint."""
PACE: Final = EndpointRate(lasts=SEND_WITHIN_SECONDS)
MAX_READ_AGE_SECONDS: Final = 1.0
"""Seconds after which an endpoint is read again, because it may have been paused or changed meanwhile."""
# The most of an answer that the log keeps, besides `WEBHOOK_ANSWER_KEPT` bytes of its body.
_MAX_ERROR_CHARACTERS: Final = 300
_MAX_HEADERS_KEPT: Final = 40
_MAX_HEADER_CHARACTERS: Final = 500
# A receiver's cookie may be somebody's session.
_HEADERS_NOT_KEPT: Final = frozenset({"set-cookie", "set-cookie2"})


# --- Slots -----------------------------------------------------------------------------------------------------------


def healthy_endpoint_slots(endpoint_ids: Collection[UUID]) -> dict[UUID, jobs.HolderSlots]:
    """Return the slots of those of the endpoints that are healthy."""
    return _endpoint_slots(endpoint_ids, limits.WEBHOOK_SLOTS, is_included=is_healthy)


def failing_endpoint_slots(endpoint_ids: Collection[UUID]) -> dict[UUID, jobs.HolderSlots]:
    """Return the slots of failing or closed endpoints, which are probed one delivery at a time.

    Their slots are separate, so that all of them together delay no healthy endpoint.
    """
    return _endpoint_slots(endpoint_ids, FAILING_SLOTS, is_included=lambda endpoint: not is_healthy(endpoint))


def _endpoint_slots(
    endpoint_ids: Collection[UUID], max_slots: int, *, is_included: Callable[[Endpoint], bool]
) -> dict[UUID, jobs.HolderSlots]:
    endpoints = _ENDPOINTS_QUERY.ask(pks=list(endpoint_ids))
    return {
        endpoint.pk: jobs.HolderSlots(endpoint.workspace_id, max_slots)
        for endpoint in endpoints
        if is_included(endpoint)
    }


_ENDPOINTS_QUERY: Final[Prepared[Endpoint]] = Prepared(
    lambda pks: Endpoint.everywhere.filter(pk__in=pks).only(
        "workspace_id", "failures", "status", "is_on", "deleted_at"
    ),
    # Each number of endpoints is another statement; if their plans were kept, they would push out others.
    keeps_plan=False,
)


def deliver_to_endpoint(endpoint_id: UUID) -> None:
    """Send the endpoint's due deliveries until none is left, an attempt fails or is slow, or time is up.

    Time is up after `TASK_SECONDS`. The rest is queued again, because the end of a task wakes the dispatcher.
    """
    deadline = monotonic() + TASK_SECONDS
    max_taken = FIRST_TAKEN
    while taken := take(endpoint_id, limit=max_taken):
        seconds_each = _deliver_batch(taken)
        if len(taken) < max_taken or seconds_each is None or monotonic() > deadline:
            return
        # As many as can be sent in time at this speed; a millisecond is the least, so that nothing divides by 0.
        max_taken = max(1, min(MAX_TAKEN, int(SEND_WITHIN_SECONDS / max(seconds_each, 0.001))))


def probe_endpoint(endpoint_id: UUID) -> None:
    """Send one due delivery, if any, to a failing endpoint; a success makes the endpoint healthy again."""
    for delivery in take(endpoint_id, limit=1):
        deliver(delivery)


def take(endpoint_id: UUID, *, limit: int) -> list[Delivery]:
    """Take the endpoint's earliest due deliveries, at most `limit` and as many as its rate allows now.

    Each has its endpoint and event loaded. None is taken if the endpoint doesn't exist or its rate is used up.
    """
    with transaction.atomic():
        work_queue.lock_holder(Delivery._meta.db_table, endpoint_id)
        read_at = monotonic()
        window = PACE.read(endpoint_id)
        if window is None or window.left < 1:
            return []
        taken = work_queue.take(
            Delivery, "endpoint_id", endpoint_id, limit=min(limit, window.left), lease=LEASE
        )
        if taken:
            PACE.count(window, len(taken))
            bodies = _BODIES_QUERY.ask(pks=[delivery.event_id for delivery in taken])
            events = {event.pk: event for event in bodies}
        for delivery in taken:
            delivery.endpoint, delivery.event = window.endpoint, events[delivery.event_id]
            delivery.read_at = read_at
    if taken:
        crash_point("deliver.claimed")
    return taken


_BODIES_QUERY: Final[Prepared[Event]] = Prepared(lambda pks: Event.everywhere.only("body").filter(pk__in=pks))


def _deliver_batch(taken: Sequence[Delivery]) -> float | None:
    """Send deliveries in turn and record them; return the mean seconds of each, or `None` if the task must end.

    It must end after an attempt that failed or was slow. What can't be sent within `SEND_WITHIN_SECONDS`, or
    comes after such an attempt, is given back and due now. Raises any error of our own in an attempt, after the
    others were recorded.
    """
    started = monotonic()
    successes: list[SuccessfulDelivery] = []
    remaining = list(taken)
    own_error: Exception | None = None
    may_go_on = is_healthy(taken[0].endpoint)
    # The first is sent however late it is, or else none might ever be sent.
    while (
        remaining and may_go_on and (remaining[0] is taken[0] or monotonic() - started < SEND_WITHIN_SECONDS)
    ):
        delivery = remaining.pop(0)
        try:
            result = _attempt_delivery(delivery, now=utc_now())
        # An error of our own: this one is due again when its lease runs out; first the others are recorded.
        except Exception as error:  # noqa: BLE001
            own_error = error
            break
        if result is None:
            continue
        may_go_on = result.is_success and result.seconds < SLOW_SECONDS
        if result.is_success:
            successes.append((delivery, result))
        else:
            record_successes(successes)
            successes = []
            _record_unless_overtaken(delivery, result)
    seconds_each = (monotonic() - started) / max(len(taken) - len(remaining), 1)
    record_successes(successes)
    crash_point("deliver.recorded")
    if remaining:
        now = work_queue.database_now()
        for delivery in remaining:
            delivery.sleep_until(now, attempts=max(delivery.attempts - 1, 0))
    if own_error is not None:
        raise own_error
    return seconds_each if may_go_on else None


# --- One attempt -----------------------------------------------------------------------------------------------------


def deliver(delivery: Delivery, *, now: datetime | None = None) -> None:
    """Send one delivery that was taken, and record it; nothing is written if the lease is lost meanwhile."""
    result = _attempt_delivery(delivery, now=now or utc_now())
    if result is None:
        return
    if result.is_success:
        record_successes([(delivery, result)])
    else:
        _record_unless_overtaken(delivery, result)
    crash_point("deliver.recorded")


def _attempt_delivery(delivery: Delivery, *, now: datetime) -> AttemptResult | None:
    """Send a delivery and return the result, which isn't recorded yet.

    Returns `None` if nothing was sent: the delivery was ended, is held, or has failed after `MAX_ATTEMPTS`, or its
    lease is lost.
    """
    try:
        if monotonic() - delivery.read_at > MAX_READ_AGE_SECONDS:
            _reload(delivery)
        if delivery.attempts > MAX_ATTEMPTS:
            give_up(delivery)
            counters.add("given_up", "webhooks.deliver_to_endpoint")
            log.error("gave_up", delivery=encode("dlv", delivery.pk), attempts=delivery.attempts)
            return None
        body = _body_to_send(delivery, delivery.endpoint)
    except states.Overtaken:
        _log_overtaken(delivery)
        return None
    if body is None:
        return None
    result = send(delivery, body, now=now)
    crash_point("deliver.sent")
    return result


def _record_unless_overtaken(delivery: Delivery, result: AttemptResult) -> None:
    """Record the result of a failed attempt; only log it if the lease is lost."""
    try:
        record_result(delivery, result)
    except states.Overtaken:
        _log_overtaken(delivery)


def _log_overtaken(delivery: Delivery) -> None:
    """Log that another task has the delivery or a person changed it, so that their change stands."""
    log.warning("lease_lost", delivery=encode("dlv", delivery.pk))


def give_up(delivery: Delivery) -> None:
    """Fail a delivery whose workers died again and again. Raises `Overtaken` if the lease is lost."""
    if delivery.status == DeliveryStatus.HELD:
        states.move(delivery, "pending", under_lease=True)
    _end_delivery(
        delivery, "failed", "The service stopped several times while sending this. Send it again by hand."
    )


def _reload(delivery: Delivery) -> None:
    """Read the delivery's endpoint and event again, unless the delivery was deleted."""
    now = monotonic()
    row = Delivery.everywhere.select_related("endpoint", "event").filter(pk=delivery.pk).first()
    if row is not None:
        delivery.endpoint, delivery.event = row.endpoint, row.event
        delivery.read_at = now


def _body_to_send(delivery: Delivery, endpoint: Endpoint) -> bytes | None:
    """Return the body to send, or `None` if it can't be sent now.

    Then the delivery fails, is held, or only sleeps if it has ended or is held already. Raises `Overtaken` if the
    lease is lost.
    """
    if delivery.status not in OPEN_DELIVERIES:
        # It wakes by mistake, and must not be claimed forever.
        delivery.sleep_until(None, attempts=0)
        return None
    if endpoint.deleted_at is not None:
        _end_delivery(delivery, "failed", "The endpoint was removed.")
        return None
    body = delivery.event.body
    if body is None:
        days = limits.EVENT_PAYLOADS_KEPT.days
        _end_delivery(
            delivery, "failed", f"The event is older than {days} days and its content is no longer kept."
        )
        return None
    if not is_open(endpoint):
        if delivery.status == DeliveryStatus.PENDING:
            _end_delivery(delivery, "held", "The endpoint is switched off.")
        else:
            delivery.sleep_until(None, attempts=0)
        return None
    if delivery.status == DeliveryStatus.HELD:
        states.move(delivery, "pending", under_lease=True)
    return bytes(body)


def _end_delivery(delivery: Delivery, status: str, error: str) -> None:
    states.move(delivery, status, under_lease=True, wake_at=None, attempts=0, last_error=error)


def send(delivery: Delivery, body: bytes, *, now: datetime) -> AttemptResult:
    """Send the event once; every answer and every network failure becomes an `AttemptResult`."""
    endpoint = delivery.endpoint
    event_id = encode("evt", delivery.event_id)
    headers = {
        "content-type": "application/json",
        "user-agent": settings.USER_AGENT,
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signing.sign(signing.secrets_of(endpoint, now=now), event_id, now, body),
    }
    # The exchange may last long; meanwhile another task can use the connection to the database.
    work_queue.release_connections()
    started = monotonic()
    try:
        response = _client(
            allow_loopback=settings.OUTBOUND_ALLOW_LOOPBACK,
            allow_private=settings.OUTBOUND_ALLOW_PRIVATE,
            user_agent=settings.USER_AGENT,
        ).request(
            "POST",
            endpoint.url,
            headers=headers,
            body=body,
            timeout=limits.WEBHOOK_TIMEOUT_SECONDS,
            max_bytes=limits.WEBHOOK_ANSWER_BYTES,
            max_redirects=0,
            truncate=True,
            https_only=not settings.WEBHOOKS_ALLOW_HTTP,
            # A reused connection may fail after sending; receivers recognize repeats by their id, and most
            # deliveries save a handshake.
            keep_alive=True,
        )
    except OutboundError as error:
        return AttemptResult(
            now,
            monotonic() - started,
            headers,
            error=_storable(str(error), _MAX_ERROR_CHARACTERS),
            timed_out=isinstance(error, TimedOut),
            url=endpoint.url,
        )
    return AttemptResult(
        now,
        monotonic() - started,
        headers,
        status_code=response.status,
        response_headers=_loggable_headers(response.headers),
        response_body=_storable(response.body[: limits.WEBHOOK_ANSWER_KEPT].decode(errors="replace")),
        error=_describe_failure(response.status),
        url=endpoint.url,
    )


@cache
def _client(*, allow_loopback: bool, allow_private: bool, user_agent: str) -> Client:
    client = Client(Policy(allow_loopback=allow_loopback, allow_private=allow_private, user_agent=user_agent))
    task_runner.every_second(client.sweep)
    return client


def _describe_failure(status_code: int) -> str:
    """Return why the status is a failure, as a sentence for people, or an empty text for a 2xx."""
    if 200 <= status_code < 300:
        return ""
    if 300 <= status_code < 400:
        return f"The endpoint answered {status_code}; redirects are not followed, set the final address."
    if status_code == 410:
        return "The endpoint answered 410: it is gone, so it was switched off."
    return f"The endpoint answered {status_code}."


def _loggable_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the response headers that the log keeps, shortened and without secrets."""
    names = [name for name in headers if name.lower() not in _HEADERS_NOT_KEPT][:_MAX_HEADERS_KEPT]
    redacted: dict[str, str] = logs.redact(
        {
            _storable(name, _MAX_HEADER_CHARACTERS): _storable(headers[name], _MAX_HEADER_CHARACTERS)
            for name in names
        }
    )
    return redacted


def _storable(text: str, max_characters: int | None = None) -> str:
    """Return the text without NUL, cut to `max_characters`."""
    # PostgreSQL refuses NUL in text and in JSON, and strangers write this text.
    return text.replace("\x00", "\ufffd")[:max_characters]
