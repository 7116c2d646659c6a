"""Sets the limits of endpoints and deliveries, each with its unit and its reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

EVENT_PAYLOADS_KEPT: Final = timedelta(days=30)
"""How long the content of an event can be read or sent again."""
DELIVERY_ATTEMPTS_KEPT: Final = timedelta(days=90)
"""How long the log of webhook attempts goes back."""
WEBHOOK_SCHEDULE: Final = (
    timedelta(0),
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""Waits before each of the ten attempts: 75 h 35 min 5 s in all."""
WEBHOOK_JITTER: Final = 0.2
"""The share of a wait by which it may grow at random, so that retries don't come in step."""
WEBHOOK_TIMEOUT_SECONDS: Final = 15
"""Seconds of one whole exchange with an endpoint."""
WEBHOOK_ANSWER_BYTES: Final = 64 * 1024
"""Bytes of an endpoint's answer that are read."""
WEBHOOK_ANSWER_KEPT: Final = 4 * 1024
"""Bytes of an endpoint's answer that the log keeps."""
WEBHOOK_SLOTS: Final = 4
"""Deliveries to one endpoint at the same time."""
WEBHOOK_RATE: Final = 20
"""Attempts that are begun at one endpoint within a second by default."""
WEBHOOK_RATE_MOST: Final = 100
"""The highest rate of an endpoint."""
WEBHOOK_RETRY_AFTER_MOST: Final = timedelta(hours=24)
"""The longest Retry-After that is honoured."""
WEBHOOK_THROTTLED_WAIT: Final = timedelta(seconds=60)
"""The least wait after 429, 502, 504 and a time-out."""
WEBHOOK_DEGRADED_FAILURES: Final = 5
"""Failures in a row from which an endpoint gets one attempt at a time."""
WEBHOOK_DISABLED_FAILURES: Final = 10
"""Failures in a row without which no endpoint is switched off."""
WEBHOOK_DISABLED_AFTER: Final = timedelta(days=5)
"""How long an endpoint must have failed before it is switched off."""
