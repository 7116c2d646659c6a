"""The list of sources: rows with state, last run, items of a week and a switch; in pages, narrowed, at an even cost."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from config.core.clock import utc_now
from config.core.datetimes import format_utc
from config.core.ids import encode, lowest_id_at
from pipeline.models import GeneratedItem, Source
from pipeline.pages.sources import listing
from tests.factories import SourceFactory
from tests.pages.answers import at
from tests.pipeline.steps import make_items


def make_sources(workspace, count):
    rows = [
        Source(
            workspace=workspace, name=f"Feed {n:04}", type="rss", config={"url": f"https://s{n}.example/feed"}
        )
        for n in range(count)
    ]
    return Source.everywhere.bulk_create(rows)


def rows_of(client, workspace, query=""):
    return client.get(at(workspace, "sources_page") + query).context["rows"]


def made(seed, source, age):
    """Another item of the source, that long ago: an id tells its time."""
    row = GeneratedItem.everywhere.get(pk=seed.pk)
    row.pk = lowest_id_at(utc_now() - age)
    row._state.adding = True
    row.source = source
    row.save(force_insert=True)
    return row


@pytest.mark.usefixtures("posts")
def test_a_row_says_how_much_came_in_a_week(editor, newsroom):
    seed = make_items(newsroom)[0]
    busy = SourceFactory(workspace=newsroom, name="Busy", config={"url": "https://busy.example"})
    SourceFactory(workspace=newsroom, name="Quiet", config={"url": "https://quiet.example"})
    for hours in (1, 2, 7 * 24 - 1, 7 * 24 + 1):
        made(seed, busy, timedelta(hours=hours))
    erased = made(seed, busy, timedelta(hours=3))
    GeneratedItem.everywhere.filter(pk=erased.pk).update(deleted_at=utc_now())
    assert [(row["source"].name, row["made"]) for row in rows_of(editor, newsroom)] == [
        ("Busy", 3),
        ("Quiet", 0),
    ]
    shown = editor.get(at(newsroom, "sources_page")).content.decode()
    link = f"{at(newsroom, 'items_page')}?source={encode('src', busy.pk)}"
    assert link in shown
    assert len(editor.get(link).context["rows"]) == 4


def test_the_last_run_is_the_last_poll_well_or_not(editor, newsroom):
    now = utc_now().replace(microsecond=0)
    well, failed = now - timedelta(hours=5), now - timedelta(hours=1)
    error = {"code": "http_500", "message": "It answered 500.", "at": format_utc(failed)}
    SourceFactory(workspace=newsroom, name="A", last_polled_at=well)
    SourceFactory(workspace=newsroom, name="B", last_polled_at=well, last_error=error, status="failing")
    SourceFactory(workspace=newsroom, name="C", last_error=error)
    SourceFactory(workspace=newsroom, name="D", type="webhook", last_new_at=well)
    SourceFactory(workspace=newsroom, name="E")
    assert [row["last"] for row in rows_of(editor, newsroom)] == [well, failed, failed, well, None]


def test_the_switch_comes_back_to_its_row_and_is_undone(editor, newsroom):
    source = SourceFactory(workspace=newsroom, name="Harbour & co", config={"url": "https://harbour.example"})
    page = at(newsroom, "sources_page")
    query = "?q=harbour&page=1"
    shown = editor.get(page + query).content.decode()
    assert re.search(r'role="switch" aria-checked="true" aria-label="Harbour &amp; co"', shown)
    back = re.search(r'name="list" value="([^"]*)"', shown)[1].replace("&amp;", "&")
    switched = editor.post(at(newsroom, "source_pause", src=source.pk), {"active": "no", "list": back})
    assert switched["Location"] == f"{page}{query}#{encode('src', source.pk)}"
    source.refresh_from_db()
    assert source.status == "paused"
    after = editor.get(switched["Location"])
    assert [row["is_on"] for row in after.context["rows"]] == [False]
    (toast,) = [str(one) for one in after.context["messages"]]
    fields = dict(re.findall(r'name="(active|list)" value="([^"]*)"', toast.replace("&amp;", "&")))
    assert fields == {"active": "yes", "list": back}
    undone = editor.post(re.search(r'action="([^"]+)"', toast)[1], fields)
    assert undone["Location"] == switched["Location"]
    source.refresh_from_db()
    assert source.status == "active"


def test_the_switch_leads_nowhere_else(editor, newsroom):
    source = SourceFactory(workspace=newsroom, config={"url": "https://harbour.example"})
    sent = {"active": "no", "list": "//evil.example/?x#y"}
    answer = editor.post(at(newsroom, "source_pause", src=source.pk), sent)
    assert answer["Location"].startswith(at(newsroom, "sources_page") + "?%2F%2Fevil.example")


def test_switching_on_past_the_plan_is_refused_in_words(editor, newsroom):
    source = SourceFactory(workspace=newsroom, config={"url": "https://harbour.example"}, status="paused")
    newsroom.plan.active_sources_most = 0
    newsroom.plan.save(update_fields=["active_sources_most"])
    sent = {"active": "yes", "list": ""}
    answer = editor.post(at(newsroom, "source_pause", src=source.pk), sent, follow=True)
    assert [str(one) for one in answer.context["messages"]] == [
        "The plan has 0 active sources; pause or delete one, or ask for more."
    ]
    source.refresh_from_db()
    assert source.status == "paused"


def test_a_viewer_sees_rows_without_a_switch(as_person, vera, newsroom):
    source = SourceFactory(workspace=newsroom, config={"url": "https://harbour.example"})
    shown = as_person(vera).get(at(newsroom, "sources_page")).content.decode()
    assert ("Harbour feed" in shown, 'role="switch"' in shown, "Add a source" in shown) == (
        True,
        False,
        False,
    )
    answer = as_person(vera).post(at(newsroom, "source_pause", src=source.pk), {"active": "no"})
    source.refresh_from_db()
    assert (answer.status_code, source.status) == (403, "active")


def test_the_list_is_narrowed_and_read_page_by_page(editor, newsroom):
    make_sources(newsroom, listing.ROWS * 2 + 1)
    SourceFactory(workspace=newsroom, name="Broken", config={"url": "https://b.example"}, status="failing")
    names = [row["source"].name for page in "123" for row in rows_of(editor, newsroom, f"?page={page}")]
    assert names == ["Broken", *(f"Feed {n:04}" for n in range(listing.ROWS * 2 + 1))]
    for query, found in (
        ("?status=failing", ["Broken"]),
        ("?q=feed+0007", ["Feed 0007"]),
        ("?q=S7.EXAMPLE", ["Feed 0007"]),
        ("?q=nothing", []),
    ):
        assert [row["source"].name for row in rows_of(editor, newsroom, query)] == found
    # What isn't understood shows the first page, or the last.
    assert len(rows_of(editor, newsroom, "?status=nonsense&page=x")) == listing.ROWS
    assert len(rows_of(editor, newsroom, "?page=99")) == 2
    assert "No sources match" in editor.get(at(newsroom, "sources_page") + "?q=nothing").content.decode()
    assert "page=2" in editor.get(at(newsroom, "sources_page") + "?q=feed").content.decode()


def test_two_thousand_cost_as_many_statements_as_one(editor, newsroom):
    make_sources(newsroom, 1)

    def cost():
        with CaptureQueriesContext(connection) as asked:
            assert editor.get(at(newsroom, "sources_page")).status_code == 200
        return asked

    cost()
    one = cost()
    Source.everywhere.bulk_create(
        Source(workspace=newsroom, name=f"More {n}", type="rss", fetch_state={"etag": "x" * 500})
        for n in range(2000)
    )
    many = cost()
    assert len(many) == len(one)
    assert len(rows_of(editor, newsroom)) == listing.ROWS
    # What no row shows isn't read, nor sorted.
    assert not any("fetch_state" in query["sql"] for query in many)
