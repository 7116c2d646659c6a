"""What Google's failures mean for YouTube; YouTube Data API, "Errors", read on 20 November 2026."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NoReturn
from zoneinfo import ZoneInfo

from pipeline.platforms.http_calls import WORDS, fail_plainly, json_object, retry_after, with_colon
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from config.core.http_client import Response

PACIFIC: Final = ZoneInfo("America/Los_Angeles")
FIREWALL_WAIT: Final = timedelta(minutes=15)
DAY: Final = timedelta(days=1)
_RATE: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_QUOTA: Final = frozenset({"quotaExceeded", "dailyLimitExceeded"})
_RIGHTS: Final = frozenset({"insufficientPermissions", "forbidden"})
_GONE: Final = frozenset({"accountClosed", "accountSuspended", "authenticatedUserAccountClosed"})
FIELDS: Final = {
    "invalidTitle": "title",
    "invalidDescription": "body",
    "invalidTags": "content.tags",
    "invalidCategoryId": "config.category",
    "mediaBodyRequired": "assets",
    "invalidVideoMetadata": None,
}


def reason_of(response: Response) -> tuple[str, str]:
    """Google's reason and words; empty where it gives none."""
    error = (json_object(response.body) or {}).get("error")
    if not isinstance(error, dict):
        return "", ""
    errors = error.get("errors")
    first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
    words = str(error.get("message") or "").strip()[:WORDS].rstrip(".")
    return str(first.get("reason") or ""), words


def fail(response: Response, *, now: datetime, is_commit: bool) -> NoReturn:
    status = response.status
    reason, words = reason_of(response)
    if 400 <= status < 500:
        _waits(response, reason, words, now)
        _account(status, reason, words)
    if 400 <= status < 500 and reason in FIELDS:
        message = f"YouTube refused it{with_colon(words)}."
        raise Refused(
            message, code=_snake(reason), field=FIELDS[reason], platform_status=status, platform_message=words
        )
    fail_plainly(response, what="YouTube", words=words, now=now, is_commit=is_commit)


def _waits(response: Response, reason: str, words: str, now: datetime) -> None:
    status = response.status
    if reason in _RATE:
        message = f"YouTube asks to wait{with_colon(words)}."
        raise TryLater(
            message,
            code="rate_limited",
            after=retry_after(response.headers, now=now),
            is_of_account=True,
            platform_status=status,
            platform_message=words,
        )
    if reason in _QUOTA:
        raise TryLater(
            "This service's quota at YouTube is used up for today; it begins anew at midnight Pacific time.",
            code="quota_exceeded",
            after=until_midnight(now),
            is_of_account=True,
            action="Nothing; it is tried again then. The operator can ask Google for a larger quota.",
            platform_status=status,
            platform_message=words,
        )
    if reason == "uploadLimitExceeded":
        raise TryLater(
            "The channel has uploaded as many videos as YouTube lets it in a day.",
            code="upload_limit",
            after=DAY,
            is_of_account=True,
            platform_status=status,
            platform_message=words,
        )
    if status == 403 and json_object(response.body) is None:
        message = "Something before YouTube answered 403, as a firewall does."
        raise TryLater(message, code="blocked", after=FIREWALL_WAIT, platform_status=status)


def _account(status: int, reason: str, words: str) -> None:
    if reason == "youtubeSignupRequired":
        message, code = "The Google account has no channel at YouTube", "no_channel"
        action = "Make a channel at youtube.com, then connect the outlet again."
    elif reason == "accessNotConfigured":
        message, code = "This service's Google project may not use YouTube's interface", "app_refused"
        action = "The operator enables the YouTube Data API v3 in the project; then check the outlet."
    elif reason in _RIGHTS:
        message, code = "YouTube says that the connection lacks a right", "missing_right"
        action = "Connect the outlet again and grant everything that is asked for."
    elif reason in _GONE:
        message, code = "YouTube has closed or suspended the account", "account_closed"
        action = "Ask YouTube; then connect the outlet again."
    else:
        return
    message = f"{message}{with_colon(words)}."
    raise NeedsReconnect(message, code=code, action=action, platform_status=status, platform_message=words)


def _snake(reason: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in reason)


def until_midnight(now: datetime) -> timedelta:
    """Until the quota begins anew: midnight of Pacific time, whatever its offset is that day."""
    tomorrow = (now.astimezone(PACIFIC) + DAY).date()
    return datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=PACIFIC).astimezone(now.tzinfo) - now
