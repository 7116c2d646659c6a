"""Named fields of a row are stored here, and told to the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core.encrypted_fields import SealedTextField

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import Model


def save_fields(row: Model, fields: Iterable[str]) -> None:
    if row._state.adding:
        row.save(force_insert=True)
    else:
        row.save(update_fields=sorted(fields))


def details_of(row: Model, fields: Iterable[str]) -> dict[str, Any]:
    """Passwords are never among them."""
    return {name: told_value(row, name) for name in sorted(fields) if "password" not in name}


def told_value(row: Model, name: str) -> Any:
    value = getattr(row, name)
    if value is not None and isinstance(row._meta.get_field(name), SealedTextField):
        # The audit log is kept for good and read by many.
        return "[sealed]"
    return value if value is None or isinstance(value, bool | int | str) else str(value)
