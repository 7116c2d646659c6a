"""Checks that settings don't contradict each other, and says what to do if they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004  Django's name

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_CALL_SECONDS = 50
"""The longest call of a task: 20 s to fetch a feed and 30 s to read it; a publishing call is ended then, too."""


@register(Tags.security)
def check_settings_agree(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Return a system check message for each contradiction."""
    del app_configs
    messages: list[CheckMessage] = []
    if not settings.IS_DEVELOPMENT and settings.LEASE_SECONDS <= LONGEST_CALL_SECONDS:
        messages.append(
            Error(
                f"LEASE_SECONDS is {settings.LEASE_SECONDS}: a worker would lose its row in the middle of a call.",
                hint=f"Set it above {LONGEST_CALL_SECONDS}, or leave it out for 60.",
                id="ground.E001",
            )
        )
    if not settings.IS_DEVELOPMENT and settings.OUTBOUND_ALLOW_LOOPBACK:
        messages.append(
            Warning(
                "OUTBOUND_ALLOW_LOOPBACK is on in production: a user's source can reach this machine's own services.",
                hint="Leave it out.",
                id="ground.W001",
            )
        )
    if not settings.IS_DEVELOPMENT and not settings.PUBLIC_URL.startswith("https://"):
        messages.append(
            Warning(
                "PUBLIC_URL is not https: tokens travel in clear, and platforms refuse its media.",
                hint="Put a TLS proxy in front and set PUBLIC_URL to its https address.",
                id="ground.W002",
            )
        )
    if settings.REDIS_URL and not settings.IS_POSTGRES:
        messages.append(
            Warning(
                "REDIS_URL is set without DATABASE_URL: several processes would share one SQLite file.",
                hint="Set DATABASE_URL to a PostgreSQL database, or leave REDIS_URL out.",
                id="ground.W003",
            )
        )
    return messages
