"""Exports the pipeline's part of a workspace in the API's forms, without secrets and secret addresses."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from accounts.export import iterate_rows
from config.core.clock import utc_now
from config.core.datetimes import format_utc, format_utc_or_none
from config.core.ids import encode
from pipeline import mailing, resources
from pipeline.generate import raw_item_outcomes
from pipeline.media import files
from pipeline.models import (
    Asset,
    GeneratedItem,
    MailDelivery,
    Mailing,
    ModelCall,
    Outlet,
    Persona,
    Publication,
    PublishQueue,
    RawBody,
    RawItem,
    Recurrence,
    Revision,
    SavedView,
    Series,
    Source,
    SourceEntry,
    Subscriber,
    Topic,
    Upload,
    WorkspaceDefaults,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.db.models import QuerySet

    from accounts.export import Part
    from accounts.models import Workspace

_RAW_ITEMS_PER_BATCH: Final = 200
_CALL_FIELDS: Final = ("asked_model", "model", "outcome", "input_tokens", "output_tokens", "cost_micro_usd")


def collect_parts(workspace: Workspace) -> Iterator[Part]:
    """Yield the pipeline's part of an export: the settings, the content, the mails, the schedule, the files."""
    yield from _settings_parts(workspace)
    yield from _content_parts(workspace)
    yield from _mail_parts(workspace)
    yield from _schedule_parts(workspace)
    calls = ModelCall.objects.of(workspace)
    yield "model_calls.jsonl", (_model_call_json(row) for row in iterate_rows(calls))
    rows = Upload.objects.of(workspace).values(*resources.Upload.columns())
    yield "uploads.jsonl", (_upload_json(row) for row in iterate_rows(rows))
    yield from _media_files(workspace)


def _settings_parts(workspace: Workspace) -> Iterator[Part]:
    """Yield the defaults, personas, saved views, topics, outlets and sources."""
    defaults = WorkspaceDefaults.objects.of(workspace).first()
    outlets = defaults.outlets if defaults else []
    persona_id = defaults.persona_id if defaults else None
    if defaults:
        yield "defaults.jsonl", [_defaults_json(defaults)]
    personas = Persona.objects.of(workspace).filter(deleted_at=None).values(*resources.Persona.columns())
    yield (
        "personas.jsonl",
        (
            resources.Persona.serialize(row, is_default=row["id"] == persona_id)
            for row in iterate_rows(personas)
        ),
    )
    views = SavedView.objects.of(workspace).order_by("name").values("name", "filters")
    yield "saved_views.jsonl", list(views)
    topics = Topic.objects.of(workspace).filter(deleted_at=None).values(*resources.Topic.columns())
    yield "topics.jsonl", (resources.Topic.serialize(row) for row in iterate_rows(topics))
    rows = Outlet.objects.of(workspace).filter(deleted_at=None).values(*resources.Outlet.columns())
    yield "outlets.jsonl", (_outlet_json(row, outlets) for row in iterate_rows(rows))
    rows = Source.objects.of(workspace).filter(deleted_at=None).values(*resources.Source.columns())
    yield "sources.jsonl", (_source_json(row) for row in iterate_rows(rows))


def _content_parts(workspace: Workspace) -> Iterator[Part]:
    """Yield the sources' entries, the raw items, the generated items and their publications."""
    source_entries = SourceEntry.objects.of(workspace).filter(source__deleted_at=None)
    entries = source_entries.values(*resources.SourceEntry.columns())
    yield "source_entries.jsonl", (resources.SourceEntry.serialize(row) for row in iterate_rows(entries))
    rows = RawItem.objects.of(workspace).filter(deleted_at=None).values(*raw_item_outcomes.COLUMNS)
    yield "raw_items.jsonl", _serialize_raw_items(workspace, rows)
    bodies = RawBody.objects.of(workspace).filter(raw_item__deleted_at=None)
    yield "raw_bodies.jsonl", (_body_json(row) for row in iterate_rows(bodies))
    now = utc_now()
    rows = (
        GeneratedItem.objects.of(workspace).filter(deleted_at=None).values(*resources.GeneratedItem.columns())
    )
    requires_approval = workspace.requires_approval
    yield (
        "generated_items.jsonl",
        (
            resources.GeneratedItem.serialize(row, requires_approval=requires_approval, now=now)
            for row in iterate_rows(rows)
        ),
    )
    revisions = Revision.objects.of(workspace).filter(item__deleted_at=None)
    yield "revisions.jsonl", (_revision_json(row) for row in iterate_rows(revisions))
    rows = Publication.objects.of(workspace).values(*resources.Publication.columns())
    yield "publications.jsonl", (resources.Publication.serialize(row, now=now) for row in iterate_rows(rows))


def _mail_parts(workspace: Workspace) -> Iterator[Part]:
    """Yield the subscribers, the mailings and the mail to each recipient."""
    subscribers = Subscriber.objects.of(workspace)
    yield "subscribers.jsonl", (_subscriber_json(row) for row in iterate_rows(subscribers))
    mailings = Mailing.objects.of(workspace)
    yield "mailings.jsonl", (_mailing_json(row) for row in iterate_rows(mailings))
    mails = MailDelivery.objects.of(workspace).select_related("subscriber")
    yield "mails.jsonl", (_mail_json(row) for row in iterate_rows(mails))


def _schedule_parts(workspace: Workspace) -> Iterator[Part]:
    """Yield the series, recurrences and queues."""
    yield (
        "series.jsonl",
        (
            resources.Series.serialize(row)
            for row in iterate_rows(Series.objects.of(workspace).filter(deleted_at=None))
        ),
    )
    recurrences = Recurrence.objects.of(workspace)
    yield "recurrences.jsonl", (resources.Recurrence.serialize(row) for row in iterate_rows(recurrences))
    yield (
        "queues.jsonl",
        (
            _queue_json(row)
            for row in iterate_rows(PublishQueue.objects.of(workspace).values(*resources.Queue.columns()))
        ),
    )


def _media_files(workspace: Workspace) -> Iterator[Part]:
    """Yield the files of items and uploads that are in the media folder."""
    assets = Asset.objects.of(workspace).filter(revoked_at=None, item__deleted_at=None)
    for asset in iterate_rows(assets):
        path = files.path_of(asset.path)
        if path.is_file():
            yield f"media/{encode('gen', asset.item_id)}/{asset.name}", path

    for upload in iterate_rows(Upload.objects.of(workspace)):
        path = files.path_of(upload.path)
        if path.is_file():
            yield f"uploads/{encode('upl', upload.pk)}{path.suffix}", path


def _upload_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the upload without its address, which is a secret."""
    payload = resources.Upload.serialize(row)
    del payload["url"]
    return payload


def _serialize_raw_items(workspace: Workspace, rows: QuerySet[Any]) -> Iterator[dict[str, Any]]:
    """Yield raw items with their outcomes, which are read in batches."""
    remaining = iterate_rows(rows)
    while batch := list(islice(remaining, _RAW_ITEMS_PER_BATCH)):
        yield from raw_item_outcomes.serialize_raw_items(workspace, batch)


def _defaults_json(row: WorkspaceDefaults) -> dict[str, Any]:
    return {
        "persona": encode("per", row.persona_id),
        "engines": row.engines,
        "outlets": row.outlets,
        "late_policy": row.late_policy,
        "max_lateness_minutes": row.max_lateness_minutes,
    }


def _outlet_json(row: Mapping[str, Any], defaults: list[str]) -> dict[str, Any]:
    """Return the outlet without the feed's addresses, which are secret."""
    payload = resources.Outlet.serialize(row, is_default=encode("out", row["id"]) in defaults)
    del payload["feeds"]
    return payload


def _queue_json(row: Mapping[str, Any]) -> dict[str, Any]:
    outlets = Outlet.everywhere.filter(queue_id=row["id"], deleted_at=None).order_by("id")
    names = [encode("out", outlet_id) for outlet_id in outlets.values_list("id", flat=True)]
    return resources.Queue.serialize(row, outlets=names)


def _source_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source without its inbound address and the secret that verifies senders."""
    payload = resources.Source.serialize(row)
    del payload["inbound_url"]
    payload["config"] = {key: value for key, value in row["config"].items() if key != "verification"}
    return payload


def _body_json(row: RawBody) -> dict[str, Any]:
    return {
        "raw_item": encode("raw", row.raw_item_id),
        "content_version": row.number,
        "title": row.title,
        "body": row.body,
        "body_format": row.body_format,
        "created_at": format_utc(row.created_at),
    }


def _revision_json(row: Revision) -> dict[str, Any]:
    return {
        "generated_item": encode("gen", row.item_id),
        "revision": row.number,
        "title": row.title,
        "body": row.body,
        "body_format": row.body_format,
        "content": row.content,
        "overrides": row.overrides,
        "made_by": row.made_by,
        "created_at": format_utc(row.created_at),
    }


def _subscriber_json(row: Subscriber) -> dict[str, Any]:
    """Return the subscriber without the token, because it unsubscribes them."""
    return {
        "outlet": encode("out", row.outlet_id),
        "email": row.email,
        "status": row.status,
        "origin": row.origin,
        "created_at": format_utc(row.created_at),
        "confirmed_at": format_utc_or_none(row.confirmed_at),
        "ended_at": format_utc_or_none(row.ended_at),
        "reason": row.reason,
    }


def _mailing_json(row: Mailing) -> dict[str, Any]:
    return {
        "id": encode("mlg", row.pk),
        "outlet": encode("out", row.outlet_id),
        "publication": encode("pub", row.publication_id),
        "subject": row.subject,
        "status": row.status,
        "recipients": row.recipients,
        "counts": mailing.count_deliveries(row),
        "created_at": format_utc(row.created_at),
        "ended_at": format_utc_or_none(row.ended_at),
    }


def _mail_json(row: MailDelivery) -> dict[str, Any]:
    """Return a mail to one recipient; a mail without a mailing asked for confirmation."""
    return {
        "outlet": encode("out", row.outlet_id),
        "mailing": encode("mlg", row.mailing_id) if row.mailing_id else None,
        "email": row.subscriber.email if row.subscriber else None,
        "message_id": row.message_id,
        "status": row.status,
        "tries": row.tries,
        "code": row.code,
        "reply": row.reply,
        "created_at": format_utc(row.created_at),
        "sent_at": format_utc_or_none(row.sent_at),
        "bounced_at": format_utc_or_none(row.bounced_at),
    }


def _model_call_json(row: ModelCall) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(row, name) for name in _CALL_FIELDS}
    generation = row.generation_id
    return {
        "generation": None if generation is None else encode("gnr", generation),
        **values,
        "at": format_utc_or_none(row.created_at),
    }
