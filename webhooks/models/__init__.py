"""Endpoints and what was handed over to them."""

from webhooks.models.delivery import Delivery, DeliveryAttempt
from webhooks.models.endpoint import EVERY_EVENT, Endpoint, EndpointPace
from webhooks.models.recovery import Recovery

__all__ = ["EVERY_EVENT", "Delivery", "DeliveryAttempt", "Endpoint", "EndpointPace", "Recovery"]
