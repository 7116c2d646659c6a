"""Reads a publication's numbers from its platform at the ages of the schedule."""

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
"""Ages for a simulated outlet, at once and soon again, so that people who try the service see numbers."""
LEASE: Final = timedelta(seconds=60)
"""Longer than a measurement's one request may last."""
MAX_TRIES: Final = 5
"""Tries of one measurement, after which it is stored as unavailable."""
DEFAULT_RETRY_WAIT: Final = timedelta(minutes=5)
"""The wait if a platform asks to wait without saying how long."""
# The limits of the wait that a platform asks for.
MIN_RETRY_WAIT: Final = timedelta(seconds=5)
MAX_RETRY_WAIT: Final = timedelta(hours=24)

_MAX_COUNT: Final = 2**63 - 1
"""The largest value that a database column holds."""
_KNOWN_REASONS: Final = frozenset({"unsupported", "delayed", "unavailable"})


@dataclass(frozen=True)
class MetricReading:
    """A value for every metric; one that is `None` has its reason in `availability`."""

    at: datetime
    values: Mapping[str, int | None]
    availability: Mapping[str, str]
    error: str = ""
    """Why nothing was read, for the operator, or empty."""

    @property
    def is_hopeless(self) -> bool:
        """Whether the platform never gives any metric, so that further measurements are useless."""
        return all(self.availability.get(metric) == "unsupported" for metric in METRICS)


def measuring_ages(*, is_simulated: bool) -> tuple[timedelta, ...]:
    """Return the ages at which a publication is measured, the youngest first."""
    return SIMULATED_AT if is_simulated else limits.MEASURED_AT


def next_measuring(published_at: datetime, *, is_simulated: bool, now: datetime) -> datetime | None:
    """Return the first due time after `now`, or `None` after the last; missed ones are skipped."""
    due_times = (published_at + age for age in measuring_ages(is_simulated=is_simulated))
    return next((moment for moment in due_times if moment > now), None)


def measure(row: Measuring, *, now: datetime | None = None) -> None:
    """Measure a claimed row's publication: read from the platform, then write under the lease.

    A publication that can't be read any more ends its measuring. The row waits if the platform asks to, and a
    refusal is stored as a measurement without numbers. Nothing is written if the lease is lost.
    """
    crash_point("measure.claimed")
    now = now or utc_now()
    publication = _load_publication(row)
    if (
        publication.status != PublicationStatus.PUBLISHED
        or publication.published_at is None
        or publication.outlet.deleted_at
    ):
        # The post was removed or the outlet disconnected, so nothing can be read; earlier numbers stay.
        _end_measuring(row)
        return
    try:
        reading = _read_metrics(publication, publication.published_at, now)
    except TryLater as error:
        requested_wait = DEFAULT_RETRY_WAIT if error.after is None else error.after
        wait = min(max(requested_wait, MIN_RETRY_WAIT), MAX_RETRY_WAIT)
        row.sleep_until(now + wait, last_error=error.message[:300])
        return
    except (NeedsReconnect, Refused) as error:
        reading = _empty_reading(publication.outlet.platform, now, error.message)
    crash_point("measure.read")
    _store_reading(row, publication, publication.published_at, reading)


def give_up(row: Measuring, *, now: datetime | None = None) -> None:
    """Store a measurement without numbers after too many failed tries, and schedule the next one, if any."""
    now = now or utc_now()
    publication = _load_publication(row)
    if publication.published_at is None:
        _end_measuring(row)
        return
    message = row.last_error or "Every try failed; the log has the reason."
    reading = _empty_reading(publication.outlet.platform, now, message)
    _store_reading(row, publication, publication.published_at, reading)


def reason_for(platform: str, metric: str, otherwise: str) -> str:
    """Return why a metric is missing: `unsupported` if the platform never gives it, else `otherwise`.

    It is `unavailable` if the platform's plug-in isn't installed.
    """
    try:
        supported_metrics = platform_of(platform).metrics_given
    except UnknownKind:
        return "unavailable"
    return otherwise if metric in supported_metrics else "unsupported"


def _load_publication(row: Measuring) -> Publication:
    return _PUBLICATION_QUERY.ask(pk=row.publication_id)[0]


_PUBLICATION_QUERY: Final[Prepared[Publication]] = Prepared(
    lambda pk: Publication.everywhere.select_related("outlet", "item").filter(pk=pk)
)


def _read_metrics(publication: Publication, published_at: datetime, now: datetime) -> MetricReading:
    outlet = publication.outlet
    if outlet.status != OutletStatus.OK:
        message = "Reconnect the outlet to read its numbers."
        raise NeedsReconnect(message)
    connection = connect(fresh_credentials(outlet, now=now))
    sent = Sent(external_id=publication.external_id, url=publication.url)
    with connection.telling_no_secret():
        results = connection.platform.metrics(
            connection.account, [(sent, published_at)], http=connection.http, now=now
        )
    return _to_reading(results[0], outlet.platform, now)


def _to_reading(samples: Iterable[Sample], platform: str, now: datetime) -> MetricReading:
    """Return the samples as a reading; a value that isn't a count that can be stored is missing."""
    by_metric = {sample.metric: sample for sample in samples}
    values: dict[str, int | None] = {}
    availability: dict[str, str] = {}
    for metric in METRICS:
        sample = by_metric.get(metric)
        value = sample.value if sample else None
        is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT
        values[metric] = value if is_count else None
        if is_count:
            continue
        reason = sample.availability if sample and value is None else ""
        availability[metric] = (
            reason if reason in _KNOWN_REASONS else reason_for(platform, metric, "unavailable")
        )
    return MetricReading(now, values, availability)


def _empty_reading(platform: str, now: datetime, error: str) -> MetricReading:
    availability = {metric: reason_for(platform, metric, "unavailable") for metric in METRICS}
    return MetricReading(now, dict.fromkeys(METRICS), availability, error)


def _store_reading(
    row: Measuring, publication: Publication, published_at: datetime, reading: MetricReading
) -> None:
    """Store the measurement and the next one's time in one transaction, or nothing if the lease is lost."""
    number = row.measured + 1
    next_at = next_measuring(published_at, is_simulated=publication.outlet.is_simulated, now=reading.at)
    if reading.is_hopeless:
        next_at = None
    try:
        with transaction.atomic():
            changes = {
                "measured": number,
                "attempts": 0,
                "last_error": reading.error[:300],
                "due_at": next_at,
            }
            # Write the row first: it is the lock that a second worker with the same publication waits for.
            if next_at is None:
                states.move(row, DONE, under_lease=True, wake_at=None, **changes)
            elif not row.sleep_until(next_at, **changes):
                raise states.Overtaken
            _insert_measurement(row, publication, published_at, reading)
            crash_point("measure.written")
    except states.Overtaken:
        log.info("measurement_overtaken", number=number)


def _insert_measurement(
    row: Measuring, publication: Publication, published_at: datetime, reading: MetricReading
) -> None:
    """Insert the measurement with its increases, update the publication's numbers, and mark the days."""
    last_values = _last_known_values(publication)
    deltas = {
        f"{metric}_delta": None if value is None else value - last_values.get(metric, 0)
        for metric, value in reading.values.items()
    }
    item = publication.item
    measurement = Measurement(
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
    insert([measurement])
    known_values = {metric: value for metric, value in reading.values.items() if value is not None}
    if known_values:
        publish.note_metrics(
            publication.pk, {**dict.fromkeys(METRICS), **last_values, **known_values}, now=reading.at
        )
    # A measurement counts on its day and on that of publication, whose coverage it changes too. Days are locked
    # after publications, here and in `publication_outcomes`.
    rollup.mark((row.workspace_id, row.test, moment) for moment in (reading.at, published_at))


def _last_known_values(publication: Publication) -> dict[str, int]:
    """Return the newest known value of each metric, even if later measurements lack it.

    Increases are computed from these values, so all of them add up to the last known one.
    """
    newest: dict[str, int] = {}
    for values in _VALUES_QUERY.ask(publication=publication.pk):
        newest.update({metric: value for metric, value in values.items() if value is not None})
    return newest


_VALUES_QUERY: Final[Prepared[dict[str, int | None]]] = Prepared(
    lambda publication: (
        Measurement.everywhere.filter(publication_id=publication).order_by("number").values(*METRICS)
    )
)


def _end_measuring(row: Measuring) -> None:
    try:
        states.move(row, DONE, under_lease=True, wake_at=None, due_at=None, attempts=0)
    except states.Overtaken:
        log.info("measurement_overtaken", number=row.measured)
