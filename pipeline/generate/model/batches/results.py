"""The results of a batch, in whatever order: each call's answer and cost, kept once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from config.core.clock import utc_now
from pipeline.generate.model import account, client
from pipeline.generate.model.batches.requests import ask_of, reply_json, told
from pipeline.models import BatchedCall, BatchedCallOutcome
from pipeline.writers.base import Accounted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import ModelBatch
    from pipeline.writers.base import CallRecord

_OUTCOMES: Final[Mapping[str, str]] = {"errored": "failed", "canceled": "cancelled", "expired": "expired"}


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


def are_ours(batch: ModelBatch, results: Mapping[str, Any]) -> bool:
    return any(call.pk.hex in results for call in batch.calls.only("pk"))


def keep(batch: ModelBatch, results: Mapping[str, Mapping[str, Any]]) -> None:
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
            read = client.read_reply(ask, body, 200, "", latency_ms=latency_ms, mode="batch")
        except Accounted as error:
            outcome, record = "failed", error.calls[0]
        else:
            record = read.record
            # Who asked by himself meanwhile, or is over, needs no words any more: it is only paid for.
            is_read = call.outcome == "" and not call.is_late and call.generation_id is not None
            reply = reply_json(read) if is_read else None
    else:
        outcome = _OUTCOMES.get(str(kind), "failed")
        record = client.unanswered(ask, outcome, latency_ms=latency_ms, mode="batch")
    BatchedCall.everywhere.filter(pk=call.pk).update(outcome=outcome, reply=reply, asked=told(call.asked))
    account.book(
        record,
        workspace_id=batch.workspace_id,
        generation_id=call.generation_id,
        is_own_key=batch.is_own_key,
    )
