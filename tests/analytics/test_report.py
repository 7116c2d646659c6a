"""What the page shows of a period: series with gaps, the period before, and who did best."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from analytics.calendar_periods import INTERVALS, Period, buckets_of, labels_of, local_midnight
from analytics.queries import Question, answer, answers
from analytics.reports.page_report import build_report, period_before
from tests.analytics.factories import (
    NOON,
    after,
    make_failed,
    make_measurement,
    make_outlet,
    make_published,
    make_source,
)


def period(first, last, *, interval="day", tz="UTC"):
    zone = ZoneInfo(tz)
    return Period(local_midnight(first, zone), local_midnight(last + timedelta(days=1), zone), interval, zone)


def question(outlet, first=date(2026, 11, 1), last=date(2026, 11, 7), **given):
    scope = {name: given.pop(name) for name in ("outlets", "content_types", "attribution") if name in given}
    return Question(
        workspace_id=outlet.workspace_id, test=False, period=period(first, last, **given), **scope
    )


def test_cutting_once_is_the_same_as_asking_often(alice):
    other = make_outlet(alice.workspace, name="Other")
    source = make_source(alice.workspace)
    for hours, outlet in ((0, alice), (5, other), (30, alice)):
        publication = make_published(outlet, after(hours=hours), source=source, bucket="video")
        make_measurement(publication, after(hours=hours + 2), views=hours + 1, likes=2)
    make_failed(other, after(hours=3))
    ways = [("date",), ("outlet",), ("outlet", "content_type"), ("source", "date"), ()]
    whole = replace(question(alice), group_by=("outlet", "content_type", "date", "source"))
    for way, cut in zip(ways, answers(whole, ways), strict=True):
        assert cut == answer(replace(whole, group_by=way))


@pytest.mark.parametrize(
    "tz", ["UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"]
)
@pytest.mark.parametrize("interval", INTERVALS)
def test_labels_are_those_of_every_bucket_over_a_change_of_clocks(tz, interval):
    for first in (date(2026, 3, 27), date(2026, 10, 23), date(2011, 12, 28)):
        asked = period(first, first + timedelta(days=9), interval=interval, tz=tz)
        buckets = buckets_of(asked)
        moment, found = asked.start, []
        while moment < asked.end:
            seconds = int(moment.timestamp())
            offset = next((one for until, one in buckets.offsets if seconds < until), buckets.last_offset)
            label = buckets.label_of(buckets.bucket_of((seconds + offset) // buckets.step))
            found.append(label)
            moment += timedelta(minutes=15)
        seen = list(dict.fromkeys(found))
        labels = labels_of(asked)
        # A day that a zone skipped has no moment in it, and yet its place.
        assert [label for label in labels if label in seen] == seen
        assert set(labels) - set(seen) <= {"2011-12-30"}


def test_what_is_unknown_is_a_gap_and_what_is_known_to_be_none_is_zero(alice):
    publication = make_published(alice, NOON)
    make_measurement(publication, after(hours=1), views=10)
    make_measurement(publication, after(days=2), views=5)
    now = after(days=3)

    seen = build_report(question(alice), "views", now=now)

    # The 2nd and the 4th of November; nobody counted on the 3rd, and the rest hasn't come yet.
    assert seen.over_time.lines[0].values == (None, 10, None, 5, None, None, None)
    assert seen.over_time.lines[1].values == (None,) * 7
    published = build_report(question(alice), "published", now=now)
    assert published.over_time.lines[0].values == (0, 1, 0, 0, 0, None, None)


def test_the_period_before_stands_beside(alice):
    make_measurement(make_published(alice, after(days=-7)), after(days=-7, hours=1), views=50)
    make_measurement(make_published(alice, NOON), after(hours=1), views=75)
    seen = build_report(question(alice), "views", now=after(days=3))
    views = next(one for one in seen.compared if one.metric == "views")
    assert (views.now, views.before, views.change) == (75, 50, 50)
    likes = next(one for one in seen.compared if one.metric == "likes")
    assert (likes.now, likes.before, likes.change, likes.reason) == (None, None, None, "unsupported")
    # Place by place: the second day of each.
    assert [line.values[1] for line in seen.over_time.lines] == [75, 50]


def test_the_period_before_is_as_long_by_the_clock_on_the_wall():
    asked = period(date(2026, 10, 25), date(2026, 10, 31), tz="Europe/Berlin")
    earlier = period_before(asked)
    assert earlier.end == asked.start
    assert earlier.start == datetime(2026, 10, 17, 22, tzinfo=UTC)
    assert asked.end - asked.start == timedelta(days=7, hours=1)


def test_a_number_that_nobody_knows_is_not_opened_with(alice):
    make_measurement(make_published(alice, NOON), after(hours=1), views=3)
    assert build_report(question(alice), "", now=after(days=1)).metric == "views"
    other = make_outlet(alice.workspace, name="Mute", platform="feed")
    make_published(other, NOON)
    mute = question(alice, outlets=(other.pk,))
    assert build_report(mute, "", now=after(days=1)).metric == "published"


def test_lines_parts_and_ranks(alice):
    names = [f"Outlet {number:02}" for number in range(10)]
    blog = make_source(alice.workspace, "Blog")
    for number, name in enumerate(names):
        outlet = make_outlet(alice.workspace, name=name)
        publication = make_published(
            outlet,
            NOON,
            source=blog if number % 2 else None,
            engine_output="Thread" if number < 3 else "Short Post",
        )
        make_measurement(publication, after(hours=1), views=number * 10 + 1)
    seen = build_report(question(alice), "views", now=after(days=1))
    assert [line.name for line in seen.by_outlet.lines] == names[:1:-1]
    assert seen.by_outlet.left_out == 2
    assert [line.name for line in seen.by_type.lines] == ["text"]
    assert {one.name for one in seen.parts} == set(names)
    assert [(one.name, one.figures.metrics["views"]) for one in seen.sources] == [("Blog", 255), ("", 205)]
    assert [(one.name, one.figures.metrics["views"]) for one in seen.engines] == [
        ("Short Post", 427),
        ("Thread", 33),
    ]


def test_an_empty_period_and_an_empty_workspace(alice, charlie):
    make_measurement(make_published(charlie, NOON), after(hours=1), views=3)
    empty = build_report(question(alice), "", now=after(days=1))
    assert empty.is_empty
    assert empty.fresh_at is None
    assert empty.over_time.lines[0].values[:3] == (0, 0, 0)
    earlier = build_report(question(charlie, date(2026, 1, 1), date(2026, 1, 7)), "", now=after(days=1))
    assert earlier.is_empty
    assert earlier.fresh_at is not None


def test_two_outlets_of_one_name_are_two_lines(alice):
    for platform, views in (("simulated", 5), ("x", 7), ("x", 11)):
        outlet = make_outlet(alice.workspace, name="City", platform=platform)
        make_measurement(make_published(outlet, NOON), after(hours=1), views=views)
    other = make_published(make_outlet(alice.workspace, name="Town"), NOON)
    make_measurement(other, after(hours=1), views=1)
    seen = build_report(question(alice), "views", now=after(days=1))
    sums = [(line.name, sum(value or 0 for value in line.values)) for line in seen.by_outlet.lines]
    assert sums == [("City (X)", 11), ("City (X)", 7), ("City (Test channel)", 5), ("Town", 1)]
    assert {one.name for one in seen.parts} == {"City (X)", "City (Test channel)", "Town"}
