"""What became of what was published."""

from analytics.models.measurement import Measurement, Measuring
from analytics.models.outcome import Outcome
from analytics.models.rollup import DAY, QUARTER, HitRollup, MeasurementRollup, OutcomeRollup, RollupDay
from analytics.models.summary import MonthlySummary

__all__ = [
    "DAY",
    "QUARTER",
    "HitRollup",
    "Measurement",
    "MeasurementRollup",
    "Measuring",
    "MonthlySummary",
    "Outcome",
    "OutcomeRollup",
    "RollupDay",
]
