"""Calls a Mastodon server, and maps its failures to plug-in errors.

Statuses and errors are those of docs.joinmastodon.org/methods/statuses, /methods/media, /api/rate-limits (read
2026-11-20).
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn, Unpack

from pipeline.platforms.http_calls import (
    ask,
    ask_once,
    json_object,
    platform_message_of,
    raise_by_status,
    wait_until_reset,
    with_colon,
)
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from datetime import datetime

    from config.core.http_client import Client, Response
    from config.core.http_client.messages import Options
    from pipeline.platforms.base import Account

SERVICE_NAME: Final = "The Mastodon server"
PROCESSING_WAIT: Final = timedelta(seconds=10)


def server_of(account: Account) -> str:
    """Return the address of the account's server."""
    return str(account.config.get("server") or account.base_url).rstrip("/")


def call(
    account: Account,
    method: str,
    path: str,
    *,
    http: Client,
    is_commit: bool = False,
    **options: Unpack[Options],
) -> Response:
    """Call the account's server with its token. Raises as `ask`, or as `ask_once` if `is_commit`."""
    token = account.credentials["access_token"]
    headers = {**(options.get("headers") or {}), "Authorization": f"Bearer {token}"}
    all_options: Options = {**options, "headers": headers}
    send = ask_once if is_commit else ask
    return send(http, method, f"{server_of(account)}{path}", service=SERVICE_NAME, **all_options)


def read_object(response: Response, *, now: datetime) -> dict[str, Any]:
    """Return the object in the answer. Raises as `raise_for_response` for any other answer."""
    answer = json_object(response.body)
    if response.status != 200 or answer is None:
        raise_for_response(response, now=now)
    return answer


def read_list(response: Response, *, now: datetime) -> list[dict[str, Any]]:
    """Return the objects of the list in the answer. Raises as `raise_for_response` for any other answer."""
    try:
        answer = json.loads(response.body)
    except (ValueError, RecursionError):
        answer = None
    if response.status != 200 or not isinstance(answer, list):
        raise_for_response(response, now=now)
    return [entry for entry in answer if isinstance(entry, dict)]


def text_of(answer: object, name: str) -> str:
    """Return a field of the answer, or an empty string if it isn't a text."""
    value = answer.get(name) if isinstance(answer, dict) else None
    return value if isinstance(value, str) else ""


def raise_for_response(response: Response, *, now: datetime, is_commit: bool = False) -> NoReturn:
    """Raise the plug-in error for a failed response, by its status and message.

    A 4xx without JSON is a firewall's or proxy's, which is `TryLater`. With `is_commit`, a status that proves no
    refusal is `OutcomeUnknown`.
    """
    status = response.status
    platform_message = platform_message_of(response, "error_description", "error")
    lower = platform_message.lower()
    if 400 <= status < 500 and status not in {401, 408, 429} and json_object(response.body) is None:
        # A firewall or proxy in front of the server answered, which tells nothing about the post or the account.
        message = f"Something in front of the Mastodon server refused the call (status {status})."
        raise TryLater(message, code="blocked", platform_status=status)
    if status == 403:
        _raise_forbidden(platform_message, lower)
    if status == 422 and "not finished processing" in lower:
        message = f"{SERVICE_NAME} is still working on a file{with_colon(platform_message)}."
        raise TryLater(
            message,
            code="still_processing",
            after=PROCESSING_WAIT,
            platform_status=status,
            platform_message=platform_message,
        )
    if status == 422:
        field = "body" if "text" in lower or "character" in lower else None
        if "media" in lower or "file" in lower or "attach" in lower:
            field = "assets"
        message = f"{SERVICE_NAME} refused it{with_colon(platform_message)}."
        raise Refused(message, field=field, platform_status=status, platform_message=platform_message)
    raise_by_status(
        response,
        service=SERVICE_NAME,
        platform_message=platform_message,
        now=now,
        is_commit=is_commit,
        after=wait_until_reset(response.headers, "X-RateLimit-Reset", now=now),
    )


def _raise_forbidden(platform_message: str, lower: str) -> NoReturn:
    """Raise `NeedsReconnect` for a 403, with a code and an action by its message, which `lower` has in lower case."""
    if "scope" in lower:
        message = f"The access token lacks a right{with_colon(platform_message)}."
        code = "missing_right"
        action = "Make an access token with the rights read and write, and reconnect the outlet with it."
    elif any(
        keyword in lower for keyword in ("disabled", "suspended", "frozen", "confirm", "pending", "moved")
    ):
        message = f"{SERVICE_NAME} doesn't let this account post{with_colon(platform_message)}."
        code = "account_suspended"
        action = "Sign in on the server and settle it there, then check the outlet."
    else:
        message = f"{SERVICE_NAME} doesn't allow this account to do that{with_colon(platform_message)}."
        code, action = "needs_reconnect", ""
    raise NeedsReconnect(
        message, code=code, action=action, platform_status=403, platform_message=platform_message
    )
