"""What tests before this one have counted is forgotten."""

from __future__ import annotations

from django.conf import settings
from django.core.cache import caches


def clear() -> None:
    """In memory and in Redis; rows go with their test."""
    for name, one in settings.CACHES.items():
        if not one["BACKEND"].endswith("DatabaseCounterCache"):
            caches[name].clear()
