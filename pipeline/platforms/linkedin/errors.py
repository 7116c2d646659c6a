"""Builds the headers of LinkedIn's calls, and maps failures to plug-in errors.

The errors are those of MS Learn, "Error handling" and the documents of the calls, read on 20 November 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pipeline.platforms.http_calls import (
    json_object,
    platform_message_of,
    raise_by_status,
    wait_until_reset,
    with_colon,
)
from pipeline.platforms.oauth_tokens import bearer_header
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater

if TYPE_CHECKING:
    from datetime import datetime

    from config.core.http_client import Response
    from pipeline.platforms.base import Account

FIREWALL_WAIT: Final = timedelta(minutes=15)
"""The wait after a firewall refused a call, whose answer names none."""
LIMIT_WAIT: Final = timedelta(hours=1)
"""The longest wait after a 429 that names none: the limits of a day end at midnight UTC, which may be near."""
URN: Final = re.compile(r"urn:li:(?:share|ugcPost|activity):[0-9]+")
_NOT_READY_MESSAGES: Final = ("unable to obtain activity", "resource is forbidden")
"""The beginnings, in lower case, of messages about a file or post that was just made and can't be found yet."""


@dataclass(frozen=True)
class Duplicate:
    """LinkedIn's refusal of a post that the account has already; `urn` is the first post's, or empty if not named."""

    urn: str


def request_headers(account: Account, **extra_headers: str) -> dict[str, str]:
    """Return the headers of a call: token, version of the API, and further ones."""
    return bearer_header(
        account,
        **{"LinkedIn-Version": account.api_version, "X-Restli-Protocol-Version": "2.0.0", **extra_headers},
    )


def find_duplicate(response: Response) -> Duplicate | None:
    """Return the post that LinkedIn says this one repeats, or `None` if the response isn't about a duplicate."""
    answer: dict[str, Any] = json_object(response.body) or {}
    message = str(answer.get("message") or "")
    is_duplicate = answer.get("code") == "DUPLICATE_POST" or "is a duplicate of" in message
    if response.status not in {400, 409, 422} or not is_duplicate:
        return None
    match = URN.search(message)
    return Duplicate(match[0] if match else "")


def raise_for_response(response: Response, *, account: Account, now: datetime, is_commit: bool) -> NoReturn:
    """Raise the plug-in error for a failed response.

    With `is_commit`, an answer that proves no refusal is `OutcomeUnknown`, and otherwise `TryLater`: a 5xx, or one
    of `_NOT_READY_MESSAGES`, which may be about the post itself.
    """
    status, answer = response.status, json_object(response.body)
    platform_message = platform_message_of(response, "message").rstrip(".")
    if status == 426 or (answer or {}).get("code") == "NONEXISTENT_VERSION":
        message = f"LinkedIn has ended version {account.api_version or '(none)'} of its interface."
        action = "The operator sets a newer version in PLATFORM_VERSIONS (linkedin=YYYYMM); then retry."
        raise Refused(
            message,
            code="version_retired",
            action=action,
            platform_status=status,
            platform_message=platform_message,
        )
    if status == 403 and answer is None:
        message = "Something in front of LinkedIn, such as a firewall, answered 403."
        raise TryLater(message, code="blocked", after=FIREWALL_WAIT, platform_status=status)
    if status in {400, 403, 404, 422} and platform_message.lower().startswith(_NOT_READY_MESSAGES):
        message = f"LinkedIn couldn't find something that was just made{with_colon(platform_message)}."
        if is_commit:
            raise OutcomeUnknown(message, platform_status=status, platform_message=platform_message)
        raise TryLater(message, platform_status=status, platform_message=platform_message)
    if status == 403:
        message = f"LinkedIn says that the connection lacks a right{with_colon(platform_message)}."
        action = "Reconnect the outlet and grant everything that is asked for."
        raise NeedsReconnect(
            message,
            code="missing_right",
            action=action,
            platform_status=status,
            platform_message=platform_message,
        )
    raise_by_status(
        response,
        service="LinkedIn",
        platform_message=platform_message,
        now=now,
        is_commit=is_commit,
        after=_wait_for_limit(response, now),
    )


def _wait_for_limit(response: Response, now: datetime) -> timedelta:
    """Return the wait after a 429: the one that a header names, or `LIMIT_WAIT`, but not beyond midnight UTC.

    LinkedIn promises no header, and its limits of a day end at midnight UTC.
    """
    named_wait = wait_until_reset(response.headers, now=now)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return named_wait if named_wait is not None else min(LIMIT_WAIT, midnight - now)
