"""The kinds of work that analytics has for the hands."""

from __future__ import annotations

from analytics import count, measure
from analytics.models import Measuring
from config.ground import hands

hands.register(hands.Batch("analytics.count", work=count.count_events))
hands.register(
    hands.Kind(
        "analytics.measure",
        model=Measuring,
        work=measure.measure,
        give_up=measure.give_up,
        lease=measure.LEASE,
        max_attempts=measure.MAX_TRIES,
    )
)
