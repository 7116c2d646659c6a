"""Calls one WordPress site's REST API, and maps its failures to plug-in errors.

The error codes are those of developer.wordpress.org/rest-api, and of `wp-includes/rest-api` of WordPress 6.1 (read
2026-11-20).
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypedDict
from urllib.parse import urlencode, urlsplit, urlunsplit

from pipeline.platforms import http_calls
from pipeline.platforms.http_calls import MAX_MESSAGE_CHARACTERS, ask, ask_once, raise_by_status, with_colon
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client, Response
    from pipeline.platforms.base import Account

SERVICE_NAME: Final = "The WordPress site"
API_VERSION: Final = "wp/v2"
FIREWALL_WAIT: Final = timedelta(minutes=15)
"""The wait after a firewall refused a call, whose answer names none."""
GONE_CODES: Final = frozenset({"rest_post_invalid_id", "rest_already_trashed"})

_HTML_TAG: Final = re.compile(r"<[^>]*>")
# The places in an answer at which JSON may begin after PHP's notices, such as before the brace of `<br />\n{`.
_NOTICES_END: Final = re.compile(r"(?:^|(?<=[\n>]))\s*(?=[{\[])")
_WRONG_PASSWORD_CODES: Final = frozenset(
    {"incorrect_password", "invalid_username", "invalid_email", "invalid_application_password"}
)
_PASSWORDS_OFF_CODES: Final = frozenset(
    {"application_passwords_disabled", "application_passwords_disabled_for_user"}
)
_NO_PERMISSION_CODES: Final = frozenset(
    {
        "rest_cannot_publish",
        "rest_cannot_create",
        "rest_cannot_edit",
        "rest_cannot_edit_others",
        "rest_cannot_delete",
        "rest_cannot_assign_term",
        "rest_cannot_assign_sticky",
        "rest_forbidden",
        "rest_forbidden_context",
        "rest_forbidden_status",
        "rest_user_cannot_delete_post",
    }
)
_FILE_CODES: Final = frozenset(
    {
        "rest_upload_unknown_error",
        "rest_upload_no_data",
        "rest_upload_file_too_big",
        "rest_upload_limited_space",
        "rest_upload_user_quota_exceeded",
        "rest_upload_sideload_error",
        "rest_invalid_image",
    }
)
_GIVE_ROLE: Final = "Give the user the role Author or Editor on the site, then reconnect the outlet."
_NEW_PASSWORD: Final = (
    "Reconnect the outlet with a new application password. If that doesn't help, the site's server drops "
    "the Authorization header: have it hand that on to PHP."
)
SWITCH_ON: Final = (
    "Switch application passwords on: the site needs https, and no security plugin may turn them off. "
    "Then reconnect the outlet."
)


def clean_address(text: str) -> str:
    """Return the site's address as it is stored, whichever page of the site was pasted."""
    text = text.strip()
    if text and "://" not in text:
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    path: str = re.split(
        r"/(?:wp-admin|wp-login\.php|wp-json|index\.php|xmlrpc\.php)(?:/|$)", parts.path, maxsplit=1
    )[0]
    return urlunsplit((parts.scheme, parts.netloc, path.rstrip("/"), "", ""))


def read_json(response: Response) -> Any:
    """Return the JSON of an answer, or `None` if it has none.

    A byte order mark, and notices that PHP prints before or after the JSON, are skipped.
    """
    text = response.body.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    starts = [0]
    if not text.startswith(("{", "[")):
        # The limits keep a long page from being parsed again and again.
        starts = [match.end() for match in _NOTICES_END.finditer(text[:100_000])][:20]
    for start in starts:
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        rest = text[end:].strip()
        # Notices may follow as well, but JSON in the middle of a page is no answer.
        if not rest or rest.startswith(("<br", "<!--")):
            return value
    return None


def read_object(response: Response) -> dict[str, Any]:
    """Return the JSON object of an answer, or an empty dict if it has none."""
    value = read_json(response)
    return value if isinstance(value, dict) else {}


class _ErrorDetails(TypedDict):
    """The platform's status and message, as every plug-in error takes them."""

    platform_status: int
    platform_message: str


@dataclass(frozen=True)
class WordPressSite:
    """A client for one site, called at the root of its REST API.

    The root is `https://…/wp-json/`, or `https://…/?rest_route=/` if the site has no pretty links.
    """

    root: str
    account: Account
    http: Client
    now: datetime

    def url(self, path: str, query: Mapping[str, str | int] | None = None) -> str:
        """Return the address of a path of the API."""
        address = f"{self.root}{API_VERSION}/{path}"
        if not query:
            return address
        return f"{address}{'&' if '?' in self.root else '?'}{urlencode(query)}"

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Response:
        """Read a path of the API."""
        return ask(self.http, "GET", self.url(path, query), service=SERVICE_NAME, headers=self._headers())

    def get_list(self, path: str, query: Mapping[str, str | int]) -> list[dict[str, Any]]:
        """Return the rows of a list. Raises as `raise_for_response` if the answer is none, as it proves nothing."""
        response = self.get(path, query)
        rows = read_json(response) if response.status == 200 else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self.raise_for_response(response)
        return rows

    def post(self, path: str, values: Mapping[str, Any]) -> Response:
        """Send values; the call may be repeated."""
        return ask(
            self.http,
            "POST",
            self.url(path),
            service=SERVICE_NAME,
            headers=self._headers(),
            json=dict(values),
        )

    def post_once(self, path: str, values: Mapping[str, Any]) -> Response:
        """Send the values that make an article public; the call is never repeated."""
        return ask_once(
            self.http,
            "POST",
            self.url(path),
            service=SERVICE_NAME,
            headers=self._headers(),
            json=dict(values),
        )

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

    def delete(self, path: str, query: Mapping[str, str | int] | None = None) -> Response:
        """Delete the resource at a path."""
        return ask(self.http, "DELETE", self.url(path, query), service=SERVICE_NAME, headers=self._headers())

    def raise_for_response(self, response: Response, *, is_commit: bool = False) -> NoReturn:
        """Raise the plug-in error for a failed response, as the module's function of this name."""
        raise_for_response(response, now=self.now, is_commit=is_commit)

    def _headers(self) -> dict[str, str]:
        """Return the headers with the application password."""
        password = str(self.account.credentials.get("application_password", ""))
        pair = f"{self.account.config.get('username', '')}:{password}".encode()
        return {"Authorization": f"Basic {b64encode(pair).decode('ascii')}", "Accept": "application/json"}


def find_root(account: Account, *, http: Client, now: datetime) -> tuple[str, dict[str, Any]]:
    """Return the root of the site's REST API and its index, asked without the password and following redirects.

    Raises `Refused` if there is no REST API or the site leads from https to http, `TryLater` if the site can't be
    reached, and as `raise_for_response` if the site refuses to answer.
    """
    site = account.base_url or str(account.config.get("site", ""))
    blocked: Response | None = None
    for address in (f"{site}/wp-json/", f"{site}/?rest_route=/"):
        response = ask(http, "GET", address, service=SERVICE_NAME, max_redirects=3)
        index = read_object(response)
        if response.status == 200 and API_VERSION in (index.get("namespaces") or ()):
            root = response.url if response.url.endswith("/") else f"{response.url}/"
            if urlsplit(site).scheme == "https" and urlsplit(root).scheme != "https":
                message = "The site leads from https to http, where the password would be sent in clear."
                raise Refused(
                    message, code="not_encrypted", action="Have the site answer over https, then connect it."
                )
            return root, index
        if response.status == 429 or response.status >= 500 or (response.status == 403 and not index):
            blocked = blocked or response
        elif str(index.get("code", "")) not in {"", "rest_no_route"}:
            raise_for_response(response, now=now)
    if blocked is not None:
        raise_for_response(blocked, now=now)
    message = "There is no WordPress REST API at this address."
    action = "Check the site's address, and that no plugin has switched the REST API off."
    raise Refused(message, code="no_rest_api", field="config.site", action=action)


def raise_for_response(response: Response, *, now: datetime, is_commit: bool = False) -> NoReturn:
    """Raise the plug-in error for a failed response, by its error's code and then by its status.

    With `is_commit`, a status that proves no refusal is `OutcomeUnknown`.
    """
    status, answer = response.status, read_object(response)
    code = str(answer.get("code") or "")
    platform_message = _plain_message(answer.get("message")).rstrip(".")
    details: _ErrorDetails = {"platform_status": status, "platform_message": platform_message}
    if code in _WRONG_PASSWORD_CODES:
        message = (
            f"The site doesn't take the user name and application password{with_colon(platform_message)}."
        )
        raise NeedsReconnect(message, **details)
    if code in _PASSWORDS_OFF_CODES:
        message = "The site has application passwords switched off."
        raise NeedsReconnect(message, code="application_passwords_off", action=SWITCH_ON, **details)
    if status == 401 and code.startswith("rest_"):
        # A known user gets a 403; a 401 is either a wrong password or a header that the server dropped.
        message = "The site treats the call as anonymous: the user name or the application password is wrong."
        raise NeedsReconnect(message, action=_NEW_PASSWORD, **details)
    if code in _NO_PERMISSION_CODES and status in {400, 403}:
        message = f"The user may not do this on the site{with_colon(platform_message)}."
        raise NeedsReconnect(message, code="missing_right", action=_GIVE_ROLE, **details)
    if status == 413 or code in _FILE_CODES:
        message = f"The site doesn't take a file{with_colon(platform_message)}."
        action = "Use a smaller file or another type, or raise the site's limit for uploads, then retry."
        raise Refused(message, code="file_not_taken", field="assets", action=action, **details)
    if code in GONE_CODES and status in {404, 410}:
        message = "The draft was deleted on the site. It is created again."
        raise TryLater(message, code="draft_gone", after=timedelta(0), **details)
    if status == 404 and code in {"", "rest_no_route"}:
        message = "The site's REST API is no longer at its address."
        action = "Check that no plugin has switched the REST API off, then reconnect the outlet."
        raise NeedsReconnect(message, code="no_rest_api", action=action, **details)
    if status == 403 and not answer:
        message = "A firewall in front of the site refused the call."
        action = "It is retried automatically. If it keeps failing, allow the service's calls to /wp-json/."
        raise TryLater(
            message, code="firewall", after=FIREWALL_WAIT, is_of_account=True, action=action, **details
        )
    if status in {301, 308} and not is_commit:
        host = urlsplit(response.headers.get("location", "")).hostname or "another address"
        message = f"The site has moved: it leads to {host}."
        raise NeedsReconnect(
            message, code="moved", action="Reconnect the outlet with the new address.", **details
        )
    raise_by_status(
        response, service=SERVICE_NAME, platform_message=platform_message, now=now, is_commit=is_commit
    )


def _plain_message(message: object) -> str:
    """Return a message without its HTML, cut, or an empty string if it is no text."""
    if not isinstance(message, str):
        return ""
    return " ".join(unescape(_HTML_TAG.sub(" ", message)).split())[:MAX_MESSAGE_CHARACTERS]
