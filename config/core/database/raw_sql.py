"""Helps to write statements by hand: a marker for SQLite, and parameters as each database takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection

if TYPE_CHECKING:
    from datetime import datetime

MAY_BE_LOST: Final = "/* may be lost */"
"""A comment in statements whose loss in a power cut is harmless, such as counts: SQLite doesn't wait for the disk."""


def adapt_datetime(moment: datetime) -> Any:
    """Return the moment as the database takes it."""
    return connection.ops.adapt_datetimefield_value(moment)


def adapt_id(value: UUID | None) -> Any:
    """Return the id, or `None`, as the database takes it; SQLite stores hexadecimal text."""
    return value if value is None or connection.features.has_native_uuid_field else value.hex


def as_uuid(value: Any) -> UUID:
    """Return an id from the database as a UUID; SQLite gives text."""
    return value if isinstance(value, UUID) else UUID(value)
