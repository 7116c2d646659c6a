"""Series as people keep them: make one, change it, pause it, take it away."""

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

_ALL: Final = frozenset({"persona_id", "sources", "outlets"})
KEPT: Final = timedelta(days=7)
"""For so long an ended one can be taken back."""
FORGOTTEN_AT_ONCE: Final = 50
CADENCE: Final = frozenset({"timezone", "slots", "on_gap", "on_overlap", "is_paused"})


def create(
    workspace: Workspace, values: Mapping[str, Any], *, test: bool, now: datetime, by: str = ""
) -> Series:
    """`values` are the fields of a series. Raises `Invalid`, and `Conflict` where there are too many."""
    series = Series(
        workspace=workspace, test=test, timezone=workspace.timezone, created_at=now, updated_at=now
    )
    _lay(series, values, judged=_ALL)
    series.due_at = series.wake_at = next_moment(series, after=now)
    with transaction.atomic():
        _refuse_one_more(workspace.pk)
        series.save(force_insert=True)
        _note("series.created", series, by)
    return series


def change(
    series: Series,
    values: Mapping[str, Any],
    *,
    now: datetime,
    by: str = "",
    expected_version: int | None = None,
) -> Series:
    """Raises `Invalid`, `Overtaken` where somebody was faster than `expected_version`, `NotFound` where it is gone.

    Only what is given is judged: what the series names may be gone, and it can be paused nevertheless. Its next time
    moves only where its times do; a digest that is due is made whatever else is changed.
    """
    with transaction.atomic():
        row: Series | None = _there(series)
        if row is None:
            raise NotFound
        states.refuse_other_version(row.version, expected_version)
        former = {name: getattr(row, name) for name in CADENCE}
        clean = _lay(row, values, judged=values.keys())
        if any(getattr(row, name) != value for name, value in former.items()):
            following = next_moment(row, after=now)
            clean |= {"due_at": following, "wake_at": following, **work_queue.overtake()}
        Series.everywhere.filter(pk=row.pk).update(**clean, version=F("version") + 1, updated_at=now)
        _note("series.changed", row, by, {"changed": sorted(values)})
        dispatcher.wake()
        row.refresh_from_db()
    return row


def delete(
    series: Series, *, by: str = "", now: datetime | None = None, expected_version: int | None = None
) -> Series:
    """What it has made stays, and for `KEPT` it can be taken back. Raises as `change` does."""
    now = now or utc_now()
    with transaction.atomic():
        row = _there(series)
        if row is None:
            raise NotFound
        states.refuse_other_version(row.version, expected_version)
        _rest(row, now, deleted_at=now, due_at=None, wake_at=None)
        _note("series.deleted", row, by, {"slots": row.slots, "timezone": row.timezone})
    return row


def restore(series: Series, *, by: str, now: datetime) -> Series:
    """Take back that it was ended: it goes on at its next time.

    Raises `NotFound` where it isn't kept any more, `Conflict` where the workspace has as many as it may have.
    """
    with transaction.atomic():
        rows = Series.everywhere.select_for_update().filter(pk=series.pk, deleted_at__gt=now - KEPT)
        row: Series | None = rows.first()
        if row is None:
            raise NotFound
        _refuse_one_more(row.workspace_id)
        following = next_moment(row, after=now)
        _rest(row, now, deleted_at=None, due_at=following, wake_at=following)
        _note("series.restored", row, by)
        dispatcher.wake()
    return row


def forget(now: datetime) -> int:
    """Some of those that can't be taken back any more, with their logs; what they made stays."""
    over = Series.everywhere.filter(deleted_at__lt=now - KEPT)
    some = list(over.order_by("deleted_at").values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    if some:
        over.filter(pk__in=some).delete()
    return len(some)


def _refuse_one_more(workspace_id: UUID) -> None:
    # Two at once must not both be the last one.
    Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace_id)
    if Series.objects.of(workspace_id).filter(deleted_at=None).count() >= limits.SERIES_MOST:
        message = _("A workspace has %(most)d series at most.") % {"most": limits.SERIES_MOST}
        raise Conflict.because(code="too_many", message=message)


def _there(series: Series) -> Series | None:
    rows = Series.everywhere.select_for_update().filter(pk=series.pk, deleted_at=None)
    return rows.first()


def _rest(row: Series, now: datetime, **values: Any) -> None:
    """Whoever is at work on it has no say any more."""
    rows = Series.everywhere.filter(pk=row.pk)
    rows.update(**values, **work_queue.overtake(), version=F("version") + 1, updated_at=now)
    row.refresh_from_db()


def _note(action: str, series: Series, by: str, details: Mapping[str, Any] | None = None) -> None:
    audit.note(
        action,
        workspace=series.workspace,
        actor=by,
        subject=ids.encode("ser", series.pk),
        details={"name": series.name, **(details or {})},
    )


def next_slots(series: Series, *, after: datetime, most: int) -> tuple[Slot, ...]:
    return () if series.is_paused else tuple(islice(moments_of(series, after=after), most))


def next_moment(series: Series, *, after: datetime) -> datetime | None:
    """None for one that is paused, or that has no time of the week."""
    return next((slot.moment for slot in next_slots(series, after=after, most=1)), None)


def _lay(series: Series, values: Mapping[str, Any], *, judged: AbstractSet[str]) -> dict[str, Any]:
    """The values, judged with those that stay, on the row; what is to be written."""
    clean = dict(values)
    for name, value in values.items():
        setattr(series, name, value)
    kept = {name: getattr(series, name) for name in ("timezone", "slots", "on_gap", "on_overlap")}
    problems = [*problems_of_slots(kept), *_problems(series, judged)]
    if problems:
        raise Invalid(*problems)
    if "slots" in clean:
        clean["slots"] = series.slots = kept["slots"]
    return clean


def _problems(series: Series, judged: AbstractSet[str]) -> Iterator[Detail]:
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
    yield from _unknown(series, judged)


def _unknown(series: Series, judged: AbstractSet[str]) -> Iterator[Detail]:
    workspace = series.workspace
    if "persona_id" in judged and series.persona_id is not None:
        there = Persona.objects.of(workspace).filter(pk=series.persona_id, deleted_at=None)
        if not there.exists():
            yield Detail("persona", "unknown_persona", _("This workspace has no such persona."))
    keys = [ids.decode("src", one) for one in series.sources] if "sources" in judged else []
    known = set(
        Source.objects.of(workspace)
        .filter(pk__in=[key for key in keys if key], deleted_at=None, test=series.test)
        .values_list("pk", flat=True)
    )
    for place, key in enumerate(keys):
        if key not in known:
            yield Detail(f"sources[{place}]", "unknown_source", _("This workspace has no such source."))
    if "outlets" not in judged:
        return
    try:
        collect.check_outlets(workspace, series.outlets, test=series.test)
    except Invalid as error:
        yield from error.detail
