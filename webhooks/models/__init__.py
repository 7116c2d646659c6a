"""Models of endpoints, deliveries and their attempts."""

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
