"""Creates, changes, pauses, deletes and restores series."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Workspace
from config.core import dispatcher, ids, states, work_queue
from config.core.clock import utc_now
from config.core.errors import Conflict, Detail, Invalid, NotFound
from pipeline import limits
from pipeline.engines.newsletter_digest import MAX_STORIES, MIN_STORIES
from pipeline.ingest import collect
from pipeline.models import Persona, Series, Source
from pipeline.publish.timing.queue_slots import moments_of
from pipeline.schedule.queues import problems_of_slots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime
    from uuid import UUID

    from pipeline.text.local_time import Slot

_REFERENCE_FIELDS: Final = frozenset({"persona_id", "sources", "outlets"})
KEPT: Final = timedelta(days=7)
"""The time for which a deleted series can be restored."""
PURGE_BATCH_SIZE: Final = 50
"""The number of series that one call of `forget` deletes."""
SCHEDULE_FIELDS: Final = frozenset({"timezone", "slots", "on_gap", "on_overlap", "is_paused"})
"""The fields that the next time follows from."""


def create(
    workspace: Workspace, values: Mapping[str, Any], *, test: bool, now: datetime, by: str = ""
) -> Series:
    """Create a series; `values` are its fields.

    Raises `Invalid` if a value isn't valid, and `Conflict` if the workspace has `limits.SERIES_MOST` series.
    """
    series = Series(
        workspace=workspace, test=test, timezone=workspace.timezone, created_at=now, updated_at=now
    )
    _apply_values(series, values, given_fields=_REFERENCE_FIELDS)
    series.due_at = series.wake_at = next_moment(series, after=now)
    with transaction.atomic():
        _refuse_one_more(workspace.pk)
        series.save(force_insert=True)
        _audit("series.created", series, by)
    return series


def change(
    series: Series,
    values: Mapping[str, Any],
    *,
    now: datetime,
    by: str = "",
    expected_version: int | None = None,
) -> Series:
    """Change the series.

    References that stay aren't validated: what the series refers to may be gone, and it can be paused anyway.
    Its next time moves only if its schedule changes; a digest that is due is made whatever else is changed.

    Raises `Invalid` if a value isn't valid, `Overtaken` if the series isn't the expected version, and
    `NotFound` if it is deleted.
    """
    with transaction.atomic():
        row: Series | None = _lock_existing(series)
        if row is None:
            raise NotFound
        states.refuse_other_version(row.version, expected_version)
        former = {name: getattr(row, name) for name in SCHEDULE_FIELDS}
        clean = _apply_values(row, values, given_fields=values.keys())
        if any(getattr(row, name) != value for name, value in former.items()):
            due_at = next_moment(row, after=now)
            clean |= {"due_at": due_at, "wake_at": due_at, **work_queue.overtake()}
        Series.everywhere.filter(pk=row.pk).update(**clean, version=F("version") + 1, updated_at=now)
        _audit("series.changed", row, by, {"changed": sorted(values)})
        dispatcher.wake()
        row.refresh_from_db()
    return row


def delete(
    series: Series, *, by: str = "", now: datetime | None = None, expected_version: int | None = None
) -> Series:
    """Delete the series; its digests stay, and for `KEPT` it can be restored.

    Raises `Overtaken` if the series isn't the expected version, and `NotFound` if it is deleted already.
    """
    now = now or utc_now()
    with transaction.atomic():
        row = _lock_existing(series)
        if row is None:
            raise NotFound
        states.refuse_other_version(row.version, expected_version)
        _overtake_and_write(row, now, deleted_at=now, due_at=None, wake_at=None)
        _audit("series.deleted", row, by, {"slots": row.slots, "timezone": row.timezone})
    return row


def restore(series: Series, *, by: str, now: datetime) -> Series:
    """Restore a deleted series, which goes on at its next time.

    Raises `NotFound` if it isn't deleted or isn't kept any more, and `Conflict` if the workspace has
    `limits.SERIES_MOST` series.
    """
    with transaction.atomic():
        rows = Series.everywhere.select_for_update().filter(pk=series.pk, deleted_at__gt=now - KEPT)
        row: Series | None = rows.first()
        if row is None:
            raise NotFound
        _refuse_one_more(row.workspace_id)
        due_at = next_moment(row, after=now)
        _overtake_and_write(row, now, deleted_at=None, due_at=due_at, wake_at=due_at)
        _audit("series.restored", row, by)
        dispatcher.wake()
    return row


def forget(now: datetime) -> int:
    """Delete a batch of series that can't be restored any more, with their logs; return how many."""
    expired = Series.everywhere.filter(deleted_at__lt=now - KEPT)
    batch = list(expired.order_by("deleted_at").values_list("pk", flat=True)[:PURGE_BATCH_SIZE])
    if batch:
        expired.filter(pk__in=batch).delete()
    return len(batch)


def _refuse_one_more(workspace_id: UUID) -> None:
    """Lock the workspace. Raises `Conflict` if it has `limits.SERIES_MOST` series."""
    # The lock keeps two requests from both creating the last series that is allowed.
    Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace_id)
    if Series.objects.of(workspace_id).filter(deleted_at=None).count() >= limits.SERIES_MOST:
        message = _("A workspace has %(most)d series at most.") % {"most": limits.SERIES_MOST}
        raise Conflict.because(code="too_many", message=message)


def _lock_existing(series: Series) -> Series | None:
    """Lock and return the series, or return `None` if it is deleted."""
    rows = Series.everywhere.select_for_update().filter(pk=series.pk, deleted_at=None)
    return rows.first()


def _overtake_and_write(row: Series, now: datetime, **values: Any) -> None:
    """Write the values; a task that runs the series loses its lease."""
    rows = Series.everywhere.filter(pk=row.pk)
    rows.update(**values, **work_queue.overtake(), version=F("version") + 1, updated_at=now)
    row.refresh_from_db()


def _audit(action: str, series: Series, by: str, details: Mapping[str, Any] | None = None) -> None:
    audit.note(
        action,
        workspace=series.workspace,
        actor=by,
        subject=ids.encode("ser", series.pk),
        details={"name": series.name, **(details or {})},
    )


def next_slots(series: Series, *, after: datetime, most: int) -> tuple[Slot, ...]:
    """Return up to `most` next slots, or none if the series is paused."""
    return () if series.is_paused else tuple(islice(moments_of(series, after=after), most))


def next_moment(series: Series, *, after: datetime) -> datetime | None:
    """Return the next time, or `None` if the series is paused or has no slots."""
    return next((slot.moment for slot in next_slots(series, after=after, most=1)), None)


def _apply_values(
    series: Series, values: Mapping[str, Any], *, given_fields: AbstractSet[str]
) -> dict[str, Any]:
    """Set the values on the row, validate them with those that stay, and return the columns to write.

    Raises `Invalid` if a value isn't valid. References are validated only if `given_fields` names them.
    """
    clean = dict(values)
    for name, value in values.items():
        setattr(series, name, value)
    schedule_values = {name: getattr(series, name) for name in ("timezone", "slots", "on_gap", "on_overlap")}
    problems = [*problems_of_slots(schedule_values), *_find_problems(series, given_fields)]
    if problems:
        raise Invalid(*problems)
    if "slots" in clean:
        clean["slots"] = series.slots = schedule_values["slots"]
    return clean


def _find_problems(series: Series, given_fields: AbstractSet[str]) -> Iterator[Detail]:
    """Strip the series' name, and yield what is wrong with the series."""
    series.name = series.name.strip()
    if not series.name:
        yield Detail("name", "required", _("Give it a name of up to 120 characters."))
    if not series.slots:
        yield Detail("slots", "required", _("Give it a time of the week."))
    if not MIN_STORIES <= series.items_least <= series.items_most <= MAX_STORIES:
        message = _("A digest has %(least)d to %(most)d items, and no more at least than at most.") % {
            "least": MIN_STORIES,
            "most": MAX_STORIES,
        }
        yield Detail("items_least", "invalid", message)
    yield from _find_reference_problems(series, given_fields)


def _find_reference_problems(series: Series, given_fields: AbstractSet[str]) -> Iterator[Detail]:
    """Yield a problem for each reference in `given_fields` that doesn't exist in the workspace."""
    workspace = series.workspace
    if "persona_id" in given_fields and series.persona_id is not None:
        existing = Persona.objects.of(workspace).filter(pk=series.persona_id, deleted_at=None)
        if not existing.exists():
            yield Detail("persona", "unknown_persona", _("This workspace has no such persona."))
    keys = [ids.decode("src", public_id) for public_id in series.sources] if "sources" in given_fields else []
    known = set(
        Source.objects.of(workspace)
        .filter(pk__in=[key for key in keys if key], deleted_at=None, test=series.test)
        .values_list("pk", flat=True)
    )
    for index, key in enumerate(keys):
        if key not in known:
            yield Detail(f"sources[{index}]", "unknown_source", _("This workspace has no such source."))
    if "outlets" not in given_fields:
        return
    try:
        collect.check_outlets(workspace, series.outlets, test=series.test)
    except Invalid as error:
        yield from error.detail
