"""A Telegram channel or group, written to by a bot.

Limits and errors: core.telegram.org/bots/api and the constants of python-telegram-bot 22.8 (Bot API 10.0), read on
2026-11-20. The token stands in the path of every address, so that no message here may hold an address.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, AccountInfo, Api, CannotTell, Pace, Platform, Sent, Setting
from pipeline.platforms.fitting import FITTING, fit_text
from pipeline.platforms.http_calls import ask, ask_once, json_object
from pipeline.platforms.rules import BucketRule, MediaRule, images_of, utf16_units
from pipeline.platforms.telegram.errors import RIGHTS, WHAT, ChatMoved, description_of, fail_by
from pipeline.platforms.upload_bodies import UploadFile, build_multipart, file_of
from pipeline.plugins import (
    ConfigInvalid,
    Evidence,
    NeedsReconnect,
    OutcomeUnknown,
    Problem,
    Refused,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, Length, Payload, PayloadAsset

    Call = Callable[..., Response]

TEXT_MAX = 4096
CAPTION_MAX = 1024
GROUP_MOST = 10
SIDES_MAX = 10_000
"""Width and height of a photo together."""

_TOKEN = re.compile(r"[0-9]{3,20}:[A-Za-z0-9_-]{20,100}")
_CHAT = re.compile(r"@[A-Za-z][A-Za-z0-9_]{3,31}|-?[0-9]{1,20}")
_SUPERGROUP = "-100"
_UNIT = "UTF-16 units"

_PHOTO = MediaRule(
    ("image/jpeg", "image/png", "image/webp"), most=GROUP_MOST, max_bytes=10_000_000, ratio=(1 / 20, 20)
)
_VIDEO = MediaRule(("video/mp4",), most=GROUP_MOST, max_bytes=50_000_000)


class Telegram(Platform):
    kind = "telegram"
    label = "Telegram"
    summary = "Posts of text, pictures and videos in a Telegram channel or group."
    evidence = Evidence("documents", "November 2026", "tests/platforms/test_telegram.py")
    buckets = ("text", "image", "video")
    shows_link_card = True
    can_remove = True
    api: ClassVar[Api | None] = Api("https://api.telegram.org", "10.0", reviewed_on=date(2026, 11, 20))
    # 20 messages a minute in one group or channel.
    pace = Pace(gap=timedelta(seconds=3))
    rules: ClassVar = {
        "text": BucketRule(TEXT_MAX, utf16_units, _UNIT),
        "image": BucketRule(
            CAPTION_MAX, utf16_units, _UNIT, needs_text=False, images=_PHOTO, video=_VIDEO, needs="image"
        ),
        "video": BucketRule(
            CAPTION_MAX, utf16_units, _UNIT, needs_text=False, images=_PHOTO, video=_VIDEO, needs="video"
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
        *FITTING,
    )

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_config(config)
        if not _CHAT.fullmatch(clean["chat"]):
            message = "Give the chat as @name, or as its number."
            raise ConfigInvalid([Problem("config.chat", "invalid", message)])
        return clean

    def clean_credentials(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_credentials(credentials)
        # It becomes part of an address.
        if not _TOKEN.fullmatch(clean["token"]):
            message = "That is no bot token; @BotFather writes it as digits, a colon and letters."
            raise ConfigInvalid([Problem("credentials.token", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        me = _read(account, "getMe", {}, http=http, now=now)
        moved = ""
        try:
            chat = _read(account, "getChat", {"chat_id": _chat(account)}, http=http, now=now)
        except ChatMoved as error:
            moved = error.chat
            chat = _read(account, "getChat", {"chat_id": moved}, http=http, now=now)
        asked = {"chat_id": str(chat.get("id", "")), "user_id": str(me.get("id", ""))}
        member = _read(account, "getChatMember", asked, http=http, now=now)
        _demand_right(str(chat.get("type", "")), member)
        name = str(chat.get("username", ""))
        return AccountInfo(
            external_id=str(chat.get("id", "")),
            handle=f"@{name}" if name else "",
            name=str(chat.get("title") or name),
            url=f"https://t.me/{name}" if name else "",
            config={"chat": moved} if moved else {},
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        rule = self.rules[payload.bucket]
        heading = _heading(account, payload)
        if heading and rule.text_max is not None:
            rule = replace(rule, text_max=rule.text_max - utf16_units(heading))
        return fit_text(payload, rule, account.config)

    def length(self, account: Account, post: Adapted) -> Length:
        return super().length(account, replace(post, parts=(_words(account, post),)))

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        rule = self.rules[post.payload.bucket]
        problems = list(super().validate(account, replace(post, parts=(_words(account, post),))))
        files = files_of(post.payload)
        if rule.images is not None and len(files) > GROUP_MOST:
            message = f"It has {len(files)} files; {GROUP_MOST} are the most here."
            problems.append(Problem("assets", "too_many_files", message))
        for index, one in enumerate(images_of(post.payload.assets)):
            if rule.images is not None and (one.width or 0) + (one.height or 0) > SIDES_MAX:
                message = f"Its width and height are over {SIDES_MAX:,} pixels together."
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
            return _send(account, post, _chat(account), http=http, now=now)
        except ChatMoved as error:
            # A refusal: the group became a supergroup and has another number now.
            return _send(account, post, error.chat, http=http, now=now)

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
        return CannotTell("A Telegram bot can't read what stands in a chat.")

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        chat = str(sent.details.get("chat_id") or _chat(account))
        numbers = sent.details.get("message_ids") or [sent.external_id]
        for number in numbers:
            try:
                _delete(account, chat, str(number), http=http, now=now)
            except ChatMoved as error:
                _delete(account, error.chat, str(number), http=http, now=now)


def files_of(payload: Payload) -> list[PayloadAsset]:
    """What is shown: pictures and videos, in the item's order."""
    if payload.bucket == "text":
        return []
    shown = images_of(payload.assets)
    return [one for one in payload.assets if one in shown or one.mime_type.startswith("video/")]


def _chat(account: Account) -> str:
    return str(account.config.get("chat", ""))


def _heading(account: Account, payload: Payload) -> str:
    title = payload.title.strip()
    return f"{title}\n\n" if title and account.config.get("show_title") else ""


def _words(account: Account, post: Adapted) -> str:
    return f"{_heading(account, post.payload)}{post.payload.body}".strip()


def _send(account: Account, post: Adapted, chat: str, *, http: Client, now: datetime) -> Sent:
    method, fields, files = _message(account, post, chat)
    response = _post(ask_once, account, method, fields, files, http=http)
    answer = json_object(response.body)
    if answer is None or answer.get("ok") is not True:
        fail_by(response, now, is_commit=True)
    return _sent(answer.get("result"))


def _message(account: Account, post: Adapted, chat: str) -> tuple[str, dict[str, str], list[UploadFile]]:
    """The method, its fields and its files."""
    config, words = account.config, _words(account, post)
    heading = _heading(account, post.payload).strip()
    # Marked by place and not by tags: then no sign of the text is ever taken for a tag.
    bold = [{"type": "bold", "offset": 0, "length": utf16_units(heading)}] if heading else []
    fields = {"chat_id": chat, "disable_notification": json.dumps(bool(config.get("is_silent")))}
    if config.get("topic"):
        fields["message_thread_id"] = str(config["topic"])
    shown = files_of(post.payload)
    if not shown:
        preview = {"is_disabled": not config.get("link_preview", True)}
        fields |= {"text": words, "link_preview_options": json.dumps(preview)}
        if bold:
            fields["entities"] = json.dumps(bold)
        return "sendMessage", fields, []
    caption: dict[str, Any] = {"caption": words} if words else {}
    if bold:
        caption["caption_entities"] = bold
    if len(shown) == 1:
        kind = _kind(shown[0])
        fields |= {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in caption.items()
        }
        return f"send{kind.title()}", fields, [file_of(kind, shown[0], 0)]
    media = [{"type": _kind(one), "media": f"attach://file{index}"} for index, one in enumerate(shown)]
    media[0] |= caption
    fields["media"] = json.dumps(media)
    return "sendMediaGroup", fields, [file_of(f"file{index}", one, index) for index, one in enumerate(shown)]


def _kind(asset: PayloadAsset) -> str:
    return "video" if asset.mime_type.startswith("video/") else "photo"


def _post(
    call: Call,
    account: Account,
    method: str,
    fields: Mapping[str, str],
    files: Sequence[UploadFile] = (),
    *,
    http: Client,
) -> Response:
    url = f"{account.base_url}/bot{account.credentials.get('token', '')}/{method}"
    if not files:
        return call(http, "POST", url, what=WHAT, form=fields)
    body, content_type = build_multipart(fields, files)
    headers = {"Content-Type": content_type}
    return call(http, "POST", url, what=WHAT, body=body, headers=headers, timeout=http_calls.UPLOAD_SECONDS)


def _read(
    account: Account, method: str, fields: Mapping[str, str], *, http: Client, now: datetime
) -> dict[str, Any]:
    response = _post(ask, account, method, fields, http=http)
    answer = json_object(response.body) or {}
    result = answer.get("result")
    if answer.get("ok") is not True or not isinstance(result, dict):
        fail_by(response, now, is_commit=False)
    return result


def _delete(account: Account, chat: str, number: str, *, http: Client, now: datetime) -> None:
    response = _post(ask, account, "deleteMessage", {"chat_id": chat, "message_id": number}, http=http)
    answer = json_object(response.body) or {}
    words = description_of(answer).lower()
    if answer.get("ok") is True or "message to delete not found" in words:
        return
    if "message can't be deleted" in words:
        message = "Telegram doesn't let the bot delete this message."
        raise Refused(message, code="cannot_remove", action="Delete it in Telegram.")
    fail_by(response, now, is_commit=False)


def _demand_right(kind: str, member: Mapping[str, Any]) -> None:
    status = member.get("status")
    may_post = (
        status == "creator"
        or (status == "administrator" and (kind != "channel" or member.get("can_post_messages") is True))
        or (kind != "channel" and status == "member")
        or (kind != "channel" and status == "restricted" and member.get("can_send_messages") is True)
    )
    if not may_post:
        message = "The bot may not post in this chat."
        raise NeedsReconnect(message, code="no_right_to_post", action=RIGHTS)


def _sent(result: object) -> Sent:
    messages = [one for one in (result if isinstance(result, list) else [result]) if isinstance(one, dict)]
    numbers = [one["message_id"] for one in messages if isinstance(one.get("message_id"), int)]
    chat = messages[0].get("chat") if messages else None
    if not numbers or not isinstance(chat, dict):
        message = "Telegram said yes without saying to what."
        raise OutcomeUnknown(message, platform_status=200)
    return Sent(
        external_id=str(numbers[0]),
        url=_link(chat, numbers[0]),
        details={"chat_id": str(chat.get("id", "")), "message_ids": numbers},
    )


def _link(chat: Mapping[str, Any], number: int) -> str:
    name, identity = chat.get("username"), str(chat.get("id", ""))
    if name:
        return f"https://t.me/{name}/{number}"
    # Only channels and supergroups have addresses; a person sees them who is in the chat.
    is_addressed = identity.startswith(_SUPERGROUP)
    return f"https://t.me/c/{identity.removeprefix(_SUPERGROUP)}/{number}" if is_addressed else ""


PLUGIN = Telegram()
