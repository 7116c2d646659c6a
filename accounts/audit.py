"""Writes the audit log of who changed what, and saves rows whose changed fields it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts.models import AuditEntry
from config.core.encrypted_fields import SealedTextField
from config.core.middleware import request_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.db.models import Model

    from accounts.models import Workspace

_MAX_CHARACTERS = 200
"""The length of the columns `actor` and `subject`; longer text is cut."""


def note(
    action: str,
    *,
    workspace: Workspace | None = None,
    actor: str,
    subject: str = "",
    details: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Store an entry of the audit log. Call it in the change's transaction, so that both are stored or none."""
    entry: AuditEntry = AuditEntry.everywhere.create(
        workspace=workspace,
        action=action,
        # A long address or name must not make the change itself fail.
        actor=actor[:_MAX_CHARACTERS],
        subject=subject[:_MAX_CHARACTERS],
        details=dict(details or {}),
        request_id=request_id(),
    )
    return entry


def save_fields(row: Model, fields: Iterable[str]) -> None:
    """Store the named fields; a new row is stored with all of its fields."""
    if row._state.adding:
        row.save(force_insert=True)
    else:
        row.save(update_fields=sorted(fields))


def details_of(row: Model, fields: Iterable[str]) -> dict[str, Any]:
    """Return the named fields with their values as the audit log shows them, without passwords."""
    return {name: audit_value(row, name) for name in sorted(fields) if "password" not in name}


def audit_value(row: Model, name: str) -> Any:
    """Return the field's value for JSON, `[sealed]` for an encrypted field, and text for other types."""
    value = getattr(row, name)
    if value is not None and isinstance(row._meta.get_field(name), SealedTextField):
        # The audit log is kept forever and read by many.
        return "[sealed]"
    return value if value is None or isinstance(value, bool | int | str) else str(value)
