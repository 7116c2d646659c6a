"""Sends posts as signed JSON to a workspace's own receiver.

The signature is that of Standard Webhooks (https://www.standardwebhooks.com); pipeline/platforms/README.md says
what a receiver has to do. `webhook-id` is the publication's key, the same for every try; a receiver that accepts
each id only once can be sent the same post any number of times.
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
from pipeline.platforms import rules
from pipeline.platforms import settings as settings_of
from pipeline.platforms.base import Absent, Account, AccountInfo, CannotTell, Found, Platform, Sent, Setting
from pipeline.platforms.failures import Failure, raise_from_table
from pipeline.platforms.fitting import PART_SEPARATOR
from pipeline.platforms.http_calls import ask, ask_once, json_object, platform_message_of, retry_after
from pipeline.platforms.payload_types import Adapted, Payload
from pipeline.plugins import ConfigInvalid, Evidence, NeedsReconnect, PluginError, Problem
from pipeline.text import article_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response

SERVICE_NAME = "The receiver"
MAX_ANSWER_BYTES = 64 * 1024
SECRET_PREFIX = "whsec_"
MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64
"""The bytes of a secret that Standard Webhooks allows."""
MADE_KEY_BYTES = 32
MAX_ID_CHARACTERS, MAX_URL_CHARACTERS = 300, 2048

_ERRORS = (
    Failure(
        NeedsReconnect,
        "receiver_gone",
        "The receiver says that it is permanently gone.",
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
    """Return a new random secret in the form of Standard Webhooks."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(MADE_KEY_BYTES)).decode()


class SignedWebhook(Platform):
    kind = "signed_webhook"
    label = "Signed webhook"
    icon = "webhook"
    summary = "A receiver of your own: each post is sent to it as signed JSON."
    secret_addresses = (
        # The receivers of Zapier, Make, IFTTT and Microsoft Teams.
        r"(/hooks/(?:catch|standard)/)[^\s\"'<>?]+",
        r"(?i:(//hook\.(?:[a-z0-9]+\.)?make\.com/))[^\s\"'<>?]+",
        r"(/with/key/|/webhookb2/)[^\s\"'<>?]+",
    )
    evidence = Evidence("software", "standardwebhooks 1.1", "tests/platforms/test_signed_webhook.py")
    buckets = BUCKETS
    may_use_http = True
    can_reconcile = True
    idempotency = "server_key"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting("address", "Address", "The receiver's address. It gets a POST for each post.", kind="url"),
        Setting(
            "secret",
            "Secret",
            "The receiver has the same. Leave it empty to have one made and shown once. One of your own "
            "is whsec_ and 24 to 64 random bytes in base64.",
            kind="password",
            is_secret=True,
            is_required=False,
            make=_make_secret,
        ),
        Setting(
            "lost_answer",
            "When an answer is lost",
            "It is then unknown whether the receiver has the post.",
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
        if not MIN_KEY_BYTES <= len(_decode_secret(clean["secret"])) <= MAX_KEY_BYTES:
            message = f"Give {SECRET_PREFIX} and {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes in base64."
            raise ConfigInvalid([Problem("credentials.secret", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        del http, now
        address = str(account.config.get("address", ""))
        if not settings_of.is_web_address(address) or not _is_allowed_scheme(account, address):
            message = "The receiver's address has to begin with https://."
            raise NeedsReconnect(message, code="address_refused", action="Correct the address.")
        return AccountInfo(
            external_id=address[:MAX_ID_CHARACTERS],
            name=urlsplit(address).hostname or "",
            notes=("It isn't called to be checked: the first post shows that it works.",),
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        del account
        content_parts = payload.content.get("parts")
        parts = tuple(str(part) for part in content_parts) if isinstance(content_parts, list | tuple) else ()
        # Once a person has edited the body, the parts no longer make it up.
        is_same = bool(parts) and PART_SEPARATOR.join(parts) == payload.body
        disclosure = {"is_ai_generated": True} if payload.is_ai_generated else {}
        return Adapted(payload, parts if is_same else (payload.body,), disclosure=disclosure)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        del account
        return rules.find_empty(post.payload)

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
            service=SERVICE_NAME,
            body=body,
            headers={"Content-Type": "application/json", **_signature_headers(account, key, body, now)},
            https_only=not account.config.get("allows_http"),
            max_bytes=MAX_ANSWER_BYTES,
            truncate=True,
        )
        answer = json_object(response.body) or {}
        has_it_already = response.status == 409 and isinstance(answer.get("id"), str)
        if not 200 <= response.status < 300 and not has_it_already:
            _raise_for_response(response, now)
        return _to_sent(answer, key)

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
        policy = account.config.get("lost_answer")
        if policy == "repeat":
            # The owner guarantees that an id is accepted once, so sending it again makes no second post.
            return Absent()
        if policy != "ask":
            return CannotTell("This receiver can't be asked.")
        address = str(account.config["address"])
        url = f"{address}{'&' if urlsplit(address).query else '?'}publication={quote(key, safe='')}"
        try:
            response = ask(
                http,
                "GET",
                url,
                service=SERVICE_NAME,
                headers=_signature_headers(account, key, b"", now),
                https_only=not account.config.get("allows_http"),
                max_bytes=MAX_ANSWER_BYTES,
                truncate=True,
            )
        except PluginError as error:
            return CannotTell(error.message)
        answer = json_object(response.body) or {}
        is_found = answer.get("found") if response.status == 200 else None
        if is_found is True:
            return Found(_to_sent(answer, key))
        if is_found is False:
            return Absent()
        return CannotTell(f"The receiver answered {response.status} without saying whether it has the post.")


def build_document(post: Adapted, key: str) -> dict[str, Any]:
    """Return the post as the JSON that the receiver gets."""
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
                "url": asset.url,
                "mime_type": asset.mime_type,
                "role": asset.role,
                "alt_text": asset.alt_text,
                "bytes": asset.bytes,
                "name": asset.name,
                "width": asset.width,
                "height": asset.height,
                "duration": asset.duration,
            }
            for asset in payload.assets
        ],
        "settings": dict(payload.settings),
        **_article_fields(payload),
    }


def _article_fields(payload: Payload) -> dict[str, Any]:
    """Return an article's content, such as slug and description, with JSON-LD, or an empty dict for other posts."""
    if payload.bucket != "blog":
        return {}
    image = next((asset.url for asset in payload.assets if asset.mime_type.startswith("image/")), "")
    json_ld = article_metadata.published_json_ld(payload.content, title=payload.title, image=image)
    return {"content": {**payload.content, **({"json_ld": json_ld} if json_ld else {})}}


def _signature_headers(account: Account, key: str, body: bytes, now: datetime) -> dict[str, str]:
    """Return the headers that sign `<key>.<seconds>.<body>`.

    The body of a look-up is empty, and its address isn't signed.
    """
    now = now.astimezone(UTC)
    text = body.decode("utf-8")
    return {
        "webhook-id": key,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(str(account.credentials["secret"])).sign(key, now, text),
    }


def _decode_secret(secret: str) -> bytes:
    """Return the bytes of a secret, or no bytes if it isn't in the form of Standard Webhooks."""
    if not secret.startswith(SECRET_PREFIX):
        return b""
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_allowed_scheme(account: Account, address: str) -> bool:
    """Return whether the address is https, or the operator allows webhooks without TLS."""
    return address.startswith("https://") or bool(account.config.get("allows_http"))


def _to_sent(answer: Mapping[str, Any], key: str) -> Sent:
    """Return the post with the id and address in the receiver's answer, or else with its key and no address."""
    post_id, url = answer.get("id"), answer.get("url")
    is_address = isinstance(url, str) and len(url) <= MAX_URL_CHARACTERS and settings_of.is_web_address(url)
    return Sent(
        external_id=post_id if isinstance(post_id, str) and 0 < len(post_id) <= MAX_ID_CHARACTERS else key,
        url=str(url) if is_address else "",
    )


def _raise_for_response(response: Response, now: datetime) -> NoReturn:
    """Raise the plug-in error for a failed commit."""
    raise_from_table(
        _ERRORS,
        response,
        service=SERVICE_NAME,
        code="",
        platform_message=platform_message_of(response, "error.message", "error", "message", "detail"),
        now=now,
        is_commit=True,
        after=retry_after(response.headers, now=now),
    )


PLUGIN = SignedWebhook()
