"""Maps Google's failures to plug-in errors by YouTube Data API, "Errors", read on 20 November 2026."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NoReturn
from zoneinfo import ZoneInfo

from pipeline.platforms.http_calls import (
    MAX_MESSAGE_CHARACTERS,
    json_object,
    raise_by_status,
    retry_after,
    with_colon,
)
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from config.core.http_client import Response

PACIFIC: Final = ZoneInfo("America/Los_Angeles")
FIREWALL_WAIT: Final = timedelta(minutes=15)
"""The wait after a firewall refused a call, whose answer names none."""
DAY: Final = timedelta(days=1)
_RATE_REASONS: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_QUOTA_REASONS: Final = frozenset({"quotaExceeded", "dailyLimitExceeded"})
_PERMISSION_REASONS: Final = frozenset({"insufficientPermissions", "forbidden"})
_CLOSED_REASONS: Final = frozenset({"accountClosed", "accountSuspended", "authenticatedUserAccountClosed"})
FIELD_BY_REASON: Final = {
    "invalidTitle": "title",
    "invalidDescription": "body",
    "invalidTags": "content.tags",
    "invalidCategoryId": "config.category",
    "mediaBodyRequired": "assets",
    "invalidVideoMetadata": None,
}
"""The item's or outlet's field that a refusal concerns, by Google's reason."""


def reason_of(response: Response) -> tuple[str, str]:
    """Return Google's reason and message, each empty if it is missing."""
    error = (json_object(response.body) or {}).get("error")
    if not isinstance(error, dict):
        return "", ""
    errors = error.get("errors")
    first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
    message = str(error.get("message") or "").strip()[:MAX_MESSAGE_CHARACTERS].rstrip(".")
    return str(first.get("reason") or ""), message


def raise_for_response(response: Response, *, now: datetime, is_commit: bool) -> NoReturn:
    """Raise the plug-in error for a failed response, by Google's reason and then by its status.

    With `is_commit`, a status that proves no refusal is `OutcomeUnknown`.
    """
    status = response.status
    reason, platform_message = reason_of(response)
    if 400 <= status < 500:
        _raise_if_temporary(response, reason, platform_message, now)
        _raise_if_account_unusable(status, reason, platform_message)
    if 400 <= status < 500 and reason in FIELD_BY_REASON:
        message = f"YouTube refused it{with_colon(platform_message)}."
        raise Refused(
            message,
            code=_to_snake_case(reason),
            field=FIELD_BY_REASON[reason],
            platform_status=status,
            platform_message=platform_message,
        )
    raise_by_status(
        response, service="YouTube", platform_message=platform_message, now=now, is_commit=is_commit
    )


def _raise_if_temporary(response: Response, reason: str, platform_message: str, now: datetime) -> None:
    """Raise `TryLater` for a rate limit, a quota, an upload limit or a firewall."""
    status = response.status
    if reason in _RATE_REASONS:
        message = f"YouTube asks to wait{with_colon(platform_message)}."
        raise TryLater(
            message,
            code="rate_limited",
            after=retry_after(response.headers, now=now),
            is_of_account=True,
            platform_status=status,
            platform_message=platform_message,
        )
    if reason in _QUOTA_REASONS:
        raise TryLater(
            "This service's YouTube quota for today is used up. It resets at midnight Pacific time.",
            code="quota_exceeded",
            after=until_quota_reset(now),
            is_of_account=True,
            action="Nothing. It is retried then. The operator can ask Google for a larger quota.",
            platform_status=status,
            platform_message=platform_message,
        )
    if reason == "uploadLimitExceeded":
        raise TryLater(
            "The channel has reached YouTube's daily limit for uploads.",
            code="upload_limit",
            after=DAY,
            is_of_account=True,
            platform_status=status,
            platform_message=platform_message,
        )
    if status == 403 and json_object(response.body) is None:
        message = "Something in front of YouTube, such as a firewall, answered 403."
        raise TryLater(message, code="blocked", after=FIREWALL_WAIT, platform_status=status)


def _raise_if_account_unusable(status: int, reason: str, platform_message: str) -> None:
    """Raise `NeedsReconnect` if the reason is that the account or the app can't be used."""
    if reason == "youtubeSignupRequired":
        message, code = "The Google account has no channel at YouTube", "no_channel"
        action = "Make a channel at youtube.com, then reconnect the outlet."
    elif reason == "accessNotConfigured":
        message, code = "This service's Google project may not use YouTube's interface", "app_refused"
        action = "The operator enables the YouTube Data API v3 in the project; then check the outlet."
    elif reason in _PERMISSION_REASONS:
        message, code = "YouTube says that the connection lacks a right", "missing_right"
        action = "Reconnect the outlet and grant everything that is asked for."
    elif reason in _CLOSED_REASONS:
        message, code = "YouTube has closed or suspended the account", "account_closed"
        action = "Ask YouTube; then reconnect the outlet."
    else:
        return
    message = f"{message}{with_colon(platform_message)}."
    raise NeedsReconnect(
        message, code=code, action=action, platform_status=status, platform_message=platform_message
    )


def _to_snake_case(reason: str) -> str:
    """Return a reason as a code of ours, such as `invalid_title`."""
    return "".join(f"_{character.lower()}" if character.isupper() else character for character in reason)


def until_quota_reset(now: datetime) -> timedelta:
    """Return the time until the quota is renewed: midnight Pacific time, with that day's offset."""
    tomorrow = (now.astimezone(PACIFIC) + DAY).date()
    return datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=PACIFIC).astimezone(now.tzinfo) - now
