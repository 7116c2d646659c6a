"""The calls of a batch: those that are still wanted are sent, and each one's answer and cost is kept once."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core import states
from config.core.clock import utc_now
from pipeline import limits
from pipeline.generate.model import replies
from pipeline.generate.model.batches.patient_client import (
    accounting_facts,
    ask_of,
    lock_gathering_batch,
    reply_json,
)
from pipeline.generate.model.call_ledger import record_call
from pipeline.generate.model.client import request_of
from pipeline.generate.model.metered_client import LostLease
from pipeline.generate.model.spending_caps import room_of
from pipeline.models import BatchedCall, BatchedCallOutcome, GenerationStatus, ModelBatch
from pipeline.writers.base import Accounted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.writers.base import CallRecord
    from pipeline.writers.model_calls import ModelRequest

PATH: Final = "/v1/messages/batches"
_SHARED_LEAST: Final = 3
"""An hour in the cache costs twice the words and each reading a tenth: from three calls on it is cheaper."""
_OUTCOMES: Final[Mapping[str, str]] = {"errored": "failed", "canceled": "cancelled", "expired": "expired"}


def arm_requests(batch: ModelBatch) -> list[dict[str, Any]]:
    """`waiting → sending`, committed before anything is sent; the requests to send, none where nobody wants any.

    What the caps leave no room for, and what is over a batch's size, waits in the next one.
    """
    now = utc_now()
    with transaction.atomic():
        ModelBatch.everywhere.select_for_update(of=("self",)).get(pk=batch.pk)
        wanted = _wanted(batch)
        if not wanted:
            return []
        fitting = _fitting(batch, wanted)
        states.move(batch, "sending", under_lease=True, sending_since=now, size=len(fitting))
        left = batch.calls.filter(outcome="").exclude(pk__in=[call.pk for call in fitting])
        if left.exists():
            left.update(batch=lock_gathering_batch(batch.workspace_id, is_own_key=batch.is_own_key, now=now))
    return _requests(fitting)


def arm_unlisted_requests(batch: ModelBatch) -> list[dict[str, Any]]:
    """What is sent once more, after the service's list didn't show it: the calls that are still wanted of those that
    it was armed with. They have their room in the caps already.

    Other sizes that it was sent with are kept: its earlier sending may be in the list later.
    """
    with transaction.atomic():
        wanted = _wanted(batch)
        earlier = sorted({*batch.sizes, batch.size} - {len(wanted)})
        if not batch.under_lease().update(size=len(wanted), sizes=earlier):
            raise LostLease
        batch.size, batch.sizes = len(wanted), earlier
    return _requests(wanted)


def _requests(calls: Sequence[BatchedCall]) -> list[dict[str, Any]]:
    asks = [(call, ask_of(call.asked)) for call in calls]
    shared = Counter(_prefix(ask) for _, ask in asks)
    return [
        {
            "custom_id": call.pk.hex,
            "params": request_of(ask, cache="1h" if shared[_prefix(ask)] >= _SHARED_LEAST else None),
        }
        for call, ask in asks
    ]


def _wanted(batch: ModelBatch) -> list[BatchedCall]:
    """The first calls that somebody waits for, of those that are looked at together; those before them that nobody does end as unsent."""
    while True:
        calls = list(
            batch.calls.filter(outcome="")
            .select_related("generation")
            .order_by("pk")[: limits.BATCH_CALLS_READ]
        )
        wanted = [call for call in calls if _is_wanted(call)]
        for call in calls:
            if not _is_wanted(call):
                BatchedCall.everywhere.filter(pk=call.pk).update(
                    outcome="unsent", asked=accounting_facts(call.asked)
                )
        if wanted or not calls:
            return wanted


def _is_wanted(call: BatchedCall) -> bool:
    run = call.generation
    is_running = run is not None and run.status == GenerationStatus.RUNNING
    return is_running and not call.is_late and "messages" in call.asked


def _fitting(batch: ModelBatch, calls: Sequence[BatchedCall]) -> Sequence[BatchedCall]:
    """From the first on; one call may go beyond a cap, as one that is asked live may."""
    room = room_of(batch)
    taken = 0
    for call in calls[: limits.BATCH_CALLS]:
        if taken and room is not None and call.most_micro_usd > room:
            break
        room = None if room is None else room - call.most_micro_usd
        taken += 1
    return calls[:taken]


def _prefix(ask: ModelRequest) -> str:
    """By what the service keeps a prefix: model, form of the answer, and the marked words."""
    words = json.dumps([ask.model, ask.schema, ask.system], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()


def results_in(words: str) -> dict[str, Mapping[str, Any]]:
    """By `custom_id`; lines that say nothing are left out."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in words.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("result"), dict):
            found[str(row.get("custom_id"))] = row["result"]
    return found


def are_our_results(batch: ModelBatch, results: Mapping[str, Any]) -> bool:
    return any(call.pk.hex in results for call in batch.calls.only("pk"))


def store_results(batch: ModelBatch, results: Mapping[str, Mapping[str, Any]]) -> None:
    """Answers and costs in the caller's transaction; a call that has an outcome already is left as it is.

    One that was left out of a later sending has cost something where this is an earlier one.
    """
    begun = batch.sending_since or batch.created_at
    spent = round((utc_now() - begun).total_seconds() * 1000)
    for call in (
        batch.calls.select_for_update(of=("self",))
        .filter(outcome__in=["", BatchedCallOutcome.UNSENT])
        .order_by("pk")
    ):
        result = results.get(call.pk.hex)
        if result is not None:
            _keep(batch, call, result, latency_ms=spent)


def _keep(batch: ModelBatch, call: BatchedCall, result: Mapping[str, Any], *, latency_ms: int) -> None:
    ask = ask_of(call.asked)
    kind = result.get("type")
    reply = None
    record: CallRecord
    if kind == "succeeded":
        outcome = "answered"
        body = json.dumps(result.get("message"))
        try:
            read = replies.read_reply(ask, body, 200, "", latency_ms=latency_ms, mode="batch")
        except Accounted as error:
            outcome, record = "failed", error.calls[0]
        else:
            record = read.record
            # Who asked by himself meanwhile, or is over, needs no words any more: it is only paid for.
            is_read = call.outcome == "" and not call.is_late and call.generation_id is not None
            reply = reply_json(read) if is_read else None
    else:
        outcome = _OUTCOMES.get(str(kind), "failed")
        record = replies.unanswered_call(ask, outcome, latency_ms=latency_ms, mode="batch")
    BatchedCall.everywhere.filter(pk=call.pk).update(
        outcome=outcome, reply=reply, asked=accounting_facts(call.asked)
    )
    record_call(
        record,
        workspace_id=batch.workspace_id,
        generation_id=call.generation_id,
        is_own_key=batch.is_own_key,
    )
