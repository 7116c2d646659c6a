"""collect.pace: when a source is polled again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import limits
from pipeline.ingest.collect import poll_source
from tests.pipeline.steps import NOON

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)
spans = st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=400))
leasts = st.timedeltas(min_value=MINUTE, max_value=DAY)


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ([], None),
        ([1], None),
        ([None, 3], None),
        ([2, 2], None),
        ([0, 2], HOUR),
        ([4, 0, 2, None], HOUR),
        # The median: one long silence changes nothing.
        ([0, 2, 4, 6, 1000], HOUR),
        # Of the newest 20 only.
        ([*range(20), *range(100, 200, 10)], HOUR / 2),
    ],
)
def test_rhythm_is_half_of_the_median_gap(ages, expected):
    moments = [None if age is None else NOON - age * HOUR for age in ages]
    assert poll_source.measure_rhythm(moments) == expected


@pytest.mark.parametrize(
    ("rhythm", "previous", "is_new", "expected"),
    [
        (None, None, True, HOUR),
        (2 * HOUR, None, True, 2 * HOUR),
        (MINUTE, None, True, 15 * MINUTE),
        (40 * DAY, None, True, DAY),
        (2 * HOUR, 8 * HOUR, True, 2 * HOUR),
        (2 * HOUR, 8 * HOUR, False, 12 * HOUR),
        (None, 8 * HOUR, False, 12 * HOUR),
        (None, 20 * HOUR, False, DAY),
        (None, 3 * HOUR, True, 3 * HOUR),
    ],
)
def test_interval_follows_the_rhythm_and_grows_with_silence(rhythm, previous, is_new, expected):
    least = 15 * MINUTE
    found = poll_source.own_interval(
        rhythm=rhythm, previous=previous, is_new=is_new, least=least, default=HOUR
    )
    assert found == expected


@given(st.none() | spans, st.none() | spans, st.booleans(), leasts)
def test_interval_is_never_out_of_its_bounds(rhythm, previous, is_new, least):
    found = poll_source.own_interval(
        rhythm=rhythm, previous=previous, is_new=is_new, least=least, default=HOUR
    )
    assert max(least, limits.POLL_INTERVAL_LEAST) <= found <= max(least, limits.POLL_INTERVAL_MOST)


@given(spans, leasts)
def test_silence_leads_to_one_poll_a_day(previous, least):
    found = min(previous, DAY)
    for _ in range(40):
        found = poll_source.own_interval(rhythm=None, previous=found, is_new=False, least=least, default=HOUR)
    assert found == DAY


@given(spans, st.integers(0, 500), st.none() | spans, st.floats(0, 1))
def test_wait_keeps_its_bounds(interval, failures, at_least, jitter):
    wait = poll_source.poll_wait(interval, failures=failures, at_least=at_least, jitter=jitter)
    asked = at_least or timedelta(0)
    assert wait >= max(interval, asked)
    assert wait <= max(interval, limits.POLL_BACKOFF_MOST, asked) * 1.1 + timedelta(milliseconds=1)


@given(spans, st.integers(0, 20), st.floats(0, 1))
def test_wait_grows_with_each_failure(interval, failures, jitter):
    fewer = poll_source.poll_wait(interval, failures=failures, jitter=jitter)
    assert fewer <= poll_source.poll_wait(interval, failures=failures + 1, jitter=jitter)


def test_wait_doubles_up_to_a_day_and_no_interval_is_shortened():
    assert [poll_source.poll_wait(HOUR, failures=count) / HOUR for count in range(7)] == [
        1,
        2,
        4,
        8,
        16,
        24,
        24,
    ]
    assert poll_source.poll_wait(2 * DAY, failures=3) == 2 * DAY
    assert poll_source.poll_wait(HOUR, at_least=3 * HOUR, jitter=1) == 3.3 * HOUR
