"""Speaks with one WordPress site over its REST API, and says of each failure what may be done about it.

Error codes are WordPress's own (developer.wordpress.org/rest-api, and `wp-includes/rest-api` of 6.1; read 2026-11-20).
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
from pipeline.platforms.http_calls import WORDS, ask, ask_once, fail_plainly, with_colon
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client, Response
    from pipeline.platforms.base import Account

WHAT: Final = "The WordPress site"
VERSION: Final = "wp/v2"
FIREWALL_WAIT: Final = timedelta(minutes=15)
GONE: Final = frozenset({"rest_post_invalid_id", "rest_already_trashed"})

_TAG: Final = re.compile(r"<[^>]*>")
_NOTICE_END: Final = re.compile(r"(?:^|(?<=[\n>]))\s*(?=[{\[])")
_WRONG_PASSWORD: Final = frozenset(
    {"incorrect_password", "invalid_username", "invalid_email", "invalid_application_password"}
)
_PASSWORDS_OFF: Final = frozenset(
    {"application_passwords_disabled", "application_passwords_disabled_for_user"}
)
_NO_RIGHT: Final = frozenset(
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
_FILE: Final = frozenset(
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
_ROLE: Final = "Give the user the role Author or Editor on the site, then connect the outlet again."
_NEW_PASSWORD: Final = (
    "Connect the outlet again with a new application password. If that doesn't help, the site's server drops the "
    "Authorization header: have it hand that on to PHP."
)
SWITCH_ON: Final = (
    "Switch application passwords on: the site needs https, and no security plugin may turn them off. "
    "Then connect the outlet again."
)


def clean_address(text: str) -> str:
    """The site's address as it is kept, whatever page of it was pasted."""
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
    """The JSON of an answer, also behind a byte order mark or the notices that PHP prints before it; None without any."""
    text = response.body.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    starts = [0]
    if not text.startswith(("{", "[")):
        starts = [match.end() for match in _NOTICE_END.finditer(text[:100_000])][:20]
    for start in starts:
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        rest = text[end:].strip()
        # Notices may follow too; JSON in the middle of a page is no answer.
        if not rest or rest.startswith(("<br", "<!--")):
            return value
    return None


def read_object(response: Response) -> dict[str, Any]:
    value = read_json(response)
    return value if isinstance(value, dict) else {}


class _Told(TypedDict):
    platform_status: int
    platform_message: str


@dataclass(frozen=True)
class WordPressSite:
    """A site at the root of its REST API: `https://…/wp-json/`, or `https://…/?rest_route=/` without pretty links."""

    root: str
    account: Account
    http: Client
    now: datetime

    def url(self, path: str, query: Mapping[str, str | int] | None = None) -> str:
        address = f"{self.root}{VERSION}/{path}"
        if not query:
            return address
        return f"{address}{'&' if '?' in self.root else '?'}{urlencode(query)}"

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Response:
        return ask(self.http, "GET", self.url(path, query), what=WHAT, headers=self._headers())

    def get_list(self, path: str, query: Mapping[str, str | int]) -> list[dict[str, Any]]:
        """Raises where the answer is no list: an answer that can't be read proves nothing."""
        response = self.get(path, query)
        rows = read_json(response) if response.status == 200 else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self.fail(response)
        return rows

    def post(self, path: str, values: Mapping[str, Any]) -> Response:
        return ask(self.http, "POST", self.url(path), what=WHAT, headers=self._headers(), json=dict(values))

    def post_once(self, path: str, values: Mapping[str, Any]) -> Response:
        return ask_once(
            self.http, "POST", self.url(path), what=WHAT, headers=self._headers(), json=dict(values)
        )

    def upload(self, path: str, body: bytes, content_type: str) -> Response:
        headers = {**self._headers(), "Content-Type": content_type}
        seconds = http_calls.UPLOAD_SECONDS
        return ask(self.http, "POST", self.url(path), what=WHAT, headers=headers, body=body, timeout=seconds)

    def delete(self, path: str, query: Mapping[str, str | int] | None = None) -> Response:
        return ask(self.http, "DELETE", self.url(path, query), what=WHAT, headers=self._headers())

    def fail(self, response: Response, *, is_commit: bool = False) -> NoReturn:
        fail(response, now=self.now, is_commit=is_commit)

    def _headers(self) -> dict[str, str]:
        password = str(self.account.credentials.get("application_password", ""))
        pair = f"{self.account.config.get('username', '')}:{password}".encode()
        return {"Authorization": f"Basic {b64encode(pair).decode('ascii')}", "Accept": "application/json"}


def find_root(account: Account, *, http: Client, now: datetime) -> tuple[str, dict[str, Any]]:
    """The root of the site's REST API and what stands there. Asked without the password, redirects followed.

    Raises `Refused` where there is no WordPress, `TryLater` where the site can't be asked.
    """
    site = account.base_url or str(account.config.get("site", ""))
    blocked: Response | None = None
    for address in (f"{site}/wp-json/", f"{site}/?rest_route=/"):
        response = ask(http, "GET", address, what=WHAT, max_redirects=3)
        index = read_object(response)
        if response.status == 200 and VERSION in (index.get("namespaces") or ()):
            root = response.url if response.url.endswith("/") else f"{response.url}/"
            if urlsplit(site).scheme == "https" and urlsplit(root).scheme != "https":
                message = "The site leads from https to http, where the password would travel readable."
                raise Refused(
                    message, code="not_encrypted", action="Have the site answer over https, then connect it."
                )
            return root, index
        if response.status == 429 or response.status >= 500 or (response.status == 403 and not index):
            blocked = blocked or response
        elif str(index.get("code", "")) not in {"", "rest_no_route"}:
            fail(response, now=now)
    if blocked is not None:
        fail(blocked, now=now)
    message = "There is no WordPress REST API at this address."
    action = "Check the site's address, and that no plugin has switched the REST API off."
    raise Refused(message, code="no_rest_api", field="config.site", action=action)


def fail(response: Response, *, now: datetime, is_commit: bool = False) -> NoReturn:
    """What an answer other than the one that was hoped for means."""
    status, answer = response.status, read_object(response)
    code = str(answer.get("code") or "")
    words = _plain(answer.get("message")).rstrip(".")
    told: _Told = {"platform_status": status, "platform_message": words}
    if code in _WRONG_PASSWORD:
        message = f"The site doesn't take the user name and application password{with_colon(words)}."
        raise NeedsReconnect(message, **told)
    if code in _PASSWORDS_OFF:
        message = "The site has application passwords switched off."
        raise NeedsReconnect(message, code="application_passwords_off", action=SWITCH_ON, **told)
    if status == 401 and code.startswith("rest_"):
        # To those whom it knows WordPress answers 403; a wrong password and one that never came look the same.
        message = "The site answers as to a stranger: the user name or the application password is wrong."
        raise NeedsReconnect(message, action=_NEW_PASSWORD, **told)
    if code in _NO_RIGHT and status in {400, 403}:
        message = f"The user may not do this on the site{with_colon(words)}."
        raise NeedsReconnect(message, code="missing_right", action=_ROLE, **told)
    if status == 413 or code in _FILE:
        message = f"The site doesn't take a file{with_colon(words)}."
        action = "Use a smaller file or another type, or raise the site's limit for uploads, then retry."
        raise Refused(message, code="file_not_taken", field="assets", action=action, **told)
    if code in GONE and status in {404, 410}:
        message = "The draft was deleted on the site; it is made again."
        raise TryLater(message, code="draft_gone", after=timedelta(0), **told)
    if status == 404 and code in {"", "rest_no_route"}:
        message = "The site's REST API isn't at its address any more."
        action = "See that no plugin has switched the REST API off, then connect the outlet again."
        raise NeedsReconnect(message, code="no_rest_api", action=action, **told)
    if status == 403 and not answer:
        message = "A firewall before the site turned the call away."
        action = "It is tried again by itself; if it stays so, let the service's calls to /wp-json/ through."
        raise TryLater(
            message, code="firewall", after=FIREWALL_WAIT, is_of_account=True, action=action, **told
        )
    if status in {301, 308} and not is_commit:
        host = urlsplit(response.headers.get("location", "")).hostname or "another address"
        message = f"The site has moved: it leads to {host}."
        raise NeedsReconnect(
            message, code="moved", action="Connect the outlet again with the new address.", **told
        )
    fail_plainly(response, what=WHAT, words=words, now=now, is_commit=is_commit)


def _plain(words: object) -> str:
    if not isinstance(words, str):
        return ""
    return " ".join(unescape(_TAG.sub(" ", words)).split())[:WORDS]
