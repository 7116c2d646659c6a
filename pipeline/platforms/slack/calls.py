"""Calls of Slack's API that only read, and what its answers say of a message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pipeline.platforms.base import Account, CannotTell, Found, Sent
from pipeline.platforms.http_calls import ask, json_object
from pipeline.platforms.slack.errors import SERVICE_NAME, raise_for_response
from pipeline.plugins import OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client

_TIMESTAMP = re.compile(r"[0-9]{1,12}\.[0-9]{1,8}")


def is_webhook(account: Account) -> bool:
    """Return whether the account writes through a webhook, not as a bot."""
    return not str(account.credentials.get("token", "")).startswith("xoxb-")


def auth_headers(account: Account) -> dict[str, str]:
    return {"Authorization": f"Bearer {account.credentials['token']}"}


def to_sent(account: Account, channel: object, ts: object) -> Sent:
    """Return the message that Slack answered as `Sent`. Raises `OutcomeUnknown` where it names none."""
    if not isinstance(channel, str) or not isinstance(ts, str) or not _TIMESTAMP.fullmatch(ts):
        message = "Slack accepted the call without naming the post."
        raise OutcomeUnknown(message, platform_status=200)
    site = str(account.profile.get("limits", {}).get("url", ""))
    link = f"{site.rstrip('/')}/archives/{channel}/p{ts.replace('.', '')}" if site else ""
    return Sent(external_id=ts, url=link, details={"channel": channel})


def call_method(
    account: Account, method: str, query: Mapping[str, str], *, http: Client, now: datetime
) -> dict[str, Any]:
    """Call a method that only reads, and return its answer. Raises the plug-in error for a refusal."""
    url = f"{account.base_url}/{method}?{urlencode(query)}"
    response = ask(http, "GET", url, service=SERVICE_NAME, headers=auth_headers(account))
    answer = json_object(response.body)
    if answer is None or answer.get("ok") is not True:
        raise_for_response(response, now, is_commit=False)
    return answer


def find_in_messages(account: Account, messages: object, key: str, text: str) -> Found | CannotTell | None:
    """Return the message with the key; `None` where none is ours, `CannotTell` where one may be."""
    if not isinstance(messages, list):
        return CannotTell("Slack's list of messages couldn't be read.")
    is_unsure = False
    bot = account.profile.get("limits", {}).get("bot_id")
    for message in messages:
        if not isinstance(message, dict):
            return CannotTell("Slack's list of messages couldn't be read.")
        metadata = message.get("metadata")
        payload = metadata.get("event_payload") if isinstance(metadata, dict) else None
        if isinstance(payload, dict) and payload.get("key") == key:
            return Found(to_sent(account, account.config.get("channel"), message.get("ts")))
        # A message of our app whose metadata isn't shown could be this post.
        is_ours = bool(message.get("bot_id")) and bot in {None, "", message.get("bot_id")}
        is_unsure = is_unsure or (not payload and (is_ours or message.get("text") == text))
    return (
        CannotTell("The channel has messages of this app whose origin Slack doesn't show.")
        if is_unsure
        else None
    )
