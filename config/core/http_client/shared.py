"""Holds the guarded HTTP client that this process shares, with the operator's policy."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from config.core.http_client import Client, Policy


@cache
def client() -> Client:
    return Client(
        Policy(
            allow_loopback=settings.OUTBOUND_ALLOW_LOOPBACK,
            allow_private=settings.OUTBOUND_ALLOW_PRIVATE,
            user_agent=settings.USER_AGENT,
        )
    )
