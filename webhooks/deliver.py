"""One claimed delivery: what is sent, how the answer is judged, and what is written about it.

Claim, then POST without a transaction, then one transaction that writes the attempt, the delivery and the endpoint's
health under the lease. A hand that dies between the POST and that transaction leaves the row to the next one: the
event is delivered again, and recorded once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import notices
from config.ground import due, hands, limits, logs, states
from config.ground.crash import crash_point
from config.ground.ids import encode
from config.ground.moments import as_z
from config.ground.outbound import Client, OutboundError, Policy, TimedOut
from webhooks import signing
from webhooks.models import Delivery, DeliveryAttempt, Endpoint
from webhooks.states import OPEN_DELIVERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from uuid import UUID

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=60)
"""The whole exchange, then the longest that a busy database lets a write wait."""
FAILING_SLOTS: Final = 1
THROTTLED: Final = frozenset({429, 502, 504})
ERROR_CHARACTERS: Final = 300
HEADERS_KEPT: Final = 40
HEADER_CHARACTERS: Final = 500
# A cookie of the receiver's may be somebody's session.
HEADERS_LEFT_OUT: Final = frozenset({"set-cookie", "set-cookie2"})


@dataclass(frozen=True)
class Sent:
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


# --- Slots -----------------------------------------------------------------------------------------------------------


def slots_of_healthy(endpoint_ids: Collection[UUID]) -> dict[UUID, due.Slots]:
    """Endpoints whose last attempt succeeded, or that had none yet."""
    return _slots(endpoint_ids, limits.WEBHOOK_SLOTS, when=is_healthy)


def slots_of_failing(endpoint_ids: Collection[UUID]) -> dict[UUID, due.Slots]:
    """The others, one probe at a time. They have hands of their own, so all of them together delay no healthy one."""
    return _slots(endpoint_ids, FAILING_SLOTS, when=lambda endpoint: not is_healthy(endpoint))


def is_healthy(endpoint: Endpoint) -> bool:
    return endpoint.failures == 0 and endpoint.status == "active" and is_open(endpoint)


def is_open(endpoint: Endpoint) -> bool:
    return endpoint.is_on and endpoint.status != "disabled" and endpoint.deleted_at is None


def _slots(
    endpoint_ids: Collection[UUID], most: int, *, when: Callable[[Endpoint], bool]
) -> dict[UUID, due.Slots]:
    endpoints = Endpoint.everywhere.filter(pk__in=endpoint_ids).only(
        "workspace_id", "failures", "status", "is_on", "deleted_at"
    )
    return {endpoint.pk: due.Slots(endpoint.workspace_id, most) for endpoint in endpoints if when(endpoint)}


# --- One attempt -----------------------------------------------------------------------------------------------------


def deliver(delivery: Delivery, *, now: datetime | None = None) -> None:
    """Work one claimed delivery; writes nothing where the lease is lost meanwhile."""
    crash_point("deliver.claimed")
    now = now or timezone.now()
    try:
        body = _body_to_send(delivery, delivery.endpoint)
        if body is None:
            return
        sent = send(delivery, body, now=now)
        crash_point("deliver.sent")
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
    return Client(Policy(allow_loopback=allow_loopback, allow_private=allow_private, user_agent=user_agent))


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


# --- The schedule ----------------------------------------------------------------------------------------------------


def next_wait(tries: int, sent: Sent, *, chance: random.Random) -> timedelta | None:
    """How long to wait after `tries` failed attempts, counted from the attempt's end; None after the last."""
    if tries >= len(limits.WEBHOOK_SCHEDULE):
        return None
    wait = limits.WEBHOOK_SCHEDULE[tries]
    if sent.timed_out or sent.status_code in THROTTLED:
        wait = max(wait, limits.WEBHOOK_THROTTLED_WAIT)
    # Upwards only: a promise of at least so long is kept.
    wait *= 1 + chance.uniform(0, limits.WEBHOOK_JITTER)
    asked = read_retry_after(sent.response_headers.get("retry-after", ""), now=sent.ended_at)
    return max(wait, min(asked, limits.WEBHOOK_RETRY_AFTER_MOST))


def read_retry_after(value: str, *, now: datetime) -> timedelta:
    """Seconds or an HTTP date; whatever can't be read asks for nothing."""
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


def record(delivery: Delivery, sent: Sent, *, chance: random.Random = _chance) -> None:
    """Write the attempt, the delivery and the endpoint's health, all or nothing; `Overtaken` without the lease."""
    number = delivery.attempt_count + 1
    told: dict[str, Any] = {
        "attempts": 0,
        "attempt_count": number,
        "last_status": sent.status_code,
        "last_error": sent.error,
    }
    with transaction.atomic():
        # Locked before the delivery, here and everywhere, so that two writers can't wait for each other; two
        # attempts that end together would else count as one failure. Not the key: the dispatcher's inserts share it.
        endpoint = Endpoint.everywhere.select_for_update(no_key=True).get(pk=delivery.endpoint_id)
        note_health(endpoint, sent)
        next_at: datetime | None = None
        if sent.is_success:
            states.move(
                delivery, "delivered", under_lease=True, wake_at=None, delivered_at=sent.ended_at, **told
            )
        else:
            # A person's wish to send again sets `due_at` and begins the schedule anew.
            since = delivery.due_at or delivery.created_at
            tries = 1 + DeliveryAttempt.everywhere.filter(delivery=delivery, started_at__gte=since).count()
            wait = next_wait(tries, sent, chance=chance)
            if wait is None or endpoint.deleted_at is not None:
                states.move(delivery, "failed", under_lease=True, wake_at=None, **told)
            elif not is_open(endpoint):
                states.move(delivery, "held", under_lease=True, wake_at=None, **told)
            else:
                next_at = sent.ended_at + wait
                states.write_as(delivery, "pending", under_lease=True, wake_at=next_at, **told)
        DeliveryAttempt.everywhere.create(
            workspace_id=delivery.workspace_id,
            delivery=delivery,
            number=number,
            started_at=sent.started_at,
            duration_ms=round(sent.seconds * 1000),
            url=sent.url,
            request_headers=dict(sent.request_headers),
            status_code=sent.status_code,
            response_headers=dict(sent.response_headers),
            response_body=sent.response_body,
            error=sent.error,
            next_attempt_at=next_at,
        )
    log.info(
        "delivery_attempted",
        delivery=encode("dlv", delivery.pk),
        endpoint=encode("whe", delivery.endpoint_id),
        number=number,
        status_code=sent.status_code,
        error=sent.error,
        outcome=delivery.status,
        next_attempt_at=next_at and next_at.isoformat(),
    )


def note_health(endpoint: Endpoint, sent: Sent) -> None:
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
    if endpoint.status != "disabled" and (sent.status_code == 410 or is_worn_out):
        states.move(endpoint, "disabled", **counted)
        log.warning("endpoint_disabled", endpoint=encode("whe", endpoint.pk), failures=failures)
        _tell_people(endpoint, sent, now)
    elif endpoint.status == "active" and failures >= limits.WEBHOOK_DEGRADED_FAILURES:
        states.move(endpoint, "degraded", **counted)
        log.warning("endpoint_degraded", endpoint=encode("whe", endpoint.pk), failures=failures)
        _tell_people(endpoint, sent, now)
    else:
        states.write_as(endpoint, endpoint.status, **counted)


def _tell_people(endpoint: Endpoint, sent: Sent, now: datetime) -> None:
    words = {"host": urlsplit(endpoint.url).hostname or endpoint.url, "failures": endpoint.failures}
    if endpoint.status == "disabled":
        title = _("The webhook endpoint at %(host)s was switched off") % words
        text = _("Its events are held until you switch it on again.")
    else:
        title = _("The webhook endpoint at %(host)s fails") % words
        text = _("%(failures)d deliveries in a row failed; they are tried again with longer waits.") % words
    notices.record(
        "webhook",
        workspace_id=endpoint.workspace_id,
        key=f"{endpoint.pk.hex}:{endpoint.status}:{as_z(endpoint.failing_since or now)}",
        title=title,
        text=f"{sent.error}\n{text}",
        path="settings/webhooks",
        now=now,
    )


def _note_success(endpoint: Endpoint, now: datetime) -> None:
    well: dict[str, Any] = {"failures": 0, "failing_since": None, "last_success_at": now}
    if endpoint.status == "degraded":
        states.move(endpoint, "active", **well)
    else:
        # A disabled one stays so: only a person switches it on again.
        states.write_as(endpoint, endpoint.status, **well)
