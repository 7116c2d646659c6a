"""Lists: keyset pages that lose and repeat nothing, cursors that fit their list only, as many statements for 25 rows
as for one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import LedgerEntry
from config.core import task_runner
from pipeline.models import (
    GeneratedItem,
    Outlet,
    Recurrence,
    Series,
    Topic,
)
from tests.contracts.conftest import problem, refusal
from tests.factories import (
    GeneratedItemFactory,
    OutletFactory,
    PersonaFactory,
    PublicationFactory,
    RawItemFactory,
    SourceFactory,
)

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def _raw(newsroom, status="queued"):
    return RawItemFactory(workspace=newsroom.workspace, source=newsroom.defaults.push_source, status=status)


def _generated(newsroom, status="ready"):
    raw = _raw(newsroom, "processed")
    return GeneratedItemFactory(
        workspace=newsroom.workspace, generation__raw_item=raw, generation__raw_version=1, raw_item=raw,
        source=raw.source, status=status, revision=1, outlets=[newsroom.feed],
    )  # fmt: skip


def _publication(newsroom, status="published", item=None):
    feed = Outlet.everywhere.get(workspace=newsroom.workspace, platform="feed")
    return PublicationFactory(outlet=feed, item=item or _generated(newsroom, status), status=status)


def _source(newsroom):
    return SourceFactory(workspace=newsroom.workspace, type="webhook")


def _outlet(newsroom):
    return OutletFactory(workspace=newsroom.workspace)


def _persona(newsroom):
    return PersonaFactory(workspace=newsroom.workspace)


def _topic(newsroom):
    return Topic.everywhere.create(workspace=newsroom.workspace, title="More")


def _series(newsroom):
    return Series.everywhere.create(workspace=newsroom.workspace, name="More", timezone="UTC")


def _recurrence(newsroom):
    return Recurrence.everywhere.create(
        workspace=newsroom.workspace,
        item=_generated(newsroom),
        every_days=30,
        time="09:00",
        anchor=NOW.date(),
    )


def _entry(newsroom):
    return LedgerEntry.everywhere.create(
        workspace=newsroom.workspace, kind="adjust", amount=1, reason="more", created_at=NOW
    )


MAKE = {
    "/sources": _source,
    "/raw": _raw,
    "/generated": _generated,
    "/publications": _publication,
    "/outlets": _outlet,
    "/personas": _persona,
    "/topics": _topic,
    "/series": _series,
    "/recurrences": _recurrence,
    "/usage/ledger": _entry,
}


def _walk(api, path, query, between=lambda: None):
    """Every id on the way, by the cursors of the answers."""
    seen, cursor = [], ""
    for _ in range(200):
        page = api.read(f"{path}?{query}{cursor}")
        seen += [row["id"] for row in page["data"]]
        assert page["has_more"] is (page["next_cursor"] is not None)
        if not page["has_more"]:
            return seen
        cursor = f"&cursor={page['next_cursor']}"
        between()
    raise AssertionError


@pytest.mark.usefixtures("no_rate")
@pytest.mark.parametrize("path", MAKE)
@pytest.mark.parametrize("order", ["desc", "asc"])
def test_walk_meets_every_row_once_while_rows_are_added(alice, charlie, path, order):
    for _ in range(7):
        MAKE[path](alice)
        MAKE[path](charlie)
    there = [row["id"] for row in alice.api.read(f"{path}?limit=100&order={order}")["data"]]
    assert len(there) >= 7
    assert there == sorted(there, reverse=order == "desc")
    added = iter(range(3))

    def between():
        if next(added, None) is not None:
            MAKE[path](alice)

    seen = _walk(alice.api, path, f"limit=2&order={order}", between)
    assert len(seen) == len(set(seen))
    # Newest first, what was added meanwhile stands before the first page; the other way it comes at the end.
    assert seen[: len(there)] == there
    assert len(seen) == (len(there) if order == "desc" else len(there) + 3)


_FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "status": st.lists(
            st.sampled_from(["ready", "published", "rejected", "queued"]), min_size=1, max_size=3
        ),
        "bucket": st.sampled_from(["text", "image"]),
        "order": st.sampled_from(["asc", "desc"]),
        "include": st.sampled_from(["content", "claims,checks"]),
        "created_after": st.sampled_from(["2020-01-01", "2099-01-01"]),
    },
)


@pytest.mark.usefixtures("no_rate")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters=_FILTERS, limit=st.integers(1, 12), added=st.integers(0, 3))
def test_walk_by_any_filter_and_limit_meets_every_row_once(alice, filters, limit, added):
    if not GeneratedItem.everywhere.exists():
        for status in ("ready", "published", "rejected", "queued", "ready", "ready", "published"):
            _generated(alice, status)
    pairs = [
        (name, text)
        for name, texts in filters.items()
        for text in (texts if isinstance(texts, list) else [texts])
    ]
    query = "".join(f"&{name}={text}" for name, text in pairs)
    there = [row["id"] for row in alice.api.read(f"/generated?limit=100{query}")["data"]]
    more = iter(range(added))

    def between():
        if next(more, None) is not None:
            _generated(alice)

    seen = _walk(alice.api, "/generated", f"limit={limit}{query}", between)
    assert len(seen) == len(set(seen))
    assert seen[: len(there)] == there
    if filters.get("order") != "asc":
        assert seen == there


def test_link_leads_to_the_next_page_with_its_filters(alice):
    for _ in range(3):
        alice.push()
    answer = alice.api.get("/raw?limit=2&status=queued&status=processed&order=asc")
    target, rel = answer["Link"].split("; ")
    address = urlsplit(target.strip("<>"))
    assert (rel, f"{address.scheme}://{address.netloc}{address.path}") == (
        'rel="next"',
        "http://127.0.0.1:8000/v1/raw",
    )
    assert parse_qsl(address.query) == [
        ("limit", "2"),
        ("status", "queued"),
        ("status", "processed"),
        ("order", "asc"),
        ("cursor", answer.json()["next_cursor"]),
    ]
    last = alice.api.get(f"/raw?{address.query}")
    assert (len(last.json()["data"]), last.json()["next_cursor"], "Link" in last) == (1, None, False)


@pytest.mark.parametrize("path", MAKE)
def test_limit_has_bounds(alice, path):
    message = "Give a number from 1 to 100."
    for limit in ("0", "101", "-1", "x", "1e1", ""):
        answer = alice.api.get(f"{path}?limit={limit}")
        assert (answer.status_code, answer.json()) == (
            400,
            problem("invalid_request", ("limit", "invalid", message)),
        )
    assert alice.api.get(f"{path}?limit=100").status_code == 200


@pytest.mark.usefixtures("no_rate")
def test_page_has_25_rows_unless_told(alice):
    for _ in range(27):
        _raw(alice)
    page = alice.api.read("/raw")
    assert (len(page["data"]), page["has_more"]) == (25, True)
    assert len(alice.api.read("/raw?limit=27")["data"]) == 27
    assert alice.api.read("/raw?limit=27")["has_more"] is False


@pytest.mark.usefixtures("no_rate")
def test_cursor_fits_its_own_list_filters_order_and_workspace_only(alice, charlie):
    for newsroom in (alice, charlie):
        for path in ("/raw", "/generated", "/sources"):
            for _ in range(3):
                MAKE[path](newsroom)
    tester = alice.client(is_test=True)
    cursor = alice.api.read("/raw?limit=1&status=queued")["next_cursor"]
    good = alice.api.get(f"/raw?status=queued&cursor={cursor}")
    assert len(good.json()["data"]) == 2
    # Another size of page is no other list.
    assert alice.api.get(f"/raw?limit=2&status=queued&cursor={cursor}").status_code == 200
    assert alice.client(scopes=("raw:read",)).get(f"/raw?status=queued&cursor={cursor}").status_code == 200
    wrong = [
        (alice.api, f"/generated?cursor={cursor}"),
        (alice.api, f"/raw?cursor={cursor}"),
        (alice.api, f"/raw?status=queued&order=asc&cursor={cursor}"),
        (alice.api, f"/raw?status=queued&status=failed&cursor={cursor}"),
        (alice.api, f"/raw?status=queued&created_after=2020-01-01&cursor={cursor}"),
        (charlie.api, f"/raw?status=queued&cursor={cursor}"),
        (tester, f"/raw?status=queued&cursor={cursor}"),
    ]
    wrong += [(alice.api, f"/raw?status=queued&cursor={text}") for text in _tampered(cursor)]
    message = "This cursor belongs to another list or is broken; start without one."
    for api, path in wrong:
        answer = api.get(path)
        assert (answer.status_code, answer.json()) == (
            400,
            problem("invalid_cursor", (None, "invalid_cursor", message)),
        ), path


def _tampered(cursor):
    for place in range(0, len(cursor), 5):
        other = "A" if cursor[place] != "A" else "B"
        yield cursor[:place] + other + cursor[place + 1 :]
    yield from (
        "",
        "x",
        cursor[:-4],
        cursor + "AAAA",
        cursor[::-1],
        "%E2%82%AC",
        "====",
        "..",
        cursor.lower(),
    )


def test_cursor_is_given_once(api):
    assert refusal(api.get("/raw?cursor=a&cursor=b")) == (400, "invalid_request", [("cursor", "repeated")])


def test_cursor_outlives_the_row_that_it_names(alice):
    for _ in range(3):
        alice.push()
    page = alice.api.read("/raw?limit=2")
    alice.api.delete(f"/raw/{page['data'][-1]['id']}")
    assert len(alice.api.read(f"/raw?limit=2&cursor={page['next_cursor']}")["data"]) == 1


def test_tag_of_a_list_changes_with_its_rows(alice):
    empty = alice.api.get("/raw")
    raw = alice.push()
    one = alice.api.get("/raw", headers={"If-None-Match": empty["ETag"]})
    assert (one.status_code, one.json()["data"][0]["id"]) == (200, raw["id"])
    task_runner.work_all_due("generate.run_item")
    assert alice.api.get("/raw", headers={"If-None-Match": one["ETag"]}).status_code == 200
    last = alice.api.get("/raw")["ETag"]
    for header in (last, f'"x", {last}', last.removeprefix("W/"), "*"):
        same = alice.api.get("/raw", headers={"If-None-Match": header})
        assert (same.status_code, same.content) == (304, b"")


def _statements(api, path):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert api.get(path).status_code == 200
    return [query["sql"] for query in captured.captured_queries]


@pytest.mark.usefixtures("no_rate")
@pytest.mark.parametrize(
    "path",
    [*MAKE, "/generated?include=content,claims,checks,provenance", "/generated?status=ready&bucket=text"],
)
def test_list_costs_as_many_statements_for_25_rows_as_for_one(alice, path):
    make = MAKE[path.partition("?")[0]]
    # The token's use is noted once a minute.
    alice.api.get("/workspace")
    counts = []
    for rows in (1, 3, 25):
        while len(alice.api.read(f"{path}{'&' if '?' in path else '?'}limit=100")["data"]) < rows:
            made = make(alice)
            if path == "/generated":
                _publication(alice, "cancelled", made)
        counts.append(len(_statements(alice.api, path)))
    assert counts[0] == counts[1] == counts[2] <= 4


@pytest.mark.usefixtures("no_rate")
def test_events_cost_as_many_statements_for_25_rows_as_for_one(alice):
    alice.api.get("/workspace")
    counts = []
    for rows in (1, 2, 22):
        for _ in range(rows):
            alice.push()
        task_runner.work_all_due("webhooks.fan_out")
        counts.append(len(_statements(alice.api, "/events")))
    assert counts[0] == counts[1] == counts[2] <= 4
