"""Signs deliveries by Standard Webhooks: HMAC-SHA256 of `<event id>.<seconds>.<body>`, the body as sent.

The address and the other headers aren't signed.
"""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Final

from standardwebhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from webhooks.models import Endpoint

SECRET_PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
"""Random bytes of a secret."""


def make_secret() -> str:
    """Return a new secret: `whsec_` and base64 of 32 random bytes."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def secrets_of(endpoint: Endpoint, *, now: datetime) -> list[str]:
    """Return the secrets that sign at `now`: the current one, then the previous one while they overlap."""
    until = endpoint.previous_secret_until
    if endpoint.previous_secret and until is not None and now < until:
        return [endpoint.secret, endpoint.previous_secret]
    return [endpoint.secret]


def sign(signing_secrets: Sequence[str], event_id: str, sent_at: datetime, body: bytes) -> str:
    """Return the value of `webhook-signature`: `v1,` and base64 for each secret, of which receivers accept any.

    `sent_at` is in UTC; its whole seconds are those of `webhook-timestamp`.
    """
    text = body.decode()
    return " ".join(Webhook(secret).sign(event_id, sent_at, text) for secret in signing_secrets)
