"""Gathers calls to a model that nobody waits for, sends them as one half-price batch, and reads the replies."""

from pipeline.generate.model.batches.patient_client import (
    AWAITED,
    client_for,
    forget_calls,
    is_decided,
    is_patient,
    waits_until,
    wake_runs,
)
from pipeline.generate.model.batches.work_batch import advance_batch, forget, give_up

__all__ = [
    "AWAITED",
    "advance_batch",
    "client_for",
    "forget",
    "forget_calls",
    "give_up",
    "is_decided",
    "is_patient",
    "waits_until",
    "wake_runs",
]
