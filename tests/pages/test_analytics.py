"""The page of analytics: filters in the address, what is unknown as a dash, the same as CSV, what to do when empty."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from config.core.ids import encode, uuid7
from tests.analytics.factories import (
    make_failed,
    make_measurement,
    make_outlet,
    make_published,
    make_source,
)

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@pytest.fixture
def owner(alice, newsroom, as_person):
    with time_machine.travel(NOW, tick=False):
        yield as_person(alice)


@pytest.fixture
def outlet(newsroom):
    return make_outlet(newsroom, name="Harbour <b>news</b>", platform="mastodon")


def at(workspace, name="analytics_page", **query):
    from urllib.parse import urlencode

    return f"{reverse(name, kwargs={'ws': workspace.pk})}?{urlencode(query)}"


def drawn(answer, name):
    found = re.search(
        rf'<script id="{name}" type="application/json">(.*?)</script>', answer.content.decode(), re.DOTALL
    )
    return json.loads(found[1])


def test_an_empty_workspace_is_told_what_to_do(owner, newsroom):
    text = owner.get(at(newsroom)).content.decode()
    assert "Nothing was published yet" in text
    assert "Review items" in text
    assert "data-chart=" not in text
    # There is nothing to take along.
    assert "analytics.csv" not in text


def test_charts_draw_gaps_and_tables_dashes(owner, newsroom, outlet):
    publication = make_published(outlet, NOW - timedelta(days=3), bucket="video")
    make_measurement(publication, NOW - timedelta(days=2), views=1234)
    answer = owner.get(at(newsroom, range="7"))
    assert answer.status_code == 200
    chart = drawn(answer, "over-time")
    assert chart["labels"][0] == "14 Nov 2026"
    assert chart["lines"][0]["values"] == [None, None, None, None, 1234, None, None]
    assert chart["lines"][1] == {"name": "Previous period", "values": [None] * 7, "before": True}
    assert drawn(answer, "by-outlet")["lines"][0]["name"] == "Harbour <b>news</b>"
    assert drawn(answer, "by-kind")["lines"][0]["name"] == "Video"
    text = answer.content.decode()
    assert "<b>news</b>" not in text
    assert '<th scope="row">18 Nov 2026</th><td class="number">1,234</td><td class="number">—</td>' in text
    assert 'title="not provided by the platform"' in text


def test_filters_are_kept_in_the_address_and_narrow(owner, newsroom, outlet):
    other = make_outlet(newsroom, name="Other", platform="bluesky")
    for one, bucket, views in ((outlet, "video", 5), (outlet, "text", 7), (other, "video", 11)):
        publication = make_published(one, NOW - timedelta(days=3), bucket=bucket)
        make_measurement(publication, NOW - timedelta(days=2), views=views)
    query = {"range": "7", "outlet": encode("out", outlet.pk), "content_type": "video", "metric": "views"}
    answer = owner.get(at(newsroom, **query, attribution="published"))
    assert sum(value or 0 for value in drawn(answer, "over-time")["lines"][0]["values"]) == 5
    assert drawn(answer, "over-time")["lines"][0]["values"][3] == 5
    text = answer.content.decode()
    assert f'<option value="{encode("out", outlet.pk)}" selected>' in text
    assert "analytics.csv?" in text
    assert "content_type=video" in text


def test_the_csv_has_the_rows_of_the_api(owner, newsroom, outlet):
    publication = make_published(
        outlet, NOW - timedelta(days=3), bucket="video", source=make_source(newsroom)
    )
    make_measurement(publication, NOW - timedelta(days=2), views=5)
    answer = owner.get(at(newsroom, "analytics_csv", range="7", metric="likes"))
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="analytics.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [(row["date"], row["published"], row["views"], row["likes"]) for row in rows] == [
        ("2026-11-17", "1", "", ""),
        ("2026-11-18", "0", "5", ""),
    ]
    assert rows[1]["likes_availability"] == "unsupported"
    refused = owner.get(at(newsroom, "analytics_csv", range="never"))
    assert refused.status_code == 302
    assert refused["Location"] == at(newsroom, range="never")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"range": "chosen"}, "Enter a start date."),
        (
            {"range": "chosen", "start": "2026-11-02", "end": "2026-11-01"},
            "The end is before the start.",
        ),
        ({"range": "chosen", "start": "2025-01-01", "end": "2026-11-01"}, "Choose at most 366 days."),
        ({"range": "30", "interval": "hour"}, "Hourly data covers at most 14 days."),
        ({"range": "chosen", "start": "0001-01-01", "end": "0001-01-02"}, "Choose a day in range."),
        ({"range": "chosen", "start": "9999-12-31", "end": "9999-12-31"}, "Choose a day in range."),
        ({"tz": "Mars/Base"}, "Select a valid choice."),
        ({"outlet": "out_x"}, "Select a valid choice."),
        ({"metric": "joy"}, "Select a valid choice."),
    ],
)
def test_what_can_not_be_shown_is_said_at_its_field(owner, newsroom, outlet, query, said):
    answer = owner.get(at(newsroom, **query))
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert "Invalid filters" in answer.content.decode() or "Invalid filters" in answer.content.decode()


def test_hours_of_a_zone_with_half_an_hour(owner, newsroom, outlet):
    make_published(outlet, NOW)
    answer = owner.get(at(newsroom, range="1", tz="Asia/Kolkata", metric="published"))
    chart = drawn(answer, "over-time")
    assert len(chart["labels"]) == 24
    assert chart["labels"][21] == "20 Nov, 21:00 (+05:30)"
    # What hasn't come yet isn't known.
    assert chart["lines"][0]["values"] == [0] * 21 + [1] + [None] * 2


def test_an_outlet_of_nobody_and_one_of_others_show_nothing(owner, newsroom, charlie, outlet):
    from accounts import workspaces

    theirs = make_outlet(workspaces.memberships_of(charlie)[0].workspace, name="Secret stage")
    make_measurement(make_published(theirs, NOW), NOW, views=99)
    make_published(outlet, NOW)
    for pk in (theirs.pk, uuid7()):
        text = owner.get(at(newsroom, outlet=encode("out", pk))).content.decode()
        assert "No data for these dates" in text
        assert "Secret stage" not in text


def test_lateness_and_failures_are_told(owner, newsroom, outlet):
    for _ in range(3):
        make_published(outlet, NOW - timedelta(days=1), due_at=NOW - timedelta(days=1, seconds=5))
    make_failed(outlet, NOW - timedelta(days=1))
    context = owner.get(at(newsroom)).context
    assert context["failed_percent"] == 25.0
    assert context["did"].lateness.on_time_percent == 100.0
    assert context["median"] == "5 seconds"


def test_a_page_costs_the_same_however_much_there_is(owner, newsroom, outlet):
    first = make_published(outlet, NOW - timedelta(days=1), source=make_source(newsroom))
    make_measurement(first, NOW, views=1)
    owner.get(at(newsroom))
    with CaptureQueriesContext(connection) as few:
        owner.get(at(newsroom))
    for number in range(5):
        one = make_outlet(newsroom, name=f"Outlet {number}")
        source = make_source(newsroom, f"Source {number}")
        make_measurement(make_published(one, NOW - timedelta(days=number), source=source), NOW, views=number)
    with CaptureQueriesContext(connection) as many:
        owner.get(at(newsroom))
    assert len(many) == len(few) <= 40


def test_what_is_counted_here_stands_apart(owner, newsroom, outlet):
    from pipeline.models import HitCount, Outlet

    publication = make_published(outlet, NOW - timedelta(days=1))
    make_measurement(publication, NOW, clicks=50)
    text = owner.get(at(newsroom)).content.decode()
    assert "No clicks tracked in these dates." in text
    Outlet.everywhere.filter(pk=outlet.pk).update(clicks_since=NOW - timedelta(days=2))
    shared = {"workspace": newsroom, "start": NOW, "outlet": outlet}
    HitCount.everywhere.create(
        kind="click", key=publication.pk, publication=publication, count=1203, **shared
    )
    HitCount.everywhere.create(kind="fetch", key=outlet.pk, count=9, **shared)
    answer = owner.get(at(newsroom))
    assert answer.context["own"] == {"clicks": 1203, "feed_fetches": 9}
    assert answer.context["report"].totals.metrics["clicks"] == 50
    assert "No clicks tracked" not in answer.content.decode()
    assert '<td data-label="Own clicks" class="number">1,203</td>' in answer.content.decode()
