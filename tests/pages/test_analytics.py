"""The page of analytics: filters in the address, what is unknown as a dash, the same as CSV, what to do when empty."""

from __future__ import annotations

import csv
import html
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


def cells_of(answer, heading):
    """The words of each cell of the table below a heading, row by row."""
    text = answer.content.decode()
    table = text[text.index(f'id="{heading}"') :].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    return [
        [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)]
        for row in rows
    ]


def test_an_empty_workspace_is_told_what_to_do(owner, newsroom):
    text = owner.get(at(newsroom)).content.decode()
    assert "Nothing was published yet" in text
    assert "Review items" in text
    assert "data-chart=" not in text
    # There is nothing to take along, and nothing to choose from.
    assert "analytics.csv" not in text
    assert "Customise" not in text
    assert "analytics-bar" not in text


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


@pytest.mark.parametrize(
    ("start", "end", "fields"),
    [
        ("2026-11-01", "3500-01-01", ["end"]),
        ("0001-01-01", "2026-11-01", ["start"]),
        ("0001-01-01", "0001-01-02", ["end", "start"]),
        ("", "3500-01-01", ["end"]),
    ],
)
def test_a_day_out_of_range_is_said_at_its_own_field(owner, newsroom, outlet, start, end, fields):
    answer = owner.get(at(newsroom, range="chosen", start=start, end=end))
    errors = answer.context["filter"].errors
    assert sorted(name for name in errors if "Choose a day in range." in errors[name]) == fields


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
    header, row = cells_of(answer, "all-head")
    unknown = "— (not provided by the platform)"
    numbers = {**dict.fromkeys(header[2:], unknown), "Published": "1", "Failed": "0", "Own clicks": "1,203"}
    assert dict(zip(header, row, strict=True)) == {
        "Outlet": "Harbour <b>news</b>",
        "Kind": "Text",
        **numbers,
        "Clicks": "50",
        "Engagements": "50",
    }


def make_ranked(outlet, *, sources=(None,), formats=("Thread", "Short Post"), each=3):
    """Posts of each format on as many days: the views fall from format to format, and a little from post to post."""
    for place, name in enumerate(formats):
        for number in range(each):
            publication = make_published(
                outlet,
                NOW - timedelta(days=1 + number, hours=6 * place),
                engine_output=name,
                source=sources[number % len(sources)],
                metrics={"views": 100 - 40 * place - number, "likes": 3},
            )
            publication.item.title = f"{name} {number}"
            publication.item.save(update_fields=["title"])
            make_measurement(publication, NOW - timedelta(hours=2), views=100 - 40 * place - number)


def test_range_and_outlet_apply_at_once_and_the_rest_is_counted(owner, newsroom, outlet):
    make_published(outlet, NOW - timedelta(days=3))
    out = encode("out", outlet.pk)
    text = owner.get(at(newsroom)).content.decode()
    assert '<a href="?range=30" aria-current="true">30 days</a>' in text
    assert '<select name="outlet" data-submit' in text
    assert "<summary>Customise</summary>" in text
    set_query = {"outlet": out, "content_type": "text", "tz": "Asia/Kolkata", "attribution": "received"}
    text = owner.get(at(newsroom, range="7", metric="", **set_query)).content.decode()
    assert 'Customise <span class="badge accent">2<span class="said-only"> set</span></span>' in text
    # A range keeps the rest, and Customise the range.
    kept = f"outlet={out}&amp;content_type=text&amp;tz=Asia%2FKolkata"
    assert f'<a href="?range=90&amp;{kept}">90 days</a>' in text
    assert '<input type="hidden" name="range" value="7">' in text
    assert f'href="?range=7&amp;outlet={out}">Reset</a>' in text


def test_days_that_were_chosen_are_named_and_kept(owner, newsroom, outlet):
    make_published(outlet, NOW - timedelta(days=3))
    days = {"start": "2026-11-12", "end": "2026-11-20"}
    text = owner.get(at(newsroom, **days)).content.decode()
    assert "12 Nov 2026 – 20 Nov 2026 <svg" in text
    for name, value in {"range": "chosen", **days}.items():
        assert f'<input type="hidden" name="{name}" value="{value}">' in text
    assert "No earlier data to compare" in text


def test_figures_say_their_change_and_choose_the_metric(owner, newsroom, outlet):
    for days, views, likes in ((20, 50, 4), (3, 75, 3)):
        publication = make_published(outlet, NOW - timedelta(days=days))
        make_measurement(publication, NOW - timedelta(days=days - 1), views=views, likes=likes)
    make_failed(outlet, NOW - timedelta(days=2))
    answer = owner.get(at(newsroom, range="chosen", start="2026-11-07"))
    cards = {card.metric: card for card, _query, _is_current in answer.context["cards"]}
    # What no platform gives has no figure.
    assert list(cards) == ["published", "views", "engagements", "failed"]
    told = {name: (card.text, card.change, card.tone, card.about) for name, card in cards.items()}
    assert told == {
        "published": ("1", "0 %", "", "from 1"),
        "views": ("75", "+50 %", "good", "from 50"),
        "engagements": ("3", "\u221225 %", "bad", "from 4"),
        "failed": ("1", "", "", "from 0"),
    }
    text = answer.content.decode()
    assert "Compared with the 14 days before" in text
    query = "?range=chosen&amp;start=2026-11-07&amp;metric=views"
    assert f'<a class="card figure" href="{query}" aria-current="true">' in text


def test_what_worked_has_its_numbers_and_leads_to_the_posts(owner, newsroom, outlet):
    sources = [make_source(newsroom, name) for name in ("Blog", "Council")]
    make_ranked(outlet, sources=sources, each=6)
    answer = owner.get(at(newsroom, range="30", metric="views"))
    assert cells_of(answer, "best-head")[1] == [
        "Thread 0",
        "Thread",
        "Harbour <b>news</b>",
        "19 Nov 2026, 16:30",
        "100",
    ]
    assert len(cells_of(answer, "best-head")) == 6
    assert cells_of(answer, "best-format") == [
        ["Format", "Posts", "Median", "vs all"],
        ["Thread", "6", "98", "+26 %"],
        ["Short Post", "6", "58", "\u221226 %"],
    ]
    assert [row[0] for row in cells_of(answer, "best-source")[1:]] == ["Blog", "Council"]
    assert [row[0] for row in cells_of(answer, "best-time")[1:]] == ["15:00–18:00", "09:00–12:00"]
    text = answer.content.decode()
    content = reverse("items_page", kwargs={"ws": newsroom.pk})
    assert f'<a href="{content}?engine=Thread&amp;status=published">Thread</a>' in text
    source = encode("src", sources[0].pk)
    assert f'<a href="{content}?source={source}&amp;status=published">Blog</a>' in text
    assert "Not ranked: topics, days. A ranking needs two that differ, with 3 posts each." in text
    # The links lead to what they name.
    listed = owner.get(f"{content}?engine=Thread&status=published")
    assert listed.status_code == 200
    assert "Unknown filter" not in listed.content.decode()


def test_a_topic_leads_to_its_page_where_one_may_open_it(owner, newsroom, outlet):
    from pipeline.models import GeneratedItem, Topic
    from tests.analytics.factories import make_persona

    persona = make_persona(newsroom)
    topics = [
        Topic.everywhere.create(workspace=newsroom, title="The <tram>", persona=persona),
        Topic.everywhere.create(workspace=newsroom, title="Port", persona=persona, deleted_at=NOW),
    ]
    make_ranked(outlet)
    for name, topic in zip(("Thread", "Short Post"), topics, strict=True):
        GeneratedItem.objects.of(newsroom).filter(engine_output=name).update(topic=topic)
    answer = owner.get(at(newsroom, metric="views"))
    assert [row[:3] for row in cells_of(answer, "best-topic")[1:]] == [
        ["The <tram>", "3", "99"],
        ["Port", "3", "59"],
    ]
    link = reverse("topic", kwargs={"ws": newsroom.pk, "per": persona.pk, "top": topics[0].pk})
    text = answer.content.decode()
    assert f'<a href="{link}">The &lt;tram&gt;</a>' in text
    assert '<th scope="row">Port</th>' in text
    assert owner.get(link).status_code == 200


def test_nothing_is_ranked_out_of_a_few_posts(owner, newsroom, outlet):
    make_ranked(outlet, each=2)
    text = owner.get(at(newsroom, metric="views")).content.decode()
    assert "Posts are ranked from 5 with known views." in text
    assert "Best posts" not in text
    assert "Not ranked" not in text


def test_a_metric_that_no_platform_gives_is_one_line(owner, newsroom, outlet):
    make_ranked(outlet)
    answer = owner.get(at(newsroom, metric="shares"))
    text = answer.content.decode()
    assert "No shares from the platforms in these dates." in text
    assert answer.context["charts"] == []
    assert "analytics.js" not in text


def test_rankings_cost_the_same_however_much_there_is(owner, newsroom, outlet):
    formats = ("Thread", "Short Post", "Carousel", "Blog Article")
    sources = [make_source(newsroom, name) for name in ("A", "B", "C", "D")]
    make_ranked(outlet, formats=formats[:2], sources=sources[:2], each=6)
    owner.get(at(newsroom))
    with CaptureQueriesContext(connection) as few:
        owner.get(at(newsroom, metric="views"))
    make_ranked(outlet, formats=formats, sources=sources, each=12)
    with CaptureQueriesContext(connection) as many:
        answer = owner.get(at(newsroom, metric="views"))
    assert len(cells_of(answer, "best-format")) == 5
    assert len(cells_of(answer, "best-source")) == 5
    assert len(many) == len(few)
