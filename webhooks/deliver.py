"""One claimed delivery: what is sent, how the answer is judged, and what is written about it.

Claim, then POST without a transaction, then one transaction that writes the attempt, the delivery and the endpoint's
health under the lease. A hand that dies between the POST and that transaction leaves the row to the next one: the
event is delivered again, and recorded once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings

from config.ground import due, hands, limits, logs, states
from config.ground.clock import utc_now
from config.ground.crash import crash_point
from config.ground.ids import encode
from config.ground.outbound import Client, OutboundError, Policy, TimedOut
from config.ground.prepared import Prepared
from config.ground.together import Together
from webhooks import signing
from webhooks.models import Delivery, Endpoint
from webhooks.recording import Sent, Success, is_healthy, is_open, record, record_successes
from webhooks.states import OPEN_DELIVERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from uuid import UUID

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)
"""Longer than the whole exchange and the longest that a busy database lets a write wait."""
FAILING_SLOTS: Final = 1
SIDE_BY_SIDE: Final = 12
"""Hands of one process for endpoints that are well."""
GATHER_SECONDS: Final = 0.02
"""How long a success waits for those of other hands, so that one transaction writes them all."""
GATHER_SECONDS_IN_A_RUSH: Final = 0.05
"""The same while more is claimed than there are hands."""
WRITTEN_AT_ONCE: Final = 25
READ_LASTS_SECONDS: Final = 1.0
"""What was read of an endpoint longer ago is read again: it may have been paused, or moved, while the row waited."""
ERROR_CHARACTERS: Final = 300
HEADERS_KEPT: Final = 40
HEADER_CHARACTERS: Final = 500
# A cookie of the receiver's may be somebody's session.
HEADERS_LEFT_OUT: Final = frozenset({"set-cookie", "set-cookie2"})


# --- Slots -----------------------------------------------------------------------------------------------------------


def slots_of_healthy(endpoint_ids: Collection[UUID]) -> dict[UUID, due.Slots]:
    """Endpoints whose last attempt succeeded, or that had none yet."""
    return _slots(endpoint_ids, limits.WEBHOOK_SLOTS, when=is_healthy)


def slots_of_failing(endpoint_ids: Collection[UUID]) -> dict[UUID, due.Slots]:
    """The others, one probe at a time. They have hands of their own, so all of them together delay no healthy one."""
    return _slots(endpoint_ids, FAILING_SLOTS, when=lambda endpoint: not is_healthy(endpoint))


def _slots(
    endpoint_ids: Collection[UUID], most: int, *, when: Callable[[Endpoint], bool]
) -> dict[UUID, due.Slots]:
    endpoints = _HEALTH.ask(pk__in=list(endpoint_ids)) if endpoint_ids else []
    return {endpoint.pk: due.Slots(endpoint.workspace_id, most) for endpoint in endpoints if when(endpoint)}


_HEALTH: Final[Prepared[Endpoint]] = Prepared(
    lambda pk__in: Endpoint.everywhere.filter(pk__in=pk__in).only(
        "workspace_id", "failures", "status", "is_on", "deleted_at"
    )
)


# --- One attempt -----------------------------------------------------------------------------------------------------


def deliver(delivery: Delivery, *, now: datetime | None = None) -> None:
    """Work one claimed delivery; writes nothing where the lease is lost meanwhile."""
    crash_point("deliver.claimed")
    now = now or utc_now()
    try:
        if monotonic() - delivery.read_at > READ_LASTS_SECONDS:
            read([delivery])
        body = _body_to_send(delivery, delivery.endpoint)
        if body is None:
            return
        sent = send(delivery, body, now=now)
        crash_point("deliver.sent")
        if sent.is_success:
            _successes.add((delivery, sent))
        else:
            record(delivery, sent)
        crash_point("deliver.recorded")
    except states.Overtaken:
        # Another hand has the row, or a person changed it: theirs is the later word.
        log.warning("lease_lost", delivery=encode("dlv", delivery.pk))


def give_up(delivery: Delivery) -> None:
    """The end of a delivery whose hands died, time after time, before they could record anything."""
    if delivery.status == "held":
        states.move(delivery, "pending", under_lease=True)
    _end(delivery, "failed", "The service stopped again and again while sending this; send it again by hand.")


def _gather() -> float:
    """Where nobody else is at work, nobody is waited for."""
    in_hand = hands.in_hand("webhooks.deliver")
    if in_hand > SIDE_BY_SIDE:
        return GATHER_SECONDS_IN_A_RUSH
    return GATHER_SECONDS if in_hand > 1 else 0.0


_successes: Final[Together[Success]] = Together(record_successes, most=WRITTEN_AT_ONCE, gather=_gather)


def read(deliveries: Sequence[Delivery]) -> None:
    """Their endpoints and events as they are now, in one question."""
    now = monotonic()
    found = {row.pk: row for row in _ROWS.ask(pk__in=[one.pk for one in deliveries])}
    for delivery in deliveries:
        row = found.get(delivery.pk)
        if row is not None:
            delivery.endpoint, delivery.event = row.endpoint, row.event
            delivery.read_at = now


_ROWS: Final[Prepared[Delivery]] = Prepared(
    lambda pk__in: Delivery.everywhere.select_related("endpoint", "event").filter(pk__in=pk__in)
)


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
        if delivery.status == "pending":
            _end(delivery, "held", "The endpoint is switched off.")
        else:
            delivery.sleep_until(None, attempts=0)
        return None
    if delivery.status == "held":
        states.move(delivery, "pending", under_lease=True)
    return bytes(body)


def _end(delivery: Delivery, status: str, error: str) -> None:
    states.move(delivery, status, under_lease=True, wake_at=None, attempts=0, last_error=error)


def send(delivery: Delivery, body: bytes, *, now: datetime) -> Sent:
    """Hand the event over, once. Every answer and every failure of the network becomes a `Sent`."""
    endpoint = delivery.endpoint
    event_id = encode("evt", delivery.event_id)
    headers = {
        "content-type": "application/json",
        "user-agent": settings.USER_AGENT,
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signing.sign(signing.secrets_of(endpoint, now=now), event_id, now, body),
    }
    # The exchange may last long; meanwhile another hand can use the connection to the database.
    hands.release_connections()
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
            keep=True,
        )
    except OutboundError as error:
        return Sent(
            now,
            monotonic() - began,
            headers,
            error=_storable(str(error), ERROR_CHARACTERS),
            timed_out=isinstance(error, TimedOut),
            url=endpoint.url,
        )
    return Sent(
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
    hands.every_second(client.sweep)
    return client


def _complaint(status_code: int) -> str:
    if 200 <= status_code < 300:
        return ""
    if 300 <= status_code < 400:
        return f"The endpoint answered {status_code}; redirects are not followed, set the final address."
    if status_code == 410:
        return "The endpoint answered 410: it is gone, so it was switched off."
    return f"The endpoint answered {status_code}."


def _kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    kept = [name for name in headers if name.lower() not in HEADERS_LEFT_OUT][:HEADERS_KEPT]
    shown: dict[str, str] = logs.redacted(
        {_storable(name, HEADER_CHARACTERS): _storable(headers[name], HEADER_CHARACTERS) for name in kept}
    )
    return shown


def _storable(text: str, most: int | None = None) -> str:
    # PostgreSQL refuses NUL in text and in JSON, and this text is a stranger's.
    return text.replace("\x00", "\ufffd")[:most]
