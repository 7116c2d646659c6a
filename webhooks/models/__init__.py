"""Endpoints and what was handed over to them."""

from webhooks.models.delivery import Delivery, DeliveryAttempt, DeliveryStatus, Recovery, RecoveryStatus
from webhooks.models.endpoint import EVERY_EVENT, Endpoint, EndpointPace, EndpointStatus

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
