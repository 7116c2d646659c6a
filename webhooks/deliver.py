"""Delivers to an endpoint: a task takes due deliveries a few at a time, sends them one after another, and records them.

Take, then POST without a transaction, then one transaction that writes the attempts, the deliveries and the endpoint's
health under their leases. A worker that dies between a POST and that transaction leaves the row to the next one: the
event is delivered again, and recorded once.
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
"""Longer than the whole exchange and the longest that a busy database lets a write wait."""
FAILING_SLOTS: Final = 1
MAX_ATTEMPTS: Final = 10
"""Tries that ended without a record; after so many the delivery is given up."""
TASK_SECONDS: Final = 5.0
"""A task ends after this long, so that every endpoint gets its turn."""
TAKEN_AT_ONCE: Final = 10
TAKEN_AT_FIRST: Final = 5
"""Before it is known how fast the endpoint answers."""
SENT_WITHIN_SECONDS: Final = 0.2
"""What was taken longer ago is given back, because the endpoint's rate counts it at its taking; `pace` knows that."""
SLOW_SECONDS: Final = 2.0
"""A task ends at an answer that took longer, and leaves its place to another endpoint."""
PACE: Final = EndpointRate(lasts=SENT_WITHIN_SECONDS)
READ_LASTS_SECONDS: Final = 1.0
"""What was read of an endpoint longer ago is read again: it may have been paused, or moved, while the row waited."""
ERROR_CHARACTERS: Final = 300
HEADERS_KEPT: Final = 40
HEADER_CHARACTERS: Final = 500
# A cookie of the receiver's may be somebody's session.
HEADERS_LEFT_OUT: Final = frozenset({"set-cookie", "set-cookie2"})


# --- Slots -----------------------------------------------------------------------------------------------------------


def slots_of_healthy(endpoint_ids: Collection[UUID]) -> dict[UUID, jobs.HolderSlots]:
    """Endpoints whose last attempt succeeded, or that had none yet."""
    return _slots(endpoint_ids, limits.WEBHOOK_SLOTS, when=is_healthy)


def slots_of_failing(endpoint_ids: Collection[UUID]) -> dict[UUID, jobs.HolderSlots]:
    """The others, one probe at a time. They have slots of their own, so all of them together delay no healthy one."""
    return _slots(endpoint_ids, FAILING_SLOTS, when=lambda endpoint: not is_healthy(endpoint))


def _slots(
    endpoint_ids: Collection[UUID], most: int, *, when: Callable[[Endpoint], bool]
) -> dict[UUID, jobs.HolderSlots]:
    endpoints = _ENDPOINTS.ask(pks=list(endpoint_ids))
    return {
        endpoint.pk: jobs.HolderSlots(endpoint.workspace_id, most) for endpoint in endpoints if when(endpoint)
    }


_ENDPOINTS: Final[Prepared[Endpoint]] = Prepared(
    lambda pks: Endpoint.everywhere.filter(pk__in=pks).only(
        "workspace_id", "failures", "status", "is_on", "deleted_at"
    )
)


def deliver_to_endpoint(endpoint_id: UUID) -> None:
    """Deliver what is due at one endpoint until nothing is, it fails, it answers slowly, or the task's time is up.

    What is due then is queued again: the end of a task wakes the dispatcher.
    """
    until = monotonic() + TASK_SECONDS
    most = TAKEN_AT_FIRST
    while taken := take(endpoint_id, most=most):
        seconds = _deliver_some(taken)
        if len(taken) < most or seconds is None or monotonic() > until:
            return
        most = max(1, min(TAKEN_AT_ONCE, int(SENT_WITHIN_SECONDS / max(seconds, 0.001))))


def probe_endpoint(endpoint_id: UUID) -> None:
    """One delivery to an endpoint that fails; once it succeeds the endpoint has its other slots again."""
    for delivery in take(endpoint_id, most=1):
        deliver(delivery)


def take(endpoint_id: UUID, *, most: int) -> list[Delivery]:
    """Of the endpoint's due deliveries the earliest, as many as its rate allows now, with what they need."""
    with transaction.atomic():
        work_queue.lock_holder(Delivery._meta.db_table, endpoint_id)
        read_at = monotonic()
        window = PACE.read(endpoint_id)
        if window is None or window.left < 1:
            return []
        taken = work_queue.take(
            Delivery, "endpoint_id", endpoint_id, limit=min(most, window.left), lease=LEASE
        )
        if taken:
            PACE.count(window, len(taken))
            found = _BODIES.ask(pks=[delivery.event_id for delivery in taken])
            events = {event.pk: event for event in found}
        for delivery in taken:
            delivery.endpoint, delivery.event = window.endpoint, events[delivery.event_id]
            delivery.read_at = read_at
    if taken:
        crash_point("deliver.claimed")
    return taken


_BODIES: Final[Prepared[Event]] = Prepared(lambda pks: Event.everywhere.only("body").filter(pk__in=pks))


def _deliver_some(taken: Sequence[Delivery]) -> float | None:
    """Deliver them in turn; the seconds that one takes, or None where this task has to end."""
    began = monotonic()
    sent: list[SuccessfulDelivery] = []
    left = list(taken)
    fault: Exception | None = None
    is_calm = is_healthy(taken[0].endpoint)
    # The first is sent however late it is, or none would ever be.
    while left and is_calm and (left[0] is taken[0] or monotonic() - began < SENT_WITHIN_SECONDS):
        delivery = left.pop(0)
        try:
            done = _attempt(delivery, now=utc_now())
        # A fault of our own: this one is due again when its lease runs out, the others are seen to first.
        except Exception as error:  # noqa: BLE001
            fault = error
            break
        if done is None:
            continue
        is_calm = done.is_success and done.seconds < SLOW_SECONDS
        if done.is_success:
            sent.append((delivery, done))
        else:
            record_successes(sent)
            sent = []
            _record(delivery, done)
    each = (monotonic() - began) / max(len(taken) - len(left), 1)
    record_successes(sent)
    crash_point("deliver.recorded")
    if left:
        now = work_queue.database_now()
        for delivery in left:
            delivery.sleep_until(now, attempts=max(delivery.attempts - 1, 0))
    if fault is not None:
        raise fault
    return each if is_calm else None


# --- One attempt -----------------------------------------------------------------------------------------------------


def deliver(delivery: Delivery, *, now: datetime | None = None) -> None:
    """Work one delivery that was taken; writes nothing where the lease is lost meanwhile."""
    sent = _attempt(delivery, now=now or utc_now())
    if sent is None:
        return
    if sent.is_success:
        record_successes([(delivery, sent)])
    else:
        _record(delivery, sent)
    crash_point("deliver.recorded")


def _attempt(delivery: Delivery, *, now: datetime) -> AttemptResult | None:
    """None where there is nothing to send, or nobody to send it to; then the delivery has been ended here."""
    try:
        if monotonic() - delivery.read_at > READ_LASTS_SECONDS:
            _read_again(delivery)
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
    sent = send(delivery, body, now=now)
    crash_point("deliver.sent")
    return sent


def _record(delivery: Delivery, sent: AttemptResult) -> None:
    """Write what came of it; only log where the lease is lost."""
    try:
        record_result(delivery, sent)
    except states.Overtaken:
        _log_overtaken(delivery)


def _log_overtaken(delivery: Delivery) -> None:
    """Another task has the row, or a person changed it: theirs is the later word."""
    log.warning("lease_lost", delivery=encode("dlv", delivery.pk))


def give_up(delivery: Delivery) -> None:
    """The end of a delivery whose workers died, time after time, before they could record anything."""
    if delivery.status == DeliveryStatus.HELD:
        states.move(delivery, "pending", under_lease=True)
    _end(delivery, "failed", "The service stopped again and again while sending this; send it again by hand.")


def _read_again(delivery: Delivery) -> None:
    """Its endpoint and event as they are now."""
    now = monotonic()
    row = Delivery.everywhere.select_related("endpoint", "event").filter(pk=delivery.pk).first()
    if row is not None:
        delivery.endpoint, delivery.event = row.endpoint, row.event
        delivery.read_at = now


def _body_to_send(delivery: Delivery, endpoint: Endpoint) -> bytes | None:
    """What to send, where there is something and somebody to send it to; else the delivery is ended here."""
    if delivery.status not in OPEN_DELIVERIES:
        # Given a time to wake by mistake; it must not be claimed for ever.
        delivery.sleep_until(None, attempts=0)
        return None
    if endpoint.deleted_at is not None:
        _end(delivery, "failed", "The endpoint was removed.")
        return None
    body = delivery.event.body
    if body is None:
        days = limits.EVENT_PAYLOADS_KEPT.days
        _end(delivery, "failed", f"The event is older than {days} days and its content is no longer kept.")
        return None
    if not is_open(endpoint):
        if delivery.status == DeliveryStatus.PENDING:
            _end(delivery, "held", "The endpoint is switched off.")
        else:
            delivery.sleep_until(None, attempts=0)
        return None
    if delivery.status == DeliveryStatus.HELD:
        states.move(delivery, "pending", under_lease=True)
    return bytes(body)


def _end(delivery: Delivery, status: str, error: str) -> None:
    states.move(delivery, status, under_lease=True, wake_at=None, attempts=0, last_error=error)


def send(delivery: Delivery, body: bytes, *, now: datetime) -> AttemptResult:
    """Hand the event over, once. Every answer and every failure of the network becomes an `AttemptResult`."""
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
    began = monotonic()
    try:
        answer = _client(
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
            # A receiver sees the id of what came twice; most deliveries spare the handshake.
            keep_alive=True,
        )
    except OutboundError as error:
        return AttemptResult(
            now,
            monotonic() - began,
            headers,
            error=_storable(str(error), ERROR_CHARACTERS),
            timed_out=isinstance(error, TimedOut),
            url=endpoint.url,
        )
    return AttemptResult(
        now,
        monotonic() - began,
        headers,
        status_code=answer.status,
        response_headers=_kept_headers(answer.headers),
        response_body=_storable(answer.body[: limits.WEBHOOK_ANSWER_KEPT].decode(errors="replace")),
        error=_complaint(answer.status),
        url=endpoint.url,
    )


@cache
def _client(*, allow_loopback: bool, allow_private: bool, user_agent: str) -> Client:
    client = Client(Policy(allow_loopback=allow_loopback, allow_private=allow_private, user_agent=user_agent))
    task_runner.every_second(client.sweep)
    return client


def _complaint(status_code: int) -> str:
    """What is wrong with an answer, as a sentence for people; empty for a 2xx."""
    if 200 <= status_code < 300:
        return ""
    if 300 <= status_code < 400:
        return f"The endpoint answered {status_code}; redirects are not followed, set the final address."
    if status_code == 410:
        return "The endpoint answered 410: it is gone, so it was switched off."
    return f"The endpoint answered {status_code}."


def _kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of an answer that the log keeps, cut, and without secrets."""
    kept = [name for name in headers if name.lower() not in HEADERS_LEFT_OUT][:HEADERS_KEPT]
    redacted: dict[str, str] = logs.redact(
        {_storable(name, HEADER_CHARACTERS): _storable(headers[name], HEADER_CHARACTERS) for name in kept}
    )
    return redacted


def _storable(text: str, most: int | None = None) -> str:
    # PostgreSQL refuses NUL in text and in JSON, and this text is a stranger's.
    return text.replace("\x00", "\ufffd")[:most]
