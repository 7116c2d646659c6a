"""Selects the calls of a batch that are sent, and stores each call's reply and cost once."""

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
from pipeline.generate.model.spending_caps import remaining_micro_usd
from pipeline.models import BatchedCall, BatchedCallOutcome, GenerationStatus, ModelBatch
from pipeline.writers.base import Accounted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.writers.base import CallRecord
    from pipeline.writers.model_calls import ModelRequest

PATH: Final = "/v1/messages/batches"
_MIN_CALLS_PER_CACHED_PREFIX: Final = 3
"""From this many calls on a one-hour cache entry is cheaper.

Writing it costs twice the input price, reading it a tenth.
"""
_OUTCOMES: Final[Mapping[str, str]] = {"errored": "failed", "canceled": "cancelled", "expired": "expired"}


def arm_requests(batch: ModelBatch) -> list[dict[str, Any]]:
    """Move the batch from `waiting` to `sending`, and return the requests to send after the commit.

    If no run waits for any of its calls, return an empty list and leave the batch as it is. Calls that exceed
    the caps or a batch's size move to the next batch.
    """
    now = utc_now()
    with transaction.atomic():
        ModelBatch.everywhere.select_for_update(of=("self",)).get(pk=batch.pk)
        wanted = _wanted_calls(batch)
        if not wanted:
            return []
        fitting = _calls_within_caps(batch, wanted)
        states.move(batch, "sending", under_lease=True, sending_since=now, size=len(fitting))
        remaining = batch.calls.filter(outcome="").exclude(pk__in=[call.pk for call in fitting])
        if remaining.exists():
            remaining.update(
                batch=lock_gathering_batch(batch.workspace_id, is_own_key=batch.is_own_key, now=now)
            )
    return _build_requests(fitting)


def arm_unlisted_requests(batch: ModelBatch) -> list[dict[str, Any]]:
    """Store the size of the next sending, and return the requests that runs still wait for.

    Call it after the service's list didn't show the batch. The calls count towards the caps already. The sizes of
    earlier sendings are kept, because the earlier batch may appear in the list later. Raises `LostLease` if
    another task has the batch.
    """
    with transaction.atomic():
        wanted = _wanted_calls(batch)
        earlier = sorted({*batch.sizes, batch.size} - {len(wanted)})
        if not batch.under_lease().update(size=len(wanted), sizes=earlier):
            raise LostLease
        batch.size, batch.sizes = len(wanted), earlier
    return _build_requests(wanted)


def _build_requests(calls: Sequence[BatchedCall]) -> list[dict[str, Any]]:
    asks = [(call, ask_of(call.asked)) for call in calls]
    calls_per_prefix = Counter(_prefix(ask) for _, ask in asks)
    return [
        {
            "custom_id": call.pk.hex,
            "params": request_of(
                ask, cache="1h" if calls_per_prefix[_prefix(ask)] >= _MIN_CALLS_PER_CACHED_PREFIX else None
            ),
        }
        for call, ask in asks
    ]


def _wanted_calls(batch: ModelBatch) -> list[BatchedCall]:
    """Return the batch's first open calls that a run still waits for, up to `BATCH_CALLS_READ`.

    Calls that no run waits for, among and before them, end as unsent.
    """
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


def _calls_within_caps(batch: ModelBatch, calls: Sequence[BatchedCall]) -> Sequence[BatchedCall]:
    """Return the first calls that the caps allow, at most `BATCH_CALLS`.

    The first one may exceed a cap, as a live one may.
    """
    remaining = remaining_micro_usd(batch)
    count = 0
    for call in calls[: limits.BATCH_CALLS]:
        if count and remaining is not None and call.most_micro_usd > remaining:
            break
        remaining = None if remaining is None else remaining - call.most_micro_usd
        count += 1
    return calls[:count]


def _prefix(ask: ModelRequest) -> str:
    """Return a hash of the model, the form of the answer and the system prompt, by which the service caches."""
    prefix_json = json.dumps([ask.model, ask.schema, ask.system], sort_keys=True)
    return hashlib.sha256(prefix_json.encode()).hexdigest()


def parse_results(body: str) -> dict[str, Mapping[str, Any]]:
    """Return the results by `custom_id`, one from each line of the body; unreadable lines are left out."""
    results: dict[str, Mapping[str, Any]] = {}
    for line in body.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("result"), dict):
            results[str(row.get("custom_id"))] = row["result"]
    return results


def are_our_results(batch: ModelBatch, results: Mapping[str, Any]) -> bool:
    """Return whether one of the results belongs to a call of this batch."""
    return any(call.pk.hex in results for call in batch.calls.only("pk"))


def store_results(batch: ModelBatch, results: Mapping[str, Mapping[str, Any]]) -> None:
    """Store replies and costs in the caller's transaction.

    A call with an outcome is left as it is, except an unsent one: a call that was left out of a later sending is
    paid for if these are the results of an earlier one.
    """
    started = batch.sending_since or batch.created_at
    elapsed_ms = round((utc_now() - started).total_seconds() * 1000)
    for call in (
        batch.calls.select_for_update(of=("self",))
        .filter(outcome__in=["", BatchedCallOutcome.UNSENT])
        .order_by("pk")
    ):
        result = results.get(call.pk.hex)
        if result is not None:
            _store_result(batch, call, result, latency_ms=elapsed_ms)


def _store_result(
    batch: ModelBatch, call: BatchedCall, result: Mapping[str, Any], *, latency_ms: int
) -> None:
    """Store one call's outcome and cost, and its reply if a run still needs it; erase its text."""
    ask = ask_of(call.asked)
    kind = result.get("type")
    reply = None
    record: CallRecord
    if kind == "succeeded":
        outcome = "answered"
        body = json.dumps(result.get("message"))
        try:
            parsed = replies.read_reply(ask, body, 200, "", latency_ms=latency_ms, mode="batch")
        except Accounted as error:
            outcome, record = "failed", error.calls[0]
        else:
            record = parsed.record
            # A run that asked directly meanwhile, or is over, needs no reply any more: it is only accounted
            # for.
            is_needed = call.outcome == "" and not call.is_late and call.generation_id is not None
            reply = reply_json(parsed) if is_needed else None
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
