"""Lists the meanings of Telegram's error answers by core.telegram.org/bots/api, and raises them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from pipeline.platforms import http_calls
from pipeline.platforms.failures import Failure, raise_from_table
from pipeline.platforms.http_calls import LONGEST_WAIT, json_object
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Response


SERVICE_NAME = "Telegram"
GIVE_RIGHT_TO_POST = "Make the bot an administrator of the chat who may post messages, then check the outlet."
# The first row that matches counts. A 400 has no code, so its rows match by texts of the message.
_ERRORS = (
    Failure(TryLater, "rate_limited", "Telegram asks to wait.", status=429),
    Failure(
        NeedsReconnect,
        "token_refused",
        "Telegram doesn't know the bot's token.",
        "Get the token from @BotFather and reconnect the outlet.",
        status=401,
    ),
    Failure(
        NeedsReconnect,
        "token_refused",
        "Telegram doesn't know the bot's token.",
        "Get the token from @BotFather and reconnect the outlet.",
        status=404,
    ),
    Failure(
        NeedsReconnect, "no_right_to_post", "The bot may not post there.", GIVE_RIGHT_TO_POST, status=403
    ),
    Failure(
        NeedsReconnect,
        "chat_not_found",
        "Telegram can't find the chat.",
        "Correct the chat in the outlet's settings, and add the bot to it.",
        status=400,
        words=("chat not found", "peer_id_invalid", "channel_invalid"),
    ),
    Failure(
        NeedsReconnect,
        "no_right_to_post",
        "The bot may not post there.",
        GIVE_RIGHT_TO_POST,
        status=400,
        words=(
            "not enough rights",
            "administrator rights",
            "write_forbidden",
            "have no rights",
            "channel_private",
        ),
    ),
    Failure(
        NeedsReconnect,
        "topic_closed",
        "The chat's topic can't be written to.",
        "Correct the topic in the outlet's settings.",
        status=400,
        words=("thread not found", "topic_closed", "topic_deleted"),
    ),
    Failure(
        Refused,
        "too_long",
        "The text is too long for Telegram.",
        status=400,
        words=("is too long",),
        field="body",
    ),
    Failure(
        Refused,
        "file_refused",
        "Telegram can't use the file.",
        "Put another file in its place, then retry.",
        status=400,
        words=(
            "photo_invalid",
            "wrong file",
            "image_process",
            "media_empty",
            "photo_ext_invalid",
            "media_invalid",
        ),
        field="assets",
    ),
    Failure(Refused, "file_too_large", "The files are too large for Telegram.", status=413, field="assets"),
)


class ChatMoved(Exception):
    """Raised if Telegram refused a call because the chat has another id now, which is `chat`."""

    def __init__(self, chat: str) -> None:
        super().__init__("The chat has another number now.")
        self.chat = chat


def description_of(answer: Mapping[str, Any]) -> str:
    """Return Telegram's error message, cut, or an empty string if the answer has none."""
    description = answer.get("description")
    return description[: http_calls.MAX_MESSAGE_CHARACTERS] if isinstance(description, str) else ""


def raise_for_response(response: Response, now: datetime, *, is_commit: bool) -> NoReturn:
    """Raise the plug-in error for a failed response, or `ChatMoved` if the chat has another id now."""
    answer = json_object(response.body) or {}
    parameters = answer.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    new_chat_id, wait = parameters.get("migrate_to_chat_id"), parameters.get("retry_after")
    if response.status == 400 and isinstance(new_chat_id, int):
        raise ChatMoved(str(new_chat_id))
    after = None
    if isinstance(wait, int) and not isinstance(wait, bool) and wait >= 0:
        after = min(timedelta(seconds=min(wait, 10**6)), LONGEST_WAIT)
    raise_from_table(
        _ERRORS,
        response,
        service=SERVICE_NAME,
        code="",
        platform_message=description_of(answer),
        now=now,
        is_commit=is_commit,
        after=after,
    )
