"""Reads the owner of an account on a Mastodon server and the server's limits, and writes hints for the person."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pipeline.platforms.base import Account, AccountInfo
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.mastodon.calls import call, raise_for_response, read_object, server_of, text_of
from pipeline.platforms.mastodon.rules import limits_in
from pipeline.plugins import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client

_SOFTWARE_IN_VERSION: Final = re.compile(r"compatible; (?P<name>[\w.-]+) (?P<version>[^\s)]+)")
IDEMPOTENT_SOFTWARE: Final = frozenset({"mastodon", "pleroma", "akkoma"})
"""The software that answers a repeated `Idempotency-Key` with the first post."""
_SCOPE_PURPOSES: Final = (
    ("write:statuses", "post"),
    ("write:media", "upload pictures and videos"),
    ("read:statuses", "see whether a post arrived"),
    ("read:accounts", "tell whose account it is"),
)


def account_info(account: Account, *, http: Client, now: datetime) -> AccountInfo:
    """Read and return the account's data, with the server's limits and software, and notes on what is missing.

    Raises `Refused` if the address has no Mastodon server, and as `raise_for_response` for other failures.
    """
    person = _read_person(account, http=http, now=now)
    instance = _read_instance(account, http=http, now=now)
    software, version = _software_of(instance)
    limits = {**limits_in(instance), "software": software, "version": version}
    scopes = _read_scopes(account, http=http)
    host = text_of(instance, "domain") or urlsplit(text_of(person, "url")).hostname or ""
    notes = [
        f"The access token lacks the right {scope}, which is needed to {purpose}."
        for scope, purpose in _SCOPE_PURPOSES
        if scopes and not _has_scope(scopes, scope)
    ]
    if person.get("bot") is not True:
        notes.append(
            "The profile isn't marked as automated (Preferences, Profile); many servers ask that of accounts like this."
        )
    if software not in IDEMPOTENT_SOFTWARE:
        notes.append(
            f"{software.capitalize()} isn't known to recognize repeated posts; after a lost answer the account's "
            "posts are looked through."
        )
    return AccountInfo(
        external_id=text_of(person, "id"),
        handle=f"@{text_of(person, 'username')}@{host}",
        name=text_of(person, "display_name"),
        url=text_of(person, "url"),
        scopes=scopes,
        limits=limits,
        notes=tuple(notes),
    )


def _read_person(account: Account, *, http: Client, now: datetime) -> dict[str, Any]:
    """Return the account's own data. Raises `Refused` if the address has no Mastodon server."""
    response = call(account, "GET", "/api/v1/accounts/verify_credentials", http=http)
    if response.status == 404 and json_object(response.body) is None:
        message = f"There is no Mastodon server at {urlsplit(server_of(account)).hostname}."
        action = "Correct the server's address."
        raise Refused(
            message, code="no_such_server", field="config.server", action=action, platform_status=404
        )
    person = read_object(response, now=now)
    if not text_of(person, "id"):
        raise_for_response(response, now=now)
    return person


def _read_instance(account: Account, *, http: Client, now: datetime) -> dict[str, Any]:
    """Return the server's description of itself."""
    response = call(account, "GET", "/api/v2/instance", http=http)
    if 400 <= response.status < 500 and response.status != 429:
        # Older servers and some other software have only version 1 of the API.
        response = call(account, "GET", "/api/v1/instance", http=http)
    return read_object(response, now=now)


def _software_of(instance: Mapping[str, Any]) -> tuple[str, str]:
    """Return the server's software, which is `mastodon` if nothing says otherwise, and its version.

    Other software often has a version such as `2.7.2 (compatible; Pleroma 2.5.1)`.
    """
    version = text_of(instance, "version")
    match = _SOFTWARE_IN_VERSION.search(version)
    if match:
        return match["name"].lower(), match["version"]
    source = text_of(instance, "source_url").lower()
    for name in ("gotosocial", "takahe", "pixelfed", "friendica", "sharkey", "iceshrimp"):
        if name in source or name in version.lower():
            return name, version
    return "mastodon", version


def _read_scopes(account: Account, *, http: Client) -> tuple[str, ...]:
    """Return the scopes of the token's application, or none if the server, before 4.3, doesn't name them."""
    response = call(account, "GET", "/api/v1/apps/verify_credentials", http=http)
    answer = json_object(response.body) if response.status == 200 else None
    scopes = (answer or {}).get("scopes")
    return tuple(scope for scope in scopes if isinstance(scope, str)) if isinstance(scopes, list) else ()


def _has_scope(scopes: tuple[str, ...], scope: str) -> bool:
    """Return whether the scopes include this one, or a wider one that includes it."""
    return (
        scope in scopes
        or scope.split(":", maxsplit=1)[0] in scopes
        or (scope == "read:accounts" and "profile" in scopes)
    )
