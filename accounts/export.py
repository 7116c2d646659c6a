"""Exports a workspace as a ZIP: each app gives its part, and only a few rows are in memory at a time."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.module_loading import import_string

from accounts import audit
from accounts.ledger import reports
from accounts.ledger.entries import LedgerEntrySerializer
from accounts.models import AuditEntry, LedgerEntry, Membership
from config.core.clock import utc_now
from config.core.datetimes import format_utc, format_utc_or_none
from config.core.ids import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from django.db.models import QuerySet

    from accounts.models import Workspace

    Part = tuple[str, Iterable[Mapping[str, Any]] | Path]
    """A name in the ZIP, and the rows to write there or the file to copy."""

_ROWS_PER_QUERY: Final = 200
_CHUNK_BYTES: Final = 256 * 1024
"""Bytes that are sent at a time; the last chunk may be shorter."""
_README: Final = """Everything that the workspace holds, one JSON object a line, oldest first.

Ids are those of the API. Secrets are left out: keys, passwords of outlets, secrets of webhook endpoints, and the
addresses that work for anyone who knows them. What changed while the file was written may be in it as before or after.
"""


class _ZipBuffer:
    """A file without `seek` that holds what the ZIP writes until it is sent."""

    def __init__(self) -> None:
        self._buffered = bytearray()

    def write(self, data: bytes) -> int:
        self._buffered += data
        return len(data)

    def flush(self) -> None:
        """Do nothing: writing already filled the buffer."""

    def is_full(self) -> bool:
        return len(self._buffered) >= _CHUNK_BYTES

    def take(self) -> bytes:
        chunk = bytes(self._buffered)
        self._buffered.clear()
        return chunk


def file_name(workspace: Workspace, now: datetime) -> str:
    """Return a file name with the workspace's public id and the day of `now`, which is in UTC."""
    return f"{workspace.public_id}-{now:%Y-%m-%d}.zip"


def stream_export(workspace: Workspace, *, actor: str) -> Iterator[bytes]:
    """Return the ZIP in chunks, and note the export in the audit log."""
    audit.note("workspace.exported", workspace=workspace, actor=actor, subject=workspace.public_id)
    return _stream_zip(workspace)


def _stream_zip(workspace: Workspace) -> Iterator[bytes]:
    buffer = _ZipBuffer()
    # A stream can't be rewound, so each entry's length stands behind it; ZIP readers know that form.
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        archive.writestr("README.txt", _README)
        for exporter in settings.WORKSPACE_EXPORTERS:
            for name, content in import_string(exporter)(workspace):
                yield from _write_entry(archive, buffer, name, content)
    yield buffer.take()


def _write_entry(archive: zipfile.ZipFile, buffer: _ZipBuffer, name: str, content: Any) -> Iterator[bytes]:
    with archive.open(name, "w") as entry:
        for chunk in _chunks(content):
            entry.write(chunk)
            if buffer.is_full():
                yield buffer.take()


def _chunks(content: Any) -> Iterator[bytes]:
    """Yield a file in chunks, or each row as a line of JSON."""
    if hasattr(content, "open"):
        with content.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
        return
    for row in content:
        yield json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n"


def iterate_rows(rows: QuerySet[Any]) -> Iterator[Any]:
    """Yield all rows by id, with a query for each `_ROWS_PER_QUERY`, so that no cursor stays open meanwhile.

    Rows that are dictionaries need their `id` among the fields.
    """
    last_id: Any = None
    while True:
        remaining = rows.order_by("pk") if last_id is None else rows.order_by("pk").filter(pk__gt=last_id)
        batch = list(remaining[:_ROWS_PER_QUERY])
        yield from batch
        if len(batch) < _ROWS_PER_QUERY:
            return
        last_id = batch[-1]["id"] if isinstance(batch[-1], dict) else batch[-1].pk


def collect_parts(workspace: Workspace) -> Iterator[Part]:
    """Yield the accounts' part of an export: the workspace, its members, its ledger, its audit log."""
    yield "workspace.jsonl", [_workspace_json(workspace)]
    members = Membership.objects.of(workspace).select_related("user")
    yield "members.jsonl", (_member_json(row) for row in iterate_rows(members))
    yield (
        "ledger.jsonl",
        (LedgerEntrySerializer.serialize(row) for row in iterate_rows(LedgerEntry.objects.of(workspace))),
    )
    yield "audit.jsonl", (_audit_entry_json(row) for row in iterate_rows(AuditEntry.objects.of(workspace)))


def _workspace_json(workspace: Workspace) -> dict[str, Any]:
    report = reports.usage(workspace, utc_now())
    return {
        "id": workspace.public_id,
        "name": workspace.name,
        "timezone": workspace.timezone,
        "plan": workspace.plan.name,
        "requires_approval": workspace.requires_approval,
        "credits": {"granted": report.limit, "used": report.used, "reserved": report.reserved},
        "created_at": format_utc(workspace.created_at),
        "whitelisted_at": format_utc_or_none(workspace.whitelisted_at),
    }


def _member_json(row: Membership) -> dict[str, Any]:
    return {
        "id": encode("usr", row.user_id),
        "email": row.user.email,
        "name": row.user.name,
        "role": row.role,
        "joined_at": format_utc(row.created_at),
    }


def _audit_entry_json(row: AuditEntry) -> dict[str, Any]:
    return {
        "action": row.action,
        "actor": row.actor,
        "subject": row.subject,
        "details": row.details,
        "at": format_utc(row.created_at),
    }
