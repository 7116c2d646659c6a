"""What X's failures mean; from docs.x.com, "Response codes and errors", read on 20 November 2026."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NoReturn

from pipeline.platforms.http_calls import WORDS, fail_plainly, json_object, wait_until_reset, with_colon
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from datetime import datetime

    from config.core.http_client import Response

FIREWALL_WAIT: Final = timedelta(minutes=15)
_PROBLEMS: Final = "/2/problems/"
_ASK_OPERATOR: Final = "The operator checks the app at developer.x.com; then connect the outlet again."
_CREDITS: Final = "The operator buys credits at developer.x.com; then check the outlet and retry."

ACCOUNT: Final = {
    "usage-capped": (
        "credits_used_up",
        "X says that the app's credits or its monthly cap are used up",
        _CREDITS,
    ),
    "client-forbidden": ("app_refused", "X doesn't let this service's app do that", _ASK_OPERATOR),
    "client-disconnected": ("app_refused", "X doesn't let this service's app do that", _ASK_OPERATOR),
    "not-authorized-for-resource": (
        "missing_right",
        "X says that the connection lacks a right",
        "Connect the outlet again and grant everything that is asked for.",
    ),
}
"""Of a 403, by the problem's type: code, what happened, what to do."""


def words_and_type(response: Response) -> tuple[str, str]:
    """What X says, and the last word of the problem's type; also of the older form with a list of errors."""
    answer = json_object(response.body) or {}
    errors = answer.get("errors")
    first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
    words = next(
        (
            str(value).strip()
            for value in (
                answer.get("detail"),
                first.get("detail"),
                first.get("message"),
                answer.get("title"),
                answer.get("error_description"),
            )
            if isinstance(value, str) and value.strip()
        ),
        "",
    )
    kind = answer.get("type") or first.get("type") or ""
    is_problem = isinstance(kind, str) and _PROBLEMS in kind
    return words[:WORDS].rstrip("."), kind.rpartition("/")[2] if is_problem else ""


def is_duplicate(response: Response) -> bool:
    """X compares the words with the account's recent posts: it may have taken an earlier call of ours."""
    return response.status == 403 and "duplicate content" in words_and_type(response)[0].lower()


def fail(response: Response, *, now: datetime, is_commit: bool) -> NoReturn:
    words, kind = words_and_type(response)
    status = response.status
    if status in {403, 402} and json_object(response.body) is None:
        message = f"Something before X answered {status}, as a firewall does."
        raise TryLater(message, code="blocked", after=FIREWALL_WAIT, platform_status=status)
    if status == 402 or (status == 403 and "credits" in words.lower()):
        kind, status = "usage-capped", 403
    if status == 403 and kind in ACCOUNT:
        code, message, action = ACCOUNT[kind]
        message = f"{message}{with_colon(words)}."
        raise NeedsReconnect(
            message, code=code, action=action, platform_status=response.status, platform_message=words
        )
    if status == 403 and "locked" in words.lower():
        message = f"X has locked the account{with_colon(words)}."
        action = "Log in at X and unlock the account; then check the outlet and retry."
        raise NeedsReconnect(
            message, code="account_locked", action=action, platform_status=status, platform_message=words
        )
    if status in {400, 403}:
        message = f"X refused it{with_colon(words)}."
        raise Refused(message, platform_status=status, platform_message=words)
    fail_plainly(response, what="X", words=words, now=now, is_commit=is_commit, after=_reset(response, now))


def _reset(response: Response, now: datetime) -> timedelta | None:
    # The day's limit names its own end; the quarter of an hour's would ask again in vain.
    is_day = str(response.headers.get("x-user-limit-24hour-remaining", "")).strip() == "0"
    names = ("x-user-limit-24hour-reset",) if is_day else ()
    return wait_until_reset(response.headers, *names, "x-rate-limit-reset", now=now)
