"""Rows of past dates are kept as they were written, and never said when anything of them has changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from analytics import cache, queries, rollup
from analytics.accumulators import Cell
from analytics.fast_json import written
from analytics.models import RollupDay
from analytics.periods import Period, buckets_of, labels_of
from pipeline.models import Outlet
from pipeline.outlets import hit_counts
from tests import claims
from tests.analytics import factories
from tests.analytics.factories import NOON, after, make_measurement, make_published
from tests.analytics.test_properties import told_of
from tests.sizes import size

UTC_ZONE = ZoneInfo("UTC")
MONTH = Period(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC), "day", ZoneInfo("UTC"))
ROLLUPS = ('FROM "outcome_rollup"', 'FROM "measurement_rollup"', 'FROM "hit_rollup"')


@pytest.fixture(autouse=True)
def _nothing_kept():
    cache.SHELF.clear()


@pytest.fixture
def question(alice):
    return queries.Question(alice.workspace_id, test=False, period=MONTH)


def measure(publication, at, **values):
    row = make_measurement(publication, at, **values)
    rollup.mark([(row.workspace_id, row.test, moment) for moment in (row.at, row.published_at)])


def roll_all(*, every=1):
    now = timezone.now() + rollup.WAIT_OF_HITS
    rows = claims.begun(RollupDay, limit=999, per_workspace=999, lease=rollup.LEASE, now=now)
    for row in sorted(rows, key=lambda row: row.day)[::every]:
        rollup.roll_up(row)


def said(question):
    """The answer, which is what the facts say; and the sums that were read for it."""
    with CaptureQueriesContext(connection) as sent:
        answer = written(question)
    assert answer == told_of(question, queries.answer(question))
    asked = " ".join(one["sql"] for one in sent.captured_queries)
    return answer.rows, [table for table in ROLLUPS if table in asked]


def test_a_second_answer_reads_nothing_of_past_days(alice, question):
    measure(make_published(alice), after(days=1), views=7)
    roll_all()
    rows, read = said(question)
    assert b'"views":7' in rows
    # Days of which there is no row at all are asked for their facts.
    assert read == list(ROLLUPS)
    assert said(question) == (rows, [])
    # A range that begins elsewhere uses the same days.
    later = replace(question, period=replace(MONTH, start=NOON.replace(hour=0)))
    assert said(later) == (rows, [])


def test_a_marked_day_is_read_anew(alice, question):
    measure(make_published(alice), NOON, views=7)
    measure(make_published(alice, after(days=1)), after(days=1), views=1)
    roll_all()
    said(question)
    measure(make_published(alice), NOON, views=2)
    assert b'"views":9' in said(question)[0]
    roll_all()
    rows, read = said(question)
    assert b'"views":9' in rows
    assert read == list(ROLLUPS)
    assert said(question) == (rows, [])


def test_names_and_what_is_counted_are_as_they_are_now(alice, question):
    measure(make_published(alice), NOON, views=7)
    roll_all()
    said(question)
    Outlet.everywhere.filter(pk=alice.pk).update(name="Wall")
    assert b'"Wall"' in said(question)[0]
    Outlet.everywhere.filter(pk=alice.pk).update(clicks_since=after(hours=1))
    assert b'"clicks":0,"feed_fetches"' in said(question)[0]


def test_questions_keep_apart(alice, charlie, question):
    for outlet in (alice, charlie):
        measure(make_published(outlet), after(days=1), views=7)
    measure(make_published(alice, test=True), NOON, views=3)
    roll_all()
    for changes in (
        {},
        {"attribution": "published"},
        {"test": True},
        {"workspace_id": charlie.workspace_id},
        {"outlets": (charlie.pk,)},
        {"content_types": ("video",)},
        {"group_by": ("date",)},
        {"period": replace(MONTH, zone=ZoneInfo("Asia/Kolkata"))},
        {"period": replace(MONTH, interval="week")},
        {"period": replace(MONTH, interval="month")},
        {"period": replace(MONTH, interval="hour")},
        {"period": replace(MONTH, start=NOON)},
        {"period": replace(MONTH, end=NOON)},
        {},
    ):
        said(replace(question, **changes))


def place(name, made_of=("a",)):
    return cache.Place(NOON, NOON, (name,), made_of)


def test_what_was_used_last_is_kept():
    shelf = cache.Shelf(3 * (cache._PART_BYTES + 10))
    part = cache.Part(b"0123456789", Cell(), ())
    for name in ("one", "two", "three", "two"):
        shelf.put(place(name), part)
    assert shelf.find(place("one")) is part
    assert shelf.find(place("one", ("b",))) is None
    shelf.put(place("four"), part)
    assert [name for name in ("one", "two", "three", "four") if shelf.find(place(name))] == [
        "one",
        "two",
        "four",
    ]
    shelf.put(place("large"), replace(part, rows=b"0" * 10_000))
    assert not any(shelf.find(place(name)) for name in ("one", "two", "four", "large"))
    assert shelf._held == 0


# --- Whatever comes ------------------------------------------------------------------------------------------------

# The clocks go back in Berlin on the 25th of October; on Lord Howe they went forward by half an hour on the 4th.
FIRST = datetime(2026, 10, 2, tzinfo=UTC)
MINUTES = 28 * 24 * 60
MOMENTS = st.integers(0, MINUTES - 1).map(lambda minutes: FIRST + timedelta(minutes=minutes))
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana"])
STEPS = st.one_of(
    st.tuples(st.just("measure"), MOMENTS, st.integers(0, 2000), st.integers(-5, 99)),
    st.tuples(st.just("click"), MOMENTS, st.integers(1, 3), st.none()),
    st.tuples(st.just("roll"), st.integers(1, 2), st.none(), st.none()),
    st.tuples(st.just("ask"), ZONES, st.sampled_from(["day", "week", "month"]), st.tuples(MOMENTS, MOMENTS)),
)


class TestWhateverComes(TestCase):
    @given(steps=st.lists(STEPS, max_size=14), tz=ZONES)
    @settings(max_examples=size(10, 80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_every_answer_is_that_of_the_facts(self, steps, tz):
        outlet = factories.make_outlet(factories.make_workspace())
        whole = Period(FIRST, FIRST + timedelta(minutes=MINUTES), "day", ZoneInfo(tz))
        question = queries.Question(outlet.workspace_id, test=False, period=whole)
        for step, one, other, last in steps:
            if step == "measure":
                measure(make_published(outlet, one), one + timedelta(minutes=other), views=last)
            elif step == "click":
                link = SimpleNamespace(
                    workspace_id=outlet.workspace_id,
                    publication=factories.make_publication(outlet, published_at=one),
                )
                for _ in range(other):
                    hit_counts.count_click(link, one)
                hit_counts.flush()
            elif step == "roll":
                roll_all(every=one)
            elif last[0] != last[1]:
                period = Period(min(last), max(last), other, ZoneInfo(one))
                said(replace(question, period=period))
            said(question)


class TestBuckets:
    @given(
        edges=st.tuples(
            st.integers(0, 40 * 365 * 24 * 60), st.integers(1, 60 * 24 * 60), st.integers(0, 2**32)
        ),
        tz=st.sampled_from(
            ["UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Apia", "America/Havana", "America/St_Johns"]
        ),
        interval=st.sampled_from(["day", "week", "month"]),
    )
    @settings(max_examples=size(60, 600), deadline=None)
    def test_every_moment_is_in_the_bucket_of_its_date(self, edges, tz, interval):
        begin, length, within = edges
        start = datetime(1990, 1, 1, tzinfo=UTC) + timedelta(minutes=begin)
        period = Period(start, start + timedelta(minutes=length), interval, ZoneInfo(tz))
        found = list(cache._buckets(period))
        assert (found[0][1], found[-1][2]) == (period.start, period.end)
        assert all(one[2] == next_[1] and one[0] < next_[0] for one, next_ in pairwise(found))
        buckets = buckets_of(period)
        if cache._is_turned_back(period):
            return
        assert {buckets.label_of(one) for one, _, _ in found} <= set(labels_of(period))
        moment = start + timedelta(minutes=within % length)
        seconds = int(moment.timestamp())
        offset = next((by for until, by in buckets.offsets if seconds < until), buckets.last_offset)
        expected = buckets.place_of((seconds + offset) // buckets.step)
        assert [one for one, first, end in found if first <= moment < end] == [expected]

    def test_a_date_with_two_stretches_is_not_kept(self):
        """Newfoundland set its clocks back at a minute past midnight."""
        zone = ZoneInfo("America/St_Johns")
        back = Period(datetime(2010, 11, 1, tzinfo=UTC), datetime(2010, 12, 1, tzinfo=UTC), "day", zone)
        assert cache._is_turned_back(back)
        assert not cache._is_turned_back(replace(back, zone=UTC_ZONE))
