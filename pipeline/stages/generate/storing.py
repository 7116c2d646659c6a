"""Answers that were paid for are kept, as they are read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.stages.model_account import LostLease

if TYPE_CHECKING:
    from pipeline.models import Generation

WAITS: Final = "waits"
"""Where a run keeps since when, and how often, it has waited for the model."""


def store(generation: Generation, stage: str, **answers: Any) -> None:
    """Keep a stage's answer under the lease, so that a killed hand never asks for it again."""
    if not try_to_store(generation, stage, **answers):
        raise LostLease


def try_to_store(generation: Generation, stage: str, **answers: Any) -> bool:
    """The same; False where the lease is lost, and then nothing was written."""
    generation.answers = {**generation.answers, **answers}
    # What was waited for has come: the next outage is counted from its own beginning.
    generation.answers.pop(WAITS, None)
    generation.stage = stage
    return bool(generation.under_lease().update(answers=as_json(generation.answers), stage=stage))


def as_json(value: Any) -> Any:
    """Tuples as lists: what is read back must be what was kept."""
    if isinstance(value, dict):
        return {key: as_json(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(member) for member in value]
    return value
