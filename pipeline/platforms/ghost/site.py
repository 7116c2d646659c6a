"""Calls one Ghost site's Admin API, and maps its failures to plug-in errors.

Errors are those of docs.ghost.org/admin-api and docs.ghost.org/content-api/errors, read 2026-11-20.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypedDict
from urllib.parse import urlencode, urlsplit, urlunsplit

from pipeline.platforms import http_calls
from pipeline.platforms.http_calls import (
    MAX_MESSAGE_CHARACTERS,
    ask,
    ask_once,
    json_object,
    raise_by_status,
    with_colon,
)
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client, Response
    from pipeline.platforms.base import Account

SERVICE_NAME: Final = "The Ghost site"
API_PATH: Final = "/ghost/api/admin/"
TOKEN_LIFETIME: Final = timedelta(minutes=5)
FIREWALL_WAIT: Final = timedelta(minutes=15)
"""The wait after a firewall refused a call, whose answer names none."""
ADMIN_KEY: Final = re.compile(r"[0-9a-fA-F]{8,64}:(?:[0-9a-fA-F]{2}){16,64}")
_POST_QUERY: Final = {"include": "email,newsletter,count.clicks", "formats": "plaintext"}


def clean_address(text: str) -> str:
    """Return the site's address as it is stored, whichever page of the site was pasted."""
    text = text.strip()
    if text and "://" not in text:
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    path: str = re.split(r"/ghost(?:/|$)", parts.path, maxsplit=1)[0].rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


@dataclass(frozen=True)
class GhostSite:
    """A client for one site, called at the root of its Admin API."""

    root: str
    account: Account
    http: Client
    now: datetime

    def url(self, path: str, query: Mapping[str, str] | None = None) -> str:
        """Return the address of a path of the API."""
        return f"{self.root}{path}{'?' + urlencode(query) if query else ''}"

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Response:
        """Read a path of the API."""
        return ask(self.http, "GET", self.url(path, query), service=SERVICE_NAME, headers=self._headers())

    def send(self, method: str, path: str, post: Mapping[str, Any], query: Mapping[str, str]) -> Response:
        """Send a post's fields; the call may be repeated."""
        url, values = self.url(path, query), {"posts": [dict(post)]}
        return ask(self.http, method, url, service=SERVICE_NAME, headers=self._headers(), json=values)

    def send_once(self, path: str, post: Mapping[str, Any], query: Mapping[str, str]) -> Response:
        """Send the fields that make a post public; the call is never repeated."""
        url, values = self.url(path, query), {"posts": [dict(post)]}
        return ask_once(self.http, "PUT", url, service=SERVICE_NAME, headers=self._headers(), json=values)

    def upload(self, path: str, body: bytes, content_type: str) -> Response:
        """Upload a file in a form."""
        headers = {**self._headers(), "Content-Type": content_type}
        return ask(
            self.http,
            "POST",
            self.url(path),
            service=SERVICE_NAME,
            headers=headers,
            body=body,
            timeout=http_calls.UPLOAD_SECONDS,
        )

    def read_post(self, post_id: str) -> dict[str, Any] | None:
        """Return the post with its email, or `None` if the site says that no post has this id.

        Raises the plug-in error of `raise_for_response` for any other answer.
        """
        response = self.get(f"posts/{post_id}/", _POST_QUERY)
        if response.status == 404 and first_error(response).get("type") == "NotFoundError":
            return None
        post = post_of(response) if response.status == 200 else None
        if post is None:
            self.raise_for_response(response)
        return post

    def find(self, filter_: str) -> list[dict[str, Any]]:
        """Return up to 50 posts that match the filter, of any status.

        Raises the plug-in error of `raise_for_response` if the answer is no list of posts.
        """
        response = self.get("posts/", {**_POST_QUERY, "filter": filter_, "limit": "50"})
        rows = (json_object(response.body) or {}).get("posts") if response.status == 200 else None
        if not isinstance(rows, list) or not all(is_post(row) for row in rows):
            self.raise_for_response(response)
        return rows

    def newsletters(self) -> set[str]:
        """Return the slugs of the site's active newsletters, among its first 50.

        The call needs the key, so that it raises `NeedsReconnect` if the key doesn't work.
        """
        response = self.get("newsletters/", {"limit": "50"})
        rows = (json_object(response.body) or {}).get("newsletters") if response.status == 200 else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self.raise_for_response(response)
        return {str(row.get("slug", "")) for row in rows if row.get("status", "active") == "active"}

    def raise_for_response(self, response: Response, *, is_commit: bool = False) -> NoReturn:
        """Raise the plug-in error for a failed response, as the module's function of this name."""
        raise_for_response(response, now=self.now, is_commit=is_commit)

    def _headers(self) -> dict[str, str]:
        """Return the headers with a token signed by the Admin API key.

        Raises `NeedsReconnect` if the key can't be read.
        """
        import jwt  # noqa: PLC0415  it brings half of cryptography, which few processes need

        key_id, _, secret = str(self.account.credentials.get("admin_key", "")).partition(":")
        claims = {"iat": self.now, "exp": self.now + TOKEN_LIFETIME, "aud": "/admin/"}
        try:
            token = jwt.encode(claims, bytes.fromhex(secret), algorithm="HS256", headers={"kid": key_id})
        except ValueError as error:
            message = "The Admin API key can't be read."
            raise NeedsReconnect(message) from error
        version = str(self.account.config.get("accept_version") or self.account.api_version)
        return {"Authorization": f"Ghost {token}", "Accept-Version": version, "Accept": "application/json"}


def find_site(account: Account, *, http: Client, now: datetime) -> tuple[str, dict[str, Any]]:
    """Return the root of the Admin API and the site's data, asked without the key and following redirects.

    Raises `Refused` if there is no Admin API or the site leads from https to http, and as `raise_for_response`
    for 403, 429 and 5xx.
    """
    address = account.base_url or str(account.config.get("site", ""))
    response = ask(http, "GET", f"{address}{API_PATH}site/", service=SERVICE_NAME, max_redirects=3)
    site = (json_object(response.body) or {}).get("site")
    if response.status == 200 and isinstance(site, dict) and response.url.endswith(f"{API_PATH}site/"):
        root = response.url.removesuffix("site/")
        if urlsplit(address).scheme == "https" and urlsplit(root).scheme != "https":
            message = "The site leads from https to http, where the key would be sent in clear."
            action = "Have the site answer over https, then connect it."
            raise Refused(message, code="not_encrypted", field="config.site", action=action)
        return root, site
    if response.status == 429 or response.status >= 500 or response.status == 403:
        raise_for_response(response, now=now)
    message = "There is no Ghost Admin API at this address."
    action = "Give the API URL that the custom integration shows in Ghost."
    raise Refused(message, code="no_admin_api", field="config.site", action=action)


def is_post(value: object) -> bool:
    """Return whether a value is a post with an id, a status and the moment of its last change."""
    return isinstance(value, dict) and all(
        isinstance(value.get(name), str) and value[name] for name in ("id", "status", "updated_at")
    )


def post_of(response: Response) -> dict[str, Any] | None:
    """Return the post in the response, or `None` if it has none."""
    posts = (json_object(response.body) or {}).get("posts")
    if not isinstance(posts, list) or not posts or not is_post(posts[0]):
        return None
    post: dict[str, Any] = posts[0]
    return post


def first_error(response: Response) -> dict[str, Any]:
    """Return the first error of the response, or an empty dict if it has none."""
    errors = (json_object(response.body) or {}).get("errors")
    error = errors[0] if isinstance(errors, list) and errors else None
    return error if isinstance(error, dict) else {}


def is_collision(response: Response) -> bool:
    """Return whether the call changed nothing, because the post has changed since the `updated_at` in the call."""
    return response.status == 409 and first_error(response).get("type") == "UpdateCollisionError"


class _ErrorDetails(TypedDict):
    """The platform's status and message, as every plug-in error takes them."""

    platform_status: int
    platform_message: str


def raise_for_response(response: Response, *, now: datetime, is_commit: bool = False) -> NoReturn:
    """Raise the plug-in error for a failed response, by its error's type and then by its status.

    With `is_commit`, a status that proves no refusal is `OutcomeUnknown`.
    """
    status, error = response.status, first_error(response)
    error_type, code = str(error.get("type") or error.get("errorType") or ""), str(error.get("code") or "")
    platform_message = ": ".join(
        str(error[name]).rstrip(".") for name in ("message", "context") if error.get(name)
    )[:MAX_MESSAGE_CHARACTERS]
    details: _ErrorDetails = {"platform_status": status, "platform_message": platform_message}
    if status == 401 and code == "INVALID_JWT":
        message = f"The site doesn't take the token{with_colon(platform_message)}."
        action = (
            "Check that the key belongs to this site and that both servers' clocks are right, then reconnect."
        )
        raise NeedsReconnect(message, action=action, **details)
    if status in {406, 426}:
        message = (
            "The site's version of Ghost doesn't support this version of the "
            f"API{with_colon(platform_message)}."
        )
        action = "Update Ghost, or reconnect the outlet so that its version is asked."
        raise NeedsReconnect(message, code="version_not_spoken", action=action, **details)
    if status == 403 and not error:
        message = "A firewall in front of the site refused the call."
        action = "It is retried automatically. If it keeps failing, allow the service's calls to /ghost/api/."
        raise TryLater(
            message,
            code="firewall",
            after=FIREWALL_WAIT,
            is_of_account=True,
            action=action,
            platform_status=status,
        )
    if status == 403 and error_type == "HostLimitError":
        message = f"The site's plan doesn't allow it{with_colon(platform_message)}."
        action = "Change the plan at the host of the site, then retry."
        raise Refused(message, code="plan_limit", action=action, **details)
    if status == 403 and error_type == "NoPermissionError":
        message = f"The key may not do this{with_colon(platform_message)}."
        action = "Use the Admin API key of a custom integration, or of a user who may publish."
        raise NeedsReconnect(message, code="missing_right", action=action, **details)
    if status in {413, 415}:
        message = f"The site doesn't take a file{with_colon(platform_message)}."
        action = "Use a smaller file or another type, then retry."
        raise Refused(message, code="file_not_taken", field="assets", action=action, **details)
    if status == 404 and error_type == "NotFoundError":
        message = "The draft was deleted on the site. It is created again."
        raise TryLater(message, code="draft_gone", after=timedelta(0), platform_status=status)
    if is_collision(response):
        message = "The draft was changed on the site. It is read again."
        raise TryLater(message, code="draft_changed", platform_status=status)
    if status in {301, 308} and not is_commit:
        message = "The site has moved to another address."
        action = "Reconnect the outlet with the API URL that Ghost shows now."
        raise NeedsReconnect(message, code="moved", action=action, platform_status=status)
    raise_by_status(
        response, service=SERVICE_NAME, platform_message=platform_message, now=now, is_commit=is_commit
    )
