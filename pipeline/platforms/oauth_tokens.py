"""Requests, renews and reads the tokens of accounts connected by OAuth 2.0.

`account.credentials` has `access_token`, `refresh_token`, `expires_at` (ISO 8601) and `scope`. For a call it has
the operator's `client_id` and `client_secret` as well; what `renew` returns never has them.
"""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote, urlsplit, urlunsplit

from pipeline.platforms.base import Account, OAuth, Platform, Renewed
from pipeline.platforms.http_calls import ask, json_object, platform_message_of, raise_by_status, with_colon
from pipeline.plugins import ConfigInvalid, NeedsReconnect, Problem, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response

STORED_FIELDS: Final = ("access_token", "refresh_token", "expires_at", "scope")
MAX_TOKEN_CHARACTERS: Final = 8_000
MAX_TOKEN_LIFETIME: Final = timedelta(days=3_650)
"""The bound to which a token's lifetime is cut."""
APP_REFUSED_WAIT: Final = timedelta(hours=1)
"""The wait after the platform refused the operator's application, which a person has to correct."""
_APP_ERRORS: Final = frozenset(
    {
        "invalid_client",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "redirect_uri_mismatch",
    }
)
"""The errors of RFC 6749, section 5.2, and one of Google's that refuse the application, so that no grant is lost."""


class TokenPlatform(Platform):
    """A platform whose account is a token that a person granted to the operator's application."""

    def clean_credentials(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        problems = [
            Problem(f"credentials.{name}", "unknown_field", f"{self.label} takes no {name!r}.")
            for name in credentials
            if name not in STORED_FIELDS
        ]
        clean: dict[str, Any] = {}
        for name in STORED_FIELDS:
            value = credentials.get(name, "")
            if not isinstance(value, str) or len(value) > MAX_TOKEN_CHARACTERS:
                problems.append(Problem(f"credentials.{name}", "invalid", f"The {name} can't be used."))
            elif value.strip():
                clean[name] = value.strip()
        if "access_token" not in clean and not problems:
            message = f"Connect {self.label} on its page, or give an access token."
            problems.append(Problem("credentials.access_token", "required", message))
        if problems:
            raise ConfigInvalid(problems)
        return clean

    def renew(self, account: Account, *, http: Client, now: datetime) -> Renewed | None:
        if self.oauth is None or not account.credentials.get("refresh_token"):
            return None
        form = {"grant_type": "refresh_token", "refresh_token": str(account.credentials["refresh_token"])}
        return self.tokens(account, form, http=http, now=now)

    def at(self, account: Account, address: str) -> str:
        """Return the address to call, with the account's base address, if the operator has set another one."""
        default_base = self.api.base_url if self.api is not None else ""
        if "{base_url}" in address:
            return address.replace("{base_url}", account.base_url.rstrip("/"))
        if not account.base_url or account.base_url.rstrip("/") == default_base.rstrip("/"):
            return address
        base = urlsplit(account.base_url)
        return urlunsplit(urlsplit(address)._replace(scheme=base.scheme, netloc=base.netloc))

    def tokens(
        self,
        account: Account,
        grant: Mapping[str, str],
        *,
        http: Client,
        now: datetime,
        timeout: float = 20.0,
    ) -> Renewed:
        """Request tokens with the operator's client, which comes with the account's credentials.

        A refresh token and scopes that the answer leaves out stay. Raises `NeedsReconnect` if the grant has
        ended, `TryLater` if the application isn't accepted, the platform can't be reached or its answer can't be
        read, and `Refused` for another refusal.
        """
        assert self.oauth is not None  # noqa: S101  only platforms with OAuth are asked
        headers, form = client_of(self.oauth, account.credentials, grant)
        response = ask(
            http,
            "POST",
            self.at(account, self.oauth.token_url),
            service=self.label,
            form=form,
            headers=headers,
            timeout=timeout,
        )
        answer = json_object(response.body) or {}
        token = answer.get("access_token")
        if response.status != 200 or not isinstance(token, str) or not token:
            self._raise_tokens_refused(response, now)
        expires_at = token_expiry(answer.get("expires_in"), now)
        credentials: dict[str, Any] = {"access_token": token}
        # A platform that doesn't rotate refresh tokens answers without one: the former one stays valid.
        refresh_token = answer.get("refresh_token") or account.credentials.get("refresh_token")
        if isinstance(refresh_token, str) and refresh_token:
            credentials["refresh_token"] = refresh_token
        scope = answer.get("scope") or account.credentials.get("scope")
        if isinstance(scope, str) and scope:
            credentials["scope"] = scope
        if expires_at is not None:
            credentials["expires_at"] = expires_at.isoformat()
        return Renewed(credentials, expires_at)

    def _raise_tokens_refused(self, response: Response, now: datetime) -> NoReturn:
        """Raise the plug-in error for a request for tokens that got none."""
        answer = json_object(response.body) or {}
        platform_message = platform_message_of(
            response, "error_description", "detail", "message", "error"
        ).rstrip(".")
        status, code = response.status, answer.get("error")
        if code in _APP_ERRORS or (status == 401 and answer):
            message = (
                f"{self.label} didn't take the application of this service{with_colon(platform_message)}."
            )
            raise TryLater(
                message,
                code="app_refused",
                after=APP_REFUSED_WAIT,
                is_of_account=True,
                action=f"The operator checks the client id and secret of {self.label} in the admin.",
                platform_status=status,
                platform_message=platform_message,
            )
        if status in {400, 401, 403} and answer:
            message = f"{self.label} no longer accepts this connection{with_colon(platform_message)}."
            raise NeedsReconnect(message, platform_status=status, platform_message=platform_message)
        if status < 400 or not answer:
            message = f"{self.label} answered the request for a token in no form that can be read."
            raise TryLater(message, platform_status=status)
        raise_by_status(
            response, service=self.label, platform_message=platform_message, now=now, is_commit=False
        )


def client_of(
    oauth: OAuth, credentials: Mapping[str, Any], grant: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and form of a request to the token address."""
    client_id = str(credentials.get("client_id", ""))
    secret = str(credentials.get("client_secret", ""))
    headers = {"Accept": "application/json"}
    if oauth.client_auth == "basic" and secret:
        # RFC 6749, section 2.3.1: both are form-encoded before they are joined.
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return headers, dict(grant)
    form = {**grant, "client_id": client_id}
    if secret:
        form["client_secret"] = secret
    return headers, form


def token_expiry(seconds: object, now: datetime) -> datetime | None:
    """Return when a token with a life of `seconds` expires, or `None` if that isn't a usable number."""
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdigit():
        seconds = int(seconds[:10])
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 10**10:
        return None
    return now + min(timedelta(seconds=seconds), MAX_TOKEN_LIFETIME)


def expiry_of(account: Account) -> datetime | None:
    """Return when the account's token expires, as the platform said when it was issued, or `None`."""
    value = account.credentials.get("expires_at")
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def scopes_of(account: Account) -> tuple[str, ...]:
    """Return the scopes that the person granted; platforms separate them by spaces or commas."""
    return tuple(str(account.credentials.get("scope", "")).replace(",", " ").split())


def missing_notes(account: Account, scopes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the note of each scope that wasn't granted, or none if the platform didn't name the granted ones."""
    granted = scopes_of(account)
    return tuple(note for scope, note in scopes.items() if granted and scope not in granted)


def bearer_header(account: Account, **more: str) -> dict[str, str]:
    """Return the request headers with the account's access token."""
    return {"Authorization": f"Bearer {account.credentials.get('access_token', '')}", **more}
