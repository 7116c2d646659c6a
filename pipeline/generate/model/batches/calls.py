"""What a batch sends: the calls that are still wanted, as many as the caps leave room for."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core import limits, states
from config.core.clock import utc_now
from pipeline.generate.model import account
from pipeline.generate.model.batches.requests import ask_of, gathering, told
from pipeline.generate.model.client import request_of
from pipeline.models import BatchedCall, GenerationStatus, ModelBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.writers.model_calls import Ask

PATH: Final = "/v1/messages/batches"
_SHARED_LEAST: Final = 3
"""An hour in the cache costs twice the words and each reading a tenth: from three calls on it is cheaper."""


def arm(batch: ModelBatch) -> list[dict[str, Any]]:
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
            left.update(batch=gathering(batch.workspace_id, is_own_key=batch.is_own_key, now=now))
    return _requests(fitting)


def arm_again(batch: ModelBatch) -> list[dict[str, Any]]:
    """What is sent once more, after the service's list didn't show it: the calls that are still wanted of those that
    it was armed with. They have their room in the caps already.

    Other sizes that it was sent with are kept: its earlier sending may be in the list later.
    """
    with transaction.atomic():
        wanted = _wanted(batch)
        earlier = sorted({*batch.sizes, batch.size} - {len(wanted)})
        if not batch.under_lease().update(size=len(wanted), sizes=earlier):
            raise account.LostLease
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
                BatchedCall.everywhere.filter(pk=call.pk).update(outcome="unsent", asked=told(call.asked))
        if wanted or not calls:
            return wanted


def _is_wanted(call: BatchedCall) -> bool:
    run = call.generation
    is_running = run is not None and run.status == GenerationStatus.RUNNING
    return is_running and not call.is_late and "messages" in call.asked


def _fitting(batch: ModelBatch, calls: Sequence[BatchedCall]) -> Sequence[BatchedCall]:
    """From the first on; one call may go beyond a cap, as one that is asked live may."""
    room = account.room_of(batch)
    taken = 0
    for call in calls[: limits.BATCH_CALLS]:
        if taken and room is not None and call.most_micro_usd > room:
            break
        room = None if room is None else room - call.most_micro_usd
        taken += 1
    return calls[:taken]


def _prefix(ask: Ask) -> str:
    """By what the service keeps a prefix: model, form of the answer, and the marked words."""
    words = json.dumps([ask.model, ask.schema, ask.system], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()
