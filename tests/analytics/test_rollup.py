"""Days added up: the same answers as from the facts, whatever comes late, again or meanwhile."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from analytics import queries, rollup
from analytics.models import DAY, QUARTER, Measurement, MeasurementRollup, Outcome, OutcomeRollup, RollupDay
from config.core import crash_points
from config.core.ids import uuid7
from pipeline.platforms.base import METRICS
from tests import claims
from tests.analytics import factories
from tests.analytics.factories import NOON, after, make_measurement, make_published
from tests.sizes import size

SOON = timedelta(minutes=1)


def marked():
    return list(RollupDay.everywhere.order_by("day").values_list("day", "is_current"))


def claimed(now=None):
    """Every day that waits, as a hand gets it."""
    return claims.begun(
        RollupDay,
        limit=1000,
        per_workspace=1000,
        lease=rollup.LEASE,
        now=now or timezone.now() + rollup.WAIT + SOON,
    )


def roll_all():
    for row in claimed():
        rollup.roll_up(row)


@pytest.fixture
def from_facts(monkeypatch):
    """Asks the facts alone."""

    def asked(ask, **question):
        with monkeypatch.context() as patched:
            patched.setattr(rollup, "find_current_days", lambda *_, **__: {})
            return ask(**question)

    return asked


@pytest.fixture
def only_rollups(monkeypatch):
    """Nothing may be read from the facts."""

    def refuse(*_):
        pytest.fail("the facts were asked")

    monkeypatch.setattr(queries, "_unrolled_rows", refuse)


def measure(publication, at, **values):
    """As `measure` writes it: the number, its rise and the mark."""
    row = make_measurement(publication, at, **values)
    rollup.mark([(row.workspace_id, row.test, moment) for moment in (row.at, row.published_at)])
    return row


def mark_by_hand():
    out = StringIO()
    call_command("recompute_analytics", stdout=out)
    return out.getvalue()


def test_facts_without_a_mark_are_counted_after_the_command(alice, from_facts):
    publication = make_published(alice)
    measured = after(days=2)
    make_measurement(publication, NOON, views=1)
    roll_all()
    # As a worker of the release before writes: the days are current already and stay so.
    make_measurement(publication, measured, views=7)
    make_published(alice, measured)
    RollupDay.everywhere.update(is_current=True, wake_at=None)
    days = [(date(2026, 11, 2), False), (date(2026, 11, 4), False)]
    assert mark_by_hand() == "2 days are added up again by the workers.\n"
    assert marked() == days
    assert mark_by_hand() == "2 days are added up again by the workers.\n"
    assert marked() == days
    roll_all()
    assert marked() == [(day, True) for day, _ in days]
    assert sum(OutcomeRollup.everywhere.filter(unit=DAY).values_list("published_count", flat=True)) == 2


def test_the_command_marks_nothing_where_there_are_no_facts(alice):
    assert (mark_by_hand(), marked()) == ("0 days are added up again by the workers.\n", [])


def test_a_counted_publication_marks_its_day(alice):
    make_published(alice)
    make_published(alice, after(days=3))

    assert marked() == [(date(2026, 11, 2), False), (date(2026, 11, 5), False)]


def test_a_day_is_added_up_by_quarters_and_whole(alice):
    one, other = make_published(alice), make_published(alice, after(minutes=50))
    measure(one, after(minutes=20), views=7, likes=1)
    measure(other, after(hours=1), views=5)
    roll_all()

    noon = int(NOON.timestamp())
    rows = OutcomeRollup.everywhere.order_by("unit", "start")
    assert list(rows.values_list("unit", "start", "known", "published_count", "failed_count")) == [
        (QUARTER, noon, 1, 1, 0),
        (QUARTER, noon + 45 * 60, 1, 1, 0),
        (DAY, noon - 12 * 3600, 1, 2, 0),
    ]
    received = MeasurementRollup.everywhere.filter(attribution="received", unit=QUARTER).order_by("start")
    assert list(received.values_list("start", "views", "likes")) == [
        (noon + 15 * 60, 7, 1),
        (noon + 60 * 60, 5, None),
    ]
    published = MeasurementRollup.everywhere.filter(attribution="published", unit=QUARTER).order_by("start")
    assert list(published.values_list("start", "views")) == [(noon, 7), (noon + 45 * 60, 5)]
    assert marked() == [(date(2026, 11, 2), True)]


@pytest.mark.parametrize("attribution", ["received", "published"])
@pytest.mark.parametrize("tz", ["UTC", "Asia/Kathmandu"])
def test_an_answer_of_whole_days_asks_no_fact(alice, ask, only_rollups, attribution, tz):
    measure(make_published(alice), after(hours=1), views=7)
    # Days without a fact have no mark; nothing says that none was forgotten.
    rollup.mark((alice.workspace_id, False, datetime(2026, 11, day, tzinfo=UTC)) for day in range(1, 5))
    roll_all()
    start, end = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 5, tzinfo=UTC)

    answer = ask(start=start, end=end, tz=tz, attribution=attribution)

    assert (answer.totals.metrics["views"], answer.totals.metrics["published"]) == (7, 1)
    assert answer.totals.coverage == 1.0


def test_what_comes_after_a_day_was_added_up_counts_at_once(alice, ask):
    publication = make_published(alice)
    measure(publication, after(hours=1), views=7)
    roll_all()
    measure(publication, after(hours=6), views=3)

    assert ask().totals.metrics["views"] == 10
    roll_all()
    assert ask().totals.metrics["views"] == 10
    assert marked() == [(date(2026, 11, 2), True)]


def test_a_later_measurement_covers_the_day_of_publication(alice, ask):
    publication = make_published(alice)
    roll_all()
    assert ask().totals.coverage == 0.0
    measure(publication, after(days=3), views=1)
    roll_all()

    assert ask().totals.coverage == 1.0
    assert marked() == [(date(2026, 11, 2), True), (date(2026, 11, 5), True)]


def test_doing_it_again_changes_nothing(alice):
    measure(make_published(alice), after(minutes=20), views=7)
    fields = ("unit", "start", "outlet_id", "content_type", "known", "published_count")
    roll_all()
    once = list(OutcomeRollup.everywhere.order_by("unit", "start").values_list(*fields))
    rollup.mark([(alice.workspace_id, False, NOON)])
    roll_all()

    assert list(OutcomeRollup.everywhere.order_by("unit", "start").values_list(*fields)) == once
    assert MeasurementRollup.everywhere.count() == 4


def test_a_fact_that_comes_meanwhile_takes_the_day_from_its_hand(alice, ask):
    publication = make_published(alice)
    (row,) = claimed()
    measure(publication, after(hours=1), views=7)
    rollup.roll_up(row)

    assert marked() == [(date(2026, 11, 2), False)]
    assert OutcomeRollup.everywhere.count() == 0
    assert ask().totals.metrics["views"] == 7
    roll_all()
    assert marked() == [(date(2026, 11, 2), True)]
    assert ask().totals.metrics["views"] == 7


@pytest.mark.parametrize("point", ["rollup.claimed", "rollup.written"])
def test_a_killed_hand_leaves_the_day_to_the_next(alice, ask, monkeypatch, point):
    class Died(BaseException):
        pass

    def die(name):
        if name == point:
            raise Died

    measure(make_published(alice), after(hours=1), views=7)
    (row,) = claimed()
    with monkeypatch.context() as patched:
        patched.setattr(rollup, "crash_point", die)
        with pytest.raises(Died):
            rollup.roll_up(row)
    assert OutcomeRollup.everywhere.count() == 0
    assert ask().totals.metrics["views"] == 7

    (again,) = claimed(timezone.now() + 2 * rollup.LEASE)
    rollup.roll_up(again)
    assert marked() == [(date(2026, 11, 2), True)]
    assert ask().totals.metrics["views"] == 7


def test_a_day_that_fails_again_and_again_is_answered_from_its_facts(alice, ask):
    measure(make_published(alice), after(hours=1), views=7)
    (row,) = claimed()
    rollup.give_up(row)

    kept = RollupDay.everywhere.get()
    assert (kept.is_current, kept.attempts) == (False, 0)
    assert kept.wake_at > timezone.now() + timedelta(hours=23)
    assert kept.last_error == "Adding up this day failed several times; the log has the reason."
    assert ask().totals.metrics["views"] == 7


def test_live_and_test_and_other_workspaces_are_kept_apart(alice, charlie, ask):
    make_published(alice)
    make_published(alice, test=True)
    make_published(charlie)
    roll_all()

    assert sorted(OutcomeRollup.everywhere.filter(unit=DAY).values_list("workspace_id", "test")) == sorted(
        [(alice.workspace_id, False), (alice.workspace_id, True), (charlie.workspace_id, False)]
    )
    assert ask().totals.metrics["published"] == 1
    assert ask(test=True).totals.metrics["published"] == 1


def test_parts_of_days_are_exact(alice, ask, from_facts):
    for minutes in (0, 7, 14, 15, 31):
        make_published(alice, after(minutes=minutes))
    roll_all()
    for start, end in ((after(minutes=7), after(minutes=15)), (after(minutes=15), after(days=1))):
        whole = from_facts(ask, start=start, end=end, interval="hour")
        assert ask(start=start, end=end, interval="hour") == whole
    assert ask(start=after(minutes=7), end=after(minutes=15)).totals.metrics["published"] == 2


def test_the_number_of_statements_is_bounded(alice, ask, django_assert_num_queries):
    for day in range(0, 20, 2):
        measure(make_published(alice, after(days=day)), after(days=day, hours=1), views=1)
    roll_all()
    measure(make_published(alice, after(days=7)), after(days=7, hours=1), views=1)
    # The marks, both facts live and rolled up, the outlets, the newest moments, and of the first party's own
    # numbers the outlets that count and what was counted.
    with django_assert_num_queries(10):
        assert ask().totals.metrics["views"] == 11


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL plans by statistics, which a test has not"
)
def test_rollups_are_read_by_their_index(alice, ask, django_assert_max_num_queries):
    make_published(alice)
    roll_all()
    with django_assert_max_num_queries(10) as sent:
        ask()
    for table in ("outcome_rollup", "measurement_rollup", "hit_rollup"):
        (asked,) = (one["sql"] for one in sent.captured_queries if f'FROM "{table}"' in one["sql"])
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {asked}")
            assert f"USING INDEX {table}_read" in str(cursor.fetchall())


# --- Whatever comes ------------------------------------------------------------------------------------------------

# Around the last Sunday of October, when Europe's clocks go back.
START = datetime(2026, 10, 23, tzinfo=UTC)
END = START + timedelta(days=5)
MOMENTS = st.integers(0, 5 * 24 * 60 - 1).map(lambda minutes: START + timedelta(minutes=minutes))
ROUNDS = st.lists(
    st.lists(st.tuples(MOMENTS, MOMENTS, st.booleans(), st.none() | st.integers(-5, 1000)), max_size=6),
    min_size=1,
    max_size=3,
)


class TestSameAnswers(TestCase):
    @given(
        rounds=ROUNDS,
        tz=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Asia/Kathmandu"]),
        interval=st.sampled_from(["hour", "day", "week", "month"]),
        attribution=st.sampled_from(["received", "published"]),
        shift=st.sampled_from([0, 15, 7]),
    )
    @settings(max_examples=size(15, 120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_of_rollups_and_of_facts(self, rounds, tz, interval, attribution, shift):
        """Rounds of facts come in any order; after some of them days are added up, after others not."""
        workspace = factories.make_workspace()
        outlet = factories.make_outlet(workspace)
        ask = factories.Ask(workspace)
        for number, facts in enumerate(rounds):
            for published_at, measured_at, is_published, rise in facts:
                write(outlet, published_at, measured_at, is_published, rise)
            if number % 2 == 0:
                roll_all()
            question = {
                "start": START + timedelta(minutes=shift),
                "end": END,
                "tz": tz,
                "interval": interval,
                "attribution": attribution,
            }
            mixed = ask(**question)
            kept = rollup.find_current_days
            try:
                rollup.find_current_days = lambda *_, **__: {}
                assert mixed == ask(**question)
            finally:
                rollup.find_current_days = kept
            if number % 2 == 0:
                days = RollupDay.everywhere.filter(workspace=workspace)
                assert set(days.values_list("is_current", flat=True)) <= {True}


def write(outlet, published_at, measured_at, is_published, rise):
    publication = factories.make_publication(outlet, published_at=published_at)
    shared = {
        "workspace": outlet.workspace,
        "outlet": outlet,
        "content_type": "text",
        "engine_output": "Short Post",
    }
    Outcome.everywhere.create(
        id=publication.pk,
        publication_id=publication.pk,
        event_id=uuid7(),
        is_published=is_published,
        at=published_at,
        **shared,
    )
    moments = [published_at]
    if is_published:
        Measurement.everywhere.create(
            publication=publication,
            number=1,
            at=measured_at,
            published_at=published_at,
            availability={metric: "delayed" for metric in METRICS if metric != "views" or rise is None},
            views=rise,
            views_delta=rise,
            **shared,
        )
        moments.append(measured_at)
    rollup.mark((outlet.workspace_id, False, moment) for moment in moments)


def test_every_crash_point_is_known():
    assert {"rollup.claimed", "rollup.written"} <= set(crash_points.POINTS)
