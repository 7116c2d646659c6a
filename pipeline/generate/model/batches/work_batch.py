"""Advances a batch of calls: sends it, finds it again after a lost answer, polls it, and reads its results."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.utils.dateparse import parse_datetime

from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from pipeline import limits
from pipeline.generate.model import spending_caps
from pipeline.generate.model.batches import requests_and_results
from pipeline.generate.model.batches.patient_client import accounting_facts, wake_runs
from pipeline.generate.model.metered_client import LostLease, open_batch_client
from pipeline.models import BatchedCall, Generation, ModelBatch, ModelBatchStatus
from pipeline.plugins import NeedsReconnect, Refused, TryLater
from pipeline.states import OPEN_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from django.db.models import QuerySet

    from pipeline.generate.model.client import AccountClient

log = structlog.get_logger(__name__)

PATH: Final = requests_and_results.PATH
_CLOCK_SKEW: Final = timedelta(minutes=10)
"""The most by which the service's clock and ours may differ."""
_MAX_PAGES: Final = 10
"""The most pages of the service's list that are read for one lost batch, with 100 batches each."""
_MAX_DELETED_BATCHES: Final = 200
"""The most batches that are deleted by one call."""


def advance_batch(batch: ModelBatch) -> None:
    """Take a claimed batch one step further; each step is committed before the next.

    A failure ends the batch or lets it sleep until its next try. A batch that another task has is left to it.
    """
    crash_point("batches.claimed")
    try:
        with open_batch_client(batch) as client:
            if client is None:
                message = "There is no longer a key for the model."
                raise NeedsReconnect(message, code="model_key_missing")
            _advance(batch, client)
    except TryLater as error:
        batch.sleep_until(utc_now() + (error.after or limits.BATCH_POLL), attempts=0)
    except (Refused, NeedsReconnect) as error:
        _decline(batch, error)
    except (states.Overtaken, LostLease) as error:
        log.info("overtaken", batch=batch.pk.hex, reason=str(error))


def give_up(batch: ModelBatch) -> None:
    """Fail a batch whose task kept crashing; its runs ask directly then."""
    try:
        _end(batch, "failed", {"code": "gave_up", "message": "The batch failed several times."})
    except states.Overtaken as error:
        log.info("overtaken", batch=batch.pk.hex, reason=str(error))


def forget(now: datetime) -> int:
    """Delete up to `_MAX_DELETED_BATCHES` batches that ended long ago, and return how many were deleted.

    The costs of their calls stay in the ledger.
    """
    old = ModelBatch.everywhere.filter(
        status=ModelBatchStatus.ENDED, ended_at__lt=now - limits.MODEL_BATCHES_KEPT
    )
    batch_ids = list(old.order_by("ended_at").values_list("pk", flat=True)[:_MAX_DELETED_BATCHES])
    if batch_ids:
        ModelBatch.everywhere.filter(pk__in=batch_ids).delete()
    return len(batch_ids)


def _advance(batch: ModelBatch, client: AccountClient) -> None:
    if batch.status == ModelBatchStatus.WAITING:
        spending_caps.refuse_batch(batch)
        _send(batch, client, requests_and_results.arm_requests(batch))
    elif batch.status == ModelBatchStatus.SENDING:
        vendor_id = _look_up(batch, client)
        if vendor_id is not None:
            _record(batch, vendor_id, is_found=True)
        else:
            spending_caps.refuse_batch(batch)
            _send(batch, client, requests_and_results.arm_unlisted_requests(batch))
    else:
        _poll(batch, client)


def _send(batch: ModelBatch, client: AccountClient, requests: list[dict[str, Any]]) -> None:
    """Send the batch in one paid call, or end it if it has no requests.

    A refusal ends the batch too, because nothing is paid for. The outcome is unknown until the batch's id is
    stored, so a task that takes over looks it up first.
    """
    if not requests:
        _end(batch, "unsent", None)
        return
    crash_point("batches.armed")
    try:
        body = client.send_batch_call("POST", PATH, {"requests": requests})
    except (Refused, NeedsReconnect) as error:
        _fail(batch, error)
        return
    answer = _parse_object(body)
    crash_point("batches.sent")
    _record(batch, str(answer.get("id") or ""), is_found=False)


def _record(batch: ModelBatch, vendor_id: str, *, is_found: bool) -> None:
    """Record that the service has the batch; if the answer names no id, let a later try look the batch up."""
    if not vendor_id:
        batch.sleep_until(utc_now() + limits.BATCH_POLL, attempts=0)
        return
    states.move(
        batch,
        "sent",
        under_lease=True,
        vendor_id=vendor_id,
        is_found=is_found,
        wake_at=utc_now() + limits.BATCH_POLL,
        attempts=0,
    )
    crash_point("batches.recorded")


def _look_up(batch: ModelBatch, client: AccountClient) -> str | None:
    """Return the service's id of a listed batch that may be this one, or `None` if there is none.

    The list shows no ids of calls, so a batch with as many calls that belongs to no other row is taken; its
    results prove it. Raises `TryLater` if the only match may also be another of our batches, so that nothing is
    sent again meanwhile.
    """
    since = (batch.sending_since or batch.created_at) - _CLOCK_SKEW
    sizes = {batch.size, *batch.sizes}
    same_account = {
        "is_own_key": batch.is_own_key,
        **({"workspace_id": batch.workspace_id} if batch.is_own_key else {}),
    }
    identified = _others(batch).exclude(vendor_id="")
    known = set(
        identified.exclude(status=ModelBatchStatus.SENT, is_found=True).values_list("vendor_id", flat=True)
    )
    known |= set(batch.not_ours)
    unproven = set(
        identified.filter(status=ModelBatchStatus.SENT, is_found=True).values_list("vendor_id", flat=True)
    )
    # Of two lost batches the one that was sent first is looked up first.
    is_second = (
        _others(batch)
        .filter(
            status=ModelBatchStatus.SENDING,
            size__in=sizes,
            sending_since__lt=batch.sending_since or since,
            **same_account,
        )
        .exists()
    )
    vendor_id, is_doubtful = None, False
    for row in _listed_batches(client):
        if _parse_time(row.get("created_at")) < since:
            break
        if row.get("id") in known or _call_count(row) not in sizes:
            continue
        if is_second or row["id"] in unproven:
            is_doubtful = True
        else:
            # The list is newest first; the oldest match is taken, because of lost batches this one was
            # sent first.
            vendor_id = str(row["id"])
    if vendor_id is None and is_doubtful:
        message = "Another batch of this account may be this one; it is looked for again."
        raise TryLater(message, code="batch_in_doubt")
    return vendor_id


def _listed_batches(client: AccountClient) -> Iterator[dict[str, Any]]:
    """Yield the service's list, newest first; a page is asked for when the one before it has been read."""
    last_id = ""
    for _ in range(_MAX_PAGES):
        page = _parse_object(
            client.send_batch_call("GET", f"{PATH}?limit=100{f'&after_id={last_id}' if last_id else ''}")
        )
        rows = [row for row in page.get("data") or () if isinstance(row, dict)]
        yield from rows
        if not page.get("has_more") or not rows:
            return
        last_id = str(rows[-1].get("id"))


def _poll(batch: ModelBatch, client: AccountClient) -> None:
    """Ask the service how far the batch is, and store the results of an ended one; else sleep and ask again.

    A batch that no run waits for any more is cancelled. A batch that was taken from the list is searched again
    if it turns out to be another one.
    """
    path = f"{PATH}/{batch.vendor_id}"
    if batch.is_found and _others(batch).filter(vendor_id=batch.vendor_id, is_found=False).exists():
        _search_again(batch)
        return
    remote_batch = _parse_object(client.send_batch_call("GET", path))
    if remote_batch.get("processing_status") != "ended":
        if not batch.is_cancelled and not batch.is_found and not _is_awaited(batch):
            # No run waits any more: calls that haven't begun need not be paid for. A batch that was only
            # found in the list may be another one, and isn't cancelled.
            client.send_batch_call("POST", f"{path}/cancel")
            batch.under_lease().update(is_cancelled=True)
        batch.sleep_until(utc_now() + limits.BATCH_POLL, attempts=0)
        return
    results = requests_and_results.parse_results(client.send_batch_call("GET", f"{path}/results"))
    crash_point("batches.read")
    if results and batch.is_found and not requests_and_results.are_our_results(batch, results):
        _search_again(batch)
        return
    with transaction.atomic():
        requests_and_results.store_results(batch, results)
        # Results prove that a batch found in the list is this one.
        _end(batch, "expired", None, is_found=batch.is_found and not results)
    crash_point("batches.answered")


def _search_again(batch: ModelBatch) -> None:
    """Move the batch back to `sending`, because the batch that was taken from the list is another one."""
    states.move(
        batch,
        "sending",
        under_lease=True,
        vendor_id="",
        is_found=False,
        not_ours=[*batch.not_ours, batch.vendor_id],
        wake_at=utc_now(),
        attempts=0,
    )


def _others(batch: ModelBatch) -> QuerySet[ModelBatch]:
    return ModelBatch.everywhere.exclude(pk=batch.pk)


def _is_awaited(batch: ModelBatch) -> bool:
    open_calls = batch.calls.filter(outcome="", is_late=False)
    return bool(open_calls.filter(generation__status__in=sorted(OPEN_RUNS)).exists())


def _decline(batch: ModelBatch, error: Refused | NeedsReconnect) -> None:
    """Fail a batch whose call was refused; its runs get the reason when they ask directly.

    A batch that was sent, or may have been, first sleeps until its next try for two days (`BATCH_PATIENCE`),
    unless the service says that it doesn't exist.
    """
    now = utc_now()
    is_awaited = now - (batch.sending_since or batch.created_at) < limits.BATCH_PATIENCE
    is_gone = batch.status == ModelBatchStatus.SENT and error.platform_status == 404
    if batch.status != ModelBatchStatus.WAITING and not is_gone and is_awaited:
        batch.sleep_until(now + limits.BATCH_POLL, attempts=0)
        return
    _fail(batch, error)


def _fail(batch: ModelBatch, error: Refused | NeedsReconnect) -> None:
    try:
        _end(batch, "failed", {"code": error.code, "message": error.message})
    except states.Overtaken as overtaken:
        log.info("overtaken", batch=batch.pk.hex, reason=str(overtaken))


def _end(batch: ModelBatch, outcome: str, error: dict[str, str] | None, **changes: Any) -> None:
    """End the batch, with this outcome for its open calls, and wake every run that waits for one of them.

    Raises `Overtaken` if another task has the batch.
    """
    now = utc_now()
    with transaction.atomic():
        states.move(
            batch, "ended", under_lease=True, wake_at=None, attempts=0, error=error, ended_at=now, **changes
        )
        for call in batch.calls.filter(outcome=""):
            BatchedCall.everywhere.filter(pk=call.pk).update(
                outcome=outcome, asked=accounting_facts(call.asked)
            )
        runs = batch.calls.exclude(generation=None).values("generation_id")
        wake_runs(Generation.everywhere.filter(pk__in=runs))


def _parse_object(body: str) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        message = "The model's service answered with something that isn't a batch."
        raise TryLater(message, code="model_unreadable")
    return parsed


def _call_count(row: dict[str, Any]) -> int:
    """Return how many calls the listed batch has, or -1 if the row doesn't say."""
    counts = row.get("request_counts")
    if not isinstance(counts, dict):
        return -1
    return sum(count for count in counts.values() if isinstance(count, int))


def _parse_time(value: object) -> datetime:
    """Return the time, or now if it can't be read, so that the row is still compared."""
    parsed = parse_datetime(value) if isinstance(value, str) else None
    return parsed if parsed is not None and parsed.tzinfo is not None else utc_now()
