"""Creates, changes and deletes queues, and assigns them to outlets."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts import audit
from config.core import dispatcher, states, work_queue
from config.core.clock import utc_now
from config.core.errors import Conflict, Detail, Invalid
from config.core.ids import encode
from pipeline.models import Outlet, OverlapChoice, Publication, PublishQueue, SlotGapChoice
from pipeline.text.local_time import UnknownZone, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace

MAX_SLOTS_PER_WEEK: Final = 7 * 24
MAX_QUEUES: Final = 50
MAX_NAME_CHARACTERS: Final = 120
MAX_BLACKOUTS: Final = 50
MAX_REASON_CHARACTERS: Final = 120
"""The number of characters to which a blackout's reason is cut."""
BLACKOUTS_BETWEEN: Final = (datetime(2000, 1, 1), datetime(2101, 1, 1))  # noqa: DTZ001  times on a clock
WEEKDAYS: Final = range(7)
"""The days of a week, from Monday as 0."""
_TIME: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)


def create(workspace: Workspace, values: Mapping[str, Any], *, by: str) -> PublishQueue:
    """Create a queue. Raises `Invalid` if a value isn't valid, and `Conflict` if the workspace has too many.

    `values` are name, timezone, slots, blackouts, on_gap, on_overlap, and outlets: the ids of those that use
    it. Ids of outlets that don't exist in the workspace are dropped.
    """
    clean = _validate(workspace, values)
    outlets = clean.pop("outlets", [])
    with transaction.atomic():
        if PublishQueue.objects.of(workspace).count() >= MAX_QUEUES:
            message = _("A workspace has %(most)d queues at most.") % {"most": MAX_QUEUES}
            raise Conflict.because(code="too_many", message=message)
        queue: PublishQueue = PublishQueue.everywhere.create(workspace=workspace, **clean)
        _assign_outlets(queue, outlets)
        _audit("queue.created", queue, by)
    return queue


def change(
    queue: PublishQueue, values: Mapping[str, Any], *, by: str, expected_version: int | None = None
) -> PublishQueue:
    """Change the queue; what is scheduled keeps its times, and only later scheduling uses the new slots.

    A queue that is resumed has its due publications woken. Ids of outlets that don't exist are dropped. Raises
    `Invalid` if a value isn't valid, and `states.Overtaken` if the queue isn't the expected version.
    """
    clean = _validate(queue.workspace, values)
    outlets = clean.pop("outlets", None)
    with transaction.atomic():
        # Two changes take turns, so that the later one sees the other's version.
        row = PublishQueue.everywhere.select_for_update(no_key=True).get(pk=queue.pk)
        states.refuse_other_version(row.version, expected_version)
        _audit("queue.changed", row, by, {"changed": sorted(values)})
        PublishQueue.everywhere.filter(pk=queue.pk).update(
            **clean, version=F("version") + 1, updated_at=utc_now()
        )
        if outlets is not None:
            _assign_outlets(queue, outlets)
        if clean.get("is_paused") is False:
            _wake_due(queue)
    queue.refresh_from_db()
    return queue


def delete(queue: PublishQueue, *, by: str) -> None:
    """Delete the queue: its outlets use the default queue, and what it scheduled stays scheduled.

    Its due publications, which waited if the queue was paused, are woken. Raises `Conflict` for the default
    queue.
    """
    if queue.is_default:
        message = _("The default queue stays: outlets without one of their own use it.")
        raise Conflict.because(code="default_queue", message=message)
    with transaction.atomic():
        PublishQueue.everywhere.filter(pk=queue.pk).update(is_paused=False)
        _wake_due(queue)
        _audit("queue.deleted", queue, by, {"slots": queue.slots, "timezone": queue.timezone})
        queue.delete()


def _audit(action: str, queue: PublishQueue, by: str, details: Mapping[str, Any] | None = None) -> None:
    audit.note(
        action,
        workspace=queue.workspace,
        actor=by,
        subject=encode("que", queue.pk),
        details={"name": queue.name, **(details or {})},
    )


def _assign_outlets(queue: PublishQueue, outlets: Iterable[UUID]) -> None:
    """Make exactly these outlets use the queue.

    None is assigned to the default queue, because outlets without a queue use it.
    """
    rows = Outlet.everywhere.filter(workspace_id=queue.workspace_id)
    rows.filter(queue=queue).exclude(pk__in=outlets).update(queue=None)
    if not queue.is_default:
        rows.filter(pk__in=outlets).exclude(queue=queue).update(queue=queue)


def _wake_due(queue: PublishQueue) -> None:
    """Wake the queue's due publications, except those that a task holds or has tried already."""
    now = utc_now()
    rows = Publication.everywhere.scheduled().filter(queue=queue, due_at__lte=now, attempts=0)
    ids = list(rows.select_for_update(skip_locked=True).order_by("pk").values_list("pk", flat=True))
    Publication.everywhere.filter(pk__in=ids, wake_at__gt=now).update(wake_at=now, **work_queue.overtake())
    dispatcher.wake()


def _validate(workspace: Workspace, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normalized values, without outlets that don't exist. Raises `Invalid` if one isn't valid."""
    clean = dict(values)
    if "outlets" in clean:
        existing = Outlet.objects.of(workspace).filter(pk__in=clean["outlets"], deleted_at=None)
        clean["outlets"] = list(existing.values_list("pk", flat=True))
    problems = list(_normalize(clean))
    if problems:
        raise Invalid(*problems)
    return clean


def _normalize(clean: dict[str, Any]) -> Iterator[Detail]:
    """Normalize the values in place, and yield what is wrong with them.

    Raises `Invalid` if a blackout or slot isn't valid.
    """
    if "name" in clean:
        clean["name"] = str(clean["name"]).strip()
        if not 0 < len(clean["name"]) <= MAX_NAME_CHARACTERS:
            yield Detail("name", "required", _("Give it a name of up to 120 characters."))
    if "blackouts" in clean:
        clean["blackouts"] = _sorted_blackouts(clean["blackouts"])
    yield from problems_of_slots(clean)


def _sorted_blackouts(blackouts: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the blackouts in order of time.

    Raises `Invalid` if there are too many, or one isn't a period of time within `BLACKOUTS_BETWEEN`.
    """
    if len(blackouts) > MAX_BLACKOUTS:
        message = _("A queue has %(most)d stretches without slots at most.") % {"most": MAX_BLACKOUTS}
        raise Invalid.one("blackouts", "too_many", message)
    cleaned = []
    for blackout in blackouts:
        start, end = (_parse_local_time(blackout[name]) for name in ("from", "until"))
        if end <= start:
            raise Invalid.one("blackouts", "invalid", _("A stretch without slots ends after it begins."))
        if start < BLACKOUTS_BETWEEN[0] or end > BLACKOUTS_BETWEEN[1]:
            message = _("A stretch without slots lies in the years 2000 to 2100.")
            raise Invalid.one("blackouts", "invalid", message)
        reason = blackout.get("reason", "").strip()[:MAX_REASON_CHARACTERS]
        cleaned.append(
            {"from": _format_local_time(start), "until": _format_local_time(end), "reason": reason}
        )
    return sorted(cleaned, key=lambda blackout: (blackout["from"], blackout["until"]))


def _parse_local_time(text: str) -> datetime:
    """Return the local time that the text names; an offset is dropped. Raises `Invalid` if it isn't a time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = _("%(time)s is no time on a clock: write it as 2027-12-24T18:00.") % {"time": text}
        raise Invalid.one("blackouts", "invalid", message) from None
    return moment.replace(tzinfo=None)


def _format_local_time(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


def problems_of_slots(clean: dict[str, Any]) -> Iterator[Detail]:
    """Yield what is wrong with `timezone`, `slots`, `on_gap` and `on_overlap`, as far as they are there.

    `slots` are replaced by sorted ones without duplicates. Raises `Invalid` if one isn't a time of the week.
    """
    if "slots" in clean:
        clean["slots"] = _sorted_slots(clean["slots"])
    if "timezone" in clean:
        try:
            zone_named(clean["timezone"])
        except UnknownZone:
            yield Detail("timezone", "unknown_timezone", _("Choose a time zone such as Europe/Berlin."))
    if len(clean.get("slots", ())) > MAX_SLOTS_PER_WEEK:
        message = _("A queue has %(most)d slots a week at most.") % {"most": MAX_SLOTS_PER_WEEK}
        yield Detail("slots", "too_many", message)
    for name, known in (("on_gap", SlotGapChoice.values), ("on_overlap", OverlapChoice.values)):
        if clean.get(name, known[0]) not in known:
            yield Detail(name, "invalid_choice", _("Choose one of what is offered."))


def _sorted_slots(slots: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each slot once, in the order of the week. Raises `Invalid` if one isn't a time of the week."""
    for slot in slots:
        if slot.get("weekday") not in WEEKDAYS or not _TIME.fullmatch(str(slot.get("time"))):
            message = _("%(time)s is no time of a day: write it as 09:00.") % {"time": slot.get("time")}
            raise Invalid.one("slots", "invalid_slot", message)
    unique_slots = sorted({(int(slot["weekday"]), str(slot["time"])) for slot in slots})
    return [{"weekday": weekday, "time": at} for weekday, at in unique_slots]
