"""Publishes to a Discord channel through a webhook.

Limits and errors are those of github.com/discord/discord-api-docs (resources/webhook, resources/message,
reference, topics/ rate-limits, opcodes), read on 2026-11-20. The documents don't say in what unit a text is
counted; UTF-16 units never count too little. The webhook's address is the secret and the address of every call,
so that no message here may contain one.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, AccountInfo, Api, CannotTell, Pace, Platform, Sent, Setting
from pipeline.platforms.discord.errors import ERRORS
from pipeline.platforms.failures import raise_from_table
from pipeline.platforms.fitting import FITTING_SETTINGS, fit_text
from pipeline.platforms.http_calls import LONGEST_WAIT, ask, ask_once, json_object
from pipeline.platforms.rules import MEBIBYTE, BucketRule, MediaRule, images_of, utf16_units
from pipeline.platforms.upload_bodies import build_multipart, file_of
from pipeline.plugins import ConfigInvalid, Evidence, OutcomeUnknown, Problem
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, Length, Payload, PayloadAsset

SERVICE_NAME = "Discord"
MAX_CONTENT_UNITS = 2000
MAX_EMBED_TITLE_UNITS = 256
MAX_EMBED_TEXT_UNITS = 4096
MAX_FILES = 10
MAX_NAME_CHARACTERS = 80

_UNIT = "UTF-16 units"
_SUPPRESS_EMBEDS, _SUPPRESS_NOTIFICATIONS = 1 << 2, 1 << 12
_UNKNOWN_MESSAGE = 10008
"""The error code for a message that doesn't exist."""
_WEBHOOK_URL = re.compile(
    r"https://(?:(?:ptb|canary)\.)?discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/([0-9]{5,25})/([\w-]{20,120})/?"
)
_SNOWFLAKE = re.compile(r"[0-9]{5,25}")
# Discord renders Markdown, so these characters of a text have to be escaped.
_MARKDOWN_SYNTAX = re.compile(r"[\\*_~`|\[<]|^[ \t]*(?:>|-#|#|[-+](?= ))", re.MULTILINE)
_UNSAFE_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]")
_NUMBERED_LINE = re.compile(r"^([ \t]*[0-9]+)\.(?= )", re.MULTILINE)

_IMAGES_RULE = MediaRule(
    ("image/jpeg", "image/png", "image/webp", "image/gif"), MAX_FILES, 10 * MEBIBYTE, alt_max=1024
)
_VIDEO_RULE = MediaRule(
    ("video/mp4", "video/webm", "video/quicktime"), MAX_FILES, 10 * MEBIBYTE, alt_max=1024
)


class Discord(Platform):
    kind = "discord"
    label = "Discord"
    summary = "Messages with text, pictures and videos in a channel of a Discord server; articles as cards."
    secret_addresses = (r"(/api/(?:v\d+/)?webhooks/)[^\s\"'<>?]+",)
    evidence = Evidence("documents", "November 2026", "tests/platforms/test_discord.py")
    buckets = ("text", "image", "video", "blog")
    shows_link_card = True
    can_remove = True
    api: ClassVar[Api | None] = Api("https://discord.com/api", "v10", reviewed_on=date(2026, 11, 20))
    # 30 messages a minute in one channel.
    pace = Pace(gap=timedelta(seconds=2))
    rules: ClassVar = {
        "text": BucketRule(MAX_CONTENT_UNITS, utf16_units, _UNIT),
        "image": BucketRule(
            MAX_CONTENT_UNITS,
            utf16_units,
            _UNIT,
            needs_text=False,
            images=_IMAGES_RULE,
            video=_VIDEO_RULE,
            needs="image",
        ),
        "video": BucketRule(
            MAX_CONTENT_UNITS,
            utf16_units,
            _UNIT,
            needs_text=False,
            images=_IMAGES_RULE,
            video=_VIDEO_RULE,
            needs="video",
        ),
        "blog": BucketRule(
            MAX_EMBED_TEXT_UNITS,
            utf16_units,
            _UNIT,
            title_max=MAX_EMBED_TITLE_UNITS,
            needs_title=True,
            images=_IMAGES_RULE,
            video=_VIDEO_RULE,
        ),
    }
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "webhook_url",
            "Webhook's address",
            "In Discord: the channel's settings, Integrations, Webhooks, New Webhook, Copy Webhook URL.",
            kind="password",
            is_secret=True,
        ),
        Setting(
            "thread_id",
            "Thread",
            "Number of a thread of the channel; a forum needs one. Copy it with developer mode on.",
            is_required=False,
            max_length=25,
        ),
        Setting(
            "username",
            "Name shown",
            "In place of the webhook's.",
            is_required=False,
            max_length=MAX_NAME_CHARACTERS,
        ),
        Setting(
            "avatar_url",
            "Picture shown",
            "Address of a picture, in place of the webhook's.",
            kind="url",
            is_required=False,
            max_length=2048,
        ),
        Setting("link_preview", "Show a preview of links", kind="flag", default=True, is_required=False),
        Setting("is_silent", "Send without a notification", kind="flag", default=False, is_required=False),
        *FITTING_SETTINGS,
    )

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_config(config)
        if "thread_id" in clean and not _SNOWFLAKE.fullmatch(clean["thread_id"]):
            raise ConfigInvalid([Problem("config.thread_id", "invalid", "Give the thread's number.")])
        name = clean.get("username", "").lower()
        if "discord" in name or "clyde" in name:
            message = "Discord takes no name with “discord” or “clyde” in it."
            raise ConfigInvalid([Problem("config.username", "invalid", message)])
        return clean

    def clean_credentials(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_credentials(credentials)
        if not _WEBHOOK_URL.fullmatch(clean["webhook_url"]):
            message = "This isn't a webhook's address, which begins with https://discord.com/api/webhooks/."
            raise ConfigInvalid([Problem("credentials.webhook_url", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        response = ask(http, "GET", _webhook_url(account), service=SERVICE_NAME)
        answer = json_object(response.body) or {}
        if response.status != 200 or not isinstance(answer.get("id"), str):
            _raise_for_response(response, now, is_commit=False)
        guild, channel = str(answer.get("guild_id") or ""), str(answer.get("channel_id") or "")
        return AccountInfo(
            external_id=answer["id"],
            name=str(answer.get("name") or ""),
            url=f"https://discord.com/channels/{guild}/{channel}" if guild and channel else "",
            limits={"guild_id": guild, "channel_id": channel},
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        return fit_text(payload, replace(self.rules[payload.bucket], count=_count_escaped), account.config)

    def length(self, account: Account, post: Adapted) -> Length:
        return super().length(account, _with_escaped_parts(post))

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems = list(super().validate(account, _with_escaped_parts(post)))
        files = files_of(post.payload)
        if len(files) > MAX_FILES:
            message = f"It has {len(files)} files; the maximum here is {MAX_FILES}."
            problems.append(Problem("assets", "too_many_files", message))
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
        url = _webhook_url(account, wait="true", thread_id=account.config.get("thread_id"))
        assets = files_of(post.payload)
        files = [
            replace(file_of(f"files[{n}]", asset, n), name=_safe_file_name(asset, n))
            for n, asset in enumerate(assets)
        ]
        message = _build_message(account, post)
        if files:
            body, content_type = build_multipart({"payload_json": json.dumps(message)}, files)
            headers = {"Content-Type": content_type}
            response = ask_once(
                http,
                "POST",
                url,
                service=SERVICE_NAME,
                body=body,
                headers=headers,
                timeout=http_calls.UPLOAD_SECONDS,
            )
        else:
            response = ask_once(http, "POST", url, service=SERVICE_NAME, json=message)
        answer = json_object(response.body) or {}
        if response.status != 200 or not isinstance(answer.get("id"), str):
            _raise_for_response(response, now, is_commit=True)
        return _to_sent(account, answer)

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
        return CannotTell("A Discord webhook can read only a message whose number is known.")

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        thread = sent.details.get("thread_id") or None
        response = ask(
            http,
            "DELETE",
            _webhook_url(account, f"/messages/{sent.external_id}", thread_id=thread),
            service=SERVICE_NAME,
        )
        code = (json_object(response.body) or {}).get("code")
        if response.status != 204 and not (response.status == 404 and code == _UNKNOWN_MESSAGE):
            _raise_for_response(response, now, is_commit=False)


def files_of(payload: Payload) -> list[PayloadAsset]:
    """Return the pictures and videos to send, in the item's order.

    A text has none, and an article only the first picture, which its card shows.
    """
    images = images_of(payload.assets)
    if payload.bucket == "text":
        return []
    if payload.bucket == "blog":
        return images[:1]
    return [file for file in payload.assets if file in images or file.mime_type.startswith("video/")]


def escape(text: str) -> str:
    """Return the text with its Markdown escaped, so that Discord shows it as it is; addresses stay unchanged."""
    escaped, copied_to = "", 0
    for link in find_links(text):
        if link.has_scheme:
            escaped += _escape_markdown(text[copied_to : link.start]) + text[link.start : link.end]
            copied_to = link.end
    return escaped + _escape_markdown(text[copied_to:])


def _escape_markdown(text: str) -> str:
    """Return a text without addresses with its Markdown escaped."""
    # At the beginning of a line, the match also has the spaces before the mark: only its last character is
    # escaped.
    escaped = _MARKDOWN_SYNTAX.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", text)
    return _NUMBERED_LINE.sub(r"\1\\.", escaped)


def _count_escaped(text: str) -> int:
    """Return the length of a text in UTF-16 units once it is escaped."""
    return utf16_units(escape(text))


def _with_escaped_parts(post: Adapted) -> Adapted:
    """Return the post with its parts escaped, as it is sent."""
    return replace(post, parts=tuple(escape(part) for part in post.parts))


def _webhook_url(account: Account, path: str = "", **query: str | None) -> str:
    """Return the webhook's address with a path and query; an empty query value is left out."""
    match = re.search(r"/webhooks/([0-9]+)/([\w-]+)", str(account.credentials.get("webhook_url", "")))
    identity, token = match.groups() if match else ("0", "none")
    query_string = "&".join(f"{name}={value}" for name, value in query.items() if value)
    url = f"{account.base_url}/{account.api_version}/webhooks/{identity}/{token}{path}"
    return f"{url}?{query_string}" if query_string else url


def _build_message(account: Account, post: Adapted) -> dict[str, Any]:
    """Return the message as Discord's API takes it."""
    config, payload = account.config, post.payload
    files = files_of(payload)
    text = escape(payload.body)
    # A generated text must never notify people by a mention, not even by @everyone.
    message: dict[str, Any] = {"allowed_mentions": {"parse": []}}
    if payload.bucket == "blog":
        card: dict[str, Any] = {"title": payload.title.strip(), "description": text}
        if payload.link:
            card["url"] = payload.link
        if files:
            card["image"] = {"url": f"attachment://{_safe_file_name(files[0], 0)}"}
        message["embeds"] = [card]
    elif text:
        message["content"] = text
    if files:
        message["attachments"] = [
            {
                "id": n,
                "filename": _safe_file_name(file, n),
                **({"description": file.alt_text} if file.alt_text else {}),
            }
            for n, file in enumerate(files)
        ]
    for name in ("username", "avatar_url"):
        if config.get(name):
            message[name] = config[name]
    flags = (0 if config.get("link_preview", True) else _SUPPRESS_EMBEDS) | (
        _SUPPRESS_NOTIFICATIONS if config.get("is_silent") else 0
    )
    # The article's card is an embed too, and would be suppressed with the previews.
    if payload.bucket == "blog":
        flags &= ~_SUPPRESS_EMBEDS
    return {**message, **({"flags": flags} if flags else {})}


def _safe_file_name(asset: PayloadAsset, index: int) -> str:
    """Return the file's name with other characters replaced by "_", or a numbered name if it has none."""
    # Discord replaces other characters, and then the card would not find its picture.
    return _UNSAFE_NAME_CHARACTERS.sub("_", asset.name) or f"file{index}"


def _to_sent(account: Account, answer: Mapping[str, Any]) -> Sent:
    """Return the message in Discord's answer as `Sent`. Raises `OutcomeUnknown` if its id isn't a number."""
    limits = account.profile.get("limits", {})
    guild, channel, message_id = limits.get("guild_id", ""), answer.get("channel_id"), answer["id"]
    if not message_id.isascii() or not message_id.isdigit():
        message = "Discord accepted the call without naming the post."
        raise OutcomeUnknown(message, platform_status=200)
    url = f"https://discord.com/channels/{guild}/{channel}/{message_id}" if guild and channel else ""
    thread = account.config.get("thread_id")
    return Sent(external_id=message_id, url=url, details={"thread_id": thread} if thread else {})


def _raise_for_response(response: Response, now: datetime, *, is_commit: bool) -> NoReturn:
    """Raise the plug-in error for a failed response, with the wait that the answer names."""
    answer = json_object(response.body) or {}
    code, wait = answer.get("code"), answer.get("retry_after")
    after = None
    if isinstance(wait, int | float) and not isinstance(wait, bool) and 0 <= wait < 10**6:
        after = min(timedelta(seconds=wait), LONGEST_WAIT)
    raise_from_table(
        ERRORS,
        response,
        service=SERVICE_NAME,
        code=str(code) if isinstance(code, int) else "",
        platform_message=http_calls.platform_message_of(response, "message"),
        now=now,
        is_commit=is_commit,
        after=after,
    )


PLUGIN = Discord()
