"""Receives a delivery: verifies the sender, stores the body for a while, and makes a raw item."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import transaction
from django.db.models import F, Q

from config.core import states
from config.core.crash_points import crash_point
from config.core.database.insert import insert_or_ignore
from config.core.datetimes import format_utc_or_none
from config.core.errors import AppError, Detail, Invalid
from config.core.ids import lowest_id_at, uuid7
from config.core.middleware import request_id
from pipeline import limits
from pipeline.ingest import raw_content, store_raw_item
from pipeline.ingest.inbound_deliveries import body_formats, secrets
from pipeline.models import (
    InboundDelivery,
    InboundDeliveryStatus,
    InboundSecret,
    Source,
    SourceStatus,
    WorkspaceDefaults,
)
from pipeline.sources.webhook import entries
from pipeline.sources.webhook.signatures import NotProven, verify

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from pipeline.sources.base import Entry, Note

Outcome = Literal["new", "duplicate", "revised", "ignored", "failed", "challenge"]
SERVICES_THAT_RETRY: Final = frozenset({"standard_webhooks", "github", "slack", "stripe", "ghost"})
"""The services that answer a 4xx with another try, or by giving up for good, and show it to no person."""
_STORED_HEADERS: Final = re.compile(
    r"content-type|user-agent|webhook-(?:id|timestamp)|idempotency-key"
    r"|x-(?:[a-z0-9-]{1,40}-)?(?:event|topic|delivery|retry-num|retry-reason|request-id)"
)
_MAX_HEADER_CHARACTERS: Final = 200
_MAX_SHOWN_CHARACTERS: Final = 500
ROWS_PER_DELETION: Final = 500
"""The most rows deleted in one statement, so that locks stay short however many rows are too old."""


class NotVerified(AppError):
    """Raised if the sender didn't prove itself."""

    code = "unauthenticated"


class NotVerifiable(AppError):
    """Raised if the source has no secret to verify senders by, or is paused."""

    code = "unavailable"


@dataclass(frozen=True)
class IncomingDelivery:
    """A POST request as it came; `headers` has lower-case names."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def content_type(self) -> str:
        """The request's content type, or an empty string if it has none."""
        return self.headers.get("content-type", "")


@dataclass(frozen=True)
class DeliveryResult:
    """The result of a delivery.

    `problem` is the reason why it failed; `challenge` is to be sent back to the sender; `kind` is the source's
    kind of verification.
    """

    outcome: Outcome
    delivery: InboundDelivery | None = None
    raw_item_id: UUID | None = None
    problem: AppError | None = None
    challenge: str = ""
    kind: str = "address"

    @property
    def shows_refusals(self) -> bool:
        """Whether the sender shows a refusal to a person who can act on it."""
        return self.kind not in SERVICES_THAT_RETRY


@dataclass(frozen=True)
class _ParsedBody:
    """A parsed body: its reading, or the problem why there is none."""

    reading: entries.MappedPayload | None
    problem: AppError | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


def receive(source: Source, incoming: IncomingDelivery, *, now: datetime) -> DeliveryResult:
    """Take in a delivery.

    The delivery and its raw item are written in one transaction. So a sender that got no answer and tries
    again finds nothing done, or its delivery is recognized by the sender's id or the identity of the raw item.
    Raises `NotVerifiable` if the source is paused or has no secret, and `NotVerified` if the sender didn't prove
    itself, after logging the delivery without its body.
    """
    if source.status == SourceStatus.PAUSED:
        message = "This source is paused; resume it and send again."
        raise NotVerifiable(Detail("status", "paused", message))
    kind = secrets.kind_of(source)
    sender_key = _verify_sender(source, kind, incoming, now)
    parsed = read_body(source, incoming)
    if kind == "slack" and parsed.payload.get("type") == "url_verification":
        return DeliveryResult(
            "challenge", challenge=str(parsed.payload.get("challenge", ""))[:1000], kind=kind
        )
    row = _new_row(source, kind, incoming, now)
    row.sender_key = sender_key or _event_id_in(kind, parsed.payload) or None
    with transaction.atomic():
        if insert_or_ignore(row):
            crash_point("inbound.stored")
        else:
            row = InboundDelivery.everywhere.select_for_update().get(source=source, sender_key=row.sender_key)
            if row.status != InboundDeliveryStatus.FAILED:
                InboundDelivery.everywhere.filter(pk=row.pk).update(repeats=F("repeats") + 1)
                outcome: Outcome = "ignored" if row.status == InboundDeliveryStatus.IGNORED else "duplicate"
                return DeliveryResult(outcome, row, row.raw_item_id, kind=kind)
        received = process_delivery(source, row, parsed, kind=kind, now=now)
    crash_point("inbound.taken")
    forget_bodies(source)
    return received


def read_body(source: Source, incoming: IncomingDelivery) -> _ParsedBody:
    """Parse the body with the source's current settings, or return the problem with it."""
    try:
        payload = body_formats.read(incoming.body, incoming.content_type)
    except AppError as problem:
        return _ParsedBody(None, problem)
    return _ParsedBody(entries.map_payload(payload, incoming.headers, source.config), payload=payload)


def process_delivery(
    source: Source, row: InboundDelivery, parsed: _ParsedBody, *, kind: str, now: datetime
) -> DeliveryResult:
    """Make a raw item of a delivery, unless its reading is ignored or fails, in the caller's transaction."""
    reading = parsed.reading
    if reading is None:
        return _fail(row, kind, parsed.problem or AppError())
    values: dict[str, Any] = {
        "preset": reading.by,
        "notes": [_as_json(note) for note in reading.notes],
        "made": shorten_entry(reading.entry) if reading.entry else None,
    }
    if reading.ignored is not None:
        received = DeliveryResult("ignored", row, kind=kind)
        return _finish(row, "ignored", received, reason=_as_json(reading.ignored), **values)
    if reading.entry is None:
        note = reading.failed
        code, message = (note.code, note.message) if note else ("nothing_found", "")
        return _fail(row, kind, Invalid.one(None, code, message), **values)
    workspace = source.workspace
    defaults = WorkspaceDefaults.objects.of(workspace).get()
    try:
        pushed = store_raw_item.push(
            workspace, source, content_of(reading.entry), defaults=defaults, when_short="wait", now=now
        )
    except AppError as problem:
        # Such a problem is an engine that is gone: the delivery can be replayed once the source is changed.
        return _fail(row, kind, problem, **values)
    raw_item_id = pushed.raw_item.pk
    if pushed.raw_item.deleted_at is not None:
        # A person had this content erased; sending it again doesn't bring it back.
        values |= {"body": None, "made": None}
    status = "duplicate" if pushed.outcome == "duplicate" else "taken"
    if status == "taken":
        Source.everywhere.filter(pk=source.pk).update(last_new_at=now)
    received = DeliveryResult(pushed.outcome, row, raw_item_id, kind=kind)
    return _finish(row, status, received, raw_item_id=raw_item_id, **values)


def content_of(entry: Entry) -> raw_content.RawContent:
    """Return the entry as content to store."""
    return raw_content.RawContent(
        external_id=entry.external_id or "",
        url=entry.url,
        title=entry.title,
        body=entry.body,
        body_format=entry.body_format,
        language=entry.language,
        author=entry.author,
        published_at=entry.published_at,
        media=[{"url": file.url, "type": file.type} for file in entry.media],
        metadata=dict(entry.metadata),
    )


def shorten_entry(entry: Entry) -> dict[str, Any]:
    """Return the entry's fields as JSON, with the body cut to `_MAX_SHOWN_CHARACTERS`."""
    return {
        "external_id": entry.external_id or None,
        "url": entry.url or None,
        "title": entry.title,
        "body": entry.body[:_MAX_SHOWN_CHARACTERS],
        "body_format": entry.body_format or None,
        "author": entry.author or None,
        "language": entry.language or None,
        "published_at": format_utc_or_none(entry.published_at),
        "media": [{"url": file.url, "type": file.type} for file in entry.media],
        "metadata": dict(entry.metadata),
    }


def forget_bodies(source: Source) -> None:
    """Erase the bodies of all but the source's newest `INBOUND_BODIES_KEPT` deliveries, as many at most.

    It runs apart from the delivery's transaction, because it locks other rows.
    """
    with_body = InboundDelivery.everywhere.filter(source=source, body__isnull=False).order_by("-id")
    limit = limits.INBOUND_BODIES_KEPT
    excess_ids = list(with_body.values_list("pk", flat=True)[limit : 2 * limit])
    if excess_ids:
        InboundDelivery.everywhere.filter(pk__in=excess_ids).update(body=None, made=None)


# --- Steps of a delivery ---------------------------------------------------------------------------------------------


def _verify_sender(source: Source, kind: str, incoming: IncomingDelivery, now: datetime) -> str:
    """Return the id by which `verify` recognizes the delivery, or an empty string if there is none.

    Raises `NotVerifiable` if the source has no secret, and `NotVerified` if the sender didn't prove itself.
    """
    valid_secrets = [] if kind == "address" else secrets.load_valid_secrets(source, now=now)
    if kind != "address" and not valid_secrets:
        message = "This source has no secret yet; give it one as config.verification.secret."
        raise NotVerifiable(Detail("config.verification", "not_verifiable", message))
    try:
        return verify(
            kind,
            secrets.header_of(source),
            body=incoming.body,
            headers=incoming.headers,
            valid_secrets=valid_secrets,
            now=now,
        )
    except NotProven as error:
        _log_refusal(source, kind, incoming, error, now)
        raise NotVerified(Detail(None, error.code, error.message)) from error


def _log_refusal(
    source: Source, kind: str, incoming: IncomingDelivery, error: NotProven, now: datetime
) -> None:
    """Log a refused delivery without its body; few per minute, because anybody may have sent them."""
    recent = InboundDelivery.everywhere.filter(
        source=source, status=InboundDeliveryStatus.REFUSED, pk__gte=lowest_id_at(now - timedelta(minutes=1))
    )
    if recent.count() >= limits.INBOUND_REFUSALS_NOTED:
        return
    row = _new_row(source, kind, incoming, now)
    row.body = None
    row.reason = {"code": error.code, "message": error.message}
    states.begin(row, "refused")
    row.save(force_insert=True)


def _new_row(source: Source, kind: str, incoming: IncomingDelivery, now: datetime) -> InboundDelivery:
    """Return the delivery as a row that isn't saved, without the header that carries the secret."""
    secret_header = secrets.header_of(source).lower()
    head = {
        name: value[:_MAX_HEADER_CHARACTERS]
        for name, value in sorted(incoming.headers.items())
        if _STORED_HEADERS.fullmatch(name) and name != secret_header
    }
    return InboundDelivery(
        id=uuid7(),
        workspace_id=source.workspace_id,
        source=source,
        test=source.test,
        verification=kind,
        content_type=incoming.content_type[:_MAX_HEADER_CHARACTERS],
        head=head,
        body=incoming.body,
        body_bytes=len(incoming.body),
        request_id=request_id(),
        created_at=now,
    )


def _event_id_in(kind: str, payload: Mapping[str, Any]) -> str:
    """Return the event id in the signed body of Slack or Stripe, or an empty string if there is none."""
    name = {"slack": "event_id", "stripe": "id"}.get(kind)
    event_id = payload.get(name) if name else None
    return event_id[:200] if isinstance(event_id, str) else ""


def _fail(row: InboundDelivery, kind: str, problem: AppError, **changes: Any) -> DeliveryResult:
    """Save the delivery as failed, with the reason of `problem`, and return the result."""
    result = DeliveryResult("failed", row, problem=problem, kind=kind)
    return _finish(row, "failed", result, problem=problem, **changes)


def _finish(
    row: InboundDelivery,
    status: str,
    received: DeliveryResult,
    *,
    problem: AppError | None = None,
    **changes: Any,
) -> DeliveryResult:
    """Save the delivery's status and values, with the reason of `problem`, and return `received`."""
    if problem is not None:
        detail = problem.detail[0] if problem.detail else Detail(None, problem.code, str(problem))
        changes["reason"] = {"code": detail.code, "message": detail.message}
    values = {"reason": None, "made": None, "preset": "", "notes": [], **changes}
    if row.status == status:
        states.write_as(row, status, **values)
    else:
        states.move(row, status, **values)
    return received


def _as_json(note: Note) -> dict[str, str]:
    return {"code": note.code, "message": note.message}


def forget_deliveries(now: datetime) -> int:
    """Delete up to `ROWS_PER_DELETION` old deliveries that have no body, or whose source was deleted.

    Return the number of deleted rows. Their ids carry the time, so no other index is needed.
    """
    old = InboundDelivery.everywhere.filter(pk__lt=lowest_id_at(now - limits.INBOUND_DELIVERIES_KEPT))
    deletable = old.filter(Q(body__isnull=True) | Q(source__deleted_at__isnull=False))
    row_ids = list(deletable.order_by("pk").values_list("pk", flat=True)[:ROWS_PER_DELETION])
    return int(InboundDelivery.everywhere.filter(pk__in=row_ids).delete()[0]) if row_ids else 0


def forget_secrets(now: datetime) -> int:
    """Delete some secrets of deleted sources, and all ended previous ones. Return the number of both."""
    of_deleted_sources = InboundSecret.everywhere.filter(source__deleted_at__isnull=False)
    row_ids = list(of_deleted_sources.values_list("pk", flat=True)[:ROWS_PER_DELETION])
    deleted = int(InboundSecret.everywhere.filter(pk__in=row_ids).delete()[0]) if row_ids else 0
    expired = InboundSecret.everywhere.filter(previous_until__lt=now)
    return deleted + expired.update(previous=None, previous_until=None)
