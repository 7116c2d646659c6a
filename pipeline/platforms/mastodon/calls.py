"""Calls to a Mastodon server, and what their failures mean.

Statuses and errors: docs.joinmastodon.org/methods/statuses, /methods/media, /api/rate-limits (read 2026-11-20).
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn, Unpack

from pipeline.platforms.http_calls import (
    ask,
    ask_once,
    fail_plainly,
    json_object,
    wait_until_reset,
    with_colon,
    words_of,
)
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from datetime import datetime

    from config.core.http_client import Client, Response
    from config.core.http_client.messages import Options
    from pipeline.platforms.base import Account

WHAT: Final = "The Mastodon server"
STILL_WORKING: Final = timedelta(seconds=10)


def server_of(account: Account) -> str:
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
    token = account.credentials["access_token"]
    headers = {**(options.get("headers") or {}), "Authorization": f"Bearer {token}"}
    sent: Options = {**options, "headers": headers}
    send = ask_once if is_commit else ask
    return send(http, method, f"{server_of(account)}{path}", what=WHAT, **sent)


def read_object(response: Response, *, now: datetime) -> dict[str, Any]:
    """The object that a read answered with; raises what any other answer means."""
    answer = json_object(response.body)
    if response.status != 200 or answer is None:
        fail(response, now=now)
    return answer


def read_list(response: Response, *, now: datetime) -> list[dict[str, Any]]:
    try:
        answer = json.loads(response.body)
    except (ValueError, RecursionError):
        answer = None
    if response.status != 200 or not isinstance(answer, list):
        fail(response, now=now)
    return [one for one in answer if isinstance(one, dict)]


def text_of(answer: object, name: str) -> str:
    value = answer.get(name) if isinstance(answer, dict) else None
    return value if isinstance(value, str) else ""


def fail(response: Response, *, now: datetime, is_commit: bool = False) -> NoReturn:
    status = response.status
    words = words_of(response, "error_description", "error")
    lower = words.lower()
    if 400 <= status < 500 and status not in {401, 408, 429} and json_object(response.body) is None:
        # A firewall or a proxy in front of the server: it says nothing of the post or the account.
        message = f"Something in front of the Mastodon server turned the call away (status {status})."
        raise TryLater(message, code="blocked", platform_status=status)
    if status == 403:
        _fail_forbidden(words, lower)
    if status == 422 and "not finished processing" in lower:
        message = f"{WHAT} is still working on a file{with_colon(words)}."
        raise TryLater(
            message,
            code="still_processing",
            after=STILL_WORKING,
            platform_status=status,
            platform_message=words,
        )
    if status == 422:
        field = "body" if "text" in lower or "character" in lower else None
        if "media" in lower or "file" in lower or "attach" in lower:
            field = "assets"
        message = f"{WHAT} refused it{with_colon(words)}."
        raise Refused(message, field=field, platform_status=status, platform_message=words)
    fail_plainly(
        response,
        what=WHAT,
        words=words,
        now=now,
        is_commit=is_commit,
        after=wait_until_reset(response.headers, "X-RateLimit-Reset", now=now),
    )


def _fail_forbidden(words: str, lower: str) -> NoReturn:
    if "scope" in lower:
        message = f"The access token lacks a right{with_colon(words)}."
        code = "missing_right"
        action = "Make an access token with the rights read and write, and connect the outlet again with it."
    elif any(sign in lower for sign in ("disabled", "suspended", "frozen", "confirm", "pending", "moved")):
        message = f"{WHAT} doesn't let this account post{with_colon(words)}."
        code = "account_suspended"
        action = "Sign in on the server and settle it there, then check the outlet."
    else:
        message = f"{WHAT} doesn't allow this account to do that{with_colon(words)}."
        code, action = "needs_reconnect", ""
    raise NeedsReconnect(message, code=code, action=action, platform_status=403, platform_message=words)
