"""Calls an account's own server on Bluesky, opens the session for it, and maps failures to plug-in errors.

The names of errors are those of lexicons/com/atproto and packages/pds/src/auth-verifier.ts of
bluesky-social/atproto (read 2026-11-20).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn, Unpack
from urllib.parse import urlsplit

from pipeline.platforms.http_calls import (
    ask,
    ask_once,
    json_object,
    platform_message_of,
    raise_by_status,
    wait_until_reset,
    with_colon,
)
from pipeline.platforms.settings import is_web_address
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from config.core.http_client.messages import Options
    from pipeline.platforms.base import Account

SERVICE_NAME: Final = "Bluesky"
MIN_TOKEN_LIFE: Final = timedelta(minutes=1)
"""The life below which a token isn't used, because the call has to arrive before the token expires."""
REUPLOAD_WAIT: Final = timedelta(hours=1)
"""The wait after the server has lost a picture, longer than `UPLOAD_LIFETIME`, so that it is uploaded again."""
_TOKEN_ERRORS: Final = frozenset({"ExpiredToken", "InvalidToken"})
_ACCOUNT_ERRORS: Final = frozenset(
    {"AccountTakedown", "AccountSuspended", "AccountDeactivated", "RepoTakendown", "RepoDeactivated"}
)
_FILE_ERRORS: Final = frozenset({"BlobTooLarge", "InvalidMimeType", "PayloadTooLarge"})


# It has no repr, because tracebacks must not show tokens.
@dataclass(frozen=True, repr=False)
class BlueskySession:
    """A session: the account's DID, the server of its records, and its tokens.

    `refresh` is set only if the session was just opened.
    """

    did: str
    pds: str
    access: str
    refresh: str = ""

    @property
    def is_new(self) -> bool:
        """Whether the session was just opened, so that it has to be stored."""
        return bool(self.refresh)

    @property
    def tokens(self) -> dict[str, str]:
        """The tokens as they are stored with the app password."""
        return {"access_token": self.access, "refresh_token": self.refresh}


def server_of(account: Account) -> str:
    """Return the address of the server where the account signs in."""
    return str(account.config.get("server") or account.base_url).rstrip("/")


def stored_session(account: Account, *, now: datetime) -> BlueskySession | None:
    """Return the session stored with the credentials, or `None` if it is missing or about to expire."""
    access = str(account.credentials.get("access_token", ""))
    claims = claims_of(access)
    did, expires_at = claims.get("sub"), token_expiry(access)
    if not isinstance(did, str) or expires_at is None or expires_at - MIN_TOKEN_LIFE <= now:
        return None
    return BlueskySession(did, str(account.config.get("pds") or server_of(account)), access)


def open_session(account: Account, *, http: Client, now: datetime) -> BlueskySession:
    """Sign in with the app password, and return the session.

    The platform allows 30 sign-ins in 5 minutes and 300 a day. Raises `NeedsReconnect` if it refuses the
    password, `Refused` if there is no server, and otherwise as `raise_for_response`.
    """
    response = ask(
        http,
        "POST",
        f"{server_of(account)}/xrpc/com.atproto.server.createSession",
        service=SERVICE_NAME,
        json={
            "identifier": str(account.config["handle"]).strip().removeprefix("@"),
            "password": account.credentials["app_password"],
        },
    )
    return _read_session(account, response, now)


def refresh_session(account: Account, refresh: str, *, http: Client, now: datetime) -> BlueskySession | None:
    """Return the refreshed session, or `None` if the token has expired and the app password is needed."""
    response = ask(
        http,
        "POST",
        f"{server_of(account)}/xrpc/com.atproto.server.refreshSession",
        service=SERVICE_NAME,
        headers={"Authorization": f"Bearer {refresh}"},
    )
    if error_of(response) in _TOKEN_ERRORS or (
        response.status == 401 and error_of(response) not in _ACCOUNT_ERRORS
    ):
        return None
    return _read_session(account, response, now)


def _read_session(account: Account, response: Response, now: datetime) -> BlueskySession:
    """Return the session in the server's answer. Raises as `open_session` if there is none."""
    answer = json_object(response.body) or {}
    did, access, refresh = (answer.get(name) for name in ("did", "accessJwt", "refreshJwt"))
    if not (
        response.status == 200
        and isinstance(did, str)
        and isinstance(access, str)
        and isinstance(refresh, str)
    ):
        _raise_sign_in_failed(response, now)
    pds = _pds_of(answer.get("didDoc"), server_of(account))
    return BlueskySession(did, pds, access, refresh)


def _raise_sign_in_failed(response: Response, now: datetime) -> NoReturn:
    """Raise the plug-in error for a sign-in that was refused."""
    platform_message = platform_message_of(response, "message")
    if error_of(response) == "AuthFactorTokenRequired":
        message = f"{SERVICE_NAME} wants a code by email, which it doesn't for app passwords."
        action = "Make an app password in Bluesky (Settings, Privacy and security, App passwords) and connect with it."
        raise NeedsReconnect(
            message, code="app_password_needed", action=action, platform_status=response.status
        )
    if response.status in {400, 401} and error_of(response) in {"AuthenticationRequired", "InvalidRequest"}:
        message = (
            f"{SERVICE_NAME} doesn't take this handle with this app password{with_colon(platform_message)}."
        )
        action = "Make a new app password in Bluesky and reconnect the outlet with it."
        raise NeedsReconnect(
            message, action=action, platform_status=response.status, platform_message=platform_message
        )
    if response.status == 404 and not error_of(response):
        message = f"There is no server of {SERVICE_NAME} at this address."
        action = "Correct the server's address, or leave it empty for bsky.social."
        raise Refused(
            message, code="no_such_server", field="config.server", action=action, platform_status=404
        )
    raise_for_response(response, now=now)


def _pds_of(document: object, server: str) -> str:
    """Return the server of the account's records from its DID document, or `server` if it names no safe one."""
    services = document.get("service") if isinstance(document, dict) else None
    for service in services if isinstance(services, list) else []:
        if not isinstance(service, dict) or not str(service.get("id", "")).endswith("#atproto_pds"):
            continue
        address = service.get("serviceEndpoint")
        if isinstance(address, str) and is_web_address(address):
            # A token that came over https is never sent over plain http.
            is_safe = urlsplit(address).scheme == "https" or urlsplit(server).scheme == "http"
            return address.rstrip("/") if is_safe else server
    return server


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a JWT, unverified, or an empty dict if the token isn't one."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return json_object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))) or {}
    except ValueError:
        return {}


def token_expiry(token: str) -> datetime | None:
    """Return when a JWT expires, or `None` if it doesn't say."""
    seconds = claims_of(token).get("exp")
    if not isinstance(seconds, int) or not 0 < seconds < 2**40:
        return None
    return datetime.fromtimestamp(min(seconds, 2**37), UTC)


def call(
    account: Account,
    session: BlueskySession | None,
    method: str,
    name: str,
    *,
    http: Client,
    now: datetime,
    is_commit: bool = False,
    **options: Unpack[Options],
) -> tuple[Response, BlueskySession]:
    """Call the account's server, and return the answer and the session that was used.

    A session that is missing or has expired is opened, once. Then the commit is repeated too: an answer that the
    token has expired proves that nothing was taken. Raises as `open_session`, and `TryLater` or `OutcomeUnknown`
    if the call fails.
    """
    used_session = session or open_session(account, http=http, now=now)
    response = _call_once(used_session, method, name, http, options, is_commit=is_commit)
    if session is not None and error_of(response) in _TOKEN_ERRORS:
        used_session = open_session(account, http=http, now=now)
        response = _call_once(used_session, method, name, http, options, is_commit=is_commit)
    return response, used_session


def _call_once(
    session: BlueskySession, method: str, name: str, http: Client, options: Options, *, is_commit: bool
) -> Response:
    send = ask_once if is_commit else ask
    headers = {**(options.get("headers") or {}), "Authorization": f"Bearer {session.access}"}
    call_options: Options = {**options, "headers": headers}
    return send(http, method, f"{session.pds}/xrpc/{name}", service=SERVICE_NAME, **call_options)


def error_of(response: Response) -> str:
    """Return the error's name, or an empty string if the answer is no error of the protocol."""
    if response.status < 400:
        return ""
    name = (json_object(response.body) or {}).get("error")
    return name if isinstance(name, str) else ""


def raise_for_response(response: Response, *, now: datetime, is_commit: bool = False) -> NoReturn:
    """Raise the plug-in error for a failed response, by its error's name and then by its status.

    A 4xx without a name is a firewall's or proxy's, which is `TryLater`. `is_commit` makes a status that proves
    no refusal `OutcomeUnknown`.
    """
    status, name, platform_message = (
        response.status,
        error_of(response),
        platform_message_of(response, "message", "error"),
    )

    def account_error(message: str, *, code: str = "needs_reconnect", action: str = "") -> NeedsReconnect:
        return NeedsReconnect(
            message, code=code, action=action, platform_status=status, platform_message=platform_message
        )

    if name in _ACCOUNT_ERRORS:
        message = f"{SERVICE_NAME} has suspended or closed this account{with_colon(platform_message)}."
        action = "Sign in at Bluesky and settle it there, then check the outlet."
        raise account_error(message, code="account_suspended", action=action)
    if name in _TOKEN_ERRORS or status == 401:
        message = (
            f"{SERVICE_NAME} no longer accepts this account's credentials{with_colon(platform_message)}."
        )
        raise account_error(message)
    if name == "BlobNotFound" or (
        name == "InvalidRequest" and platform_message.startswith("Could not find blob")
    ):
        message = f"{SERVICE_NAME} no longer has a picture that was uploaded; it is uploaded again."
        raise TryLater(message, code="upload_gone", after=REUPLOAD_WAIT, platform_status=status)
    if name in _FILE_ERRORS or status == 413 or "blob too big" in platform_message:
        # An outdated server accepts less than the lexicon allows today.
        message = f"{SERVICE_NAME} doesn't take a picture{with_colon(platform_message)}."
        raise Refused(
            message,
            code="file_refused",
            field="assets",
            platform_status=status,
            platform_message=platform_message,
        )
    if name in {"InvalidSwap", "ConcurrentWrites"}:
        message = (
            f"Something else was written to this account at the same moment{with_colon(platform_message)}."
        )
        raise TryLater(message, code="busy", platform_status=status, platform_message=platform_message)
    if 400 <= status < 500 and status not in {408, 429} and not name:
        # A firewall or proxy in front of the server answered, which tells nothing about the post or the account.
        message = f"Something in front of {SERVICE_NAME} refused the call (status {status})."
        raise TryLater(message, code="blocked", platform_status=status)
    raise_by_status(
        response,
        service=SERVICE_NAME,
        platform_message=platform_message,
        now=now,
        is_commit=is_commit,
        after=wait_until_reset(response.headers, "RateLimit-Reset", now=now),
    )


def unreadable_answer(response: Response, *, is_commit: bool = False) -> PluginError:
    """Return the error for an answer that can't be read: `OutcomeUnknown` if `is_commit`, or else `TryLater`."""
    message = f"{SERVICE_NAME} answered {response.status} with something that can't be read."
    kind = OutcomeUnknown if is_commit else TryLater
    return kind(message, platform_status=response.status)


def text_field(answer: Mapping[str, Any] | None, name: str) -> str:
    """Return a field of the answer, or an empty string if it isn't a text."""
    value = (answer or {}).get(name)
    return value if isinstance(value, str) else ""
