"""GET /v1/usage and GET /v1/usage/ledger."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import transaction

from accounts.ledger import credits, months
from accounts.models import LedgerEntry, Workspace
from config.core.datetimes import format_utc
from config.core.ids import encode

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls")]


def reserve(workspace, amounts):
    with transaction.atomic():
        credits.reserve(workspace, amounts, now=datetime.now(UTC))


def resets_at():
    return format_utc(months.start_of_next_month(months.month_of(datetime.now(UTC))))


def test_usage(workspace, charlies, api):
    done = uuid4()
    reserve(workspace, {done: 30, uuid4(): 12})
    reserve(charlies, {uuid4(): 500})
    credits.settle(workspace.pk, done, used=20, now=datetime.now(UTC))
    response = api.get("/v1/usage")
    assert response.status_code == 200
    assert response.json() == {
        "limits": {
            "unlimited": False,
            "requests_at_once": 120,
            "requests_per_minute": 60,
            "credits_per_month": 1000,
            "active_sources": 20,
            "poll_interval_minutes": 15,
        },
        "limit": 1000,
        "used": 20,
        "reserved": 12,
        "available": 968,
        "resets_at": resets_at(),
    }


def test_unlimited_usage_counts_without_a_limit(workspace, api):
    Workspace.everywhere.filter(pk=workspace.pk).update(is_unlimited=True)
    workspace.refresh_from_db()
    reserve(workspace, {uuid4(): 3000})
    body = api.get("/v1/usage").json()
    del body["limits"]
    assert body == {"limit": None, "used": 0, "reserved": 3000, "available": None, "resets_at": resets_at()}


def test_ledger_is_every_entry_newest_first(workspace, charlies, api):
    generation = uuid4()
    reserve(workspace, {generation: 30})
    credits.settle(workspace.pk, generation, used=20, now=datetime.now(UTC))
    rows = list(LedgerEntry.objects.of(workspace).order_by("-id"))
    response = api.get("/v1/usage/ledger")
    assert response.status_code == 200

    def entry(row, kind, changes, generation, reason=""):
        amount, reserved, used = changes
        return {
            "id": encode("led", row.pk),
            "kind": kind,
            "amount": amount,
            "reserved_change": reserved,
            "used_change": used,
            "generation": generation,
            "reason": reason,
            "created_at": format_utc(row.created_at),
        }

    public = encode("gnr", generation)
    month = f"{datetime.now(UTC):%Y-%m}"
    assert response.json() == {
        "data": [
            entry(rows[0], "settle", (10, -30, 20), public),
            entry(rows[1], "reserve", (-30, 30, 0), public),
            entry(rows[2], "grant", (1000, 0, 0), None, f"credits of {month}"),
        ],
        "has_more": False,
        "next_cursor": None,
    }
    sums = [
        sum(one[name] for one in response.json()["data"])
        for name in ("amount", "reserved_change", "used_change")
    ]
    usage = api.get("/v1/usage").json()
    assert sums == [usage["available"], usage["reserved"], usage["used"]]


def test_ledger_pages_by_cursor(workspace, api):
    reserve(workspace, {uuid4(): number for number in range(1, 5)})
    amounts, url = [], "/v1/usage/ledger?limit=2"
    while url:
        response = api.get(url)
        amounts.append([one["amount"] for one in response.json()["data"]])
        cursor = response.json()["next_cursor"]
        assert (cursor is not None) == response.json()["has_more"] == ("Link" in response)
        url = cursor and f"/v1/usage/ledger?limit=2&cursor={cursor}"
    assert amounts == [[-4, -3], [-2, -1], [1000]]
    oldest = api.get("/v1/usage/ledger?order=asc&limit=1").json()["data"]
    assert [one["amount"] for one in oldest] == [1000]


def test_ledger_refuses_a_broken_cursor(api):
    response = api.get("/v1/usage/ledger?cursor=x")
    assert (response.status_code, response.json()["error"]) == (400, "invalid_cursor")


def test_ledger_costs_the_same_for_one_row_and_for_many(workspace, api, django_assert_num_queries):
    api.get("/v1/usage/ledger")
    with django_assert_num_queries(3):
        api.get("/v1/usage/ledger")
    reserve(workspace, {uuid4(): 1 for _ in range(3)})
    with django_assert_num_queries(3):
        api.get("/v1/usage/ledger")
