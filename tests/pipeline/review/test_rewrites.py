"""An item's words written again in place: charged once, never half written, and taken back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.ledger import credits as credit_account
from accounts.models import LedgerEntry
from config.core import task_runner
from config.core.crash_points import POINTS, listeners
from config.core.errors import Conflict, Invalid
from config.core.states import Overtaken
from pipeline import publish
from pipeline.ingest import erase_raw_item
from pipeline.models import Asset, GeneratedItem, Generation, ModelCall, Revision
from pipeline.review import decisions, regenerate, rewrite_run, rewrites
from tests.pipeline.generate.test_generate_with_model import COST, found, written
from tests.pipeline.steps import (
    NOON,
    balance,
    claimed,
    items_of,
    make_stage,
    promise,
    push_raw,
    reread,
    run_generations,
)
from tests.writers.messages_server import error, ok, refusal

pytestmark = pytest.mark.usefixtures("anthropic_sdk")

LONG = "Six hours of debate, then the city council approved the new tram line."
SHORT = "After six hours of debate the tram line was approved."
WRONG = "Exactly 999 people were hired."


@pytest.fixture
def item(workspace, model_server):
    model_server.script = [found(), written(LONG)]
    raw = push_raw(workspace).raw_item
    run_generations(raw)
    model_server.requests.clear()
    return items_of(raw)[0]


def ask(item, wish=rewrites.SHORTER, **given):
    return rewrites.request(reread(item), wish, workspace=item.workspace, by="bob", now=NOON, **given)


def work():
    return task_runner.work_all_due("generate.rewrite_item")


def rewritten(item, model_server, words=SHORT, wish=rewrites.SHORTER, **given):
    run = ask(item, wish, **given)
    model_server.script = [written(words)]
    work()
    return reread(item), reread(run)


def standing(item):
    return rewrites.standing_of(GeneratedItem.everywhere.with_newest_rewrite().get(pk=item.pk))


def said(text):
    """Without the line that the engine adds."""
    return text.partition("\n")[0]


def test_the_words_become_the_next_revision_of_the_same_item(item, workspace, model_server):
    row, run = rewritten(item, model_server)
    assert (said(row.body), row.status, row.revision, run.status) == (SHORT, "ready", 2, "done")
    assert (row.content["parts"], row.excerpt.startswith(SHORT)) == ([row.body], True)
    assert GeneratedItem.everywhere.count() == 1
    first, second = Revision.everywhere.filter(item=item).order_by("number")
    assert (said(first.body), said(second.body), second.made_by) == (LONG, SHORT, row.generator["model"])
    assert balance(workspace) == (8, 0)


def test_only_the_draft_is_asked_and_its_cost_is_added(item, model_server):
    row, run = rewritten(item, model_server)
    (request,) = model_server.requests
    facts, _task, former, _how, wish = (one["text"] for one in request.body["messages"][0]["content"])
    assert (LONG in facts, LONG in former, rewrites.HINTS["shorter"] in wish) == (False, True, True)
    assert "out of: story." in request.raw
    assert (row.generator["cost_usd"], row.generator["credits"]) == (f"{3 * COST / 1_000_000:.6f}", 2)
    assert ModelCall.everywhere.filter(generation=run).count() == 1


def test_the_checks_are_those_of_the_new_words(item, model_server):
    row, _ = rewritten(item, model_server)
    assert row.checks_revision == 2
    assert [claim["text"] for claim in row.claims] == [SHORT]
    # A writer's words aren't what somebody has added to the source.
    assert [one["code"] for one in row.checks if one["outcome"] == "warning"] == [
        one["code"] for one in item.checks if one["outcome"] == "warning"
    ]
    decisions.edit(row, {"body": f"{row.body}\n\nNobody was against it."}, by="bob", now=NOON)
    (support,) = [one for one in reread(item).checks if one["code"] == "support"]
    assert ("Nobody was against it" in support["message"], SHORT in support["message"]) == (True, False)


def test_own_hint_is_told_and_an_empty_one_is_refused(item, model_server):
    rewritten(item, model_server, wish=rewrites.OWN, hint="  for\u200b beginners ")
    assert '\\"for beginners\\"' in model_server.requests[0].raw
    with pytest.raises(Invalid):
        ask(item, rewrites.OWN, hint=" \u200b ")


def test_an_approval_is_handled_as_after_an_edit_and_comes_back_with_the_words(item, workspace, model_server):
    stage = make_stage(workspace)
    publication = promise(decisions.approve(item, by="alice", now=NOON), stage)
    row, _ = rewritten(item, model_server)
    assert (row.status, row.held, row.approved_revision) == ("scheduled", "approval_stale", 1)
    back = rewrites.undo_rewrite(row, by="bob", now=NOON, expected_version=row.version)
    assert (said(back.body), back.held, back.approved_revision, back.revision) == (LONG, "", 3, 3)
    assert reread(publication).status == "scheduled"


def test_undo_brings_words_claims_and_checks_back(item, model_server):
    row, _ = rewritten(item, model_server)
    assert standing(item) == rewrites.RewriteStanding(is_current=True, is_undoable=True)
    back = rewrites.undo_rewrite(row, by="bob", now=NOON)
    assert (back.title, back.body, back.content, back.claims) == (
        item.title,
        item.body,
        item.content,
        item.claims,
    )
    assert sorted(one["code"] for one in back.checks) == sorted(one["code"] for one in item.checks)
    assert standing(item) is None
    with pytest.raises(Conflict):
        rewrites.undo_rewrite(back, by="bob", now=NOON)


@pytest.mark.parametrize("since", ["edited", "approved", "held", "rejected"])
def test_undo_takes_back_nothing_that_was_decided_since(item, model_server, since):
    row, _ = rewritten(item, model_server)
    if since == "edited":
        decisions.edit(row, {"title": "Another"}, by="vera", now=NOON)
    elif since == "approved":
        decisions.approve(row, by="vera", now=NOON)
    elif since == "held":
        GeneratedItem.everywhere.filter(pk=row.pk).update(held="source_changed")
    else:
        decisions.reject(row, reason="", by="vera", now=NOON)
    before = reread(item)
    with pytest.raises(Conflict):
        rewrites.undo_rewrite(before, by="bob", now=NOON)
    assert (reread(item).version, reread(item).revision) == (before.version, before.revision)


def test_undo_of_another_version_is_refused(item, model_server):
    row, _ = rewritten(item, model_server)
    with pytest.raises(Overtaken):
        rewrites.undo_rewrite(row, by="bob", now=NOON, expected_version=row.version - 1)


def test_rewrite_of_words_without_ai_is_labelled_and_its_undo_is_labelled_so_again(
    workspace, model_server, settings
):
    settings.ANTHROPIC_API_KEY = ""
    raw = push_raw(workspace).raw_item
    run_generations(raw)
    item = items_of(raw)[0]
    settings.ANTHROPIC_API_KEY = "key-of-the-operator"
    row, run = rewritten(item, model_server, wish=rewrites.PLAINER)
    assert (run.error, row.generator["offline"], said(row.body)) == (None, False, SHORT)
    back = rewrites.undo_rewrite(row, by="bob", now=NOON)
    assert (back.generator["offline"], back.body, back.generator["credits"]) == (True, item.body, 2)


# --- Refused before anything is spent --------------------------------------------------------------------------------


def test_without_a_model_nothing_is_promised(item, workspace, settings):
    settings.ANTHROPIC_API_KEY = ""
    with pytest.raises(Conflict) as refused:
        ask(item)
    assert refused.value.detail[0].code == "needs_ai"
    assert "no key" in rewrites.why_not_rewritten(reread(item))
    assert (Generation.everywhere.count(), balance(workspace)) == (1, (9, 0))


def test_a_film_is_said_to_be_edited_otherwise(item):
    GeneratedItem.everywhere.filter(pk=item.pk).update(engine_output="Template Short")
    with pytest.raises(Conflict, match="film"):
        ask(item)


def test_without_credits_nothing_is_promised(item, workspace):
    credit_account.adjust(workspace, -9, "spent", "test", now=NOON)
    with pytest.raises(credit_account.QuotaExceeded):
        ask(item)
    assert Generation.everywhere.count() == 1


def test_of_two_people_one_has_it_rewritten(item, workspace):
    ask(item)
    with pytest.raises(Conflict) as refused:
        ask(item, rewrites.PLAINER)
    assert (refused.value.detail[0].code, balance(workspace)) == ("rewriting", (8, 1))
    with pytest.raises(Overtaken):
        ask(item, expected_version=item.version + 1)


def test_an_item_that_cant_be_edited_isnt_rewritten(item):
    decisions.reject(item, reason="", by="vera", now=NOON)
    with pytest.raises(Conflict, match="rewritten while"):
        ask(item)


# --- It came to nothing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ([written(WRONG), written(WRONG)], "checks_failed"),
        ([written(LONG)], "unchanged"),
        ([written(f"{LONG[:-1]} on Monday evening.")], "not_shorter"),
        ([refusal("bio"), refusal("bio")], "refused"),
        ([ok("no json"), ok("no json")], "invalid_output"),
        ([error(400, "invalid_request_error")], "model_request_declined"),
    ],
)
def test_what_comes_to_nothing_leaves_the_words_and_gives_the_credits_back(
    item, workspace, model_server, script, code
):
    run = ask(item)
    model_server.script = list(script)
    work()
    run = reread(run)
    assert (run.status, run.error["code"], model_server.script) == ("failed", code, [])
    assert (reread(item).body, reread(item).version, balance(workspace)) == (item.body, item.version, (9, 0))
    assert standing(item) == rewrites.RewriteStanding(message=run.error["message"])
    decisions.edit(item, {"title": "Another"}, by="vera", now=NOON)
    assert standing(item) is None


def test_a_short_outage_is_waited_out_and_a_long_one_is_told(item, workspace, model_server):
    run = ask(item)
    model_server.script = [error(529, "overloaded_error") for _ in range(rewrite_run.MODEL_TRIES)]
    for tries in range(rewrite_run.MODEL_TRIES):
        assert reread(run).status == ("running" if tries else "queued")
        Generation.everywhere.filter(pk=run.pk).update(wake_at=run.due_at - timedelta(days=365))
        work()
    assert (reread(run).status, balance(workspace)) == ("failed", (9, 0))


def test_a_cap_is_told_at_once(item, workspace, settings, model_server):
    type(workspace).everywhere.filter(pk=workspace.pk).update(model_cap_micro_usd=1)
    run = ask(item)
    work()
    assert (reread(run).error["code"], model_server.requests) == ("model_cap_of_workspace", [])
    assert balance(workspace) == (9, 0)


@pytest.mark.parametrize("moment", ["before", "while the model writes", "after it answered"])
def test_an_edit_by_hand_wins(item, workspace, model_server, moment):
    run = ask(item)
    edit = lambda: decisions.edit(reread(item), {"title": "By hand"}, by="vera", now=NOON)  # noqa: E731
    model_server.script = [written(SHORT)]
    if moment == "before":
        edit()
        work()
        assert model_server.requests == []
    else:
        point = "rewrite.answered" if moment.startswith("while") else "rewrite.drafted"
        listeners.append(lambda name: edit() if name == point else None)
        try:
            work()
        finally:
            listeners.pop()
    row = reread(item)
    assert (row.title, row.body, row.revision) == ("By hand", item.body, 2)
    assert (reread(run).error["code"], balance(workspace)) == ("edited_meanwhile", (9, 0))
    assert "the edit stands" in standing(item).message


def test_what_was_rejected_or_deleted_meanwhile_stays_so(item, workspace, model_server):
    ask(item)
    decisions.reject(reread(item), reason="", by="vera", now=NOON)
    work()
    assert (reread(item).status, balance(workspace), model_server.requests) == ("rejected", (9, 0), [])
    assert "Rejected" in standing(item).message
    decisions.restore(reread(item), now=NOON)
    run = ask(item, rewrites.OWN, hint="Secret wish")
    decisions.erase(reread(item), now=NOON)
    work()
    assert (reread(run).status, reread(run).answers, balance(workspace)) == ("failed", {}, (9, 0))


def test_it_is_cancelled_and_a_late_answer_writes_nothing(item, workspace, model_server):
    run = ask(item)
    in_hand = claimed(run)
    rewrites.cancel(item, now=NOON)
    assert (reread(run).status, balance(workspace), standing(item)) == ("failed", (9, 0), None)
    rewrite_run.run_rewrite(in_hand)
    assert (reread(item).body, balance(workspace), work()) == (item.body, (9, 0), 0)
    with pytest.raises(Conflict):
        rewrites.cancel(item, now=NOON)


def test_a_task_that_breaks_again_and_again_ends_it(item, workspace):
    run = ask(item)
    rewrite_run.give_up(claimed(run))
    assert (reread(run).error["code"], balance(workspace)) == ("gave_up", (9, 0))


# --- Killed ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for kill -9: nothing of ours may catch it."""


PLACES = sorted(point for point in POINTS if point.startswith("rewrite."))


@pytest.mark.parametrize(
    ("words", "point"),
    # Words that fail end in the transaction that says so.
    [(words, point) for words in (SHORT, WRONG) for point in PLACES if (words, point) != (WRONG, PLACES[2])],
)
def test_killed_anywhere_it_is_charged_once_and_never_half_written(
    item, workspace, model_server, point, words
):
    run = ask(item)
    model_server.answer = lambda _request: written(words)
    died = []

    def kill(name):
        if name == point and not died:
            died.append(name)
            raise Killed

    listeners.append(kill)
    try:
        with pytest.raises(Killed):
            rewrite_run.run_rewrite(claimed(run))
    finally:
        listeners.pop()
    row = reread(item)
    assert (said(row.body), row.revision) in {(LONG, 1), (SHORT, 2)}
    assert Revision.everywhere.filter(item=item).count() == row.revision
    if reread(run).status in {"queued", "running"}:
        rewrite_run.run_rewrite(claimed(run))
    row, run = reread(item), reread(run)
    is_good = words == SHORT
    assert (said(row.body), row.revision, run.status) == (
        (SHORT, 2, "done") if is_good else (LONG, 1, "failed")
    )
    assert balance(workspace) == ((8, 0) if is_good else (9, 0))
    kinds = LedgerEntry.everywhere.filter(subject=run.pk).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["reserve", "settle" if is_good else "release"]
    # What was stored isn't asked for again.
    asked = 1 + (point == "rewrite.answered")
    assert len(model_server.requests) == (asked if is_good else 2 * asked)


# --- What else stands in pictures, and what is erased ----------------------------------------------------------------


def test_words_in_a_picture_are_drawn_again_as_after_an_edit(workspace, model_server):
    model_server.script = [found(), written("Six hours of debate, then a tram line.")]
    raw = push_raw(workspace, engines=["Persona Tweet"]).raw_item
    run_generations(raw)
    item = items_of(raw)[0]
    files = set(Asset.everywhere.filter(item=item, revoked_at=None).values_list("sha256", flat=True))
    row, run = rewritten(item, model_server, "After six hours: a tram line.")
    assert (row.status, row.revision, run.error) == ("ready", 2, None)
    drawn = set(Asset.everywhere.filter(item=item, revoked_at=None).values_list("sha256", flat=True))
    assert (bool(drawn), drawn & files) == (True, set())
    assert standing(item).is_undoable
    rewrites.undo_rewrite(row, by="bob", now=NOON)
    task_runner.work_all_due("compute.run_item")
    assert reread(item).body == item.body


def test_words_in_a_picture_that_is_promised_stay(workspace, model_server):
    model_server.script = [found(), written("Six hours of debate, then a tram line.")]
    raw = push_raw(workspace, engines=["Persona Tweet"]).raw_item
    run_generations(raw)
    item = items_of(raw)[0]
    publish.request(decisions.approve(item, by="a", now=NOON), publish.PublishWish(), by="a", now=NOON)
    GeneratedItem.everywhere.filter(pk=item.pk).update(status="scheduled")
    with pytest.raises(Conflict, match="Unschedule it first"):
        ask(item)


def test_what_was_asked_goes_with_what_is_erased(item, model_server):
    row, run = rewritten(item, model_server)
    assert reread(run).answers != {}
    decisions.erase(row, now=NOON)
    assert reread(run).answers == {}


def test_the_quotes_that_a_rewrite_keeps_go_with_the_source(item, workspace, model_server):
    _, run = rewritten(item, model_server)
    again = ask(item)
    erase_raw_item.erase(item.raw_item, now=NOON)
    work()
    assert (reread(run).answers, reread(again).error["code"]) == ({}, "source_deleted")
    with pytest.raises(Conflict):
        regenerate.lock_source(reread(item))


def test_rewrites_go_with_the_items_of_a_workspace_that_ends(item, workspace, model_server):
    _, run = rewritten(item, model_server)
    GeneratedItem.everywhere.filter(workspace=workspace).delete()
    assert not Generation.everywhere.filter(pk=run.pk).exists()
    # What the calls have cost stays.
    assert ModelCall.everywhere.filter(workspace=workspace).count() == 3
