"""Registers the jobs of analytics: count events, measure publications, sum days, send the monthly summary."""

from __future__ import annotations

from analytics import measure, publication_outcomes, rollup
from analytics.models import Measuring, MonthlySummary, RollupDay
from analytics.reports import send_monthly_summary
from config.core import jobs
from pipeline.events import NOT_COUNTED

jobs.register(
    jobs.BatchJob(
        name="analytics.count_events",
        work=publication_outcomes.count_events,
        waits=NOT_COUNTED,
        # Nobody needs a count sooner, and many events are counted together.
        every_seconds=1.0,
    )
)
jobs.register(
    jobs.RowJob(
        name="analytics.measure_publication",
        model=Measuring,
        work=measure.measure,
        give_up=measure.give_up,
        lease=measure.LEASE,
        max_attempts=measure.MAX_TRIES,
        per_workspace=2,
        can_wait=True,
    )
)
jobs.register(
    jobs.RowJob(
        name="analytics.roll_up_day",
        model=RollupDay,
        work=rollup.roll_up,
        give_up=rollup.give_up,
        lease=rollup.LEASE,
        max_attempts=rollup.MAX_TRIES,
        per_workspace=1,
        can_wait=True,
    )
)
jobs.register(
    jobs.RowJob(
        # The summary is sent by it too. The name stays, because operators' charts and alerts use it.
        name="analytics.write_monthly_summary",
        model=MonthlySummary,
        work=send_monthly_summary.send_monthly_summary,
        give_up=send_monthly_summary.give_up,
        lease=send_monthly_summary.LEASE,
        per_workspace=1,
    )
)
