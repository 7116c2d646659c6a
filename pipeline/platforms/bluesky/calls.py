"""Calls to an account's own server on Bluesky: the session that they need, and what their failures mean.

Names of errors: lexicons/com/atproto and packages/pds/src/auth-verifier.ts of bluesky-social/atproto (read 2026-11-20).
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
    fail_plainly,
    json_object,
    wait_until_reset,
    with_colon,
    words_of,
)
from pipeline.platforms.settings import is_web_address
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from config.core.http_client.messages import Options
    from pipeline.platforms.base import Account

WHAT: Final = "Bluesky"
SPARE: Final = timedelta(minutes=1)
"""A token that ends sooner isn't begun with: the call has to arrive, too."""
WITHOUT_BLOB: Final = timedelta(hours=1)
_ENDED: Final = frozenset({"ExpiredToken", "InvalidToken"})
_SUSPENDED: Final = frozenset(
    {"AccountTakedown", "AccountSuspended", "AccountDeactivated", "RepoTakendown", "RepoDeactivated"}
)
_FILE: Final = frozenset({"BlobTooLarge", "InvalidMimeType", "PayloadTooLarge"})


# Not shown: its tokens would stand in tracebacks.
@dataclass(frozen=True, repr=False)
class BlueskySession:
    """Whose it is, where the account's records are kept, and the tokens; the second only where it was just opened."""

    did: str
    pds: str
    access: str
    refresh: str = ""

    @property
    def is_new(self) -> bool:
        return bool(self.refresh)

    @property
    def tokens(self) -> dict[str, str]:
        """As they are kept beside the app password."""
        return {"access_token": self.access, "refresh_token": self.refresh}


def server_of(account: Account) -> str:
    """Where the account signs in."""
    return str(account.config.get("server") or account.base_url).rstrip("/")


def stored_session(account: Account, *, now: datetime) -> BlueskySession | None:
    """The session that was kept with the credentials, while it lasts."""
    access = str(account.credentials.get("access_token", ""))
    claims = claims_of(access)
    did, ends = claims.get("sub"), ends_at(access)
    if not isinstance(did, str) or ends is None or ends - SPARE <= now:
        return None
    return BlueskySession(did, str(account.config.get("pds") or server_of(account)), access)


def open_session(account: Account, *, http: Client, now: datetime) -> BlueskySession:
    """A new session by the app password. The platform allows 30 in 5 minutes and 300 a day."""
    response = ask(
        http,
        "POST",
        f"{server_of(account)}/xrpc/com.atproto.server.createSession",
        what=WHAT,
        json={
            "identifier": str(account.config["handle"]).strip().removeprefix("@"),
            "password": account.credentials["app_password"],
        },
    )
    return _read_session(account, response, now)


def refresh_session(account: Account, refresh: str, *, http: Client, now: datetime) -> BlueskySession | None:
    """The session that follows; None where the token has ended and the app password is needed."""
    response = ask(
        http,
        "POST",
        f"{server_of(account)}/xrpc/com.atproto.server.refreshSession",
        what=WHAT,
        headers={"Authorization": f"Bearer {refresh}"},
    )
    if error_of(response) in _ENDED or (response.status == 401 and error_of(response) not in _SUSPENDED):
        return None
    return _read_session(account, response, now)


def _read_session(account: Account, response: Response, now: datetime) -> BlueskySession:
    answer = json_object(response.body) or {}
    did, access, refresh = (answer.get(name) for name in ("did", "accessJwt", "refreshJwt"))
    if not (
        response.status == 200
        and isinstance(did, str)
        and isinstance(access, str)
        and isinstance(refresh, str)
    ):
        _fail_to_open(response, now)
    pds = _pds_of(answer.get("didDoc"), server_of(account))
    return BlueskySession(did, pds, access, refresh)


def _fail_to_open(response: Response, now: datetime) -> NoReturn:
    words = words_of(response, "message")
    if error_of(response) == "AuthFactorTokenRequired":
        message = f"{WHAT} wants a code by email, which it doesn't for app passwords."
        action = "Make an app password in Bluesky (Settings, Privacy and security, App passwords) and connect with it."
        raise NeedsReconnect(
            message, code="app_password_needed", action=action, platform_status=response.status
        )
    if response.status in {400, 401} and error_of(response) in {"AuthenticationRequired", "InvalidRequest"}:
        message = f"{WHAT} doesn't take this handle with this app password{with_colon(words)}."
        action = "Make a new app password in Bluesky and connect the outlet again with it."
        raise NeedsReconnect(message, action=action, platform_status=response.status, platform_message=words)
    if response.status == 404 and not error_of(response):
        message = f"There is no server of {WHAT} at this address."
        action = "Correct the server's address, or leave it empty for bsky.social."
        raise Refused(
            message, code="no_such_server", field="config.server", action=action, platform_status=404
        )
    fail(response, now=now)


def _pds_of(document: object, server: str) -> str:
    """Where the account's records are kept, as its DID document says; the server itself where it names none."""
    services = document.get("service") if isinstance(document, dict) else None
    for service in services if isinstance(services, list) else []:
        if not isinstance(service, dict) or not str(service.get("id", "")).endswith("#atproto_pds"):
            continue
        address = service.get("serviceEndpoint")
        if isinstance(address, str) and is_web_address(address):
            # A token never leaves over a line that is worse than the one on which it came.
            is_safe = urlsplit(address).scheme == "https" or urlsplit(server).scheme == "http"
            return address.rstrip("/") if is_safe else server
    return server


def claims_of(token: str) -> dict[str, Any]:
    """What a token says of itself, unproven; empty where it is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return json_object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))) or {}
    except ValueError:
        return {}


def ends_at(token: str) -> datetime | None:
    ends = claims_of(token).get("exp")
    if not isinstance(ends, int) or not 0 < ends < 2**40:
        return None
    return datetime.fromtimestamp(min(ends, 2**37), UTC)


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
    """Call the account's server with its session; one that has ended is opened anew, once.

    Also for the commit: an answer that the token has ended proves that nothing was taken.
    """
    held = session or open_session(account, http=http, now=now)
    response = _call(held, method, name, http, options, is_commit=is_commit)
    if session is not None and error_of(response) in _ENDED:
        held = open_session(account, http=http, now=now)
        response = _call(held, method, name, http, options, is_commit=is_commit)
    return response, held


def _call(
    session: BlueskySession, method: str, name: str, http: Client, options: Options, *, is_commit: bool
) -> Response:
    send = ask_once if is_commit else ask
    headers = {**(options.get("headers") or {}), "Authorization": f"Bearer {session.access}"}
    sent: Options = {**options, "headers": headers}
    return send(http, method, f"{session.pds}/xrpc/{name}", what=WHAT, **sent)


def error_of(response: Response) -> str:
    """The name of the error; empty where the answer isn't the protocol's own."""
    if response.status < 400:
        return ""
    name = (json_object(response.body) or {}).get("error")
    return name if isinstance(name, str) else ""


def fail(response: Response, *, now: datetime, is_commit: bool = False) -> NoReturn:
    status, name, words = response.status, error_of(response), words_of(response, "message", "error")

    def of_account(message: str, *, code: str = "needs_reconnect", action: str = "") -> NeedsReconnect:
        return NeedsReconnect(
            message, code=code, action=action, platform_status=status, platform_message=words
        )

    if name in _SUSPENDED:
        message = f"{WHAT} has suspended or closed this account{with_colon(words)}."
        action = "Sign in at Bluesky and settle it there, then check the outlet."
        raise of_account(message, code="account_suspended", action=action)
    if name in _ENDED or status == 401:
        message = f"{WHAT} no longer accepts this account's credentials{with_colon(words)}."
        raise of_account(message)
    if name == "BlobNotFound" or (name == "InvalidRequest" and words.startswith("Could not find blob")):
        message = f"{WHAT} no longer has a picture that was uploaded; it is uploaded again."
        raise TryLater(message, code="upload_gone", after=WITHOUT_BLOB, platform_status=status)
    if name in _FILE or status == 413 or "blob too big" in words:
        # A server that wasn't updated takes less than the lexicon allows today.
        message = f"{WHAT} doesn't take a picture{with_colon(words)}."
        raise Refused(
            message, code="file_refused", field="assets", platform_status=status, platform_message=words
        )
    if name in {"InvalidSwap", "ConcurrentWrites"}:
        message = f"Something else was written to this account at the same moment{with_colon(words)}."
        raise TryLater(message, code="busy", platform_status=status, platform_message=words)
    if 400 <= status < 500 and status not in {408, 429} and not name:
        # A firewall or a proxy in front of the server: it says nothing of the post or the account.
        message = f"Something in front of {WHAT} turned the call away (status {status})."
        raise TryLater(message, code="blocked", platform_status=status)
    fail_plainly(
        response,
        what=WHAT,
        words=words,
        now=now,
        is_commit=is_commit,
        after=wait_until_reset(response.headers, "RateLimit-Reset", now=now),
    )


def unreadable_answer(response: Response) -> OutcomeUnknown:
    message = f"{WHAT} answered {response.status} with something that can't be read."
    return OutcomeUnknown(message, platform_status=response.status)


def no_answer(response: Response) -> TryLater:
    message = f"{WHAT} answered {response.status} with something that can't be read."
    return TryLater(message, platform_status=response.status)


def text_field(answer: Mapping[str, Any] | None, name: str) -> str:
    value = (answer or {}).get(name)
    return value if isinstance(value, str) else ""
