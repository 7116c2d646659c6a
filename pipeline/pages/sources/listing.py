"""The sources of a workspace as rows, in pages: how each is doing, its last run, and how much came of it in a week."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.shortcuts import render
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy

from accounts.pages.page_access import Place, page
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.ids import encode, lowest_id_at
from pipeline.ingest.collect import kind_of
from pipeline.ingest.collect.health_text import health_of
from pipeline.models import GeneratedItem, Source, SourceStatus
from pipeline.pages.sources.address_label import place_of
from pipeline.states import POLLED_SOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

ROWS: Final = core_limits.PAGE_ROWS_DEFAULT
WEEK: Final = timedelta(days=7)
_NOT_SHOWN: Final = ("fetch_state", "window", "moved", "notes")
"""Large columns that no row shows: they would be sorted with it."""


class SourceFilter(forms.Form):
    q = forms.CharField(
        label=gettext_lazy("Search"),
        required=False,
        max_length=core_limits.NAME_CHARACTERS,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": gettext_lazy("Name or address")}),
    )
    status = forms.ChoiceField(
        label=gettext_lazy("Status"),
        required=False,
        choices=[("", gettext_lazy("Any status")), *SourceStatus.choices],
    )

    def narrow(self, rows: QuerySet[Source]) -> QuerySet[Source]:
        """What isn't understood narrows nothing, and is said at its field."""
        self.is_valid()
        words, status = self.cleaned_data.get("q"), self.cleaned_data.get("status")
        if words:
            rows = rows.filter(Q(name__icontains=words) | Q(config__url__icontains=words))
        return rows.filter(status=status) if status else rows


def all_of(place: Place) -> QuerySet[Source]:
    """Those that have a page: not the workspace's own for pushes."""
    rows: QuerySet[Source] = Source.objects.of(place.workspace).filter(
        deleted_at=None, test=False, is_push=False
    )
    return rows


@page("look", methods=("GET",))
def sources(request: HttpRequest, place: Place) -> HttpResponse:
    form = SourceFilter(request.GET)
    narrowed = form.narrow(all_of(place)).defer(*_NOT_SHOWN)
    shown = Paginator(narrowed.order_by("name", "id"), ROWS).get_page(request.GET.get("page"))
    made = _made_in_a_week(place, [one.pk for one in shown], utc_now())
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "filter": form,
        "is_filtered": any(form.data.get(name) for name in form.fields),
        "shown": shown,
        "rows": [_row(place, one, made.get(one.pk, 0)) for one in shown],
        "narrowed": query.urlencode(),
        "query": request.GET.urlencode(),
    }
    return render(request, "pages/sources/list.html", context)


def _row(place: Place, one: Source, made: int) -> dict[str, Any]:
    return {
        "source": one,
        "id": encode("src", one.pk),
        "kind": kind_of(one.type).label,
        "health": health_of(one, place.workspace),
        "where": place_of(one).removeprefix("https://").removeprefix("http://"),
        "last": _last_run_of(one),
        "next": _next_of(one) if place.workspace.is_at_work else None,
        "made": made,
        "is_on": one.status in POLLED_SOURCES,
    }


def _last_run_of(one: Source) -> datetime | None:
    """Its last poll, well or not; of what isn't polled, when it last brought something."""
    failed = parse_datetime(str((one.last_error or {}).get("at", "")))
    ran = [moment for moment in (one.last_polled_at, failed) if moment is not None]
    return max(ran) if ran else one.last_new_at


def _next_of(one: Source) -> datetime | None:
    """When it is polled next; of a brand lane, when it makes something next."""
    if one.status not in POLLED_SOURCES:
        return None
    return one.due_at if one.type == "brand" else one.wake_at


def _made_in_a_week(place: Place, keys: Sequence[UUID], now: datetime) -> dict[UUID, int]:
    """Items of each source from the last seven days: ids tell the time, so that the source's own index finds them."""
    rows = GeneratedItem.objects.of(place.workspace).filter(
        source_id__in=keys, pk__gte=lowest_id_at(now - WEEK), deleted_at=None
    )
    return dict(rows.order_by().values_list("source_id").annotate(Count("pk")))
