"""What has to hold at the end of a history, whatever people, machines and networks did meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accounts.models import LedgerEntry
from pipeline.models import Attempt, Event, Publication
from tests.simulation.rules.deliveries import deliveries, feed, schedule
from tests.simulation.rules.ledger import closing, ledger
from tests.simulation.rules.on_time import probe
from tests.simulation.rules.publishing import attempts, items, lookups, outlets, publications, told
from tests.simulation.rules.work import counts, moves, odd, runs, watch, work
from webhooks.models import Delivery, DeliveryAttempt

if TYPE_CHECKING:
    from tests.simulation.instance import Instance
    from tests.simulation.world import World

__all__ = ["check", "mix", "probe", "watch"]

RULES: Final = (
    moves,
    odd,
    publications,
    attempts,
    items,
    lookups,
    outlets,
    work,
    runs,
    feed,
    told,
    deliveries,
    schedule,
    ledger,
    closing,
    counts,
)


def check(world: World, instance: Instance) -> None:
    for rule in RULES:
        for broken in rule(world, instance):
            world.broken(f"{rule.__name__}: {broken}")


def mix(world: World) -> None:
    """What was told and stored becomes part of the history's hash."""
    for event in Event.everywhere.order_by("id").values_list("id", "type", "position", "body"):
        world.mix(repr(event).encode())
    for model in (Publication, Attempt, Delivery, DeliveryAttempt, LedgerEntry):
        for row in model.everywhere.order_by("pk").values_list():
            world.mix(repr(row).encode())
