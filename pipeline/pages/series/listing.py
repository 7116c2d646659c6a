"""The series of a workspace, and one of them: its next times, what it would tell now, what came of the last ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import get_object_or_404, render

from accounts.pages.workspace_view import Place, page
from config.core import limits
from config.core.clock import utc_now
from pipeline import labels
from pipeline.models import GeneratedItem, Series
from pipeline.pages.items import recurrences as returns
from pipeline.pages.queues.outlook import week_of
from pipeline.schedule import series
from pipeline.text.wall_clock import UnknownZone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import SeriesIssue

SLOTS_SHOWN: Final = 5


def find_series(place: Place, ser: UUID) -> Series:
    rows = Series.objects.of(place.workspace).filter(test=False, deleted_at=None)
    found: Series = get_object_or_404(rows.select_related("workspace", "persona"), pk=ser)
    return found


@page("look", methods=("GET",))
def series_page(request: HttpRequest, place: Place) -> HttpResponse:
    now = utc_now()
    there = Series.objects.of(place.workspace).filter(test=False, deleted_at=None).order_by("name", "id")
    rows = [_row(one, now) for one in there]
    context = {"place": place, "rows": rows, "returns": returns.listed(place)}
    return render(request, "pages/series/list.html", context)


def _row(row: Series, now: datetime) -> dict[str, Any]:
    last = row.issues.order_by("-id").first()
    return {
        "series": row,
        "week": week_of(row),
        "next": next_times(row, now)[:1],
        "last": last,
        "decision": labels.SERIES_ISSUES[last.decision] if last is not None else None,
    }


@page("look", methods=("GET",))
def series_one(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    row, now = find_series(place, ser), utc_now()
    choice = series.choose(row, now=now)
    context = {
        "place": place,
        "series": row,
        "week": week_of(row),
        "next": next_times(row, now),
        "choice": choice,
        "is_enough": len(choice.raw_items) >= row.items_least,
        "issues": _issues(place, list(row.issues.order_by("-id")[: limits.SERIES_SHOWN])),
    }
    return render(request, "pages/series/one.html", context)


def next_times(row: Series, now: datetime) -> list[datetime]:
    """None where it is paused, and where its time zone was dropped from the tables."""
    try:
        return [slot.moment for slot in series.next_slots(row, after=now, most=SLOTS_SHOWN)]
    except UnknownZone:
        return []


def _issues(place: Place, rows: Sequence[SeriesIssue]) -> list[dict[str, Any]]:
    runs = [row.generation_id for row in rows if row.generation_id is not None]
    made = GeneratedItem.objects.of(place.workspace).filter(generation_id__in=runs, deleted_at=None)
    digests: dict[UUID | None, GeneratedItem] = {
        one.generation_id: one for one in made.order_by("-variant_index")
    }
    return [
        {"issue": row, "decision": labels.SERIES_ISSUES[row.decision], "item": digests.get(row.generation_id)}
        for row in rows
    ]
