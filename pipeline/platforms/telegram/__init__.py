"""Publishes to a Telegram channel or group through a bot.

Limits and errors are those of core.telegram.org/bots/api and of the constants of python-telegram-bot 22.8 (Bot API
10.0), read on 2026-11-20. The token is in the path of every address, so that no message here may contain an
address.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, AccountInfo, Api, CannotTell, Pace, Platform, Sent, Setting
from pipeline.platforms.fitting import FITTING_SETTINGS, fit_text
from pipeline.platforms.http_calls import ask, ask_once, json_object
from pipeline.platforms.rules import BucketRule, MediaRule, images_of, utf16_units
from pipeline.platforms.telegram.errors import (
    GIVE_RIGHT_TO_POST,
    SERVICE_NAME,
    ChatMoved,
    description_of,
    raise_for_response,
)
from pipeline.platforms.upload_bodies import UploadFile, build_multipart, file_of
from pipeline.plugins import ConfigInvalid, Evidence, NeedsReconnect, OutcomeUnknown, Problem, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, Length, Payload, PayloadAsset

    Call = Callable[..., Response]

MAX_TEXT_UNITS = 4096
MAX_CAPTION_UNITS = 1024
MAX_GROUP_FILES = 10
MAX_SIDES_PIXELS = 10_000
"""The most pixels of a photo's width and height, added."""

_BOT_TOKEN = re.compile(r"[0-9]{3,20}:[A-Za-z0-9_-]{20,100}")
_CHAT_NAME_OR_ID = re.compile(r"@[A-Za-z][A-Za-z0-9_]{3,31}|-?[0-9]{1,20}")
_SUPERGROUP_PREFIX = "-100"
_UNIT = "UTF-16 units"

_PHOTO_RULE = MediaRule(
    ("image/jpeg", "image/png", "image/webp"), most=MAX_GROUP_FILES, max_bytes=10_000_000, ratio=(1 / 20, 20)
)
_VIDEO_RULE = MediaRule(("video/mp4",), most=MAX_GROUP_FILES, max_bytes=50_000_000)


class Telegram(Platform):
    kind = "telegram"
    label = "Telegram"
    summary = "Posts of text, pictures and videos in a Telegram channel or group."
    secret_addresses = (r"(?i:(/bot)\d+(?::|%3A)[0-9A-Za-z_-]{8,})",)
    evidence = Evidence("documents", "November 2026", "tests/platforms/test_telegram.py")
    buckets = ("text", "image", "video")
    shows_link_card = True
    can_remove = True
    api: ClassVar[Api | None] = Api("https://api.telegram.org", "10.0", reviewed_on=date(2026, 11, 20))
    # 20 messages a minute in one group or channel.
    pace = Pace(gap=timedelta(seconds=3))
    rules: ClassVar = {
        "text": BucketRule(MAX_TEXT_UNITS, utf16_units, _UNIT),
        "image": BucketRule(
            MAX_CAPTION_UNITS,
            utf16_units,
            _UNIT,
            needs_text=False,
            images=_PHOTO_RULE,
            video=_VIDEO_RULE,
            needs="image",
        ),
        "video": BucketRule(
            MAX_CAPTION_UNITS,
            utf16_units,
            _UNIT,
            needs_text=False,
            images=_PHOTO_RULE,
            video=_VIDEO_RULE,
            needs="video",
        ),
    }
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "token",
            "Bot token",
            "@BotFather gives it when you make a bot with /newbot; /token shows it again.",
            kind="password",
            is_secret=True,
            max_length=150,
        ),
        Setting(
            "chat",
            "Channel or group",
            "@name of a public channel, or the number of a chat, such as -1001234567890. The bot has to be an "
            "administrator who may post.",
            max_length=40,
        ),
        Setting(
            "topic", "Topic", "Number of a topic of a group with topics.", kind="number", is_required=False
        ),
        Setting(
            "show_title",
            "Put the title above the text, in bold",
            kind="flag",
            default=False,
            is_required=False,
        ),
        Setting("is_silent", "Send without a sound", kind="flag", default=False, is_required=False),
        Setting("link_preview", "Show a preview of links", kind="flag", default=True, is_required=False),
        *FITTING_SETTINGS,
    )

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_config(config)
        if not _CHAT_NAME_OR_ID.fullmatch(clean["chat"]):
            message = "Give the chat as @name, or as its number."
            raise ConfigInvalid([Problem("config.chat", "invalid", message)])
        return clean

    def clean_credentials(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_credentials(credentials)
        # The token becomes part of an address.
        if not _BOT_TOKEN.fullmatch(clean["token"]):
            message = "This isn't a bot token; @BotFather writes it as digits, a colon and letters."
            raise ConfigInvalid([Problem("credentials.token", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        bot = _read_result(account, "getMe", {}, http=http, now=now)
        new_chat = ""
        try:
            chat = _read_result(account, "getChat", {"chat_id": _chat_of(account)}, http=http, now=now)
        except ChatMoved as error:
            new_chat = error.chat
            chat = _read_result(account, "getChat", {"chat_id": new_chat}, http=http, now=now)
        query = {"chat_id": str(chat.get("id", "")), "user_id": str(bot.get("id", ""))}
        member = _read_result(account, "getChatMember", query, http=http, now=now)
        _require_right_to_post(str(chat.get("type", "")), member)
        name = str(chat.get("username", ""))
        return AccountInfo(
            external_id=str(chat.get("id", "")),
            handle=f"@{name}" if name else "",
            name=str(chat.get("title") or name),
            url=f"https://t.me/{name}" if name else "",
            config={"chat": new_chat} if new_chat else {},
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        rule = self.rules[payload.bucket]
        heading = _heading_of(account, payload)
        if heading and rule.text_max is not None:
            rule = replace(rule, text_max=rule.text_max - utf16_units(heading))
        return fit_text(payload, rule, account.config)

    def length(self, account: Account, post: Adapted) -> Length:
        return super().length(account, replace(post, parts=(_full_text(account, post),)))

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        rule = self.rules[post.payload.bucket]
        problems = list(super().validate(account, replace(post, parts=(_full_text(account, post),))))
        files = files_of(post.payload)
        if rule.images is not None and len(files) > MAX_GROUP_FILES:
            message = f"It has {len(files)} files; the maximum here is {MAX_GROUP_FILES}."
            problems.append(Problem("assets", "too_many_files", message))
        for index, image in enumerate(images_of(post.payload.assets)):
            if rule.images is not None and (image.width or 0) + (image.height or 0) > MAX_SIDES_PIXELS:
                message = f"Its width and height are over {MAX_SIDES_PIXELS:,} pixels together."
                problems.append(Problem(f"assets[{index}]", "too_large", message))
        return tuple(problems)

    def commit(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Sent:
        del state, key
        try:
            return _send_post(account, post, _chat_of(account), http=http, now=now)
        except ChatMoved as error:
            # Telegram refused the call: the group became a supergroup, which has another id.
            return _send_post(account, post, error.chat, http=http, now=now)

    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> CannotTell:
        del account, post, state, http, key, now
        return CannotTell("A Telegram bot can't read a chat's messages.")

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        chat = str(sent.details.get("chat_id") or _chat_of(account))
        message_ids = sent.details.get("message_ids") or [sent.external_id]
        for message_id in message_ids:
            try:
                _delete_message(account, chat, str(message_id), http=http, now=now)
            except ChatMoved as error:
                _delete_message(account, error.chat, str(message_id), http=http, now=now)


def files_of(payload: Payload) -> list[PayloadAsset]:
    """Return the pictures and videos that are shown, in the item's order; a text has none."""
    if payload.bucket == "text":
        return []
    images = images_of(payload.assets)
    return [file for file in payload.assets if file in images or file.mime_type.startswith("video/")]


def _chat_of(account: Account) -> str:
    return str(account.config.get("chat", ""))


def _heading_of(account: Account, payload: Payload) -> str:
    """Return the title with a blank line after it, or an empty string if the outlet doesn't show it."""
    title = payload.title.strip()
    return f"{title}\n\n" if title and account.config.get("show_title") else ""


def _full_text(account: Account, post: Adapted) -> str:
    """Return the text as it is sent, with its heading."""
    return f"{_heading_of(account, post.payload)}{post.payload.body}".strip()


def _send_post(account: Account, post: Adapted, chat: str, *, http: Client, now: datetime) -> Sent:
    """Send the post to a chat.

    Raises `ChatMoved` if the chat has another id now, and otherwise as `raise_for_response`, or `OutcomeUnknown` if
    Telegram doesn't name the post.
    """
    method, fields, files = _build_request(account, post, chat)
    response = _call_bot(ask_once, account, method, fields, files, http=http)
    answer = json_object(response.body)
    if answer is None or answer.get("ok") is not True:
        raise_for_response(response, now, is_commit=True)
    return _to_sent(answer.get("result"))


def _build_request(
    account: Account, post: Adapted, chat: str
) -> tuple[str, dict[str, str], list[UploadFile]]:
    """Return the method to call, its fields and its files."""
    config, text = account.config, _full_text(account, post)
    heading = _heading_of(account, post.payload).strip()
    # Bold text is marked by offsets, not by tags, so that no part of the text is ever taken for a tag.
    bold = [{"type": "bold", "offset": 0, "length": utf16_units(heading)}] if heading else []
    fields = {"chat_id": chat, "disable_notification": json.dumps(bool(config.get("is_silent")))}
    if config.get("topic"):
        fields["message_thread_id"] = str(config["topic"])
    assets = files_of(post.payload)
    if not assets:
        preview = {"is_disabled": not config.get("link_preview", True)}
        fields |= {"text": text, "link_preview_options": json.dumps(preview)}
        if bold:
            fields["entities"] = json.dumps(bold)
        return "sendMessage", fields, []
    caption: dict[str, Any] = {"caption": text} if text else {}
    if bold:
        caption["caption_entities"] = bold
    if len(assets) == 1:
        media_type = _media_type(assets[0])
        fields |= {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in caption.items()
        }
        return f"send{media_type.title()}", fields, [file_of(media_type, assets[0], 0)]
    media = [
        {"type": _media_type(asset), "media": f"attach://file{index}"} for index, asset in enumerate(assets)
    ]
    # Telegram shows the first file's caption as that of the group.
    media[0] |= caption
    fields["media"] = json.dumps(media)
    files = [file_of(f"file{index}", asset, index) for index, asset in enumerate(assets)]
    return "sendMediaGroup", fields, files


def _media_type(asset: PayloadAsset) -> str:
    return "video" if asset.mime_type.startswith("video/") else "photo"


def _call_bot(
    call: Call,
    account: Account,
    method: str,
    fields: Mapping[str, str],
    files: Sequence[UploadFile] = (),
    *,
    http: Client,
) -> Response:
    """Call a method of the Bot API with `call`, which is `ask` or `ask_once`."""
    url = f"{account.base_url}/bot{account.credentials.get('token', '')}/{method}"
    if not files:
        return call(http, "POST", url, service=SERVICE_NAME, form=fields)
    body, content_type = build_multipart(fields, files)
    headers = {"Content-Type": content_type}
    return call(
        http, "POST", url, service=SERVICE_NAME, body=body, headers=headers, timeout=http_calls.UPLOAD_SECONDS
    )


def _read_result(
    account: Account, method: str, fields: Mapping[str, str], *, http: Client, now: datetime
) -> dict[str, Any]:
    """Call a method that may be repeated, and return its result. Raises as `raise_for_response` if there is none."""
    response = _call_bot(ask, account, method, fields, http=http)
    answer = json_object(response.body) or {}
    result = answer.get("result")
    if answer.get("ok") is not True or not isinstance(result, dict):
        raise_for_response(response, now, is_commit=False)
    return result


def _delete_message(account: Account, chat: str, message_id: str, *, http: Client, now: datetime) -> None:
    """Delete a message, which may be gone already.

    Raises `Refused` if the bot may not delete it, and as `raise_for_response` for other failures.
    """
    response = _call_bot(
        ask, account, "deleteMessage", {"chat_id": chat, "message_id": message_id}, http=http
    )
    answer = json_object(response.body) or {}
    description = description_of(answer).lower()
    if answer.get("ok") is True or "message to delete not found" in description:
        return
    if "message can't be deleted" in description:
        message = "Telegram doesn't let the bot delete this message."
        raise Refused(message, code="cannot_remove", action="Delete it in Telegram.")
    raise_for_response(response, now, is_commit=False)


def _require_right_to_post(chat_type: str, member: Mapping[str, Any]) -> None:
    """Raise `NeedsReconnect` if the bot may not post in a chat of this type."""
    status = member.get("status")
    may_post = (
        status == "creator"
        or (status == "administrator" and (chat_type != "channel" or member.get("can_post_messages") is True))
        or (chat_type != "channel" and status == "member")
        or (chat_type != "channel" and status == "restricted" and member.get("can_send_messages") is True)
    )
    if not may_post:
        message = "The bot may not post in this chat."
        raise NeedsReconnect(message, code="no_right_to_post", action=GIVE_RIGHT_TO_POST)


def _to_sent(result: object) -> Sent:
    """Return the messages in Telegram's result as `Sent`. Raises `OutcomeUnknown` if it names none."""
    results = result if isinstance(result, list) else [result]
    messages = [message for message in results if isinstance(message, dict)]
    message_ids = [
        message["message_id"] for message in messages if isinstance(message.get("message_id"), int)
    ]
    chat = messages[0].get("chat") if messages else None
    if not message_ids or not isinstance(chat, dict):
        message = "Telegram accepted the call without naming the post."
        raise OutcomeUnknown(message, platform_status=200)
    return Sent(
        external_id=str(message_ids[0]),
        url=_message_url(chat, message_ids[0]),
        details={"chat_id": str(chat.get("id", "")), "message_ids": message_ids},
    )


def _message_url(chat: Mapping[str, Any], message_id: int) -> str:
    """Return the address of a message, or an empty string if the chat has no addresses."""
    name, chat_id = chat.get("username"), str(chat.get("id", ""))
    if name:
        return f"https://t.me/{name}/{message_id}"
    # Only channels and supergroups have addresses; only members of the chat can open them.
    if not chat_id.startswith(_SUPERGROUP_PREFIX):
        return ""
    return f"https://t.me/c/{chat_id.removeprefix(_SUPERGROUP_PREFIX)}/{message_id}"


PLUGIN = Telegram()
