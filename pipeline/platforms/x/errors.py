"""Maps X's failures to plug-in errors by docs.x.com, "Response codes and errors", read on 20 November 2026."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NoReturn

from pipeline.platforms.http_calls import (
    MAX_MESSAGE_CHARACTERS,
    json_object,
    raise_by_status,
    wait_until_reset,
    with_colon,
)
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from datetime import datetime

    from config.core.http_client import Response

FIREWALL_WAIT: Final = timedelta(minutes=15)
"""The wait after a firewall refused a call, whose answer names none."""
_PROBLEM_TYPE_PATH: Final = "/2/problems/"
_ASK_OPERATOR: Final = "The operator checks the app at developer.x.com; then reconnect the outlet."
_BUY_CREDITS: Final = "The operator buys credits at developer.x.com; then check the outlet and retry."

ACCOUNT_PROBLEMS: Final = {
    "usage-capped": (
        "credits_used_up",
        "X says that the app's credits or its monthly cap are used up",
        _BUY_CREDITS,
    ),
    "client-forbidden": ("app_refused", "X doesn't let this service's app do that", _ASK_OPERATOR),
    "client-disconnected": ("app_refused", "X doesn't let this service's app do that", _ASK_OPERATOR),
    "not-authorized-for-resource": (
        "missing_right",
        "X says that the connection lacks a right",
        "Reconnect the outlet and grant everything that is asked for.",
    ),
}
"""The error code, message and action for a 403, by the type of X's problem."""


def message_and_type(response: Response) -> tuple[str, str]:
    """Return X's error message, and the last part of the problem's type, each empty if it is missing.

    Both are also read from the older form of answers, which has a list of errors.
    """
    answer = json_object(response.body) or {}
    errors = answer.get("errors")
    first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
    platform_message = next(
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
    problem_type = answer.get("type") or first.get("type") or ""
    is_problem = isinstance(problem_type, str) and _PROBLEM_TYPE_PATH in problem_type
    type_name = problem_type.rpartition("/")[2] if is_problem else ""
    return platform_message[:MAX_MESSAGE_CHARACTERS].rstrip("."), type_name


def is_duplicate(response: Response) -> bool:
    """Return whether X refused the post as a duplicate of a recent one, which an earlier call may have made."""
    return response.status == 403 and "duplicate content" in message_and_type(response)[0].lower()


def raise_for_response(response: Response, *, now: datetime, is_commit: bool) -> NoReturn:
    """Raise the plug-in error for a failed response, by its status, type and message.

    A 402 or 403 without JSON is a firewall's, which is `TryLater`. With `is_commit`, a status that proves no
    refusal is `OutcomeUnknown`.
    """
    platform_message, problem_type = message_and_type(response)
    status = response.status
    if status in {403, 402} and json_object(response.body) is None:
        message = f"Something in front of X, such as a firewall, answered {status}."
        raise TryLater(message, code="blocked", after=FIREWALL_WAIT, platform_status=status)
    if status == 402 or (status == 403 and "credits" in platform_message.lower()):
        problem_type, status = "usage-capped", 403
    if status == 403 and problem_type in ACCOUNT_PROBLEMS:
        code, message, action = ACCOUNT_PROBLEMS[problem_type]
        message = f"{message}{with_colon(platform_message)}."
        raise NeedsReconnect(
            message,
            code=code,
            action=action,
            platform_status=response.status,
            platform_message=platform_message,
        )
    if status == 403 and "locked" in platform_message.lower():
        message = f"X has locked the account{with_colon(platform_message)}."
        action = "Log in at X and unlock the account; then check the outlet and retry."
        raise NeedsReconnect(
            message,
            code="account_locked",
            action=action,
            platform_status=status,
            platform_message=platform_message,
        )
    if status in {400, 403}:
        message = f"X refused it{with_colon(platform_message)}."
        raise Refused(message, platform_status=status, platform_message=platform_message)
    raise_by_status(
        response,
        service="X",
        platform_message=platform_message,
        now=now,
        is_commit=is_commit,
        after=_wait_for_limit(response, now),
    )


def _wait_for_limit(response: Response, now: datetime) -> timedelta | None:
    """Return the wait that the response's rate-limit headers name, or `None`."""
    # The limit of a day has its own header; the wait for the 15-minute limit would end too soon.
    is_day = str(response.headers.get("x-user-limit-24hour-remaining", "")).strip() == "0"
    names = ("x-user-limit-24hour-reset",) if is_day else ()
    return wait_until_reset(response.headers, *names, "x-rate-limit-reset", now=now)
