"""A workspace as a ZIP: each app offers its part, and nothing is held in memory longer than a few rows."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.module_loading import import_string

from accounts import audit
from accounts.ledger import credits, reports
from accounts.models import AuditEntry, LedgerEntry, Membership
from config.core.clock import utc_now
from config.core.datetimes import as_z, as_z_or_none
from config.core.ids import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from django.db.models import QuerySet

    from accounts.models import Workspace

    Part = tuple[str, Iterable[Mapping[str, Any]] | Path]
    """A name in the ZIP, and its rows or the file itself."""

_ROWS: Final = 200
_PIECE: Final = 256 * 1024
_ABOUT: Final = """Everything that the workspace holds, one JSON object a line, oldest first.

Ids are those of the API. Secrets are left out: keys, passwords of outlets, secrets of webhook endpoints, and the
addresses that work for whoever knows them. What changed while the file was written may be in it as before or after.
"""


class _Pieces:
    """What the ZIP writes, until it is handed on: a file that can't be sought in."""

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        self._held += data
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""

    def is_full(self) -> bool:
        return len(self._held) >= _PIECE

    def take(self) -> bytes:
        taken = bytes(self._held)
        self._held.clear()
        return taken


def file_name(workspace: Workspace, now: datetime) -> str:
    """With the workspace's public id and the day in UTC."""
    return f"{workspace.public_id}-{now:%Y-%m-%d}.zip"


def stream_export(workspace: Workspace, *, actor: str) -> Iterator[bytes]:
    """The ZIP, piece by piece; that it was asked for is noted."""
    audit.note("workspace.exported", workspace=workspace, actor=actor, subject=workspace.public_id)
    return _zip_pieces(workspace)


def _zip_pieces(workspace: Workspace) -> Iterator[bytes]:
    pieces = _Pieces()
    # A stream has no way back, so each entry carries its length behind it; readers know that form.
    with zipfile.ZipFile(pieces, "w", compression=zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        archive.writestr("README.txt", _ABOUT)
        for exporter in settings.WORKSPACE_EXPORTERS:
            for name, content in import_string(exporter)(workspace):
                yield from _entry(archive, pieces, name, content)
    yield pieces.take()


def _entry(archive: zipfile.ZipFile, pieces: _Pieces, name: str, content: Any) -> Iterator[bytes]:
    with archive.open(name, "w") as entry:
        for chunk in _chunks(content):
            entry.write(chunk)
            if pieces.is_full():
                yield pieces.take()


def _chunks(content: Any) -> Iterator[bytes]:
    """A file in pieces, or each row as a line of JSON."""
    if hasattr(content, "open"):
        with content.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
        return
    for row in content:
        yield json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n"


def iterate_rows(rows: QuerySet[Any]) -> Iterator[Any]:
    """All rows by id, a few at a time, each time anew from where the last ended: no cursor stays open meanwhile.

    Rows as mappings need their `id` among the fields.
    """
    last: Any = None
    while True:
        some = rows.order_by("pk") if last is None else rows.order_by("pk").filter(pk__gt=last)
        found = list(some[:_ROWS])
        yield from found
        if len(found) < _ROWS:
            return
        last = found[-1]["id"] if isinstance(found[-1], dict) else found[-1].pk


def collect_parts(workspace: Workspace) -> Iterator[Part]:
    """The part of accounts: the workspace, its members, its ledger, its audit log."""
    yield "workspace.jsonl", [_workspace(workspace)]
    members = Membership.objects.of(workspace).select_related("user")
    yield "members.jsonl", (_member(row) for row in iterate_rows(members))
    yield "ledger.jsonl", (_ledger(row) for row in iterate_rows(LedgerEntry.objects.of(workspace)))
    yield "audit.jsonl", (_audit(row) for row in iterate_rows(AuditEntry.objects.of(workspace)))


def _workspace(workspace: Workspace) -> dict[str, Any]:
    report = reports.usage(workspace, utc_now())
    return {
        "id": workspace.public_id,
        "name": workspace.name,
        "timezone": workspace.timezone,
        "plan": workspace.plan.name,
        "requires_approval": workspace.requires_approval,
        "credits": {"granted": report.limit, "used": report.used, "reserved": report.reserved},
        "created_at": as_z(workspace.created_at),
        "whitelisted_at": as_z_or_none(workspace.whitelisted_at),
    }


def _member(row: Membership) -> dict[str, Any]:
    return {
        "id": encode("usr", row.user_id),
        "email": row.user.email,
        "name": row.user.name,
        "role": row.role,
        "joined_at": as_z(row.created_at),
    }


def _ledger(row: LedgerEntry) -> dict[str, Any]:
    return {
        "id": credits.public_id(row),
        "kind": row.kind,
        "amount": row.amount,
        "reserved_change": row.reserved_change,
        "used_change": row.used_change,
        "generation": None if row.subject is None else encode("gnr", row.subject),
        "reason": row.reason,
        "created_at": as_z(row.created_at),
    }


def _audit(row: AuditEntry) -> dict[str, Any]:
    return {
        "action": row.action,
        "actor": row.actor,
        "subject": row.subject,
        "details": row.details,
        "at": as_z(row.created_at),
    }
