"""What failed and what is late, by section: each row with why, and what clears it.

The number of statements has a bound: one for all counts, one for each section, and a few for each of the first late
publications, whose causes are worked out as `explain` does it.
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
from pipeline.pages.failures import display, forms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django.utils.functional import _StrOrPromise, _StrPromise

    from accounts.pages.page_access import Place

ROWS: Final = 15
MORE_ROWS: Final = 100
"""Of a section that is looked at alone; as many as one act clears at once."""


@dataclass(frozen=True)
class FailureSection:
    name: str
    label: str
    said: str
    count: CappedCount
    rows: Sequence[display.FailureRow]
    is_cut: bool


@dataclass(frozen=True)
class FailureList:
    """`find` gives the rows of a cause, None for all of them; `field` is the moment that `since` narrows."""

    kind: str
    label: _StrPromise
    said: _StrOrPromise
    find: Callable[[Place, datetime], QuerySet[Any]]
    causes: Mapping[str, Q]
    field: str
    order: str
    tell: Callable[[Place, Sequence[Any], datetime], list[display.FailureRow]]
    outlet: str = ""
    """The column by which it is narrowed to an outlet; empty where it has nothing to do with one."""


def sections(
    place: Place, narrowed: forms.FailureFilter, *, alone: str, now: datetime
) -> list[FailureSection]:
    """Those that have rows; `alone` is the one that is shown further than its first rows."""
    found = [(name, kind, rows) for name, kind, rows in _asked(place, narrowed, now) if alone in {"", name}]
    if not found:
        return []
    counts = count_each(*(rows for _name, _kind, rows in found))
    most = MORE_ROWS if alone else ROWS
    return [
        FailureSection(
            name,
            str(kind.label),
            str(kind.said),
            count,
            kind.tell(place, list(rows.order_by(kind.order, "id")[:most]), now),
            is_cut=count.number > most,
        )
        for (name, kind, rows), count in zip(found, counts, strict=True)
        if count
    ]


def _asked(
    place: Place, narrowed: forms.FailureFilter, now: datetime
) -> Iterator[tuple[str, FailureList, QuerySet[Any]]]:
    given = narrowed.cleaned_data
    starts_at, outlet = narrowed.starts_at(now), narrowed.outlet_asked
    for name, kind in SECTIONS.items():
        if given["kind"] not in {"", kind.kind} or (outlet is not None and not kind.outlet):
            continue
        if given["cause"] and given["cause"] not in kind.causes:
            continue
        rows = kind.find(place, now)
        if given["cause"]:
            rows = rows.filter(kind.causes[given["cause"]])
        if outlet is not None:
            rows = rows.filter(**{kind.outlet: outlet})
        if starts_at is not None:
            rows = rows.filter(**{f"{kind.field}__gte": starts_at})
        yield name, kind, rows


def _late(place: Place, now: datetime) -> QuerySet[Any]:
    # With what waits for a person: that is a cause of its own here.
    rows = Publication.objects.of(place.workspace).live().unsent()
    found: QuerySet[Any] = rows.filter(due_at__lt=now - limits.LATE_AFTER)
    return found


def _failed(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    rows = Publication.objects.of(place.workspace).live().unresolved()
    found: QuerySet[Any] = rows.select_related("item", "outlet")
    return found.defer("outlet__credentials", "outlet__config", "item__content", "item__body")


def _not_made(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    found: QuerySet[Any] = GeneratedItem.objects.of(place.workspace).live().failed()
    return found.select_related("raw_item").defer("content", "body")


def _long_made(place: Place, now: datetime) -> QuerySet[Any]:
    # Ids rise with time, so that the list's own index has what is old.
    rows = GeneratedItem.objects.of(place.workspace).live().in_making()
    found: QuerySet[Any] = rows.filter(id__lt=first_id_of(now - limits.MAKING_LATE_AFTER))
    return found.select_related("raw_item", "generation").defer("content", "body", "generation__answers")


def _raw(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    found: QuerySet[Any] = RawItem.objects.of(place.workspace).live().stuck()
    return found.select_related("source").defer("metadata", "media")


def _sources(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    found: QuerySet[Any] = Source.objects.of(place.workspace).live().failing()
    return found


def _outlets(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    found: QuerySet[Any] = Outlet.objects.of(place.workspace).to_reconnect()
    return found.defer("credentials", "config")


def _drafts(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    found: QuerySet[Any] = PersonaDraft.objects.of(place.workspace).failed()
    return found.defer("material", "posts", "sections")


def _mailings(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    found: QuerySet[Any] = Mailing.objects.of(place.workspace).filter(
        status=MailingStatus.STOPPED, outlet__deleted_at=None
    )
    return found.select_related("outlet").defer("html", "text", "outlet__credentials", "outlet__config")


def _deliveries(place: Place, now: datetime) -> QuerySet[Any]:
    del now
    found: QuerySet[Any] = InboundDelivery.objects.of(place.workspace).filter(
        status=InboundDeliveryStatus.FAILED, test=False, source__deleted_at=None
    )
    return found.select_related("source").defer("body", "made", "head")


_ANY: Final = Q()
_BY_HAND: Final = Q(step=Publication.BY_HAND)
_KNOWN: Final = Q(status=PublicationStatus.FAILED)

SECTIONS: Final[Mapping[str, FailureList]] = {
    "late": FailureList(
        "publications",
        gettext_lazy("Late"),
        gettext_lazy("Overdue posts"),
        _late,
        {forms.LATE: ~_BY_HAND, forms.BY_HAND: _BY_HAND},
        "due_at",
        "due_at",
        display.late,
        outlet="outlet_id",
    ),
    "outlets": FailureList(
        "outlets",
        gettext_lazy("Outlets to reconnect"),
        gettext_lazy("Log-in expired. Posts are waiting."),
        _outlets,
        {forms.ACCOUNT: _ANY},
        "updated_at",
        "-updated_at",
        display.outlets,
        outlet="id",
    ),
    "failed": FailureList(
        "publications",
        gettext_lazy("Publishing failed"),
        gettext_lazy("Not retried automatically"),
        _failed,
        {
            forms.ACCOUNT: _KNOWN & Q(error__class="account"),
            forms.CONTENT: _KNOWN & Q(error__class="content"),
            forms.PLATFORM: _KNOWN & ~Q(error__class="account") & ~Q(error__class="content"),
            forms.UNKNOWN: Q(status=PublicationStatus.UNKNOWN),
        },
        "updated_at",
        "-updated_at",
        display.failed,
        outlet="outlet_id",
    ),
    "mailings": FailureList(
        "mailings",
        gettext_lazy("Stopped mailings"),
        gettext_lazy("Waiting to be resumed"),
        _mailings,
        {forms.STOPPED: _ANY},
        "updated_at",
        "-updated_at",
        display.mailings,
        outlet="outlet_id",
    ),
    "making": FailureList(
        "items",
        gettext_lazy("Still generating"),
        gettext_lazy("Started over an hour ago"),
        _long_made,
        {forms.LATE: _ANY},
        "created_at",
        "id",
        display.long_made,
    ),
    "items": FailureList(
        "items",
        gettext_lazy("Failed"),
        gettext_lazy("Retry regenerates them"),
        _not_made,
        {forms.MAKING: _ANY},
        "updated_at",
        "-updated_at",
        display.not_made,
    ),
    "raw": FailureList(
        "raw",
        gettext_lazy("Raw items without content"),
        gettext_lazy("Items waiting for credits resume automatically"),
        _raw,
        {forms.MAKING: Q(status=RawItemStatus.FAILED), forms.CREDITS: Q(status=RawItemStatus.WAITING_QUOTA)},
        "updated_at",
        "-updated_at",
        display.raw,
    ),
    "sources": FailureList(
        "sources",
        gettext_lazy("Failing sources"),
        "",
        _sources,
        {forms.FETCHING: _ANY},
        "failing_since",
        "-failing_since",
        display.sources,
    ),
    "deliveries": FailureList(
        "deliveries",
        gettext_lazy("Deliveries without content"),
        gettext_lazy("Deleted after 3 days"),
        _deliveries,
        {forms.MAKING: _ANY},
        "created_at",
        "-id",
        display.deliveries,
    ),
    "drafts": FailureList(
        "drafts",
        gettext_lazy("Failed persona drafts"),
        gettext_lazy("Deleted after 7 days"),
        _drafts,
        {forms.MAKING: _ANY},
        "created_at",
        "-created_at",
        display.drafts,
    ),
}
