"""Answers that were paid for are kept, as they are read back."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import F, Sum

from config.ground.prepared import update
from pipeline.models import Generation, ModelCall
from pipeline.stages.model_account import LostLease

WAITS: Final = "waits"
"""Where a run keeps since when, and how often, it has waited for the model."""
EARLIER: Final = "earlier"
"""Where a run keeps what the runs before it cost that came to nothing: the item is theirs as well."""


def cost_so_far(run: Generation | None) -> dict[str, Any]:
    """What a further run of one of its items begins with: the tokens and money of `run` and of those before it.

    The money of one item, in millionths of a US dollar: a run's items share what it cost. Empty where nothing was paid.
    """
    if run is None:
        return {}
    calls = ModelCall.everywhere.filter(generation=run).aggregate(
        input=Sum(
            F("input_tokens")
            + F("cache_write_5m_tokens")
            + F("cache_write_1h_tokens")
            + F("cache_read_tokens")
        ),
        output=Sum("output_tokens"),
        cost=Sum("cost_micro_usd"),
    )
    before = run.answers.get(EARLIER, {})
    spent = {
        "input_tokens": before.get("input_tokens", 0) + (calls["input"] or 0),
        "output_tokens": before.get("output_tokens", 0) + (calls["output"] or 0),
        "cost_micro_usd": before.get("cost_micro_usd", 0) + (calls["cost"] or 0) // max(run.variants, 1),
    }
    return {EARLIER: spent} if any(spent.values()) else {}


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
    ours = {"pk": generation.pk, "lease_token": generation.lease_token}
    return bool(update(Generation, ours, {"answers": as_json(generation.answers), "stage": stage}))


def as_json(value: Any) -> Any:
    """Tuples as lists: what is read back must be what was kept."""
    if isinstance(value, dict):
        return {key: as_json(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(member) for member in value]
    return value
