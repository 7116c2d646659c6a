"""Verifies senders by a secret that they send, or by a signature over the bytes that they sent.

Every comparison takes the same time whatever differs. The function of each scheme names the bytes that are
signed; the body in them is the raw one, before anything parses it.
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
"""The kinds whose secret the sender makes; for the others we make one that is pasted at the sender."""
DEFAULT_HEADER: Final = "X-Webhook-Secret"
MIN_SECRET_CHARACTERS: Final = 8
MAX_SECRET_CHARACTERS: Final = 200
_SECRET_PREFIX: Final = "whsec_"
_TIMESTAMP: Final = re.compile(r"[0-9]{1,16}")
_MAX_ID_CHARACTERS: Final = 200
"""The length at which the sender's id of a delivery is cut."""


class NotProven(Exception):
    """Raised if the sender didn't prove itself. `message` is for people and gives away nothing of the secret."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def make_secret(kind: str) -> str:
    """Return a new secret of 32 random bytes in URL-safe base64, or `whsec_` and base64 for Standard Webhooks."""
    if kind == "standard_webhooks":
        return _SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    return secrets.token_urlsafe(32)


def find_secret_problem(kind: str, secret: str, path: str) -> Problem | None:
    """Return why this can't be a secret of that kind, or `None` if it can."""
    if not MIN_SECRET_CHARACTERS <= len(secret) <= MAX_SECRET_CHARACTERS or not re.fullmatch(
        r"[!-~]+", secret
    ):
        message = f"Give a secret of {MIN_SECRET_CHARACTERS} to {MAX_SECRET_CHARACTERS} printable ASCII characters, without spaces."
        return Problem(path, "invalid", message)
    if kind == "standard_webhooks" and _standard_key(secret) is None:
        message = "Give a secret of the form whsec_ and base64, as Standard Webhooks has it."
        return Problem(path, "invalid", message)
    return None


def verify(
    kind: str,
    header: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    valid_secrets: Sequence[str],
    now: datetime,
) -> str:
    """Return an id by which a repeated delivery is recognized, or an empty string if there is none.

    It is the sender's id, or for some kinds a hash of the signed bytes. `headers` has lower-case names;
    `valid_secrets` holds one or two secrets. Raises `NotProven` if the secret or signature is missing or
    wrong, or the signature is too old.
    """
    if kind == "header":
        return _check_sent_secret(headers.get(header.lower(), ""), header, valid_secrets, headers)
    if kind == "bearer":
        scheme, _, token = headers.get("authorization", "").partition(" ")
        sent_secret = token.strip() if scheme.lower() == "bearer" else ""
        return _check_sent_secret(sent_secret, "Authorization: Bearer", valid_secrets, headers)
    check = _SIGNATURE_CHECKS.get(kind)
    if check is None:
        # The kind `address`: knowing the address is the proof.
        return _delivery_id(headers)
    return check(body, headers, valid_secrets, now)


def _delivery_id(headers: Mapping[str, str]) -> str:
    """Return the id by which a second try is recognized: `Idempotency-Key`, else `webhook-id`, else ""."""
    return (headers.get("idempotency-key") or headers.get("webhook-id") or "")[:_MAX_ID_CHARACTERS]


def _check_sent_secret(
    sent_secret: str, location: str, valid_secrets: Sequence[str], headers: Mapping[str, str]
) -> str:
    """Return the id of a delivery with a sent secret. Raises `NotProven` if that is missing or wrong."""
    if not sent_secret:
        raise NotProven("secret_missing", f"The secret is missing; send it in {location}.")
    sent_bytes = sent_secret.encode()
    # All are compared, so that the time doesn't tell an old secret from a wrong one.
    if not sum(hmac.compare_digest(sent_bytes, secret.encode()) for secret in valid_secrets):
        raise NotProven("secret_wrong", f"The secret in {location} isn't this source's.")
    return _delivery_id(headers)


def _standard_webhooks(
    body: bytes, headers: Mapping[str, str], valid_secrets: Sequence[str], now: datetime
) -> str:
    """Check base64 HMAC-SHA256 of `id.timestamp.body` (standardwebhooks.com), and return the id.

    The header may hold several signatures, of which eight are read.
    """
    message_id = _require_header(headers, "webhook-id")
    timestamp = _require_header(headers, "webhook-timestamp")
    _check_time(timestamp, now)
    signed = b"%s.%s.%s" % (message_id.encode(), timestamp.encode(), body)
    keys = [key for secret in valid_secrets if (key := _standard_key(secret)) is not None]
    expected = [base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
    signatures = [
        text.partition(",")[2]
        for text in _require_header(headers, "webhook-signature").split()[:8]
        if text[:3] == "v1,"
    ]
    _check_signatures(signatures, expected)
    return message_id[:_MAX_ID_CHARACTERS]


def _standard_key(secret: str) -> bytes | None:
    """Return the bytes of a Standard Webhooks secret, or `None` if it isn't base64 of 16 to 128 bytes."""
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if 16 <= len(key) <= 128 else None


def _github(body: bytes, headers: Mapping[str, str], valid_secrets: Sequence[str], now: datetime) -> str:
    """Check `sha256=` and hex HMAC of the body, and return a hash of the body; no time is signed.

    The scheme is that of docs.github.com, "Validating webhook deliveries".
    """
    del now
    signature = _require_header(headers, "x-hub-signature-256").removeprefix("sha256=")
    _check_signatures([signature], _hex_signatures(valid_secrets, body))
    # Not GitHub's delivery id, which isn't signed: a seen delivery could be sent again under another id.
    return "github:" + hashlib.sha256(body).hexdigest()


def _slack(body: bytes, headers: Mapping[str, str], valid_secrets: Sequence[str], now: datetime) -> str:
    """Check `v0=` and hex HMAC of `v0:timestamp:body` (docs.slack.dev, "Verifying requests from Slack")."""
    timestamp = _require_header(headers, "x-slack-request-timestamp")
    _check_time(timestamp, now)
    signature = _require_header(headers, "x-slack-signature").removeprefix("v0=")
    _check_signatures([signature], _hex_signatures(valid_secrets, b"v0:%s:%s" % (timestamp.encode(), body)))
    # The id of the event stands in the body; a retry has the same.
    return ""


def _stripe(body: bytes, headers: Mapping[str, str], valid_secrets: Sequence[str], now: datetime) -> str:
    """Check `t=…,v1=…`, hex HMAC of `t.body`; v1 may repeat.

    The scheme is that of docs.stripe.com, "Verify webhook signatures manually".
    """
    parts = _parse_pairs(_require_header(headers, "stripe-signature"))
    timestamp = next(iter(parts.get("t", ())), "")
    _check_time(timestamp, now)
    _check_signatures(
        parts.get("v1", ()), _hex_signatures(valid_secrets, b"%s.%s" % (timestamp.encode(), body))
    )
    # The id of the event stands in the body; a retry has the same.
    return ""


def _ghost(body: bytes, headers: Mapping[str, str], valid_secrets: Sequence[str], now: datetime) -> str:
    """Check `sha256=…, t=…`, hex HMAC of the body and the time in milliseconds, and return a hash of both.

    The scheme is that of TryGhost/Ghost, WebhookTrigger.js.
    """
    parts = _parse_pairs(_require_header(headers, "x-ghost-signature"))
    timestamp = next(iter(parts.get("t", ())), "")
    _check_time(timestamp, now, per_second=1000)
    signatures = parts.get("sha256", [""])
    _check_signatures(signatures, _hex_signatures(valid_secrets, body + timestamp.encode()))
    return "ghost:" + hashlib.sha256(f"{timestamp} {signatures[0].lower()}".encode()).hexdigest()


_SIGNATURE_CHECKS: Final[Mapping[str, Callable[[bytes, Mapping[str, str], Sequence[str], datetime], str]]] = {
    "standard_webhooks": _standard_webhooks,
    "github": _github,
    "slack": _slack,
    "stripe": _stripe,
    "ghost": _ghost,
}


def _require_header(headers: Mapping[str, str], name: str) -> str:
    """Return a header's value. Raises `NotProven` if the header is missing or empty."""
    value = headers.get(name, "")
    if not value:
        raise NotProven("signature_missing", f"The header {name} is missing; nothing proves who sent this.")
    return value


def _check_time(timestamp: str, now: datetime, *, per_second: int = 1) -> None:
    """Raise `NotProven` for an unreadable or too distant time; `per_second` is 1000 for milliseconds."""
    if not _TIMESTAMP.fullmatch(timestamp):
        raise NotProven("timestamp_missing", "The signature has no readable time.")
    if abs(now.timestamp() - int(timestamp) / per_second) > limits.INBOUND_WINDOW.total_seconds():
        minutes = int(limits.INBOUND_WINDOW.total_seconds() // 60)
        message = (
            f"It was signed more than {minutes} minutes from now. Sign it again, and check the sender's "
            "clock."
        )
        raise NotProven("timestamp_outside_window", message)


def _hex_signatures(valid_secrets: Sequence[str], signed: bytes) -> list[str]:
    """Return the signature in hex that each secret gives."""
    return [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in valid_secrets]


def _check_signatures(sent: Iterable[str], expected: Sequence[str]) -> None:
    """Raise `NotProven` unless one of the sent signatures is an expected one."""
    pairs = [(signature.encode(), right.encode()) for signature in list(sent)[:8] for right in expected]
    # All pairs are compared, so that the time doesn't tell which secret is the right one.
    if not sum(hmac.compare_digest(signature, right) for signature, right in pairs):
        raise NotProven("signature_wrong", "The signature doesn't match this body and this source's secret.")


def _parse_pairs(value: str) -> dict[str, list[str]]:
    """Return the values of a header such as `t=1,v1=a,v1=b` as lists by name; 16 pairs are read."""
    values_by_name: dict[str, list[str]] = {}
    for part in value.split(",")[:16]:
        name, _, content = part.strip().partition("=")
        values_by_name.setdefault(name, []).append(content)
    return values_by_name
