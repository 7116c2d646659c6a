"""Finds what failed and what is late, by section of the list of problems.

The number of statements is bounded: one for all counts, one for each section, and a few for each of the first
late publications, whose causes are worked out as the command `explain` does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django.utils.translation import gettext_lazy

from pipeline import limits
from pipeline.dashboard.counts import CappedCount, count_each, first_id_of
from pipeline.models import (
    GeneratedItem,
    InboundDelivery,
    InboundDeliveryStatus,
    Mailing,
    MailingStatus,
    Outlet,
    PersonaDraft,
    Publication,
    PublicationStatus,
    RawItem,
    RawItemStatus,
    Source,
)
from pipeline.pages.failures import forms
from pipeline.pages.failures import rows as failure_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django.utils.functional import _StrOrPromise, _StrPromise

    from accounts.pages.page_access import Place

ROWS: Final = 15
"""Rows of each section where all sections are shown."""
MORE_ROWS: Final = 100
"""Rows of a section that is shown alone; as many as one act clears at once."""


@dataclass(frozen=True)
class FailureSection:
    """A section with its rows; `said` is the line under its label, and `is_cut` says that more rows exist."""

    name: str
    label: str
    said: str
    count: CappedCount
    rows: Sequence[failure_rows.FailureRow]
    is_cut: bool


@dataclass(frozen=True)
class FailureList:
    """The definition of a section: how its rows are found, filtered, ordered and displayed.

    `find` returns the query of all its rows, `causes` narrow it by a cause, `field` is the time that the
    filter `since` compares, and `tell` builds the displayed rows. `said` is the line under its label.
    """

    kind: str
    label: _StrPromise
    said: _StrOrPromise
    find: Callable[[Place, datetime], QuerySet[Any]]
    causes: Mapping[str, Q]
    field: str
    order: str
    tell: Callable[[Place, Sequence[Any], datetime], list[failure_rows.FailureRow]]
    outlet: str = ""
    """The column that the filter by outlet compares; empty where the rows belong to no outlet."""


def sections(
    place: Place, narrowed: forms.FailureFilter, *, alone: str, now: datetime
) -> list[FailureSection]:
    """Return the sections that have rows; with `alone`, only that one, with up to `MORE_ROWS` rows."""
    queries_by_section = [
        (name, definition, rows)
        for name, definition, rows in _filtered_queries(place, narrowed, now)
        if alone in {"", name}
    ]
    if not queries_by_section:
        return []
    counts = count_each(*(rows for _name, _kind, rows in queries_by_section))
    max_rows = MORE_ROWS if alone else ROWS
    return [
        FailureSection(
            name,
            str(definition.label),
            str(definition.said),
            count,
            definition.tell(place, list(rows.order_by(definition.order, "id")[:max_rows]), now),
            is_cut=count.number > max_rows,
        )
        for (name, definition, rows), count in zip(queries_by_section, counts, strict=True)
        if count
    ]


def _filtered_queries(
    place: Place, filter_form: forms.FailureFilter, now: datetime
) -> Iterator[tuple[str, FailureList, QuerySet[Any]]]:
    """Yield the name, definition and filtered query of each section that the filters leave."""
    filters = filter_form.cleaned_data
    starts_at, outlet = filter_form.starts_at(now), filter_form.outlet_asked
    for name, definition in SECTIONS.items():
        if filters["kind"] not in {"", definition.kind} or (outlet is not None and not definition.outlet):
            continue
        if filters["cause"] and filters["cause"] not in definition.causes:
            continue
        rows = definition.find(place, now)
        if filters["cause"]:
            rows = rows.filter(definition.causes[filters["cause"]])
        if outlet is not None:
            rows = rows.filter(**{definition.outlet: outlet})
        if starts_at is not None:
            rows = rows.filter(**{f"{definition.field}__gte": starts_at})
        yield name, definition, rows


def _late_publications(place: Place, now: datetime) -> QuerySet[Any]:
    # Those that wait for a person are included: that is a cause of its own here.
    rows = Publication.objects.of(place.workspace).live().unsent()
    late_publications: QuerySet[Any] = rows.filter(due_at__lt=now - limits.LATE_AFTER)
    return late_publications


def _failed_publications(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    rows = Publication.objects.of(place.workspace).live().unresolved()
    publications: QuerySet[Any] = rows.select_related("item", "outlet")
    return publications.defer("outlet__credentials", "outlet__config", "item__content", "item__body")


def _failed_items(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    items: QuerySet[Any] = GeneratedItem.objects.of(place.workspace).live().failed()
    return items.select_related("raw_item").defer("content", "body")


def _items_long_in_making(place: Place, now: datetime) -> QuerySet[Any]:
    # Ids rise with time, so the index of items in making finds the old ones.
    rows = GeneratedItem.objects.of(place.workspace).live().in_making()
    late_items: QuerySet[Any] = rows.filter(id__lt=first_id_of(now - limits.MAKING_LATE_AFTER))
    return late_items.select_related("raw_item", "generation").defer("content", "body", "generation__answers")


def _stuck_raw_items(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    raw_items: QuerySet[Any] = RawItem.objects.of(place.workspace).live().stuck()
    return raw_items.select_related("source").defer("metadata", "media")


def _failing_sources(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    sources: QuerySet[Any] = Source.objects.of(place.workspace).live().failing()
    return sources


def _outlets_to_reconnect(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    outlets: QuerySet[Any] = Outlet.objects.of(place.workspace).to_reconnect()
    return outlets.defer("credentials", "config")


def _failed_drafts(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    drafts: QuerySet[Any] = PersonaDraft.objects.of(place.workspace).failed()
    return drafts.defer("material", "posts", "sections")


def _stopped_mailings(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    mailings: QuerySet[Any] = Mailing.objects.of(place.workspace).filter(
        status=MailingStatus.STOPPED, outlet__deleted_at=None
    )
    return mailings.select_related("outlet").defer("html", "text", "outlet__credentials", "outlet__config")


def _failed_deliveries(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    deliveries: QuerySet[Any] = InboundDelivery.objects.of(place.workspace).filter(
        status=InboundDeliveryStatus.FAILED, test=False, source__deleted_at=None
    )
    return deliveries.select_related("source").defer("body", "made", "head")


_ANY_CAUSE: Final = Q()
_IS_BY_HAND: Final = Q(step=Publication.BY_HAND)
_HAS_FAILED: Final = Q(status=PublicationStatus.FAILED)

SECTIONS: Final[Mapping[str, FailureList]] = {
    "late": FailureList(
        "publications",
        gettext_lazy("Late"),
        gettext_lazy("Overdue posts"),
        _late_publications,
        {forms.LATE: ~_IS_BY_HAND, forms.BY_HAND: _IS_BY_HAND},
        "due_at",
        "due_at",
        failure_rows.late,
        outlet="outlet_id",
    ),
    "outlets": FailureList(
        "outlets",
        gettext_lazy("Outlets to reconnect"),
        gettext_lazy("Log-in expired. Posts are waiting."),
        _outlets_to_reconnect,
        {forms.ACCOUNT: _ANY_CAUSE},
        "updated_at",
        "-updated_at",
        failure_rows.outlets,
        outlet="id",
    ),
    "failed": FailureList(
        "publications",
        gettext_lazy("Publishing failed"),
        gettext_lazy("Not retried automatically"),
        _failed_publications,
        {
            forms.ACCOUNT: _HAS_FAILED & Q(error__class="account"),
            forms.CONTENT: _HAS_FAILED & Q(error__class="content"),
            forms.PLATFORM: _HAS_FAILED & ~Q(error__class="account") & ~Q(error__class="content"),
            forms.UNKNOWN: Q(status=PublicationStatus.UNKNOWN),
        },
        "updated_at",
        "-updated_at",
        failure_rows.failed,
        outlet="outlet_id",
    ),
    "mailings": FailureList(
        "mailings",
        gettext_lazy("Stopped mailings"),
        gettext_lazy("Waiting to be resumed"),
        _stopped_mailings,
        {forms.STOPPED: _ANY_CAUSE},
        "updated_at",
        "-updated_at",
        failure_rows.mailings,
        outlet="outlet_id",
    ),
    "making": FailureList(
        "items",
        gettext_lazy("Still generating"),
        gettext_lazy("Started over an hour ago"),
        _items_long_in_making,
        {forms.LATE: _ANY_CAUSE},
        "created_at",
        "id",
        failure_rows.long_made,
    ),
    "items": FailureList(
        "items",
        gettext_lazy("Failed"),
        gettext_lazy("Retry regenerates them"),
        _failed_items,
        {forms.MAKING: _ANY_CAUSE},
        "updated_at",
        "-updated_at",
        failure_rows.not_made,
    ),
    "raw": FailureList(
        "raw",
        gettext_lazy("Raw items without content"),
        gettext_lazy("Items waiting for credits resume automatically"),
        _stuck_raw_items,
        {forms.MAKING: Q(status=RawItemStatus.FAILED), forms.CREDITS: Q(status=RawItemStatus.WAITING_QUOTA)},
        "updated_at",
        "-updated_at",
        failure_rows.raw,
    ),
    "sources": FailureList(
        "sources",
        gettext_lazy("Failing sources"),
        "",
        _failing_sources,
        {forms.FETCHING: _ANY_CAUSE},
        "failing_since",
        "-failing_since",
        failure_rows.sources,
    ),
    "deliveries": FailureList(
        "deliveries",
        gettext_lazy("Deliveries without content"),
        gettext_lazy("Deleted after 3 days"),
        _failed_deliveries,
        {forms.MAKING: _ANY_CAUSE},
        "created_at",
        "-id",
        failure_rows.deliveries,
    ),
    "drafts": FailureList(
        "drafts",
        gettext_lazy("Failed persona drafts"),
        gettext_lazy("Deleted after 7 days"),
        _failed_drafts,
        {forms.MAKING: _ANY_CAUSE},
        "created_at",
        "-created_at",
        failure_rows.drafts,
    ),
}
