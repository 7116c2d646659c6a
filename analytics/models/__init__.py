"""What became of what was published."""

from analytics.models.measurement import Measurement, Measuring
from analytics.models.outcome import Outcome

__all__ = ["Measurement", "Measuring", "Outcome"]
