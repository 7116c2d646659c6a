"""The brief of a raw item: asked for once, by the first of its runs that needs it, and shared by all the others."""

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
from pipeline.generate.checkpoint import as_json, brief_from, source_text, try_to_store_answer
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
    from pipeline.generate.checkpoint import Run, RunMaterial
    from pipeline.plugins import NeedsReconnect
    from pipeline.writers.base import Writer

AWAIT: Final = timedelta(seconds=2)
"""How often a run looks whether the other one has its answer; the answer itself wakes it at once."""


def find_material(run: Run) -> RunMaterial:
    """Store the brief with the run, asked for or found. Raises `TryLater` while another run is asking for it."""
    generation = run.generation
    assert generation.raw_item_id is not None  # noqa: S101  for the types; it is a run of a raw item
    source = source_text(generation)

    def keep(brief: Any, usage: Mapping[str, Any]) -> bool:
        return try_to_store_answer(generation, run.then, brief=brief, brief_usage=usage)

    find_brief(generation, run.writer, source, run.client, raw_item_id=generation.raw_item_id, keep=keep)
    return _material(run, source)


def read_material(run: Run) -> RunMaterial:
    return _material(run, source_text(run.generation))


def _material(run: Run, source: SourceText) -> RunMaterial:
    brief = run.engine.told(brief_from(run.generation.answers["brief"]), source)
    return run.resting_on(brief, source)


def find_brief(
    generation: Generation,
    writer: Writer,
    source: SourceText,
    client: Any,
    *,
    raw_item_id: UUID,
    keep: Callable[[Any, Mapping[str, Any]], bool],
) -> None:
    """The brief of one raw item, handed to `keep` with its usage in the transaction in which it is kept for all.

    `keep` answers False where the lease is lost. Raises `TryLater` while another run is asking for it.
    """
    if writer.offline:
        # It costs nothing, and the answer is the same each time.
        answer = writer.brief(source, client=client)
        is_stored = keep(asdict(answer.brief), asdict(answer.usage))
    else:
        shared = _take(generation, writer, source, raw_item_id)
        if shared.content is None:
            crash_point("generate.asking")
            answer = writer.brief(source, client=client)
            crash_point("generate.answered")
            _keep(shared, answer, keep)
            return
        found = Usage(**(shared.usage or {}))
        # Who asked has paid for it: each call's cost stands with one item.
        free = replace(found, input_tokens=0, output_tokens=0, cost_micro_usd=0)
        is_stored = keep(shared.content, asdict(free))
    if not is_stored:
        raise LostLease


def read_kept_brief(writer: Writer, source: SourceText, raw_item_id: UUID) -> Any:
    """The brief that this reading of the raw item came to, as it was kept; None where it isn't kept.

    A reading by another model, or by other rules, is better than none: the newest one then.
    """
    rows = SharedBrief.everywhere.filter(raw_item_id=raw_item_id, content__isnull=False)
    same = rows.filter(key=_key(writer, source)).first()
    found: SharedBrief | None = same or rows.order_by("-id").first()
    return found.content if found is not None else None


def release_brief(generation: Generation, wait: timedelta | None = None) -> None:
    """It came to nothing: any run may ask; where the service named a wait, the others wait as long."""
    asked = SharedBrief.everywhere.filter(asked_by=generation, content__isnull=True)
    if wait is not None:
        asked.update(asked_until=work_queue.database_now() + wait)
    else:
        _free(asked, asked_by=None, asked_until=None)


def hold_for_batch(generation: Generation, until: datetime) -> None:
    """It sleeps until a batch has the answer: the runs that may wait too ask nobody meanwhile."""
    SharedBrief.everywhere.filter(asked_by=generation, content__isnull=True).update(asked_until=until)


def refuse_brief(generation: Generation, error: Refused | NeedsReconnect) -> None:
    """Nothing will come of this content: the runs that wait for it hear the same, and no other call is paid for."""
    if not isinstance(error, Refused):
        release_brief(generation)
        return
    if not generation.under_lease().exists():
        return
    with transaction.atomic():
        told = {"code": error.code, "message": error.message}
        asked = SharedBrief.everywhere.filter(asked_by=generation, content__isnull=True)
        _free(asked, refusal=told, refused_at=utc_now(), asked_by=None, asked_until=None)


def _free(asked: QuerySet[SharedBrief], **changes: Any) -> None:
    """Let go what this run was asking for, and wake who waits for it."""
    raw_item_ids = list(asked.values_list("raw_item_id", flat=True))
    if raw_item_ids and asked.update(**changes):
        for raw_item_id in raw_item_ids:
            _wake_the_others(raw_item_id)


def _take(generation: Generation, writer: Writer, source: SourceText, raw_item_id: UUID) -> SharedBrief:
    """The row with its content, or the row that is ours to fill. Raises `TryLater` or `Refused` where it is neither."""
    which = {"raw_item_id": raw_item_id, "key": _key(writer, source)}
    mine = SharedBrief(workspace_id=generation.workspace_id, **which)
    SharedBrief.everywhere.bulk_create([mine], ignore_conflicts=True)
    now = work_queue.database_now()
    until = now + timedelta(seconds=model_client.TIMEOUT_SECONDS + settings.LEASE_SECONDS)
    is_free = Q(asked_until=None) | Q(asked_until__lte=now) | Q(asked_by=generation)
    if not batches.is_patient(generation, utc_now()):
        # Somebody waits for this run: it asks at once what another one has put into a batch.
        is_free |= Q(asked_by__error__code=batches.AWAITED, asked_by__attempts=0)
    # A refusal holds for the runs that stood when it came; who retries afterwards asks anew.
    is_unrefused = Q(refused_at=None) | Q(refused_at__lt=generation.created_at)
    free = SharedBrief.everywhere.filter(is_free, is_unrefused, content__isnull=True, **which)
    is_ours = free.update(asked_by=generation, asked_until=until)
    row: SharedBrief | None = SharedBrief.everywhere.filter(**which).first()
    if row is None:
        message = "The raw item's content was deleted."
        raise Refused(message, code="source_deleted")
    if is_ours or row.content is not None:
        return row
    if row.refusal is not None and row.refused_at is not None and row.refused_at >= generation.created_at:
        raise Refused(row.refusal["message"], code=row.refusal["code"])
    message = "Another run of the same raw item asks the model; this one goes on with what it answers."
    asker = row.asked_by_id
    is_asleep = asker is not None and Generation.everywhere.filter(pk=asker, attempts=0).exists()
    wait = row.asked_until - now if is_asleep and row.asked_until is not None else AWAIT
    raise TryLater(message, code=BRIEF_AWAITED, after=max(wait, AWAIT))


def _key(writer: Writer, source: SourceText) -> str:
    """Whatever changes the answer: other words, another model or other rules are another brief."""
    told = asdict(replace(source, material=None))
    words = {name: value for name, value in told.items() if name not in {"stories", "material"}}
    read = json.dumps(words, ensure_ascii=True, sort_keys=True, default=str)
    how = (writer.kind, writer.prompt_version, settings.MODEL_BRIEF, read)
    return hashlib.sha256("\x00".join(how).encode()).hexdigest()


def _keep(
    shared: SharedBrief,
    answer: BriefAnswer,
    keep: Callable[[Any, Mapping[str, Any]], bool],
) -> None:
    """Keep it for all runs, and with this one, in one transaction: no kill can leave it paid for and lost."""
    brief, usage = as_json(asdict(answer.brief)), asdict(answer.usage)
    with transaction.atomic():
        # The raw item's lock: what was erased meanwhile must not come back as quotes of it.
        raw = RawItem.everywhere.select_for_update().get(pk=shared.raw_item_id)
        if raw.deleted_at is None:
            # Kept even where this task has lost its run meanwhile: it is paid for, whoever goes on.
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
        _wake_the_others(shared.raw_item_id)
    if not is_stored:
        raise LostLease


def _wake_the_others(raw_item_id: UUID) -> None:
    now = utc_now()
    several = GenerationInput.everywhere.filter(raw_item_id=raw_item_id).values("generation_id")
    with transaction.atomic():
        # What sleeps has no attempts; what has is in somebody's hand. Skipped where locked: its holder is at it.
        waiting = Generation.everywhere.select_for_update(skip_locked=True).filter(
            Q(raw_item_id=raw_item_id) | Q(pk__in=several),
            status=GenerationStatus.RUNNING,
            attempts=0,
            wake_at__gt=now,
            error__code=BRIEF_AWAITED,
        )
        ids = list(waiting.order_by("pk").values_list("pk", flat=True))
        if Generation.everywhere.filter(pk__in=ids).update(wake_at=now):
            dispatcher.wake()
