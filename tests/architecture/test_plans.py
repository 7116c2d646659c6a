"""Hot queries keep their index: what the planner of PostgreSQL says of the statements that the code really sends."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from accounts.access import tokens
from accounts.ledger import credits
from accounts.pages.page_access import Place
from analytics.calendar_periods import Period
from analytics.queries import Question
from analytics.reports.punctuality_and_top_posts import compute_performance
from analytics.reports.rankings import DIMENSIONS
from config.core import jobs, work_queue
from config.core.ids import encode, uuid7
from pipeline import events
from pipeline.dashboard.overview import read_overview
from pipeline.generate.model import spending_caps
from pipeline.ingest import near_duplicates
from pipeline.ingest.collect import entry_log
from pipeline.ingest.collect.classify import find_known, identify
from pipeline.models import Event, GeneratedItem, Outlet, RawPrint, Source, items_made_from
from pipeline.pages.review.forms import QueueFilter
from pipeline.pages.review.stories import waiting_count
from pipeline.sources.base import Entry
from tests.factories import MembershipFactory
from webhooks import retention as webhook_retention
from webhooks.models import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(
        not settings.IS_POSTGRES, reason="the plans are PostgreSQL's; SQLite has no partial claims"
    ),
]
DUE_TABLES = (
    "source",
    "raw_item",
    "generation",
    "publication",
    "delivery",
    "measuring",
    "notice",
    "message",
    "digest",
    "brand_slot",
    "draft",
    "websub",
    "mail_queue",
    "outlet",
    "rollup_day",
    "series",
    "model_batch",
    "recovery",
    "monthly",
    "recurrence",
)


@pytest.fixture(autouse=True)
def _no_whole_scans(db):
    """A table of few rows is best read whole whatever its indexes; the question is what a large one would use."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        # Nor is a page put together from several indexes, once each of them has many rows.
        cursor.execute("SET LOCAL enable_bitmapscan = off")


ROWS = 4000
VALUES = {
    "uuid": "gen_random_uuid()",
    "boolean": "false",
    "jsonb": "'{}'",
    "bytea": "'{}'::bytea",
    "date": "current_date - i",
    "timestamp with time zone": "clock_timestamp() - i * interval '1 minute'",
    "character varying": "left(md5(i::text), {length})",
    "text": "md5(i::text)",
}
COLUMNS = {
    # Every second row is this workspace's; most wait for nothing, a few are due.
    "workspace_id": "CASE WHEN mod(i, 2) = 0 THEN {workspace} ELSE md5((mod(i, 40))::text)::uuid END",
    "endpoint_id": "md5((mod(i, 40))::text)::uuid",
    "source_id": "md5((mod(i, 4))::text)::uuid",
    "queue": "(ARRAY['generate', 'compute', 'render'])[1 + mod(i, 3)]",
    "wake_at": "CASE WHEN mod(i, 20) = 0 THEN clock_timestamp() + (i - 200) * interval '1 minute' END",
    "dispatched_at": "CASE WHEN mod(i, 500) <> 0 THEN clock_timestamp() END",
    "counted_at": "CASE WHEN mod(i, 500) <> 0 THEN clock_timestamp() END",
    "status": "CASE mod(i, 5) WHEN 0 THEN 'ready' WHEN 1 THEN 'queued' ELSE 'published' END",
    "bucket": "CASE mod(i, 5) WHEN 0 THEN 'text' WHEN 1 THEN 'video' ELSE 'blog' END",
    "kind": "'adjust'",
    "position": "i",
    "body": None,
    "band_0": "mod(i * 7919, 65536)",
    "band_1": "mod(i * 7919, 65536)",
    "band_2": "mod(i * 7919, 65536)",
    "band_3": "mod(i * 7919, 65536)",
    "second_key": "i",
    "decision": "CASE WHEN mod(i, 10) = 0 THEN 'new' ELSE 'unchanged' END",
    "key": "md5(i::text)",
}

ONE_EACH = {
    ("websub", "source_id"): "gen_random_uuid()",
    ("mail_queue", "outlet_id"): "gen_random_uuid()",
}
"""Columns in which no value may come twice."""


@pytest.fixture
def filled(workspace):
    """Fills a table with rows that refer to nothing, as many as a planner needs to choose; undone before any check."""

    def fill(table: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                """SELECT column_name, data_type, is_nullable, character_maximum_length
                   FROM information_schema.columns WHERE table_name = %s""",
                [table],
            )
            values = {}
            for name, kind, nullable, length in cursor.fetchall():
                value = (
                    ONE_EACH.get((table, name))
                    or COLUMNS.get(name)
                    or (None if nullable == "YES" and name != "body" else VALUES.get(kind, "0"))
                )
                if value is not None:
                    value = value.replace("{length}", str(length))
                    values[name] = value.replace("{workspace}", f"'{workspace.pk}'::uuid")
            columns, picked = ", ".join(f'"{name}"' for name in values), ", ".join(values.values())
            cursor.execute(
                f"INSERT INTO {table} ({columns}) SELECT {picked} FROM generate_series(1, {ROWS}) AS i"
            )
            cursor.execute(f"ANALYZE {table}")

    with transaction.atomic():
        yield fill
        transaction.set_rollback(True)


def indexes_of(sql: str, parameters: Any = None) -> set[str]:
    """Names of the indexes in the plan of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", parameters)
        plan = cursor.fetchone()[0]
    waiting = [json.loads(plan)[0]["Plan"] if isinstance(plan, str) else plan[0]["Plan"]]
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if "Index Name" in node:
            found.add(node["Index Name"])
        waiting += node.get("Plans", ())
    return found


def reads_of(sent: list[tuple[str, Any]], table: str) -> list[tuple[str, Any]]:
    """The statements that read the table first of all."""
    return [
        one
        for one in sent
        if one[0].startswith("SELECT") and f'FROM "{table}"' in one[0].partition("WHERE")[0]
    ]


NARROWED = {"generation": {"queue": "compute"}}
"""Tables whose rows are of several jobs."""

# --- Claims ----------------------------------------------------------------------------------------------------------


def test_every_due_table_is_looked_at_here():
    kinds = [kind for kind in jobs.jobs().values() if not isinstance(kind, jobs.BatchJob)]
    assert {kind.model._meta.db_table for kind in kinds} == set(DUE_TABLES)


# A workspace has one digest and one summary, so that there can't be many to choose from.
@pytest.mark.parametrize("table", [table for table in DUE_TABLES if table not in {"digest", "monthly"}])
def test_the_dispatcher_s_look_reads_the_waking_index(filled, table):
    filled(table)
    with seen() as sent:
        work_queue.find_names_with_work({"one": (table, NARROWED.get(table, {}))}, {})
    assert indexes_of(*sent[-1]) == {f"{table}_wake"}


@pytest.mark.parametrize(
    ("table", "column"), [*((table, "workspace_id") for table in DUE_TABLES[:4]), ("delivery", "endpoint_id")]
)
def test_claim_skips_from_holder_to_holder_and_takes_by_index(filled, table, column):
    filled(table)
    with seen() as sent:
        where = NARROWED.get(table)
        holders = work_queue.find_holders_of_due_rows(table, column, datetime.now(UTC), where)
        until = datetime.now(UTC) + timedelta(seconds=60)
        shares = dict.fromkeys(holders[:2], 1)
        sql, parameters = work_queue._take_statement(
            table, column, shares, datetime.now(UTC), until, begins=False, where=where
        )
        with connection.cursor() as cursor:
            cursor.execute(f"{sql} RETURNING id", parameters)
            taken = cursor.fetchall()
    assert len(taken) == len(holders[:2]) > 0
    by_holder = f"{table}_wake_by_{column.removesuffix('_id')}"
    # Whether a holder has a due row may also be seen in the other index, where few rows are due at all.
    assert by_holder in indexes_of(*sent[0]) <= {by_holder, f"{table}_wake"}
    take = next(one for one in sent if one[0].startswith("UPDATE"))
    assert indexes_of(*take) == {by_holder, f"{table}_pkey"}


def test_due_deliveries_of_an_endpoint_are_counted_by_index(filled):
    filled("delivery")
    (holder, *_) = work_queue.find_holders_of_due_rows("delivery", "endpoint_id", datetime.now(UTC))
    with seen() as sent:
        counted = work_queue.count_due("delivery", "endpoint_id", [holder], datetime.now(UTC), max_count=8)
    assert counted[holder] > 0
    assert indexes_of(*sent[0]) == {"delivery_wake_by_endpoint"}


def test_what_a_run_reserved_is_found_without_the_rest_of_the_ledger(filled, workspace):
    filled("ledger_entry")
    with seen() as sent:
        credits.settle(workspace.pk, uuid7(), used=0, now=datetime.now(UTC))
    (asked,) = [one for one in sent if one[0].startswith("SELECT") and '"ledger_entry"' in one[0]]
    assert indexes_of(*asked) == {"ledger_entry_subject"}


@contextmanager
def seen() -> Iterator[list[tuple[str, Any]]]:
    """Statements with their parameters, as they are sent."""
    sent: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        sent.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        yield sent


# --- Lists -----------------------------------------------------------------------------------------------------------

LISTS = [
    ("/v1/generated", "generated_item", "generated_item_list"),
    ("/v1/generated?status=ready", "generated_item", "generated_item_by_status"),
    ("/v1/generated?bucket=text", "generated_item", "generated_item_by_bucket"),
    ("/v1/raw", "raw_item", "raw_item_list"),
    ("/v1/publications", "publication", "publication_list"),
    ("/v1/sources", "source", "source_list"),
    ("/v1/outlets", "outlet", "outlet_list"),
    ("/v1/personas", "persona", "persona_list"),
    ("/v1/usage/ledger", "ledger_entry", "ledger_entry_list"),
    ("/v1/events", "event", "event_position_once"),
]


def _list(workspace: Any, path: str, table: str) -> tuple[str, Any]:
    """The statement that reads the page's rows."""
    minted = tokens.issue(workspace, name="Plans")
    client = Client(headers={"Authorization": f"Bearer {minted.secret}"})
    with seen() as sent:
        answer = client.get(path)
    assert answer.status_code == 200, answer.content
    pages = [one for one in reads_of(sent, table) if "ORDER BY" in one[0] and "LIMIT" in one[0]]
    assert len(pages) == 1, pages
    return pages[0]


@pytest.mark.parametrize(("path", "table", "index"), LISTS, ids=[path for path, *_ in LISTS])
def test_list_reads_its_index(workspace, filled, path, table, index):
    statement = _list(workspace, path, table)
    filled(table)
    assert indexes_of(*statement) == {index}


@pytest.mark.parametrize("is_told", [False, True], ids=["alone", "in a digest"])
def test_what_was_made_of_a_raw_item_is_found_by_index(workspace, filled, is_told):
    raw = UUID(hashlib.md5(b"1").hexdigest())
    filled("generated_item")
    filled("generation_input")
    with seen() as sent:
        found = items_made_from(raw, workspace_id=workspace.pk)
    (inputs,) = sent
    assert indexes_of(*inputs) == {"generation_input_of"}
    if is_told:
        found = items_made_from(raw, runs=[uuid7(), uuid7()])
    with connection.cursor() as cursor:
        # Two indexes are put together where it may have been told in a digest.
        cursor.execute("SET LOCAL enable_bitmapscan = on")
    rows = GeneratedItem.everywhere.filter(found, deleted_at=None).order_by("id")
    names = {name.partition("_id_")[0] for name in indexes_of(*rows.query.sql_with_params())}
    one = {"generated_item_raw_item"}
    assert names == (one | {"generated_item_generation"} if is_told else one)


def test_list_deep_down_reads_its_index(workspace, filled):
    filled("generated_item")
    sql = """SELECT id FROM generated_item WHERE workspace_id = %s AND NOT test AND deleted_at IS NULL AND id < %s
             ORDER BY id DESC LIMIT 26"""
    assert indexes_of(sql, [workspace.pk, uuid7()]) == {"generated_item_list"}


@pytest.mark.parametrize(
    ("path", "table"),
    [("/v1/generated", "generated_item"), ("/v1/raw", "raw_item")],
    ids=["generated", "raw"],
)
def test_list_of_a_source_reads_its_index(workspace, filled, path, table):
    source = encode("src", UUID(hashlib.md5(b"1").hexdigest()))
    statement = _list(workspace, f"{path}?source={source}", table)
    filled(table)
    assert indexes_of(*statement) == {f"{table}_by_source"}


@pytest.mark.parametrize(
    ("query", "index"), [("", "delivery_log"), ("?outcome=failed", "delivery_log_by_status")]
)
def test_log_of_an_endpoint_reads_its_index(workspace, filled, query, index):
    endpoint = Endpoint.everywhere.create(
        pk=UUID(hashlib.md5(b"1").hexdigest()), workspace=workspace, url="https://example.com/", secret="x"
    )
    client = Client()
    client.force_login(MembershipFactory(workspace=workspace).user)
    with seen() as sent:
        page = reverse("webhook", kwargs={"ws": workspace.pk, "whe": endpoint.pk})
        assert client.get(page + query).status_code == 200
    [statement] = [one for one in sent if 'FROM "delivery" ' in one[0] and "LIMIT 26" in one[0]]
    filled("delivery")
    filled("event")
    filled("delivery_attempt")
    assert indexes_of(*statement) == {index, "event_pkey", "delivery_attempt_once"}


def test_page_of_what_failed_and_is_late_reads_by_index(workspace, filled):
    client = Client()
    client.force_login(MembershipFactory(workspace=workspace).user)
    with seen() as sent:
        assert client.get(reverse("failures", kwargs={"ws": workspace.pk})).status_code == 200
    for table in ("generated_item", "publication", "raw_item", "inbound_delivery"):
        filled(table)
    # Empty as the page is, its lists are counted alone; each is read in the order of the same index.
    asked = [one for one in sent if one[0].startswith("SELECT (SELECT COUNT")]
    [counts] = [one for one in asked if "inbound_delivery" in one[0]]
    [inbox] = [one for one in asked if "publication" not in one[0]]
    [manual] = [one for one in asked if one not in (counts, inbox)]
    used = {"raw_item_failed", "publication_failed", "publication_promised", "generated_item_failed"}
    used |= {"inbound_delivery_failed"}
    assert used <= indexes_of(*counts)
    # What the navigation of every page says.
    assert indexes_of(*inbox) == {"generated_item_waiting"}
    # And its tabs.
    assert indexes_of(*manual) == {"publication_promised"}


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("", "generated_item_waiting"),
        ("check=failed", "generated_item_checked"),
        ("check=warning", "generated_item_checked"),
    ],
)
def test_review_queue_is_counted_by_index(workspace, filled, query, index):
    """It is counted with every look at what is new, every few seconds."""
    place = Place(workspace, MembershipFactory(workspace=workspace).user, "owner")
    narrowed = QueueFilter.from_query(QueryDict(query), place.workspace)
    with seen() as sent:
        waiting_count(place, narrowed)
    filled("generated_item")
    assert indexes_of(*sent[-1]) == {index}


@pytest.mark.parametrize("query", ["", "outlet=narrowed", "before=paged"])
def test_tray_of_the_calendar_reads_its_index(workspace, filled, query):
    """As long as it may be, it is read in the order of the index of statuses."""
    client = Client()
    client.force_login(MembershipFactory(workspace=workspace).user)
    outlet = Outlet.objects.of(workspace).first()
    given = {"outlet": encode("out", outlet.pk)} if "outlet" in query else {}
    given |= {"before": encode("gen", uuid7())} if "before" in query else {}
    with seen() as sent:
        assert client.get(reverse("calendar", kwargs={"ws": workspace.pk}), given).status_code == 200
    filled("generated_item")
    reads = [one for one in reads_of(sent, "generated_item") if '"held" IN' in one[0]]
    used = [indexes_of(*one) - {"raw_item_pkey"} for one in reads]
    assert used == [{"generated_item_by_status"}]


def test_first_page_reads_by_index_alone(workspace, filled):
    now = datetime.now(UTC)
    with seen() as sent:
        read_overview(workspace, since=now - timedelta(days=7), now=now)
    for table in ("generated_item", "publication", "raw_item"):
        filled(table)
    # The counts are one statement over several tables.
    (counts,) = [one for one in sent if one[0].startswith("SELECT (SELECT COUNT")]
    used = {
        table: indexes_of(*counts).union(*(indexes_of(*one) for one in reads_of(sent, table)))
        for table in ("generated_item", "publication", "raw_item")
    }
    assert used["generated_item"] >= {
        "generated_item_waiting",
        "generated_item_failed",
        "generated_item_flagged",
    }
    assert used["publication"] >= {"publication_promised", "publication_failed", "publication_done"}
    assert used["raw_item"] >= {"raw_item_list"}


@pytest.mark.parametrize(
    ("query", "index"), [("", "source_entry_list"), ("?decision=new", "source_entry_by_decision")]
)
def test_log_of_a_source_reads_its_index(workspace, filled, query, index):
    source = Source.everywhere.create(
        pk=UUID(hashlib.md5(b"1").hexdigest()), workspace=workspace, name="x", type="rss"
    )
    statement = _list(workspace, f"/v1/sources/{encode('src', source.pk)}/entries{query}", "source_entry")
    filled("source_entry")
    assert indexes_of(*statement) == {index}


def test_log_of_a_lane_reads_its_index(workspace, filled):
    source = Source.everywhere.create(
        pk=UUID(hashlib.md5(b"1").hexdigest()), workspace=workspace, name="x", type="brand"
    )
    statement = _list(workspace, f"/v1/sources/{encode('src', source.pk)}/slots", "brand_slot")
    filled("brand_slot")
    assert indexes_of(*statement) == {"brand_slot_of_source"}


def test_entries_are_met_by_index(workspace, filled):
    source = Source.everywhere.create(
        pk=UUID(hashlib.md5(b"1").hexdigest()), workspace=workspace, name="x", type="rss"
    )
    found = identify(source.pk, [Entry(external_id=str(n), url=f"https://n.example/{n}") for n in range(3)])
    marks = [RawPrint(workspace=workspace, bits=n, band_0=n, band_1=n, band_2=n, band_3=n) for n in range(3)]
    with seen() as sent:
        find_known(source, found)
        entry_log.read(source, [one.key for one in found])
        near_duplicates._load_candidates(marks, datetime.now(UTC))
    for table in ("raw_item", "raw_print", "source_entry"):
        filled(table)
    with connection.cursor() as cursor:
        # Each of its four conditions has an index of its own.
        cursor.execute("SET LOCAL enable_bitmapscan = on")
    by_key, by_second, logged, near = sent
    assert indexes_of(*by_key) == {"raw_item_once"}
    assert indexes_of(*by_second) == {"raw_print_once"}
    assert indexes_of(*logged) == {"source_entry_once"}
    assert indexes_of(*near) == {f"raw_print_band_{number}" for number in range(4)}


@pytest.mark.parametrize("dimensions", [(), DIMENSIONS])
def test_posts_of_the_analytics_are_read_by_index(workspace, filled, dimensions):
    now = datetime.now(UTC)
    period = Period(now - timedelta(days=90), now, "day", ZoneInfo("UTC"))
    with seen() as sent:
        compute_performance(Question(workspace.pk, test=False, period=period), "views", dimensions=dimensions)
    for table in ("publication", "generated_item"):
        filled(table)
    (posts,) = reads_of(sent, "publication")
    assert indexes_of(*posts) == {"publication_done", *(["generated_item_pkey"] if dimensions else [])}


def test_what_is_on_its_way_is_summed_by_index(workspace, filled):
    with seen() as sent:
        spending_caps._spent(datetime.now(UTC), workspace_id=workspace.pk)
        spending_caps._spent(datetime.now(UTC), is_own_key=False)
    filled("model_batch")
    filled("batched_call")
    sums = [one for one in sent if 'FROM "batched_call"' in one[0]]
    assert len(sums) == 2
    for one in sums:
        used = indexes_of(*one)
        assert "model_batch_on_its_way" in used
        assert {name.partition("_id_")[0] for name in used} == {
            "model_batch_on_its_way",
            "batched_call_batch",
        }


# --- Events ----------------------------------------------------------------------------------------------------------


def test_dispatcher_reads_only_what_waits(workspace, filled):
    _event(workspace)
    with seen() as sent:
        assert events.dispatch_batch(lambda _: None, limit=10) == 1
    filled("event")
    first, batch = reads_of(sent, "event")
    assert indexes_of(*first) == {"event_undispatched"}
    assert indexes_of(*batch) == {"event_undispatched"}


def test_counter_reads_only_what_waits(workspace, filled):
    _event(workspace)
    with seen() as sent:
        assert events.count_batch(lambda _: None, limit=10) == 1
    filled("event")
    assert indexes_of(*reads_of(sent, "event")[0]) == {"event_uncounted"}


def test_retention_reads_by_age(workspace, filled):
    with seen() as sent:
        webhook_retention.empty_events(datetime.now(UTC))
        webhook_retention.forget_attempts(datetime.now(UTC))
        webhook_retention.forget_deliveries(datetime.now(UTC))
    filled("event")
    filled("delivery")
    filled("delivery_attempt")
    assert indexes_of(*reads_of(sent, "event")[0]) == {"event_age"}
    assert indexes_of(*reads_of(sent, "delivery_attempt")[0]) == {"delivery_attempt_age"}
    assert "delivery_pkey" in indexes_of(*reads_of(sent, "delivery")[0])


def _event(workspace: Any) -> Event:
    event: Event = Event.everywhere.create(workspace=workspace, type="raw.ingested", body=b"{}")
    return event
