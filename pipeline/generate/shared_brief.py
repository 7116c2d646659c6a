"""Shares a model's brief of a raw item: the first run that needs it asks, and the others get its answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from config.core import dispatcher, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from pipeline.generate.model import batches
from pipeline.generate.model import client as model_client
from pipeline.generate.model.metered_client import LostLease
from pipeline.generate.model.spending_caps import BRIEF_AWAITED
from pipeline.models import Generation, GenerationInput, GenerationStatus, RawItem, SharedBrief
from pipeline.plugins import Refused, TryLater
from pipeline.writers.base import BriefAnswer, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from pipeline.engines.base import SourceText
    from pipeline.plugins import NeedsReconnect
    from pipeline.writers.base import Writer

AWAIT: Final = timedelta(seconds=2)
"""The least time after which a waiting run looks for the answer again; the answer itself wakes it at once."""


def share_brief(
    generation: Generation,
    writer: Writer,
    source: SourceText,
    client: Any,
    *,
    raw_item_id: UUID,
    keep: Callable[[Any, Mapping[str, Any]], bool],
) -> None:
    """Ask the model for the brief, or pass on another run's answer; see `run_state.find_brief` for its errors."""
    shared = _claim_or_read(generation, writer, source, raw_item_id)
    if shared.content is None:
        crash_point("generate.asking")
        answer = writer.brief(source, client=client)
        crash_point("generate.answered")
        _store_shared_brief(shared, answer, keep)
        return
    usage = Usage(**(shared.usage or {}))
    # The run that asked has paid for it: each call's cost belongs to one item.
    free_usage = replace(usage, input_tokens=0, output_tokens=0, cost_micro_usd=0)
    if not keep(shared.content, asdict(free_usage)):
        raise LostLease


def read_kept_brief(writer: Writer, source: SourceText, raw_item_id: UUID) -> Any:
    """Return the stored brief for this text and this writer, else the newest one of the raw item, or `None`.

    A brief by another model, by other rules or of another version of the text is better than none.
    """
    briefs = SharedBrief.everywhere.filter(raw_item_id=raw_item_id, content__isnull=False)
    exact_match = briefs.filter(key=_key(writer, source)).first()
    shared: SharedBrief | None = exact_match or briefs.order_by("-id").first()
    return shared.content if shared is not None else None


def release_brief(generation: Generation, wait: timedelta | None = None) -> None:
    """Let other runs ask for the briefs that this run was asking for, at once or after `wait`."""
    pending_briefs = SharedBrief.everywhere.filter(asked_by=generation, content__isnull=True)
    if wait is not None:
        pending_briefs.update(asked_until=work_queue.database_now() + wait)
    else:
        _release_claims(pending_briefs, asked_by=None, asked_until=None)


def hold_for_batch(generation: Generation, until: datetime) -> None:
    """Keep this run's claim on the brief until its batch is answered, so that other runs don't ask."""
    SharedBrief.everywhere.filter(asked_by=generation, content__isnull=True).update(asked_until=until)


def refuse_brief(generation: Generation, error: Refused | NeedsReconnect) -> None:
    """Store the refusal, so that runs waiting for this brief fail alike and no further call is paid for.

    A `NeedsReconnect` only releases the brief. Nothing is written if the run is no longer this task's.
    """
    if not isinstance(error, Refused):
        release_brief(generation)
        return
    if not generation.under_lease().exists():
        return
    with transaction.atomic():
        refusal = {"code": error.code, "message": error.message}
        pending_briefs = SharedBrief.everywhere.filter(asked_by=generation, content__isnull=True)
        _release_claims(
            pending_briefs, refusal=refusal, refused_at=utc_now(), asked_by=None, asked_until=None
        )


def _release_claims(pending_briefs: QuerySet[SharedBrief], **changes: Any) -> None:
    """Write the changes that release these briefs, and wake the runs that wait for them."""
    raw_item_ids = list(pending_briefs.values_list("raw_item_id", flat=True))
    if raw_item_ids and pending_briefs.update(**changes):
        for raw_item_id in raw_item_ids:
            _wake_waiting_runs(raw_item_id)


def _claim_or_read(
    generation: Generation, writer: Writer, source: SourceText, raw_item_id: UUID
) -> SharedBrief:
    """Return the brief's row, which either has content or is now claimed by this run.

    Raises `TryLater` while another run has the claim, and `Refused` if the brief was refused after this run was
    created or the content was deleted.
    """
    lookup = {"raw_item_id": raw_item_id, "key": _key(writer, source)}
    new_row = SharedBrief(workspace_id=generation.workspace_id, **lookup)
    SharedBrief.everywhere.bulk_create([new_row], ignore_conflicts=True)
    now = work_queue.database_now()
    until = now + timedelta(seconds=model_client.TIMEOUT_SECONDS + settings.LEASE_SECONDS)
    is_unclaimed = Q(asked_until=None) | Q(asked_until__lte=now) | Q(asked_by=generation)
    if not batches.is_patient(generation, utc_now()):
        # A person waits for this run, so it asks at once even if another run put the call into a batch.
        is_unclaimed |= Q(asked_by__error__code=batches.AWAITED, asked_by__attempts=0)
    # A refusal holds for the runs that existed when it came; one that is retried later asks again.
    is_unrefused = Q(refused_at=None) | Q(refused_at__lt=generation.created_at)
    claimable = SharedBrief.everywhere.filter(is_unclaimed, is_unrefused, content__isnull=True, **lookup)
    is_ours = claimable.update(asked_by=generation, asked_until=until)
    row: SharedBrief | None = SharedBrief.everywhere.filter(**lookup).first()
    if row is None:
        message = "The raw item's content was deleted."
        raise Refused(message, code="source_deleted")
    if is_ours or row.content is not None:
        return row
    if row.refusal is not None and row.refused_at is not None and row.refused_at >= generation.created_at:
        raise Refused(row.refusal["message"], code=row.refusal["code"])
    message = "Another run of the same raw item is asking the model. This one continues with its answer."
    asker = row.asked_by_id
    is_asleep = asker is not None and Generation.everywhere.filter(pk=asker, attempts=0).exists()
    wait = row.asked_until - now if is_asleep and row.asked_until is not None else AWAIT
    raise TryLater(message, code=BRIEF_AWAITED, after=max(wait, AWAIT))


def _key(writer: Writer, source: SourceText) -> str:
    """Return a hash of all that changes the answer: the text, the writer with its rules, and the model."""
    source_fields = asdict(replace(source, material=None))
    del source_fields["stories"], source_fields["material"]
    source_json = json.dumps(source_fields, ensure_ascii=True, sort_keys=True, default=str)
    key_parts = (writer.kind, writer.prompt_version, settings.MODEL_BRIEF, source_json)
    return hashlib.sha256("\x00".join(key_parts).encode()).hexdigest()


def _store_shared_brief(
    shared: SharedBrief,
    answer: BriefAnswer,
    keep: Callable[[Any, Mapping[str, Any]], bool],
) -> None:
    """Store the brief for all runs and with this one, in one transaction, and wake the waiting runs.

    So no kill can lose an answer that was paid for. The shared brief isn't stored if the content was deleted.
    Raises `LostLease`, after the shared brief is stored, if `keep` says that the lease is lost.
    """
    # As it is read back from JSON, with tuples as lists; `run_state.as_json` stands above this module.
    brief, usage = json.loads(json.dumps(asdict(answer.brief))), asdict(answer.usage)
    with transaction.atomic():
        # The raw item's lock: content that was erased meanwhile must not come back as quotes in a brief.
        raw = RawItem.everywhere.select_for_update().get(pk=shared.raw_item_id)
        if raw.deleted_at is None:
            # Stored even if this task has lost its lease meanwhile: it is paid for, and the next task can use
            # it.
            unanswered = SharedBrief.everywhere.filter(pk=shared.pk, content__isnull=True)
            unanswered.update(
                content=brief,
                usage=usage,
                refusal=None,
                refused_at=None,
                asked_by=None,
                asked_until=None,
            )
        is_stored = keep(brief, usage)
        _wake_waiting_runs(shared.raw_item_id)
    if not is_stored:
        raise LostLease


def _wake_waiting_runs(raw_item_id: UUID) -> None:
    """Wake the runs that sleep until another run has the raw item's brief."""
    now = utc_now()
    multi_source_runs = GenerationInput.everywhere.filter(raw_item_id=raw_item_id).values("generation_id")
    with transaction.atomic():
        # A run without attempts is asleep; a task has the others. A locked row is skipped: its holder is working
        # on it.
        waiting = Generation.everywhere.select_for_update(skip_locked=True).filter(
            Q(raw_item_id=raw_item_id) | Q(pk__in=multi_source_runs),
            status=GenerationStatus.RUNNING,
            attempts=0,
            wake_at__gt=now,
            error__code=BRIEF_AWAITED,
        )
        ids = list(waiting.order_by("pk").values_list("pk", flat=True))
        if Generation.everywhere.filter(pk__in=ids).update(wake_at=now):
            dispatcher.wake()
