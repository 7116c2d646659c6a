"""Saves named fields of a row, and gives their values for the audit entry, which the caller writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core.encrypted_fields import SealedTextField

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import Model


def save_fields(row: Model, fields: Iterable[str]) -> None:
    """Store the named fields. A new row is stored whole, whatever `fields` names."""
    if row._state.adding:
        row.save(force_insert=True)
    else:
        row.save(update_fields=sorted(fields))


def details_of(row: Model, fields: Iterable[str]) -> dict[str, Any]:
    """Return the named fields with their values as the audit log shows them, without passwords."""
    return {name: audit_value(row, name) for name in sorted(fields) if "password" not in name}


def audit_value(row: Model, name: str) -> Any:
    """Return the field's value for JSON; `[sealed]` for an encrypted field."""
    value = getattr(row, name)
    if value is not None and isinstance(row._meta.get_field(name), SealedTextField):
        # The audit log is kept forever and read by many.
        return "[sealed]"
    return value if value is None or isinstance(value, bool | int | str) else str(value)
