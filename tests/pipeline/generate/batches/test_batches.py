"""Calls that nobody waits for: in one batch at half the price, each paid for once, asked live when time is up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import CreditBalance
from pipeline import limits, plugins
from pipeline.generate import checks as judging
from pipeline.generate import run_state
from pipeline.generate.model import batches
from pipeline.ingest import erase_raw_item
from pipeline.models import BatchedCall, Generation, ModelBatch, ModelCall
from pipeline.sources.base import Source as Kind
from pipeline.switches import kill_switch
from tests.pipeline.generate.batches.steps import (
    HALF,
    OTHER,
    booked,
    pushed,
    runs,
    through,
    work_batches,
    work_runs,
)
from tests.pipeline.generate.test_generate_with_model import found, written
from tests.pipeline.steps import NOON, items_of, push_raw, reread
from tests.writers.batches_server import errored
from tests.writers.messages_server import refusal


def test_source_that_may_wait_has_its_words_made_in_batches_at_half_the_price(
    workspace, model_server, source, clock
):
    raw = pushed(workspace, source)

    through(clock, model_server)
    through(clock, model_server)
    work_runs()

    [item] = items_of(raw)
    assert (item.status, item.body.partition("\n")[0]) == (
        "ready",
        "Six hours of debate, then the city council approved the new tram line.",
    )
    assert model_server.requests == []
    assert [len(batch.requests) for batch in model_server.batches.made] == [1, 1]
    assert booked() == [("brief", "batch", "answered", HALF), ("draft", "batch", "answered", HALF)]
    assert item.generator["cost_usd"] == f"{2 * HALF / 1_000_000:.6f}"
    assert [(one.asked.get("messages"), one.reply) for one in BatchedCall.everywhere.all()] == [
        (None, None)
    ] * 2
    assert set(ModelBatch.everywhere.values_list("status", "wake_at")) == {("ended", None)}


def test_run_sleeps_meanwhile_and_says_what_it_waits_for(workspace, model_server, source, clock):
    pushed(workspace, source)

    work_runs()

    [run] = runs()
    assert (run.status, run.attempts, run.wake_at) == ("running", 0, NOON + timedelta(hours=4))
    assert run.error["code"] == "model_batch_awaited"
    assert "costs half" in run.error["message"]
    assert model_server.requests == []
    assert model_server.batches.made == []


def test_several_runs_share_one_batch_and_one_brief(workspace, model_server, source, clock):
    first = pushed(workspace, source, external_id="a", engines=["Short Post", "LinkedIn Post"])
    second = pushed(workspace, source, external_id="b", title="Another", body=f"{OTHER} {OTHER[:-1]} too.")
    assert first.pk != second.pk

    work_runs()
    work_batches(clock, after=limits.BATCH_GATHER)

    assert [len(batch.requests) for batch in model_server.batches.made] == [2]
    assert len({one["custom_id"] for one in model_server.batches.made[0].requests}) == 2


def test_results_are_matched_by_their_ids_and_each_fate_is_its_own(workspace, model_server, source, clock):
    for name in ("answered", "errored", "expired", "cancelled"):
        pushed(workspace, source, external_id=name, title=name, body=f"{found.__doc__} {name} of {OTHER}")
    work_runs()
    work_batches(clock, after=limits.BATCH_GATHER)
    [batch] = model_server.batches.made
    good, bad, late, stopped = [one["custom_id"] for one in batch.requests]
    fates = {bad: errored("overloaded_error"), late: {"type": "expired"}, stopped: {"type": "canceled"}}
    results = model_server._result_of
    model_server.batches._answer = lambda one: fates.get(one["custom_id"]) or results(one)
    model_server.batches.end()

    work_batches(clock, after=limits.BATCH_POLL)

    outcomes = {one.pk.hex: one.outcome for one in BatchedCall.everywhere.all()}
    assert outcomes == {good: "answered", bad: "failed", late: "expired", stopped: "cancelled"}
    assert sorted(one[2:] for one in booked()) == [
        ("answered", HALF),
        ("cancelled", 0),
        ("expired", 0),
        ("failed", 0),
    ]
    assert all(run.wake_at <= timezone.now() for run in runs())
    # Who was given nothing asks by itself, and nothing of it is asked of a batch again.
    work_runs()
    briefs = [one for one in model_server.requests if "You read one document" in one.raw]
    assert len(briefs) == 3
    assert BatchedCall.everywhere.filter(asked__step="brief").count() == 4


def test_after_its_time_the_run_asks_by_itself_and_the_batch_is_cancelled(
    workspace, model_server, source, clock
):
    raw = pushed(workspace, source)
    work_runs()
    work_batches(clock, after=limits.BATCH_GATHER)
    clock.move_to(NOON + timedelta(hours=4))

    work_runs()

    assert items_of(raw)[0].status == "ready"
    assert [one[:3] for one in booked()] == [("brief", "live", "answered"), ("draft", "live", "answered")]
    work_batches(clock)
    assert [one.is_cancelled for one in model_server.batches.made] == [True]
    # What was answered before the cancelling is paid for, and told.
    model_server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)
    assert booked()[2] == ("brief", "batch", "answered", HALF)
    assert BatchedCall.everywhere.get().reply is None
    assert ModelBatch.everywhere.get().status == "ended"


def test_call_that_was_not_sent_yet_when_time_is_up_is_never_sent(workspace, model_server, source, clock):
    pushed(workspace, source)
    work_runs()
    clock.move_to(NOON + timedelta(hours=4))
    work_runs()

    work_batches(clock)

    assert model_server.batches.made == []
    assert [one.outcome for one in BatchedCall.everywhere.all()] == ["unsent"]


def test_stopped_calls_send_no_batch(workspace, model_server, source, clock):
    pushed(workspace, source)
    work_runs()
    switch = kill_switch.stop("model_calls", reason="The bill is being looked at.", actor="test")

    work_batches(clock, after=limits.BATCH_GATHER)

    assert (model_server.batches.made, ModelBatch.everywhere.get().status) == ([], "waiting")
    kill_switch.resume(switch, actor="test")
    work_batches(clock, after=timedelta(minutes=5))
    assert len(model_server.batches.made) == 1


def test_cap_counts_what_is_on_its_way(workspace, model_server, source, clock):
    for name in ("a", "b", "c"):
        pushed(workspace, source, external_id=name, title=name, body=f"{name} {OTHER}")
    work_runs()
    most = BatchedCall.everywhere.order_by("pk").first().most_micro_usd
    workspace.model_cap_micro_usd = 2 * most + most // 2
    workspace.save()

    work_batches(clock, after=limits.BATCH_GATHER)
    work_batches(clock, after=limits.BATCH_POLL)

    # Two fit; the third waits in a batch of its own until those are reckoned.
    assert [len(one.requests) for one in model_server.batches.made][:1] == [2]
    model_server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)
    work_batches(clock, after=limits.BATCH_POLL)
    assert [len(one.requests) for one in model_server.batches.made] == [2, 1]


def test_reached_cap_sends_nothing(workspace, model_server, source, clock):
    pushed(workspace, source)
    work_runs()
    workspace.model_cap_micro_usd = 0
    workspace.save()

    work_batches(clock, after=limits.BATCH_GATHER)

    assert model_server.batches.made == []
    assert ModelBatch.everywhere.get().status == "waiting"
    # Nothing wakes it when the cap is raised: it looks again by itself.
    workspace.model_cap_micro_usd = None
    workspace.save()
    work_batches(clock, after=timedelta(minutes=5))
    assert len(model_server.batches.made) == 1


def test_many_calls_go_batch_by_batch_past_those_that_nobody_wants(
    workspace, model_server, source, clock, monkeypatch
):
    monkeypatch.setattr(limits, "BATCH_CALLS", 2)
    monkeypatch.setattr(limits, "BATCH_CALLS_READ", 3)
    for name in "abcdefgh":
        pushed(workspace, source, external_id=name, title=name, body=f"{name} {OTHER}")
    work_runs()
    unwanted = list(BatchedCall.everywhere.order_by("pk").values_list("pk", flat=True)[:3])
    BatchedCall.everywhere.filter(pk__in=unwanted).update(is_late=True)

    work_batches(clock, after=limits.BATCH_GATHER)
    work_batches(clock, after=limits.BATCH_POLL)
    work_batches(clock, after=limits.BATCH_POLL)

    assert [len(one.requests) for one in model_server.batches.made] == [2, 2, 1]
    assert set(BatchedCall.everywhere.filter(pk__in=unwanted).values_list("outcome", flat=True)) == {"unsent"}


def test_run_that_somebody_waits_for_asks_at_once_what_another_has_put_into_a_batch(
    workspace, model_server, source, clock
):
    raw = pushed(workspace, source, engines=["Short Post"])
    work_runs()
    [patient] = runs()
    awaited = Generation.everywhere.create(
        workspace=workspace,
        engine="short_post",
        raw_item=raw,
        raw_version=patient.raw_version,
        persona_id=patient.persona_id,
        due_at=NOON,
        wake_at=NOON,
    )

    work_runs()

    assert reread(awaited).status == "done"
    assert [one.raw.count("You read one document") for one in model_server.requests] == [1, 0]


def test_refused_words_in_a_batch_are_asked_of_the_other_model_in_a_batch_too(
    workspace, model_server, source, clock
):
    raw = pushed(workspace, source)
    answers = iter([refusal("cyber"), found(), written()])
    model_server.answer = lambda _request: next(answers)

    for _ in range(3):
        through(clock, model_server)
    work_runs()

    assert items_of(raw)[0].status == "ready"
    assert [one[:3] for one in booked()] == [
        ("brief", "batch", "refused"),
        ("brief", "batch", "answered"),
        ("draft", "batch", "answered"),
    ]
    models = [one["params"]["model"] for batch in model_server.batches.made for one in batch.requests]
    assert models == ["claude-haiku-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"]


def wrong_then_right(request):
    if "You read one document" in request.raw:
        return found()
    if "A program has checked the variants" in request.raw:
        return written()
    return written("Exactly 999 people will work at the northern depot.", "f2")


def test_draft_that_fails_a_check_is_repaired_in_a_batch_too(workspace, model_server, source, clock):
    raw = pushed(workspace, source)
    model_server.answer = wrong_then_right

    for _ in range(3):
        through(clock, model_server)
    work_runs()

    [item] = items_of(raw)
    assert (item.status, item.body.partition("\n")[0]) == (
        "ready",
        "Six hours of debate, then the city council approved the new tram line.",
    )
    assert model_server.requests == []
    assert booked() == [(step, "batch", "answered", HALF) for step in ("brief", "draft", "draft")]


def test_repair_is_asked_once_although_the_checks_say_something_else_later(
    workspace, model_server, source, clock, monkeypatch
):
    raw = pushed(workspace, source)
    model_server.answer = wrong_then_right
    times = iter(range(1_000))

    def judge(*arguments, **options):
        """As the newest items change what is said of this one."""
        checks = judging.run_checks(*arguments, **options)
        return tuple(replace(check, message=f"{check.message} Look {next(times)}.") for check in checks)

    monkeypatch.setattr(run_state, "run_checks", judge)
    for _ in range(3):
        through(clock, model_server)
    work_runs()

    assert items_of(raw)[0].status == "ready"
    assert model_server.requests == []
    assert [len(batch.requests) for batch in model_server.batches.made] == [1, 1, 1]


def test_key_that_is_gone_ends_the_batch_and_wakes_its_runs(workspace, model_server, source, clock, settings):
    raw = pushed(workspace, source)
    work_runs()
    settings.ANTHROPIC_API_KEY = ""

    work_batches(clock, after=limits.BATCH_GATHER)
    work_runs()

    assert ModelBatch.everywhere.get().error["code"] == "model_key_missing"
    [item] = items_of(raw)
    assert (item.status, item.generator["offline"]) == ("ready", True)


def test_prefix_is_kept_for_an_hour_only_where_three_calls_share_it(workspace, model_server, source, clock):
    for name in ("a", "b", "c"):
        pushed(workspace, source, external_id=name, title=name, body=f"{name} {OTHER}")
    work_runs()
    work_batches(clock, after=limits.BATCH_GATHER)
    pushed(workspace, source, external_id="d", title="d", body=f"d {OTHER}")
    work_runs()
    work_batches(clock, after=limits.BATCH_GATHER)

    marks = [
        [block.get("cache_control") for block in one["params"]["system"]]
        for batch in model_server.batches.made
        for one in batch.requests
    ]
    assert marks == [[{"type": "ephemeral", "ttl": "1h"}]] * 3 + [[None]]


def test_erased_raw_item_leaves_no_word_of_it_in_a_batch(workspace, model_server, source, clock):
    raw = pushed(workspace, source)
    work_runs()

    erase_raw_item.erase(raw, now=timezone.now())

    kept = str(list(BatchedCall.everywhere.values()))
    assert "tram" not in kept
    # The runs of it are woken, and end with nothing of it and with their credits given back.
    work_runs()
    assert {(run.status, run.error["code"]) for run in runs()} == {("failed", "source_deleted")}
    assert {str(run.answers) for run in runs()} == {"{}"}
    assert CreditBalance.everywhere.get(workspace=workspace).reserved == 0
    work_batches(clock, after=limits.BATCH_GATHER)
    assert model_server.batches.made == []


def test_old_batches_are_forgotten_and_their_costs_stay(workspace, model_server, source, clock):
    pushed(workspace, source)
    through(clock, model_server)
    now = timezone.now()
    assert batches.forget(now + limits.MODEL_BATCHES_KEPT - timedelta(hours=1)) == 0
    assert batches.forget(now + limits.MODEL_BATCHES_KEPT + timedelta(hours=1)) == 1
    assert (ModelBatch.everywhere.count(), ModelCall.everywhere.count()) == (0, 1)


@pytest.mark.parametrize("kind", ["rss", "scraper", "brand", "youtube", "tiktok"])
def test_every_source_that_works_by_itself_can_say_how_long_it_may_wait(kind):
    schema = plugins.get("sources", kind, Kind).config_schema["properties"]["batch_hours"]
    assert (schema["minimum"], schema["maximum"]) == (1, 24)


def test_what_a_poll_brings_may_wait_and_what_somebody_asks_for_may_not(workspace, source, clock):
    polled = push_raw(workspace, source=source, when_short="wait").raw_item
    asked = push_raw(workspace, source=source, external_id="other", title="Other", body=OTHER).raw_item

    until = [Generation.everywhere.get(raw_item=raw).batch_until for raw in (polled, asked)]

    assert until == [NOON + timedelta(hours=4), None]
