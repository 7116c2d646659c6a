"""What LinkedIn's failures mean; MS Learn, "Error handling", and answers seen, read on 20 November 2026."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pipeline.platforms.http_calls import fail_plainly, json_object, wait_until_reset, with_colon, words_of
from pipeline.platforms.oauth_tokens import bearer_header
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater

if TYPE_CHECKING:
    from datetime import datetime

    from config.core.http_client import Response
    from pipeline.platforms.base import Account

FIREWALL_WAIT: Final = timedelta(minutes=15)
LIMIT_WAIT: Final = timedelta(hours=1)
URN: Final = re.compile(r"urn:li:(?:share|ugcPost|activity):[0-9]+")
_SETTLING: Final = ("unable to obtain activity", "resource is forbidden")


def request_headers(account: Account, **more: str) -> dict[str, str]:
    return bearer_header(
        account, **{"LinkedIn-Version": account.api_version, "X-Restli-Protocol-Version": "2.0.0", **more}
    )


def duplicate_of(response: Response) -> str | None:
    """The post that LinkedIn says this one repeats; empty where it names none, None where it isn't that."""
    answer: dict[str, Any] = json_object(response.body) or {}
    words = str(answer.get("message") or "")
    is_one = answer.get("code") == "DUPLICATE_POST" or "is a duplicate of" in words
    if response.status not in {400, 409, 422} or not is_one:
        return None
    match = URN.search(words)
    return match[0] if match else ""


def fail(response: Response, *, account: Account, now: datetime, is_commit: bool) -> NoReturn:
    status, answer = response.status, json_object(response.body)
    words = words_of(response, "message").rstrip(".")
    if status == 426 or (answer or {}).get("code") == "NONEXISTENT_VERSION":
        message = f"LinkedIn has ended version {account.api_version or '(none)'} of its interface."
        action = "The operator sets a newer version in PLATFORM_VERSIONS (linkedin=YYYYMM); then retry."
        raise Refused(
            message, code="version_retired", action=action, platform_status=status, platform_message=words
        )
    if status == 403 and answer is None:
        message = "Something before LinkedIn answered 403, as a firewall does."
        raise TryLater(message, code="blocked", after=FIREWALL_WAIT, platform_status=status)
    if status in {400, 403, 404, 422} and words.lower().startswith(_SETTLING):
        message = f"LinkedIn couldn't find something that was just made{with_colon(words)}."
        if is_commit:
            raise OutcomeUnknown(message, platform_status=status, platform_message=words)
        raise TryLater(message, platform_status=status, platform_message=words)
    if status == 403:
        message = f"LinkedIn says that the connection lacks a right{with_colon(words)}."
        action = "Connect the outlet again and grant everything that is asked for."
        raise NeedsReconnect(
            message, code="missing_right", action=action, platform_status=status, platform_message=words
        )
    fail_plainly(
        response, what="LinkedIn", words=words, now=now, is_commit=is_commit, after=_wait(response, now)
    )


def _wait(response: Response, now: datetime) -> timedelta:
    """LinkedIn promises no header; its limits are a day's and end at midnight UTC."""
    named = wait_until_reset(response.headers, now=now)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return named if named is not None else min(LIMIT_WAIT, midnight - now)
