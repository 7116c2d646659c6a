"""The task of a batch: it is sent, found again after a lost answer, asked after, and read."""

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
    from datetime import datetime

    from django.db.models import QuerySet

    from pipeline.generate.model.client import AccountClient

log = structlog.get_logger(__name__)

PATH: Final = requests_and_results.PATH
_SKEW: Final = timedelta(minutes=10)
"""The service's clock and ours may differ by so much."""
_PAGES: Final = 10
AT_ONCE: Final = 200


def advance_batch(batch: ModelBatch) -> None:
    """Work one claimed batch by one step; each step is committed before the next."""
    crash_point("batches.claimed")
    try:
        with open_batch_client(batch) as client:
            if client is None:
                message = "There is no key for the model any more."
                raise NeedsReconnect(message, code="model_key_missing")
            _work(batch, client)
    except TryLater as error:
        batch.sleep_until(utc_now() + (error.after or limits.BATCH_POLL), attempts=0)
    except (Refused, NeedsReconnect) as error:
        _decline(batch, error)
    except (states.Overtaken, LostLease) as error:
        log.info("overtaken", batch=batch.pk.hex, reason=str(error))


def give_up(batch: ModelBatch) -> None:
    """A batch that broke again and again ends; its runs ask by themselves."""
    try:
        _end(batch, "failed", {"code": "gave_up", "message": "Working it broke several times."})
    except states.Overtaken as error:
        log.info("overtaken", batch=batch.pk.hex, reason=str(error))


def forget(now: datetime) -> int:
    """Some batches that ended long ago; their calls' costs are in the books."""
    old = ModelBatch.everywhere.filter(
        status=ModelBatchStatus.ENDED, ended_at__lt=now - limits.MODEL_BATCHES_KEPT
    )
    some = list(old.order_by("ended_at").values_list("pk", flat=True)[:AT_ONCE])
    if some:
        ModelBatch.everywhere.filter(pk__in=some).delete()
    return len(some)


def _work(batch: ModelBatch, client: AccountClient) -> None:
    if batch.status == ModelBatchStatus.WAITING:
        spending_caps.refuse_batch(batch)
        _send(batch, client, requests_and_results.arm_requests(batch))
    elif batch.status == ModelBatchStatus.SENDING:
        found = _look_up(batch, client)
        if found is not None:
            _record(batch, found, is_found=True)
        else:
            spending_caps.refuse_batch(batch)
            _send(batch, client, requests_and_results.arm_unlisted_requests(batch))
    else:
        _look_after(batch, client)


def _send(batch: ModelBatch, client: AccountClient, requests: list[dict[str, Any]]) -> None:
    """The one call that pays. What becomes of it isn't known until its id is: the next hand looks it up first."""
    if not requests:
        _end(batch, "unsent", None)
        return
    crash_point("batches.armed")
    try:
        words = client.send_batch_call("POST", PATH, {"requests": requests})
    except (Refused, NeedsReconnect) as error:
        # It was not taken in.
        _fail(batch, error)
        return
    answer = _object(words)
    crash_point("batches.sent")
    _record(batch, str(answer.get("id") or ""), is_found=False)


def _record(batch: ModelBatch, vendor_id: str, *, is_found: bool) -> None:
    if not vendor_id:
        # It answered something else: whether it has the calls is looked up.
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
    """The id of a batch in the service's list that may be this one; None where there is none.

    The list shows no ids of calls, so one with as many calls that nobody else has is taken; its results prove it.
    Raises `TryLater` where it shows one that another batch of ours may be as well, until that is known: none is sent
    again meanwhile.
    """
    since = (batch.sending_since or batch.created_at) - _SKEW
    sizes = {batch.size, *batch.sizes}
    mine = {
        "is_own_key": batch.is_own_key,
        **({"workspace_id": batch.workspace_id} if batch.is_own_key else {}),
    }
    taken = _others(batch).exclude(vendor_id="")
    known = set(
        taken.exclude(status=ModelBatchStatus.SENT, is_found=True).values_list("vendor_id", flat=True)
    )
    known |= set(batch.not_ours)
    unproven = set(
        taken.filter(status=ModelBatchStatus.SENT, is_found=True).values_list("vendor_id", flat=True)
    )
    # Of two that were lost the one that was sent first looks first.
    is_second = (
        _others(batch)
        .filter(
            status=ModelBatchStatus.SENDING,
            size__in=sizes,
            sending_since__lt=batch.sending_since or since,
            **mine,
        )
        .exists()
    )
    last, found, is_doubtful = "", None, False
    for _ in range(_PAGES):
        page = _object(
            client.send_batch_call("GET", f"{PATH}?limit=100{f'&after_id={last}' if last else ''}")
        )
        rows = [row for row in page.get("data") or () if isinstance(row, dict)]
        for row in rows:
            if _moment(row.get("created_at")) < since:
                return _sure(found, is_doubtful=is_doubtful)
            if row.get("id") in known or _size(row) not in sizes:
                continue
            if is_second or row["id"] in unproven:
                is_doubtful = True
            else:
                # The oldest of them: this one was sent first.
                found = str(row["id"])
        if not page.get("has_more") or not rows:
            break
        last = str(rows[-1].get("id"))
    return _sure(found, is_doubtful=is_doubtful)


def _sure(found: str | None, *, is_doubtful: bool) -> str | None:
    if found is None and is_doubtful:
        message = "Another batch of this account may be this one; it is looked for again."
        raise TryLater(message, code="batch_in_doubt")
    return found


def _look_after(batch: ModelBatch, client: AccountClient) -> None:
    path = f"{PATH}/{batch.vendor_id}"
    if batch.is_found and _others(batch).filter(vendor_id=batch.vendor_id, is_found=False).exists():
        _look_again(batch)
        return
    standing = _object(client.send_batch_call("GET", path))
    if standing.get("processing_status") != "ended":
        if not batch.is_cancelled and not batch.is_found and not _is_awaited(batch):
            # Everybody has asked by themselves: what isn't begun need not be paid for. One that was found may be
            # somebody else's.
            client.send_batch_call("POST", f"{path}/cancel")
            batch.under_lease().update(is_cancelled=True)
        batch.sleep_until(utc_now() + limits.BATCH_POLL, attempts=0)
        return
    results = requests_and_results.results_in(client.send_batch_call("GET", f"{path}/results"))
    crash_point("batches.read")
    if results and batch.is_found and not requests_and_results.are_our_results(batch, results):
        _look_again(batch)
        return
    with transaction.atomic():
        requests_and_results.store_results(batch, results)
        # Its results have proven it.
        _end(batch, "expired", None, is_found=batch.is_found and not results)
    crash_point("batches.answered")


def _look_again(batch: ModelBatch) -> None:
    """What was found is somebody else's."""
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
    """Nothing was sent: the runs hear why when they ask by themselves. What was sent, or may have been, is asked after
    for two days.
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
    """End it; calls without an outcome get this one, and every run that waits is woken."""
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


def _object(words: str) -> dict[str, Any]:
    try:
        found = json.loads(words)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        message = "The model's service answered with something that isn't a batch."
        raise TryLater(message, code="model_unreadable")
    return found


def _size(row: dict[str, Any]) -> int:
    counts = row.get("request_counts")
    return sum(one for one in counts.values() if isinstance(one, int)) if isinstance(counts, dict) else -1


def _moment(said: object) -> datetime:
    """Now where it can't be read: such a row is looked at."""
    found = parse_datetime(said) if isinstance(said, str) else None
    return found if found is not None and found.tzinfo is not None else utc_now()
