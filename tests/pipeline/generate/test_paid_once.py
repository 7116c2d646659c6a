"""Whatever people do, the model answers and the machine kills: the credits add up, and nothing stored is paid again."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Q, Sum
from django.utils import timezone
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from accounts.ledger import reports
from accounts.models import CreditBalance, LedgerEntry
from config.core.crash_points import POINTS
from config.core.errors import AppError
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.generate import run as generation_run
from pipeline.generate import run_state, shared_brief
from pipeline.generate.run_state import EARLIER
from pipeline.ingest import erase_raw_item, replan
from pipeline.models import GeneratedItem, Generation, ModelCall, RawItem, SharedBrief
from pipeline.review import decisions, regenerate
from pipeline.writers.base import Writer
from tests.pipeline import steps
from tests.pipeline.generate.test_generate_with_model import COST, found, written
from tests.pipeline.steps import TEXT, claimed, pass_points_of_generate, reread
from tests.sizes import size
from tests.writers.messages_server import Scripted, error, ok, refusal

pytestmark = pytest.mark.usefixtures("anthropic_sdk")

PLACES = sorted(point for point in POINTS if point.startswith("generate."))
MOODS = {
    "fine": None,
    "refuses": refusal("bio"),
    "is cut": ok("{", stop_reason="max_tokens"),
    "babbles": ok("no json"),
    "is busy": error(429, "rate_limit_error", retry_after="60"),
    "is out of order": error(529, "overloaded_error"),
    "declines": error(400, "invalid_request_error"),
    "refuses the key": error(401, "authentication_error"),
    "resets": Scripted(is_reset=True),
    "invents": written("Exactly 999 people will work at the northern depot.", "f2"),
}
OPEN = {"queued", "running"}
BOTH = ["Short Post", "Persona Tweet"]
DEEDS = [
    *["push"] * 2,
    *["hand_works"] * 8,
    *["decide"] * 3,
    "revise",
    "retry_raw",
    "erase_raw",
    "hand_gives_up",
    "leases_run_out",
]


class Killed(BaseException):
    """Stands for kill -9: nothing of ours may catch it."""


def step_of(request):
    return "brief" if "You read one document" in request.raw else "draft"


class Making(RuleBasedStateMachine):
    workspace: Any
    server: Any
    clock: Any

    def __init__(self):
        super().__init__()
        self.outer = transaction.atomic()
        self.outer.__enter__()
        self.mood = "fine"
        self.pushed = 0
        self.server.requests.clear()
        self.server.answer = self.answer
        self.push(random.Random(1))
        self.push(random.Random(2))

    def teardown(self):
        try:
            self.everything_comes_to_an_end()
        finally:
            transaction.set_rollback(True)
            self.outer.__exit__(None, None, None)

    def answer(self, request):
        step = step_of(request)
        # Words that aren't in the source come from the second step alone.
        if self.mood == "fine" or (self.mood == "invents" and step == "brief"):
            return found() if step == "brief" else written()
        return MOODS[self.mood]

    @rule(what=st.sampled_from(DEEDS), seed=st.integers(0, 2**32))
    def something_happens(self, what, seed):
        # One rule, for Hypothesis leaves whole rules out of a run, and without a hand nothing is made.
        getattr(self, what)(random.Random(seed))

    # --- People --------------------------------------------------------------------------------------------------------

    def push(self, pick):
        engines, variants = pick.choice([["Short Post"], BOTH]), pick.choice([1, 2])
        self.clock.shift(1)
        self.pushed += 1
        body = f"{TEXT} It was said for time number {self.pushed}."
        with suppress(AppError):
            steps.push_raw(
                self.workspace,
                engines=engines,
                variants=variants,
                body=body,
                url="",
                external_id=f"e{self.pushed}",
            )

    def revise(self, pick):
        self.clock.shift(1)
        raw = self.one_of(RawItem, pick, deleted_at=None)
        if raw is not None:
            self.pushed += 1
            body = f"{TEXT} It was said anew for time number {self.pushed}."
            with suppress(AppError):
                steps.push_raw(self.workspace, body=body, url="", external_id=raw.external_id)

    def decide(self, pick):
        act = pick.choice(["approve", "reject", "restore", "retry", "regenerate", "erase"])
        self.clock.shift(1)
        item = self.one_of(GeneratedItem, pick, deleted_at=None)
        if item is None:
            return
        more = {
            "approve": {"by": "alice"},
            "reject": {"reason": "No.", "by": "alice"},
            "retry": {"workspace": self.workspace},
            "regenerate": {"workspace": self.workspace},
        }.get(act, {})
        with suppress(AppError), transaction.atomic():
            getattr(regenerate if act in {"retry", "regenerate"} else decisions, act)(
                item, now=timezone.now(), **more
            )

    def retry_raw(self, pick):
        self.clock.shift(1)
        raw = self.one_of(RawItem, pick, deleted_at=None)
        if raw is not None:
            with suppress(AppError), transaction.atomic():
                replan.retry(raw, workspace=self.workspace, now=timezone.now())

    def erase_raw(self, pick):
        self.clock.shift(1)
        raw = self.one_of(RawItem, pick, deleted_at=None)
        if raw is not None:
            erase_raw_item.erase(raw, now=timezone.now())

    # --- The machine ---------------------------------------------------------------------------------------------------

    def hand_works(self, pick):
        mood = "fine" if pick.random() < 0.6 else pick.choice(sorted(MOODS))
        dies_at = pick.choice(PLACES) if pick.random() < 0.4 else None
        self.clock.shift(1)
        run = self.one_of(Generation, pick, wake_at__isnull=False)
        if run is not None:
            self.mood = mood
            self.work(run, dies_at)

    def hand_gives_up(self, pick):
        run = self.one_of(Generation, pick, wake_at__isnull=False)
        if run is not None:
            generation_run.give_up(claimed(run))

    def leases_run_out(self, pick=None):
        SharedBrief.everywhere.update(asked_until=timezone.now() - timedelta(days=400))

    def work(self, run, dies_at=None):
        run = reread(run)
        may = self.may_ask(run)
        before = len(self.server.requests)

        def die(name):
            if name == dies_at:
                raise Killed

        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            pass_points_of_generate(patch, die)
            generation_run.run_generation(claimed(run))
        asked = {step_of(request) for request in self.server.requests[before:]}
        assert asked <= may, f"{asked - may} was stored and is paid for again"

    def may_ask(self, run):
        """What isn't stored yet, as the stage and the raw item's briefs say before a hand begins."""
        if run.stage in {"render", "write"}:
            return set()
        if run.stage == "draft":
            return {"draft"}
        raw = RawItem.everywhere.get(pk=run.raw_item_id)
        if raw.deleted_at is not None:
            return set()
        # One that waits begins with the newest content.
        version = raw.content_version if run.status == "queued" else run.raw_version
        source = run_state.source_text(Generation(raw_item=raw, raw_version=version, engine=run.engine))
        key = shared_brief._key(plugins.get("writers", "claude", Writer), source)
        is_stored = SharedBrief.everywhere.filter(raw_item=raw, key=key, content__isnull=False).exists()
        return {"draft"} if is_stored else {"brief", "draft"}

    def one_of(self, model, pick, **which):
        rows = list(model.everywhere.filter(workspace=self.workspace, **which).order_by("id"))
        return pick.choice(rows) if rows else None

    # --- Promises ------------------------------------------------------------------------------------------------------

    @invariant()
    def the_ledger_is_the_balance(self):
        assert reports.check() == []
        sums = LedgerEntry.everywhere.filter(workspace=self.workspace).aggregate(
            available=Sum("amount"), reserved=Sum("reserved_change"), used=Sum("used_change")
        )
        row = CreditBalance.everywhere.get(workspace=self.workspace)
        assert (row.available, row.reserved, row.used) == tuple(sums.values())

    @invariant()
    def what_is_reserved_is_what_is_under_way(self):
        open_runs = Generation.everywhere.filter(workspace=self.workspace, status__in=OPEN)
        reserved = open_runs.aggregate(all=Sum("credits_reserved"))["all"] or 0
        assert CreditBalance.everywhere.get(workspace=self.workspace).reserved == reserved

    @invariant()
    def every_run_is_paid_for_by_what_it_made(self):
        entries = LedgerEntry.everywhere.filter(workspace=self.workspace, kind__in=["settle", "release"])
        ended = Generation.everywhere.filter(workspace=self.workspace, credits_reserved__gt=0).exclude(
            status__in=OPEN
        )
        subjects = sorted(entries.values_list("subject", flat=True))
        assert subjects == sorted(ended.values_list("pk", flat=True))

    @invariant()
    def what_is_used_is_what_was_made(self):
        for run in Generation.everywhere.filter(workspace=self.workspace, status__in=["done", "failed"]):
            used = LedgerEntry.everywhere.filter(subject=run.pk).aggregate(all=Sum("used_change"))["all"]
            made = GeneratedItem.everywhere.filter(generation=run, revision__gte=1).count()
            assert used == made * plugins.get("engines", run.engine, Engine).credits

    @invariant()
    def every_request_is_in_the_books(self):
        assert ModelCall.everywhere.count() == len(self.server.requests)
        answered = ModelCall.everywhere.exclude(stop_reason="")
        assert (answered.aggregate(all=Sum("cost_micro_usd"))["all"] or 0) == COST * answered.count()

    @invariant()
    def what_ended_keeps_no_words_and_what_is_erased_no_brief(self):
        kept = Generation.everywhere.filter(~Q(status__in=OPEN)).values_list("answers", flat=True)
        # What the tries before it cost quotes nothing.
        assert all(set(answers) <= {EARLIER} for answers in kept)
        assert not SharedBrief.everywhere.filter(raw_item__deleted_at__isnull=False).exists()

    def everything_comes_to_an_end(self):
        self.mood = "fine"
        for _ in range(5):
            self.leases_run_out()
            for run in Generation.everywhere.filter(wake_at__isnull=False).order_by("id"):
                self.work(run)
        assert not Generation.everywhere.filter(status__in=OPEN).exists()
        assert not GeneratedItem.everywhere.filter(
            status__in=["queued", "generating"], deleted_at=None
        ).exists()
        assert CreditBalance.everywhere.get(workspace=self.workspace).reserved == 0
        self.the_ledger_is_the_balance()
        self.every_run_is_paid_for_by_what_it_made()
        self.every_request_is_in_the_books()


def test_credits_add_up_and_nothing_stored_is_paid_again(workspace, model_server, clock, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "media"
    machine = type(
        "OfThisWorkspace", (Making,), {"workspace": workspace, "server": model_server, "clock": clock}
    )
    run_state_machine_as_test(machine, settings=HOW)
    assert Generation.everywhere.count() == 0


HOW = settings(
    max_examples=size(4, 30),
    stateful_step_count=25,
    # A failure is told as it was found: to make it smaller would take minutes.
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
