"""Finds what failed and what is late, by section of the list of problems.

The number of SQL queries is bounded: one for all counts, a few for each section, and a few for each of the first
late publications, whose causes are found as the command `explain` finds them.
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
    RawItem,
    RawItemStatus,
    Source,
)
from pipeline.pages.failures import forms, publication_rows
from pipeline.pages.failures import rows as failure_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django.utils.functional import _StrOrPromise, _StrPromise

    from accounts.pages.page_access import Place

ROWS: Final = 15
"""The most rows of each section on the page of all sections."""
MORE_ROWS: Final = 100
"""The most rows of a section that is shown alone: as many as one act handles at once."""


@dataclass(frozen=True)
class FailureSection:
    """A section with its rows; `description` is the line under its label, and `is_cut` says that more exist."""

    name: str
    label: str
    description: str
    count: CappedCount
    rows: Sequence[failure_rows.FailureRow]
    is_cut: bool


@dataclass(frozen=True)
class SectionDefinition:
    """The definition of a section: how its rows are found, filtered, ordered and displayed.

    `find` returns the query of all its rows, `causes` narrow it by a cause, `time_column` is the column that the
    filter `since` compares, and `build_rows` builds the displayed rows. `description` is the line under its label.
    """

    kind: str
    label: _StrPromise
    description: _StrOrPromise
    find: Callable[[Place, datetime], QuerySet[Any]]
    causes: Mapping[str, Q]
    time_column: str
    order: str
    build_rows: Callable[[Place, Sequence[Any], datetime], list[failure_rows.FailureRow]]
    outlet: str = ""
    """The column that the filter by outlet compares; empty if the rows belong to no outlet."""


def list_sections(
    place: Place, filter_form: forms.FailureFilter, *, alone: str, now: datetime
) -> list[FailureSection]:
    """Return the sections that have rows; `alone` names the only one to return, with up to `MORE_ROWS` rows."""
    queries_by_section = [
        (name, definition, rows)
        for name, definition, rows in _filtered_queries(place, filter_form, now)
        if alone in {"", name}
    ]
    if not queries_by_section:
        return []
    counts = count_each(*(rows for _name, _definition, rows in queries_by_section))
    max_rows = MORE_ROWS if alone else ROWS
    return [
        FailureSection(
            name,
            str(definition.label),
            str(definition.description),
            count,
            definition.build_rows(place, list(rows.order_by(definition.order, "id")[:max_rows]), now),
            is_cut=count.number > max_rows,
        )
        for (name, definition, rows), count in zip(queries_by_section, counts, strict=True)
        if count
    ]


def _filtered_queries(
    place: Place, filter_form: forms.FailureFilter, now: datetime
) -> Iterator[tuple[str, SectionDefinition, QuerySet[Any]]]:
    """Yield the name, definition and filtered query of each section that the filters leave."""
    filters = filter_form.cleaned_data
    starts_at, outlet_id = filter_form.starts_at(now), filter_form.outlet_id
    for name, definition in SECTIONS.items():
        if filters["kind"] not in {"", definition.kind} or (outlet_id is not None and not definition.outlet):
            continue
        if filters["cause"] and filters["cause"] not in definition.causes:
            continue
        rows = definition.find(place, now)
        if filters["cause"]:
            rows = rows.filter(definition.causes[filters["cause"]])
        if outlet_id is not None:
            rows = rows.filter(**{definition.outlet: outlet_id})
        if starts_at is not None:
            rows = rows.filter(**{f"{definition.time_column}__gte": starts_at})
        yield name, definition, rows


def _late_publications(place: Place, now: datetime) -> QuerySet[Any]:
    late_publications: QuerySet[Any] = Publication.objects.of(place.workspace).live().late(now)
    return late_publications


def _publications_by_hand(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    return _with_item_and_outlet(Publication.objects.of(place.workspace).live().unsent().by_hand())


def _failed_publications(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    return _with_item_and_outlet(Publication.objects.of(place.workspace).live().failed())


def _unknown_publications(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    return _with_item_and_outlet(Publication.objects.of(place.workspace).live().unknown())


def _with_item_and_outlet(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the publications with what their rows show."""
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

SECTIONS: Final[Mapping[str, SectionDefinition]] = {
    "late": SectionDefinition(
        kind="publications",
        label=gettext_lazy("Late"),
        description=gettext_lazy("Overdue posts"),
        find=_late_publications,
        causes={forms.LATE: _ANY_CAUSE},
        time_column="due_at",
        order="due_at",
        build_rows=publication_rows.build_late_rows,
        outlet="outlet_id",
    ),
    "by_hand": SectionDefinition(
        kind="publications",
        label=gettext_lazy("Manual posts"),
        description=gettext_lazy("Post these by hand, then mark them posted"),
        find=_publications_by_hand,
        causes={forms.BY_HAND: _ANY_CAUSE},
        time_column="due_at",
        order="due_at",
        build_rows=publication_rows.build_by_hand_rows,
        outlet="outlet_id",
    ),
    "outlets": SectionDefinition(
        kind="outlets",
        label=gettext_lazy("Outlets to reconnect"),
        description=gettext_lazy("Log-in expired. Posts are waiting."),
        find=_outlets_to_reconnect,
        causes={forms.ACCOUNT: _ANY_CAUSE},
        time_column="updated_at",
        order="-updated_at",
        build_rows=failure_rows.build_outlet_rows,
        outlet="id",
    ),
    "failed": SectionDefinition(
        kind="publications",
        label=gettext_lazy("Publishing failed"),
        description=gettext_lazy("Not retried automatically"),
        find=_failed_publications,
        causes={
            forms.ACCOUNT: Q(error__class="account"),
            forms.CONTENT: Q(error__class="content"),
            forms.PLATFORM: ~Q(error__class="account") & ~Q(error__class="content"),
        },
        time_column="updated_at",
        order="-updated_at",
        build_rows=publication_rows.build_failed_rows,
        outlet="outlet_id",
    ),
    "unknown": SectionDefinition(
        kind="publications",
        label=gettext_lazy("Outcome unknown"),
        description=gettext_lazy("Looked up at the platform before anything is sent again"),
        find=_unknown_publications,
        causes={forms.UNKNOWN: _ANY_CAUSE},
        time_column="updated_at",
        order="-updated_at",
        build_rows=publication_rows.build_unknown_rows,
        outlet="outlet_id",
    ),
    "mailings": SectionDefinition(
        kind="mailings",
        label=gettext_lazy("Stopped mailings"),
        description=gettext_lazy("Waiting to be resumed"),
        find=_stopped_mailings,
        causes={forms.STOPPED: _ANY_CAUSE},
        time_column="updated_at",
        order="-updated_at",
        build_rows=failure_rows.build_mailing_rows,
        outlet="outlet_id",
    ),
    "making": SectionDefinition(
        kind="items",
        label=gettext_lazy("Still generating"),
        description=gettext_lazy("Started over an hour ago"),
        find=_items_long_in_making,
        causes={forms.LATE: _ANY_CAUSE},
        time_column="created_at",
        order="id",
        build_rows=failure_rows.build_generating_rows,
    ),
    "items": SectionDefinition(
        kind="items",
        label=gettext_lazy("Failed"),
        description=gettext_lazy("Retry regenerates them"),
        find=_failed_items,
        causes={forms.MAKING: _ANY_CAUSE},
        time_column="updated_at",
        order="-updated_at",
        build_rows=failure_rows.build_failed_item_rows,
    ),
    "raw": SectionDefinition(
        kind="raw",
        label=gettext_lazy("Raw items without content"),
        description=gettext_lazy("Items waiting for credits resume automatically"),
        find=_stuck_raw_items,
        causes={
            forms.MAKING: Q(status=RawItemStatus.FAILED),
            forms.CREDITS: Q(status=RawItemStatus.WAITING_QUOTA),
        },
        time_column="updated_at",
        order="-updated_at",
        build_rows=failure_rows.build_raw_item_rows,
    ),
    "sources": SectionDefinition(
        kind="sources",
        label=gettext_lazy("Failing sources"),
        description="",
        find=_failing_sources,
        causes={forms.FETCHING: _ANY_CAUSE},
        time_column="failing_since",
        order="-failing_since",
        build_rows=failure_rows.build_source_rows,
    ),
    "deliveries": SectionDefinition(
        kind="deliveries",
        label=gettext_lazy("Deliveries without content"),
        description=gettext_lazy("Deleted after 3 days"),
        find=_failed_deliveries,
        causes={forms.MAKING: _ANY_CAUSE},
        time_column="created_at",
        order="-id",
        build_rows=failure_rows.build_delivery_rows,
    ),
    "drafts": SectionDefinition(
        kind="drafts",
        label=gettext_lazy("Failed persona drafts"),
        description=gettext_lazy("Deleted after 7 days"),
        find=_failed_drafts,
        causes={forms.MAKING: _ANY_CAUSE},
        time_column="created_at",
        order="-created_at",
        build_rows=failure_rows.build_draft_rows,
    ),
}
