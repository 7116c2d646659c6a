"""One publication's numbers, asked of its platform at the ages of the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog
from django.db import transaction

from analytics import limits, rollup
from analytics.models import Measurement, Measuring
from analytics.states import DONE
from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.insert import insert
from config.core.database.prepared_queries import Prepared
from pipeline import publish
from pipeline.models import OutletStatus, Publication, PublicationStatus
from pipeline.outlets.outlet_client import connect, platform_of
from pipeline.outlets.renewal import fresh_credentials
from pipeline.platforms.base import METRICS, Sample, Sent
from pipeline.plugins import NeedsReconnect, Refused, TryLater, UnknownKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

log = structlog.get_logger(__name__)

SIMULATED_AT: Final = (timedelta(0), timedelta(seconds=30), timedelta(minutes=5), *limits.MEASURED_AT)
"""A simulated outlet is measured at once and soon again, so that whoever tries the service sees numbers."""
LEASE: Final = timedelta(seconds=60)
"""Longer than the one request that a measurement takes may last."""
MAX_TRIES: Final = 5
"""Tries of one measurement before it is noted as unavailable and the next one's time is waited for."""
TRY_AGAIN_AFTER: Final = timedelta(minutes=5)
"""Where a platform asks to wait without saying how long."""
TRY_AGAIN_AT_LEAST: Final = timedelta(seconds=5)
TRY_AGAIN_AT_MOST: Final = timedelta(hours=24)

_LARGEST: Final = 2**63 - 1
"""What a column of the database holds."""
_REASONS: Final = frozenset({"unsupported", "delayed", "unavailable"})


@dataclass(frozen=True)
class MetricReading:
    """A value for every metric; where it is None, `availability` has the reason. `error` is for the operator."""

    at: datetime
    values: Mapping[str, int | None]
    availability: Mapping[str, str]
    error: str = ""

    @property
    def is_hopeless(self) -> bool:
        """The platform gives none of the metrics, and won't at a later age either."""
        return all(self.availability.get(metric) == "unsupported" for metric in METRICS)


def moments_of(*, is_simulated: bool) -> tuple[timedelta, ...]:
    return SIMULATED_AT if is_simulated else limits.MEASURED_AT


def next_moment(published_at: datetime, *, is_simulated: bool, now: datetime) -> datetime | None:
    """The first of its moments that is still to come; those that were missed are not made up for."""
    coming = (published_at + age for age in moments_of(is_simulated=is_simulated))
    return next((moment for moment in coming if moment > now), None)


def measure(row: Measuring, *, now: datetime | None = None) -> None:
    """Work one claimed row: ask the platform outside any transaction, then write under the lease."""
    crash_point("measure.claimed")
    now = now or utc_now()
    publication = _publication(row)
    if (
        publication.status != PublicationStatus.PUBLISHED
        or publication.published_at is None
        or publication.outlet.deleted_at
    ):
        # Removed there, or disconnected here: nobody can be asked any more, and what was counted stays.
        _end(row)
        return
    try:
        reading = _read(publication, publication.published_at, now)
    except TryLater as error:
        after = TRY_AGAIN_AFTER if error.after is None else error.after
        wait = min(max(after, TRY_AGAIN_AT_LEAST), TRY_AGAIN_AT_MOST)
        row.sleep_until(now + wait, last_error=error.message[:300])
        return
    except (NeedsReconnect, Refused) as error:
        reading = _nothing(publication.outlet.platform, now, error.message)
    crash_point("measure.read")
    _write(row, publication, publication.published_at, reading)


def give_up(row: Measuring, *, now: datetime | None = None) -> None:
    """Too many tries of one measurement failed: note it as unavailable, and wait for the next one's time."""
    now = now or utc_now()
    publication = _publication(row)
    if publication.published_at is None:
        _end(row)
        return
    message = row.last_error or "Every try failed; the log has the reason."
    reading = _nothing(publication.outlet.platform, now, message)
    _write(row, publication, publication.published_at, reading)


def reason_for(platform: str, metric: str, otherwise: str) -> str:
    """Why that platform has no number: it never gives one, or else the reason named."""
    try:
        given = platform_of(platform).metrics_given
    except UnknownKind:
        # Its plug-in was taken out of this installation.
        return "unavailable"
    return otherwise if metric in given else "unsupported"


def _publication(row: Measuring) -> Publication:
    return _PUBLICATION.ask(pk=row.publication_id)[0]


_PUBLICATION: Final[Prepared[Publication]] = Prepared(
    lambda pk: Publication.everywhere.select_related("outlet", "item").filter(pk=pk)
)


def _read(publication: Publication, published_at: datetime, now: datetime) -> MetricReading:
    outlet = publication.outlet
    if outlet.status != OutletStatus.OK:
        message = "The outlet has to be connected again before its numbers can be read."
        raise NeedsReconnect(message)
    connection = connect(fresh_credentials(outlet, now=now))
    sent = Sent(external_id=publication.external_id, url=publication.url)
    with connection.telling_no_secret():
        answers = connection.platform.metrics(
            connection.account, [(sent, published_at)], http=connection.http, now=now
        )
    return _checked(answers[0], outlet.platform, now)


def _checked(samples: Iterable[Sample], platform: str, now: datetime) -> MetricReading:
    """What is not a count that can be stored is not given: no number is made up or bent."""
    by_metric = {sample.metric: sample for sample in samples}
    values: dict[str, int | None] = {}
    availability: dict[str, str] = {}
    for metric in METRICS:
        sample = by_metric.get(metric)
        value = sample.value if sample else None
        is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST
        values[metric] = value if is_count else None
        if is_count:
            continue
        reason = sample.availability if sample and value is None else ""
        availability[metric] = reason if reason in _REASONS else reason_for(platform, metric, "unavailable")
    return MetricReading(now, values, availability)


def _nothing(platform: str, now: datetime, error: str) -> MetricReading:
    availability = {metric: reason_for(platform, metric, "unavailable") for metric in METRICS}
    return MetricReading(now, dict.fromkeys(METRICS), availability, error)


def _write(row: Measuring, publication: Publication, published_at: datetime, reading: MetricReading) -> None:
    """The measurement and the next one's time in one transaction; nothing of it where the lease is lost."""
    number = row.measured + 1
    coming = next_moment(published_at, is_simulated=publication.outlet.is_simulated, now=reading.at)
    if reading.is_hopeless:
        coming = None
    try:
        with transaction.atomic():
            changes = {"measured": number, "attempts": 0, "last_error": reading.error[:300], "due_at": coming}
            # The row comes first: it is the lock that a second hand with the same publication waits for.
            if coming is None:
                states.move(row, DONE, under_lease=True, wake_at=None, **changes)
            elif not row.sleep_until(coming, **changes):
                raise states.Overtaken
            _insert(row, publication, published_at, reading)
            crash_point("measure.written")
    except states.Overtaken:
        log.info("measurement_overtaken", number=number)


def _insert(row: Measuring, publication: Publication, published_at: datetime, reading: MetricReading) -> None:
    before = _last_known(publication)
    deltas = {
        f"{metric}_delta": None if value is None else value - before.get(metric, 0)
        for metric, value in reading.values.items()
    }
    item = publication.item
    made = Measurement(
        workspace_id=row.workspace_id,
        test=row.test,
        publication_id=publication.pk,
        number=row.measured + 1,
        at=reading.at,
        published_at=published_at,
        outlet_id=publication.outlet_id,
        content_type=item.bucket,
        source_id=item.source_id,
        engine_output=item.engine_output,
        persona_id=item.persona_id,
        availability=dict(reading.availability),
        **reading.values,
        **deltas,
    )
    insert([made])
    given = {metric: value for metric, value in reading.values.items() if value is not None}
    if given:
        publish.note_metrics(publication.pk, {**dict.fromkeys(METRICS), **before, **given}, now=reading.at)
    # It counts on the day on which it came and on the one of publication, whose coverage it changes too. Days are
    # locked after publications, here and by whoever counts.
    rollup.mark((row.workspace_id, row.test, moment) for moment in (reading.at, published_at))


def _last_known(publication: Publication) -> dict[str, int]:
    """The newest value of each metric, over measurements in which it was missing: all deltas add up to the last one."""
    known: dict[str, int] = {}
    for values in _VALUES.ask(publication=publication.pk):
        known.update({metric: value for metric, value in values.items() if value is not None})
    return known


_VALUES: Final[Prepared[dict[str, int | None]]] = Prepared(
    lambda publication: (
        Measurement.everywhere.filter(publication_id=publication).order_by("number").values(*METRICS)
    )
)


def _end(row: Measuring) -> None:
    try:
        states.move(row, DONE, under_lease=True, wake_at=None, due_at=None, attempts=0)
    except states.Overtaken:
        log.info("measurement_overtaken", number=row.measured)
