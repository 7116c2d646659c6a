"""Series as people keep them: make one, change it, pause it, take it away."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from config.ground import due, hands, ids, limits
from config.ground.errors import Conflict, Detail, Invalid, NotFound
from config.ground.states import Overtaken
from pipeline.engines.newsletter_digest import STORIES_LEAST, STORIES_MOST
from pipeline.models import Persona, Series, Source
from pipeline.stages import collect
from pipeline.stages.publish.queueing import moments_of
from pipeline.stages.publish.queues import problems_of_slots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from accounts.models import Workspace
    from pipeline.stages.publish.queueing import Slot

_ALL: Final = frozenset({"persona_id", "sources", "outlets"})
CADENCE: Final = frozenset({"timezone", "slots", "on_gap", "on_overlap", "is_paused"})


def create(workspace: Workspace, values: Mapping[str, Any], *, test: bool, now: datetime) -> Series:
    """`values` are the fields of a series. Raises `Invalid`, and `Conflict` where there are too many."""
    series = Series(
        workspace=workspace, test=test, timezone=workspace.timezone, created_at=now, updated_at=now
    )
    _lay(series, values, judged=_ALL)
    series.due_at = series.wake_at = next_moment(series, after=now)
    with transaction.atomic():
        if Series.objects.of(workspace).count() >= limits.SERIES_MOST:
            message = _("A workspace has %(most)d series at most.") % {"most": limits.SERIES_MOST}
            raise Conflict.because(code="too_many", message=message)
        series.save(force_insert=True)
    return series


def change(
    series: Series, values: Mapping[str, Any], *, now: datetime, expected_version: int | None = None
) -> Series:
    """Raises `Invalid`, `Overtaken` where somebody was faster than `expected_version`, `NotFound` where it is gone.

    Only what is given is judged: what the series names may be gone, and it can be paused nevertheless.
    """
    with transaction.atomic():
        row: Series | None = Series.everywhere.select_for_update().filter(pk=series.pk).first()
        if row is None:
            raise NotFound
        if expected_version is not None and row.version != expected_version:
            changed = Detail("version", "changed_meanwhile", "It has changed since it was read.")
            raise Overtaken(changed, code="version_conflict")
        clean = _lay(row, values, judged=values.keys())
        if clean.keys() & CADENCE:
            following = next_moment(row, after=now)
            clean |= {"due_at": following, "wake_at": following, **due.overtake()}
        Series.everywhere.filter(pk=row.pk).update(**clean, version=F("version") + 1, updated_at=now)
        hands.nudge("pipeline.series")
        row.refresh_from_db()
    return row


def delete(series: Series) -> None:
    """What it has made stays."""
    Series.everywhere.filter(pk=series.pk).delete()


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
    if not STORIES_LEAST <= series.items_least <= series.items_most <= STORIES_MOST:
        message = _("A digest has %(least)d to %(most)d items, and no more at least than at most.") % {
            "least": STORIES_LEAST,
            "most": STORIES_MOST,
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
