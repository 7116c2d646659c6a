"""Endpoints and what was handed over to them."""

from webhooks.models.delivery import Delivery, DeliveryAttempt
from webhooks.models.endpoint import EVERY_EVENT, Endpoint

__all__ = ["EVERY_EVENT", "Delivery", "DeliveryAttempt", "Endpoint"]
