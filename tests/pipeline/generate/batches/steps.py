"""Short ways through a batch: put in, sent, ended, read; and what goes wrong on the way."""

from __future__ import annotations

from django.db import connection
from django.db.models import F
from django.utils import timezone

from pipeline import limits
from pipeline.generate import run as generation_run
from pipeline.generate.model import batches
from pipeline.models import Generation, ModelBatch, ModelCall
from tests.pipeline.generate.test_generate_with_model import COST
from tests.pipeline.steps import claimed, push_raw
from tests.writers.messages_server import error

HALF = (COST + 1) // 2
"""Of one scripted answer, rounded up: tests/writers/test_claude.py reckons the whole."""
OTHER = "Construction of the northern depot begins in April, and about 340 people will work there."


def pushed(workspace, source, **changes):
    """Taken in as a poll does it: nobody waits."""
    return push_raw(workspace, source=source, when_short="wait", **changes).raw_item


def runs():
    return list(Generation.everywhere.select_related("workspace").order_by("id"))


def work_runs():
    """Every run whose time has come, once."""
    for run in runs():
        if run.status in {"queued", "running"} and run.wake_at <= timezone.now():
            generation_run.run_generation(claimed(run))


def work_batches(clock, *, after=None):
    """A hand looks at every batch, when its time has come."""
    if after is not None:
        clock.shift(after)
    for batch in ModelBatch.everywhere.select_related("workspace").exclude(status="ended").order_by("id"):
        if batch.wake_at <= timezone.now():
            batches.advance_batch(claimed(batch))


def through(clock, server):
    """From the asking to the answer: gathered, sent, ended, read."""
    work_runs()
    work_batches(clock, after=limits.BATCH_GATHER)
    server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)


def booked():
    return [
        (one.stage, one.mode, one.outcome, one.cost_micro_usd) for one in ModelCall.everywhere.order_by("id")
    ]


def meanwhile(server, what, *, method):
    """`what` happens while the service answers the first such call."""
    handle = server.batches.handle
    left = [what]

    def handled(asked, target, body):
        if left and asked == method:
            left.pop()()
        return handle(asked, target, body)

    server.batches.handle = handled


def overtake():
    """In the server's thread, whose connection isn't the test's."""
    ModelBatch.everywhere.update(lease_token=F("lease_token") + 1)
    connection.close()


def lost(clock, server):
    """Sent, and nobody knows whether it arrived; it didn't."""
    work_runs()
    server.refuses_batches = error(529, "overloaded_error")
    work_batches(clock, after=limits.BATCH_GATHER)
    server.refuses_batches = None
