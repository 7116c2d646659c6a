"""Reads what a calendar shows: publications, free slots, blackouts and planned digests, by outlet and day.

The number of SQL queries is bounded, however many rows there are. A cell shows some posts and counts the others.
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
from pipeline.pages.calendar.date_range import DAY, MONTH, WEEK, DateRange
from pipeline.review import explanation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace

MAX_POSTS_SHOWN: Final = {DAY: 200, WEEK: 6, MONTH: 3}
"""The most posts that a cell of one outlet shows, by view."""
MAX_DIGESTS_IN_MONTH: Final = 2
"""The most digests of a day that the month's view shows."""
MAX_PUBLICATIONS_READ: Final = 5000
"""The most publications that are read for a view."""
MAX_EXPLAINED: Final = 12
"""The most publications of a view that say why they are late or failed; the others only link to their item."""
_MERGED_DAY_FACTOR: Final = 4
"""How many times as many posts a day of all outlets shows as a cell of one outlet, in a week or month."""
_COLUMNS: Final = (
    "id",
    "version",
    "outlet_id",
    "status",
    "step",
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
    """A publication in the calendar, at its due time or at the time when it was published.

    `local` is `moment` in the zone of the calendar; `outlet` is the outlet's name.
    """

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
        """True if the post is scheduled, because no other can be moved."""
        return bool(self.row["status"] == PublicationStatus.SCHEDULED)

    @property
    def time(self) -> str:
        return f"{self.local:%H:%M}"


@dataclass(frozen=True)
class OpenSlot:
    """A free slot of an outlet; `time` is the local time in the calendar's zone, as `09:00`."""

    moment: datetime
    time: str
    query: str
    """The query string that names the slot to the page that schedules an item for it."""
    outlet: str
    outlet_id: str


class PlannedDigest(NamedTuple):
    """A digest that a series is going to make; `time` is the local time, `name` the name of the series."""

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
    """A day of one outlet, or of all outlets; `more` of its `total` posts aren't shown."""

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
    """The number of free slots of all outlets. Only the day's view lists them here; a week has them in its lanes."""

    @property
    def entries(self) -> list[CellEntry]:
        """All entries of the cell, in order of time; at the same moment a post comes first."""
        return _sort_entries(self.cards, self.openings, self.planned)

    @property
    def first_entries(self) -> list[CellEntry]:
        """The entries that the cell shows in a month's view."""
        return _sort_entries(self.cards[: MAX_POSTS_SHOWN[MONTH]], (), self.planned[:MAX_DIGESTS_IN_MONTH])


@dataclass(frozen=True)
class CalendarRow:
    """An outlet's lane with a cell for each day; `queue` is `None` if neither outlet nor workspace has one."""

    outlet: Outlet
    queue: PublishQueue | None
    cells: tuple[CalendarCell, ...]

    @property
    def public_id(self) -> str:
        return encode("out", self.outlet.pk)


@dataclass(frozen=True)
class CalendarGrid:
    """All that a view shows; `is_cut` is true if there are more publications than were read."""

    lanes: tuple[CalendarRow, ...]
    days: tuple[CalendarCell, ...]
    """Each day with the entries of all lanes."""
    total: int
    is_cut: bool
    late: int
    failed: int
    lasts: Mapping[str, int]
    """The number of scheduled posts by late policy, which says what a hold that outlasts their time would do."""


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


def read_grid(workspace: Workspace, span: DateRange, *, only: UUID | None, now: datetime) -> CalendarGrid:
    """Return what the calendar shows on these days.

    `only` is the outlet that the view is narrowed to, or `None` for all outlets.
    """
    outlets = list(
        Outlet.objects.of(workspace).filter(deleted_at=None).defer("credentials", "config").order_by("id")
    )
    rows = _read_publications(workspace, span, only)
    used_outlet_ids = {row["outlet_id"] for row in rows}
    deleted_outlets = Outlet.objects.of(workspace).filter(
        pk__in=used_outlet_ids - {outlet.pk for outlet in outlets}
    )
    # A simulated outlet reaches nobody, so it has a lane only if there is something in it.
    outlets_with_lane = [
        outlet for outlet in outlets if not outlet.is_simulated or outlet.pk in used_outlet_ids
    ] + list(deleted_outlets)
    if only is not None:
        outlets_with_lane = [outlet for outlet in outlets_with_lane if outlet.pk == only]
    names = {outlet.pk: outlet.name for outlet in outlets_with_lane}
    cards = [_build_card(row, span, now, names) for row in rows[:MAX_PUBLICATIONS_READ]]
    queues = {row.pk: row for row in PublishQueue.objects.of(workspace)}
    lanes = tuple(_build_lane(outlet, _queue_of(outlet, queues), span, now) for outlet in outlets_with_lane)
    _place_cards(lanes, cards, MAX_POSTS_SHOWN[span.view])
    days = _merge_lanes(lanes, span)
    _add_planned_digests(workspace, days, span, now)
    return CalendarGrid(
        lanes,
        days,
        total=len(cards),
        is_cut=len(rows) > MAX_PUBLICATIONS_READ,
        late=sum(card.is_late for card in cards),
        failed=sum(
            card.row["status"] in {PublicationStatus.FAILED, PublicationStatus.UNKNOWN} for card in cards
        ),
        lasts=Counter(card.row["late_policy"] for card in cards if card.can_move),
    )


def explain_unpublished(board: CalendarGrid, now: datetime) -> dict[UUID, str]:
    """Return by id why late or failed publications aren't published, for the first `MAX_EXPLAINED` shown."""
    publication_ids = [
        card.row["id"]
        for cell in board.days
        for card in cell.cards
        if card.is_late or card.row["status"] in {PublicationStatus.FAILED, PublicationStatus.UNKNOWN}
    ][:MAX_EXPLAINED]
    rows = Publication.everywhere.select_related("item__raw_item", "outlet", "workspace", "queue")
    messages = {}
    for row in rows.filter(pk__in=publication_ids) if publication_ids else ():
        blocker = next(explanation.blockers_of(row, now), None)
        messages[row.pk] = blocker.message if blocker else _("Publishing shortly")
    return messages


def _read_publications(workspace: Workspace, span: DateRange, only: UUID | None) -> list[dict[str, Any]]:
    """Return the publications of these days in order of time.

    Each of the three queries has its own index. Each reads one row more than `MAX_PUBLICATIONS_READ` at most, so
    that the caller sees whether there are more.
    """
    bounds = (span.starts_at, span.ends_at - timedelta(microseconds=1))
    publications = Publication.objects.of(workspace).live()
    if only is not None:
        # The filter comes before the cut, so that a view of one outlet shows more of its posts.
        publications = publications.filter(outlet_id=only)
    querysets = (
        publications.unsent().filter(due_at__range=bounds).order_by("due_at", "id"),
        publications.published().filter(published_at__range=bounds).order_by("published_at", "id"),
        publications.filter(
            Q(status=PublicationStatus.FAILED) | Q(status=PublicationStatus.UNKNOWN), due_at__range=bounds
        ).order_by("due_at", "id"),
    )
    publication_rows = [
        row for rows in querysets for row in rows.values(*_COLUMNS)[: MAX_PUBLICATIONS_READ + 1]
    ]
    return sorted(publication_rows, key=lambda row: (_moment_of(row), row["id"]))


def _moment_of(row: Mapping[str, Any]) -> datetime:
    """Return when the publication was published or, if it wasn't, when it is due."""
    moment: datetime = row["published_at"] if row["status"] == PublicationStatus.PUBLISHED else row["due_at"]
    return moment


def _build_card(
    row: Mapping[str, Any], span: DateRange, now: datetime, names: Mapping[UUID, str]
) -> CalendarCard:
    """Return the card of a publication. A scheduled one that is on hold or late has that label, and one that a person
    has to post says so.
    """
    moment = _moment_of(row)
    is_scheduled = row["status"] == PublicationStatus.SCHEDULED
    is_late = is_scheduled and moment < now - limits.LATE_AFTER
    is_held = is_scheduled and row["item__held"]
    tone, _icon, label = labels.of_calendar(row["status"], row["step"], is_held=is_held, is_late=is_late)
    local, outlet = moment.astimezone(span.zone), names.get(row["outlet_id"], "")
    return CalendarCard(row, moment, local, tone, str(label), is_late, outlet)


def _queue_of(outlet: Outlet, queues: Mapping[UUID, PublishQueue]) -> PublishQueue | None:
    """Return the outlet's own queue or the workspace's default one, or `None` if there is neither."""
    outlet_queue = queues.get(outlet.queue_id) if outlet.queue_id else None
    return outlet_queue or next((row for row in queues.values() if row.is_default), None)


def _build_lane(outlet: Outlet, queue: PublishQueue | None, span: DateRange, now: datetime) -> CalendarRow:
    """Return an outlet's days with the slots and blackouts of its queue.

    Slots are left out in a month's view and if the queue is paused; both are left out if the outlet was deleted,
    or if the queue's time zone no longer exists.
    """
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
    """Add each card to its cell, which shows `max_shown` cards at most, and remove the slots that are taken."""
    cells = {(lane.outlet.pk, cell.day): cell for lane in lanes for cell in lane.cells}
    taken_moments: defaultdict[UUID, set[datetime]] = defaultdict(set)
    for card in cards:
        cell = cells.get((card.row["outlet_id"], card.local.date()))
        if cell is None:
            continue
        taken_moments[card.row["outlet_id"]].add(card.moment)
        cell.total += 1
        if len(cell.cards) < max_shown:
            cell.cards.append(card)
        else:
            cell.more += 1
    for lane in lanes:
        for cell in lane.cells:
            taken = taken_moments[lane.outlet.pk]
            cell.openings = [slot for slot in cell.openings if slot.moment not in taken]


def _merge_lanes(lanes: Sequence[CalendarRow], span: DateRange) -> tuple[CalendarCell, ...]:
    """Return each day with the first posts of all lanes in order of time; only the day's view has the slots."""
    max_shown = MAX_POSTS_SHOWN[span.view] * (_MERGED_DAY_FACTOR if span.view != DAY else 1)
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
    """Add the digests that active series will make in the range to their days."""
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
