"""The brief of a raw item: paid for once, whichever of its runs asks, whatever is killed meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import Sum

from pipeline.generate import run as generation_run
from pipeline.generate import shared_brief
from pipeline.generate.model import client
from pipeline.ingest import erase_raw_item
from pipeline.models import GeneratedItem, Generation, ModelCall, RawItem, SharedBrief
from pipeline.review import regenerate
from tests.pipeline.generate.test_generate_with_model import COST, QUOTES, found, written
from tests.pipeline.steps import (
    NOON,
    OTHER_TEXT,
    claimed,
    items_of,
    pass_points_of_generate,
    push_raw,
    reread,
    run_generations,
)
from tests.writers.messages_server import error, refusal

pytestmark = pytest.mark.usefixtures("anthropic_sdk", "own_media")

BOTH = ["Short Post", "Persona Tweet"]


@pytest.fixture
def raw(workspace):
    return push_raw(workspace, engines=BOTH).raw_item


def runs(raw):
    return list(Generation.everywhere.select_related("workspace").filter(raw_item=raw).order_by("id"))


def work(run):
    generation_run.run_generation(claimed(run))
    return reread(run)


def asked(model_server):
    """`brief` or `draft` for each request, in order."""
    return ["brief" if "You read one document" in one.raw else "draft" for one in model_server.requests]


def die_at(point):
    def die(name):
        if name == point:
            raise SystemExit

    return die


def killed_at(point, run, monkeypatch):
    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die_at(point))
        with pytest.raises(SystemExit):
            generation_run.run_generation(claimed(run))


def cost_of_items(raw):
    return sum(round(float(item.generator["cost_usd"]) * 1_000_000) for item in items_of(raw))


def test_two_engines_pay_for_one_brief(raw, model_server):
    model_server.script = [found(), written(), written()]
    run_generations(raw)
    assert asked(model_server) == ["brief", "draft", "draft"]
    assert [item.status for item in items_of(raw)] == ["ready", "ready"]
    # Each call's cost stands with one item, so that the items together cost what was paid.
    assert (cost_of_items(raw), ModelCall.everywhere.aggregate(all=Sum("cost_micro_usd"))["all"]) == (
        3 * COST,
        3 * COST,
    )
    kept = SharedBrief.everywhere.get()
    assert [fact["quote"] for fact in kept.content["facts"]] == list(QUOTES)
    assert (kept.asked_by, kept.asked_until, kept.refusal) == (None, None, None)


def test_run_that_comes_while_another_asks_waits_without_a_call_and_is_woken(
    raw, model_server, monkeypatch, woken
):
    model_server.script = [found(), written(), written()]
    first, second = runs(raw)
    send = client.AccountClient._send
    seen = []

    def meanwhile(self, ask, started):
        if not seen:
            waiting = work(second)
            seen.append(
                (waiting.wake_at, waiting.error["code"], waiting.attempts, len(model_server.requests))
            )
            woken.clear()
        return send(self, ask, started)

    monkeypatch.setattr(client.AccountClient, "_send", meanwhile)
    with monkeypatch.context() as patch:
        # Before its draft, so that what is seen is the brief's doing.
        pass_points_of_generate(patch, die_at("generate.briefed"))
        with pytest.raises(SystemExit):
            generation_run.run_generation(claimed(first))
    assert seen == [(NOON + shared_brief.AWAIT, "brief_awaited", 0, 0)]
    assert reread(second).wake_at == NOON
    assert work(second).status == "done"
    assert asked(model_server) == ["brief", "draft"]
    assert work(first).status == "done"
    assert asked(model_server) == ["brief", "draft", "draft"]


@pytest.mark.django_db(transaction=True)
def test_two_hands_at_the_same_moment_pay_once(workspace, model_server, together, monkeypatch):
    raw = push_raw(workspace, engines=BOTH).raw_item
    model_server.script = [found(), written(), written()]
    send = client.AccountClient._send
    in_flight = []

    def slowly(self, ask, started):
        in_flight.append(ask.step)
        return send(self, ask, started)

    monkeypatch.setattr(client.AccountClient, "_send", slowly)
    hands = [claimed(run) for run in runs(raw)]
    assert together(*[lambda hand=hand: generation_run.run_generation(hand) for hand in hands]) == [
        None,
        None,
    ]
    for run in runs(raw):
        if run.status != "done":
            work(run)
    assert sorted(in_flight) == ["brief", "draft", "draft"]
    assert [run.status for run in runs(raw)] == ["done", "done"]


def test_hand_killed_before_its_answer_is_stored_holds_the_others_no_longer_than_its_lease(
    raw, model_server, monkeypatch
):
    model_server.script = [found(), found(), written(), written()]
    first, second = runs(raw)
    killed_at("generate.answered", first, monkeypatch)
    assert work(second).error["code"] == "brief_awaited"
    assert asked(model_server) == ["brief"]
    # Its lease runs out.
    SharedBrief.everywhere.update(asked_until=NOON.replace(year=2020))
    assert work(second).status == "done"
    assert work(first).status == "done"
    assert asked(model_server) == ["brief", "brief", "draft", "draft"]


def test_run_of_a_killed_hand_goes_on_at_once_when_it_is_claimed_again(raw, model_server, monkeypatch):
    model_server.script = [found(), written()]
    first, _ = runs(raw)
    killed_at("generate.asking", first, monkeypatch)
    assert asked(model_server) == []
    assert work(first).status == "done"


@pytest.mark.parametrize("point", ["generate.briefed", "generate.drafted", "generate.written"])
def test_hand_killed_after_its_answer_is_stored_leaves_it_to_the_others(
    raw, model_server, monkeypatch, point
):
    model_server.script = [found(), written(), written()]
    first, second = runs(raw)
    killed_at(point, first, monkeypatch)
    assert work(second).status == "done"
    assert work(first).status == "done"
    assert asked(model_server) == ["brief", "draft", "draft"]


def test_answer_of_a_hand_that_lost_its_run_is_kept_all_the_same(raw, model_server, monkeypatch):
    model_server.script = [found(), written(), written()]
    first, second = runs(raw)
    send = client.AccountClient._send

    def overtaken(self, ask, started):
        reply = send(self, ask, started)
        Generation.everywhere.filter(pk=first.pk).update(lease_token=99)
        return reply

    with monkeypatch.context() as patch:
        patch.setattr(client.AccountClient, "_send", overtaken)
        generation_run.run_generation(claimed(first))
    assert (reread(first).stage, reread(first).answers) == ("brief", {})
    assert work(second).status == "done"
    assert work(first).status == "done"
    assert asked(model_server) == ["brief", "draft", "draft"]


def test_refusal_is_heard_by_all_runs_that_stood_and_paid_for_once(raw, workspace, model_server, clock):
    model_server.script = [refusal("bio"), refusal("bio")]
    first, second = runs(raw)
    work(first)
    assert work(second).status == "failed"
    assert len(model_server.requests) == 2
    assert [item.error["code"] for item in items_of(raw)] == ["refused", "refused"]
    assert len({item.error["message"] for item in items_of(raw)}) == 1
    # A person who retries wants it asked again.
    clock.shift(timedelta(minutes=1))
    model_server.script = [found(), written()]
    item = items_of(raw)[0]
    regenerate.retry(item, workspace=workspace, now=NOON + timedelta(minutes=1))
    assert work(runs(raw)[-1]).status == "done"
    assert asked(model_server)[2:] == ["brief", "draft"]
    assert SharedBrief.everywhere.get().refusal is None


def test_wait_that_the_service_asks_for_holds_all_runs_of_the_raw_item(raw, model_server):
    model_server.script = [error(429, "rate_limit_error", retry_after="600")]
    first, second = runs(raw)
    assert work(first).wake_at == NOON + timedelta(minutes=10)
    waiting = work(second)
    assert (len(model_server.requests), waiting.error["code"]) == (1, "brief_awaited")
    assert timedelta(0) <= NOON + timedelta(minutes=10) - waiting.wake_at < timedelta(seconds=30)
    model_server.script = [found(), written(), written()]
    assert work(first).status == "done"
    assert reread(second).wake_at == NOON
    assert work(second).status == "done"
    assert asked(model_server)[1:] == ["brief", "draft", "draft"]


def test_key_that_is_refused_is_no_word_about_the_content(raw, model_server):
    model_server.script = [error(401, "authentication_error"), found(), written()]
    first, second = runs(raw)
    assert work(first).status == "failed"
    assert work(second).status == "done"


def test_cap_leaves_the_question_to_any_run(raw, workspace, model_server):
    type(workspace).everywhere.filter(pk=workspace.pk).update(model_cap_micro_usd=0)
    first, second = runs(raw)
    assert [work(run).error["code"] for run in (first, second)] == ["model_cap_of_workspace"] * 2
    assert (model_server.requests, SharedBrief.everywhere.get().asked_by) == ([], None)


def test_a_further_variant_is_written_from_the_brief_that_is_there(workspace, model_server, clock):
    model_server.script = [found(), written()]
    raw = push_raw(workspace).raw_item
    run_generations(raw)
    clock.shift(timedelta(minutes=1))
    model_server.script = [written("About 340 people will work at the northern depot.", "f2")]
    regenerate.regenerate(items_of(raw)[0], workspace=workspace, now=NOON + timedelta(minutes=1))
    work(runs(raw)[-1])
    assert asked(model_server) == ["brief", "draft", "draft"]


def test_other_words_another_model_and_another_workspace_are_read_anew(
    workspace, charlies, model_server, settings, clock
):
    model_server.script = [found(), written()] * 4
    raw = push_raw(workspace).raw_item
    run_generations(raw)
    run_generations(push_raw(charlies, engines=["Short Post"]).raw_item)
    settings.MODEL_BRIEF = "claude-sonnet-5-5"
    clock.shift(timedelta(minutes=1))
    regenerate.regenerate(items_of(raw)[0], workspace=workspace, now=NOON + timedelta(minutes=1))
    work(runs(raw)[-1])
    assert asked(model_server) == ["brief", "draft"] * 3
    assert SharedBrief.everywhere.filter(workspace=workspace).count() == 2
    assert SharedBrief.everywhere.filter(workspace=charlies).count() == 1


def test_revised_content_is_read_anew(raw, workspace, model_server):
    first, second = runs(raw)
    fresh = claimed(first)
    model_server.script = [found(), written()]
    generation_run.run_generation(fresh)
    push_raw(workspace, body=OTHER_TEXT, engines=BOTH)
    model_server.script = [found(), written()]
    work(second)
    assert asked(model_server)[:3] == ["brief", "draft", "brief"]
    assert SharedBrief.everywhere.count() == 2


def test_erased_content_is_erased_from_the_brief_too(raw, model_server):
    model_server.script = [found(), written(), written()]
    run_generations(raw)
    assert SharedBrief.everywhere.count() == 1
    erase_raw_item.erase(raw, now=NOON)
    assert SharedBrief.everywhere.count() == 0


def test_content_that_is_erased_while_it_is_read_does_not_come_back(raw, model_server, monkeypatch):
    model_server.script = [found(), written()]
    first, second = runs(raw)
    send = client.AccountClient._send

    def erased(self, ask, started):
        erase_raw_item.erase(RawItem.everywhere.get(pk=raw.pk), now=NOON)
        return send(self, ask, started)

    monkeypatch.setattr(client.AccountClient, "_send", erased)
    generation_run.run_generation(claimed(first))
    work(second)
    kept = str(list(SharedBrief.everywhere.values())) + str(
        list(Generation.everywhere.filter(status__in=["done", "failed"]).values())
    )
    assert QUOTES[0] not in kept
    assert {item.status for item in GeneratedItem.everywhere.all()} <= {"ready", "failed"}


def test_offline_words_need_no_shared_brief(raw):
    run_generations(raw)
    assert SharedBrief.everywhere.count() == 0
