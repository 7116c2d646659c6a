"""Prepares an outlet for calls: its platform, its account with secrets, and the HTTP client to use."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

from django.conf import settings

from config.core.encrypted_fields import Sealed, SealedJSON
from config.core.http_client import shared
from config.core.ids import encode
from pipeline import plugins
from pipeline.models import OAuthApp
from pipeline.outlets.simulated_server import SimulatedServer
from pipeline.platforms.base import Account, Platform
from pipeline.plugins import PluginError
from pipeline.resources import feed_addresses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from config.core.http_client import Client
    from pipeline.models import Outlet

REDACTED: Final = "[secret]"
_WORD_ENDS: Final = " \t\r\n.,;:…\"')"
MIN_SECRET_CHARACTERS: Final = 6
"""The length from which secrets are redacted: shorter ones would blank ordinary words."""


@dataclass(frozen=True)
class OutletConnection:
    """Holds the platform, account and client of a call, and redacts the account's secrets from texts about it."""

    platform: Platform
    account: Account
    http: Client

    def redact(self, text: str) -> str:
        """Return the text without the account's secrets, in any encoding and even if they were cut off.

        Secrets shorter than `MIN_SECRET_CHARACTERS` stay.
        """
        secrets = {
            secret for secret in _texts_in(self.account.credentials) if len(secret) >= MIN_SECRET_CHARACTERS
        }
        forms = {form for secret in secrets for form in _encoded_forms(secret)}
        # Longest first: otherwise a form that contains another would lose only that part, and show the rest.
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, REDACTED)
        for secret in sorted(secrets, key=len, reverse=True):
            text = _redact_cut_secret(text, secret)
        return text

    @contextmanager
    def redacting_errors(self) -> Iterator[None]:
        """Run calls of the platform; errors that they raise are redacted."""
        try:
            yield
        except PluginError as error:
            error.message = self.redact(error.message)
            error.action = self.redact(error.action)
            error.platform_message = self.redact(error.platform_message)
            error.args = (error.message,)
            raise


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _texts_in(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _texts_in(member)


def _encoded_forms(value: str) -> set[str]:
    """Return the value as it is, escaped for URLs and JSON, and its possible forms within Base64."""
    data = value.encode("utf-8", "surrogatepass")
    escaped = {quote(data, safe=""), quote(data), quote_plus(data)}
    forms = {value, json.dumps(value)[1:-1], *escaped, *(_lower_case_escapes(form) for form in escaped)}
    # Three bytes become four letters, so the form within Base64 depends on how many bytes precede the value.
    for prefix_length in range(3):
        encoded = b64encode(b"\0" * prefix_length + data)
        # The first and last letters hold bits of the neighbours too.
        inner = encoded[(0, 2, 3)[prefix_length] :].decode().rstrip("=")[:-1]
        if len(inner) >= MIN_SECRET_CHARACTERS:
            forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return forms


def _lower_case_escapes(escaped: str) -> str:
    """Return the text with escapes such as `%2F` written as `%2f`, because both spellings are in use."""
    return re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), escaped)


def _redact_cut_secret(text: str, value: str) -> str:
    """Return the text without the secret's beginning at the end of a word, as a cut message may have it."""
    start = text.find(value[:MIN_SECRET_CHARACTERS])
    while start >= 0:
        end = start + _common_prefix_length(text[start:], value)
        if not text[end : end + 1].strip(_WORD_ENDS):
            text = text[:start] + REDACTED + text[end:]
        start = text.find(value[:MIN_SECRET_CHARACTERS], start + 1)
    return text


def _common_prefix_length(text: str, value: str) -> int:
    pairs = enumerate(zip(text, value, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(text), len(value)))


def platform_of(kind: str) -> Platform:
    """Return the platform. Raises `UnknownKind` if no plug-in has that kind."""
    return plugins.get("platforms", kind, Platform)


def platform_if_known(kind: str) -> Platform | None:
    """Return the platform, or `None` if its plug-in was removed while rows still name it."""
    try:
        return platform_of(kind)
    except plugins.UnknownKind:
        return None


def buckets_of(kind: str) -> tuple[str, ...]:
    """Return the content types that the platform takes, or none if its plug-in was removed."""
    platform = platform_if_known(kind)
    return tuple(platform.buckets) if platform is not None else ()


def account_of(outlet: Outlet, *, is_open: bool = False) -> Account:
    """Return the account without secrets, as rules need it, or with them if `is_open`, as calls need it."""
    config = dict(outlet.config)
    if platform_of(outlet.platform).is_own_feed:
        addresses = feed_addresses(outlet.secret)
        config |= {
            "feed_url": addresses["atom"],
            "feed_urls": [*addresses.values()],
            "hubs": settings.WEBSUB_HUBS,
        }
    return new_account(
        outlet.platform,
        outlet=encode("out", outlet.pk),
        config=config,
        credentials=credentials_of(outlet) if is_open else {},
        profile=outlet.profile,
    )


def new_account(
    kind: str,
    *,
    outlet: str = "",
    config: Mapping[str, Any],
    credentials: Mapping[str, Any],
    profile: Mapping[str, Any] | None = None,
) -> Account:
    """Return an account with the address and API version that the operator or the platform sets."""
    platform = platform_of(kind)
    api = platform.api
    if platform.may_use_http:
        config = {**config, "allows_http": settings.WEBHOOKS_ALLOW_HTTP}
    return Account(
        outlet=outlet,
        config=config,
        # An account without secrets is for rules, which don't need the operator's secrets either.
        credentials={**credentials, **client_of(kind)} if credentials else {},
        profile=profile or {},
        base_url=settings.PLATFORM_ADDRESSES.get(kind, api.base_url if api else ""),
        api_version=settings.PLATFORM_VERSIONS.get(kind, api.version if api else ""),
    )


def client_of(kind: str) -> dict[str, str]:
    """Return the operator's application at the platform, needed to renew tokens, or an empty dict without one."""
    if platform_of(kind).oauth is None:
        return {}
    app = OAuthApp.everywhere.filter(platform=kind).first()
    if app is None:
        return {}
    secret = app.client_secret
    return {
        "client_id": app.client_id,
        "client_secret": secret.open() if isinstance(secret, Sealed) else secret,
    }


def credentials_of(outlet: Outlet) -> dict[str, Any]:
    """Return the outlet's secrets, decrypted, or an empty dict if it has none."""
    stored = outlet.credentials
    # A row that was just created holds the object itself; one that was read holds it encrypted.
    return stored.open_object() if isinstance(stored, SealedJSON) else dict(stored or {})


def client_for(platform: Platform, outlet: Outlet) -> Client:
    return SimulatedServer(outlet.workspace_id) if platform.is_simulated else shared.client()


def connect(outlet: Outlet) -> OutletConnection:
    """Return the connection for calls, with secrets; nothing is sent yet."""
    platform = platform_of(outlet.platform)
    return OutletConnection(platform, account_of(outlet, is_open=True), client_for(platform, outlet))
