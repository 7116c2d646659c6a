"""What an answer says: rows, totals, gaps and their reasons, coverage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection

from analytics import fact_sums, queries, rollup
from analytics.aggregate import METRICS, NULLABLE, Figures
from analytics.calendar_periods import Period, buckets_of
from analytics.models import Measurement, Outcome
from analytics.rollup_coverage import split_period
from pipeline.platforms.base import METRICS as MEASURED
from tests.analytics.factories import (
    NOON,
    after,
    make_failed,
    make_measurement,
    make_outlet,
    make_persona,
    make_published,
    make_source,
)

SIX = {"impressions": 200, "views": 80, "likes": 8, "comments": 2, "shares": 1, "clicks": 3}


def numbers(figures):
    return {metric: value for metric, value in figures.metrics.items() if value is not None}


def by_date(answer):
    return {row.dimensions.date: numbers(row.figures) for row in answer.rows}


def dates(answer):
    return [(row.dimensions.date, row.figures.metrics["published"]) for row in answer.rows]


def test_nothing_is_zero_and_nothing(ask):
    answer = ask()
    assert answer == queries.AnalyticsAnswer(
        rows=(),
        totals=Figures(
            metrics={"published": 0, "failed": 0, **dict.fromkeys(NULLABLE)},
            availability=dict.fromkeys(NULLABLE, "unavailable"),
            coverage=None,
        ),
        fresh_at=None,
    )


def test_row_of_a_measured_publication(alice, ask):
    publication = make_published(alice, bucket="video")
    make_measurement(publication, after(hours=1), **SIX)
    [row] = ask().rows
    assert row == queries.AnalyticsRow(
        dimensions=queries.Dimensions(
            outlet=queries.OutletName(alice.pk, "simulated", "Stage"), content_type="video", date="2026-11-02"
        ),
        figures=Figures(
            metrics={"published": 1, "failed": 0, **SIX, "engagements": 14, "engagement_rate": 0.07},
            availability={},
            coverage=1.0,
        ),
    )


def test_every_null_has_a_reason_and_nothing_else_has(alice, ask):
    feed = make_outlet(alice.workspace, platform="feed", is_simulated=False)
    make_failed(alice, bucket="blog")
    make_published(feed, bucket="blog")
    make_measurement(make_published(alice, bucket="image"), after(hours=1), views=0)
    make_measurement(
        make_published(alice, bucket="video"), after(days=1), {"likes": "delayed"}, impressions=0, views=1
    )
    answer = ask()
    assert len(answer.rows) == 5
    for figures in (answer.totals, *(row.figures for row in answer.rows)):
        assert list(figures.metrics) == list(METRICS) or set(figures.metrics) == set(METRICS)
        assert set(figures.availability) == {name for name, value in figures.metrics.items() if value is None}


def test_zero_that_was_counted_stays_zero(alice, ask):
    make_measurement(make_published(alice), after(hours=1), **dict.fromkeys(MEASURED, 0))
    [row] = ask().rows
    assert {metric: row.figures.metrics[metric] for metric in (*MEASURED, "engagements")} == dict.fromkeys(
        (*MEASURED, "engagements"), 0
    )
    # A rate of no impressions doesn't exist.
    assert row.figures.availability == {"engagement_rate": "unavailable"}


def test_not_yet_measured_is_delayed(alice, ask):
    make_published(alice)
    [row] = ask().rows
    assert row.figures.availability == dict.fromkeys(NULLABLE, "delayed")
    assert row.figures.coverage == 0.0


def test_platform_without_metrics_is_unsupported_before_and_after_it_was_asked(alice, ask):
    feed = make_outlet(alice.workspace, platform="feed", is_simulated=False)
    publication = make_published(feed)
    assert ask().rows[0].figures.availability == dict.fromkeys(NULLABLE, "unsupported")
    make_measurement(publication, after(hours=1))
    [row] = ask().rows
    assert row.figures.availability == dict.fromkeys(NULLABLE, "unsupported")
    assert row.figures.coverage == 0.0


def test_platform_that_failed_is_unavailable(alice, ask):
    publication = make_published(alice)
    make_measurement(publication, after(hours=1), dict.fromkeys(MEASURED, "unavailable"))
    [row] = ask().rows
    assert row.figures.availability == dict.fromkeys(NULLABLE, "unavailable")
    assert row.figures.coverage == 0.0


def test_only_failures_have_no_numbers(alice, ask):
    feed = make_outlet(alice.workspace, platform="feed", is_simulated=False)
    make_failed(alice, bucket="text")
    make_failed(feed, bucket="blog")
    by_type = {row.dimensions.content_type: row.figures for row in ask().rows}
    assert numbers(by_type["text"]) == numbers(by_type["blog"]) == {"published": 0, "failed": 1}
    assert by_type["text"].availability == dict.fromkeys(NULLABLE, "unavailable")
    assert by_type["blog"].availability == dict.fromkeys(NULLABLE, "unsupported")
    assert by_type["text"].coverage is None


def test_weightiest_reason_wins(alice, ask):
    feed = make_outlet(alice.workspace, platform="feed", is_simulated=False)
    make_measurement(make_published(feed), after(hours=1))
    assert ask(group_by=()).totals.availability["views"] == "unsupported"
    make_published(alice)
    assert ask(group_by=()).totals.availability["views"] == "delayed"
    make_measurement(make_published(alice), after(hours=1), {"views": "unavailable"}, likes=1)
    totals = ask(group_by=()).totals
    assert totals.availability["views"] == "unavailable"
    assert (totals.metrics["engagements"], totals.metrics["likes"]) == (1, 1)
    # The impressions are missing: no rate.
    assert totals.metrics["engagement_rate"] is None


def test_known_numbers_outweigh_gaps_of_others(alice, ask):
    feed = make_outlet(alice.workspace, platform="feed", is_simulated=False)
    make_measurement(make_published(feed), after(hours=1))
    make_measurement(make_published(alice), after(hours=1), **SIX)
    totals = ask(group_by=("content_type",)).totals
    assert totals.metrics["views"] == 80
    assert totals.availability == {}
    assert totals.coverage == 0.5


def test_restated_numbers_take_back(alice, ask):
    publication = make_published(alice)
    make_measurement(publication, after(hours=1), views=80, impressions=100)
    make_measurement(publication, after(days=1), views=-30, impressions=0)
    answer = ask()
    assert [row.figures.metrics["views"] for row in answer.rows] == [80, -30]
    assert answer.totals.metrics["views"] == 50


def test_attribution_received_counts_on_the_day_of_counting(alice, ask):
    publication = make_published(alice)
    make_measurement(publication, after(hours=1), views=80)
    make_measurement(publication, after(days=1), views=20)
    answer = ask(attribution="received")
    assert by_date(answer) == {
        "2026-11-02": {"published": 1, "failed": 0, "views": 80},
        "2026-11-03": {"published": 0, "failed": 0, "views": 20},
    }
    assert [row.figures.coverage for row in answer.rows] == [1.0, None]


def test_attribution_published_counts_on_the_day_of_publication(alice, ask):
    publication = make_published(alice)
    make_measurement(publication, after(hours=1), views=80)
    make_measurement(publication, after(days=1), views=20)
    assert by_date(ask(attribution="published")) == {
        "2026-11-02": {"published": 1, "failed": 0, "views": 100}
    }


def test_attributions_differ_at_the_edge_of_the_range(alice, ask):
    publication = make_published(alice, datetime(2026, 10, 31, 23, 59, tzinfo=UTC))
    make_measurement(publication, datetime(2026, 11, 1, tzinfo=UTC), views=7)
    assert by_date(ask(attribution="received")) == {"2026-11-01": {"published": 0, "failed": 0, "views": 7}}
    assert ask(attribution="published").rows == ()


def test_row_measured_on_a_later_day_is_delayed_and_covered(alice, ask):
    publication = make_published(alice)
    make_measurement(publication, after(days=1), **SIX)
    first, second = ask().rows
    assert first.figures.availability == dict.fromkeys(NULLABLE, "delayed")
    assert (first.figures.coverage, second.figures.coverage) == (1.0, None)


def test_coverage_is_the_share_with_a_number(alice, ask):
    for given in (SIX, SIX, {}):
        make_measurement(make_published(alice), after(hours=1), **given)
    for _ in range(3):
        make_published(alice)
    make_failed(alice)
    answer = ask()
    assert answer.rows[0].figures.coverage == answer.totals.coverage == 0.3333


def test_range_is_half_open(alice, ask):
    start, end = NOON, after(hours=1)
    inside = [start, end - timedelta(microseconds=1)]
    for at in (start - timedelta(microseconds=1), *inside, end):
        make_measurement(make_published(alice, at), at, views=1)
    totals = ask(start=start, end=end).totals
    assert (totals.metrics["published"], totals.metrics["views"]) == (2, 2)


def test_rows_come_by_date_outlet_and_content_type(alice, ask):
    other = make_outlet(alice.workspace, name="Another")
    for outlet in (other, alice):
        for bucket in ("video", "blog"):
            for at in (after(days=1), NOON):
                make_published(outlet, at, bucket=bucket)
    found = [
        (row.dimensions.date, row.dimensions.outlet.id, row.dimensions.content_type) for row in ask().rows
    ]
    outlets = sorted([alice.pk, other.pk])
    assert found == [
        (day, outlet, bucket)
        for day in ("2026-11-02", "2026-11-03")
        for outlet in outlets
        for bucket in ("blog", "video")
    ]


def test_further_dimensions(alice, ask):
    source, persona = make_source(alice.workspace), make_persona(alice.workspace)
    make_published(alice, source=source, persona=persona, engine_output="Persona Short")
    make_published(alice, engine_output="Quote Graphic")
    rows = ask(group_by=("source", "engine_output", "persona")).rows
    assert [row.dimensions for row in rows] == [
        queries.Dimensions(source=source.pk, engine_output="Persona Short", persona=persona.pk),
        queries.Dimensions(engine_output="Quote Graphic"),
    ]


def test_filters(alice, ask):
    other = make_outlet(alice.workspace, name="Another")
    for outlet, bucket in ((alice, "text"), (alice, "blog"), (other, "text"), (other, "video")):
        make_measurement(make_published(outlet, bucket=bucket), after(hours=1), views=1)

    def counts(**filters):
        totals = ask(**filters).totals.metrics
        return totals["published"], totals["views"]

    assert counts() == (4, 4)
    assert counts(outlets=(alice.pk,)) == (2, 2)
    assert counts(outlets=(alice.pk, other.pk)) == (4, 4)
    assert counts(content_types=("text", "video")) == (3, 3)
    assert counts(content_types=("text",), outlets=(other.pk,)) == (1, 1)
    assert counts(outlets=(alice.workspace_id,)) == (0, None)


def test_other_workspaces_are_never_counted(alice, charlie, ask):
    make_measurement(make_published(charlie), after(hours=1), views=900)
    make_measurement(make_published(alice), after(hours=1), views=1)
    answer = ask()
    assert [row.dimensions.outlet.id for row in answer.rows] == [alice.pk]
    assert (answer.totals.metrics["published"], answer.totals.metrics["views"]) == (1, 1)
    assert ask(outlets=(charlie.pk,)) == ask(outlets=(charlie.workspace_id,))


def test_freshness_is_the_workspaces_own(alice, charlie, ask):
    make_measurement(make_published(charlie), after(days=3), views=900)
    make_published(alice)
    assert ask().fresh_at == NOON
    make_measurement(make_published(alice, test=True), after(days=2), views=1)
    assert ask().fresh_at == NOON
    make_measurement(make_published(alice), after(days=1), views=1)
    assert ask().fresh_at == after(days=1)


def test_test_data_is_apart(alice, ask):
    make_measurement(make_published(alice, test=True), after(hours=1), views=900)
    make_measurement(make_published(alice), after(hours=1), views=1)
    assert ask().totals.metrics["views"] == 1
    assert ask(test=True).totals.metrics["views"] == 900


@pytest.mark.parametrize(
    ("tz", "expected"),
    [
        ("UTC", [("2026-03-28", 1), ("2026-03-29", 2)]),
        ("Europe/Berlin", [("2026-03-29", 2), ("2026-03-30", 1)]),
    ],
)
def test_days_of_a_zone_in_spring(alice, ask, tz, expected):
    # 00:30 on the 29th, 23:30 on the 29th and 00:30 on the 30th in Berlin.
    for at in ("2026-03-28T23:30:00+00:00", "2026-03-29T21:30:00+00:00", "2026-03-29T22:30:00+00:00"):
        make_published(alice, datetime.fromisoformat(at))
    answer = ask(start=datetime(2026, 3, 1, tzinfo=UTC), end=datetime(2026, 4, 1, tzinfo=UTC), tz=tz)
    assert dates(answer) == expected


def test_day_of_25_hours_takes_them_all(alice, ask):
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)
    for hours in range(26):
        make_published(alice, start + timedelta(hours=hours))
    found = ask(start=start, end=start + timedelta(days=3), tz="Europe/Berlin")
    assert dates(found) == [("2026-10-25", 25), ("2026-10-26", 1)]
    hours = ask(start=start, end=start + timedelta(hours=25), tz="Europe/Berlin", interval="hour")
    assert len(hours.rows) == 25
    assert {count for _, count in dates(hours)} == {1}


@pytest.mark.parametrize(
    ("tz", "at", "date"),
    [
        ("Asia/Kolkata", "2026-11-02T18:29:59+00:00", "2026-11-02"),
        ("Asia/Kolkata", "2026-11-02T18:30:00+00:00", "2026-11-03"),
        ("America/St_Johns", "2026-11-03T03:29:59+00:00", "2026-11-02"),
        ("America/St_Johns", "2026-11-03T03:30:00+00:00", "2026-11-03"),
        ("Asia/Kathmandu", "2026-11-02T18:14:59+00:00", "2026-11-02"),
        ("Asia/Kathmandu", "2026-11-02T18:15:00+00:00", "2026-11-03"),
    ],
)
def test_half_hour_zones(alice, ask, tz, at, date):
    moment = datetime.fromisoformat(at)
    make_measurement(make_published(alice, moment), moment, views=1)
    assert by_date(ask(tz=tz)) == {date: {"published": 1, "failed": 0, "views": 1}}


def test_weeks_and_months(alice, ask):
    sunday, monday = datetime(2026, 11, 1, 23, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)
    october = datetime(2026, 10, 31, 23, tzinfo=UTC)
    for at in (october, sunday, monday):
        make_published(alice, at)
    start = datetime(2026, 10, 1, tzinfo=UTC)
    assert dates(ask(start=start, interval="week")) == [("2026-10-26", 2), ("2026-11-02", 1)]
    assert dates(ask(start=start, interval="month")) == [("2026-10-01", 1), ("2026-11-01", 2)]
    assert dates(ask(start=start, interval="month", tz="Europe/Berlin")) == [("2026-11-01", 3)]


def test_without_dates_there_is_one_row(alice, ask):
    make_published(alice)
    make_published(alice, after(days=5), bucket="video")
    answer = ask(group_by=("outlet",))
    assert len(answer.rows) == 1
    assert answer.rows[0].figures == answer.totals


def test_number_of_statements_is_the_same_for_one_row_and_for_300(alice, ask, django_assert_num_queries):
    make_measurement(make_published(alice), after(hours=1), views=1)
    with django_assert_num_queries(7):
        assert len(ask().rows) == 1
    outlets = [make_outlet(alice.workspace, name=f"Stage {number}") for number in range(10)]
    for outlet in outlets:
        for day in range(15):
            publication = make_published(outlet, after(days=day), bucket="image")
            make_measurement(publication, after(days=day, hours=1), views=1)
            make_published(outlet, after(days=day), bucket="text")
    with django_assert_num_queries(7):
        assert len(ask().rows) == 301


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL plans by statistics, which a test has not"
)
def test_queries_keep_their_indexes(alice):
    period = Period(NOON, after(days=1), "day", ZoneInfo("UTC"))
    for attribution, index in (("received", "measurement_received"), ("published", "measurement_published")):
        question = queries.Question(alice.workspace_id, test=False, period=period, attribution=attribution)
        buckets = buckets_of(period)
        spans = split_period(period, buckets, lambda *_: {})
        live = queries._unrolled_rows(Outcome, question, "at", buckets, spans)
        outcomes = fact_sums.outcome_groups(live, ["slice", *fact_sums.COLUMNS]).explain()
        assert "USING INDEX outcome_by_time (workspace_id=? AND test=? AND at>? AND at<?)" in outcomes
        # The look-up of each publication's measurements.
        assert "(publication_id=?)" in outcomes
        assert (
            f"USING INDEX {index} (workspace_id=? AND test=? AND "
            in queries._unrolled_rows(
                Measurement, question, rollup.ATTRIBUTIONS[attribution], buckets, spans
            ).explain()
        )
