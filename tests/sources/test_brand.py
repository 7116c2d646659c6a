"""The brand lane's clock: slots of the week in a time zone, hours without drift, and seasons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.plugins import ConfigInvalid
from pipeline.sources.brand import PLUGIN, is_in_season, next_slot, zone_of

HOUR = timedelta(hours=1)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def weekly(*slots, timezone="Europe/Berlin"):
    listed = [{"weekday": one.split()[0], "time": one.split()[1]} for one in slots]
    return {"cadence": {"slots": listed, "timezone": timezone}}


def following(config, after, count):
    found = []
    for _ in range(count):
        after = next_slot(config, after=after, previous=None, default_zone="UTC")
        found.append(after.isoformat()[:16])
    return found


def test_slots_follow_each_other_over_the_week():
    config = weekly("mon 09:30", "thu 17:00")
    assert following(config, at("2027-01-04T08:30:00"), 3) == [
        "2027-01-07T16:00",
        "2027-01-11T08:30",
        "2027-01-14T16:00",
    ]
    assert following(config, at("2027-01-04T08:29:59"), 1) == ["2027-01-04T08:30"]


def test_local_time_stays_when_the_clocks_change():
    # Berlin goes to summer time on 28 March 2027, and back on 31 October.
    assert following(weekly("sat 09:00", "sun 09:00"), at("2027-03-27T00:00:00"), 3) == [
        "2027-03-27T08:00",
        "2027-03-28T07:00",
        "2027-04-03T07:00",
    ]


def test_time_that_the_clocks_skip_is_as_much_later():
    # 02:30 isn't there; 03:30 summer time is.
    assert following(weekly("sun 02:30"), at("2027-03-27T00:00:00"), 2) == [
        "2027-03-28T01:30",
        "2027-04-04T00:30",
    ]


def test_two_slots_that_a_gap_makes_one_come_once():
    assert following(weekly("sun 02:30", "sun 03:30"), at("2027-03-27T00:00:00"), 2) == [
        "2027-03-28T01:30",
        "2027-04-04T00:30",
    ]


def test_time_that_comes_twice_is_its_first_coming():
    assert following(weekly("sun 02:30"), at("2027-10-30T00:00:00"), 2) == [
        "2027-10-31T00:30",
        "2027-11-07T01:30",
    ]


def test_time_that_a_gap_moves_over_midnight_is_not_lost():
    # Beirut skips the hour after midnight on 28 March 2027.
    found = following(weekly("sun 00:10", timezone="Asia/Beirut"), at("2027-03-27T12:00:00"), 2)
    assert found == ["2027-03-27T22:10", "2027-04-03T21:10"]


def test_day_without_midday_on_the_other_side_of_the_date_line():
    assert following(weekly("mon 00:00", timezone="Pacific/Kiritimati"), at("2027-01-03T09:59:59"), 2) == [
        "2027-01-03T10:00",
        "2027-01-10T10:00",
    ]


def test_hours_do_not_drift_and_missed_ones_are_left_out():
    config = {"cadence": {"every_hours": 6}}
    first = at("2027-01-01T00:00:00")
    assert next_slot(config, after=first, previous=None, default_zone="UTC") == first
    late = first + timedelta(minutes=7)
    assert next_slot(config, after=late, previous=first, default_zone="UTC") == first + 6 * HOUR
    assert next_slot(config, after=first, previous=first, default_zone="UTC") == first + 6 * HOUR
    after_outage = first + 31 * HOUR
    assert next_slot(config, after=after_outage, previous=first, default_zone="UTC") == first + 36 * HOUR
    assert next_slot({}, after=late, previous=first, default_zone="UTC") == first + 24 * HOUR


def test_zone_is_the_lane_s_before_the_workspace_s():
    assert zone_of(weekly("mon 09:30"), "Asia/Tokyo").key == "Europe/Berlin"
    assert zone_of({"cadence": {"every_hours": 2}}, "Asia/Tokyo").key == "Asia/Tokyo"
    without = weekly("mon 09:30")
    del without["cadence"]["timezone"]
    found = next_slot(without, after=at("2027-01-03T00:00:00"), previous=None, default_zone="Asia/Tokyo")
    assert found == at("2027-01-04T00:30:00")


def test_unknown_zone_is_refused():
    config = {"cadence": {"slots": [{"weekday": "mon", "time": "09:30"}], "timezone": "Berlin"}}
    with pytest.raises(ConfigInvalid) as error:
        PLUGIN.clean_config(config)
    assert [(one.field, one.code) for one in error.value.problems] == [
        ("config.cadence.timezone", "unknown_timezone")
    ]


@pytest.mark.parametrize(
    ("day", "first", "last", "is_in"),
    [
        ("03-01", "", "", True),
        ("03-01", "03-01", "03-31", True),
        ("03-31", "03-01", "03-31", True),
        ("04-01", "03-01", "03-31", False),
        ("12-24", "11-15", "01-06", True),
        ("01-06", "11-15", "01-06", True),
        ("01-07", "11-15", "01-06", False),
        ("03-01", "02-20", "02-29", False),
    ],
)
def test_season_may_span_the_new_year(day, first, last, is_in):
    assert is_in_season(day, first, last) is is_in
