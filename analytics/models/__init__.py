"""Collects the models of outcomes, measurements and their rollups."""

from analytics.models.measurement import Measurement, Measuring, MeasuringStatus, Outcome
from analytics.models.rollup import (
    DAY,
    QUARTER,
    Attribution,
    HitRollup,
    MeasurementRollup,
    MonthlySummary,
    OutcomeRollup,
    RollupDay,
)

__all__ = [
    "DAY",
    "QUARTER",
    "Attribution",
    "HitRollup",
    "Measurement",
    "MeasurementRollup",
    "Measuring",
    "MeasuringStatus",
    "MonthlySummary",
    "Outcome",
    "OutcomeRollup",
    "RollupDay",
]
