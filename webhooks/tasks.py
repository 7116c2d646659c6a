"""The webhooks' kinds of work: dispatch, and the two lanes of deliveries."""

from __future__ import annotations

from config.ground import due, hands
from pipeline import events
from webhooks import deliver
from webhooks.dispatch import write_deliveries
from webhooks.models import Delivery


def dispatch() -> int:
    return events.dispatch_batch(write_deliveries)


hands.register(hands.Batch("webhooks.dispatch", work=dispatch))
# Two lanes over the same rows. Endpoints that fail are probed by hands of their own, so that however many of them
# hang, those that work find a free hand; and no workspace takes all hands of a lane.
hands.register(
    hands.Kind(
        "webhooks.deliver",
        model=Delivery,
        work=deliver.deliver,
        give_up=deliver.give_up,
        lease=deliver.LEASE,
        max_attempts=10,
        side_by_side=12,
        per_workspace=9,
        group=due.Group("endpoint_id", deliver.slots_of_healthy),
        own_threads=True,
    )
)
hands.register(
    hands.Kind(
        "webhooks.probe",
        model=Delivery,
        work=deliver.deliver,
        give_up=deliver.give_up,
        lease=deliver.LEASE,
        max_attempts=10,
        side_by_side=4,
        per_workspace=3,
        group=due.Group("endpoint_id", deliver.slots_of_failing),
        own_threads=True,
    )
)
