"""Local buckets: days of 23 and 25 hours, half-hour zones, weeks, months, years."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from analytics.calendar_periods import Period, buckets_of, local_midnight, zone_names


def period(start, end, interval, tz):
    zone = ZoneInfo(tz)
    return Period(local_midnight(start, zone), local_midnight(end, zone), interval, zone)


def place_of(buckets, seconds):
    """What the database and the fold do with a moment."""
    offset = next((offset for until, offset in buckets.offsets if seconds < until), buckets.last_offset)
    return buckets.bucket_of((seconds + offset) // buckets.step)


def told_of(asked):
    """The hours that fall into each bucket, in the order of places."""
    buckets = buckets_of(asked)
    quarters = Counter(
        place_of(buckets, seconds)
        for seconds in range(int(asked.start.timestamp()), int(asked.end.timestamp()), 900)
    )
    return {buckets.label_of(place): quarters[place] / 4 for place in sorted(quarters)}


def told(start, end, interval, tz):
    return told_of(period(start, end, interval, tz))


def test_days_of_utc():
    assert told(date(2026, 2, 27), date(2026, 3, 2), "day", "UTC") == {
        "2026-02-27": 24,
        "2026-02-28": 24,
        "2026-03-01": 24,
    }


def test_day_of_23_hours():
    assert told(date(2026, 3, 28), date(2026, 3, 31), "day", "Europe/Berlin") == {
        "2026-03-28": 24,
        "2026-03-29": 23,
        "2026-03-30": 24,
    }


def test_day_of_25_hours():
    days = told(date(2026, 10, 24), date(2026, 10, 27), "day", "Europe/Berlin")
    assert days == {"2026-10-24": 24, "2026-10-25": 25, "2026-10-26": 24}


@pytest.mark.parametrize("tz", ["Asia/Kolkata", "America/St_Johns", "Asia/Kathmandu"])
def test_zones_of_half_and_quarter_hours(tz):
    days = told(date(2026, 11, 1), date(2026, 11, 5), "day", tz)
    assert list(days) == ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"]
    # Newfoundland's clocks go back on the first of November.
    assert list(days.values()) == [25 if tz == "America/St_Johns" else 24, 24, 24, 24]


def test_day_whose_midnight_is_skipped():
    # In Cairo the clocks go from 00:00 to 01:00 on the last Friday of April.
    assert local_midnight(date(2026, 4, 24), ZoneInfo("Africa/Cairo")) == datetime(
        2026, 4, 23, 22, tzinfo=UTC
    )
    days = told(date(2026, 4, 23), date(2026, 4, 26), "day", "Africa/Cairo")
    assert days == {"2026-04-23": 24, "2026-04-24": 23, "2026-04-25": 24}


def test_skipped_day_takes_nothing():
    # Samoa had no 30 December 2011.
    assert told(date(2011, 12, 29), date(2012, 1, 1), "day", "Pacific/Apia") == {
        "2011-12-29": 24,
        "2011-12-31": 24,
    }


def test_hours_of_the_day_that_loses_one():
    hours = told(date(2026, 3, 29), date(2026, 3, 30), "hour", "Europe/Berlin")
    assert len(hours) == 23
    assert list(hours)[1:3] == ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"]
    assert set(hours.values()) == {1}


def test_hours_of_the_day_that_repeats_one():
    hours = told(date(2026, 10, 25), date(2026, 10, 26), "hour", "Europe/Berlin")
    assert len(hours) == 25
    assert list(hours)[2:4] == ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"]


def test_hours_of_kolkata():
    asked = Period(
        datetime(2026, 11, 2, 12, 10, 20, tzinfo=UTC),
        datetime(2026, 11, 2, 14, 0, tzinfo=UTC),
        "hour",
        ZoneInfo("Asia/Kolkata"),
    )
    assert tuple(told_of(asked)) == (
        "2026-11-02T17:00:00+05:30",
        "2026-11-02T18:00:00+05:30",
        "2026-11-02T19:00:00+05:30",
    )


def test_hours_around_a_change_by_half_an_hour():
    hours = told(date(2026, 4, 5), date(2026, 4, 6), "hour", "Australia/Lord_Howe")
    assert list(hours.items())[1:4] == [
        ("2026-04-05T01:00:00+11:00", 1),
        ("2026-04-05T01:30:00+10:30", 0.5),
        ("2026-04-05T02:00:00+10:30", 1),
    ]
    assert sum(hours.values()) == 24.5


def test_weeks_start_on_monday_and_cover_a_range_that_does_not():
    asked = period(date(2026, 10, 29), date(2026, 11, 10), "week", "Europe/Berlin")
    assert list(told_of(asked)) == ["2026-10-26", "2026-11-02", "2026-11-09"]
    weeks = told(date(2026, 10, 19), date(2026, 11, 2), "week", "Europe/Berlin")
    assert weeks == {"2026-10-19": 7 * 24 + 1, "2026-10-26": 7 * 24}


def test_months_have_their_own_lengths():
    months = told(date(2027, 12, 1), date(2028, 4, 1), "month", "UTC")
    assert months == {
        "2027-12-01": 31 * 24,
        "2028-01-01": 31 * 24,
        "2028-02-01": 29 * 24,
        "2028-03-01": 31 * 24,
    }
    cut = told(date(2026, 1, 31), date(2026, 3, 2), "month", "UTC")
    assert cut == {"2026-01-01": 24, "2026-02-01": 28 * 24, "2026-03-01": 24}


def test_first_hour_of_all():
    asked = period(date(1970, 1, 1), date(1970, 1, 2), "hour", "UTC")
    assert len(told_of(asked)) == 24
    single = Period(asked.start, asked.start + timedelta(minutes=30), "hour", asked.zone)
    assert told_of(single) == {"1970-01-01T00:00:00+00:00": 0.5}


def test_slices_of_dates_are_local_days():
    # However fine a zone's offset is, the database gives at most one slice a day.
    for tz in ("UTC", "Europe/Berlin", "Asia/Kathmandu"):
        assert buckets_of(period(date(2026, 1, 1), date(2027, 1, 1), "month", tz)).step == 86_400
    berlin = buckets_of(period(date(2026, 1, 1), date(2027, 1, 1), "day", "Europe/Berlin"))
    spring, autumn = (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC))
    assert berlin.offsets == ((int(spring.timestamp()), 3600), (int(autumn.timestamp()), 7200))
    assert berlin.last_offset == 3600


@pytest.mark.parametrize(
    "tz", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe"]
)
@pytest.mark.parametrize("interval", ["hour", "day", "week", "month"])
def test_every_moment_of_a_year_falls_into_the_bucket_of_its_local_date(tz, interval):
    asked = period(date(2026, 1, 1), date(2027, 1, 1), interval, tz)
    buckets = buckets_of(asked)
    moment = asked.start + timedelta(minutes=7, seconds=31)
    while moment < asked.end:
        label = buckets.label_of(place_of(buckets, int(moment.timestamp())))
        local = moment.astimezone(asked.zone)
        day = local.date()
        wanted = {
            "day": day,
            "week": day - timedelta(days=day.weekday()),
            "month": day.replace(day=1),
        }.get(interval)
        if wanted is not None:
            assert label == wanted.isoformat()
        else:
            assert label[:13] == local.isoformat()[:13]
            assert label[-6:] == local.isoformat()[-6:]
        moment += timedelta(minutes=97)


def test_length_is_counted_by_the_calendar():
    assert period(date(2026, 3, 29), date(2026, 3, 30), "day", "Europe/Berlin").days == 1
    assert period(date(2028, 1, 1), date(2029, 1, 1), "day", "Europe/Berlin").days == 366


def test_zones_are_places():
    assert {"UTC", "Europe/Berlin", "America/St_Johns"} <= zone_names()
    assert not {"localtime", "Factory", "posixrules", "Europe", ""} & zone_names()
