"""Writes the call ledger: one row for each call of a model, with its usage, its cost and whose key was used."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from config.core.clock import utc_now
from pipeline.models import ModelCall

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pipeline.writers.base import CallRecord


def record_call(
    record: CallRecord, *, workspace_id: UUID, generation_id: UUID | None, is_own_key: bool
) -> None:
    """Write one call into the ledger; `generation_id` is `None` for a call outside a run."""
    fields: Mapping[str, Any] = {
        name: _fit_column(name, value)
        for name, value in asdict(record).items()
        if name not in {"step", "provider"}
    }
    ModelCall.everywhere.create(
        workspace_id=workspace_id,
        generation_id=generation_id,
        stage=record.step,
        is_own_key=is_own_key,
        created_at=utc_now(),
        **fields,
    )


def _fit_column(name: str, value: Any) -> Any:
    """Return the value cut to its column's length.

    A gateway's long name must not keep a call out of the ledger.
    """
    max_length = getattr(ModelCall._meta.get_field(name), "max_length", None)
    return value[:max_length] if max_length and isinstance(value, str) else value
