"""What stands in a calendar: publications, free slots, blackouts and digests to come, by outlet and day.

The number of statements doesn't grow with what there is; a cell shows some of it and says how much more there is.
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

from config.core.datetimes import as_z
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
"""Posts of a cell that are shown, by view."""
DIGESTS_OF_MONTH: Final = 2
"""Digests of a day that a month shows."""
READ_MOST: Final = 5000
"""Publications of a view that are read at most."""
EXPLAINED: Final = 12
"""Publications of a view that say why they are late or failed; the others lead to their item."""
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
    """A publication where it stands: at its promise, or when it came out."""

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
        return bool(self.row["status"] == PublicationStatus.SCHEDULED)

    @property
    def time(self) -> str:
        return f"{self.local:%H:%M}"


@dataclass(frozen=True)
class OpenSlot:
    moment: datetime
    time: str
    query: str
    """Names it to the page that puts an item there."""
    outlet: str
    outlet_id: str


class PlannedDigest(NamedTuple):
    moment: datetime
    time: str
    name: str


class CellEntry(NamedTuple):
    """One of the three stands in it."""

    moment: datetime
    card: CalendarCard | None = None
    slot: OpenSlot | None = None
    digest: PlannedDigest | None = None


@dataclass
class CalendarCell:
    """A day of one outlet, or of all of them; of its `total` posts `more` aren't shown."""

    day: date
    cards: list[CalendarCard] = field(default_factory=list)
    openings: list[OpenSlot] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    """Why nothing is planned there, for each blackout that touches the day."""
    planned: list[PlannedDigest] = field(default_factory=list)
    """The digests that are to be made."""
    more: int = 0
    total: int = 0
    free: int = 0
    """Free slots of all outlets; a day alone shows them, a week has them in its lanes."""

    @property
    def entries(self) -> list[CellEntry]:
        """All that the cell shows, in order of time; of one moment the post comes first."""
        return _in_order(self.cards, self.openings, self.planned)

    @property
    def first_entries(self) -> list[CellEntry]:
        """The first of a cell of a month."""
        return _in_order(self.cards[: SHOWN[MONTH]], (), self.planned[:DIGESTS_OF_MONTH])


@dataclass(frozen=True)
class CalendarRow:
    """An outlet's lane, a cell for each day; `queue` is None where it has none, its own or the workspace's."""

    outlet: Outlet
    queue: PublishQueue | None
    cells: tuple[CalendarCell, ...]

    @property
    def public_id(self) -> str:
        return encode("out", self.outlet.pk)


@dataclass(frozen=True)
class CalendarGrid:
    lanes: tuple[CalendarRow, ...]
    days: tuple[CalendarCell, ...]
    """All lanes of a day together."""
    total: int
    is_cut: bool
    late: int
    failed: int
    lasts: Mapping[str, int]
    """What is scheduled in it, by what a hold that lasts past its time would do."""


def _in_order(
    cards: Iterable[CalendarCard], openings: Iterable[OpenSlot], digests: Iterable[PlannedDigest]
) -> list[CellEntry]:
    found = [
        *(CellEntry(card.moment, card=card) for card in cards),
        *(CellEntry(slot.moment, slot=slot) for slot in openings),
        *(CellEntry(digest.moment, digest=digest) for digest in digests),
    ]
    return sorted(found, key=lambda one: one.moment)


def read(workspace: Workspace, span: DateRange, *, only: UUID | None, now: datetime) -> CalendarGrid:
    """What stands on these days; `only` is the outlet that the view is narrowed to, None for all."""
    outlets = list(
        Outlet.objects.of(workspace).filter(deleted_at=None).defer("credentials", "config").order_by("id")
    )
    rows = _rows(workspace, span, only)
    used = {row["outlet_id"] for row in rows}
    gone = Outlet.objects.of(workspace).filter(pk__in=used - {outlet.pk for outlet in outlets})
    # A simulated outlet reaches nobody: it has a lane where something stands in it.
    with_lane = [outlet for outlet in outlets if not outlet.is_simulated or outlet.pk in used] + list(gone)
    if only is not None:
        with_lane = [outlet for outlet in with_lane if outlet.pk == only]
    names = {outlet.pk: outlet.name for outlet in with_lane}
    cards = [_card(row, span, now, names) for row in rows[:READ_MOST]]
    queues = {row.pk: row for row in PublishQueue.objects.of(workspace)}
    lanes = tuple(_lane(outlet, _queue_of(outlet, queues), span, now) for outlet in with_lane)
    _put(lanes, cards, SHOWN[span.view])
    days = _together(lanes, span)
    _plan_digests(workspace, days, span, now)
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
    """Why publications that are late or failed aren't out, by id, for the first of those that are shown."""
    wanted = [
        card.row["id"]
        for cell in board.days
        for card in cell.cards
        if card.is_late or card.row["status"] in {PublicationStatus.FAILED, PublicationStatus.UNKNOWN}
    ][:EXPLAINED]
    rows = Publication.everywhere.select_related("item__raw_item", "outlet", "workspace", "queue")
    found = {}
    for row in rows.filter(pk__in=wanted) if wanted else ():
        blocker = next(explanation.blockers_of(row, now), None)
        found[row.pk] = blocker.message if blocker else _("Publishing shortly")
    return found


def _rows(workspace: Workspace, span: DateRange, only: UUID | None) -> list[dict[str, Any]]:
    """In order of time; each of the three ways to be there has an index of its own."""
    between = (span.starts_at, span.ends_at - timedelta(microseconds=1))
    publications = Publication.objects.of(workspace).live()
    if only is not None:
        # Before the cut, so that one outlet alone shows more.
        publications = publications.filter(outlet_id=only)
    ways = (
        publications.unsent().filter(due_at__range=between).order_by("due_at", "id"),
        publications.published().filter(published_at__range=between).order_by("published_at", "id"),
        publications.filter(
            Q(status=PublicationStatus.FAILED) | Q(status=PublicationStatus.UNKNOWN), due_at__range=between
        ).order_by("due_at", "id"),
    )
    found = [row for rows in ways for row in rows.values(*_COLUMNS)[: READ_MOST + 1]]
    return sorted(found, key=lambda row: (_moment(row), row["id"]))


def _moment(row: Mapping[str, Any]) -> datetime:
    """Where it stands: when it came out, else when it was promised."""
    moment: datetime = row["published_at"] if row["status"] == PublicationStatus.PUBLISHED else row["due_at"]
    return moment


def _card(row: Mapping[str, Any], span: DateRange, now: datetime, names: Mapping[UUID, str]) -> CalendarCard:
    moment = _moment(row)
    is_scheduled = row["status"] == PublicationStatus.SCHEDULED
    is_late = is_scheduled and moment < now - limits.LATE_AFTER
    is_held = is_scheduled and row["item__held"]
    tone, _icon, label = labels.CALENDAR["held" if is_held else "late" if is_late else row["status"]]
    local, outlet = moment.astimezone(span.zone), names.get(row["outlet_id"], "")
    return CalendarCard(row, moment, local, tone, str(label), is_late, outlet)


def _queue_of(outlet: Outlet, queues: Mapping[UUID, PublishQueue]) -> PublishQueue | None:
    """Its own queue, else the workspace's default."""
    own = queues.get(outlet.queue_id) if outlet.queue_id else None
    return own or next((row for row in queues.values() if row.is_default), None)


def _lane(outlet: Outlet, queue: PublishQueue | None, span: DateRange, now: datetime) -> CalendarRow:
    """The days of an outlet with its free slots and blackouts; a month shows no slots."""
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
            query = urlencode({"outlet": public_id, "at": as_z(slot.moment)})
            by_day[local.date()].openings.append(
                OpenSlot(slot.moment, f"{local:%H:%M}", query, outlet.name, public_id)
            )
    for (start, end), blackout in zip(publish.blackouts_of(queue), queue.blackouts, strict=True):
        for day in span.days:
            if start < day.ends_at and end > day.starts_at:
                by_day[day.on].closed.append(blackout["reason"] or _("No slots"))
    return CalendarRow(outlet, queue, cells)


def _put(lanes: Sequence[CalendarRow], cards: Iterable[CalendarCard], most: int) -> None:
    """Put each card into its cell, `most` of them to be shown, and take the slots away that they stand in."""
    cells = {(lane.outlet.pk, cell.day): cell for lane in lanes for cell in lane.cells}
    taken: defaultdict[UUID, set[datetime]] = defaultdict(set)
    for card in cards:
        cell = cells.get((card.row["outlet_id"], card.local.date()))
        if cell is None:
            continue
        taken[card.row["outlet_id"]].add(card.moment)
        cell.total += 1
        if len(cell.cards) < most:
            cell.cards.append(card)
        else:
            cell.more += 1
    for lane in lanes:
        for cell in lane.cells:
            cell.openings = [slot for slot in cell.openings if slot.moment not in taken[lane.outlet.pk]]


def _together(lanes: Sequence[CalendarRow], span: DateRange) -> tuple[CalendarCell, ...]:
    """Each day with what all lanes have on it, in order of time."""
    most = SHOWN[span.view] * (4 if span.view != DAY else 1)
    found = []
    for number, day in enumerate(span.days):
        cells = [lane.cells[number] for lane in lanes]
        cards = sorted((card for cell in cells for card in cell.cards), key=lambda card: card.moment)
        total = sum(cell.total for cell in cells)
        shown = cards[:most]
        reasons = dict.fromkeys(why for cell in cells for why in cell.closed)
        openings = [slot for cell in cells for slot in cell.openings]
        found.append(
            CalendarCell(
                day.on,
                shown,
                openings if span.view == DAY else [],
                closed=list(reasons),
                more=total - len(shown),
                total=total,
                free=len(openings),
            )
        )
    return tuple(found)


def _plan_digests(workspace: Workspace, days: Sequence[CalendarCell], span: DateRange, now: datetime) -> None:
    """The digests that series will make in it."""
    by_day = {cell.day: cell for cell in days}
    after = max(now, span.starts_at - timedelta(microseconds=1))
    rows = Series.objects.of(workspace).filter(test=False, is_paused=False, deleted_at=None).order_by("id")
    for row in filter(publish.has_zone, rows):
        for slot in takewhile(lambda slot: slot.moment < span.ends_at, publish.moments_of(row, after=after)):
            local = slot.moment.astimezone(span.zone)
            by_day[local.date()].planned.append(PlannedDigest(slot.moment, f"{local:%H:%M}", row.name))
