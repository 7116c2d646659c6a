"""A series: what it takes, that each time makes one digest, and what becomes of a digest."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection

from accounts.ledger import credits, reports
from accounts.models import AuditEntry, Workspace
from config.core.errors import Conflict, Invalid, NotFound
from config.core.ids import encode
from pipeline import generate
from pipeline.generate import multi_source
from pipeline.generate import run as generation_run
from pipeline.holds.source_changes import restore, withdraw
from pipeline.ingest import erase_raw_item, raw_content
from pipeline.models import (
    GeneratedItem,
    Generation,
    GenerationInput,
    ModelCall,
    Outlet,
    RawItem,
    Series,
    SeriesIssue,
    Source,
    items_made_from,
)
from pipeline.personas import crud
from pipeline.review import regenerate
from pipeline.schedule import series
from pipeline.schedule.series import digest_items, make_issue
from tests.pipeline.steps import NOON, claimed, push_raw, reread, run_generations
from tests.writers.messages_server import material_of, ok, refusal

pytestmark = pytest.mark.usefixtures("anthropic_sdk")

STORIES = (
    (
        "Tram line approved",
        (
            "The city council approved the new tram line on Monday evening after six hours of debate. "
            "Construction of the northern depot begins in April and will employ about 340 people. "
            "Rents along the route may rise."
        ),
    ),
    (
        "Bakery opens a second oven",
        (
            "Hirsch's bakery has opened a second oven in the old customs house by the quay. "
            "It bakes 180 loaves an hour, three times as many as the one in Mill Street. "
            "Two bakers were hired for it."
        ),
    ),
    (
        "Library lends cargo bikes",
        (
            "Anyone with a library card can take one of 12 bikes home for a day, free of charge. "
            "The bikes cost £46,000, which the Friends of the Library raised with a book sale. "
            "A helmet comes with each."
        ),
    ),
    (
        "Pool stays closed",
        (
            "The Westgate pool stays closed until May because two of its three pumps have failed. "
            "Spare parts, which were built in 1987, have to be cast anew by a foundry in Leeds. "
            "The repair costs £310,000."
        ),
    ),
    (
        "Kingfishers counted",
        (
            "Volunteers have counted 61 kingfishers along the river Harrow on a Sunday in October. "
            "Last year they saw 44 of the birds on the same 38 kilometres of bank. "
            "The full list comes in March."
        ),
    ),
)
WEEKLY = {"name": "Harbour weekly", "timezone": "Europe/London", "slots": [{"weekday": 1, "time": "09:00"}]}
TUESDAY = datetime(2027, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _ids_of_another_clock(monkeypatch):
    """The tests' clock is ahead of the one that ids are made by; what came in when is told by its own column."""
    monkeypatch.setattr("pipeline.schedule.series.digest_items.ids.lowest_id_at", lambda moment: UUID(int=0))


def take_in(workspace, count=5, first=0, **changes):
    made = []
    for place in range(first, first + count):
        title, body = STORIES[place % len(STORIES)]
        url = f"https://news.example/{place}"
        made.append(
            push_raw(workspace, title=title, body=body, url=url, when_short="wait", **changes).raw_item
        )
    return made


def begin(workspace, **changes):
    return series.create(workspace, {**WEEKLY, **changes}, test=False, now=NOON)


def work(row, *, at=None, clock=None):
    if clock is not None:
        clock.move_to(at or TUESDAY)
    series.run_series(claimed(row))
    return reread(row)


def issues(row):
    return list(SeriesIssue.everywhere.filter(series=row).order_by("id"))


def told(issue):
    rows = GenerationInput.everywhere.filter(generation=issue.generation).order_by("position")
    return [one.raw_item.title for one in rows.select_related("raw_item")]


def digest_of(issue):
    return GeneratedItem.everywhere.select_related("workspace").get(generation=issue.generation)


def make_digest(issue):
    generation_run.run_generation(claimed(issue.generation))
    return digest_of(issue)


# --- What is chosen --------------------------------------------------------------------------------------------------


def test_newest_are_told_first_up_to_the_most(rich, clock):
    for place in range(5):
        clock.move_to(NOON + timedelta(minutes=place))
        take_in(rich, 1, place)
    row = begin(rich, items_most=4)
    chosen = series.select_items(row, now=NOON + timedelta(hours=1))
    assert [one.title for one in chosen.raw_items] == [title for title, _ in reversed(STORIES)][:4]
    assert chosen.found == 5


def test_what_is_told_by_several_comes_first_and_once(rich, clock):
    take_in(rich)
    title, body = STORIES[0]
    push_raw(rich, title=f"{title}, says the wire", body=body, url="https://wire.example/tram")
    chosen = series.select_items(begin(rich), now=NOON)
    assert len(chosen.raw_items) == chosen.found == 5
    assert chosen.raw_items[0].title == f"{title}, says the wire"


def test_no_source_fills_a_digest_while_others_have_something(rich, defaults):
    other = Source.everywhere.create(workspace=rich, name="Other", type="webhook")
    take_in(rich, 2, 0, source=other)
    take_in(rich, 3, 2)
    chosen = series.select_items(begin(rich, items_most=3), now=NOON).raw_items
    assert len({one.source_id for one in chosen}) == 2


@pytest.mark.parametrize("why", ["old", "short", "deleted", "withdrawn", "skipped", "test", "other source"])
def test_what_may_not_be_told_is_left_out(rich, why, clock):
    take_in(rich, 4)
    changes = {"test": True} if why == "test" else {}
    if why == "old":
        clock.move_to(NOON - timedelta(days=8))
    body = "Too short." if why == "short" else STORIES[4][1]
    skip = {"skip": raw_content.Skip("filtered", "By its rules.")} if why == "skipped" else {}
    raw = push_raw(rich, title="Out", body=body, url="https://out.example/", **changes, **skip).raw_item
    clock.move_to(NOON)
    if why == "deleted":
        erase_raw_item.erase(raw, now=NOON)
    if why == "withdrawn":
        withdraw(raw.pk, NOON)
    given = {}
    if why == "other source":
        other = Source.everywhere.create(workspace=rich, name="Other", type="webhook")
        RawItem.everywhere.filter(pk=raw.pk).update(source=other)
        given = {"sources": [encode("src", RawItem.everywhere.filter(title=STORIES[0][0]).get().source_id)]}
    titles = [one.title for one in series.select_items(begin(rich, **given), now=NOON).raw_items]
    assert sorted(titles) == sorted(title for title, _ in STORIES[:4])


def test_nothing_of_another_workspace_is_told(rich, charlies):
    Workspace.everywhere.filter(pk=charlies.pk).update(plan=rich.plan)
    take_in(Workspace.everywhere.select_related("plan").get(pk=charlies.pk))
    assert series.select_items(begin(rich), now=NOON).found == 0


# --- Its times -------------------------------------------------------------------------------------------------------


def test_its_time_makes_one_digest_and_lays_the_next(rich, clock):
    raws = take_in(rich)
    row = begin(rich)
    assert (row.due_at, row.wake_at) == (TUESDAY, TUESDAY)
    row = work(row, clock=clock)
    assert row.due_at == row.wake_at == TUESDAY + timedelta(days=7)
    assert row.attempts == 0
    (issue,) = issues(row)
    assert (issue.decision, issue.due_at, issue.found, issue.by) == ("made", TUESDAY, 5, "")
    item = digest_of(issue)
    assert (item.status, item.engine_output, item.bucket) == ("queued", "Newsletter Digest", "newsletter")
    assert sorted(item.raw_items) == sorted(one.pk.hex for one in raws)
    assert issue.generation.credits_reserved == 5


def test_next_time_tells_nothing_twice_nor_what_is_near_to_it(rich, clock):
    take_in(rich, 3)
    row = work(begin(rich), clock=clock)
    clock.move_to(TUESDAY + timedelta(days=5))
    title, body = STORIES[0]
    push_raw(rich, title=f"{title}!", body=body, url="https://wire.example/again")
    # Told in other words, under the same headline.
    push_raw(rich, title=STORIES[1][0].upper(), body=f"{STORIES[1][1]} It smells of rye there, people say.")
    take_in(rich, 2, 3)
    row = work(row, at=TUESDAY + timedelta(days=7), clock=clock)
    last = issues(row)[-1]
    assert (last.decision, last.found, last.generation) == ("too_few", 2, None)
    assert last.message.startswith("Only 2 of at least 3 items")
    assert Generation.everywhere.filter(engine="newsletter_digest").count() == 1


def test_what_a_failed_digest_held_may_be_told_again(rich, clock):
    take_in(rich, 3)
    row = work(begin(rich), clock=clock)
    assert series.select_items(row, now=TUESDAY).found == 0
    # Its run may have ended well: a draft that breaks a check fails its item alone.
    GeneratedItem.everywhere.filter(generation_id=issues(row)[0].generation_id).update(status="failed")
    assert series.select_items(row, now=TUESDAY).found == 3


def test_digest_that_is_tried_again_is_remembered(rich, clock):
    take_in(rich, 3)
    row = work(begin(rich), clock=clock)
    item = digest_of(issues(row)[0])
    Generation.everywhere.filter(pk=item.generation_id).update(status="failed", wake_at=None)
    GeneratedItem.everywhere.filter(pk=item.pk).update(status="failed")
    again = regenerate.retry(reread(item), workspace=rich, now=TUESDAY)
    assert again.generation_id != item.generation_id
    assert issues(row)[0].generation_id == again.generation_id
    assert series.select_items(row, now=TUESDAY).found == 0


def test_titles_without_words_are_not_the_same(rich):
    for place, (_, body) in enumerate(STORIES[:3]):
        push_raw(rich, title="\N{PARTY POPPER}" * (place + 1), body=body, url=f"https://news.example/{place}")
    assert series.select_items(begin(rich), now=NOON).found == 3


def test_each_title_is_folded_once(rich, monkeypatch):
    take_in(rich, 5)
    row = begin(rich)
    folded = []
    fold = digest_items.plain_title
    monkeypatch.setattr(digest_items, "plain_title", lambda title: folded.append(title) or fold(title))
    assert series.select_items(row, now=NOON).found == 5
    assert sorted(folded) == sorted(title for title, _ in STORIES)


def test_clock_behind_the_databases_makes_one_digest_and_goes_on(rich, clock):
    take_in(rich)
    row = work(begin(rich), at=TUESDAY - timedelta(seconds=2), clock=clock)
    assert [one.due_at for one in issues(row)] == [TUESDAY]
    assert row.due_at == row.wake_at == TUESDAY + timedelta(days=7)


def test_time_that_has_its_digest_is_only_passed(rich, clock):
    take_in(rich)
    row = work(begin(rich), clock=clock)
    Series.everywhere.filter(pk=row.pk).update(due_at=TUESDAY)
    row = work(row, clock=clock)
    assert [one.due_at for one in issues(row)] == [TUESDAY]
    assert row.due_at == row.wake_at == TUESDAY + timedelta(days=7)


def test_series_that_ended_meanwhile_is_not_found(rich, clock):
    take_in(rich)
    row = begin(rich)
    clock.move_to(TUESDAY)
    held = claimed(row)
    series.delete(row)
    row.pk = held.pk
    with pytest.raises(NotFound):
        series.make_now(row, by="alice")
    with pytest.raises(NotFound):
        series.change(row, {"name": "New"}, now=NOON)
    series.run_series(held)
    assert SeriesIssue.everywhere.count() == 0


def test_series_is_paused_though_what_it_names_is_gone(rich):
    source = Source.everywhere.filter(workspace=rich).first()
    row = begin(rich, sources=[encode("src", source.pk)])
    Source.everywhere.filter(pk=source.pk).update(deleted_at=NOON)
    assert series.change(row, {"is_paused": True}, now=NOON).is_paused is True
    with pytest.raises(Invalid) as refused:
        series.change(row, {"sources": row.sources}, now=NOON)
    assert [one.field for one in refused.value.detail] == ["sources[0]"]


def test_persona_that_a_series_speaks_with_is_not_deleted(rich):
    persona = crud.create(rich, {"name": "Harbour"}, by="alice", now=NOON)
    begin(rich, persona_id=persona.pk)
    with pytest.raises(Conflict) as refused:
        crud.delete(persona, by="alice", now=NOON)
    assert [(one.code, "Harbour weekly" in one.message) for one in refused.value.detail] == [("in_use", True)]


def test_times_missed_are_made_up_for_once(rich, clock):
    take_in(rich)
    row = begin(rich, window_days=31)
    row = work(row, at=TUESDAY + timedelta(days=15), clock=clock)
    assert [(one.due_at, one.decision) for one in issues(row)] == [(TUESDAY, "made")]
    assert row.due_at == TUESDAY + timedelta(days=21)


def test_its_time_is_on_the_clocks_of_its_zone(rich):
    row = begin(rich, slots=[{"weekday": 6, "time": "01:30"}], timezone="Europe/London")
    moments = [one.moment for one in series.next_slots(row, after=NOON, most=4)]
    # The clocks skip that hour on 28 March 2027, and from then on they are an hour ahead.
    assert [one.strftime("%d %H:%M") for one in moments] == ["07 01:30", "14 01:30", "21 01:30", "28 01:30"]
    row = series.change(row, {"on_gap": "skip"}, now=NOON)
    moments = [one.moment for one in series.next_slots(row, after=NOON, most=4)]
    assert [one.strftime("%d %H:%M") for one in moments][-1] == "04 00:30"


def test_without_credits_it_says_so_and_goes_on(workspace, clock):
    # Ten credits, six of which are reserved.
    poor = workspace
    take_in(poor)
    push_raw(poor, body="Short.", url="https://short.example/")
    row = work(begin(poor), clock=clock)
    (issue,) = issues(row)
    assert (issue.decision, issue.generation, issue.found) == ("no_credits", None, 5)
    assert row.due_at == TUESDAY + timedelta(days=7)
    assert Generation.everywhere.filter(engine="newsletter_digest").count() == 0


def test_workspace_that_rests_keeps_its_time(rich, clock):
    take_in(rich)
    row = begin(rich)
    Workspace.everywhere.filter(pk=rich.pk).update(deletes_at=TUESDAY + timedelta(days=3))
    row = work(row, clock=clock)
    assert (issues(row), row.due_at) == ([], TUESDAY)
    assert row.wake_at > TUESDAY


def test_hand_that_a_person_overtook_makes_nothing(rich, clock):
    take_in(rich)
    row = begin(rich)
    clock.move_to(TUESDAY)
    held = claimed(row)
    series.change(row, {"is_paused": True}, now=TUESDAY)
    series.run_series(held)
    row = reread(row)
    assert (issues(row), row.due_at, row.wake_at) == ([], None, None)


@pytest.mark.parametrize("point", ["series.claimed", "series.made", "series.committed"])
def test_hand_that_is_killed_leaves_one_digest(rich, clock, monkeypatch, point):
    take_in(rich)
    row = begin(rich)
    clock.move_to(TUESDAY)

    class Killed(BaseException):
        pass

    def die(name):
        if name == point:
            raise Killed

    with monkeypatch.context() as patch:
        for module in (make_issue, make_issue):
            patch.setattr(module, "crash_point", die)
        with pytest.raises(Killed):
            series.run_series(claimed(row))
    # The lease ends, and where it still waits for this time the next hand works it.
    if reread(row).due_at == TUESDAY:
        series.run_series(claimed(row))
    assert [one.decision for one in issues(row)] == ["made"]
    assert Generation.everywhere.filter(engine="newsletter_digest").count() == 1
    assert reports.check() == []


def test_hand_without_its_lease_makes_nothing(rich, clock):
    take_in(rich)
    row = begin(rich)
    clock.move_to(TUESDAY)
    first, second = claimed(row), claimed(row)
    series.run_series(first)
    assert issues(row) == []
    series.run_series(second)
    assert [one.decision for one in issues(row)] == ["made"]


def test_series_that_breaks_goes_on_at_its_next_time(rich, clock):
    row = begin(rich)
    clock.move_to(TUESDAY)
    series.give_up(claimed(row))
    row = reread(row)
    following = TUESDAY + timedelta(days=7)
    assert (row.wake_at, row.due_at, row.attempts) == (following, following, 0)


# --- Made now --------------------------------------------------------------------------------------------------------


def test_made_now_beside_its_times(rich, clock):
    take_in(rich)
    row = begin(rich)
    issue = series.make_now(row, by="alice")
    assert (issue.decision, issue.by, issue.due_at) == ("made", "alice", NOON)
    assert reread(row).due_at == TUESDAY
    with pytest.raises(Conflict, match="Only 0 of at least 3 items"):
        series.make_now(row, by="alice")


def test_made_now_without_credits_is_refused(workspace):
    # Ten credits, six of which are reserved.
    poor = workspace
    take_in(poor)
    push_raw(poor, body="Short.", url="https://short.example/")
    row = begin(poor)
    with pytest.raises(credits.QuotaExceeded):
        series.make_now(row, by="alice")
    assert issues(row) == []


# --- Kept ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"name": " "}, ["name"]),
        ({"slots": []}, ["slots"]),
        ({"timezone": "Mars/Base"}, ["timezone"]),
        ({"items_least": 5, "items_most": 4}, ["items_least"]),
        ({"on_gap": "maybe"}, ["on_gap"]),
    ],
)
def test_what_can_not_be_kept_is_named(rich, given, fields):
    with pytest.raises(Invalid) as refused:
        begin(rich, **given)
    assert [one.field for one in refused.value.detail] == fields


def test_what_is_another_workspaces_is_named(rich, charlies):
    his = Source.everywhere.filter(workspace=charlies).first()
    stage = Outlet.everywhere.get(workspace=charlies, platform="simulated")
    given = {"sources": [encode("src", his.pk)], "outlets": [encode("out", stage.pk)]}
    with pytest.raises(Invalid) as refused:
        begin(rich, **given)
    assert [(one.field, one.code) for one in refused.value.detail] == [
        ("sources[0]", "unknown_source"),
        ("outlets[0]", "unknown_outlet"),
    ]


def test_change_moves_its_time_and_pausing_takes_it_away(rich):
    row = begin(rich)
    row = series.change(row, {"slots": [{"weekday": 2, "time": "08:00"}]}, now=NOON)
    assert (row.due_at, row.version) == (datetime(2027, 3, 3, 8, 0, tzinfo=UTC), 2)
    row = series.change(row, {"is_paused": True}, now=NOON)
    assert (row.due_at, row.wake_at, series.next_slots(row, after=NOON, most=3)) == (None, None, ())
    row = series.change(row, {"is_paused": False, "name": "New"}, now=NOON)
    assert (row.wake_at, row.name) == (datetime(2027, 3, 3, 8, 0, tzinfo=UTC), "New")


def test_a_digest_that_is_due_outlives_a_change_of_something_else(rich, clock):
    take_in(rich)
    row = begin(rich)
    late = TUESDAY + timedelta(minutes=5)
    given = {name: getattr(row, name) for name in ("timezone", "slots", "on_gap", "on_overlap", "is_paused")}
    clock.move_to(late)
    hand = claimed(row)
    changed = series.change(row, {**given, "name": "Renamed"}, now=late)
    assert (changed.due_at, changed.lease_token) == (TUESDAY, hand.lease_token)
    series.run_series(hand)
    assert [(one.due_at, one.decision) for one in issues(row)] == [(TUESDAY, "made")]
    moved = series.change(reread(row), {**given, "on_gap": "skip"}, now=late)
    assert moved.lease_token > hand.lease_token


def test_no_more_series_than_the_most_whichever_way(rich, monkeypatch):
    monkeypatch.setattr("pipeline.limits.SERIES_MOST", 2)
    ended = series.delete(begin(rich), now=NOON)
    begin(rich, name="One")
    begin(rich, name="Two")
    for more in (lambda: begin(rich), lambda: series.restore(ended, by="alice", now=NOON)):
        with pytest.raises(Conflict) as refused:
            more()
        assert [one.code for one in refused.value.detail] == ["too_many"]
    assert Series.everywhere.filter(deleted_at=None).count() == 2


@pytest.mark.django_db(transaction=True)
def test_two_at_once_are_not_both_the_last_one(workspace, monkeypatch, together):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer.")
    monkeypatch.setattr("pipeline.limits.SERIES_MOST", 2)
    ended = series.delete(begin(workspace), now=NOON)
    begin(workspace, name="One")
    ways = [lambda: begin(workspace, name="Two"), lambda: series.restore(ended, by="alice", now=NOON)]
    together(*ways * 2)
    assert Series.everywhere.filter(deleted_at=None).count() == 2


def test_series_that_ends_leaves_its_digests(rich, clock):
    take_in(rich)
    row = work(begin(rich), clock=clock)
    item = digest_of(issues(row)[0])
    series.delete(row, by="alice", now=NOON)
    assert Series.everywhere.filter(deleted_at=None).count() == 0
    assert reread(item).status == "queued"
    another = begin(rich, name="Another")
    # A week later it is gone with its log, though nobody does anything.
    assert (series.forget(NOON + series.KEPT), Series.everywhere.count()) == (0, 2)
    assert series.forget(NOON + series.KEPT + timedelta(microseconds=1)) == 1
    assert (list(Series.everywhere.all()), SeriesIssue.everywhere.count()) == ([another], 0)
    assert reread(item).status == "queued"


def test_an_ended_series_is_taken_back_with_what_it_told(rich, clock):
    take_in(rich)
    row = work(begin(rich), clock=clock)
    ended = series.delete(row, by="alice", now=TUESDAY)
    assert (ended.due_at, ended.wake_at) == (None, None)
    back = series.restore(row, by="alice", now=TUESDAY)
    assert (back.deleted_at, back.due_at == back.wake_at > TUESDAY, issues(back)) == (None, True, issues(row))
    assert back.version == row.version + 2
    series.delete(back, by="alice", now=TUESDAY)
    with pytest.raises(NotFound):
        series.restore(back, by="alice", now=TUESDAY + timedelta(days=8))
    actions = AuditEntry.everywhere.filter(subject=encode("ser", row.pk)).order_by("id")
    assert list(actions.values_list("action", flat=True)) == [
        "series.created",
        "series.deleted",
        "series.restored",
        "series.deleted",
    ]


# --- The digest ------------------------------------------------------------------------------------------------------


@pytest.fixture
def issue(rich, clock):
    take_in(rich, 4)
    return series.make_now(begin(rich), by="alice")


def test_digest_is_made_of_verbatim_sentences_of_each_item(rich, issue):
    item = make_digest(issue)
    assert (item.status, item.error) == ("ready", None)
    assert item.generator["offline"] is True
    headlines = [one["headline"] for one in item.content["sections"]]
    assert headlines == told(issue)
    assert [one["link"] for one in item.content["sections"]] == [
        RawItem.everywhere.get(title=title).url for title in headlines
    ]
    by_raw = {encode("raw", one.pk): one for one in RawItem.everywhere.all()}
    texts = dict(STORIES)
    for claim in item.claims:
        body = texts[by_raw[claim["raw_item"]].title]
        assert body[claim["start"] : claim["end"]] == claim["quote"]
    assert reports.usage(rich, NOON).used == 5


def test_digest_is_found_by_each_of_its_items(rich, issue):
    item = make_digest(issue)
    for key in item.raw_items:
        assert item.pk in GeneratedItem.everywhere.filter(items_made_from(key)).values_list("pk", flat=True)


def test_item_that_is_deleted_before_it_is_read_is_left_out(issue):
    inputs = multi_source.inputs_of(issue.generation)
    erase_raw_item.erase(inputs[0].raw_item, now=NOON)
    item = make_digest(issue)
    assert (item.status, len(item.content["sections"]), item.held) == ("ready", 3, "")
    assert item.raw_items == [one.raw_item_id.hex for one in inputs[1:]]


def test_item_that_is_erased_before_the_words_are_kept_is_left_out(issue, monkeypatch):
    (erased, *left) = multi_source.inputs_of(issue.generation)

    class Killed(BaseException):
        pass

    def die(name):
        if name == "generate.briefed":
            erase_raw_item.erase(erased.raw_item, now=NOON)
        if name == "generate.drafted":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(generate.run, "crash_point", die)
        with pytest.raises(Killed):
            generation_run.run_generation(claimed(issue.generation))
    item = make_digest(issue)
    assert (item.status, item.held) == ("ready", "")
    assert item.raw_items == [one.raw_item_id.hex for one in left]


def test_item_that_is_erased_once_words_quote_it_ends_the_run(rich, issue, monkeypatch):
    class Killed(BaseException):
        pass

    def die(name):
        if name == "generate.drafted":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(generate.run, "crash_point", die)
        with pytest.raises(Killed):
            generation_run.run_generation(claimed(issue.generation))
    erase_raw_item.erase(multi_source.inputs_of(issue.generation)[0].raw_item, now=NOON)
    item = make_digest(issue)
    assert (item.status, item.error["code"]) == ("failed", "source_deleted")
    assert reports.usage(rich, NOON).used == 0


@pytest.mark.parametrize("gone", ["withdrawn", "erased", "changed"])
def test_digest_is_let_go_only_once_all_its_items_stand(issue, gone):
    item = make_digest(issue)
    first, second = (one.raw_item for one in multi_source.inputs_of(issue.generation)[:2])
    GeneratedItem.everywhere.filter(pk=item.pk).update(flagged="source_withdrawn")
    withdraw(first.pk, NOON)
    if gone == "withdrawn":
        withdraw(second.pk, NOON)
    elif gone == "erased":
        erase_raw_item.erase(second, now=NOON)
    else:
        RawItem.everywhere.filter(pk=second.pk).update(content_version=2)
    restore(first.pk, NOON)
    item = reread(item)
    left = "source_changed" if gone == "changed" else "source_withdrawn"
    assert (item.held, item.flagged) == (left, left)
    if gone == "withdrawn":
        restore(second.pk, NOON)
        item = reread(item)
        assert (item.held, item.flagged) == ("", "")


def test_what_befalls_an_item_that_is_not_told_holds_nothing(issue):
    erase_raw_item.erase(multi_source.inputs_of(issue.generation)[0].raw_item, now=NOON)
    item = make_digest(issue)
    inputs = multi_source.inputs_of(issue.generation)
    withdraw(inputs[1].raw_item_id, NOON)
    restore(inputs[1].raw_item_id, NOON)
    assert reread(item).held == ""


@pytest.mark.postgres
@pytest.mark.skipif(not settings.IS_POSTGRES, reason="SQLite locks no rows")
def test_items_are_locked_before_the_digest_is_written(issue):
    sent = []

    def note(execute, sql, parameters, many, context):
        sent.append(sql)
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        make_digest(issue)
    (locking,) = [place for place, sql in enumerate(sent) if 'FROM "raw_item"' in sql and "FOR UPDATE" in sql]
    assert 'ORDER BY "raw_item"."id" ASC' in sent[locking]
    ended = [place for place, sql in enumerate(sent) if sql.startswith('UPDATE "generation" ')][-1]
    assert locking < ended


def test_too_few_that_are_left_make_a_failure_and_cost_nothing(rich, issue):
    for one in multi_source.inputs_of(issue.generation)[:2]:
        erase_raw_item.erase(one.raw_item, now=NOON)
    item = make_digest(issue)
    assert (item.status, item.error["code"]) == ("failed", "too_few_stories")
    assert "A digest needs 3 stories or more; this has 2." in item.error["message"]
    assert reports.usage(rich, NOON).used == 0


def test_item_that_is_taken_back_holds_the_digest_until_it_is_listed_again(issue):
    item = make_digest(issue)
    raw = multi_source.inputs_of(issue.generation)[1].raw_item
    withdraw(raw.pk, NOON)
    assert reread(item).held == "source_withdrawn"
    restore(raw.pk, NOON)
    assert reread(item).held == ""


def test_item_that_changed_while_it_was_made_holds_the_digest(issue):
    raw = multi_source.inputs_of(issue.generation)[0].raw_item
    RawItem.everywhere.filter(pk=raw.pk).update(content_version=2)
    assert make_digest(issue).held == "source_changed"


def test_further_variant_is_of_the_same_items(rich, issue):
    item = make_digest(issue)
    variant = regenerate.regenerate(item, workspace=rich, now=NOON)
    assert variant.raw_items == item.raw_items
    generation_run.run_generation(claimed(variant.generation))
    variant = reread(variant)
    assert (variant.status, variant.variant_index) == ("ready", 1)
    assert variant.body != item.body


def test_a_digest_of_too_few_stories_is_made_again_by_its_series_only(rich, issue):
    for one in multi_source.inputs_of(issue.generation)[:2]:
        erase_raw_item.erase(one.raw_item, now=NOON)
    item = make_digest(issue)
    assert item.error["code"] == "too_few_stories"
    with pytest.raises(Conflict) as refused:
        regenerate.retry(item, workspace=rich, now=NOON)
    assert "Have the series make it again when there are more stories." in refused.value.detail[0].message


# --- With a model ----------------------------------------------------------------------------------------------------


def answer(request):
    """Quotes of whichever document is asked about, and a digest of whatever facts are shown."""
    document = material_of(request)
    if "You read one document" in request.raw:
        body = next(body for _, body in STORIES if body[:40] in document)
        sentences = [one + "." for one in body.removesuffix(".").split(". ")]
        facts = [{"quote": one, "kind": "statement"} for one in sentences]
        return ok({"language": "en", "is_instruction_like": False, "facts": facts})
    facts = json.loads(document)
    by_story = {}
    for fact in facts:
        by_story.setdefault(fact["story"], []).append(fact)
    variant = {
        "angle": "story",
        "subject": "A week by the harbour",
        "preheader": "What the council, the bakery and the library did this week.",
        "title": "A week by the harbour",
        "stories": [
            {
                "story": name,
                "headline": some[0]["quote"][:80],
                "text": " ".join(f["quote"] for f in some),
            }
            for name, some in by_story.items()
        ],
        "claims": [{"text": fact["quote"], "fact": fact["id"]} for fact in facts],
    }
    return ok({"variants": [variant]})


def test_model_reads_each_item_once_and_writes_the_digest_in_one_call(rich, model_server, issue):
    model_server.answer = answer
    first = RawItem.everywhere.get(title=STORIES[0][0])
    run_generations(first)
    model_server.requests.clear()
    item = make_digest(issue)
    asked = ["brief" if "You read one document" in one.raw else "draft" for one in model_server.requests]
    # The first item's brief was paid for by its own run.
    assert asked == ["brief", "brief", "brief", "draft"]
    assert item.generation_id is not None
    assert ModelCall.everywhere.filter(generation=issue.generation).count() == 4


def test_killed_hand_pays_for_no_answer_twice(rich, model_server, issue, monkeypatch):
    model_server.answer = answer

    class Killed(BaseException):
        pass

    calls = iter(range(100))

    def die(name):
        if name == "generate.answered" and next(calls) == 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(generate.shared_brief, "crash_point", die)
        with pytest.raises(Killed):
            generation_run.run_generation(claimed(issue.generation))
    assert len(model_server.requests) == 3
    make_digest(issue)
    # Two of three answers were kept; the third was on its way.
    assert len(model_server.requests) == 3 + 2 + 1


def test_item_that_a_model_refuses_is_left_out(rich, model_server, issue):
    def refuse(request):
        return (
            refusal("bio")
            if STORIES[0][1][:30] in request.raw and "You read one" in request.raw
            else answer(request)
        )

    model_server.answer = refuse
    item = make_digest(issue)
    assert item.generation_id is not None
    draft = model_server.requests[-1]
    assert "You read one document" not in draft.raw
    assert STORIES[0][1][:30] not in draft.raw
