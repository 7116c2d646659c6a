"""Opens the only way to the network: guarded HTTP and raw sockets, without Django, for plug-ins too."""

from __future__ import annotations

from config.core.http_client.client import Client
from config.core.http_client.errors import (
    AddressRefused,
    BadResponse,
    ConnectFailed,
    NameNotFound,
    OutboundError,
    ResponseTooLarge,
    TimedOut,
    TooManyRedirects,
)
from config.core.http_client.guard import Policy, connect, is_allowed
from config.core.http_client.messages import Options, Response
from config.core.http_client.retry_after import read_retry_after

__all__ = [
    "AddressRefused",
    "BadResponse",
    "Client",
    "ConnectFailed",
    "NameNotFound",
    "Options",
    "OutboundError",
    "Policy",
    "Response",
    "ResponseTooLarge",
    "TimedOut",
    "TooManyRedirects",
    "connect",
    "is_allowed",
    "read_retry_after",
]
