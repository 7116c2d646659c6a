"""Deliveries looked at again: what a mapping would make of one, and making it with the mapping of now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import transaction

from config.core.errors import Conflict, Detail, Invalid, NotFound
from pipeline.ingest import generation_plan
from pipeline.ingest.inbound_deliveries.receive import (
    IncomingDelivery,
    Received,
    content_of,
    process_delivery,
    read_body,
    shorten_entry,
)
from pipeline.models import InboundDelivery, InboundDeliveryStatus, Source, WorkspaceDefaults
from pipeline.plugins import ConfigInvalid
from pipeline.sources.webhook import PLUGIN, entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pipeline.generate.acceptance import GenerationPlan

WISHES: Final = ("mapping", "defaults")
"""What of a webhook source's settings can be tried before it is stored."""


@dataclass(frozen=True)
class Trial:
    """What would become of a body. `fields` are those of the raw item; `plan` what would be made of it, at what price."""

    outcome: Literal["taken", "ignored", "failed"]
    fields: Mapping[str, Any] | None = None
    preset: str = ""
    notes: Sequence[Mapping[str, str]] = ()
    reason: Mapping[str, str] | None = None
    plan: GenerationPlan | None = None


def try_on(
    source: Source,
    *,
    payload: Mapping[str, Any] | None = None,
    delivery: InboundDelivery | None = None,
    wishes: Mapping[str, Any] | None = None,
    now: datetime,
) -> Trial:
    """What the source's settings, or those of `wishes`, make of a body; stores and spends nothing.

    Raises `Invalid` on `mapping.<field>`, `Conflict` for a delivery without its body, and what a body that can't be
    read is refused with.
    """
    # What is wished as None is left out, though the source has it.
    given = {name: value for name, value in (wishes or {}).items() if value is not None}
    kept = {name: value for name, value in source.config.items() if name not in (wishes or {})}
    config = {**kept, **_checked(given)}
    tried = Source(workspace_id=source.workspace_id, type=source.type, config=config)
    if delivery is not None:
        read = read_body(tried, _again(delivery))
        if read.problem is not None:
            raise read.problem
        reading = read.reading
    else:
        reading = entries.read(payload or {}, {}, config)
    if reading is None:
        raise NotFound
    notes = [{"code": note.code, "message": note.message} for note in reading.notes]
    why = reading.ignored or reading.failed
    if reading.entry is None:
        reason = {"code": why.code, "message": why.message} if why else None
        return Trial("ignored" if reading.ignored else "failed", None, reading.by, notes, reason)
    defaults = WorkspaceDefaults.objects.of(source.workspace).get()
    plan = generation_plan.estimate(
        source.workspace, source, content_of(reading.entry), defaults=defaults, now=now
    )
    return Trial("taken", shorten_entry(reading.entry), reading.by, notes, plan=plan)


def replay(delivery: InboundDelivery, *, now: datetime) -> Received:
    """Go the same way again, with the mapping of now; what it made before is met by its identity.

    Raises `Conflict` where the body is gone, or the source was deleted.
    """
    with transaction.atomic():
        # The delivery before the raw item, as everywhere.
        row: InboundDelivery = InboundDelivery.everywhere.select_for_update().get(pk=delivery.pk)
        source: Source = Source.everywhere.select_related("workspace__plan").get(pk=row.source_id)
        if source.deleted_at is not None:
            raise Conflict.because("deleted", "The source of this delivery was deleted.", field=None)
        incoming = _again(row)
        received = process_delivery(source, row, read_body(source, incoming), kind=row.verification, now=now)
        InboundDelivery.everywhere.filter(pk=row.pk).update(replayed_at=now)
        row.replayed_at = now
    return received


def _again(delivery: InboundDelivery) -> IncomingDelivery:
    if delivery.body is None:
        why = (
            "It failed the verification, so nothing of it was kept."
            if delivery.status == InboundDeliveryStatus.REFUSED
            else "Its body is no longer kept; have it sent again."
        )
        raise Conflict.because("body_gone", why, field=None)
    return IncomingDelivery(bytes(delivery.body), {**delivery.head, "content-type": delivery.content_type})


def _checked(wishes: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return PLUGIN.clean_config(dict(wishes))
    except ConfigInvalid as error:
        problems = [
            Detail((problem.field or "").removeprefix("config.") or None, problem.code, problem.message)
            for problem in error.problems
        ]
        raise Invalid(*problems) from error
