"""push: dedup, versions, the plan, the reservation; all of it or nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.ledger import credits
from accounts.models import CreditBalance, LedgerEntry, Notice
from config.core.errors import Conflict, Invalid
from config.core.ids import encode
from pipeline import publish
from pipeline.generate import run as generation_run
from pipeline.ingest import erase_raw_item, plan_and_estimate, raw_content, replan, store_raw_item
from pipeline.models import Event, GeneratedItem, Generation, RawBody, RawItem
from tests.pipeline import steps
from tests.pipeline.steps import NOON, OTHER_TEXT, TEXT, claimed, facts, make_items, push_raw, reread, told

APRIL = datetime(2027, 4, 1, tzinfo=UTC)


def balance(workspace):
    row = CreditBalance.everywhere.get(workspace=workspace)
    return {"available": row.available, "reserved": row.reserved, "used": row.used}


def spend_all_but(workspace, left):
    available = CreditBalance.everywhere.get(workspace=workspace).available
    credits.adjust(workspace, left - available, "spent", "operator")


def rows():
    return {
        model.__name__: model.everywhere.count()
        for model in (RawItem, RawBody, Generation, GeneratedItem, Event, LedgerEntry)
    }


# --- New -------------------------------------------------------------------------------------------------------------


def test_push_stores_everything_that_will_be_made(workspace, defaults, woken):
    pushed = push_raw(workspace, external_id="a-1", variants=2)
    raw = reread(pushed.raw_item)
    assert pushed.outcome == "new"
    assert {
        "dedup_key": raw.dedup_key,
        "status": raw.status,
        "version": raw.version,
        "content_version": raw.content_version,
        "engines": raw.engines,
        "variants": raw.variants,
        "persona": raw.persona_id,
        "reason": raw.reason,
    } == {
        "dedup_key": f"x:{defaults.push_source_id.hex}:a-1",
        "status": "queued",
        "version": 1,
        "content_version": 1,
        "engines": ["Short Post"],
        "variants": 2,
        "persona": defaults.persona_id,
        "reason": None,
    }
    body = RawBody.everywhere.get(raw_item=raw)
    assert (body.number, body.title, body.body, body.body_format) == (1, raw.title, TEXT, "markdown")
    generation = Generation.everywhere.get(raw_item=raw)
    assert (generation.status, generation.stage, generation.wake_at, generation.credits_reserved) == (
        "queued",
        "brief",
        NOON,
        2,
    )
    made = GeneratedItem.everywhere.filter(generation=generation).order_by("variant_index")
    assert list(made.values_list("status", "variant_index", "variant_group", "bucket", "outlets")) == [
        ("queued", 0, generation.pk, "text", defaults.outlets),
        ("queued", 1, generation.pk, "text", defaults.outlets),
    ]
    assert facts(workspace) == ["raw.ingested"]
    assert told(workspace, "raw.ingested")[0]["data"]["raw_item"]["id"] == encode("raw", raw.pk)
    assert balance(workspace) == {"available": 8, "reserved": 2, "used": 0}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"external_id": "a", "url": "https://news.example/a"}, "x:{source}:a"),
        ({"url": "https://NEWS.example/a/?utm_source=x#top"}, "u:"),
        ({"url": ""}, "h:"),
    ],
)
def test_push_takes_the_first_identity_that_is_known(workspace, defaults, given, expected):
    key = push_raw(workspace, **given).raw_item.dedup_key
    assert key.startswith(expected.format(source=defaults.push_source_id.hex))


def test_push_meets_the_same_address_written_otherwise(workspace):
    first = push_raw(workspace, url="https://news.example/a?b=1&utm_campaign=spring")
    second = push_raw(workspace, url="https://NEWS.example/a?b=1#section")
    assert (second.outcome, second.raw_item.pk) == ("duplicate", first.raw_item.pk)


def test_push_keeps_a_very_long_address_by_its_hash(workspace):
    address = "https://news.example/" + "a" * 2000
    first, second = push_raw(workspace, url=address), push_raw(workspace, url=address)
    assert first.raw_item.dedup_key.startswith("u:sha256:")
    assert (second.outcome, second.raw_item.pk) == ("duplicate", first.raw_item.pk)


def test_push_takes_the_same_external_id_of_two_sources_as_two_things(workspace, defaults):
    live = push_raw(workspace, external_id="1")
    test = push_raw(workspace, external_id="1", test=True)
    assert [live.outcome, test.outcome] == ["new", "new"]


def test_push_sees_markup_in_the_body(workspace):
    raw = push_raw(workspace, body=f"<p>{TEXT}</p>").raw_item
    assert RawBody.everywhere.get(raw_item=raw).body_format == "html"


def test_push_refuses_an_engine_that_is_not_there(workspace):
    with pytest.raises(Invalid) as refused:
        push_raw(workspace, engines=["Long Post"])
    assert [(one.field, one.code) for one in refused.value.detail] == [("engines", "unknown_engine")]
    assert rows()["RawItem"] == 0


def test_push_with_nothing_to_make_is_skipped_and_says_why(workspace):
    raw = push_raw(workspace, title="", body="").raw_item
    assert (raw.status, raw.reason["code"]) == ("skipped", "nothing_to_make")
    assert facts(workspace) == ["raw.skipped", "engine.skipped"]
    assert rows() == {
        "RawItem": 1,
        "RawBody": 1,
        "Generation": 0,
        "GeneratedItem": 0,
        "Event": 2,
        "LedgerEntry": 1,
    }


def test_push_of_a_test_source_costs_nothing_and_stays_apart(workspace, defaults):
    live = push_raw(workspace).raw_item
    test = push_raw(workspace, test=True)
    assert (test.outcome, test.raw_item.test) == ("new", True)
    assert test.raw_item.pk != live.pk
    assert balance(workspace) == {"available": 9, "reserved": 1, "used": 0}
    assert list(GeneratedItem.everywhere.filter(raw_item=test.raw_item).values_list("test", "outlets")) == [
        (True, defaults.test_outlets)
    ]
    assert list(Event.everywhere.order_by("id").values_list("type", "test")) == [
        ("raw.ingested", False),
        ("raw.ingested", True),
    ]


def test_push_takes_ten_statements(workspace, defaults):
    push_raw(workspace, external_id="warm", url="https://news.example/warm")
    with CaptureQueriesContext(
        connection,
    ) as captured:
        store_raw_item.push(
            workspace, defaults.push_source, steps.content(external_id="counted"), defaults=defaults
        )
    statements = [
        query["sql"]
        for query in captured
        if not query["sql"].startswith(("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT"))
    ]
    assert len(statements) == 10, statements


# --- Met again -------------------------------------------------------------------------------------------------------


def test_push_of_the_same_is_a_duplicate_and_changes_nothing(workspace):
    first = push_raw(workspace)
    before, was = rows(), reread(first.raw_item)
    second = push_raw(workspace, metadata={"other": True})
    assert (second.outcome, second.raw_item.pk) == ("duplicate", first.raw_item.pk)
    assert rows() == before
    assert (reread(was).version, reread(was).updated_at) == (was.version, was.updated_at)


def test_push_of_changed_content_is_the_next_version(workspace, clock):
    first = push_raw(workspace, external_id="1").raw_item
    clock.shift(60)
    second = push_raw(workspace, external_id="1", title="Tram line stopped", body=OTHER_TEXT, url="")
    raw = reread(first)
    assert (second.outcome, second.raw_item.pk) == ("revised", first.pk)
    assert (raw.version, raw.content_version, raw.title, raw.url, raw.status, raw.updated_at) == (
        2,
        2,
        "Tram line stopped",
        first.url,
        "queued",
        NOON + timedelta(seconds=60),
    )
    assert list(RawBody.everywhere.filter(raw_item=raw).order_by("number").values_list("number", "body")) == [
        (1, TEXT),
        (2, OTHER_TEXT),
    ]
    assert facts(workspace) == ["raw.ingested"]
    assert rows()["Generation"] == 1


def test_push_without_a_title_takes_that_of_the_body(workspace):
    first = push_raw(workspace, title="", body=f"# The ferry\n\n{TEXT}", external_id="1").raw_item
    again = push_raw(workspace, title="", body=f"# The ferry\n\n{TEXT}", external_id="1")
    given = push_raw(workspace, title="Mine", body=f"# The ferry\n\n{TEXT}", external_id="2").raw_item
    assert (first.title, again.outcome, given.title) == ("The ferry", "duplicate", "Mine")


def test_push_of_a_revision_while_queued_makes_the_newest(workspace):
    raw = push_raw(workspace, external_id="1").raw_item
    push_raw(workspace, external_id="1", body=OTHER_TEXT)
    steps.run_generations(raw)
    item = steps.items_of(raw)[0]
    assert (item.raw_version, item.held, item.status) == (2, "", "ready")
    assert item.body.partition("\n")[0] in OTHER_TEXT


def test_revision_holds_what_is_not_published_everywhere(workspace, feed, stage):
    """Every status in which something may still be sent; what is out already is flagged."""
    made = {}
    for number, status in enumerate(("ready", "rejected", "scheduled", "published", "partly", "in_flight")):
        made[status] = push_raw(workspace, external_id=f"{number}", url="").raw_item
        steps.run_generations(made[status])
    items = {status: steps.items_of(raw)[0] for status, raw in made.items()}
    from pipeline.review import decisions

    decisions.reject(items["rejected"], reason="", by="alice", now=NOON)
    publish.request(items["scheduled"], publish.PublishWish(publish_at=NOON + timedelta(days=1)), by="alice")
    steps.send(steps.promise(items["published"], feed))
    _, (one, two) = publish.request(
        items["partly"], steps.to(feed, steps.make_stage(workspace, "reject")), by="a"
    )
    steps.send(one)
    steps.send(two)
    steps.send(steps.promise(items["in_flight"], steps.make_stage(workspace, "error")))
    before = {status: reread(item).version for status, item in items.items()}
    for number in range(6):
        push_raw(workspace, external_id=f"{number}", url="", body=OTHER_TEXT)
    after = {
        status: (row.status, row.held, row.flagged, row.version - before[status])
        for status, row in ((status, reread(item)) for status, item in items.items())
    }
    assert after == {
        "ready": ("ready", "source_changed", "", 1),
        "rejected": ("rejected", "source_changed", "", 1),
        "scheduled": ("scheduled", "source_changed", "", 1),
        "published": ("published", "", "source_changed", 1),
        "partly": ("partially_published", "source_changed", "source_changed", 1),
        "in_flight": ("publishing", "source_changed", "", 1),
    }


def test_revision_is_a_stronger_hold_than_a_stale_approval(workspace, ready):
    from pipeline.review import decisions

    decisions.approve(ready, by="alice", now=NOON)
    decisions.edit(ready, {"body": "Mine."}, by="alice", now=NOON)
    assert reread(ready).held == "approval_stale"
    push_raw(workspace, body=OTHER_TEXT)
    assert reread(ready).held == "source_changed"
    with pytest.raises(Conflict) as refused:
        publish.request(reread(ready), publish.PublishWish(), by="alice")
    assert [one.code for one in refused.value.detail] == ["held"]
    erase_raw_item.erase(RawItem.everywhere.get(), now=NOON)
    assert reread(ready).held == "source_withdrawn"


def test_revision_of_what_had_nothing_to_make_is_planned_again(workspace):
    raw = push_raw(workspace, external_id="1", title="", body="").raw_item
    again = push_raw(workspace, external_id="1", title="", body=TEXT)
    raw = reread(raw)
    assert (again.outcome, raw.status, raw.reason, raw.version) == ("revised", "queued", None, 3)
    assert (again.raw_item.status, again.raw_item.version) == ("queued", 3)
    assert facts(workspace) == ["raw.skipped", "engine.skipped", "raw.ingested"]
    assert balance(workspace) == {"available": 9, "reserved": 1, "used": 0}


def test_revision_of_what_had_nothing_to_make_waits_when_credits_are_short(workspace):
    spend_all_but(workspace, 0)
    raw = push_raw(workspace, external_id="1", title="", body="").raw_item
    again = push_raw(workspace, external_id="1", title="", body=TEXT)
    raw = reread(raw)
    assert (again.outcome, raw.status, raw.wake_at) == ("revised", "waiting_quota", APRIL)
    assert facts(workspace) == ["raw.skipped", "engine.skipped", "raw.ingested"]
    assert rows()["Generation"] == 0


def test_revision_of_what_was_skipped_for_another_reason_stays_skipped(workspace):
    skip = raw_content.Skip("over_burst", "Too many.")
    push_raw(workspace, external_id="1", skip=skip)
    again = push_raw(workspace, external_id="1", body=OTHER_TEXT, when_short="wait")
    assert (again.outcome, again.raw_item.status) == ("revised", "skipped")
    assert rows()["Generation"] == 0


# --- Deleted ---------------------------------------------------------------------------------------------------------


def test_erase_leaves_a_tombstone_that_is_never_raised(workspace):
    raw = push_raw(workspace, external_id="1", author="Ada", metadata={"a": 1}).raw_item
    steps.run_generations(raw)
    erase_raw_item.erase(raw, now=NOON)
    gone = reread(raw)
    assert (gone.title, gone.url, gone.author, gone.media, gone.metadata, gone.deleted_at) == (
        "",
        "",
        "",
        [],
        {},
        NOON,
    )
    assert rows()["RawBody"] == 0
    assert Generation.everywhere.get().answers == {}
    assert GeneratedItem.everywhere.get().held == "source_withdrawn"
    before = rows()
    again = push_raw(workspace, external_id="1", body=OTHER_TEXT)
    assert (again.outcome, again.raw_item.pk, rows()) == ("duplicate", raw.pk, before)
    assert reread(raw).title == ""
    erase_raw_item.erase(raw, now=NOON + timedelta(days=1))
    assert reread(raw).deleted_at == NOON
    with pytest.raises(Conflict) as refused:
        replan.retry(raw, workspace=workspace, now=NOON)
    assert [one.code for one in refused.value.detail] == ["deleted"]


def test_erase_before_it_was_made_ends_the_run_and_gives_the_credits_back(workspace):
    raw = push_raw(workspace).raw_item
    erase_raw_item.erase(raw, now=NOON)
    steps.run_generations(raw)
    assert Generation.everywhere.get().error["code"] == "source_deleted"
    assert GeneratedItem.everywhere.get().status == "failed"
    assert balance(workspace) == {"available": 10, "reserved": 0, "used": 0}


def test_erase_while_it_waits_for_credits_ends_the_wait(workspace, clock):
    spend_all_but(workspace, 0)
    raw = push_raw(workspace, when_short="wait").raw_item
    erase_raw_item.erase(raw, now=NOON)
    assert (reread(raw).wake_at, reread(raw).status) == (None, "waiting_quota")
    clock.move_to(APRIL)
    replan.resume_waiting(claimed(raw))
    assert (rows()["Generation"], reread(raw).wake_at) == (0, None)


# --- Credits ---------------------------------------------------------------------------------------------------------


def test_push_with_too_few_credits_leaves_nothing_behind(workspace):
    spend_all_but(workspace, 2)
    before = rows()
    with pytest.raises(credits.QuotaExceeded):
        push_raw(workspace, variants=3)
    assert rows() == before
    assert balance(workspace) == {"available": 2, "reserved": 0, "used": 0}
    assert push_raw(workspace, variants=2).outcome == "new"
    assert balance(workspace) == {"available": 0, "reserved": 2, "used": 0}


def test_polled_entry_waits_for_the_next_month_and_goes_on(workspace, clock):
    spend_all_but(workspace, 0)
    raw = push_raw(workspace, when_short="wait").raw_item
    waiting = reread(raw)
    assert (waiting.status, waiting.reason["code"], waiting.due_at, waiting.wake_at, waiting.version) == (
        "waiting_quota",
        "quota_exceeded",
        APRIL,
        APRIL,
        1,
    )
    assert facts(workspace) == ["raw.ingested"]
    assert told(workspace, "raw.ingested")[0]["data"]["raw_item"]["status"] == "waiting_quota"
    assert rows()["Generation"] == 0
    clock.move_to(APRIL)
    replan.resume_waiting(claimed(raw))
    going = reread(raw)
    assert (going.status, going.reason, going.wake_at, going.attempts, going.version) == (
        "queued",
        None,
        None,
        0,
        2,
    )
    assert facts(workspace) == ["raw.ingested"]
    assert balance(workspace) == {"available": 9, "reserved": 1, "used": 0}


def test_people_hear_once_that_credits_are_used_up_when_an_entry_waits(workspace, clock):
    spend_all_but(workspace, 0)
    for number in range(2):
        push_raw(workspace, url=f"https://news.example/{number}", when_short="wait")
    rows = Notice.everywhere.filter(kind="quota").values_list("title", "path")
    assert list(rows)[-1:] == [("Credits of Alice's newsroom are used up", "settings/usage")]
    assert [title for title, _ in rows].count("Credits of Alice's newsroom are used up") == 1


def test_waiting_entry_waits_another_month_where_credits_are_short_again(workspace, clock):
    workspace.credits_per_month = 0
    workspace.save(update_fields=["credits_per_month"])
    spend_all_but(workspace, 0)
    raw = push_raw(workspace, when_short="wait").raw_item
    clock.move_to(APRIL)
    replan.resume_waiting(claimed(raw))
    assert steps.state(raw, "status", "wake_at", "due_at", "attempts", "version") == {
        "status": "waiting_quota",
        "wake_at": datetime(2027, 5, 1, tzinfo=UTC),
        "due_at": datetime(2027, 5, 1, tzinfo=UTC),
        "attempts": 0,
        "version": 1,
    }


def test_waiting_entry_of_which_nothing_can_be_made_any_more_is_skipped(workspace, clock):
    spend_all_but(workspace, 0)
    raw = push_raw(workspace, external_id="1", when_short="wait").raw_item
    push_raw(workspace, external_id="1", title="", body="")
    clock.move_to(APRIL)
    replan.resume_waiting(claimed(raw))
    after = reread(raw)
    assert (after.status, after.reason["code"], after.wake_at) == ("skipped", "nothing_to_make", None)
    assert facts(workspace) == ["raw.ingested", "raw.skipped", "engine.skipped"]


def test_resume_under_a_lost_lease_writes_nothing(workspace, clock):
    spend_all_but(workspace, 0)
    raw = push_raw(workspace, when_short="wait").raw_item
    clock.move_to(APRIL)
    late = claimed(raw)
    claimed(raw)
    replan.resume_waiting(late)
    assert (reread(raw).status, rows()["Generation"]) == ("waiting_quota", 0)


def test_wait_that_breaks_again_and_again_ends_where_a_person_sees_it(workspace, clock):
    spend_all_but(workspace, 0)
    raw = push_raw(workspace, when_short="wait").raw_item
    replan.give_up_waiting(claimed(raw))
    assert (reread(raw).status, reread(raw).reason["code"], reread(raw).wake_at) == (
        "skipped",
        "gave_up",
        None,
    )
    clock.move_to(APRIL)
    replan.retry(raw, workspace=workspace, now=APRIL)
    assert facts(workspace) == ["raw.ingested", "raw.skipped"]


def test_unlimited_workspace_never_waits(workspace):
    spend_all_but(workspace, 0)
    workspace.is_unlimited = True
    workspace.save(update_fields=["is_unlimited"])
    assert push_raw(workspace).raw_item.status == "queued"


# --- Retry -----------------------------------------------------------------------------------------------------------


def test_retry_makes_a_failed_one_again(workspace, monkeypatch):
    raw = push_raw(workspace).raw_item
    generation_run.give_up(claimed(Generation.everywhere.get()))
    assert (reread(raw).status, balance(workspace)) == ("failed", {"available": 10, "reserved": 0, "used": 0})
    replan.retry(raw, workspace=workspace, now=NOON)
    assert (reread(raw).status, reread(raw).reason) == ("queued", None)
    steps.run_generations(raw)
    assert [item.status for item in GeneratedItem.everywhere.order_by("id")] == ["failed", "ready"]
    assert reread(raw).status == "processed"
    assert facts(workspace) == ["raw.ingested", "generated.failed", "raw.failed", "generated.ready"]
    assert balance(workspace) == {"available": 9, "reserved": 0, "used": 1}


def test_retry_makes_what_was_skipped_over_burst_and_tells_of_it_then(workspace):
    raw = push_raw(workspace, skip=raw_content.Skip("over_burst", "Too many.")).raw_item
    replan.retry(raw, workspace=workspace, now=NOON)
    assert (reread(raw).status, facts(workspace)) == ("queued", ["raw.skipped", "raw.ingested"])


def test_retry_of_a_waiting_one_needs_the_credits_now(workspace, clock):
    spend_all_but(workspace, 0)
    raw = push_raw(workspace, when_short="wait").raw_item
    with pytest.raises(credits.QuotaExceeded):
        replan.retry(raw, workspace=workspace, now=NOON)
    assert steps.state(raw, "status", "wake_at", "version") == {
        "status": "waiting_quota",
        "wake_at": APRIL,
        "version": 1,
    }
    late = claimed(raw)
    credits.adjust(workspace, 1, "a gift", "operator")
    replan.retry(raw, workspace=workspace, now=NOON)
    assert (reread(raw).status, reread(raw).wake_at) == ("queued", None)
    replan.resume_waiting(late)
    assert rows()["Generation"] == 1


def test_retry_refuses_what_has_nothing_to_retry(workspace):
    raw = push_raw(workspace).raw_item
    codes = []
    for before in ("queued", "processed"):
        with pytest.raises(Conflict) as refused:
            replan.retry(raw, workspace=workspace, now=NOON)
        codes.append((before, [one.code for one in refused.value.detail]))
        steps.run_generations(raw)
    assert codes == [("queued", ["move_not_allowed"]), ("processed", ["nothing_to_retry"])]
    bare = push_raw(workspace, external_id="bare", title="", body="").raw_item
    with pytest.raises(Conflict) as refused:
        replan.retry(bare, workspace=workspace, now=NOON)
    assert [one.code for one in refused.value.detail] == ["nothing_to_make"]
    assert reread(bare).status == "skipped"


def test_estimate_stores_nothing(workspace, defaults):
    plan = plan_and_estimate.estimate(
        workspace, defaults.push_source, steps.content(variants=3), defaults=defaults, now=NOON
    )
    assert ([engine.name for engine in plan.engines], plan.price, rows()["RawItem"]) == (["Short Post"], 3, 0)


# --- At once ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_two_pushes_of_the_same_at_once_are_one(workspace, together):
    results = together(*[lambda: push_raw(workspace, external_id="1")] * 6)
    assert sorted(one.outcome for one in results) == ["duplicate"] * 5 + ["new"]
    assert rows() == {
        "RawItem": 1,
        "RawBody": 1,
        "Generation": 1,
        "GeneratedItem": 1,
        "Event": 1,
        "LedgerEntry": 2,
    }


@pytest.mark.django_db(transaction=True)
def test_two_revisions_at_once_are_two_versions(workspace, together):
    push_raw(workspace, external_id="1")
    results = together(
        lambda: push_raw(workspace, external_id="1", body=OTHER_TEXT),
        lambda: push_raw(workspace, external_id="1", body=TEXT + " And more."),
    )
    assert [one.outcome for one in results] == ["revised", "revised"]
    raw = RawItem.everywhere.get()
    assert (raw.version, raw.content_version, rows()["RawBody"]) == (3, 3, 3)


@pytest.mark.django_db(transaction=True)
def test_pushes_at_once_never_spend_more_than_there_is(workspace, together):
    spend_all_but(workspace, 3)
    results = together(
        *[lambda number=number: push_raw(workspace, external_id=f"{number}", url="") for number in range(8)]
    )
    refused = [one for one in results if isinstance(one, credits.QuotaExceeded)]
    assert (len(refused), rows()["RawItem"], rows()["Event"]) == (5, 3, 3)
    assert balance(workspace) == {"available": 0, "reserved": 3, "used": 0}


def test_make_items_gives_different_variants(workspace):
    assert len({item.body for item in make_items(workspace, variants=3)}) == 3
