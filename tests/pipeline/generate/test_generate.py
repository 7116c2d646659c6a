"""generate: stored answers, exact credits, every end of a run told, and nothing by whoever lost the lease."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import CreditBalance
from config.core.ids import encode, uuid7
from pipeline import limits
from pipeline.engines.base import Check
from pipeline.engines.short_post import ShortPost
from pipeline.generate import recoverable_failures
from pipeline.generate import run as generation_run
from pipeline.generate.lifecycle import start_run
from pipeline.generate.persona_cards import persona_content
from pipeline.ingest import erase_raw_item
from pipeline.models import (
    GeneratedItem,
    Generation,
    Outlet,
    Persona,
    PersonaVersion,
    Publication,
    RawItem,
    Revision,
    Source,
)
from pipeline.plugins import NeedsReconnect, Refused, TryLater
from pipeline.review import decisions, explanation, regenerate
from pipeline.writers.extractive import Extractive
from tests.pipeline import steps
from tests.pipeline.steps import (
    NOON,
    OTHER_TEXT,
    claimed,
    facts,
    items_of,
    make_items,
    pass_points_of_generate,
    push_raw,
    reread,
    run_generations,
    state,
    told,
)

SHORT = "The city council approved the new tram line on Monday evening after six hours of debate."


@pytest.fixture
def asked(monkeypatch):
    """What the shipped writer was asked for, in order."""
    calls = []
    brief, draft = Extractive.brief, Extractive.draft

    def count_brief(self, source, **options):
        calls.append("brief")
        return brief(self, source, **options)

    def count_draft(self, engine, brief, persona, **options):
        calls.append(f"draft {options['variants']}")
        return draft(self, engine, brief, persona, **options)

    monkeypatch.setattr(Extractive, "brief", count_brief)
    monkeypatch.setattr(Extractive, "draft", count_draft)
    return calls


def balance(workspace):
    row = CreditBalance.everywhere.get(workspace=workspace)
    return row.available, row.reserved, row.used


def the_generation():
    return Generation.everywhere.latest("id")


def failing_with(error):
    def fail(*_, **__):
        raise error

    return fail


def autopilot(workspace, **changes):
    source = Source.everywhere.get(workspace=workspace, is_push=True, test=False)
    Source.everywhere.filter(pk=source.pk).update(autopilot=True, **changes)
    return reread(source)


# --- Made ------------------------------------------------------------------------------------------------------------


def test_run_makes_an_item_ready_once_with_its_revision_and_its_fact(workspace, asked, clock):
    raw = push_raw(workspace).raw_item
    clock.shift(5)
    run_generations(raw)
    (item,) = items_of(raw)
    at = NOON + timedelta(seconds=5)
    assert state(
        item, "status", "held", "revision", "ready_at", "error", "raw_version", "persona_version"
    ) == {
        "status": "ready",
        "held": "",
        "revision": 1,
        "ready_at": at,
        "error": None,
        "raw_version": 1,
        "persona_version": 1,
    }
    assert item.generator == {
        "provider": "offline",
        "model": "extractive-1",
        "offline": True,
        "prompt_version": "extractive-1",
        "input_tokens": 0,
        "output_tokens": 0,
        "cost_usd": "0.000000",
        "credits": 1,
    }
    assert {check["outcome"] for check in item.checks} == {"passed"}
    revision = Revision.everywhere.get(item=item)
    assert (revision.number, revision.title, revision.body, revision.content, revision.made_by) == (
        1,
        item.title,
        item.body,
        item.content,
        "extractive-1",
    )
    assert item.content == {"parts": [item.body]}
    assert item.excerpt == " ".join(item.body.split())
    assert state(the_generation(), "status", "wake_at", "attempts", "finished_at", "answers") == {
        "status": "done",
        "wake_at": None,
        "attempts": 0,
        "finished_at": at,
        "answers": {},
    }
    assert state(raw, "status", "reason") == {"status": "processed", "reason": None}
    assert facts(workspace) == ["raw.ingested", "generated.ready"]
    event = told(workspace, "generated.ready")[0]["data"]["generated_item"]
    assert (event["id"], event["status"], event["body"], event["version"]) == (
        encode("gen", item.pk),
        "ready",
        item.body,
        item.version,
    )
    assert (balance(workspace), asked) == ((9, 0, 1), ["brief", "draft 1"])


def test_variants_are_all_different(workspace):
    items = make_items(workspace, variants=3)
    assert ([item.status for item in items], len({item.body for item in items})) == (["ready"] * 3, 3)
    assert [item.variant_index for item in items] == [0, 1, 2]
    assert facts(workspace).count("generated.ready") == 3
    assert balance(workspace) == (7, 0, 3)


def test_variants_that_the_source_does_not_hold_any_more_fail_and_are_paid_back(workspace):
    raw = push_raw(workspace, external_id="1", variants=3).raw_item
    push_raw(workspace, external_id="1", body=SHORT)
    run_generations(raw)
    items = items_of(raw)
    assert [(item.status, (item.error or {}).get("code")) for item in items] == [
        ("ready", None),
        ("failed", "no_more_variants"),
        ("failed", "no_more_variants"),
    ]
    assert facts(workspace) == ["raw.ingested", "generated.ready", "generated.failed", "generated.failed"]
    assert (balance(workspace), RawItem.everywhere.get().status) == ((9, 0, 1), "processed")


def test_checks_that_fail_stop_the_item_and_are_shown(workspace, monkeypatch):
    failed = (Check("length", "failed", "Too long."), Check("links", "passed", "Fine."))
    monkeypatch.setattr(ShortPost, "check", lambda *_: failed)
    (item,) = make_items(workspace)
    assert state(item, "status", "revision", "body", "error", "checks") == {
        "status": "failed",
        "revision": 0,
        "body": "",
        "error": recoverable_failures.error_of(
            "checks_failed", "What was put together here was stopped: Too long.", "write", has_model=False
        ),
        "checks": [
            {"code": "length", "outcome": "failed", "message": "Too long."},
            {"code": "links", "outcome": "passed", "message": "Fine."},
            {"code": "numbers", "outcome": "passed", "message": "Every number is in the source."},
            {
                "code": "quotations",
                "outcome": "passed",
                "message": "Every quotation is in the source word for word.",
            },
            {"code": "names", "outcome": "passed", "message": "Every name is in the source."},
            {
                "code": "support",
                "outcome": "passed",
                "message": "Each statement matches its passage in the source.",
            },
            {
                "code": "repetition",
                "outcome": "passed",
                "message": "It repeats nothing of the newest items.",
            },
        ],
    }
    assert Revision.everywhere.count() == 0
    raw = RawItem.everywhere.get()
    assert (raw.status, raw.reason["code"], balance(workspace)) == ("failed", "checks_failed", (10, 0, 0))
    assert facts(workspace) == ["raw.ingested", "generated.failed", "raw.failed"]


def test_test_item_costs_nothing(workspace):
    (item,) = make_items(workspace, test=True)
    assert (item.status, item.test, item.generator["credits"], balance(workspace)) == (
        "ready",
        True,
        0,
        (10, 0, 0),
    )


def test_persona_speaks_as_it_was_at_the_start(workspace, monkeypatch):
    persona = Persona.everywhere.get(workspace=workspace)
    seen = []
    draft = Extractive.draft

    def note(self, engine, brief, card, **options):
        seen.append(card.voice)
        return draft(self, engine, brief, card, **options)

    monkeypatch.setattr(Extractive, "draft", note)
    raw = push_raw(workspace).raw_item
    generation = claimed(the_generation())
    start_run(generation)
    Persona.everywhere.filter(pk=persona.pk).update(voice="Loud!", version=2)
    newer = persona_content(reread(persona))
    PersonaVersion.everywhere.create(workspace=workspace, persona=persona, number=2, content=newer)
    run_generations(raw)
    assert (seen, items_of(raw)[0].persona_version) == ([persona.voice], 1)


# --- Failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "wait"), [(None, limits.MODEL_RETRIES[0]), (timedelta(minutes=9), timedelta(minutes=9))]
)
def test_writer_that_asks_to_wait_is_asked_again_later(workspace, monkeypatch, asked, after, wait):
    raw = push_raw(workspace).raw_item
    with monkeypatch.context() as patch:
        patch.setattr(
            Extractive, "draft", failing_with(TryLater("Overloaded.", code="overloaded", after=after))
        )
        run_generations(raw)
    assert state(the_generation(), "status", "stage", "wake_at", "error") == {
        "status": "running",
        "stage": "draft",
        "wake_at": NOON + wait,
        "error": {"code": "overloaded", "message": "Overloaded.", "stage": "draft"},
    }
    assert (reread(raw).status, items_of(raw)[0].status, facts(workspace)) == (
        "processing",
        "generating",
        ["raw.ingested"],
    )
    run_generations(raw)
    assert (items_of(raw)[0].status, asked) == ("ready", ["brief", "draft 1"])
    assert the_generation().error is None


def test_writer_that_asks_to_wait_for_ever_ends_as_failed_with_its_reason(workspace, monkeypatch, clock):
    raw = push_raw(workspace).raw_item
    monkeypatch.setattr(Extractive, "brief", failing_with(TryLater("Overloaded.", code="overloaded")))
    waits = []
    while the_generation().status != "failed":
        run_generations(raw)
        run = the_generation()
        # Waiting is no failed try: only a crash is.
        assert run.attempts == 0
        if run.wake_at is not None:
            waits.append(run.wake_at - timezone.now())
            clock.move_to(run.wake_at)
    assert waits[: len(limits.MODEL_RETRIES)] == list(limits.MODEL_RETRIES)
    assert set(waits[len(limits.MODEL_RETRIES) :]) == {limits.MODEL_RETRIES[-1]}
    # The day is over at the first look after it.
    assert timedelta(0) <= timezone.now() - NOON - limits.MODEL_PATIENCE < limits.MODEL_RETRIES[-1]
    message = "Overloaded. It was tried for a day without success; retry it."
    assert state(the_generation(), "status", "wake_at", "error") == {
        "status": "failed",
        "wake_at": None,
        "error": recoverable_failures.error_of("overloaded", message, "brief", has_model=False),
    }
    assert (items_of(raw)[0].error["code"], reread(raw).status, balance(workspace)) == (
        "overloaded",
        "failed",
        (10, 0, 0),
    )


@pytest.mark.parametrize("stage", ["brief", "draft"])
@pytest.mark.parametrize(
    "error", [Refused("Not this.", code="unsafe"), NeedsReconnect("No key.", code="no_key")]
)
def test_writer_that_refuses_ends_the_run(workspace, monkeypatch, stage, error):
    monkeypatch.setattr(Extractive, stage, failing_with(error))
    raw = push_raw(workspace, variants=2).raw_item
    run_generations(raw)
    expected = recoverable_failures.error_of(error.code, error.message, stage, has_model=False)
    assert [(item.status, item.error) for item in items_of(raw)] == [("failed", expected)] * 2
    assert (the_generation().error, reread(raw).reason, reread(raw).status) == (expected, expected, "failed")
    assert facts(workspace) == ["raw.ingested", "generated.failed", "generated.failed", "raw.failed"]
    assert balance(workspace) == (10, 0, 0)


def test_give_up_before_anything_began(workspace):
    raw = push_raw(workspace).raw_item
    generation_run.give_up(claimed(the_generation()))
    assert ([item.error["code"] for item in items_of(raw)], reread(raw).status) == (["gave_up"], "failed")
    assert balance(workspace) == (10, 0, 0)


def test_run_without_a_raw_item_fails(workspace, defaults):
    generation = Generation.everywhere.create(workspace=workspace, engine="short_post")
    generation_run.run_generation(claimed(generation))
    assert (reread(generation).status, reread(generation).error["code"]) == ("failed", "no_source")


# --- Kills, leases, revisions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("generate.claimed", ["brief", "draft 1"]),
        ("generate.briefed", ["brief", "draft 1"]),
        ("generate.drafted", ["brief", "draft 1"]),
        ("generate.committed", ["brief", "draft 1"]),
    ],
)
def test_killed_hand_never_pays_for_an_answer_twice(workspace, asked, monkeypatch, point, expected):
    raw = push_raw(workspace).raw_item

    def die(name):
        if name == point:
            raise SystemExit

    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die)
        with pytest.raises(SystemExit):
            generation_run.run_generation(claimed(the_generation()))
    run_generations(raw)
    assert asked == expected
    assert (items_of(raw)[0].status, facts(workspace), balance(workspace)) == (
        "ready",
        ["raw.ingested", "generated.ready"],
        (9, 0, 1),
    )


@pytest.mark.parametrize("stage", ["brief", "draft"])
def test_hand_that_lost_its_lease_writes_nothing(workspace, monkeypatch, stage):
    raw = push_raw(workspace).raw_item
    answer = getattr(Extractive, stage)

    def slow(self, *args, **options):
        claimed(the_generation())
        return answer(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Extractive, stage, slow)
        generation_run.run_generation(claimed(the_generation()))
    assert (the_generation().status, the_generation().stage, items_of(raw)[0].status) == (
        "running",
        stage,
        "generating",
    )
    run_generations(raw)
    assert facts(workspace) == ["raw.ingested", "generated.ready"]


def test_hand_that_lost_its_lease_before_writing_leaves_the_words_to_the_other(workspace, monkeypatch):
    raw = push_raw(workspace).raw_item
    check = ShortPost.check

    def slow(self, *args):
        claimed(the_generation())
        return check(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(ShortPost, "check", slow)
        generation_run.run_generation(claimed(the_generation()))
    assert (items_of(raw)[0].status, Revision.everywhere.count(), facts(workspace)) == (
        "generating",
        0,
        ["raw.ingested"],
    )
    late = the_generation()
    late.lease_token -= 1
    monkeypatch.setattr(Extractive, "brief", failing_with(Refused("No.")))
    generation_run.give_up(late)
    assert (items_of(raw)[0].status, balance(workspace)) == ("generating", (9, 1, 0))


@pytest.mark.parametrize("how", ["revised", "deleted"])
def test_item_of_a_source_that_changed_meanwhile_is_held(workspace, monkeypatch, how):
    raw = push_raw(workspace, external_id="1").raw_item
    draft = Extractive.draft

    def meanwhile(self, *args, **options):
        if how == "revised":
            push_raw(workspace, external_id="1", body=OTHER_TEXT)
        else:
            erase_raw_item.erase(raw, now=NOON)
        return draft(self, *args, **options)

    monkeypatch.setattr(Extractive, "draft", meanwhile)
    source = autopilot(workspace)
    run_generations(raw)
    held = {"revised": "source_changed", "deleted": "source_withdrawn"}[how]
    assert state(items_of(raw)[0], "status", "held", "raw_version") == {
        "status": "ready",
        "held": held,
        "raw_version": 1,
    }
    assert (Publication.everywhere.count(), source.autopilot) == (0, True)


# --- The raw item ----------------------------------------------------------------------------------------------------


def second_run(raw, workspace):
    """A second engine's run over the same raw item, as a workspace with two engines has it."""
    first = Generation.everywhere.get(raw_item=raw)
    values = {field.attname: getattr(first, field.attname) for field in Generation._meta.concrete_fields}
    generation = Generation.everywhere.create(**{**values, "id": uuid7(), "credits_reserved": 0})
    item = GeneratedItem.everywhere.get(generation=first)
    values = {field.attname: getattr(item, field.attname) for field in GeneratedItem._meta.concrete_fields}
    values.pop("id")
    GeneratedItem.everywhere.create(
        **{**values, "generation_id": generation.pk, "variant_group": generation.pk}
    )
    return first, generation


def test_raw_item_is_processed_when_its_last_run_ends(workspace):
    raw = push_raw(workspace).raw_item
    first, second = second_run(raw, workspace)
    generation_run.run_generation(claimed(first))
    assert reread(raw).status == "processing"
    generation_run.give_up(claimed(second))
    assert (reread(raw).status, reread(raw).reason) == ("processed", None)
    assert "raw.failed" not in facts(workspace)


def test_raw_item_fails_when_nothing_came_of_any_run(workspace):
    raw = push_raw(workspace).raw_item
    first, second = second_run(raw, workspace)
    generation_run.give_up(claimed(second))
    assert reread(raw).status == "queued"
    generation_run.give_up(claimed(first))
    assert (reread(raw).status, facts(workspace).count("raw.failed")) == ("failed", 1)


@pytest.mark.django_db(transaction=True)
def test_two_runs_that_end_together_finish_the_raw_item_once(workspace, together):
    for number in range(4):
        raw = push_raw(workspace, external_id=f"{number}", url="").raw_item
        first, second = second_run(raw, workspace)
        hands = claimed(first), claimed(second)
        if number % 2:
            assert together(*[lambda hand=hand: generation_run.run_generation(hand) for hand in hands]) == [
                None,
                None,
            ]
            assert reread(raw).status == "processed"
        else:
            assert together(*[lambda hand=hand: generation_run.give_up(hand) for hand in hands]) == [
                None,
                None,
            ]
            assert reread(raw).status == "failed"
    assert facts(workspace).count("raw.failed") == 2


# --- Autopilot -------------------------------------------------------------------------------------------------------


def test_autopilot_publishes_exactly_the_best(workspace, monkeypatch, feed):
    check = ShortPost.check
    seen = []

    def second_is_spotless(self, draft, *rest):
        seen.append(draft)
        outcome = "passed" if len(seen) == 2 else "warning"
        return (*check(self, draft, *rest), Check("tone", outcome, "Made up."))

    monkeypatch.setattr(ShortPost, "check", second_is_spotless)
    autopilot(workspace)
    items = make_items(workspace, variants=3)
    assert [item.status for item in items] == ["rejected", "scheduled", "rejected"]
    assert [item.rejection["code"] for item in items if item.rejection] == ["superseded"] * 2
    publication = Publication.everywhere.get()
    assert (publication.item_id, publication.outlet_id, publication.requested_by) == (
        items[1].pk,
        feed.pk,
        "autopilot",
    )
    assert facts(workspace).count("generated.ready") == 3


def test_autopilot_leaves_what_did_not_pass_a_gate_to_a_person(workspace, monkeypatch):
    monkeypatch.setattr(ShortPost, "check", lambda *_: (Check("tone", "warning", "Made up."),))
    autopilot(workspace)
    items = make_items(workspace, variants=2)
    assert [item.status for item in items] == ["ready", "ready"]
    told = "Needs a review: Made up."
    closed = [
        check
        for check in items[0].checks
        if check["code"].startswith("gate_") and check["outcome"] != "passed"
    ]
    assert closed == [{"code": "gate_platform", "outcome": "warning", "message": told}]
    found = explanation.explain(items[0], now=NOON)
    assert [(one.code, one.message) for one in found.blockers] == [
        ("autopilot_waits", told),
        ("not_requested", "It isn't scheduled or published yet."),
    ]


def test_items_of_a_source_without_autopilot_have_no_gates(workspace):
    (item,) = make_items(workspace)
    assert [check["code"] for check in item.checks if check["code"].startswith("gate_")] == []


def test_autopilot_that_cannot_publish_keeps_the_words(workspace, feed):
    Outlet.everywhere.filter(pk=feed.pk).update(deleted_at=NOON)
    autopilot(workspace)
    (item,) = make_items(workspace)
    assert (item.status, item.error["code"], item.error["stage"]) == ("ready", "autopilot", "publish")
    stage = steps.make_stage(workspace)
    steps.promise(item, stage)
    assert reread(item).error is None


@pytest.mark.parametrize("why", ["approval", "deleted"])
def test_autopilot_leaves_it_to_people(workspace, why):
    if why == "approval":
        workspace.requires_approval = True
        workspace.save(update_fields=["requires_approval"])
    autopilot(workspace, deleted_at=NOON if why == "deleted" else None)
    (item,) = make_items(workspace)
    assert (item.status, Publication.everywhere.count()) == ("ready", 0)


def test_autopilot_does_not_publish_what_a_person_asked_for_besides(workspace):
    autopilot(workspace)
    (item,) = make_items(workspace)
    steps.send(Publication.everywhere.get())
    variant = regenerate.regenerate(reread(item), workspace=workspace, now=NOON)
    run_generations(item.raw_item)
    assert (reread(variant).status, reread(item).status) == ("ready", "published")
    assert Publication.everywhere.count() == 1


# --- Again -----------------------------------------------------------------------------------------------------------


def test_regenerate_makes_a_further_and_different_variant(workspace, asked):
    first, second = make_items(workspace, variants=2)
    variant = regenerate.regenerate(first, workspace=workspace, now=NOON)
    assert state(variant, "status", "variant_index", "variant_group", "parent_id") == {
        "status": "queued",
        "variant_index": 2,
        "variant_group": first.variant_group,
        "parent_id": first.pk,
    }
    assert balance(workspace) == (7, 1, 2)
    run_generations(first.raw_item)
    bodies = {reread(item).body for item in (first, second, variant)}
    assert (reread(variant).status, len(bodies), asked[-1], balance(workspace)) == (
        "ready",
        3,
        "draft 3",
        (7, 0, 3),
    )
    assert reread(first.raw_item).status == "processed"


def test_retry_of_a_failed_item_makes_that_item(workspace):
    raw = push_raw(workspace).raw_item
    generation_run.give_up(claimed(the_generation()))
    (item,) = items_of(raw)
    regenerate.retry(item, workspace=workspace, now=NOON)
    assert state(item, "status", "error", "checks") == {"status": "queued", "error": None, "checks": []}
    assert (reread(item.raw_item).status, balance(workspace)) == ("queued", (9, 1, 0))
    run_generations(item.raw_item)
    assert (reread(item).status, reread(item).revision, reread(item.raw_item).status) == (
        "ready",
        1,
        "processed",
    )
    assert (GeneratedItem.everywhere.count(), balance(workspace)) == (1, (9, 0, 1))


def test_item_that_was_erased_while_it_was_made_is_not_made(workspace):
    raw = push_raw(workspace, variants=2).raw_item
    decisions.erase(items_of(raw)[0], now=NOON)
    run_generations(raw)
    assert [(item.status, item.deleted_at is None) for item in items_of(raw)] == [
        ("queued", False),
        ("ready", True),
    ]
    assert balance(workspace) == (9, 0, 1)


@pytest.mark.parametrize(
    ("pushed", "told"),
    [
        ("Fwd: Re: The northern depot", "The northern depot"),
        ("Fwd: RE: [Depots] The northern depot", "The northern depot"),
        ("FOR IMMEDIATE RELEASE: The northern depot", "The northern depot"),
        ("The d&eacute;p&ocirc;t &amp; its line", "The dépôt & its line"),
    ],
)
def test_an_item_is_titled_without_what_stands_before_a_subject(workspace, pushed, told):
    raw = push_raw(workspace, title=pushed).raw_item
    run_generations(raw)
    assert raw.title == pushed
    assert GeneratedItem.everywhere.get(raw_item=raw).title == told
