"""The kinds of work that analytics has for the hands."""

from __future__ import annotations

from analytics import count, measure, monthly, rollup
from analytics.models import Measuring, MonthlySummary, RollupDay
from config.ground import hands
from pipeline.events import NOT_COUNTED

hands.register(hands.Batch("analytics.count", work=count.count_events, waits=NOT_COUNTED))
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
hands.register(
    hands.Kind(
        "analytics.roll_up",
        model=RollupDay,
        work=rollup.roll_up,
        give_up=rollup.give_up,
        lease=rollup.LEASE,
        max_attempts=rollup.MAX_TRIES,
        side_by_side=1,
        per_workspace=1,
    )
)
hands.register(
    hands.Kind(
        "analytics.monthly",
        model=MonthlySummary,
        work=monthly.work,
        give_up=monthly.give_up,
        lease=monthly.LEASE,
        side_by_side=1,
        per_workspace=1,
    )
)
