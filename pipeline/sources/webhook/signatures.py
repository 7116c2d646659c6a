"""How a sender proves itself: a secret that it shows, or a signature over the bytes that it sent.

Every comparison takes the same time whatever differs. Each scheme below names the bytes that it signs; the body in them
is raw, before anything reads it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import TYPE_CHECKING, Final

from pipeline import limits
from pipeline.plugins import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

KINDS: Final = ("address", "header", "bearer", "standard_webhooks", "github", "slack", "stripe", "ghost")
GIVEN_BY_THE_SENDER: Final = frozenset({"slack", "stripe"})
"""Their secret is made where the sender is set up; for the others we make one that is pasted there."""
DEFAULT_HEADER: Final = "X-Webhook-Secret"
SECRET_LEAST: Final = 8
SECRET_MOST: Final = 200
_PREFIX: Final = "whsec_"
_DIGITS: Final = re.compile(r"[0-9]{1,16}")
_KEY_CHARACTERS: Final = 200


class NotProven(Exception):
    """The sender didn't prove itself; `message` is for people and says nothing of the secret."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def make_secret(kind: str) -> str:
    """A secret of 32 random bytes; for Standard Webhooks as `whsec_` and base64."""
    if kind == "standard_webhooks":
        return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    return secrets.token_urlsafe(32)


def problem_of(kind: str, secret: str, path: str) -> Problem | None:
    """Why this can't be a secret of that kind."""
    if not SECRET_LEAST <= len(secret) <= SECRET_MOST or not re.fullmatch(r"[!-~]+", secret):
        message = (
            f"Give a secret of {SECRET_LEAST} to {SECRET_MOST} printable ASCII characters, without spaces."
        )
        return Problem(path, "invalid", message)
    if kind == "standard_webhooks" and _standard_key(secret) is None:
        return Problem(
            path, "invalid", "Give a secret of the form whsec_ and base64, as Standard Webhooks has it."
        )
    return None


def verify(
    kind: str,
    header: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    known: Sequence[str],
    now: datetime,
) -> str:
    """The sender's own id of this delivery, empty where it has none. Raises `NotProven`.

    `headers` has lower-case names; `known` holds the secrets that count now, one or two of them.
    """
    if kind == "header":
        return _shown_in(headers.get(header.lower(), ""), header, known, headers)
    if kind == "bearer":
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        return _shown_in(
            shown.strip() if scheme.lower() == "bearer" else "", "Authorization: Bearer", known, headers
        )
    check = _SIGNED.get(kind)
    if check is None:
        return _own_key(headers)
    return check(body, headers, known, now)


def _own_key(headers: Mapping[str, str]) -> str:
    """What a sender of ours may say so that a second try is known: `Idempotency-Key`, or the id of its message."""
    return (headers.get("idempotency-key") or headers.get("webhook-id") or "")[:_KEY_CHARACTERS]


def _shown_in(shown: str, where: str, known: Sequence[str], headers: Mapping[str, str]) -> str:
    if not shown:
        raise NotProven("secret_missing", f"The secret is missing; send it in {where}.")
    given = shown.encode()
    # Each is compared, so that nobody can tell an old secret from a wrong one by the time it takes.
    if not sum(hmac.compare_digest(given, one.encode()) for one in known):
        raise NotProven("secret_wrong", f"The secret in {where} isn't this source's.")
    return _own_key(headers)


def _standard_webhooks(body: bytes, headers: Mapping[str, str], known: Sequence[str], now: datetime) -> str:
    """standardwebhooks.com: base64 HMAC-SHA256 of `id.timestamp.body`; several signatures stand side by side."""
    message_id = _needed(headers, "webhook-id")
    sent = _needed(headers, "webhook-timestamp")
    _refuse_unless_now(sent, now)
    signed = b"%s.%s.%s" % (message_id.encode(), sent.encode(), body)
    keys = [key for one in known if (key := _standard_key(one)) is not None]
    right = [base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
    shown = [
        one.partition(",")[2] for one in _needed(headers, "webhook-signature").split()[:8] if one[:3] == "v1,"
    ]
    _refuse_unless_one(shown, right)
    return message_id[:_KEY_CHARACTERS]


def _standard_key(secret: str) -> bytes | None:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if 16 <= len(key) <= 128 else None


def _github(body: bytes, headers: Mapping[str, str], known: Sequence[str], now: datetime) -> str:
    """docs.github.com, "Validating webhook deliveries": `sha256=` and hex HMAC of the body; no time is signed."""
    del now
    shown = _needed(headers, "x-hub-signature-256").removeprefix("sha256=")
    _refuse_unless_one([shown], _hex(known, body))
    # Not its delivery id, which isn't signed: whoever has seen a delivery could send it again under another one.
    return "github:" + hashlib.sha256(body).hexdigest()


def _slack(body: bytes, headers: Mapping[str, str], known: Sequence[str], now: datetime) -> str:
    """docs.slack.dev, "Verifying requests from Slack": `v0=` and hex HMAC of `v0:timestamp:body`."""
    sent = _needed(headers, "x-slack-request-timestamp")
    _refuse_unless_now(sent, now)
    shown = _needed(headers, "x-slack-signature").removeprefix("v0=")
    _refuse_unless_one([shown], _hex(known, b"v0:%s:%s" % (sent.encode(), body)))
    # The id of the event stands in the body; a retry has the same.
    return ""


def _stripe(body: bytes, headers: Mapping[str, str], known: Sequence[str], now: datetime) -> str:
    """docs.stripe.com, "Verify webhook signatures manually": `t=…,v1=…`, hex HMAC of `t.body`; v1 may repeat."""
    parts = _parts(_needed(headers, "stripe-signature"))
    sent = next(iter(parts.get("t", ())), "")
    _refuse_unless_now(sent, now)
    _refuse_unless_one(parts.get("v1", ()), _hex(known, b"%s.%s" % (sent.encode(), body)))
    # The id of the event stands in the body; a retry has the same.
    return ""


def _ghost(body: bytes, headers: Mapping[str, str], known: Sequence[str], now: datetime) -> str:
    """TryGhost/Ghost, WebhookTrigger.js: `sha256=…, t=…`, hex HMAC of the body and the time in milliseconds."""
    parts = _parts(_needed(headers, "x-ghost-signature"))
    sent = next(iter(parts.get("t", ())), "")
    _refuse_unless_now(sent, now, per_second=1000)
    shown = parts.get("sha256", [""])
    _refuse_unless_one(shown, _hex(known, body + sent.encode()))
    return "ghost:" + hashlib.sha256(f"{sent} {shown[0].lower()}".encode()).hexdigest()


_SIGNED: Final[Mapping[str, Callable[[bytes, Mapping[str, str], Sequence[str], datetime], str]]] = {
    "standard_webhooks": _standard_webhooks,
    "github": _github,
    "slack": _slack,
    "stripe": _stripe,
    "ghost": _ghost,
}


def _needed(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name, "")
    if not value:
        raise NotProven("signature_missing", f"The header {name} is missing; nothing proves who sent this.")
    return value


def _refuse_unless_now(sent: str, now: datetime, *, per_second: int = 1) -> None:
    if not _DIGITS.fullmatch(sent):
        raise NotProven("timestamp_missing", "The signature has no time that can be read.")
    if abs(now.timestamp() - int(sent) / per_second) > limits.INBOUND_WINDOW.total_seconds():
        minutes = int(limits.INBOUND_WINDOW.total_seconds() // 60)
        message = f"It was signed more than {minutes} minutes from now; sign it anew, and look at the sender's clock."
        raise NotProven("timestamp_outside_window", message)


def _hex(known: Sequence[str], signed: bytes) -> list[str]:
    return [hmac.new(one.encode(), signed, hashlib.sha256).hexdigest() for one in known]


def _refuse_unless_one(shown: Iterable[str], right: Sequence[str]) -> None:
    pairs = [(one, other) for one in list(shown)[:8] for other in right]
    if not sum(hmac.compare_digest(one.encode(), other.encode()) for one, other in pairs):
        raise NotProven("signature_wrong", "The signature doesn't fit this body and this source's secret.")


def _parts(value: str) -> dict[str, list[str]]:
    """`t=1,v1=a,v1=b` as lists by name."""
    found: dict[str, list[str]] = {}
    for part in value.split(",")[:16]:
        name, _, content = part.strip().partition("=")
        found.setdefault(name, []).append(content)
    return found
