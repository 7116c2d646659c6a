"""GET /v1/analytics: parameters, forms of the answer, who may ask."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from typing import Any

import jsonschema
import pytest
import time_machine
from django.test import Client

from accounts.access import tokens
from analytics.aggregate import METRICS, NULLABLE
from config.api_docs.views import build_openapi
from config.core.ids import encode, uuid7
from pipeline.models import Outlet
from tests.analytics.factories import (
    after,
    make_failed,
    make_measurement,
    make_outlet,
    make_persona,
    make_published,
    make_source,
)

NOVEMBER = {"from": "2026-11-01", "to": "2026-12-01"}
SIX = {"impressions": 200, "views": 80, "likes": 8, "comments": 2, "shares": 1, "clicks": 3}


class Caller:
    """Asks with a token of one workspace."""

    def __init__(self, workspace, **token: Any) -> None:
        self.secret = tokens.issue(workspace, name="Tests", **token).secret
        self.client = Client()

    def ask(self, headers: dict[str, str] | None = None, **query: Any):
        return self.client.get(
            "/v1/analytics", query, headers={"Authorization": f"Bearer {self.secret}", **(headers or {})}
        )

    def body(self, **query: Any) -> dict[str, Any]:
        response = self.ask(**query)
        assert response.status_code == 200, response.content
        return response.json()

    def refused(self, **query: Any) -> list[tuple[str, str]]:
        response = self.ask(**query)
        assert response.status_code == 400, response.content
        body = response.json()
        assert body["error"] == "invalid_request"
        return [(detail["field"], detail["code"]) for detail in body["detail"]]


@pytest.fixture
def caller(alice: Outlet) -> Caller:
    return Caller(alice.workspace)


@pytest.fixture(scope="module")
def operation() -> dict[str, Any]:
    whole = build_openapi()
    [path] = [path for path in whole["paths"] if path.rstrip("/") == "/v1/analytics"]
    return {"document": whole, **whole["paths"][path]["get"]}


def check(operation, body):
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    whole = {**schema, "components": operation["document"]["components"]}
    jsonschema.Draft202012Validator(whole).validate(body)


def test_answer(alice, caller, operation):
    publication = make_published(alice, bucket="video")
    make_measurement(publication, after(hours=1), **{**SIX, "clicks": None})
    figures = {
        "metrics": {
            "published": 1,
            "failed": 0,
            "impressions": 200,
            "views": 80,
            "likes": 8,
            "comments": 2,
            "shares": 1,
            "clicks": None,
            "engagements": 11,
            "engagement_rate": 0.055,
        },
        "availability": {"clicks": "unsupported"},
        "coverage": 1.0,
        "first_party": {"clicks": None, "feed_fetches": None},
    }
    body = caller.body(**NOVEMBER)
    assert body == {
        "data": [
            {
                "outlet": {"id": encode("out", alice.pk), "platform": "simulated", "name": "Stage"},
                "content_type": "video",
                "date": "2026-11-02",
                **figures,
            }
        ],
        "totals": figures,
        "range": {"from": "2026-11-01T00:00:00.000Z", "to": "2026-12-01T00:00:00.000Z"},
        "interval": "day",
        "timezone": "UTC",
        "fresh_at": "2026-11-02T13:00:00.000Z",
    }
    check(operation, body)


def test_answer_without_data(caller, operation):
    body = caller.body(**NOVEMBER)
    assert body == {
        "data": [],
        "totals": {
            "metrics": {"published": 0, "failed": 0, **dict.fromkeys(NULLABLE)},
            "availability": dict.fromkeys(NULLABLE, "unavailable"),
            "coverage": None,
            "first_party": {"clicks": None, "feed_fetches": None},
        },
        "range": {"from": "2026-11-01T00:00:00.000Z", "to": "2026-12-01T00:00:00.000Z"},
        "interval": "day",
        "timezone": "UTC",
        "fresh_at": None,
    }
    check(operation, body)


def test_slash_at_the_end_answers_the_same(alice, caller):
    make_published(alice)
    headers = {"Authorization": f"Bearer {caller.secret}"}
    with_slash = caller.client.get("/v1/analytics/", NOVEMBER, headers=headers)
    assert with_slash.json() == caller.body(**NOVEMBER)


@time_machine.travel("2026-11-20T23:30:00+00:00", tick=False)
def test_default_is_the_last_30_days_today_included(alice, caller):
    for day in ("2026-10-21", "2026-10-22", "2026-11-20"):
        make_published(alice, datetime.fromisoformat(f"{day}T10:00:00+00:00"))
    body = caller.body()
    assert body["range"] == {"from": "2026-10-22T00:00:00.000Z", "to": "2026-11-21T00:00:00.000Z"}
    assert [row["date"] for row in body["data"]] == ["2026-10-22", "2026-11-20"]
    # In Berlin it is the 21st already, and the clocks went back in between.
    berlin = caller.body(tz="Europe/Berlin")
    assert berlin["range"] == {"from": "2026-10-22T22:00:00.000Z", "to": "2026-11-21T23:00:00.000Z"}
    assert berlin["timezone"] == "Europe/Berlin"
    assert caller.body(to="2026-11-21")["range"] == body["range"]
    assert caller.body(**{"from": "2026-11-01"})["range"]["to"] == body["range"]["to"]
    assert caller.body(to="2026-11-20T12:00:00Z")["range"] == {
        "from": "2026-10-21T12:00:00.000Z",
        "to": "2026-11-20T12:00:00.000Z",
    }


def test_dates_are_those_of_the_zone(caller):
    body = caller.body(**{"from": "2026-03-29", "to": "2026-03-30", "tz": "Europe/Berlin"})
    assert body["range"] == {"from": "2026-03-28T23:00:00.000Z", "to": "2026-03-29T22:00:00.000Z"}
    body = caller.body(**{"from": "2026-03-29T00:00:00+05:30", "to": "2026-03-30", "tz": "Asia/Kolkata"})
    assert body["range"] == {"from": "2026-03-28T18:30:00.000Z", "to": "2026-03-29T18:30:00.000Z"}


def test_hours_are_moments_with_their_offset(alice, caller, operation):
    make_published(alice)
    body = caller.body(**NOVEMBER, interval="hour", tz="Asia/Kolkata")
    assert [row["date"] for row in body["data"]] == ["2026-11-02T17:00:00+05:30"]
    check(operation, body)


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ({"from": "2026-11-02", "to": "2026-11-02"}, ("to", "empty_range")),
        ({"from": "2026-11-02", "to": "2026-11-01"}, ("to", "empty_range")),
        ({"from": "2025-01-01", "to": "2026-01-03"}, ("to", "range_too_long")),
        ({"from": "2026-11-02T00:00:00"}, ("from", "invalid")),
        ({"from": "2026-02-30"}, ("from", "invalid")),
        ({"from": "yesterday"}, ("from", "invalid")),
        ({"to": "1969-12-31"}, ("to", "invalid")),
        ({"to": "9999-12-31"}, ("to", "invalid")),
        ({"from": "0001-01-01T00:00:00+14:00"}, ("from", "invalid")),
        ({"to": ["2026-11-02", "2026-11-03"]}, ("to", "repeated")),
        ({"interval": "year"}, ("interval", "invalid")),
        ({"tz": "Berlin"}, ("tz", "invalid")),
        ({"tz": "europe/berlin"}, ("tz", "invalid")),
        ({"tz": "../../etc/passwd"}, ("tz", "invalid")),
        ({"tz": "localtime"}, ("tz", "invalid")),
        ({"tz": ""}, ("tz", "invalid")),
        ({"outlet": "ws_01jd4t5v7yf8zr3m6n2q9k0hcx"}, ("outlet", "invalid")),
        ({"outlet": "7"}, ("outlet", "invalid")),
        ({"content_type": "podcast"}, ("content_type", "invalid")),
        ({"group_by": "outlet,colour"}, ("group_by", "invalid")),
        ({"group_by": ""}, ("group_by", "invalid")),
        ({"group_by": "outlet, date"}, ("group_by", "invalid")),
        ({"attribution": "guessed"}, ("attribution", "invalid")),
        ({"outlets": "x"}, ("outlets", "unknown_parameter")),
        ({"limit": "3"}, ("limit", "unknown_parameter")),
        ({"tz": "UTC\x00"}, ("tz", "nul_character")),
    ],
)
def test_what_can_not_be_used_is_named(alice, caller, query, refusal):
    make_published(alice)
    assert caller.refused(**query) == [refusal]


def test_unknown_dimension_is_named_with_the_nearest(caller):
    [detail] = caller.ask(group_by="outlet,sorce").json()["detail"]
    assert detail["message"] == "There is no dimension sorce. Did you mean source?"


def test_366_days_are_the_most(caller):
    assert caller.body(**{"from": "2026-01-01", "to": "2027-01-02"})["data"] == []
    assert caller.refused(**{"from": "2026-01-01", "to": "2027-01-03"}) == [("to", "range_too_long")]
    # A day that the clocks lengthened is one day.
    berlin = {"tz": "Europe/Berlin", "from": "2026-07-01", "to": "2027-07-02"}
    assert caller.body(**berlin)["data"] == []
    late = {"tz": "Europe/Berlin", "from": "2025-12-01", "to": "2026-12-02"}
    assert caller.body(**late)["data"] == []


def test_group_by_names_the_dimensions_of_a_row(alice, caller, operation):
    source, persona = make_source(alice.workspace), make_persona(alice.workspace)
    make_published(alice, source=source, persona=persona, engine_output="Persona Short")
    make_published(alice)
    body = caller.body(**NOVEMBER, group_by="persona,source,engine_output")
    dimensions = ("source", "engine_output", "persona")
    assert [{name: row[name] for name in row if name in dimensions} for row in body["data"]] == [
        {
            "source": encode("src", source.pk),
            "engine_output": "Persona Short",
            "persona": encode("per", persona.pk),
        },
        {"source": None, "engine_output": "Short Post", "persona": None},
    ]
    assert not any(name in row for row in body["data"] for name in ("outlet", "content_type", "date"))
    check(operation, body)


def test_filters_may_be_repeated(alice, caller):
    other = make_outlet(alice.workspace, name="Another")
    for outlet, bucket in ((alice, "text"), (alice, "blog"), (other, "text"), (other, "video")):
        make_published(outlet, bucket=bucket)

    def published(**query):
        return caller.body(**NOVEMBER, **query)["totals"]["metrics"]["published"]

    assert published() == 4
    assert published(outlet=encode("out", alice.pk)) == 2
    assert published(outlet=[encode("out", alice.pk), encode("out", other.pk)]) == 4
    assert published(content_type=["text", "video"]) == 3
    assert published(content_type="video", outlet=encode("out", alice.pk)) == 0


def test_attribution(alice, caller):
    make_measurement(make_published(alice), after(days=1), views=5)
    received, published = (caller.body(**NOVEMBER, attribution=way) for way in ("received", "published"))
    assert [(row["date"], row["metrics"]["views"]) for row in received["data"]] == [
        ("2026-11-02", None),
        ("2026-11-03", 5),
    ]
    assert [(row["date"], row["metrics"]["views"]) for row in published["data"]] == [("2026-11-02", 5)]
    assert caller.body(**NOVEMBER) == received


def test_other_workspaces_outlet_answers_as_an_unknown_one(alice, charlie, caller):
    make_measurement(make_published(charlie), after(hours=1), views=900)
    make_published(alice)
    answers = [
        caller.ask(**NOVEMBER, outlet=encode("out", outlet)).content for outlet in (charlie.pk, uuid7())
    ]
    assert answers[0] == answers[1]
    assert caller.body(**NOVEMBER)["totals"]["metrics"]["published"] == 1
    assert Caller(charlie.workspace).body(**NOVEMBER)["totals"]["metrics"]["views"] == 900


def test_test_token_sees_only_test_data(alice, caller):
    make_measurement(make_published(alice, test=True), after(hours=1), views=900)
    make_published(alice)
    make_published(alice)
    tester = Caller(alice.workspace, is_test=True)
    assert tester.body(**NOVEMBER)["totals"]["metrics"]["views"] == 900
    assert tester.body(**NOVEMBER)["totals"]["metrics"]["published"] == 1
    live = caller.body(**NOVEMBER)["totals"]["metrics"]
    assert (live["published"], live["views"]) == (2, None)


def test_who_may_ask(alice, caller):
    make_published(alice)
    assert Client().get("/v1/analytics").status_code == 401
    writer = Caller(alice.workspace, scopes=["raw:write"])
    refused = writer.ask(**NOVEMBER)
    assert (refused.status_code, refused.json()["error"]) == (403, "insufficient_scope")
    assert (
        caller.client.post("/v1/analytics", headers={"Authorization": f"Bearer {caller.secret}"}).status_code
        == 405
    )


def test_tag_changes_with_the_numbers(alice, caller):
    publication = make_published(alice)
    first = caller.ask(**NOVEMBER)
    tag = first["ETag"]
    assert tag.startswith('W/"')
    same = caller.ask(**NOVEMBER, headers={"If-None-Match": tag})
    assert (same.status_code, same.content, same["ETag"]) == (304, b"", tag)
    spreadsheet = caller.ask(**NOVEMBER, headers={"If-None-Match": tag, "Accept": "text/csv"})
    assert spreadsheet.status_code == 200
    again = caller.ask(**NOVEMBER, headers={"If-None-Match": spreadsheet["ETag"], "Accept": "text/csv"})
    assert (again.status_code, again.content) == (304, b"")
    make_measurement(publication, after(hours=1), views=5)
    changed = caller.ask(**NOVEMBER, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed["ETag"] != tag


def test_statements_do_not_rise_with_rows(alice, caller, django_assert_max_num_queries):
    make_published(alice)
    caller.body(**NOVEMBER)
    with django_assert_max_num_queries(50) as few:
        caller.body(**NOVEMBER)
    for number in range(10):
        outlet = make_outlet(alice.workspace, name=f"Stage {number}")
        for day in range(10):
            make_measurement(make_published(outlet, after(days=day)), after(days=day, hours=1), views=1)
    with django_assert_max_num_queries(50) as many:
        assert len(caller.body(**NOVEMBER)["data"]) == 101
    assert len(few) == len(many)


# --- CSV -------------------------------------------------------------------------------------------------------------


def spreadsheet(caller, **query):
    response = caller.ask(headers={"Accept": "text/csv"}, **query)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert "Accept" in response["Vary"]
    return response, list(csv.DictReader(io.StringIO(response.content.decode(), newline="")))


def flattened(row):
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "outlet":
            flat.update({f"outlet_{part}": text for part, text in value.items()})
        elif name == "metrics":
            flat.update(value)
        elif name == "availability":
            flat.update({f"{metric}_availability": value.get(metric) for metric in NULLABLE})
        elif name == "first_party":
            flat.update({f"first_party_{one}": count for one, count in value.items()})
        else:
            flat[name] = value
    return {name: "" if value is None else str(value) for name, value in flat.items()}


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"interval": "hour", "tz": "America/St_Johns"},
        {"group_by": "source,engine_output,persona"},
        {"group_by": "date"},
        {"attribution": "published", "content_type": "blog"},
    ],
)
def test_csv_has_the_same_rows(alice, caller, query):
    other = make_outlet(alice.workspace, name='Ümläut, "quoted"\nand more', platform="feed")
    source = make_source(alice.workspace)
    for outlet in (alice, other):
        for bucket in ("text", "blog"):
            make_failed(outlet, bucket=bucket)
            make_measurement(
                make_published(outlet, bucket=bucket, source=source), after(days=1), impressions=5, likes=-2
            )
            make_published(outlet, after(days=4), bucket=bucket)
    body = caller.body(**NOVEMBER, **query)
    response, rows = spreadsheet(caller, **NOVEMBER, **query)
    assert rows == [flattened(row) for row in body["data"]]
    assert len(rows) > 0
    assert list(rows[0])[-len(NULLABLE) - 2 :] == [
        *(f"{metric}_availability" for metric in NULLABLE),
        "first_party_clicks",
        "first_party_feed_fetches",
    ]
    assert response["Content-Disposition"] == 'attachment; filename="analytics.csv"'
    assert response.content.endswith(b"\r\n")


def test_csv_without_rows_has_its_head(caller):
    response, rows = spreadsheet(caller, **NOVEMBER, group_by="date")
    assert rows == []
    assert response.content.decode().strip().split(",")[:11] == ["date", *METRICS]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_disarms_formulas_in_text(alice, caller, start):
    hostile = f"{start}HYPERLINK(1)"
    Outlet.everywhere.filter(pk=alice.pk).update(name=hostile)
    make_measurement(make_published(alice, engine_output=hostile), after(hours=1), views=-3)
    _, [row] = spreadsheet(caller, **NOVEMBER, group_by="outlet,engine_output")
    assert (row["outlet_name"], row["engine_output"]) == (f"'{hostile}", f"'{hostile}")
    # A number is no text: what was taken back stays a number.
    assert row["views"] == "-3"


def test_csv_refusals_are_json(caller):
    response = caller.ask(headers={"Accept": "text/csv"}, tz="nowhere")
    assert (response.status_code, response["Content-Type"]) == (400, "application/json")


# --- The document ----------------------------------------------------------------------------------------------------


def test_document_names_every_parameter(operation):
    assert [parameter["name"] for parameter in operation["parameters"]] == [
        "attribution",
        "content_type",
        "from",
        "group_by",
        "interval",
        "outlet",
        "to",
        "tz",
    ]
    # One form of an answer, or code generators have no type for it; the words name the other one.
    assert set(operation["responses"]["200"]["content"]) == {"application/json"}
    assert "text/csv" in operation["description"]
