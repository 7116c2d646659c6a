"""A Discord channel, written to by a webhook.

Limits and errors: github.com/discord/discord-api-docs (resources/webhook, resources/message, reference, topics/
rate-limits, opcodes), read on 2026-11-20. The webhook's address is the secret, and stands in the path of every call,
so that no message here may hold one. They don't say in what a text is counted; units of UTF-16 are never too few.
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
from pipeline.platforms.failures import fail
from pipeline.platforms.fitting import FITTING, fit_text
from pipeline.platforms.http_calls import LONGEST_WAIT, ask, ask_once, json_object
from pipeline.platforms.rules import MEBIBYTE, BucketRule, MediaRule, images_of, utf16_units
from pipeline.platforms.upload_bodies import build_multipart, file_of
from pipeline.plugins import ConfigInvalid, Evidence, OutcomeUnknown, Problem
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, Length, Payload, PayloadAsset

WHAT = "Discord"
CONTENT_MAX = 2000
EMBED_TITLE_MAX = 256
EMBED_TEXT_MAX = 4096
FILES_MOST = 10
NAME_MAX = 80

_UNIT = "UTF-16 units"
_SUPPRESS_EMBEDS, _SUPPRESS_NOTIFICATIONS = 1 << 2, 1 << 12
_WEBHOOK = re.compile(
    r"https://(?:(?:ptb|canary)\.)?discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/([0-9]{5,25})/([\w-]{20,120})/?"
)
_SNOWFLAKE = re.compile(r"[0-9]{5,25}")
# Discord reads Markdown: a sign of the text has to stay a sign.
_MARKS = re.compile(r"[\\*_~`|\[<]|^[ \t]*(?:>|-#|#|[-+](?= ))", re.MULTILINE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_NUMBERED = re.compile(r"^([ \t]*[0-9]+)\.(?= )", re.MULTILINE)

_IMAGES = MediaRule(
    ("image/jpeg", "image/png", "image/webp", "image/gif"), FILES_MOST, 10 * MEBIBYTE, alt_max=1024
)
_VIDEO = MediaRule(("video/mp4", "video/webm", "video/quicktime"), FILES_MOST, 10 * MEBIBYTE, alt_max=1024)


class Discord(Platform):
    kind = "discord"
    label = "Discord"
    summary = "Messages with text, pictures and videos in a channel of a Discord server; articles as cards."
    evidence = Evidence("documents", "November 2026", "tests/platforms/test_discord.py")
    buckets = ("text", "image", "video", "blog")
    shows_link_card = True
    can_remove = True
    api: ClassVar[Api | None] = Api("https://discord.com/api", "v10", reviewed_on=date(2026, 11, 20))
    # 30 messages a minute in one channel.
    pace = Pace(gap=timedelta(seconds=2))
    rules: ClassVar = {
        "text": BucketRule(CONTENT_MAX, utf16_units, _UNIT),
        "image": BucketRule(
            CONTENT_MAX, utf16_units, _UNIT, needs_text=False, images=_IMAGES, video=_VIDEO, needs="image"
        ),
        "video": BucketRule(
            CONTENT_MAX, utf16_units, _UNIT, needs_text=False, images=_IMAGES, video=_VIDEO, needs="video"
        ),
        "blog": BucketRule(
            EMBED_TEXT_MAX,
            utf16_units,
            _UNIT,
            title_max=EMBED_TITLE_MAX,
            needs_title=True,
            images=_IMAGES,
            video=_VIDEO,
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
            "username", "Name shown", "In place of the webhook's.", is_required=False, max_length=NAME_MAX
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
        *FITTING,
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
        if not _WEBHOOK.fullmatch(clean["webhook_url"]):
            message = "That is no webhook's address: it begins with https://discord.com/api/webhooks/."
            raise ConfigInvalid([Problem("credentials.webhook_url", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        response = ask(http, "GET", _address(account), what=WHAT)
        answer = json_object(response.body) or {}
        if response.status != 200 or not isinstance(answer.get("id"), str):
            _fail(response, now, is_commit=False)
        guild, channel = str(answer.get("guild_id") or ""), str(answer.get("channel_id") or "")
        return AccountInfo(
            external_id=answer["id"],
            name=str(answer.get("name") or ""),
            url=f"https://discord.com/channels/{guild}/{channel}" if guild and channel else "",
            limits={"guild_id": guild, "channel_id": channel},
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        return fit_text(payload, replace(self.rules[payload.bucket], count=_count), account.config)

    def length(self, account: Account, post: Adapted) -> Length:
        return super().length(account, _as_written(post))

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems = list(super().validate(account, _as_written(post)))
        files = files_of(post.payload)
        if len(files) > FILES_MOST:
            message = f"It has {len(files)} files; {FILES_MOST} are the most here."
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
        url = _address(account, wait="true", thread_id=account.config.get("thread_id"))
        shown = files_of(post.payload)
        files = [replace(file_of(f"files[{n}]", one, n), name=_name(one, n)) for n, one in enumerate(shown)]
        message = _message(account, post)
        if files:
            body, content_type = build_multipart({"payload_json": json.dumps(message)}, files)
            headers = {"Content-Type": content_type}
            response = ask_once(
                http, "POST", url, what=WHAT, body=body, headers=headers, timeout=http_calls.UPLOAD_SECONDS
            )
        else:
            response = ask_once(http, "POST", url, what=WHAT, json=message)
        answer = json_object(response.body) or {}
        if response.status != 200 or not isinstance(answer.get("id"), str):
            _fail(response, now, is_commit=True)
        return _sent(account, answer)

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
            http, "DELETE", _address(account, f"/messages/{sent.external_id}", thread_id=thread), what=WHAT
        )
        code = (json_object(response.body) or {}).get("code")
        if response.status != 204 and not (response.status == 404 and code == _UNKNOWN_MESSAGE):
            _fail(response, now, is_commit=False)


_UNKNOWN_MESSAGE = 10008


def files_of(payload: Payload) -> list[PayloadAsset]:
    """Pictures and videos in the item's order; an article's card shows the first picture alone."""
    images = images_of(payload.assets)
    if payload.bucket == "text":
        return []
    if payload.bucket == "blog":
        return images[:1]
    return [one for one in payload.assets if one in images or one.mime_type.startswith("video/")]


def escape(text: str) -> str:
    """The text so that Discord shows it as it is; addresses stay as they are."""
    shown, position = "", 0
    for link in find_links(text):
        if link.has_scheme:
            shown += _escape(text[position : link.start]) + text[link.start : link.end]
            position = link.end
    return shown + _escape(text[position:])


def _escape(text: str) -> str:
    marked = _MARKS.sub(
        lambda match: f"{match[0][:-1]}\\{match[0][-1]}" if len(match[0]) > 1 else f"\\{match[0]}", text
    )
    return _NUMBERED.sub(r"\1\\.", marked)


def _count(text: str) -> int:
    return utf16_units(escape(text))


def _as_written(post: Adapted) -> Adapted:
    return replace(post, parts=tuple(escape(part) for part in post.parts))


def _address(account: Account, path: str = "", **query: str | None) -> str:
    found = re.search(r"/webhooks/([0-9]+)/([\w-]+)", str(account.credentials.get("webhook_url", "")))
    identity, token = found.groups() if found else ("0", "none")
    asked = "&".join(f"{name}={value}" for name, value in query.items() if value)
    url = f"{account.base_url}/{account.api_version}/webhooks/{identity}/{token}{path}"
    return f"{url}?{asked}" if asked else url


def _message(account: Account, post: Adapted) -> dict[str, Any]:
    config, payload = account.config, post.payload
    files = files_of(payload)
    words = escape(payload.body)
    # Generated words must never call anybody.
    message: dict[str, Any] = {"allowed_mentions": {"parse": []}}
    if payload.bucket == "blog":
        card: dict[str, Any] = {"title": payload.title.strip(), "description": words}
        if payload.link:
            card["url"] = payload.link
        if files:
            card["image"] = {"url": f"attachment://{_name(files[0], 0)}"}
        message["embeds"] = [card]
    elif words:
        message["content"] = words
    if files:
        message["attachments"] = [
            {"id": n, "filename": _name(one, n), **({"description": one.alt_text} if one.alt_text else {})}
            for n, one in enumerate(files)
        ]
    for name in ("username", "avatar_url"):
        if config.get(name):
            message[name] = config[name]
    flags = (0 if config.get("link_preview", True) else _SUPPRESS_EMBEDS) | (
        _SUPPRESS_NOTIFICATIONS if config.get("is_silent") else 0
    )
    # A card is an embed too: it would be suppressed with the previews.
    if payload.bucket == "blog":
        flags &= ~_SUPPRESS_EMBEDS
    return {**message, **({"flags": flags} if flags else {})}


def _name(asset: PayloadAsset, index: int) -> str:
    # Discord changes other signs, and a card would not find its picture.
    return _UNSAFE.sub("_", asset.name) or f"file{index}"


def _sent(account: Account, answer: Mapping[str, Any]) -> Sent:
    limits = account.profile.get("limits", {})
    guild, channel, number = limits.get("guild_id", ""), answer.get("channel_id"), answer["id"]
    if not number.isascii() or not number.isdigit():
        message = "Discord said yes without saying to what."
        raise OutcomeUnknown(message, platform_status=200)
    url = f"https://discord.com/channels/{guild}/{channel}/{number}" if guild and channel else ""
    thread = account.config.get("thread_id")
    return Sent(external_id=number, url=url, details={"thread_id": thread} if thread else {})


def _fail(response: Response, now: datetime, *, is_commit: bool) -> NoReturn:
    answer = json_object(response.body) or {}
    code, wait = answer.get("code"), answer.get("retry_after")
    after = None
    if isinstance(wait, int | float) and not isinstance(wait, bool) and 0 <= wait < 10**6:
        after = min(timedelta(seconds=wait), LONGEST_WAIT)
    fail(
        ERRORS,
        response,
        what=WHAT,
        code=str(code) if isinstance(code, int) else "",
        words=http_calls.words_of(response, "message"),
        now=now,
        is_commit=is_commit,
        after=after,
    )


PLUGIN = Discord()
