"""The outbox: facts written beside the change, and handed to their readers without gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction

from config.core import dispatcher
from config.core.api.jsonio import dump
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.bulk_update import update_each
from config.core.database.insert import insert
from config.core.datetimes import as_z
from config.core.ids import encode, uuid7
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
"""Every type, and whether an endpoint gets it without asking."""

LONG_FIELDS: Final = ("body", "content", "claims", "checks", "metadata", "provenance", "overrides")
"""What gives way to the id when a body would be too large, in this order; then whatever is longest."""
KEPT_FIELDS: Final = frozenset({"id", "status", "version", "test", "code", "truncated"})


_had_their_turn: Final[set[UUID]] = set()
"""Workspaces that this process has dispatched for since the last round began."""


class OutsideTransaction(RuntimeError):
    """A fact without its change: our own bug."""


def record(event_type: str, *, workspace_id: UUID, **facts: Any) -> Event:
    """Write the fact in the transaction of the change, as `compose` makes it; refuses outside one."""
    event = compose(event_type, workspace_id=workspace_id, **facts)
    write([event])
    return event


def write(made: Sequence[Event]) -> None:
    """Write facts that were composed, in the transaction of their changes and with one statement; refuses outside one."""
    if not connection.in_atomic_block:
        message = f"{', '.join(sorted({one.type for one in made}))} must be recorded in the transaction of its change."
        raise OutsideTransaction(message)
    if not made:
        return
    insert(made)
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
    """A fact that isn't written yet.

    `data` is what the event's envelope holds; the bytes that will be signed are made here, once. `request` is the id
    of the request that caused it, by default the one that this thread is busy with.
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
    """The exact bytes of an event; long text gives way to the object's id, named in `truncated`."""
    outer: dict[str, Any] = {
        "id": encode("evt", event_id),
        "type": event_type,
        "timestamp": as_z(now),
        "workspace": encode("ws", workspace_id),
        "data": dict(data),
    }
    body = dump(outer)
    for field in LONG_FIELDS:
        if len(body) <= EVENT_BYTES:
            return body
        outer["data"] = {name: _without(thing, field) for name, thing in outer["data"].items()}
        body = dump(outer)
    while len(body) > EVENT_BYTES:
        name, field = _longest(outer["data"])
        outer["data"] = {**outer["data"], name: _without(outer["data"][name], field)}
        body = dump(outer)
    return body


def _without(thing: Any, field: str) -> Any:
    if not isinstance(thing, dict) or field not in thing:
        return thing
    left = {key: value for key, value in thing.items() if key != field}
    return {**left, "truncated": [*thing.get("truncated", ()), field]}


def _longest(data: Mapping[str, Any]) -> tuple[str, str]:
    """The object and the field of it that take most: where many small things are too long together."""
    sizes = {
        (name, field): len(dump(value))
        for name, thing in data.items()
        if isinstance(thing, dict)
        for field, value in thing.items()
        if field not in KEPT_FIELDS
    }
    return max(sizes, key=lambda place: sizes[place])


def dispatch_batch(
    write_deliveries: Callable[[Sequence[Event]], None], *, limit: int = 50, now: datetime | None = None
) -> int:
    """Give the next events their places in their workspaces and hand them on, in one transaction; returns how many.

    A workspace's position row is the lock: two dispatchers can't give the same place, and a place is given only
    to what is committed, so that a reader by position never finds a gap filled later.
    """
    waiting = _next_to_dispatch(limit)
    if not waiting:
        return 0
    with transaction.atomic():
        last = _locked_positions(sorted(set(waiting.values())))
        # Without the bodies: whoever sends an event reads its own.
        found = Event.everywhere.filter(pk__in=list(waiting), dispatched_at__isnull=True).defer("body")
        events = list(found.order_by("id"))
        crash_point("fan_out.claimed")
        if not events:
            # Another dispatcher held the locks and did them; there may be more.
            return 1 if _undispatched().exists() else 0
        now = now or utc_now()
        for event in events:
            last[event.workspace_id] += 1
            event.position = last[event.workspace_id]
            event.dispatched_at = now
        _write_places(events)
        moved = {event.workspace_id: last[event.workspace_id] for event in events}
        update_each(
            EventPosition, [({"workspace_id": owner}, {"last": place}) for owner, place in moved.items()]
        )
        write_deliveries(events)
        crash_point("fan_out.written")
    return len(events)


def _locked_positions(workspace_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The last place that each workspace has given; locked in one order, so that two dispatchers can't block each other."""

    def lock(ids: Sequence[UUID]) -> dict[UUID, int]:
        rows = EventPosition.everywhere.select_for_update().filter(workspace_id__in=ids)
        return dict(rows.order_by("workspace_id").values_list("workspace_id", "last"))

    found = lock(workspace_ids)
    new = [workspace_id for workspace_id in workspace_ids if workspace_id not in found]
    if new:
        for workspace_id in new:
            EventPosition.everywhere.get_or_create(workspace_id=workspace_id)
        found |= lock(new)
    return found


def _write_places(events: Sequence[Event]) -> None:
    update_each(
        Event,
        [
            ({"id": event.pk}, {"position": event.position, "dispatched_at": event.dispatched_at})
            for event in events
        ],
    )


NOT_DISPATCHED: Final = "SELECT 1 FROM event WHERE dispatched_at IS NULL ORDER BY id"
NOT_COUNTED: Final = "SELECT 1 FROM event WHERE counted_at IS NULL ORDER BY id"
"""Each finds a row where there is an event to dispatch, or to count."""


def _undispatched() -> QuerySet[Event]:
    waiting: QuerySet[Event] = Event.everywhere.filter(dispatched_at__isnull=True)
    return waiting


def _next_to_dispatch(limit: int) -> dict[UUID, UUID]:
    """The next events, each with its workspace.

    The workspaces take turns, or one's single event would wait for all that another had before it.
    """
    # By the order of ids, which only the index of what waits can give.
    waiting = _undispatched().order_by("id").values_list("id", "workspace_id")
    found = dict(waiting.exclude(workspace_id__in=list(_had_their_turn))[:limit])
    if not found and _had_their_turn:
        _had_their_turn.clear()
        found = dict(waiting[:limit])
    _had_their_turn.update(found.values())
    return found


def count_batch(
    write: Callable[[Sequence[Event]], None], *, limit: int = 200, now: datetime | None = None
) -> int:
    """Hand the next uncounted events to the counter and mark them, in one transaction; returns how many."""
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
