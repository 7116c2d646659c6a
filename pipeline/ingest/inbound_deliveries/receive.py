"""One delivery: prove the sender, keep what it sent for a while, make a raw item of it, all before the answer."""

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
from config.core.datetimes import as_z_or_none
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
SIGNED: Final = frozenset({"standard_webhooks", "github", "slack", "stripe", "ghost"})
"""Services that send whatever happens at theirs: an answer of 4xx would make them try again, or give up for good."""
_HEADERS_KEPT: Final = re.compile(
    r"content-type|user-agent|webhook-(?:id|timestamp)|idempotency-key"
    r"|x-(?:[a-z0-9-]{1,40}-)?(?:event|topic|delivery|retry-num|retry-reason|request-id)"
)
_HEADER_CHARACTERS: Final = 200
_MADE_CHARACTERS: Final = 500
ROWS: Final = 500
"""Deleted in one statement: a short lock, however much is too old."""


class NotVerified(AppError):
    """The sender didn't prove itself."""

    code = "unauthenticated"


class NotVerifiable(AppError):
    """Nobody can prove anything to this source, or it takes nothing now."""

    code = "unavailable"


@dataclass(frozen=True)
class IncomingDelivery:
    """A POST as it came; `headers` has lower-case names."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


@dataclass(frozen=True)
class Received:
    """What became of a delivery. `problem` says why nothing was made of it; `challenge` is to be sent back."""

    outcome: Outcome
    delivery: InboundDelivery | None = None
    raw_item_id: UUID | None = None
    problem: AppError | None = None
    challenge: str = ""
    kind: str = "address"

    @property
    def is_told(self) -> bool:
        """Whether the sender is one that shows a refusal to somebody who can act on it."""
        return self.kind not in SIGNED


@dataclass(frozen=True)
class _Read:
    """What could be read of it: a reading, or why there is none."""

    reading: entries.MappedBody | None
    problem: AppError | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


def receive(source: Source, incoming: IncomingDelivery, *, now: datetime) -> Received:
    """Raises `NotVerifiable` and, leaving a note without the body, `NotVerified`.

    The delivery and what is made of it are one transaction: a sender that got no answer finds nothing done, or finds
    its delivery again by its own id, or by what the raw item is known by.
    """
    if source.status == SourceStatus.PAUSED:
        message = "This source is paused; resume it and send again."
        raise NotVerifiable(Detail("status", "paused", message))
    kind = secrets.kind_of(source)
    sender_key = _proven(source, kind, incoming, now)
    read = read_body(source, incoming)
    if kind == "slack" and read.payload.get("type") == "url_verification":
        return Received("challenge", challenge=str(read.payload.get("challenge", ""))[:1000], kind=kind)
    row = _row(source, kind, incoming, now)
    row.sender_key = sender_key or _key_in(kind, read.payload) or None
    with transaction.atomic():
        if insert_or_ignore(row):
            crash_point("inbound.stored")
        else:
            row = InboundDelivery.everywhere.select_for_update().get(source=source, sender_key=row.sender_key)
            if row.status != InboundDeliveryStatus.FAILED:
                InboundDelivery.everywhere.filter(pk=row.pk).update(repeats=F("repeats") + 1)
                outcome: Outcome = "ignored" if row.status == InboundDeliveryStatus.IGNORED else "duplicate"
                return Received(outcome, row, row.raw_item_id, kind=kind)
        received = process_delivery(source, row, read, kind=kind, now=now)
    crash_point("inbound.taken")
    forget_bodies(source)
    return received


def read_body(source: Source, incoming: IncomingDelivery) -> _Read:
    """What the source's settings of now make of it."""
    try:
        payload = body_formats.read(incoming.body, incoming.content_type)
    except AppError as problem:
        return _Read(None, problem)
    return _Read(entries.read(payload, incoming.headers, source.config), payload=payload)


def process_delivery(
    source: Source, row: InboundDelivery, read: _Read, *, kind: str, now: datetime
) -> Received:
    """Make of a stored delivery what its reading says, and write that down; in the caller's transaction."""
    reading = read.reading
    if reading is None:
        problem = read.problem or AppError()
        return _end(row, "failed", Received("failed", row, problem=problem, kind=kind), problem=problem)
    told: dict[str, Any] = {
        "preset": reading.by,
        "notes": [_as_json(note) for note in reading.notes],
        "made": shorten_entry(reading.entry) if reading.entry else None,
    }
    if reading.ignored is not None:
        return _end(
            row, "ignored", Received("ignored", row, kind=kind), reason=_as_json(reading.ignored), **told
        )
    if reading.entry is None:
        failed = reading.failed
        problem = Invalid.one(
            None, failed.code if failed else "nothing_found", failed.message if failed else ""
        )
        return _end(
            row, "failed", Received("failed", row, problem=problem, kind=kind), problem=problem, **told
        )
    workspace = source.workspace
    defaults = WorkspaceDefaults.objects.of(workspace).get()
    try:
        pushed = store_raw_item.push(
            workspace, source, content_of(reading.entry), defaults=defaults, when_short="wait", now=now
        )
    except AppError as problem:
        # Such as an engine output that is no longer there: the source has to be changed, the delivery waits.
        return _end(
            row, "failed", Received("failed", row, problem=problem, kind=kind), problem=problem, **told
        )
    raw_item_id = pushed.raw_item.pk
    if pushed.raw_item.deleted_at is not None:
        # Somebody had these words erased; that they are sent again doesn't bring them back.
        told |= {"body": None, "made": None}
    status = "duplicate" if pushed.outcome == "duplicate" else "taken"
    if status == "taken":
        Source.everywhere.filter(pk=source.pk).update(last_new_at=now)
    received = Received(pushed.outcome, row, raw_item_id, kind=kind)
    return _end(row, status, received, raw_item_id=raw_item_id, **told)


def content_of(entry: Entry) -> raw_content.RawContent:
    return raw_content.RawContent(
        external_id=entry.external_id or "",
        url=entry.url,
        title=entry.title,
        body=entry.body,
        body_format=entry.body_format,
        language=entry.language,
        author=entry.author,
        published_at=entry.published_at,
        media=[{"url": one.url, "type": one.type} for one in entry.media],
        metadata=dict(entry.metadata),
    )


def shorten_entry(entry: Entry) -> dict[str, Any]:
    """The fields of a raw item that were made, long ones shortened."""
    return {
        "external_id": entry.external_id or None,
        "url": entry.url or None,
        "title": entry.title,
        "body": entry.body[:_MADE_CHARACTERS],
        "body_format": entry.body_format or None,
        "author": entry.author or None,
        "language": entry.language or None,
        "published_at": as_z_or_none(entry.published_at),
        "media": [{"url": one.url, "type": one.type} for one in entry.media],
        "metadata": dict(entry.metadata),
    }


def forget_bodies(source: Source) -> None:
    """Only the newest are kept with what was sent. Apart from the delivery's transaction: it locks other rows."""
    bodies_kept = InboundDelivery.everywhere.filter(source=source, body__isnull=False).order_by("-id")
    most = limits.INBOUND_BODIES_KEPT
    too_many = list(bodies_kept.values_list("pk", flat=True)[most : 2 * most])
    if too_many:
        InboundDelivery.everywhere.filter(pk__in=too_many).update(body=None, made=None)


# --- Inside ----------------------------------------------------------------------------------------------------------


def _proven(source: Source, kind: str, incoming: IncomingDelivery, now: datetime) -> str:
    known = [] if kind == "address" else secrets.known_to(source, now=now)
    if kind != "address" and not known:
        message = "This source has no secret yet; give it one as config.verification.secret."
        raise NotVerifiable(Detail("config.verification", "not_verifiable", message))
    try:
        return verify(
            kind,
            secrets.header_of(source),
            body=incoming.body,
            headers=incoming.headers,
            known=known,
            now=now,
        )
    except NotProven as error:
        _note_refused(source, kind, incoming, error, now)
        raise NotVerified(Detail(None, error.code, error.message)) from error


def _note_refused(
    source: Source, kind: str, incoming: IncomingDelivery, error: NotProven, now: datetime
) -> None:
    """So that the owner sees it, without the body, and not more than some a minute: who sent it isn't known."""
    lately = InboundDelivery.everywhere.filter(
        source=source, status=InboundDeliveryStatus.REFUSED, pk__gte=lowest_id_at(now - timedelta(minutes=1))
    )
    if lately.count() >= limits.INBOUND_REFUSALS_NOTED:
        return
    row = _row(source, kind, incoming, now)
    row.body = None
    row.reason = {"code": error.code, "message": error.message}
    states.begin(row, "refused")
    row.save(force_insert=True)


def _row(source: Source, kind: str, incoming: IncomingDelivery, now: datetime) -> InboundDelivery:
    secret_header = secrets.header_of(source).lower()
    head = {
        name: value[:_HEADER_CHARACTERS]
        for name, value in sorted(incoming.headers.items())
        if _HEADERS_KEPT.fullmatch(name) and name != secret_header
    }
    return InboundDelivery(
        id=uuid7(),
        workspace_id=source.workspace_id,
        source=source,
        test=source.test,
        verification=kind,
        content_type=incoming.content_type[:_HEADER_CHARACTERS],
        head=head,
        body=incoming.body,
        body_bytes=len(incoming.body),
        request_id=request_id(),
        created_at=now,
    )


def _key_in(kind: str, payload: Mapping[str, Any]) -> str:
    """The sender's id of an event where it stands in the body, which is signed."""
    name = {"slack": "event_id", "stripe": "id"}.get(kind)
    found = payload.get(name) if name else None
    return found[:200] if isinstance(found, str) else ""


def _end(
    row: InboundDelivery, status: str, received: Received, *, problem: AppError | None = None, **changes: Any
) -> Received:
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
    """Old ones without a body, by their ids, which carry the moment; those of a deleted source with theirs."""
    old = InboundDelivery.everywhere.filter(pk__lt=lowest_id_at(now - limits.INBOUND_DELIVERIES_KEPT))
    gone = old.filter(Q(body__isnull=True) | Q(source__deleted_at__isnull=False))
    some = list(gone.order_by("pk").values_list("pk", flat=True)[:ROWS])
    return int(InboundDelivery.everywhere.filter(pk__in=some).delete()[0]) if some else 0


def forget_secrets(now: datetime) -> int:
    """Those of deleted sources, and those whose time beside a newer one is over."""
    some = list(
        InboundSecret.everywhere.filter(source__deleted_at__isnull=False).values_list("pk", flat=True)[:ROWS]
    )
    done = int(InboundSecret.everywhere.filter(pk__in=some).delete()[0]) if some else 0
    over = InboundSecret.everywhere.filter(previous_until__lt=now)
    return done + over.update(previous=None, previous_until=None)
