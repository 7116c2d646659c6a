"""What people do with endpoints: add, change, rotate the secret, switch on and off, remove, test, send again."""

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
from webhooks import limits, signing, validation
from webhooks.models import Delivery, DeliveryStatus, Endpoint, EndpointStatus
from webhooks.results import is_open

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.models import Workspace

TEST_EVENT: Final = "webhook.test"


@dataclass(frozen=True)
class Added:
    """A new endpoint; `secret` is shown to a person once and never again, `test` is the delivery of its test event."""

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
) -> Added:
    """A new endpoint, on at once. Two may have the same address; `events` empty means the four default types.

    With `is_tried` the address is looked at first, which takes seconds at most, and a test event is sent to it. Raises
    `Invalid` for what an endpoint can't be.
    """
    chosen = list(dict.fromkeys(events))
    rate = limits.WEBHOOK_RATE if rate is None else rate
    validation.refuse_unless_usable(url, chosen, description, rate)
    if is_tried:
        validation.refuse_where_closed(url)
    secret = signing.make_secret()
    with transaction.atomic():
        endpoint: Endpoint = Endpoint.everywhere.create(
            workspace=workspace,
            url=url,
            events=chosen,
            test=test,
            description=description,
            rate=rate,
            secret=secret,
        )
        _note("endpoint.added", endpoint, actor, {"url": url, "events": chosen, "test": test, "rate": rate})
        sent = send_test(endpoint, actor=actor) if is_tried else None
    return Added(endpoint, secret, sent)


def change(
    endpoint: Endpoint,
    *,
    url: str,
    events: Iterable[str],
    description: str,
    rate: int | None = None,
    actor: str,
) -> Delivery | None:
    """Other events or another rate from the next one on, or another address, which gets a test event: its delivery is returned.

    What waits for the old address goes to the new one. The old one's failures don't count against it, but an endpoint
    that was disabled stays so until somebody switches it on. Raises `Invalid` for what an endpoint can't be, `Conflict`
    where it was removed.
    """
    chosen = list(dict.fromkeys(events))
    rate = endpoint.rate if rate is None else rate
    validation.refuse_unless_usable(url, chosen, description, rate)
    if url != endpoint.url:
        validation.refuse_where_closed(url)
    with transaction.atomic():
        locked = Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint.pk)
        _refuse_removed(locked)
        was = locked.url
        values: dict[str, Any] = {"url": url, "events": chosen, "description": description, "rate": rate}
        if url != was:
            values |= {"failures": 0, "failing_since": None}
        if url != was and locked.status == EndpointStatus.DEGRADED:
            states.move(locked, "active", **values)
        else:
            states.write_as(locked, locked.status, **values)
        _note("endpoint.changed", locked, actor, {"url": url, "was": was, "events": chosen, "rate": rate})
        return send_test(locked, actor=actor) if url != was and is_open(locked) else None


def rotate_secret(
    endpoint: Endpoint,
    overlap: timedelta = accounts_limits.TOKEN_OVERLAP_DEFAULT,
    *,
    actor: str,
    now: datetime | None = None,
) -> str:
    """A new secret; for `overlap` (0 to 7 days) the old one signs beside it. Returns the new one, for once.

    Raises `Invalid` for another overlap, `Conflict` where the endpoint was removed.
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
        locked = Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint.pk)
        _refuse_removed(locked)
        states.write_as(
            locked,
            locked.status,
            secret=secret,
            previous_secret=locked.secret if overlap else None,
            previous_secret_until=now + overlap if overlap else None,
        )
        _note("endpoint.secret_rotated", locked, actor, {"overlap_seconds": int(overlap.total_seconds())})
    return secret


def switch_off(endpoint: Endpoint, *, actor: str) -> None:
    """From now on its events are held; what is in flight ends as it ends. Raises `Conflict` where it was removed."""
    with transaction.atomic():
        locked = Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint.pk)
        _refuse_removed(locked)
        states.write_as(locked, locked.status, is_on=False)
        _note("endpoint.switched_off", locked, actor)


def switch_on(endpoint: Endpoint, *, actor: str, release: bool = True, now: datetime | None = None) -> int:
    """Send again; with `release` what was held meanwhile too, the oldest first. Returns how many that were.

    Raises `Conflict` where it was removed.
    """
    now = now or utc_now()
    released = 0
    with transaction.atomic():
        locked = Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint.pk)
        _refuse_removed(locked)
        fresh: dict[str, Any] = {"is_on": True, "failures": 0, "failing_since": None}
        if locked.status == EndpointStatus.ACTIVE:
            states.write_as(locked, "active", **fresh)
        else:
            states.move(locked, "active", **fresh)
        if release:
            # One statement for however many: each becomes pending when a task takes it.
            released = (
                Delivery.objects.of(locked.workspace_id)
                .held()
                .filter(endpoint=locked)
                .update(wake_at=F("created_at"), due_at=now, **work_queue.overtake())
            )
        _note("endpoint.switched_on", locked, actor, {"released": released})
        dispatcher.wake()
    return released


def remove(endpoint: Endpoint, *, actor: str, now: datetime | None = None) -> None:
    """The endpoint gets nothing more and its secrets are erased; its log stays. What waits for it fails.

    Raises `Conflict` where it was removed already.
    """
    now = now or utc_now()
    with transaction.atomic():
        locked = Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint.pk)
        _refuse_removed(locked)
        states.write_as(
            locked,
            locked.status,
            deleted_at=now,
            is_on=False,
            secret="",
            previous_secret=None,
            previous_secret_until=None,
        )
        # Woken, so that a task ends each of them visibly.
        Delivery.objects.of(locked.workspace_id).open().filter(endpoint=locked).update(
            wake_at=now, **work_queue.overtake()
        )
        _note("endpoint.removed", locked, actor)
        dispatcher.wake()


def resend(delivery: Delivery, *, actor: str, now: datetime | None = None) -> None:
    """Send it now, with a fresh schedule, whatever became of it before.

    Where an attempt is in flight at this moment, its outcome isn't recorded and the receiver may get it twice. Raises
    `Conflict` where the endpoint is off or removed, or the event's content is no longer kept.
    """
    now = now or utc_now()
    with transaction.atomic():
        # Locked before the delivery, as everywhere.
        endpoint = Endpoint.everywhere.select_for_update(no_key=True).get(pk=delivery.endpoint_id)
        _refuse_removed(endpoint)
        if not is_open(endpoint):
            raise Conflict.because(
                code="endpoint_is_off", message="Switch the endpoint on first; what it holds can go with it."
            )
        if not Event.everywhere.filter(pk=delivery.event_id, body__isnull=False).exists():
            days = limits.EVENT_PAYLOADS_KEPT.days
            raise Conflict.because(
                code="event_expired", message=f"The event's content was kept {days} days and is gone."
            )
        again = {"wake_at": now, "due_at": now, **work_queue.overtake()}
        if delivery.status == DeliveryStatus.PENDING:
            states.write_as(delivery, "pending", **again)
        else:
            states.move(delivery, "pending", **again)
        _note("delivery.resent", endpoint, actor, {"delivery": encode("dlv", delivery.pk)})
        dispatcher.wake()


def send_test(endpoint: Endpoint, *, actor: str, now: datetime | None = None) -> Delivery:
    """A `webhook.test` for this endpoint alone; it isn't in the feed of events and isn't counted.

    Raises `Conflict` where the endpoint is off or removed.
    """
    now = now or utc_now()
    event_id = uuid7()
    data = {"endpoint": encode("whe", endpoint.pk), "message": "This endpoint receives events."}
    with transaction.atomic():
        locked = Endpoint.everywhere.select_for_update(no_key=True).get(pk=endpoint.pk)
        _refuse_removed(locked)
        if not is_open(locked):
            raise Conflict.because(code="endpoint_is_off", message="Switch the endpoint on first.")
        event = Event.everywhere.create(
            id=event_id,
            workspace_id=locked.workspace_id,
            test=locked.test,
            type=TEST_EVENT,
            body=envelope(event_id, TEST_EVENT, locked.workspace_id, data, now),
            created_at=now,
            # Marked as done for both readers: it is nobody else's.
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
        _note("endpoint.tested", locked, actor)
        dispatcher.wake()
    return delivery


@dataclass(frozen=True)
class Disabled:
    """An endpoint that the service switched off; `is_gone` where it answered 410, else it failed for days."""

    host: str
    address: str
    is_gone: bool


def disabled(workspace_id: UUID) -> list[Disabled]:
    """The newest five that were switched off for what they answered; a person's own switch is no news."""
    rows = (
        Endpoint.objects.of(workspace_id)
        .filter(status=EndpointStatus.DISABLED, is_on=True, deleted_at=None)
        .order_by("-id")
        .annotate(is_gone=Exists(answered_410(OuterRef("pk"))))
        .only("url")
    )
    return [Disabled(urlsplit(row.url).hostname or row.url, row.address, row.is_gone) for row in rows[:5]]


def answered_410(endpoint: Any) -> QuerySet[Delivery]:
    """What is held because an endpoint, or one of a query, said that it is gone: the delivery that was told so."""
    found: QuerySet[Delivery] = Delivery.everywhere.held().filter(endpoint=endpoint, last_status=410)
    return found


def _refuse_removed(endpoint: Endpoint) -> None:
    if endpoint.deleted_at is not None:
        raise Conflict.because(code="endpoint_removed", message="This endpoint was removed; add a new one.")


def _note(action: str, endpoint: Endpoint, actor: str, details: dict[str, object] | None = None) -> None:
    audit.note(
        action,
        workspace=endpoint.workspace,
        actor=actor,
        subject=encode("whe", endpoint.pk),
        details=details or {},
    )
