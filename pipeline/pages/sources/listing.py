"""Lists the sources of a workspace: each with its health, its last run and its items of a week."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.shortcuts import render
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy

from accounts.pages.page_access import Place, workspace_page
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.ids import encode, lowest_id_at
from pipeline.ingest.collect import kind_of
from pipeline.ingest.collect.health_text import health_of
from pipeline.models import GeneratedItem, Source, SourceStatus
from pipeline.pages.sources import lane_cadence
from pipeline.states import POLLED_SOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

ROWS: Final = core_limits.PAGE_ROWS_DEFAULT
"""Sources per page."""
WEEK: Final = timedelta(days=7)
_DEFERRED_COLUMNS: Final = ("fetch_state", "window", "moved", "notes")
"""Large columns that no row shows and that the database would carry through the sort."""


class SourceFilter(forms.Form):
    """The filters of the list: a part of the name or address, and the status."""

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
        """Return the rows that match; an invalid value filters nothing and is reported at its field."""
        self.is_valid()
        text, status = self.cleaned_data.get("q"), self.cleaned_data.get("status")
        if text:
            rows = rows.filter(Q(name__icontains=text) | Q(config__url__icontains=text))
        return rows.filter(status=status) if status else rows


def sources_with_page(place: Place) -> QuerySet[Source]:
    """Return the sources that have a page: all but deleted ones, test sources and the source of pushed content."""
    rows: QuerySet[Source] = Source.objects.of(place.workspace).filter(
        deleted_at=None, test=False, is_push=False
    )
    return rows


@workspace_page("look", methods=("GET",))
def sources(request: HttpRequest, place: Place) -> HttpResponse:
    """List the sources that match the filters, by name."""
    form = SourceFilter(request.GET)
    rows = form.narrow(sources_with_page(place)).defer(*_DEFERRED_COLUMNS)
    source_page = Paginator(rows.order_by("name", "id"), ROWS).get_page(request.GET.get("page"))
    item_counts = _count_items_of_week(place, [source.pk for source in source_page], utc_now())
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "filter": form,
        "is_filtered": any(form.data.get(name) for name in form.fields),
        "shown": source_page,
        "rows": [_row(place, source, item_counts.get(source.pk, 0)) for source in source_page],
        "narrowed": query.urlencode(),
        "query": request.GET.urlencode(),
    }
    return render(request, "pages/sources/list.html", context)


def _row(place: Place, source: Source, item_count: int) -> dict[str, Any]:
    return {
        "source": source,
        "id": encode("src", source.pk),
        "kind": kind_of(source.type).label,
        "health": health_of(source, place.workspace),
        "where": describe_address(source).removeprefix("https://").removeprefix("http://"),
        "last": _last_run_of(source),
        "next": _next_run_of(source) if place.workspace.is_at_work else None,
        "made": item_count,
        "is_on": source.status in POLLED_SOURCES,
    }


def _last_run_of(source: Source) -> datetime | None:
    """Return the time of the last poll, failed or not, or else when the source last brought an entry."""
    failed_at = parse_datetime(str((source.last_error or {}).get("at", "")))
    run_times = [moment for moment in (source.last_polled_at, failed_at) if moment is not None]
    return max(run_times) if run_times else source.last_new_at


def _next_run_of(source: Source) -> datetime | None:
    """Return the time of the next poll or, for a brand lane, of its next slot; `None` if the source is off."""
    if source.status not in POLLED_SOURCES:
        return None
    return source.due_at if source.type == "brand" else source.wake_at


def _count_items_of_week(place: Place, source_ids: Sequence[UUID], now: datetime) -> dict[UUID, int]:
    """Count each source's items of the last seven days; a source without items is left out.

    Ids hold their time of creation, so the index of items by source finds them.
    """
    rows = GeneratedItem.objects.of(place.workspace).filter(
        source_id__in=source_ids, pk__gte=lowest_id_at(now - WEEK), deleted_at=None
    )
    return dict(rows.order_by().values_list("source_id").annotate(Count("pk")))


def describe_address(source: Source) -> str:
    """Return the address or name that the source reads, a brand lane's cadence, or an empty text without either."""
    config: Mapping[str, Any] = source.config
    if source.type == "brand":
        return lane_cadence.describe(config)
    for name in ("url", "sitemap", "handle", "channel", "playlist", "username", "hashtag"):
        if config.get(name):
            return str(config[name])
    links = config.get("links") or ()
    return str(links[0]) if links else ""
