"""Shows the calendar: a day, a week or a month in the workspace's time zone, with a lane for each outlet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.shortcuts import render
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.ids import decode, encode
from pipeline.models import Outlet
from pipeline.pages.calendar import queries, tray
from pipeline.pages.calendar.date_range import DAY, MONTH, VIEWS, WEEK, DateRange, date_range_of
from pipeline.publish import workspace_hold

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@workspace_page("look", methods=("GET",))
def calendar(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the calendar; invalid parameters fall back to a week, to today, and to all outlets."""
    now, zone = utc_now(), ZoneInfo(place.workspace.timezone)
    today = now.astimezone(zone).date()
    span = date_range_of(request.GET.get("view", WEEK), request.GET.get("on", ""), today, zone)
    only = decode("out", request.GET.get("outlet", ""))
    board = queries.read_grid(place.workspace, span, only=only, now=now)
    outlets = list(
        Outlet.objects.of(place.workspace)
        .filter(deleted_at=None)
        .only("name", "platform", "is_simulated")
        .order_by("id")
    )
    before = decode("gen", request.GET.get("before", ""))
    context = {
        "span": span,
        "board": board,
        "weeks": _split_into_weeks(board) if span.view == MONTH else (),
        "columns": list(span.days),
        "today": today,
        "heading": _format_heading(span),
        "has_digests": any(cell.planned for cell in board.days),
        "hold": workspace_hold.read_hold(place.workspace),
        "why": queries.explain_unpublished(board, now),
        "lasts": _describe_hold_effects(board),
        "tray": tray.read_tray(place, outlets, only=only, before=before, now=now),
        "outlets": _outlet_choices(place, [*outlets, *(lane.outlet for lane in board.lanes)], only),
        "only": encode("out", only) if only else "",
        **_navigation_links(request, span, today),
    }
    return render(request, "pages/calendar/page.html", context)


def _outlet_choices(place: Place, outlets: Sequence[Outlet], only: UUID | None) -> list[tuple[str, str]]:
    """Return the outlets of the filter: those that are connected or have posts here, and the chosen one."""
    names = {outlet.pk: outlet.name for outlet in outlets}
    if only is not None and only not in names:
        # It was disconnected and has no posts on these days.
        names |= dict(Outlet.objects.of(place.workspace).filter(pk=only).values_list("pk", "name"))
    return [(encode("out", key), name) for key, name in names.items()]


def _split_into_weeks(board: queries.CalendarGrid) -> list[tuple[queries.CalendarCell, ...]]:
    """Return the days of a month's view, seven by seven."""
    return [board.days[start : start + 7] for start in range(0, len(board.days), 7)]


def _format_heading(span: DateRange) -> str:
    """Return the heading of the view, such as "22 – 28 March 2027"."""
    first, last = span.first, span.last
    if span.view == DAY:
        return f"{first:%A}, {first.day} {first:%B %Y}"
    if span.view == MONTH:
        return f"{span.on:%B %Y}"
    start = f"{first.day} {first:%B}" if first.month != last.month else str(first.day)
    return _("%(first)s – %(last)s") % {"first": start, "last": f"{last.day} {last:%B %Y}"}


def _navigation_links(request: HttpRequest, span: DateRange, today: date) -> dict[str, Any]:
    """Return the links of the toolbar; `back` or `forth` is empty if the range there isn't in `YEARS`."""

    def link_to(view: str, on: date) -> str:
        parameters = {"view": view, "on": on.isoformat()}
        if request.GET.get("outlet"):
            parameters["outlet"] = request.GET["outlet"]
        return f"?{urlencode(parameters)}"

    return {
        "back": link_to(span.view, span.previous) if span.previous else "",
        "forth": link_to(span.view, span.next) if span.next else "",
        "now_link": link_to(span.view, today),
        "here": link_to(span.view, span.on),
        "views": [(view, _VIEW_LABELS[view](), link_to(view, span.on)) for view in VIEWS],
    }


def _describe_hold_effects(board: queries.CalendarGrid) -> list[str]:
    """Return sentences on what a hold that outlasts their times would do with the posts scheduled here."""
    sentences = {
        "publish": _("%(count)d would publish now"),
        "next_slot": _("%(count)d would move to the next free slot"),
        "hold": _("%(count)d would stay unpublished"),
    }
    return [
        sentence % {"count": board.lasts[policy]}
        for policy, sentence in sentences.items()
        if board.lasts.get(policy)
    ]


_VIEW_LABELS = {DAY: lambda: _("Day"), WEEK: lambda: _("Week"), MONTH: lambda: _("Month")}
