"""The webhooks' kinds of work: dispatch, and the two lanes of deliveries."""

from __future__ import annotations

from typing import Final

from config.ground import due, hands
from pipeline import events
from webhooks import deliver, recovery
from webhooks.dispatch import write_deliveries
from webhooks.models import Delivery, Recovery
from webhooks.pace import EndpointRate


def dispatch() -> int:
    return events.dispatch_batch(write_deliveries)


pace: Final = EndpointRate()
hands.register(hands.Batch("webhooks.dispatch", work=dispatch, waits=events.NOT_DISPATCHED))
# Two lanes over the same rows. Endpoints that fail are probed by hands of their own, so that however many of them
# hang, those that work find a free hand; and no workspace takes all hands of a lane. One thread claims for the many:
# whose turn comes within the second is then looked for 30 times in it.
hands.register(
    hands.Kind(
        "webhooks.deliver",
        model=Delivery,
        work=deliver.deliver,
        read=deliver.read,
        give_up=deliver.give_up,
        lease=deliver.LEASE,
        max_attempts=10,
        side_by_side=deliver.SIDE_BY_SIDE,
        per_workspace=9,
        batch=40,
        group=due.Group("endpoint_id", deliver.slots_of_healthy, pace),
        own_threads=True,
        shares_claims=True,
    )
)
hands.register(
    hands.Kind(
        "webhooks.probe",
        model=Delivery,
        work=deliver.deliver,
        read=deliver.read,
        give_up=deliver.give_up,
        lease=deliver.LEASE,
        max_attempts=10,
        side_by_side=4,
        per_workspace=3,
        group=due.Group("endpoint_id", deliver.slots_of_failing, pace),
        own_threads=True,
    )
)
hands.register(
    hands.Kind(
        "webhooks.recover",
        model=Recovery,
        work=recovery.work,
        give_up=recovery.give_up,
        lease=recovery.LEASE,
        max_attempts=20,
        side_by_side=2,
        per_workspace=1,
    )
)
