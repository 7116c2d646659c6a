"""Declares the status changes that endpoints, deliveries and recoveries allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core import states

if TYPE_CHECKING:
    from collections.abc import Mapping

ENDPOINT: Final[Mapping[str, frozenset[str]]] = {
    # An answer of 410, which says that the endpoint is gone forever, disables an active one at once.
    "active": frozenset({"degraded", "disabled"}),
    "degraded": frozenset({"active", "disabled"}),
    # Only a person switches it on again.
    "disabled": frozenset({"active"}),
}

DELIVERY: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"delivered", "failed", "held"}),
    # A held delivery fails if its endpoint is removed.
    "held": frozenset({"pending", "failed"}),
    # An ended delivery is sent again if a person asks for it.
    "failed": frozenset({"pending"}),
    "delivered": frozenset({"pending"}),
}

OPEN_DELIVERIES: Final = frozenset({"pending", "held"})
"""Statuses of a delivery that hasn't ended."""

RECOVERY: Final[Mapping[str, frozenset[str]]] = {
    "running": frozenset({"done", "stopped"}),
    "done": frozenset(),
    "stopped": frozenset(),
}

states.register("webhooks.Endpoint", ENDPOINT)
states.register("webhooks.Delivery", DELIVERY)
states.register("webhooks.Recovery", RECOVERY)
