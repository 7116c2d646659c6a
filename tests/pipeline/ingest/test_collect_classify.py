"""collect.judging: what becomes of each entry; and that a preview says what the poll then does."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.core.errors import Conflict, Invalid
from config.core.ids import encode
from pipeline.ingest import collect, erase_raw_item, replan
from pipeline.ingest.collect import poll_source, store_entries
from pipeline.models import GeneratedItem, HostSlot, RawBody, RawItem, RawPrint, Source, SourceEntry
from pipeline.plugins import Refused, TryLater
from pipeline.review import decisions
from tests.pipeline import steps
from tests.pipeline.scripted_source import MINUTE, entry, log_of, note, poll, raw, register, tell
from tests.pipeline.steps import NOON

HOUR = timedelta(hours=1)
FEED = "https://news.example/feed"
OTHER = "https://wire.example/feed"


@pytest.fixture
def told(monkeypatch):
    return tell(monkeypatch)


@pytest.fixture
def rich(workspace):
    """Credits for everything, and room for sources."""
    workspace.is_unlimited = True
    type(workspace).everywhere.filter(pk=workspace.pk).update(is_unlimited=True)
    return workspace


def counted():
    return {model.__name__: model.everywhere.count() for model in (Source, RawItem, RawPrint, SourceEntry)}


# --- Identity --------------------------------------------------------------------------------------------------------


def test_log_tells_each_entry_and_by_what_it_is_known(rich, told):
    told.entries[FEED] = [
        entry(1),
        entry(2, external_id=None),
        entry(3, external_id=None, url=""),
        entry(4, left_out=note("no_captions")),
        replace(entry(5), title="", body="", url=""),
        entry(6, withdrawn=True),
    ]
    source = poll(register(rich, max_age_days=1))
    entries = SourceEntry.everywhere.filter(source=source).order_by("-published_at")
    assert list(entries.values_list("decision", "decided_by", "code", "raw_item__status")) == [
        ("new", "external_id", "new", "queued"),
        ("new", "url", "new", "queued"),
        ("new", "content", "new", "queued"),
        ("filtered", "source", "no_captions", None),
        ("malformed", "source", "empty", None),
        ("withdrawn", "source", "withdrawn", None),
    ]


def test_unchanged_entries_write_nothing(rich, told, clock):
    told.entries[FEED] = [entry(number) for number in range(30)]
    source = poll(register(rich))
    before = list(SourceEntry.everywhere.order_by("pk").values())
    clock.shift(HOUR)
    HostSlot.everywhere.all().delete()
    hand = steps.claimed(source)
    with CaptureQueriesContext(connection) as captured:
        collect.poll(hand)
    writes = [query["sql"] for query in captured if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert [sql.split('"')[1] if '"' in sql else "host_slot" for sql in writes] == [
        "host_slot",
        "host_slot",
        "source",
    ]
    assert list(SourceEntry.everywhere.order_by("pk").values()) == before


def test_filtered_entry_is_taken_in_once_nothing_stands_in_the_way(rich, told):
    told.entries[FEED] = [entry(1, left_out=note("no_captions"))]
    source = poll(register(rich))
    assert (log_of(source), RawItem.everywhere.count()) == ({"g1": ("filtered", "source", "no_captions")}, 0)
    told.entries[FEED] = [entry(1)]
    poll(source)
    assert (log_of(source), raw("g1").status) == ({"g1": ("new", "external_id", "new")}, "queued")


def test_edited_entry_is_a_new_version_and_said_so(rich, told):
    told.entries[FEED] = [entry(1)]
    source = poll(register(rich))
    told.entries[FEED] = [entry(1, body=steps.OTHER_TEXT)]
    source = poll(source)
    assert log_of(source) == {"g1": ("revised", "external_id", "revised")}
    poll(source)
    assert log_of(source) == {"g1": ("revised", "external_id", "revised")}
    assert (raw("g1").content_version, RawBody.everywhere.count()) == (2, 2)


def test_ids_that_change_at_each_poll_make_nothing_twice(rich, told, clock):
    source = register(rich)
    for number in range(4):
        told.entries[FEED] = [
            entry(7, external_id=f"fresh-{number}-{at}", url=f"https://n.example/{at}", title=f"T{at}")
            for at in range(5)
        ]
        source = poll(source)
        clock.shift(2 * 24 * HOUR)
    assert (RawItem.everywhere.count(), SourceEntry.everywhere.count()) == (5, 5)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"published_at": NOON - timedelta(hours=47)}, 1),
        ({"published_at": None}, 1),
        ({"title": "  entry, 1!"}, 1),
        ({"published_at": NOON - timedelta(hours=50)}, 2),
        ({"title": "Something else"}, 2),
        ({"url": "https://news.example/1?utm_source=x#top"}, 1),
        ({"url": "https://news.example/other"}, 2),
    ],
)
def test_changed_id_is_the_same_with_its_address_title_and_time(rich, told, changes, count):
    told.entries[FEED] = [entry(1, published_at=NOON)]
    source = poll(register(rich))
    told.entries[FEED] = [entry(1, **{"external_id": "other", "published_at": NOON, **changes})]
    poll(source)
    assert RawItem.everywhere.count() == count


def test_changed_id_without_an_address_is_known_by_its_content(rich, told):
    told.entries[FEED] = [entry(1, url="")]
    source = poll(register(rich))
    told.entries[FEED] = [entry(1, url="", external_id="other")]
    poll(source)
    told.entries[FEED] = [entry(1, url="", external_id="third", body=steps.OTHER_TEXT)]
    poll(source)
    assert RawItem.everywhere.count() == 2


def test_id_that_several_entries_share_is_told_apart_by_address(rich, told):
    told.entries[FEED] = [entry(number, external_id="1") for number in (1, 2, 3)]
    source = poll(register(rich))
    assert RawItem.everywhere.count() == 3
    poll(source)
    # Alone in the document it has its plain id; it is known by its address.
    told.entries[FEED] = [entry(2, external_id="1")]
    poll(source)
    assert RawItem.everywhere.count() == 3
    assert {row.decision for row in SourceEntry.everywhere.all()} == {"new"}


def test_same_entry_twice_in_a_document_is_one(rich, told):
    told.entries[FEED] = [entry(1), entry(2), entry(1)]
    source = poll(register(rich))
    poll(source)
    assert (RawItem.everywhere.count(), SourceEntry.everywhere.count()) == (2, 2)


def test_address_that_all_entries_share_identifies_none(rich, told):
    told.entries[FEED] = [entry(number, url="https://news.example/page") for number in range(4)]
    source = poll(register(rich))
    told.entries[FEED] = [entry(9, url="https://news.example/page"), *told.entries[FEED]]
    poll(source)
    assert RawItem.everywhere.count() == 5


def test_front_page_identifies_nothing_across_sources(rich, told):
    told.entries[FEED] = [entry(1, url="https://news.example/")]
    told.entries[OTHER] = [entry(2, url="https://news.example/")]
    poll(register(rich))
    poll(register(rich, OTHER))
    assert RawItem.everywhere.count() == 2


def test_page_that_two_sources_bring_is_one_raw_item_and_never_goes_back_and_forth(rich, told):
    told.entries[FEED] = [entry(1, external_id="a", url="https://News.example/x?utm_source=feed")]
    told.entries[OTHER] = [entry(1, external_id="b", url="https://news.example/x", body="A summary.")]
    one, other = poll(register(rich)), poll(register(rich, OTHER))
    for _ in range(2):
        one, other = poll(one), poll(other)
    item = RawItem.everywhere.get()
    assert (item.source_id, item.content_version) == (one.pk, 1)
    assert log_of(other) == {"b": ("unchanged", "url", "other_source")}
    assert SourceEntry.everywhere.get(source=other).raw_item_id == item.pk


def places_in(page, *numbers):
    return [
        entry(number, external_id=f"{page}-{number}", url=f"https://news.example/{page}#{number}")
        for number in numbers
    ]


def test_duplicate_of_another_source_stays_one_when_others_share_its_page(rich, told):
    told.entries[FEED] = places_in("log", 1)
    poll(register(rich))
    told.entries[OTHER] = [replace(one, external_id="b-1") for one in places_in("log", 1)]
    other = poll(register(rich, OTHER))
    assert log_of(other) == {"b-1": ("unchanged", "url", "other_source")}
    told.entries[OTHER] = [*places_in("log", 2), *told.entries[OTHER]]
    for _ in range(2):
        other = poll(other)
        assert log_of(other) == {
            "b-1": ("unchanged", "url", "other_source"),
            "log-2": ("new", "external_id", "new"),
        }
    assert RawItem.everywhere.count() == 2


def test_duplicate_of_its_own_source_stays_one_when_others_share_its_page(rich, told):
    told.entries[FEED] = places_in("log", 1)
    source = poll(register(rich))
    # The same words at another place of the page.
    again = replace(told.entries[FEED][0], external_id="log-1b", url="https://news.example/log#1b")
    told.entries[FEED] = [again]
    source = poll(source)
    assert (RawItem.everywhere.count(), log_of(source)["log-1b"]) == (1, ("unchanged", "url", "same"))
    told.entries[FEED] = [*places_in("log", 3), again, *places_in("log", 1)]
    for _ in range(2):
        source = poll(source)
        assert (RawItem.everywhere.count(), log_of(source)["log-1b"]) == (2, ("unchanged", "url", "same"))
    assert RawItem.everywhere.get(external_id="log-1").content_version == 1


@pytest.mark.parametrize(
    ("address", "count"), [("#/{}", 3), ("app#!{}", 3), ("app#{}", 1), ("app#part/{}", 1)]
)
def test_routes_of_a_single_page_site_are_addresses_of_their_own(rich, told, address, count):
    told.entries[FEED] = [
        entry(number, external_id=None, url="https://news.example/" + address.format(number))
        for number in range(3)
    ]
    source = poll(poll(register(rich)))
    told.entries[OTHER] = [replace(one, external_id=f"b-{at}") for at, one in enumerate(told.entries[FEED])]
    poll(register(rich, OTHER))
    assert RawItem.everywhere.filter(source=source).count() == count


def test_page_of_another_workspace_is_nobody_elses(rich, charlies, told):
    charlies.is_unlimited = True
    told.entries[FEED] = [entry(1)]
    poll(register(rich))
    poll(register(charlies))
    assert sorted(RawItem.everywhere.values_list("workspace_id", flat=True)) == sorted([rich.pk, charlies.pk])


def test_pushed_page_is_met_by_a_feed(rich, told):
    pushed = steps.push_raw(rich, external_id="mine", url="https://news.example/1").raw_item
    told.entries[FEED] = [entry(1)]
    source = poll(register(rich))
    assert log_of(source) == {"g1": ("unchanged", "url", "other_source")}
    assert RawItem.everywhere.get() == pushed


def test_deleted_item_is_not_taken_in_again_by_any_source(rich, told):
    told.entries[FEED] = told.entries[OTHER] = [entry(1)]
    poll(register(rich))
    erase_raw_item.erase(raw("g1"), now=NOON)
    other = poll(register(rich, OTHER))
    assert (RawItem.everywhere.count(), log_of(other)) == (1, {"g1": ("unchanged", "url", "deleted")})
    kept = SourceEntry.everywhere.exclude(source=other).get()
    assert (kept.title, kept.url, kept.message) == ("", "", "")


def test_page_that_another_source_takes_between_look_and_write_is_not_taken_twice(rich, told, monkeypatch):
    told.entries[FEED] = [entry(1), entry(2)]
    told.entries[OTHER] = [entry(1, external_id="b"), entry(3)]
    other = register(rich, OTHER)
    real = store_entries.classify_entries

    def slow(*given, **more):
        judged = real(*given, **more)
        monkeypatch.setattr(store_entries, "classify_entries", real)
        poll(other)
        return judged

    monkeypatch.setattr(store_entries, "classify_entries", slow)
    source = register(rich)
    source = poll(source)
    assert sorted(RawItem.everywhere.values_list("external_id", flat=True)) == ["b", "g2", "g3"]
    assert log_of(source) == {"g1": ("unchanged", "external_id", "met"), "g2": ("new", "external_id", "new")}
    poll(source)
    assert RawItem.everywhere.count() == RawPrint.everywhere.count() == 3


def test_portion_that_the_credits_do_not_cover_is_taken_in_one_by_one(workspace, told):
    told.entries[FEED] = [entry(number) for number in range(14)]
    source = poll(register(workspace))
    counts = [RawItem.everywhere.filter(status=status).count() for status in ("queued", "waiting_quota")]
    assert (counts, len(log_of(source))) == ([10, 4], 14)
    assert {row[0] for row in log_of(source).values()} == {"new"}


# --- Burst, age and admission ----------------------------------------------------------------------------------------


def test_backlog_after_an_outage_is_bounded_and_each_can_be_admitted(rich, told, clock):
    told.entries[FEED] = [entry(500)]
    source = poll(register(rich, max_burst=3))
    clock.shift(HOUR)
    told.entries[FEED] = [entry(number) for number in range(100)]
    source = poll(source)
    assert list(
        RawItem.everywhere.filter(status="queued").order_by("-id").values_list("external_id", flat=True)
    ) == [
        "g0",
        "g1",
        "g2",
        "g500",
    ]
    assert [row[0] for row in log_of(source).values()].count("over_burst") == 97
    replan.retry(raw("g40"), workspace=rich, now=timezone.now())
    assert (raw("g40").status, log_of(source)["g40"]) == ("queued", ("new", "external_id", "admitted"))
    poll(source)
    assert log_of(source)["g40"] == ("new", "external_id", "admitted")


def _written_in_order(queries):
    tables = [re.search(r'(?:INSERT INTO|UPDATE)\s+"?(\w+)', one["sql"]) for one in queries]
    return [found[1] for found in tables if found]


def test_credits_are_locked_after_the_line_of_the_log(workspace, told):
    told.entries[FEED] = [entry(1)]
    source = poll(register(workspace, first_poll="none"))
    with CaptureQueriesContext(connection) as asked:
        replan.retry(raw("g1"), workspace=workspace, now=NOON)
    tables = _written_in_order(asked.captured_queries)
    assert tables.index("source_entry") < tables.index("credit_balance")
    told.entries[FEED] = [entry(1), entry(2, title="", body="", url="https://news.example/2")]
    source = poll(source)
    assert raw("g2").reason["code"] == "nothing_to_make"
    told.entries[FEED] = [entry(1), entry(2)]
    with CaptureQueriesContext(connection) as asked:
        source = poll(source)
    assert (raw("g2").status, log_of(source)["g2"][0]) == ("queued", "revised")
    tables = _written_in_order(asked.captured_queries)
    assert tables.index("source_entry") < tables.index("credit_balance")


# --- Withdrawn -------------------------------------------------------------------------------------------------------


@pytest.fixture
def made(rich, told):
    """Five entries, and what was made of the third: one item ready, one published."""
    told.more["is_window"] = True
    told.entries[FEED] = [entry(number) for number in range(5)]
    source = poll(register(rich, variants=2))
    steps.run_generations(raw("g2"))
    ready, out = steps.items_of(raw("g2"))
    steps.send(steps.promise(out, steps.make_stage(rich)))
    return source, ready, out


def _holds(*items):
    return [(row.held, row.flagged) for row in map(steps.reread, items)]


def test_entry_that_vanished_from_between_others_is_withdrawn_at_the_second_poll(rich, told, made):
    source, ready, out = made
    told.entries[FEED] = [one for one in told.entries[FEED] if one.external_id != "g2"]
    source = poll(source)
    assert (raw("g2").withdrawn_at, _holds(ready, out)) == (None, [("", ""), ("", "")])
    source = poll(source)
    assert _holds(ready, out) == [("source_withdrawn", ""), ("", "source_withdrawn")]
    assert (raw("g2").withdrawn_at, raw("g2").status) == (NOON, "processed")
    assert log_of(source)["g2"] == ("withdrawn", "source", "missing")
    version = raw("g2").version
    poll(source)
    assert raw("g2").version == version


def test_entry_that_vanished_is_withdrawn_when_the_document_stays_as_it_is(rich, told, made):
    source, ready, _ = made
    told.entries[FEED] = [one for one in told.entries[FEED] if one.external_id != "g2"]
    source = poll(source)
    told.more["not_modified"] = True
    poll(source)
    assert _holds(ready) == [("source_withdrawn", "")]


def test_entry_that_the_source_takes_back_is_withdrawn_at_once_and_let_go_when_it_returns(rich, told, made):
    source, ready, out = made
    whole = told.entries[FEED]
    told.entries[FEED] = [*whole[:2], entry(2, withdrawn=True, body=""), *whole[3:]]
    source = poll(source)
    assert _holds(ready, out) == [("source_withdrawn", ""), ("", "source_withdrawn")]
    assert log_of(source)["g2"] == ("withdrawn", "source", "withdrawn")
    told.entries[FEED] = whole
    source = poll(source)
    assert (raw("g2").withdrawn_at, _holds(ready, out)) == (None, [("", ""), ("", "")])
    assert log_of(source)["g2"] == ("unchanged", "external_id", "same")


def _gone(number):
    """As a tombstone says it: an id, and nothing of what it was."""
    return entry(number, url="", title="", body="", published_at=None, withdrawn=True)


def test_entry_that_is_crowded_out_of_a_feed_with_tombstones_is_not_withdrawn(rich, told):
    told.more["is_window"] = True
    source = register(rich)
    for newest in (3, 2, 1, 0):
        told.entries[FEED] = [*(entry(newest + place) for place in range(3)), _gone(9)]
        source = poll(source)
    assert {key: decision for key, (decision, _, _) in log_of(source).items()} == {
        "g9": "withdrawn",
        **{f"g{number}": "new" for number in range(6)},
    }


def test_log_keeps_what_a_withdrawn_entry_was(rich, told):
    told.entries[FEED] = [entry(1), entry(2)]
    source = poll(register(rich))
    told.entries[FEED] = [entry(1), _gone(2)]
    source = poll(source)
    row = SourceEntry.everywhere.get(source=source, decision="withdrawn")
    kept = (row.external_id, row.url, row.title, row.published_at)
    assert kept == ("g2", entry(2).url, "Entry 2", entry(2).published_at)


def test_erased_words_do_not_come_back_into_the_log(rich, told):
    told.entries[FEED] = [entry(1)]
    source = poll(register(rich))
    erase_raw_item.erase(raw("g1"), now=NOON)
    told.entries[FEED] = [entry(1, left_out=note("no_captions"))]
    source = poll(source)
    told.entries[FEED] = told.entries[OTHER] = [entry(1)]
    source, other = poll(source), poll(register(rich, OTHER))
    rows = SourceEntry.everywhere.filter(source__in=[source, other])
    assert [(row.decision, row.code, row.title, row.url) for row in rows] == [
        ("unchanged", "deleted", "", "")
    ] * 2


def test_entry_that_returns_edited_holds_for_its_change(rich, told, made):
    source, ready, out = made
    whole = told.entries[FEED]
    told.entries[FEED] = [*whole[:2], entry(2, withdrawn=True), *whole[3:]]
    source = poll(source)
    told.entries[FEED] = [*whole[:2], entry(2, body=steps.OTHER_TEXT), *whole[3:]]
    source = poll(source)
    assert _holds(ready, out) == [("source_changed", ""), ("", "source_changed")]
    assert log_of(source)["g2"] == ("revised", "external_id", "revised")


def test_hold_of_another_reason_stays_when_the_entry_returns(rich, told, made):
    source, ready, _ = made
    whole = told.entries[FEED]
    told.entries[FEED] = [entry(2, withdrawn=True)]
    source = poll(source)
    GeneratedItem.everywhere.filter(pk=ready.pk).update(held="approval_stale")
    told.entries[FEED] = whole
    poll(source)
    assert _holds(ready) == [("approval_stale", "")]


def test_approval_clears_that_the_source_of_what_is_out_has_changed(rich, told, made):
    source, _, out = made
    told.entries[FEED] = [entry(2, body=f"Other words. {steps.TEXT}")]
    source = poll(source)
    assert _holds(out) == [("", "source_changed")]
    decisions.approve(steps.reread(out), by="alice", now=NOON)
    assert _holds(out) == [("", "")]
    with pytest.raises(Conflict):
        decisions.approve(steps.reread(out), by="alice", now=NOON)
    told.entries[FEED] = [entry(2, withdrawn=True)]
    poll(source)
    with pytest.raises(Conflict):
        decisions.approve(steps.reread(out), by="alice", now=NOON)
    assert _holds(out) == [("", "source_withdrawn")]


def test_withdrawn_while_it_was_being_made_comes_out_held(rich, told):
    told.entries[FEED] = [entry(1)]
    source = poll(register(rich))
    told.entries[FEED] = [entry(1, withdrawn=True)]
    poll(source)
    steps.run_generations(raw("g1"))
    assert [item.held for item in steps.items_of(raw("g1"))] == ["source_withdrawn"]


def test_source_that_met_a_page_second_cannot_withdraw_it(rich, told):
    told.entries[FEED] = [entry(1)]
    told.entries[OTHER] = [entry(1, external_id="b")]
    poll(register(rich))
    other = poll(register(rich, OTHER))
    told.entries[OTHER] = [entry(1, external_id="b", withdrawn=True)]
    other = poll(other)
    assert (raw("g1").withdrawn_at, log_of(other)) == (None, {"b": ("withdrawn", "source", "withdrawn")})


# --- Forgetting ------------------------------------------------------------------------------------------------------


def test_log_forgets_what_nothing_was_made_of_after_90_days(rich, told, clock):
    told.entries[FEED] = [entry(1), entry(2, left_out=note("noindex"))]
    source = poll(register(rich))
    assert collect.forget_entries(NOON + timedelta(days=90)) == 0
    assert collect.forget_entries(NOON + timedelta(days=90, seconds=1)) == 1
    assert collect.forget_entries(NOON + timedelta(days=400)) == 0
    assert set(log_of(source)) == {"g1"}


# --- Nearly the same -------------------------------------------------------------------------------------------------


def test_near_duplicate_is_marked_and_taken_in_all_the_same(rich, told, clock):
    words = " ".join(f"word{number}" for number in range(400)) + ". The ferry leaves at nine from pier four."
    told.entries[FEED] = [entry(1, body=words)]
    source = poll(register(rich))
    told.entries[FEED] = [entry(3, body=f"{words} more", title="Entry 1"), entry(2), entry(1, body=words)]
    poll(source)
    assert (raw("g1").near_duplicate, raw("g2").near_duplicate) == (None, None)
    assert raw("g3").near_duplicate["raw_item"] == encode("raw", raw("g1").pk)
    assert 0.9 <= raw("g3").near_duplicate["score"] <= 1
    assert raw("g3").status == "queued"


def test_near_duplicates_of_one_poll_are_marked_among_themselves(rich, told):
    words = " ".join(f"word{number}" for number in range(400))
    told.entries[FEED] = [entry(2, body=words, title="Same"), entry(1, body=words, title="Same")]
    poll(register(rich))
    assert raw("g1").near_duplicate is None
    assert raw("g2").near_duplicate["score"] == 1.0


def test_near_duplicate_is_looked_for_in_the_last_90_days_only(rich, told, clock):
    words = " ".join(f"word{number}" for number in range(400))
    told.entries[FEED] = [entry(1, body=words, title="Same")]
    source = poll(register(rich))
    clock.shift(timedelta(days=91))
    told.entries[FEED] = [entry(2, body=words, title="Same"), *told.entries[FEED]]
    poll(source)
    assert raw("g2").near_duplicate is None


# --- Preview ---------------------------------------------------------------------------------------------------------


def _settings(**given):
    return collect.SourceSettings(type="rss", config={"url": FEED}, **given)


def test_preview_stores_nothing_and_says_the_price(workspace, told):
    told.entries[FEED] = [entry(number) for number in range(8)]
    told.more |= {
        "title": "News",
        "notes": (note("noindex"),),
        "moved_to": "https://new.example/",
        "malformed": 2,
    }
    before = counted()
    seen = collect.preview(workspace, _settings(variants=2), test=False, now=NOON)
    assert counted() == before
    assert (seen.title, seen.moved_to, seen.price_in_credits) == ("News", "https://new.example/", 10)
    assert [one.code for one in seen.notes] == ["noindex", "malformed_entries"]
    assert [one.decision for one in seen.entries] == ["new"] * 5 + ["before_first_poll"] * 3


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TryLater("Too slow.", code="timeout"), ("config", "timeout", "Too slow.")),
        (
            Refused("No feed.", code="not_a_feed", field="config.url"),
            ("config.url", "not_a_feed", "No feed."),
        ),
    ],
)
def test_preview_of_what_cannot_be_read_says_why(workspace, told, error, expected):
    told.error = error
    with pytest.raises(Invalid) as refused:
        collect.preview(workspace, _settings(), test=False, now=NOON)
    assert [(one.field, one.code, one.message) for one in refused.value.detail] == [expected]


def test_preview_of_what_is_gone_or_not_fetched(workspace, told):
    told.more["gone"] = True
    with pytest.raises(Invalid) as refused:
        collect.preview(workspace, _settings(), test=False, now=NOON)
    assert refused.value.detail[0].code == "gone"
    fetched = collect.preview(workspace, collect.SourceSettings(type="webhook"), test=False, now=NOON)
    assert ([note.code for note in fetched.notes], fetched.entries) == (["not_fetched"], ())


def _some_entries(chance: random.Random) -> list:
    """A feed as bad as feeds are: ids missing, shared and repeated, addresses too, dates in any order."""
    return [
        entry(
            number,
            external_id=chance.choice([None, "", "same", f"g{chance.randrange(20)}", f"g{number}"]),
            url=chance.choice(
                ["", "https://n.example/", "https://n.example/a", f"https://n.example/{number}"]
            ),
            title=chance.choice(["", "Title", f"Title {number}"]),
            body=chance.choice(["", "Short.", f"Report {number}. {steps.TEXT}", steps.TEXT]),
            published_at=chance.choice([None, NOON - chance.randrange(400) * HOUR, NOON + HOUR]),
            left_out=chance.choice([None] * 8 + [note("noindex")]),
            withdrawn=chance.random() < 0.05,
        )
        for number in range(chance.randrange(30))
    ]


def _without_source(key: str) -> str:
    """A preview's source has an id of its own."""
    return key[35:] if key.startswith("x:") else key


@pytest.mark.parametrize("seed", range(40))
def test_preview_says_exactly_what_the_poll_then_does(rich, told, seed):
    chance = random.Random(seed)
    # What is there already: another source's items, and something pushed.
    told.entries[OTHER] = _some_entries(chance)
    steps.push_raw(rich, external_id="pushed", url="https://n.example/5")
    poll(register(rich, OTHER))
    told.entries[FEED] = _some_entries(chance)
    given = _settings(
        first_poll=chance.choice([None, "all", "none", {"newest": 3}]),
        max_age_days=chance.choice([None, 7]),
    )
    before = RawItem.everywhere.count()
    seen = collect.preview(rich, given, test=False, now=timezone.now())
    source = poll(collect.register(rich, given, now=timezone.now()))
    foreseen = {
        _without_source(one.key): (one.decision, one.decided_by, one.code, one.message)
        for one in seen.entries
        if one.code != "repeated"
    }
    logged = {
        _without_source(row.key): (row.decision, row.decided_by, row.code, row.message)
        for row in SourceEntry.everywhere.filter(source=source)
    }
    assert foreseen == logged
    stored = [
        one for one in seen.entries if one.decision in {"new", "too_old", "over_burst", "before_first_poll"}
    ]
    assert RawItem.everywhere.count() - before == len(stored)
    # And the second poll finds nothing to do.
    again = list(SourceEntry.everywhere.order_by("pk").values())
    poll(source)
    assert list(SourceEntry.everywhere.order_by("pk").values()) == again
    assert RawItem.everywhere.count() - before == len(stored)


# --- Killed ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """What no handler catches."""


def _everything(source):
    return (
        sorted(RawItem.everywhere.values_list("dedup_key", "status", "content_version", "withdrawn_at")),
        sorted(SourceEntry.everywhere.values_list("key", "decision", "code", "raw_item__dedup_key")),
        sorted(GeneratedItem.everywhere.values_list("raw_item__dedup_key", "variant_index", "held")),
        RawBody.everywhere.count(),
    )


@pytest.mark.parametrize("nth", range(1, 23))
def test_poll_that_is_killed_anywhere_ends_as_if_it_was_not(rich, told, monkeypatch, nth, clock):
    """Three polls: first, edits and something new, and the same once more; killed at the nth crash point of all."""
    passed = {"count": 0, "at": nth}

    def point(name: str) -> None:
        passed["count"] += 1
        if passed["count"] == passed["at"]:
            raise Killed(name)

    monkeypatch.setattr(store_entries, "PORTION", 1)
    for module in (poll_source, store_entries):
        monkeypatch.setattr(module, "crash_point", point)
    told.more["is_window"] = True
    documents = [
        [entry(number) for number in (3, 4, 5, 6)],
        [entry(1), entry(2), entry(3, body=steps.OTHER_TEXT), entry(5), entry(6)],
        [entry(1), entry(2), entry(3, body=steps.OTHER_TEXT), entry(5), entry(6)],
    ]

    def story() -> tuple:
        source = register(rich, first_poll={"newest": 3}, max_burst=1)
        for document in documents:
            told.entries[FEED] = document
            try:
                source = poll(source)
            except Killed:
                source = poll(source)
            clock.shift(MINUTE)
        found = _everything(source)
        Source.everywhere.filter(pk=source.pk).update(deleted_at=NOON)
        return found

    killed = story()
    assert passed["count"] >= nth, "there are fewer crash points"
    assert {key.rpartition(":")[2]: row[:2] for key, *row in killed[1]} == {
        "g1": ["new", "new"],
        "g2": ["over_burst", "over_burst"],
        "g3": ["revised", "revised"],
        "g4": ["withdrawn", "missing"],
        "g5": ["new", "new"],
        "g6": ["before_first_poll", "before_first_poll"],
    }
    assert len(killed[0]) == 6
    assert (len(killed[2]), killed[3]) == (4, 7)
