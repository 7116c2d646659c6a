"""Reads what a calendar shows: publications, free slots, blackouts and planned digests, by outlet and day.

The number of statements doesn't grow with the number of rows; a cell shows some posts and counts the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Q
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from config.core.datetimes import format_utc
from config.core.ids import encode
from pipeline import labels, limits, publish
from pipeline.models import Outlet, Publication, PublicationStatus, PublishQueue, Series
from pipeline.pages.calendar.date_range import DAY, MONTH, DateRange
from pipeline.review import explanation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace

SHOWN: Final = {"day": 200, "week": 6, "month": 3}
"""Posts that a cell shows, by view."""
DIGESTS_OF_MONTH: Final = 2
"""Digests of a day that the month's view shows."""
READ_MOST: Final = 5000
"""The most publications that are read for a view."""
EXPLAINED: Final = 12
"""Publications of a view that say why they are late or failed; the others only link to their item."""
_COLUMNS: Final = (
    "id",
    "version",
    "outlet_id",
    "status",
    "due_at",
    "published_at",
    "next_attempt_at",
    "late_policy",
    "max_lateness_minutes",
    "item_id",
    "item__version",
    "item__title",
    "item__excerpt",
    "item__bucket",
    "item__held",
    "item__is_sample",
)


@dataclass(frozen=True)
class CalendarCard:
    """A publication at its place in the calendar: at its due time, or at the time it was published."""

    row: Mapping[str, Any]
    moment: datetime
    local: datetime
    tone: str
    label: str
    is_late: bool
    outlet: str

    @property
    def title(self) -> str:
        return self.row["item__title"] or self.row["item__excerpt"] or _("Untitled")

    @property
    def is_sample(self) -> bool:
        return bool(self.row["item__is_sample"])

    @property
    def can_move(self) -> bool:
        """True where the post can be moved: it is scheduled."""
        return bool(self.row["status"] == PublicationStatus.SCHEDULED)

    @property
    def time(self) -> str:
        return f"{self.local:%H:%M}"


@dataclass(frozen=True)
class OpenSlot:
    """A free slot of an outlet; `time` is on the clocks of the zone."""

    moment: datetime
    time: str
    query: str
    """The query string that names the slot to the page which puts an item there."""
    outlet: str
    outlet_id: str


class PlannedDigest(NamedTuple):
    """A digest that a series is going to make; `time` is on the clocks of the zone, `name` the series'."""

    moment: datetime
    time: str
    name: str


class CellEntry(NamedTuple):
    """An entry of a cell; exactly one of `card`, `slot` and `digest` is set."""

    moment: datetime
    card: CalendarCard | None = None
    slot: OpenSlot | None = None
    digest: PlannedDigest | None = None


@dataclass
class CalendarCell:
    """A day of one outlet, or of all of them; `more` of its `total` posts aren't shown."""

    day: date
    cards: list[CalendarCard] = field(default_factory=list)
    openings: list[OpenSlot] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    """Why the day has no slots: the reason of each blackout that touches it."""
    planned: list[PlannedDigest] = field(default_factory=list)
    """Digests that are to be made."""
    more: int = 0
    total: int = 0
    free: int = 0
    """Number of free slots of all outlets; only a day lists them here, a week has them in its lanes."""

    @property
    def entries(self) -> list[CellEntry]:
        """All that the cell shows, in order of time; at the same moment a post comes first."""
        return _sort_entries(self.cards, self.openings, self.planned)

    @property
    def first_entries(self) -> list[CellEntry]:
        """The entries that the cell shows in a month's view."""
        return _sort_entries(self.cards[: SHOWN[MONTH]], (), self.planned[:DIGESTS_OF_MONTH])


@dataclass(frozen=True)
class CalendarRow:
    """An outlet's lane with a cell for each day; `queue`
    is None where neither it nor the workspace has one.
    """

    outlet: Outlet
    queue: PublishQueue | None
    cells: tuple[CalendarCell, ...]

    @property
    def public_id(self) -> str:
        return encode("out", self.outlet.pk)


@dataclass(frozen=True)
class CalendarGrid:
    """All that a view shows; `is_cut` where there are more publications than were read."""

    lanes: tuple[CalendarRow, ...]
    days: tuple[CalendarCell, ...]
    """Each day with all its lanes together."""
    total: int
    is_cut: bool
    late: int
    failed: int
    lasts: Mapping[str, int]
    """Number of scheduled posts by what a hold that outlasts their time would do with them."""


def _sort_entries(
    cards: Iterable[CalendarCard], openings: Iterable[OpenSlot], digests: Iterable[PlannedDigest]
) -> list[CellEntry]:
    """Return the entries in order of time; sorting is stable, so at the same moment a post comes first."""
    entries = [
        *(CellEntry(card.moment, card=card) for card in cards),
        *(CellEntry(slot.moment, slot=slot) for slot in openings),
        *(CellEntry(digest.moment, digest=digest) for digest in digests),
    ]
    return sorted(entries, key=lambda entry: entry.moment)


def read(workspace: Workspace, span: DateRange, *, only: UUID | None, now: datetime) -> CalendarGrid:
    """Return what stands on these days; `only` is the outlet that the view is narrowed to, None for all."""
    outlets = list(
        Outlet.objects.of(workspace).filter(deleted_at=None).defer("credentials", "config").order_by("id")
    )
    rows = _read_publications(workspace, span, only)
    used_outlet_ids = {row["outlet_id"] for row in rows}
    deleted_outlets = Outlet.objects.of(workspace).filter(
        pk__in=used_outlet_ids - {outlet.pk for outlet in outlets}
    )
    # A simulated outlet reaches nobody: it has a lane where something stands in it.
    with_lane = [
        outlet for outlet in outlets if not outlet.is_simulated or outlet.pk in used_outlet_ids
    ] + list(deleted_outlets)
    if only is not None:
        with_lane = [outlet for outlet in with_lane if outlet.pk == only]
    names = {outlet.pk: outlet.name for outlet in with_lane}
    cards = [_build_card(row, span, now, names) for row in rows[:READ_MOST]]
    queues = {row.pk: row for row in PublishQueue.objects.of(workspace)}
    lanes = tuple(_build_lane(outlet, _queue_of(outlet, queues), span, now) for outlet in with_lane)
    _place_cards(lanes, cards, SHOWN[span.view])
    days = _merge_lanes(lanes, span)
    _add_planned_digests(workspace, days, span, now)
    return CalendarGrid(
        lanes,
        days,
        total=len(cards),
        is_cut=len(rows) > READ_MOST,
        late=sum(card.is_late for card in cards),
        failed=sum(
            card.row["status"] in {PublicationStatus.FAILED, PublicationStatus.UNKNOWN} for card in cards
        ),
        lasts=Counter(card.row["late_policy"] for card in cards if card.can_move),
    )


def reasons(board: CalendarGrid, now: datetime) -> dict[UUID, str]:
    """Return by id why late or failed publications aren't
    published, for the first `EXPLAINED` of those shown.
    """
    publication_ids = [
        card.row["id"]
        for cell in board.days
        for card in cell.cards
        if card.is_late or card.row["status"] in {PublicationStatus.FAILED, PublicationStatus.UNKNOWN}
    ][:EXPLAINED]
    rows = Publication.everywhere.select_related("item__raw_item", "outlet", "workspace", "queue")
    messages = {}
    for row in rows.filter(pk__in=publication_ids) if publication_ids else ():
        blocker = next(explanation.blockers_of(row, now), None)
        messages[row.pk] = blocker.message if blocker else _("Publishing shortly")
    return messages


def _read_publications(workspace: Workspace, span: DateRange, only: UUID | None) -> list[dict[str, Any]]:
    """Return publications in order of time; each of the three ways to be on these days has its own index."""
    bounds = (span.starts_at, span.ends_at - timedelta(microseconds=1))
    publications = Publication.objects.of(workspace).live()
    if only is not None:
        # Before the cut, so that one outlet alone shows more.
        publications = publications.filter(outlet_id=only)
    querysets = (
        publications.unsent().filter(due_at__range=bounds).order_by("due_at", "id"),
        publications.published().filter(published_at__range=bounds).order_by("published_at", "id"),
        publications.filter(
            Q(status=PublicationStatus.FAILED) | Q(status=PublicationStatus.UNKNOWN), due_at__range=bounds
        ).order_by("due_at", "id"),
    )
    publication_rows = [row for rows in querysets for row in rows.values(*_COLUMNS)[: READ_MOST + 1]]
    return sorted(publication_rows, key=lambda row: (_moment_of(row), row["id"]))


def _moment_of(row: Mapping[str, Any]) -> datetime:
    """Return the publication's place in time: when it was published, else when it is due."""
    moment: datetime = row["published_at"] if row["status"] == PublicationStatus.PUBLISHED else row["due_at"]
    return moment


def _build_card(
    row: Mapping[str, Any], span: DateRange, now: datetime, names: Mapping[UUID, str]
) -> CalendarCard:
    """Return the card of a publication, labelled as late or on hold where it is."""
    moment = _moment_of(row)
    is_scheduled = row["status"] == PublicationStatus.SCHEDULED
    is_late = is_scheduled and moment < now - limits.LATE_AFTER
    is_held = is_scheduled and row["item__held"]
    tone, _icon, label = labels.CALENDAR["held" if is_held else "late" if is_late else row["status"]]
    local, outlet = moment.astimezone(span.zone), names.get(row["outlet_id"], "")
    return CalendarCard(row, moment, local, tone, str(label), is_late, outlet)


def _queue_of(outlet: Outlet, queues: Mapping[UUID, PublishQueue]) -> PublishQueue | None:
    """Return the outlet's own queue, else the workspace's default; None where there is neither."""
    own = queues.get(outlet.queue_id) if outlet.queue_id else None
    return own or next((row for row in queues.values() if row.is_default), None)


def _build_lane(outlet: Outlet, queue: PublishQueue | None, span: DateRange, now: datetime) -> CalendarRow:
    """Return an outlet's days with its free slots and blackouts; a month shows no slots."""
    cells = tuple(CalendarCell(day.on) for day in span.days)
    if queue is None or outlet.deleted_at is not None or not publish.has_zone(queue):
        return CalendarRow(outlet, queue, cells)
    by_day = {cell.day: cell for cell in cells}
    if not queue.is_paused and span.view != MONTH:
        after = max(now, span.starts_at - timedelta(microseconds=1))
        for slot in takewhile(
            lambda slot: slot.moment < span.ends_at, publish.moments_of(queue, after=after)
        ):
            local = slot.moment.astimezone(span.zone)
            public_id = encode("out", outlet.pk)
            query = urlencode({"outlet": public_id, "at": format_utc(slot.moment)})
            by_day[local.date()].openings.append(
                OpenSlot(slot.moment, f"{local:%H:%M}", query, outlet.name, public_id)
            )
    for (start, end), blackout in zip(publish.blackouts_of(queue), queue.blackouts, strict=True):
        for day in span.days:
            if start < day.ends_at and end > day.starts_at:
                by_day[day.on].closed.append(blackout["reason"] or _("No slots"))
    return CalendarRow(outlet, queue, cells)


def _place_cards(lanes: Sequence[CalendarRow], cards: Iterable[CalendarCard], max_shown: int) -> None:
    """Put each card into its cell, where `max_shown` are
    shown, and remove the slots that posts have taken.
    """
    cells = {(lane.outlet.pk, cell.day): cell for lane in lanes for cell in lane.cells}
    taken: defaultdict[UUID, set[datetime]] = defaultdict(set)
    for card in cards:
        cell = cells.get((card.row["outlet_id"], card.local.date()))
        if cell is None:
            continue
        taken[card.row["outlet_id"]].add(card.moment)
        cell.total += 1
        if len(cell.cards) < max_shown:
            cell.cards.append(card)
        else:
            cell.more += 1
    for lane in lanes:
        for cell in lane.cells:
            cell.openings = [slot for slot in cell.openings if slot.moment not in taken[lane.outlet.pk]]


def _merge_lanes(lanes: Sequence[CalendarRow], span: DateRange) -> tuple[CalendarCell, ...]:
    """Return each day with what all lanes have on it, in order of time."""
    max_shown = SHOWN[span.view] * (4 if span.view != DAY else 1)
    merged_days = []
    for number, day in enumerate(span.days):
        cells = [lane.cells[number] for lane in lanes]
        cards = sorted((card for cell in cells for card in cell.cards), key=lambda card: card.moment)
        total = sum(cell.total for cell in cells)
        shown_cards = cards[:max_shown]
        closed_reasons = dict.fromkeys(reason for cell in cells for reason in cell.closed)
        openings = [slot for cell in cells for slot in cell.openings]
        merged_days.append(
            CalendarCell(
                day.on,
                shown_cards,
                openings if span.view == DAY else [],
                closed=list(closed_reasons),
                more=total - len(shown_cards),
                total=total,
                free=len(openings),
            )
        )
    return tuple(merged_days)


def _add_planned_digests(
    workspace: Workspace, days: Sequence[CalendarCell], span: DateRange, now: datetime
) -> None:
    """Add the digests that series will make in the range to their days."""
    by_day = {cell.day: cell for cell in days}
    after = max(now, span.starts_at - timedelta(microseconds=1))
    active_series = (
        Series.objects.of(workspace).filter(test=False, is_paused=False, deleted_at=None).order_by("id")
    )
    for series in filter(publish.has_zone, active_series):
        for slot in takewhile(
            lambda slot: slot.moment < span.ends_at, publish.moments_of(series, after=after)
        ):
            local = slot.moment.astimezone(span.zone)
            by_day[local.date()].planned.append(PlannedDigest(slot.moment, f"{local:%H:%M}", series.name))
