"""Registers the webhooks' jobs: write deliveries, send them, probe failing endpoints, run recoveries."""

from __future__ import annotations

from typing import Final

from config.core import jobs
from pipeline import events
from webhooks import deliver, recovery
from webhooks.fan_out import write_deliveries
from webhooks.models import Delivery, Recovery


def fan_out() -> int:
    """Dispatch one batch of events, and return how many there were."""
    return events.dispatch_batch(write_deliveries)


jobs.register(jobs.BatchJob(name="webhooks.fan_out", work=fan_out, waits=events.NOT_DISPATCHED))
# Two jobs over the same rows. Endpoints that fail are probed in slots of their own, so that however many of
# them hang, those that work find a free slot; and no workspace takes all slots of either.
HEALTHY: Final = jobs.HolderJob(
    name="webhooks.deliver_to_endpoint",
    model=Delivery,
    column="endpoint_id",
    slots=deliver.healthy_endpoint_slots,
    work=deliver.deliver_to_endpoint,
    share=0.75,
    pace=deliver.PACE,
)
FAILING: Final = jobs.HolderJob(
    name="webhooks.probe_endpoint",
    model=Delivery,
    column="endpoint_id",
    slots=deliver.failing_endpoint_slots,
    work=deliver.probe_endpoint,
    share=0.25,
    ahead=0,
    pace=deliver.PACE,
)
jobs.register(HEALTHY)
jobs.register(FAILING)
jobs.register(
    jobs.RowJob(
        name="webhooks.recover_deliveries",
        model=Recovery,
        work=recovery.run_recovery,
        give_up=recovery.give_up,
        lease=recovery.LEASE,
        max_attempts=20,
        per_workspace=1,
    )
)
