"""Writes events to the outbox in the transaction of the change that they report, and hands them to readers.

The readers are jobs of other apps: `webhooks/tasks.py` fans events out, `analytics/tasks.py` counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction

from config.core import dispatcher
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.bulk_update import update_each
from config.core.database.insert import insert
from config.core.datetimes import format_utc
from config.core.ids import encode, uuid7
from config.core.json_encoding import dump
from config.core.middleware import request_id
from pipeline.limits import EVENT_BYTES
from pipeline.models import Event, EventPosition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

TYPES: Final[Mapping[str, bool]] = {
    "raw.ingested": True,
    "generated.ready": True,
    "published.success": True,
    "published.failed": True,
    "raw.failed": False,
    "raw.skipped": False,
    "generated.failed": False,
    "engine.skipped": False,
    "source.failing": False,
    "outlet.needs_reconnect": False,
    "published.overdue": False,
}
"""Every type of event; the value is `True` if endpoints get it by default."""

LONG_FIELDS: Final = ("body", "content", "claims", "checks", "metadata", "provenance", "overrides")
"""The fields left out of a body that is too large, in this order; then the longest ones are left out."""
KEPT_FIELDS: Final = frozenset({"id", "status", "version", "test", "code", "truncated"})
"""The fields that are never left out."""


_served_workspaces: Final[set[UUID]] = set()
"""The workspaces whose events this process has dispatched in the present round; see `_next_to_dispatch`."""


class OutsideTransaction(RuntimeError):
    """Raised when an event is recorded without its change: a programming error."""


def record(event_type: str, *, workspace_id: UUID, **facts: Any) -> Event:
    """Write an event as `compose` makes it, in the transaction of its change.

    Raises `OutsideTransaction` if there is no transaction, and `LookupError` if the type is unknown.
    """
    event = compose(event_type, workspace_id=workspace_id, **facts)
    write([event])
    return event


def write(new_events: Sequence[Event]) -> None:
    """Write composed events with one statement, in the transaction of their changes.

    Raises `OutsideTransaction` if there is no transaction.
    """
    if not connection.in_atomic_block:
        message = f"{', '.join(sorted({event.type for event in new_events}))} must be recorded in the transaction of its change."
        raise OutsideTransaction(message)
    if not new_events:
        return
    insert(new_events)
    dispatcher.wake()


def compose(
    event_type: str,
    *,
    workspace_id: UUID,
    test: bool,
    data: Mapping[str, Any],
    now: datetime | None = None,
    raw_item_id: UUID | None = None,
    generated_item_id: UUID | None = None,
    publication_id: UUID | None = None,
    source_id: UUID | None = None,
    will_retry: bool | None = None,
    request: str = "",
) -> Event:
    """Return an event that isn't written yet.

    `data` is the content of the event's envelope; the bytes that will be signed are made here, once.
    `request` is the id of the request that caused the event, by default the present one. Raises `LookupError`
    if the type is unknown.
    """
    if event_type not in TYPES:
        raise LookupError(event_type)
    now = now or utc_now()
    event_id = uuid7()
    return Event(
        id=event_id,
        workspace_id=workspace_id,
        test=test,
        type=event_type,
        body=envelope(event_id, event_type, workspace_id, data, now),
        raw_item_id=raw_item_id,
        generated_item_id=generated_item_id,
        publication_id=publication_id,
        source_id=source_id,
        will_retry=will_retry,
        request_id=request or request_id(),
        created_at=now,
    )


def envelope(
    event_id: UUID, event_type: str, workspace_id: UUID, data: Mapping[str, Any], now: datetime
) -> bytes:
    """Return the exact bytes of an event.

    If there would be more than `EVENT_BYTES`, long fields are left out and named in `truncated`.
    """
    content: dict[str, Any] = {
        "id": encode("evt", event_id),
        "type": event_type,
        "timestamp": format_utc(now),
        "workspace": encode("ws", workspace_id),
        "data": dict(data),
    }
    body = dump(content)
    for field in LONG_FIELDS:
        if len(body) <= EVENT_BYTES:
            return body
        content["data"] = {
            name: _without_field(resource, field) for name, resource in content["data"].items()
        }
        body = dump(content)
    while len(body) > EVENT_BYTES:
        name, field = _longest_field(content["data"])
        content["data"] = {**content["data"], name: _without_field(content["data"][name], field)}
        body = dump(content)
    return body


def _without_field(resource: Any, field: str) -> Any:
    """Return the resource without the field, and with its name in `truncated`."""
    if not isinstance(resource, dict) or field not in resource:
        return resource
    remaining = {key: value for key, value in resource.items() if key != field}
    return {**remaining, "truncated": [*resource.get("truncated", ()), field]}


def _longest_field(data: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of the resource and of its field that take most space, except `KEPT_FIELDS`."""
    sizes = {
        (name, field): len(dump(value))
        for name, resource in data.items()
        if isinstance(resource, dict)
        for field, value in resource.items()
        if field not in KEPT_FIELDS
    }
    return max(sizes, key=lambda key: sizes[key])


def dispatch_batch(
    write_deliveries: Callable[[Sequence[Event]], None], *, limit: int = 50, now: datetime | None = None
) -> int:
    """Give the next events their positions and pass them to `write_deliveries`, in one transaction.

    Returns their number. If another dispatcher took all of them, it returns 1 if more events wait, so that the
    caller tries again. A workspace's position row is the lock, so that two dispatchers can't give the same
    position. Only committed events get one, so that a reader by position never finds a gap filled later.
    """
    waiting = _next_to_dispatch(limit)
    if not waiting:
        return 0
    with transaction.atomic():
        positions = _locked_positions(sorted(set(waiting.values())))
        # The bodies aren't read here, because the sender of each event reads them.
        undispatched = Event.everywhere.filter(pk__in=list(waiting), dispatched_at__isnull=True).defer("body")
        events = list(undispatched.order_by("id"))
        crash_point("fan_out.claimed")
        if not events:
            # Another dispatcher held the locks and dispatched these events; others may wait.
            return 1 if _undispatched().exists() else 0
        now = now or utc_now()
        for event in events:
            positions[event.workspace_id] += 1
            event.position = positions[event.workspace_id]
            event.dispatched_at = now
        _write_positions(events)
        new_positions = {event.workspace_id: positions[event.workspace_id] for event in events}
        update_each(
            EventPosition,
            [
                ({"workspace_id": workspace_id}, {"last": position})
                for workspace_id, position in new_positions.items()
            ],
        )
        write_deliveries(events)
        crash_point("fan_out.written")
    return len(events)


def _locked_positions(workspace_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Lock each workspace's position row and return its last position.

    A missing row is created. The rows are locked in one order, so that two dispatchers can't deadlock.
    """

    def lock(ids: Sequence[UUID]) -> dict[UUID, int]:
        rows = EventPosition.everywhere.select_for_update().filter(workspace_id__in=ids)
        return dict(rows.order_by("workspace_id").values_list("workspace_id", "last"))

    positions = lock(workspace_ids)
    new = [workspace_id for workspace_id in workspace_ids if workspace_id not in positions]
    if new:
        for workspace_id in new:
            EventPosition.everywhere.get_or_create(workspace_id=workspace_id)
        positions |= lock(new)
    return positions


def _write_positions(events: Sequence[Event]) -> None:
    update_each(
        Event,
        [
            ({"id": event.pk}, {"position": event.position, "dispatched_at": event.dispatched_at})
            for event in events
        ],
    )


NOT_DISPATCHED: Final = "SELECT 1 FROM event WHERE dispatched_at IS NULL ORDER BY id"
NOT_COUNTED: Final = "SELECT 1 FROM event WHERE counted_at IS NULL ORDER BY id"
"""Statements that find a row if there is an event to dispatch, or to count."""


def _undispatched() -> QuerySet[Event]:
    undispatched: QuerySet[Event] = Event.everywhere.filter(dispatched_at__isnull=True)
    return undispatched


def _next_to_dispatch(limit: int) -> dict[UUID, UUID]:
    """Return the ids of the next events, at most `limit`, each with the id of its workspace.

    Workspaces that were served in this round wait until no others have events. Otherwise a single event of
    one workspace would wait for all earlier events of another.
    """
    # Only the index of undispatched events provides this order.
    waiting = _undispatched().order_by("id").values_list("id", "workspace_id")
    workspaces_by_event = dict(waiting.exclude(workspace_id__in=list(_served_workspaces))[:limit])
    if not workspaces_by_event and _served_workspaces:
        _served_workspaces.clear()
        workspaces_by_event = dict(waiting[:limit])
    _served_workspaces.update(workspaces_by_event.values())
    return workspaces_by_event


def count_batch(
    write: Callable[[Sequence[Event]], None], *, limit: int = 200, now: datetime | None = None
) -> int:
    """Mark the next uncounted events, and pass the `published.…` ones to `write`, in one transaction.

    Returns the number of marked events; events that another counter has locked are left to it.
    """
    with transaction.atomic():
        waiting: QuerySet[Event] = Event.everywhere.filter(counted_at__isnull=True).order_by("id")
        if connection.vendor == "postgresql":
            # Two counters take different rows instead of waiting for each other.
            waiting = waiting.select_for_update(skip_locked=True)
        events = list(waiting[:limit])
        if not events:
            return 0
        crash_point("count.claimed")
        write([event for event in events if event.type.startswith("published.")])
        Event.everywhere.filter(pk__in=[event.pk for event in events]).update(counted_at=now or utc_now())
        crash_point("count.written")
    return len(events)
