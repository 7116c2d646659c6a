"""What became of what was published."""

from analytics.models.measurement import Measurement, Measuring
from analytics.models.outcome import Outcome
from analytics.models.rollup import DAY, QUARTER, MeasurementRollup, OutcomeRollup, RollupDay

__all__ = [
    "DAY",
    "QUARTER",
    "Measurement",
    "MeasurementRollup",
    "Measuring",
    "Outcome",
    "OutcomeRollup",
    "RollupDay",
]
