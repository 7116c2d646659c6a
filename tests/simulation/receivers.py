"""The endpoints of people: what each answers, what it got, and what it can verify."""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from config.core.http_client import Response

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID


@dataclass
class Receiver:
    """Somebody's endpoint: what it answers, and what it got."""

    secrets: list[tuple[str, datetime]]
    """As its owner saw them, the newest last."""
    mode: str = "ok"
    got: list[tuple[datetime, UUID, str]] = field(default_factory=list)
    begun: list[datetime] = field(default_factory=list)
    """When each call to it began."""
    at_once: int = 0


def signature_of(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def answer_of(url: str, status: int, headers: Mapping[str, str]) -> Response:
    return Response(status=status, headers=headers, body=b"", url=url, truncated=False, redirects=())
