"""Any receiver of one's own: a signed POST of the post as JSON (Standard Webhooks, https://www.standardwebhooks.com).

What a receiver has to do stands in pipeline/platforms/README.md. `webhook-id` is the publication's key, the same for
every try; a receiver that takes an id once can be sent the same post any number of times.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from urllib.parse import quote, urlsplit

from standardwebhooks import Webhook

from pipeline.engines.base import BUCKETS
from pipeline.platforms import settings as settings_of
from pipeline.platforms.base import Absent, Account, AccountInfo, CannotTell, Found, Platform, Sent, Setting
from pipeline.platforms.failures import Failure, fail
from pipeline.platforms.fitting import PARTS_BETWEEN
from pipeline.platforms.http_calls import ask, ask_once, json_object, retry_after, words_of
from pipeline.platforms.payload_types import Adapted, Payload
from pipeline.plugins import ConfigInvalid, Evidence, NeedsReconnect, PluginError, Problem
from pipeline.text import article

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response

WHAT = "The receiver"
ANSWER_BYTES = 64 * 1024
PREFIX = "whsec_"
LEAST_KEY, MOST_KEY = 24, 64
"""Bytes of a secret, as Standard Webhooks has them."""
MADE_KEY = 32
ID_MAX, URL_MAX = 300, 2048

_ERRORS = (
    Failure(
        NeedsReconnect,
        "receiver_gone",
        "The receiver says that it is gone for good.",
        "Correct the address in the outlet's settings.",
        status=410,
    ),
    Failure(
        NeedsReconnect,
        "receiver_not_found",
        "There is no receiver at the address.",
        "Correct the address in the outlet's settings.",
        status=404,
    ),
    Failure(
        NeedsReconnect,
        "signature_refused",
        "The receiver doesn't take the signature.",
        "Give the outlet the secret that the receiver has.",
        status=401,
    ),
)


def _make_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(MADE_KEY)).decode()


class SignedWebhook(Platform):
    kind = "signed_webhook"
    label = "Signed webhook"
    summary = "Whatever you like: each post goes as signed JSON to an address of yours."
    evidence = Evidence("software", "standardwebhooks 1.1", "tests/platforms/test_signed_webhook.py")
    buckets = BUCKETS
    may_use_http = True
    can_reconcile = True
    idempotency = "server_key"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting("address", "Address", "Where the receiver is: it is sent a POST for each post.", kind="url"),
        Setting(
            "secret",
            "Secret",
            "The receiver has the same. Leave it empty: one is made and shown once. One of your own is whsec_ and 24 to "
            "64 random bytes in base64.",
            kind="password",
            is_secret=True,
            is_required=False,
            make=_make_secret,
        ),
        Setting(
            "lost_answer",
            "When an answer is lost",
            "Nobody knows then whether the receiver has the post.",
            kind="choice",
            choices=(
                ("wait", "Wait until a person says whether it is there"),
                ("ask", "Ask: the receiver answers GET with ?publication="),
                ("repeat", "Send it again: the receiver takes each webhook-id once"),
            ),
            default="wait",
            is_required=False,
        ),
    )

    def clean_credentials(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_credentials(credentials)
        if not LEAST_KEY <= len(_key_of(clean["secret"])) <= MOST_KEY:
            message = f"Give {PREFIX} and {LEAST_KEY} to {MOST_KEY} bytes in base64."
            raise ConfigInvalid([Problem("credentials.secret", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        del http, now
        address = str(account.config.get("address", ""))
        if not settings_of.is_web_address(address) or not _may_be_called(account, address):
            message = "The receiver's address has to begin with https://."
            raise NeedsReconnect(message, code="address_refused", action="Correct the address.")
        return AccountInfo(
            external_id=address[:ID_MAX],
            name=urlsplit(address).hostname or "",
            notes=("It isn't called to be checked: the first post shows that it works.",),
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        del account
        given = payload.content.get("parts")
        parts = tuple(str(one) for one in given) if isinstance(given, list | tuple) else ()
        # Parts that somebody has written over are no parts of these words any more.
        is_same = bool(parts) and PARTS_BETWEEN.join(parts) == payload.body
        disclosure = {"is_ai_generated": True} if payload.is_ai_generated else {}
        return Adapted(payload, parts if is_same else (payload.body,), disclosure=disclosure)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        del account
        payload = post.payload
        if payload.title.strip() or payload.body.strip() or payload.assets:
            return ()
        return (Problem("body", "empty", "There is nothing to publish: no title, no words, no file."),)

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
        body = json.dumps(build_document(post, key), ensure_ascii=False).encode("utf-8", "replace")
        response = ask_once(
            http,
            "POST",
            account.config["address"],
            what=WHAT,
            body=body,
            headers={"Content-Type": "application/json", **_signature(account, key, body, now)},
            https_only=not account.config.get("allows_http"),
            max_bytes=ANSWER_BYTES,
            truncate=True,
        )
        answer = json_object(response.body) or {}
        has_it_already = response.status == 409 and isinstance(answer.get("id"), str)
        if not 200 <= response.status < 300 and not has_it_already:
            _fail(response, now)
        return _sent(answer, key)

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
        del post, state
        way = account.config.get("lost_answer")
        if way == "repeat":
            # Its owner's word: an id is taken once, so that sending it again makes no second post.
            return Absent()
        if way != "ask":
            return CannotTell("This receiver can't be asked.")
        address = str(account.config["address"])
        url = f"{address}{'&' if urlsplit(address).query else '?'}publication={quote(key, safe='')}"
        try:
            response = ask(
                http,
                "GET",
                url,
                what=WHAT,
                headers=_signature(account, key, b"", now),
                https_only=not account.config.get("allows_http"),
                max_bytes=ANSWER_BYTES,
                truncate=True,
            )
        except PluginError as error:
            return CannotTell(error.message)
        answer = json_object(response.body) or {}
        found = answer.get("found") if response.status == 200 else None
        if found is True:
            return Found(_sent(answer, key))
        if found is False:
            return Absent()
        return CannotTell(f"The receiver answered {response.status} without saying whether it has the post.")


def build_document(post: Adapted, key: str) -> dict[str, Any]:
    """The post as the receiver gets it."""
    payload = post.payload
    return {
        "type": "post",
        "publication": key,
        "item": payload.item,
        "revision": payload.revision,
        "bucket": payload.bucket,
        "title": payload.title,
        "body": payload.body,
        "body_format": payload.body_format,
        "parts": list(post.parts),
        "language": payload.language,
        "link": payload.link,
        "is_ai_generated": payload.is_ai_generated,
        "media": [
            {
                "url": one.url,
                "mime_type": one.mime_type,
                "role": one.role,
                "alt_text": one.alt_text,
                "bytes": one.bytes,
                "name": one.name,
                "width": one.width,
                "height": one.height,
                "duration": one.duration,
            }
            for one in payload.assets
        ],
        "settings": dict(payload.settings),
        **_of_article(payload),
    }


def _of_article(payload: Payload) -> dict[str, Any]:
    """What belongs to an article beside its words: its slug, its description and the like, and JSON-LD with its picture."""
    if payload.bucket != "blog":
        return {}
    image = next((one.url for one in payload.assets if one.mime_type.startswith("image/")), "")
    told = article.published_json_ld(payload.content, title=payload.title, image=image)
    return {"content": {**payload.content, **({"json_ld": told} if told else {})}}


def _signature(account: Account, key: str, body: bytes, now: datetime) -> dict[str, str]:
    """Headers that sign `<key>.<seconds>.<body>`; the look-up has an empty body, and its address isn't signed."""
    now = now.astimezone(UTC)
    text = body.decode("utf-8")
    return {
        "webhook-id": key,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(str(account.credentials["secret"])).sign(key, now, text),
    }


def _key_of(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        return b""
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _may_be_called(account: Account, address: str) -> bool:
    return address.startswith("https://") or bool(account.config.get("allows_http"))


def _sent(answer: Mapping[str, Any], key: str) -> Sent:
    """The receiver's own id and address of the post, where it gives them."""
    identity, url = answer.get("id"), answer.get("url")
    is_address = isinstance(url, str) and len(url) <= URL_MAX and settings_of.is_web_address(url)
    return Sent(
        external_id=identity if isinstance(identity, str) and 0 < len(identity) <= ID_MAX else key,
        url=str(url) if is_address else "",
    )


def _fail(response: Response, now: datetime) -> NoReturn:
    fail(
        _ERRORS,
        response,
        what=WHAT,
        code="",
        words=words_of(response, "error.message", "error", "message", "detail"),
        now=now,
        is_commit=True,
        after=retry_after(response.headers, now=now),
    )


PLUGIN = SignedWebhook()
