"""Collects the models of endpoints, deliveries, their attempts, and recoveries."""

from webhooks.models.delivery import Delivery, DeliveryAttempt, DeliveryStatus
from webhooks.models.endpoint import EVERY_EVENT, Endpoint, EndpointPace, EndpointStatus
from webhooks.models.recovery import Recovery, RecoveryStatus

__all__ = [
    "EVERY_EVENT",
    "Delivery",
    "DeliveryAttempt",
    "DeliveryStatus",
    "Endpoint",
    "EndpointPace",
    "EndpointStatus",
    "Recovery",
    "RecoveryStatus",
]
