"""Sets the limits of the analytics, each with its unit and its reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

ANALYTICS_DAYS: Final = 366
"""Days of one question to the analytics: a leap year."""
MEASURED_AT: Final = (
    timedelta(hours=1),
    timedelta(hours=6),
    timedelta(days=1),
    timedelta(days=3),
    timedelta(days=7),
    timedelta(days=30),
)
"""Ages of a publication at which its metrics are read."""
