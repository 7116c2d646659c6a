"""Authenticates an API request by its bearer token, which names a workspace and its scopes."""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings
from django_ratelimit.core import get_usage  # type: ignore[import-untyped]
from redis import RedisError
from rest_framework.authentication import BaseAuthentication

from accounts import limits
from accounts.access import tokens
from config.core.clock import utc_now
from config.core.errors import AppError, Detail

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpRequest
    from rest_framework.request import Request

    from accounts.models import ApiToken, Workspace

log = structlog.get_logger(__name__)

_SCHEME: Final = "Bearer"
_BAD_TOKENS_GROUP: Final = "accounts.bad_tokens"
CACHE_SKIPPED_SECONDS: Final = 5.0
"""Seconds without counting after the cache failed: a dead cache must not cost every bad token a time-out."""
_cache_skipped_until: Final = {"at": 0.0}


@dataclass(frozen=True)
class Caller:
    """The caller of an API request: `request.user` and `request.auth`."""

    workspace: Workspace
    token_id: UUID
    scopes: frozenset[str]
    test: bool
    actor: str
    """The token's public id, as the audit log and events name it."""
    expires_at: datetime | None


class Unauthenticated(AppError):
    """Raised for a missing, malformed, unknown, expired or revoked token; the answer doesn't say which."""

    code = "unauthenticated"

    def __init__(self) -> None:
        super().__init__(headers={"WWW-Authenticate": _SCHEME})


class TooManyBadTokens(AppError):
    """Raised when a client's network has sent too many invalid tokens; `retry_after` is in seconds."""

    code = "rate_limited"

    def __init__(self, retry_after: int) -> None:
        message = f"Too many invalid tokens came from this address; wait {retry_after} second{'' if retry_after == 1 else 's'}."
        super().__init__(
            Detail(None, "too_many_bad_tokens", message), headers={"Retry-After": str(retry_after)}
        )


class BearerToken(BaseAuthentication):
    """Authenticates requests by the `Authorization: Bearer` header, for DRF."""

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Return the caller, as DRF's user and as its auth, and record the use of the token.

        Raises `Unauthenticated` without a live token, `TooManyBadTokens` if the client's network has sent too
        many invalid ones.
        """
        text = _bearer_token(request.META.get("HTTP_AUTHORIZATION", ""))
        if text is None:
            raise Unauthenticated
        now = utc_now()
        token = tokens.find_token(text, now)
        # Only bad tokens are counted and only they are refused: a good one works from an address where
        # another client has a wrong one.
        if token is None:
            _count_bad_token(request._request)  # noqa: SLF001  django-ratelimit knows Django's requests
            raise Unauthenticated
        tokens.record_use(token, address=client_address(request._request), now=now)  # noqa: SLF001
        caller = caller_of(token)
        # On Django's own request, so that the record of a key's requests sees it whatever the answer will be.
        request._request.caller = caller  # type: ignore[attr-defined]  # noqa: SLF001
        return caller, caller

    def authenticate_header(self, request: Request) -> str:
        del request
        return _SCHEME


def caller_of(token: ApiToken) -> Caller:
    """Return the caller that a token stands for."""
    return Caller(
        workspace=token.workspace,
        token_id=token.pk,
        scopes=frozenset(token.scopes),
        test=token.is_test,
        actor=tokens.public_id(token),
        expires_at=token.expires_at,
    )


def client_address(request: HttpRequest) -> str | None:
    """Return the client's address behind `TRUSTED_PROXIES` proxies, or `None` if the server doesn't know one.

    Entries of `X-Forwarded-For` further left than our own proxies wrote are the client's own claims.
    """
    address = request.META.get("REMOTE_ADDR", "")
    hops = [hop.strip() for hop in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    if 0 < settings.TRUSTED_PROXIES <= len(hops):
        address = _plain_address(hops[-settings.TRUSTED_PROXIES]) or address
    return _plain_address(address)


def _plain_address(text: str) -> str | None:
    """Return the address without its zone, as IPv4 if it is mapped into IPv6, or `None` for another text."""
    try:
        # PostgreSQL's inet has no zones.
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _bearer_token(header: str) -> str | None:
    """Return the token of an `Authorization` header, or `None` for another scheme or an empty token."""
    scheme, _, token = header.partition(" ")
    return token.strip() or None if scheme.lower() == _SCHEME.lower() else None


def _count_bad_token(request: HttpRequest) -> None:
    """Count an invalid token, unless the cache fails. Raises `TooManyBadTokens` if the network is above the limit."""
    if time.monotonic() < _cache_skipped_until["at"]:
        return
    try:
        usage = get_usage(
            request, group=_BAD_TOKENS_GROUP, key=_network_key, rate=limits.BAD_TOKENS, increment=True
        )
    # Without the cache nothing can be counted; guessing 178 bits is hopeless with or without the limit.
    except (RedisError, OSError) as error:
        _cache_skipped_until["at"] = time.monotonic() + CACHE_SKIPPED_SECONDS
        log.warning("bad_tokens_not_counted", error=str(error))
        return
    # `limit` is 0 if the cache answered without a count.
    if usage is not None and usage["limit"] and usage["should_limit"]:
        raise TooManyBadTokens(max(usage["time_left"], 1))


def _network_key(group: str, request: HttpRequest) -> str:
    del group
    return client_network(request)


def client_network(request: HttpRequest) -> str:
    """Return the network that a single client has to itself: its IPv4 address, or its IPv6 /64.

    All clients whose address the server doesn't know share the name `unknown`.
    """
    address = client_address(request)
    if address is None:
        return "unknown"
    return str(ipaddress.ip_network(f"{address}/{64 if ':' in address else 32}", strict=False))
