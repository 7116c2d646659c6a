"""Calls to a model that nobody waits for: gathered, sent as one batch at half the price, and given to their runs."""

from pipeline.generate.model.batches.requests import (
    AWAITED,
    client_for,
    is_decided,
    is_patient,
    let_go,
    patience,
    wake,
)
from pipeline.generate.model.batches.task import forget, give_up, work

__all__ = [
    "AWAITED",
    "client_for",
    "forget",
    "give_up",
    "is_decided",
    "is_patient",
    "let_go",
    "patience",
    "wake",
    "work",
]
