"""Publishes to a Slack channel, as an app's bot or through an incoming webhook.

Limits and errors: docs.slack.dev and python-slack-sdk 3.43.0, read on 2026-11-20. A bot's message carries the
key of its publication in its metadata, so that a bot that may read the channel finds it again; a webhook can
read nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from pipeline.platforms.base import (
    Absent,
    Account,
    AccountInfo,
    Api,
    CannotTell,
    Found,
    Pace,
    Platform,
    Prepared,
    Sent,
    Setting,
)
from pipeline.platforms.fitting import FITTING_SETTINGS, fit_text
from pipeline.platforms.http_calls import ask, ask_once, json_object
from pipeline.platforms.rules import MEBIBYTE, BucketRule, MediaRule, images_of, utf16_units
from pipeline.platforms.slack.calls import auth_headers, call_method, find_in_messages, is_webhook, to_sent
from pipeline.platforms.slack.errors import SERVICE_NAME, raise_for_response
from pipeline.plugins import (
    ConfigInvalid,
    Evidence,
    NeedsReconnect,
    PluginError,
    Problem,
    Refused,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client
    from pipeline.platforms.payload_types import Adapted, Length, Payload

MAX_TEXT_UNITS = 4000
"""Slack's advice; it accepts up to 40 000 and cuts longer texts."""
MAX_SECTION_UNITS = 3000
MAX_IMAGES = 49
"""A message has up to 50 blocks, of which the text takes one."""
MAX_ALT_CHARACTERS = 2000
EVENT_TYPE = "publication"
MESSAGES_PER_PAGE, MAX_PAGES = 200, 5
"""Messages that a look-up reads at once, and how often."""
CLOCK_TOLERANCE = timedelta(minutes=10)
"""By how much our clock and Slack's may differ."""

_UNIT = "UTF-16 units"
_BOT_TOKEN = re.compile(r"xoxb-[A-Za-z0-9-]{10,300}")
_WEBHOOK_URL = re.compile(
    r"https://hooks\.slack(?:-gov)?\.com/(?:services|workflows)/(T[A-Z0-9]+)/([AB][A-Z0-9]+)/[A-Za-z0-9/]{8,100}"
)
_CHANNEL_ID = re.compile(r"[CGD][A-Z0-9]{6,20}")
_HISTORY_SCOPES = {"C": "channels:history", "G": "groups:history", "D": "im:history"}


class Slack(Platform):
    kind = "slack"
    label = "Slack"
    summary = "Messages with text and pictures in a Slack channel, by an app or an incoming webhook."
    secret_addresses = (
        r"(/(?:services|workflows|triggers)/)[TE][0-9A-Z]{3,}/[^\s\"'<>?]+",
        r"(?i:(//hooks\.slack(?:-gov)?\.com/))[^\s\"'<>?]+",
    )
    # Tokens of a bot or an app.
    secret_keys = (r"\b(x(?:ox[a-z]|app)-)[0-9A-Za-z-]{8,}",)
    evidence = Evidence("documents", "November 2026", "tests/platforms/test_slack.py")
    buckets = ("text", "image")
    shows_link_card = True
    can_reconcile = True
    can_remove = True
    has_finish = True
    api: ClassVar[Api | None] = Api("https://slack.com/api", "", reviewed_on=date(2026, 11, 20))
    # One message a second in one channel.
    pace = Pace(gap=timedelta(seconds=1))
    rules: ClassVar = {
        "text": BucketRule(MAX_TEXT_UNITS, utf16_units, _UNIT),
        "image": BucketRule(
            MAX_SECTION_UNITS,
            utf16_units,
            _UNIT,
            needs_text=False,
            images=MediaRule(
                ("image/jpeg", "image/png", "image/gif"),
                MAX_IMAGES,
                50 * MEBIBYTE,
                alt_max=MAX_ALT_CHARACTERS,
            ),
            needs="image",
        ),
    }
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "token",
            "Bot token, or a webhook's address",
            "At api.slack.com/apps: a bot token (xoxb-…, OAuth & Permissions, scope chat:write; with channels:history "
            "too, or groups:history for a private channel, a post whose answer was lost is found again), or the "
            "address of an incoming webhook (https://hooks.slack.com/…).",
            kind="password",
            is_secret=True,
        ),
        Setting(
            "channel",
            "Channel",
            "Number of the channel, such as C0123456789: at the end of its details. A webhook needs none.",
            is_required=False,
            max_length=30,
        ),
        Setting("link_preview", "Show a preview of links", kind="flag", default=True, is_required=False),
        *FITTING_SETTINGS,
    )

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_config(config)
        if "channel" in clean and not _CHANNEL_ID.fullmatch(clean["channel"]):
            message = "Give the channel's number, such as C0123456789."
            raise ConfigInvalid([Problem("config.channel", "invalid", message)])
        return clean

    def clean_credentials(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_credentials(credentials)
        if not _BOT_TOKEN.fullmatch(clean["token"]) and not _WEBHOOK_URL.fullmatch(clean["token"]):
            message = (
                "Give a bot token (xoxb-…), or a webhook's address (https://hooks.slack.com/services/…)."
            )
            raise ConfigInvalid([Problem("credentials.token", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        if is_webhook(account):
            match = re.search(r"/(T[A-Z0-9]+)/([AB][A-Z0-9]+)/", account.credentials["token"])
            return AccountInfo(
                external_id="/".join(match.groups()) if match else account.outlet,
                notes=("Slack has no way to try a webhook unseen: the first post shows that it works.",),
            )
        if not account.config.get("channel"):
            message = "A bot needs a channel to post in."
            raise Refused(message, code="channel_missing", field="config.channel", action=_SET_CHANNEL)
        url = f"{account.base_url}/auth.test"
        response = ask(http, "POST", url, service=SERVICE_NAME, form={}, headers=auth_headers(account))
        answer = json_object(response.body) or {}
        if answer.get("ok") is not True:
            raise_for_response(response, now, is_commit=False)
        scopes = tuple(
            scope.strip() for scope in response.headers.get("x-oauth-scopes", "").split(",") if scope.strip()
        )
        if scopes and "chat:write" not in scopes:
            message = "The Slack app lacks the scope chat:write."
            action = "Give the app the scope, install it again, and reconnect the outlet."
            raise NeedsReconnect(message, code="scope_missing", action=action)
        return AccountInfo(
            external_id=f"{answer.get('team_id', '')}/{account.config['channel']}",
            handle=str(answer.get("user") or ""),
            name=str(answer.get("team") or ""),
            url=str(answer.get("url") or ""),
            scopes=scopes,
            limits={name: str(answer.get(name) or "") for name in ("bot_id", "user_id", "url")},
            notes=_scope_notes(account, scopes),
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        return fit_text(payload, replace(self.rules[payload.bucket], count=_count_escaped), account.config)

    def length(self, account: Account, post: Adapted) -> Length:
        return super().length(account, _with_escaped_parts(post))

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems = list(super().validate(account, _with_escaped_parts(post)))
        if post.payload.bucket == "image":
            message = "Slack fetches pictures: this one has no address that begins with https://."
            problems += [
                Problem(f"assets[{index}]", "no_public_address", message)
                for index, image in enumerate(images_of(post.payload.assets))
                if not image.url.startswith("https://")
            ]
        return tuple(problems)

    def prepare(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Prepared:
        del account, post, http, key
        # A look-up reads the channel's messages from this time on.
        return Prepared({**state, "began": state.get("began") or int((now - CLOCK_TOLERANCE).timestamp())})

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
        del state
        message = _build_message(account, post)
        if is_webhook(account):
            response = ask_once(
                http, "POST", account.credentials["token"], service=SERVICE_NAME, json=message
            )
            if response.status != 200 or response.body.strip() != b"ok":
                raise_for_response(response, now, is_commit=True)
            return Sent(external_id="")
        channel = account.config.get("channel")
        if not channel:
            no_channel = "A bot needs a channel to post in."
            raise NeedsReconnect(no_channel, code="channel_missing", action=_SET_CHANNEL)
        message |= {
            "channel": channel,
            "metadata": {"event_type": EVENT_TYPE, "event_payload": {"key": key}},
        }
        url = f"{account.base_url}/chat.postMessage"
        response = ask_once(
            http, "POST", url, service=SERVICE_NAME, json=message, headers=auth_headers(account)
        )
        answer = json_object(response.body) or {}
        if response.status != 200 or answer.get("ok") is not True:
            raise_for_response(response, now, is_commit=True)
        return to_sent(account, answer.get("channel"), answer.get("ts"))

    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Found | Absent | CannotTell:
        if is_webhook(account):
            return CannotTell("A Slack webhook can't read a channel's messages.")
        query = {
            "channel": account.config.get("channel", ""),
            "limit": str(MESSAGES_PER_PAGE),
            "include_all_metadata": "true",
            **({"oldest": str(state["began"])} if state.get("began") else {}),
        }
        text = _escape(post.payload.body)
        try:
            for _ in range(MAX_PAGES):
                answer = call_method(account, "conversations.history", query, http=http, now=now)
                found = find_in_messages(account, answer.get("messages"), key, text)
                if found is not None:
                    return found
                if answer.get("has_more") is not True:
                    return Absent()
                query["cursor"] = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
        except PluginError as error:
            return CannotTell(error.message)
        return CannotTell(f"The channel has more than {MESSAGES_PER_PAGE * MAX_PAGES} messages since.")

    def finish(
        self, account: Account, post: Adapted, sent: Sent, *, http: Client, now: datetime
    ) -> Mapping[str, Any] | None:
        del post
        if is_webhook(account) or not sent.external_id:
            return None
        query = {"channel": str(sent.details.get("channel", "")), "message_ts": sent.external_id}
        answer = call_method(account, "chat.getPermalink", query, http=http, now=now)
        link = answer.get("permalink")
        return {"url": link} if isinstance(link, str) and link.startswith("https://") else None

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        if is_webhook(account) or not sent.external_id:
            message = "A Slack webhook can't delete a message."
            raise Refused(message, code="cannot_remove", action="Delete it in Slack.")
        body = {"channel": sent.details.get("channel", account.config.get("channel")), "ts": sent.external_id}
        url = f"{account.base_url}/chat.delete"
        response = ask(http, "POST", url, service=SERVICE_NAME, json=body, headers=auth_headers(account))
        answer = json_object(response.body) or {}
        if answer.get("ok") is True or answer.get("error") == "message_not_found":
            return
        if answer.get("error") in {"cant_delete_message", "compliance_exports_prevent_deletion"}:
            message = "Slack doesn't let the app delete this message."
            raise Refused(message, code="cannot_remove", action="Delete it in Slack.")
        raise_for_response(response, now, is_commit=False)


_SET_CHANNEL = "Set the channel in the outlet's settings."


def _scope_notes(account: Account, scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note where the bot may not read the channel."""
    needed = _HISTORY_SCOPES.get(str(account.config.get("channel", ""))[:1], "channels:history")
    if not scopes or needed in scopes:
        return ()
    return (f"With the scope {needed} a post whose answer was lost is found automatically.",)


def _escape(text: str) -> str:
    """Escape the text's `&`, `<` and `>`, which are Slack's markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _count_escaped(text: str) -> int:
    """Return the length of a text once it is escaped."""
    return utf16_units(_escape(text))


def _with_escaped_parts(post: Adapted) -> Adapted:
    """Return the post with its parts escaped, as it is sent."""
    return replace(post, parts=tuple(_escape(part) for part in post.parts))


def _build_message(account: Account, post: Adapted) -> dict[str, Any]:
    """Return the message as Slack's API takes it."""
    text, shows_links = _escape(post.payload.body), bool(account.config.get("link_preview", True))
    # Slack's formatting is off, so that a star stays a star.
    message: dict[str, Any] = {
        "text": text,
        "mrkdwn": False,
        "unfurl_links": shows_links,
        "unfurl_media": shows_links,
    }
    if post.payload.bucket == "image":
        blocks: list[dict[str, Any]] = []
        if text:
            blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}})
        blocks += [
            {"type": "image", "image_url": image.url, "alt_text": image.alt_text or post.payload.title or "–"}
            for image in images_of(post.payload.assets)
        ]
        message["blocks"] = blocks
    return message


PLUGIN = Slack()
