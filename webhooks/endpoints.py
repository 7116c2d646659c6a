"""Adds, changes, switches, tests and removes endpoints, rotates their secrets, and sends deliveries again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import Exists, F, OuterRef

from accounts import audit
from accounts import limits as accounts_limits
from config.core import dispatcher, states, work_queue
from config.core.clock import utc_now
from config.core.errors import Conflict, Invalid
from config.core.ids import encode, uuid7
from pipeline.events import envelope
from pipeline.models import Event
from webhooks import endpoint_validation, limits, signing
from webhooks.models import Delivery, DeliveryStatus, Endpoint, EndpointStatus, Recovery, RecoveryStatus
from webhooks.results import is_open, lock_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.models import Workspace

TEST_EVENT: Final = "webhook.test"


@dataclass(frozen=True)
class AddedEndpoint:
    """A new endpoint. `secret` is shown once and never again; `test` is the delivery of its test event."""

    endpoint: Endpoint
    secret: str
    test: Delivery | None = None


def add(
    workspace: Workspace,
    url: str,
    *,
    events: Iterable[str] = (),
    test: bool = False,
    description: str = "",
    rate: int | None = None,
    is_tried: bool = False,
    actor: str,
) -> AddedEndpoint:
    """Create an endpoint, which is switched on.

    Several may have the same address; no `events` means the default types. With `is_tried` the address is
    connected to first, within `CONNECT_SECONDS`, and gets a test event. Raises `Invalid` for bad values and, with
    `is_tried`, for an address that no call may reach.
    """
    event_types = list(dict.fromkeys(events))
    rate = limits.WEBHOOK_RATE if rate is None else rate
    endpoint_validation.validate_endpoint(url, event_types, description, rate)
    if is_tried:
        endpoint_validation.connect_and_validate_address(url)
    secret = signing.make_secret()
    with transaction.atomic():
        endpoint: Endpoint = Endpoint.everywhere.create(
            workspace=workspace,
            url=url,
            events=event_types,
            test=test,
            description=description,
            rate=rate,
            secret=secret,
        )
        _audit(
            "endpoint.added", endpoint, actor, {"url": url, "events": event_types, "test": test, "rate": rate}
        )
        test_delivery = send_test(endpoint, actor=actor) if is_tried else None
    return AddedEndpoint(endpoint, secret, test_delivery)


def change(
    endpoint: Endpoint,
    *,
    url: str,
    events: Iterable[str],
    description: str,
    rate: int | None = None,
    actor: str,
) -> Delivery | None:
    """Change an endpoint's events, rate or address from the next event on.

    A new address is connected to first, and gets the deliveries that wait for the old one. If the endpoint is
    open it also gets a test event, whose delivery is returned; else the result is `None`. The old address's
    failures don't count against it, but an endpoint that was disabled stays so until somebody switches it on.
    Raises `Invalid` for bad values and an address that no call may reach, `Conflict` if the endpoint was removed.
    """
    event_types = list(dict.fromkeys(events))
    rate = endpoint.rate if rate is None else rate
    endpoint_validation.validate_endpoint(url, event_types, description, rate)
    if url != endpoint.url:
        endpoint_validation.connect_and_validate_address(url)
    with transaction.atomic():
        locked = lock_endpoint(endpoint.pk)
        old_url = locked.url
        values: dict[str, Any] = {"url": url, "events": event_types, "description": description, "rate": rate}
        if url != old_url:
            values |= {"failures": 0, "failing_since": None}
        if url != old_url and locked.status == EndpointStatus.DEGRADED:
            states.move(locked, "active", **values)
        else:
            states.write_as(locked, locked.status, **values)
        _audit(
            "endpoint.changed",
            locked,
            actor,
            {"url": url, "was": old_url, "events": event_types, "rate": rate},
        )
        return send_test(locked, actor=actor) if url != old_url and is_open(locked) else None


def rotate_secret(
    endpoint: Endpoint,
    overlap: timedelta = accounts_limits.TOKEN_OVERLAP_DEFAULT,
    *,
    actor: str,
    now: datetime | None = None,
) -> str:
    """Create and return a new secret; for `overlap` (0 to 7 days) the old one signs too.

    Raises `Invalid` for another overlap, `Conflict` if the endpoint was removed.
    """
    if not timedelta(0) <= overlap <= accounts_limits.TOKEN_OVERLAP_MOST:
        days = accounts_limits.TOKEN_OVERLAP_MOST.days
        raise Invalid.one(
            field="overlap", code="out_of_range", message=f"Choose an overlap from 0 to {days} days."
        )
    now = now or utc_now()
    secret = signing.make_secret()
    with transaction.atomic():
        # Two rotations at once must not both keep the same old secret and lose one of the new ones.
        locked = lock_endpoint(endpoint.pk)
        states.write_as(
            locked,
            locked.status,
            secret=secret,
            previous_secret=locked.secret if overlap else None,
            previous_secret_until=now + overlap if overlap else None,
        )
        _audit("endpoint.secret_rotated", locked, actor, {"overlap_seconds": int(overlap.total_seconds())})
    return secret


def switch_off(endpoint: Endpoint, *, actor: str) -> None:
    """Hold the endpoint's events; attempts in flight still end. Raises `Conflict` if it was removed."""
    with transaction.atomic():
        locked = lock_endpoint(endpoint.pk)
        states.write_as(locked, locked.status, is_on=False)
        _audit("endpoint.switched_off", locked, actor)


def switch_on(endpoint: Endpoint, *, actor: str, release: bool = True, now: datetime | None = None) -> int:
    """Send events again, with `release` also the held ones, oldest first; return how many of those there are.

    A running recovery goes on. Raises `Conflict` if the endpoint was removed.
    """
    now = now or utc_now()
    released = 0
    with transaction.atomic():
        locked = lock_endpoint(endpoint.pk)
        values: dict[str, Any] = {"is_on": True, "failures": 0, "failing_since": None}
        if locked.status == EndpointStatus.ACTIVE:
            states.write_as(locked, "active", **values)
        else:
            states.move(locked, "active", **values)
        if release:
            # One statement for any number: each becomes pending when a task takes it.
            released = (
                Delivery.objects.of(locked.workspace_id)
                .held()
                .filter(endpoint=locked)
                .update(wake_at=F("created_at"), due_at=now, **work_queue.overtake())
            )
        _wake_recovery(locked)
        _audit("endpoint.switched_on", locked, actor, {"released": released})
        dispatcher.wake()
    return released


def remove(endpoint: Endpoint, *, actor: str, now: datetime | None = None) -> None:
    """Mark the endpoint as deleted and erase its secrets; its log stays, and open deliveries fail soon.

    Raises `Conflict` if the endpoint was removed already.
    """
    now = now or utc_now()
    with transaction.atomic():
        locked = lock_endpoint(endpoint.pk)
        states.write_as(
            locked,
            locked.status,
            deleted_at=now,
            is_on=False,
            secret="",
            previous_secret=None,
            previous_secret_until=None,
        )
        # They are woken, so that a task ends each of them in the log.
        Delivery.objects.of(locked.workspace_id).open().filter(endpoint=locked).update(
            wake_at=now, **work_queue.overtake()
        )
        _wake_recovery(locked)
        _audit("endpoint.removed", locked, actor)
        dispatcher.wake()


def resend(delivery: Delivery, *, actor: str, now: datetime | None = None) -> None:
    """Queue a delivery for now, with a fresh schedule, whatever its status.

    If an attempt is in flight at this moment, its outcome isn't recorded and the receiver may get the event
    twice. Raises `Conflict` if the endpoint is off or removed, or the event's content is no longer kept.
    """
    now = now or utc_now()
    with transaction.atomic():
        # The endpoint is locked before the delivery, as everywhere, so that two writers can't deadlock.
        endpoint = lock_endpoint(delivery.endpoint_id)
        if not is_open(endpoint):
            raise Conflict.because(
                code="endpoint_is_off",
                message="Switch the endpoint on first. Its held events can be sent with it.",
            )
        if not Event.everywhere.filter(pk=delivery.event_id, body__isnull=False).exists():
            days = limits.EVENT_PAYLOADS_KEPT.days
            raise Conflict.because(
                code="event_expired", message=f"The event's content was kept {days} days and is gone."
            )
        values = {"wake_at": now, "due_at": now, **work_queue.overtake()}
        if delivery.status == DeliveryStatus.PENDING:
            states.write_as(delivery, "pending", **values)
        else:
            states.move(delivery, "pending", **values)
        _audit("delivery.resent", endpoint, actor, {"delivery": encode("dlv", delivery.pk)})
        dispatcher.wake()


def send_test(endpoint: Endpoint, *, actor: str, now: datetime | None = None) -> Delivery:
    """Queue a `webhook.test` for this endpoint only; it isn't in the feed of events and isn't counted.

    Raises `Conflict` if the endpoint is off or removed.
    """
    now = now or utc_now()
    event_id = uuid7()
    data = {"endpoint": encode("whe", endpoint.pk), "message": "This endpoint receives events."}
    with transaction.atomic():
        locked = lock_endpoint(endpoint.pk)
        if not is_open(locked):
            raise Conflict.because(code="endpoint_is_off", message="Switch the endpoint on first.")
        event = Event.everywhere.create(
            id=event_id,
            workspace_id=locked.workspace_id,
            test=locked.test,
            type=TEST_EVENT,
            body=envelope(event_id, TEST_EVENT, locked.workspace_id, data, now),
            created_at=now,
            # Marked as read by the dispatcher and the analytics: the event is for this endpoint only.
            dispatched_at=now,
            counted_at=now,
        )
        delivery: Delivery = Delivery.everywhere.create(
            workspace_id=locked.workspace_id,
            endpoint=locked,
            event=event,
            due_at=now,
            wake_at=now,
            created_at=now,
        )
        _audit("endpoint.tested", locked, actor)
        dispatcher.wake()
    return delivery


@dataclass(frozen=True)
class DisabledEndpoint:
    """An endpoint that the service switched off; `is_gone` if it answered 410, else it failed for days."""

    host: str
    address: str
    """The host and path, as people see them."""
    is_gone: bool


def find_disabled(workspace_id: UUID) -> list[DisabledEndpoint]:
    """Return the newest five endpoints that the service, not a person, switched off."""
    rows = (
        Endpoint.objects.of(workspace_id)
        .filter(status=EndpointStatus.DISABLED, is_on=True, deleted_at=None)
        .order_by("-id")
        .annotate(is_gone=Exists(answered_410(OuterRef("pk"))))
        .only("url")
    )
    return [
        DisabledEndpoint(urlsplit(row.url).hostname or row.url, row.address, row.is_gone) for row in rows[:5]
    ]


def answered_410(endpoint: Any) -> QuerySet[Delivery]:
    """Return the held deliveries that an endpoint, or one of an outer query, answered with 410."""
    deliveries: QuerySet[Delivery] = Delivery.everywhere.held().filter(endpoint=endpoint, last_status=410)
    return deliveries


def _wake_recovery(endpoint: Endpoint) -> None:
    """Wake the endpoint's running recovery, if any, which sleeps while the endpoint is off."""
    running = Recovery.objects.of(endpoint.workspace_id).filter(
        endpoint=endpoint, status=RecoveryStatus.RUNNING
    )
    running.update(wake_at=work_queue.database_now(), **work_queue.overtake())


def _audit(action: str, endpoint: Endpoint, actor: str, details: dict[str, object] | None = None) -> None:
    audit.note(
        action,
        workspace=endpoint.workspace,
        actor=actor,
        subject=encode("whe", endpoint.pk),
        details=details or {},
    )
