"""Asks the model through a batch for a run that may wait.

The run sleeps until its answer is there, and asks directly when its time is up.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import IntegrityError, transaction

from config.core import dispatcher, states
from config.core.clock import utc_now
from config.core.errors import Detail
from pipeline import limits
from pipeline.models import BatchedCall, Generation, GenerationStatus, ModelBatch
from pipeline.writers.base import CallRecord
from pipeline.writers.model_calls import Awaited, ModelReply, ModelRequest
from pipeline.writers.prices import Tokens, cost_micro_usd

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from pipeline.writers.model_calls import ModelChoice, ModelClient

AWAITED: Final = "model_batch_awaited"
"""The code in `error` of a run that sleeps until its batch is answered."""
BATCH_HOURS: Final = "batch_hours"
"""The key of a source's `config` that says how many hours its runs may wait for the cheaper answer."""
_CHARACTERS_PER_TOKEN: Final = 2
"""Below the average of every supported language, so that the estimate of a call's cost is an upper bound."""
_ACCOUNTING_FIELDS: Final = ("step", "model", "prompt_version", "variants")


def waits_until(config: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the end of the time in which a run may wait for a batch, or `None` if it may not.

    `config` is that of the run's source.
    """
    hours = config.get(BATCH_HOURS)
    return now + timedelta(hours=hours) if hours else None


def is_patient(run: Generation, now: datetime) -> bool:
    """Return whether the run may still wait for a batch."""
    return run.batch_until is not None and now < run.batch_until


@dataclass
class PatientClient:
    """Answers a run's requests from its batches."""

    run: Generation
    live: ModelClient
    """The client that is asked directly once the run's time is up or its batch gave no answer."""
    is_own_key: bool

    @property
    def choice(self) -> ModelChoice:
        return self.live.choice

    def ask(self, ask: ModelRequest) -> ModelReply:
        """Return the reply from a batch, or from `live`. Raises `Awaited` while a batch has the call.

        A call that no batch has is added to the one that is being gathered. The same request finds the same call.
        A repair counts as the same request whatever it quotes, because the checks may read differently by the
        time of the answer. Raises `Overtaken` if another task has the run, and the errors of `live`.
        """
        key = _key(ask)
        call = BatchedCall.everywhere.filter(generation=self.run, key=key).first()
        if call is not None and call.reply is not None:
            return replace(_reply(call.reply), variants=tuple(call.asked.get("variants", ())))
        now = utc_now()
        if not is_patient(self.run, now) or (call is not None and call.outcome):
            self._stop_batching(now)
            return self.live.ask(ask)
        if call is None:
            _add_to_batch(self.run, ask, key, is_own_key=self.is_own_key, now=now)
        assert self.run.batch_until is not None  # noqa: S101  is_patient
        message = (
            "It waits for the model's answer, which costs half in a batch. It is asked at once when the time for it "
            "is up."
        )
        raise Awaited(message, code=AWAITED, after=self.run.batch_until - now)

    def _stop_batching(self, now: datetime) -> None:
        """Make the run ask directly from now on, so that none of its calls is made twice."""
        if not is_patient(self.run, now) and is_decided(self.run):
            return
        with transaction.atomic():
            BatchedCall.everywhere.filter(generation=self.run, outcome="").update(is_late=True)
            if not self.run.under_lease().update(batch_until=now):
                detail = Detail("lease_token", "changed_meanwhile", "Another worker has the run.")
                raise states.Overtaken(detail)
        self.run.batch_until = now


def client_for(run: Generation, client: ModelClient | None, *, is_own_key: bool) -> ModelClient | None:
    """Return a `PatientClient` for a run that may wait for batches, else `client` itself."""
    return client if client is None or run.batch_until is None else PatientClient(run, client, is_own_key)


def is_decided(run: Generation) -> bool:
    """Return whether none of the run's calls in batches is still open."""
    return not BatchedCall.everywhere.filter(generation=run, outcome="", is_late=False).exists()


def forget_calls(runs: Any) -> None:
    """Erase the requests and replies of runs that are over or whose source was erased.

    `runs` is a queryset or a list of ids. The rows stay without text, because a call on its way is paid for when
    its answer comes.
    """
    calls = BatchedCall.everywhere.filter(generation__in=runs)
    calls.update(reply=None, is_late=True)
    for call in calls.only("pk", "asked"):
        if "messages" in call.asked:
            BatchedCall.everywhere.filter(pk=call.pk).update(asked=accounting_facts(call.asked))


def wake_runs(runs: QuerySet[Generation], codes: Collection[str] = (AWAITED,)) -> None:
    """Wake those of the runs that sleep with one of these error codes."""
    now = utc_now()
    if runs.filter(
        status=GenerationStatus.RUNNING, attempts=0, wake_at__gt=now, error__code__in=codes
    ).update(wake_at=now):
        dispatcher.wake()


def accounting_facts(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a call that accounting needs, without any text."""
    return {name: asked[name] for name in _ACCOUNTING_FIELDS if name in asked}


def ask_of(asked: Mapping[str, Any]) -> ModelRequest:
    """Return the stored call as a request; its text is empty if it was erased."""
    return ModelRequest(
        step=asked["step"],
        model=asked["model"],
        system=tuple(asked.get("system", ())),
        messages=tuple(asked.get("messages", ())),
        schema=asked.get("schema", {}),
        max_tokens=asked.get("max_tokens", 0),
        effort=asked.get("effort", ""),
        prompt_version=asked["prompt_version"],
        variants=tuple(asked.get("variants", ())),
    )


def reply_json(reply: ModelReply) -> dict[str, Any]:
    """Return the reply as it is stored with its call."""
    return asdict(reply)


def _reply(stored: Mapping[str, Any]) -> ModelReply:
    return ModelReply(**{**stored, "record": CallRecord(**stored["record"])})


def _key(ask: ModelRequest) -> str:
    """Return a hash of the request without its variants; a repair's is without its last message too.

    Only one repair ever follows an answer, so the conversation before it tells it from every other request.
    """
    opening, *following = ask.messages
    asked = asdict(replace(ask, messages=(opening, *following[:-1])))
    del asked["variants"]
    request_json = json.dumps(asked, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(request_json.encode()).hexdigest()


def _max_cost_micro_usd(ask: ModelRequest) -> int:
    """Return the most that the call can cost in a batch, in millionths of a US dollar."""
    characters = len(json.dumps([ask.system, ask.messages, ask.schema], ensure_ascii=False))
    tokens = Tokens(cache_write_1h=characters // _CHARACTERS_PER_TOKEN, output=ask.max_tokens)
    return cost_micro_usd(tokens, ask.model, "batch")


def _add_to_batch(run: Generation, ask: ModelRequest, key: str, *, is_own_key: bool, now: datetime) -> None:
    """Add the call to the batch that is being gathered, under its lock, so that the batch isn't sent meanwhile."""
    with transaction.atomic():
        batch = lock_gathering_batch(run.workspace_id, is_own_key=is_own_key, now=now)
        call = BatchedCall(
            workspace_id=run.workspace_id,
            batch=batch,
            generation=run,
            key=key,
            asked=json.loads(json.dumps(asdict(ask))),
            most_micro_usd=_max_cost_micro_usd(ask),
            created_at=now,
        )
        BatchedCall.everywhere.bulk_create([call], ignore_conflicts=True)


def lock_gathering_batch(workspace_id: UUID, *, is_own_key: bool, now: datetime) -> ModelBatch:
    """Lock and return the batch that is being gathered; create it if there is none."""
    lookup = {"workspace_id": workspace_id, "is_own_key": is_own_key, "status": "waiting"}
    rows = ModelBatch.everywhere.select_for_update(of=("self",))
    batch: ModelBatch | None = rows.filter(**lookup).first()
    if batch is None:
        sent_at = now + limits.BATCH_GATHER
        try:
            with transaction.atomic():
                ModelBatch.everywhere.create(**lookup, due_at=sent_at, wake_at=sent_at, created_at=now)
        except IntegrityError:
            # Another run began it at the same moment.
            pass
        batch = rows.get(**lookup)
    return batch
