"""What became of what was published."""

from analytics.models.measurement import Measurement, Measuring, MeasuringStatus
from analytics.models.outcome import Outcome
from analytics.models.rollup import (
    DAY,
    QUARTER,
    Attribution,
    HitRollup,
    MeasurementRollup,
    OutcomeRollup,
    RollupDay,
)
from analytics.models.summary import MonthlySummary

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
