"""Declares the status changes that endpoints, deliveries and recoveries allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core import states

if TYPE_CHECKING:
    from collections.abc import Mapping

ENDPOINT: Final[Mapping[str, frozenset[str]]] = {
    # Straight to disabled by an answer of 410, which says that the endpoint is gone forever.
    "active": frozenset({"degraded", "disabled"}),
    "degraded": frozenset({"active", "disabled"}),
    # Only by a person.
    "disabled": frozenset({"active"}),
}

DELIVERY: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"delivered", "failed", "held"}),
    # Failed if the endpoint is removed while it is held.
    "held": frozenset({"pending", "failed"}),
    # Sent again because a person asked for it.
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
