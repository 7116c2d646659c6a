"""The waits between attempts, to the second."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from tests.webhooks.factories import make_sent
from webhooks import limits
from webhooks.results import next_wait

SECONDS = [0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]


class Fixed(random.Random):
    """Gives the given share of the way from the least to the most."""

    def __init__(self, share: float) -> None:
        super().__init__(0)
        self.share = share

    def uniform(self, a: float, b: float) -> float:
        return a + (b - a) * self.share


def wait(tries: int, sent=None, share: float = 0.0) -> float | None:
    found = next_wait(tries, sent or make_sent(500), chance=Fixed(share))
    return None if found is None else found.total_seconds()


def test_schedule_is_the_promised_one():
    assert [wait.total_seconds() for wait in limits.WEBHOOK_SCHEDULE] == SECONDS
    assert sum(limits.WEBHOOK_SCHEDULE, timedelta(0)) == timedelta(hours=75, minutes=35, seconds=5)


def test_waits_without_jitter():
    assert [wait(tries) for tries in range(1, 11)] == [*map(float, SECONDS[1:]), None]


def test_waits_with_the_most_jitter():
    found = [wait(tries, share=1.0) for tries in range(1, 10)]
    assert found == pytest.approx([1.2 * seconds for seconds in SECONDS[1:]])


def test_jitter_stays_between_none_and_a_fifth_and_spreads():
    chance = random.Random(7)
    found = [next_wait(2, make_sent(500), chance=chance).total_seconds() for _ in range(2000)]
    assert min(found) >= 300
    assert max(found) <= 360
    assert max(found) - min(found) > 55


@pytest.mark.parametrize("status_code", [429, 502, 504])
def test_throttled_waits_at_least_a_minute(status_code):
    assert wait(1, make_sent(status_code)) == 60
    assert wait(1, make_sent(status_code), share=1.0) == 72
    assert wait(2, make_sent(status_code)) == 300


def test_time_out_waits_at_least_a_minute():
    assert wait(1, make_sent(None, timed_out=True)) == 60
    assert wait(1, make_sent(None)) == 5


@pytest.mark.parametrize("status_code", [301, 400, 401, 404, 500, 503])
def test_other_failures_follow_the_schedule(status_code):
    assert wait(1, make_sent(status_code)) == 5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120.0),
        ("1", 5.0),
        ("86400", 86400.0),
        ("86401", 86400.0),
        ("9" * 5000, 86400.0),
        ("Mon, 01 Mar 2027 12:10:01 GMT", 600.0),
        ("Mon, 01 Mar 2027 12:10:01 -0000", 600.0),
        ("Mon, 01 Mar 2027 12:10:01 +99999999999", 5.0),
        ("Mon, 01 Mar 2027 11:00:00 GMT", 5.0),
        ("Mon, 01 Mar 2037 11:00:00 GMT", 86400.0),
        ("soon", 5.0),
        ("-5", 5.0),
        ("", 5.0),
        ("١٢٠", 5.0),
        ("Mon, 99 Mar 2027 12:10:01 GMT", 5.0),
    ],
)
def test_retry_after(value, expected):
    # The attempt began at noon and a quarter of a second, and took three quarters.
    sent = make_sent(503, response_headers={"retry-after": value})
    assert wait(1, sent) == expected


def test_retry_after_does_not_shorten_the_schedule_or_add_tries():
    sent = make_sent(429, response_headers={"retry-after": "1"})
    assert wait(3, sent) == 1800
    assert wait(10, sent) is None
