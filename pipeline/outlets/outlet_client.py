"""An outlet opened for a call: its platform, its account, and the client that it speaks through."""

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
from pipeline.payloads import feed_addresses
from pipeline.platforms.base import Account, Platform
from pipeline.plugins import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from config.core.http_client import Client
    from pipeline.models import Outlet

REDACTED: Final = "[secret]"
_ENDS: Final = " \t\r\n.,;:…\"')"
SHORTEST_SECRET: Final = 6
"""Characters of a value that is looked for in what is told: shorter ones would blank ordinary words."""


@dataclass(frozen=True)
class OutletConnection:
    """What a call needs, and what keeps its secrets out of whatever is told of it."""

    platform: Platform
    account: Account
    http: Client

    def redact(self, text: str) -> str:
        """The text without any of the account's secrets, whoever has put them there, and in whatever form."""
        values = {text for text in _texts_in(self.account.credentials) if len(text) >= SHORTEST_SECRET}
        forms = {form for value in values for form in _forms_of(value)}
        # The longest first: what holds another one would else lose only that, and show the rest.
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, REDACTED)
        for value in sorted(values, key=len, reverse=True):
            text = _without_cut(text, value)
        return text

    @contextmanager
    def telling_no_secret(self) -> Iterator[None]:
        """Calls of the platform, whose failures are told without secrets."""
        try:
            yield
        except PluginError as error:
            error.message = self.redact(error.message)
            error.action = self.redact(error.action)
            error.platform_message = self.redact(error.platform_message)
            error.args = (error.message,)
            raise


def _texts_in(value: Any) -> Iterator[str]:
    """Every text of a JSON value, however deep it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _texts_in(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _texts_in(member)


def _forms_of(value: str) -> set[str]:
    """As it is, in an address, in JSON, and inside of Base64, whose letters depend on what stands before."""
    data = value.encode("utf-8", "surrogatepass")
    escaped = {quote(data, safe=""), quote(data), quote_plus(data)}
    forms = {value, json.dumps(value)[1:-1], *escaped, *(_in_lower_case(form) for form in escaped)}
    for before in range(3):
        whole = b64encode(b"\0" * before + data)
        # Its first and last letters hold bits of the neighbours too.
        inner = whole[(0, 2, 3)[before] :].decode().rstrip("=")[:-1]
        if len(inner) >= SHORTEST_SECRET:
            forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return forms


def _in_lower_case(escaped: str) -> str:
    """`%2f` for `%2F`: both are in use."""
    return re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), escaped)


def _without_cut(text: str, value: str) -> str:
    """A message that was shortened may hold the beginning of a secret, with nothing of the message's own behind it."""
    at = text.find(value[:SHORTEST_SECRET])
    while at >= 0:
        length = _length_of_common_beginning(text[at:], value)
        if not text[at + length : at + length + 1].strip(_ENDS):
            text = text[:at] + REDACTED + text[at + length :]
        at = text.find(value[:SHORTEST_SECRET], at + 1)
    return text


def _length_of_common_beginning(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def platform_of(kind: str) -> Platform:
    """Raises `UnknownKind` where no plug-in has that kind."""
    return plugins.get("platforms", kind, Platform)


def platform_if_known(kind: str) -> Platform | None:
    """None where its plug-in was taken out; rows that name it stay."""
    try:
        return platform_of(kind)
    except plugins.UnknownKind:
        return None


def buckets_of(kind: str) -> tuple[str, ...]:
    """What it takes: nothing where its plug-in was taken out."""
    platform = platform_if_known(kind)
    return tuple(platform.buckets) if platform is not None else ()


def account_of(outlet: Outlet, *, is_open: bool = False) -> Account:
    """The account as rules need it; with `is_open` with its secrets, as calls do."""
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
    """An account of a platform at the address, and in the version, that the operator has set or the platform names."""
    platform = platform_of(kind)
    api = platform.api
    if platform.may_use_http:
        config = {**config, "allows_http": settings.WEBHOOKS_ALLOW_HTTP}
    return Account(
        outlet=outlet,
        config=config,
        # Without secrets of its own, as rules need it, the account needs none of the operator's either.
        credentials={**credentials, **client_of(kind)} if credentials else {},
        profile=profile or {},
        base_url=settings.PLATFORM_ADDRESSES.get(kind, api.base_url if api else ""),
        api_version=settings.PLATFORM_VERSIONS.get(kind, api.version if api else ""),
    )


def client_of(kind: str) -> dict[str, str]:
    """The operator's application at the platform, which renewing a token needs; nothing where there is none."""
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
    """Its secrets, opened; empty where it has none."""
    kept = outlet.credentials
    # A row that was just made holds the object itself; one that was read holds it sealed.
    return kept.open_object() if isinstance(kept, SealedJSON) else dict(kept or {})


def client_for(platform: Platform, outlet: Outlet) -> Client:
    return SimulatedServer(outlet.workspace_id) if platform.is_simulated else shared.client()


def connect(outlet: Outlet) -> OutletConnection:
    """Open it for calls, with its secrets; nothing is asked yet."""
    platform = platform_of(outlet.platform)
    return OutletConnection(platform, account_of(outlet, is_open=True), client_for(platform, outlet))
