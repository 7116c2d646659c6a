"""Tries a mapping on a body, and replays stored deliveries with the current mapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import transaction

from config.core.errors import Conflict, Detail, Invalid, NotFound
from pipeline.ingest import plan_and_estimate
from pipeline.ingest.inbound_deliveries.receive import (
    DeliveryResult,
    IncomingDelivery,
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

    from pipeline.generate.generation_plan import GenerationPlan

TRIAL_SETTINGS: Final = ("mapping", "defaults")
"""Settings of a webhook source that can be tried before they are stored."""


@dataclass(frozen=True)
class Trial:
    """The result of trying settings on a body.

    `fields` are those of the raw item; `plan` holds the items that would be made of it and their price.
    """

    outcome: Literal["taken", "ignored", "failed"]
    fields: Mapping[str, Any] | None = None
    preset: str = ""
    notes: Sequence[Mapping[str, str]] = ()
    reason: Mapping[str, str] | None = None
    plan: GenerationPlan | None = None


def try_settings(
    source: Source,
    *,
    payload: Mapping[str, Any] | None = None,
    delivery: InboundDelivery | None = None,
    wishes: Mapping[str, Any] | None = None,
    now: datetime,
) -> Trial:
    """Return the result of the source's settings, changed by `wishes`, for a body. Stores and spends nothing.

    Raises `Invalid` on `mapping.<field>` if a setting is invalid, `Conflict` if the delivery's body is gone,
    and the error of `body_formats.read` if it can't be read.
    """
    # A setting tried as `None` counts as not set, even if the source has it.
    overrides = {name: value for name, value in (wishes or {}).items() if value is not None}
    unchanged = {name: value for name, value in source.config.items() if name not in (wishes or {})}
    config = {**unchanged, **_clean_settings(overrides)}
    trial_source = Source(workspace_id=source.workspace_id, type=source.type, config=config)
    if delivery is not None:
        parsed = read_body(trial_source, _incoming_of(delivery))
        if parsed.problem is not None:
            raise parsed.problem
        reading = parsed.reading
    else:
        reading = entries.map_payload(payload or {}, {}, config)
    if reading is None:
        raise NotFound
    notes = [{"code": note.code, "message": note.message} for note in reading.notes]
    cause = reading.ignored or reading.failed
    if reading.entry is None:
        reason = {"code": cause.code, "message": cause.message} if cause else None
        return Trial("ignored" if reading.ignored else "failed", None, reading.by, notes, reason)
    defaults = WorkspaceDefaults.objects.of(source.workspace).get()
    plan = plan_and_estimate.estimate(
        source.workspace, source, content_of(reading.entry), defaults=defaults, now=now
    )
    return Trial("taken", shorten_entry(reading.entry), reading.by, notes, plan=plan)


def replay(delivery: InboundDelivery, *, now: datetime) -> DeliveryResult:
    """Process a stored delivery again with the current mapping.

    A raw item that was made of it before is recognized by its identity. Raises `Conflict` if the body is gone
    or the source was deleted.
    """
    with transaction.atomic():
        # Lock the delivery before the raw item, as everywhere, so that two transactions can't deadlock.
        row: InboundDelivery = InboundDelivery.everywhere.select_for_update().get(pk=delivery.pk)
        source: Source = Source.everywhere.select_related("workspace__plan").get(pk=row.source_id)
        if source.deleted_at is not None:
            raise Conflict.because("deleted", "The source of this delivery was deleted.", field=None)
        incoming = _incoming_of(row)
        received = process_delivery(source, row, read_body(source, incoming), kind=row.verification, now=now)
        InboundDelivery.everywhere.filter(pk=row.pk).update(replayed_at=now)
        row.replayed_at = now
    return received


def _incoming_of(delivery: InboundDelivery) -> IncomingDelivery:
    """Return the stored delivery as it came. Raises `Conflict` if its body is gone."""
    if delivery.body is None:
        message = "Its body is no longer kept; have it sent again."
        if delivery.status == InboundDeliveryStatus.REFUSED:
            message = "It failed the verification, so nothing of it was kept."
        raise Conflict.because("body_gone", message, field=None)
    return IncomingDelivery(bytes(delivery.body), {**delivery.head, "content-type": delivery.content_type})


def _clean_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tried settings, cleaned. Raises `Invalid`, with fields named without "config.", for faults."""
    try:
        return PLUGIN.clean_config(dict(settings))
    except ConfigInvalid as error:
        problems = [
            Detail((problem.field or "").removeprefix("config.") or None, problem.code, problem.message)
            for problem in error.problems
        ]
        raise Invalid(*problems) from error
