"""Measuring one publication: what is asked, what is written, and what is left for later."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from types import SimpleNamespace

import pytest
import time_machine
from django.db import connection

from analytics import limits, measure, publication_outcomes
from analytics.models import Measurement, Measuring
from config.core import jobs
from config.core.ids import encode
from pipeline.models import Outlet, Publication, SimulatedPost
from pipeline.platforms.base import METRICS, Sample
from pipeline.platforms.simulated import made_up_metrics
from pipeline.plugins import NeedsReconnect, Refused, TryLater
from tests import claims
from tests.analytics.factories import NOON, after, make_event, make_outlet, make_publication, waiting

ALL = {"impressions": 100, "views": 80, "likes": 8, "comments": 2, "shares": 1, "clicks": 0}


class FakePlatform:
    """Answers what the test puts into `answers`, in order; remembers what it was asked."""

    def __init__(self):
        self.answers = []
        self.asked = []
        # The test's own transaction has this many savepoints; a call inside one of ours would see more.
        self.depth = len(connection.savepoint_ids)

    def metrics(self, account, sent, *, http, now):
        assert len(connection.savepoint_ids) == self.depth
        self.asked.append((account, list(sent), http, now))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return (tuple(answer),)


def samples(**values):
    return [Sample(metric, value) for metric, value in values.items()]


@pytest.fixture
def platform(monkeypatch):
    fake = FakePlatform()
    link = SimpleNamespace(
        platform=fake, account="account", http="http", redacting_errors=contextlib.nullcontext
    )
    monkeypatch.setattr(measure, "connect", lambda outlet: link)
    return fake


@pytest.fixture
def publication(alice):
    outlet = make_outlet(alice.workspace, is_simulated=False)
    publication = make_publication(outlet, bucket="image", engine_output="Quote Graphic")
    publication_outcomes.write_outcomes([make_event(publication)])
    return publication


def claim(now):
    rows = claims.begun(Measuring, limit=1, per_workspace=1, lease=timedelta(seconds=60), now=now)
    assert len(rows) == 1
    return rows[0]


def work(now):
    measure.measure(claim(now), now=now)


def values(measurement, suffix=""):
    return {metric: getattr(measurement, metric + suffix) for metric in METRICS}


def test_first_measurement_is_all_rise(platform, publication):
    platform.answers = [samples(**ALL)]
    now = after(hours=1, seconds=2)
    work(now)

    [(account, [(sent, published_at)], http, asked_at)] = platform.asked
    assert (account, http, asked_at, published_at) == ("account", "http", now, NOON)
    assert (sent.external_id, sent.url) == ("post-1", "https://simulated.invalid/post-1")
    found = Measurement.everywhere.get()
    assert (found.number, found.at, found.published_at) == (1, now, NOON)
    assert (found.outlet_id, found.content_type, found.engine_output) == (
        publication.outlet_id,
        "image",
        "Quote Graphic",
    )
    assert values(found) == values(found, "_delta") == ALL
    assert found.availability == {}
    row = waiting(publication)
    assert (row.status, row.measured, row.attempts, row.wake_at) == ("waiting", 1, 0, after(hours=6))


def test_later_measurements_rise_by_the_difference(platform, publication):
    platform.answers = [
        samples(**ALL),
        samples(**{**ALL, "impressions": 150, "likes": 5, "views": None}),
        samples(**{**ALL, "impressions": 150, "likes": 9, "views": 90}),
    ]
    for age in ({"hours": 1}, {"hours": 6}, {"days": 1}):
        work(after(**age))

    _, second, third = Measurement.everywhere.order_by("number")
    # Fewer likes than before: the platform took some back. No views given: nothing is known of them.
    assert values(second, "_delta") == {
        **dict.fromkeys(METRICS, 0),
        "impressions": 50,
        "likes": -3,
        "views": None,
    }
    assert second.availability == {"views": "unavailable"}
    # All rises of a metric add up to its newest value.
    assert values(third, "_delta") == {**dict.fromkeys(METRICS, 0), "likes": 4, "views": 10}


def test_publication_shows_the_newest_known_numbers(platform, publication):
    platform.answers = [
        samples(impressions=100, views=80),
        samples(impressions=None, views=None),
        samples(impressions=150, views=None),
    ]
    shown = []
    for age in ({"hours": 1}, {"hours": 6}, {"days": 1}):
        work(after(**age))
        publication.refresh_from_db()
        shown.append((publication.version, publication.metrics["impressions"], publication.metrics["views"]))
    assert shown == [(2, 100, 80), (2, 100, 80), (3, 150, 80)]
    assert publication.metrics == {**dict.fromkeys(METRICS), "impressions": 150, "views": 80}


def test_schedule_ends_after_thirty_days(platform, publication):
    platform.answers = [samples(**ALL)] * len(limits.MEASURED_AT)
    for age in limits.MEASURED_AT:
        work(NOON + age)
    row = waiting(publication)
    assert (row.status, row.measured, row.wake_at, row.due_at) == ("done", 6, None, None)
    assert Measurement.everywhere.count() == 6


def test_missed_moments_are_not_made_up_for(platform, publication):
    platform.answers = [samples(**ALL)]
    work(after(days=2))
    row = waiting(publication)
    assert (row.measured, row.wake_at) == (1, after(days=3))


def test_platform_that_gives_nothing_is_asked_once(platform, publication):
    platform.answers = [[Sample(metric, None, "unsupported") for metric in METRICS]]
    work(after(hours=1))
    assert Measurement.everywhere.get().availability == dict.fromkeys(METRICS, "unsupported")
    assert waiting(publication).status == "done"


def test_what_is_no_count_is_not_given(platform, publication):
    platform.answers = [
        [
            Sample("impressions", -1),
            Sample("views", True),
            Sample("likes", 2**63),
            Sample("comments", None, "delayed"),
            Sample("shares", None, "ok"),
        ]
    ]
    work(after(hours=1))
    found = Measurement.everywhere.get()
    assert values(found) == values(found, "_delta") == dict.fromkeys(METRICS)
    assert found.availability == {**dict.fromkeys(METRICS, "unavailable"), "comments": "delayed"}


@pytest.mark.parametrize(
    ("told", "waited"),
    [
        (timedelta(minutes=20), timedelta(minutes=20)),
        (None, measure.DEFAULT_RETRY_WAIT),
        (timedelta(0), measure.MIN_RETRY_WAIT),
        (timedelta(days=400), measure.MAX_RETRY_WAIT),
    ],
)
def test_platform_that_asks_to_wait_is_asked_later(platform, publication, told, waited):
    platform.answers = [TryLater("It is busy.", after=told), samples(**ALL)]
    now = after(hours=1)
    work(now)
    row = waiting(publication)
    assert (row.wake_at, row.measured, row.attempts, row.last_error) == (now + waited, 0, 1, "It is busy.")
    assert not Measurement.everywhere.exists()

    work(now + waited)
    row = waiting(publication)
    assert (row.measured, row.attempts, row.last_error) == (1, 0, "")
    assert Measurement.everywhere.get().at == now + waited


@pytest.mark.parametrize("failure", [NeedsReconnect("Reconnect it."), Refused("It is gone.")])
def test_refused_measurement_is_noted_and_the_next_one_tried(platform, publication, failure):
    platform.answers = [samples(**ALL), failure, samples(**{**ALL, "views": 90})]
    for age in (1, 6, 24):
        work(after(hours=age))
        assert waiting(publication).last_error == (failure.message if age == 6 else "")
    _, missed, last = Measurement.everywhere.order_by("number")
    assert values(missed) == values(missed, "_delta") == dict.fromkeys(METRICS)
    assert missed.availability == dict.fromkeys(METRICS, "unavailable")
    assert last.views_delta == 10


def test_outlet_that_needs_reconnecting_is_not_asked(platform, publication):
    Outlet.everywhere.filter(pk=publication.outlet_id).update(status="needs_reconnect")
    work(after(hours=1))
    assert platform.asked == []
    assert Measurement.everywhere.get().availability == dict.fromkeys(METRICS, "unavailable")
    assert waiting(publication).wake_at == after(hours=6)


def test_what_a_platform_never_gives_stays_unsupported_when_it_fails(platform, alice):
    outlet = make_outlet(alice.workspace, platform="feed", is_simulated=False)
    publication = make_publication(outlet)
    publication_outcomes.write_outcomes([make_event(publication)])
    platform.answers = [Refused("No.")]
    work(after(hours=1))
    assert Measurement.everywhere.get().availability == dict.fromkeys(METRICS, "unsupported")


@pytest.mark.parametrize(
    "change",
    [
        lambda publication: Publication.everywhere.filter(pk=publication.pk).update(status="removed"),
        lambda publication: Outlet.everywhere.filter(pk=publication.outlet_id).update(deleted_at=NOON),
    ],
)
def test_removed_publication_is_measured_no_more(platform, publication, change):
    platform.answers = [samples(**ALL)]
    work(after(hours=1))
    change(publication)
    work(after(hours=6))
    row = waiting(publication)
    assert (row.status, row.wake_at, row.measured) == ("done", None, 1)
    assert Measurement.everywhere.count() == 1


def test_hand_that_lost_its_lease_writes_nothing(platform, publication):
    platform.answers = [samples(**ALL), samples(**{**ALL, "views": 999})]
    slow = claim(after(hours=1))
    quick = claim(after(hours=1, seconds=61))
    measure.measure(quick, now=after(hours=1, seconds=61))
    before = Measuring.everywhere.values().get()
    measure.measure(slow, now=after(hours=1, seconds=62))
    assert Measuring.everywhere.values().get() == before
    found = Measurement.everywhere.get()
    assert (found.number, found.views) == (1, 80)


def test_hand_that_lost_its_lease_at_the_last_moment_writes_nothing(platform, publication):
    platform.answers = [samples(**ALL), samples(**ALL)]
    slow = claim(after(days=31))
    quick = claim(after(days=31, seconds=61))
    measure.measure(quick, now=after(days=31, seconds=61))
    measure.measure(slow, now=after(days=31, seconds=62))
    assert Measurement.everywhere.count() == 1
    assert waiting(publication).status == "done"


class Killed(BaseException):
    pass


@pytest.mark.parametrize("point", ["measure.claimed", "measure.read", "measure.written"])
def test_killed_hand_measures_once(platform, publication, monkeypatch, point):
    def die(name):
        if name == point:
            raise Killed

    platform.answers = [samples(**ALL)] * 2
    with monkeypatch.context() as patch:
        patch.setattr(measure, "crash_point", die)
        with pytest.raises(Killed):
            work(after(hours=1))
    assert not Measurement.everywhere.exists()
    assert waiting(publication).measured == 0

    work(after(hours=1, seconds=61))
    assert [(found.number, found.views_delta) for found in Measurement.everywhere.all()] == [(1, 80)]


def test_measurement_that_fails_too_often_is_given_up_and_the_next_one_waited_for(platform, publication):
    kind = jobs.jobs()["analytics.measure_publication"]
    platform.answers = [RuntimeError("a fault of ours")] * measure.MAX_TRIES + [samples(**ALL)]
    now = after(hours=1)
    for _ in range(measure.MAX_TRIES):
        with pytest.raises(RuntimeError):
            work(now)
        now += timedelta(seconds=61)
    row = claim(now)
    assert row.attempts > kind.max_attempts
    measure.give_up(row, now=now)

    row = waiting(publication)
    assert (row.measured, row.attempts, row.wake_at, row.status) == (1, 0, after(hours=6), "waiting")
    assert row.last_error == "Every try failed; the log has the reason."
    assert Measurement.everywhere.get().availability == dict.fromkeys(METRICS, "unavailable")
    work(after(hours=6))
    assert Measurement.everywhere.count() == 2


def test_give_up_without_a_moment_of_publication_ends_it(publication):
    row = claim(after(hours=1))
    Publication.everywhere.filter(pk=publication.pk).update(published_at=None)
    measure.give_up(row)
    assert waiting(publication).status == "done"


def test_unknown_platform_gives_nothing_and_ends_nothing(publication):
    Outlet.everywhere.filter(pk=publication.outlet_id).update(platform="myspace")
    row = claim(after(hours=1))
    with pytest.raises(LookupError):
        measure.measure(row, now=after(hours=1))
    measure.give_up(row, now=after(hours=1))
    assert Measurement.everywhere.get().availability == dict.fromkeys(METRICS, "unavailable")


def test_simulated_outlet_shows_numbers_soon(alice):
    post = SimulatedPost.everywhere.create(
        workspace=alice.workspace, outlet_id=alice.pk, ref="r", answer="ok", is_accepted=True, created_at=NOON
    )
    publication = make_publication(alice, external_id=encode("sim", post.pk))
    publication_outcomes.write_outcomes([make_event(publication)])
    for age in (0, 30, 300, 3600):
        with time_machine.travel(after(seconds=age), tick=False):
            work(after(seconds=age))
            expected = made_up_metrics(publication.external_id, NOON, after(seconds=age))
        newest = Measurement.everywhere.order_by("-number")[0]
        assert (values(newest), newest.availability) == (expected, {})
    assert waiting(publication).wake_at == after(hours=6)
    # What is zero at the beginning was counted, and is not a gap.
    assert values(Measurement.everywhere.get(number=1)) == dict.fromkeys(METRICS, 0)


def test_work_is_registered():
    kinds = jobs.jobs()
    assert kinds["analytics.count_events"].work is publication_outcomes.count_events
    kind = kinds["analytics.measure_publication"]
    assert (kind.model, kind.work, kind.give_up) == (Measuring, measure.measure, measure.give_up)
