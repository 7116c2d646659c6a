"""Reads the HTTP answer that brings a feed: validators, waits, redirects, hubs, failures."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import urljoin

from config.core.http_client import (
    AddressRefused,
    NameNotFound,
    OutboundError,
    ResponseTooLarge,
    read_retry_after,
)
from pipeline.limits import FEED_BYTES
from pipeline.plugins import PluginError, Refused, TryLater
from pipeline.sources.base import Hub

if TYPE_CHECKING:
    from config.core.http_client import Response

MAX_WAIT: Final = timedelta(hours=24)
FORBIDDEN_WAIT: Final = timedelta(hours=1)
"""Asking sooner would only confirm to the server that we are the robot that it takes us for."""
MAX_VALIDATOR_CHARACTERS: Final = 1024
"""Validators go back in a request header, and servers cut off longer headers."""
MAX_HUBS: Final = 3
PERMANENT_REDIRECTS: Final = frozenset({HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.PERMANENT_REDIRECT})


def validators_of(response: Response) -> tuple[str, str]:
    """Return ETag and Last-Modified, each empty if it is missing or unusable in a request header."""
    etag = response.headers.get("ETag", "").strip()
    last_modified = response.headers.get("Last-Modified", "").strip()
    usable = [value if _is_sendable(value) else "" for value in (etag, last_modified)]
    return usable[0], usable[1]


def _is_sendable(value: str) -> bool:
    """Return whether a validator can be sent back in a request header."""
    return (
        len(value) <= MAX_VALIDATOR_CHARACTERS and re.fullmatch(r"[\x20-\x7e\x80-\xff]*", value) is not None
    )


def wait_of(response: Response, document_seconds: int, *, now: datetime) -> timedelta | None:
    """Return the longer wait of those that document and answer ask for, or `None` if neither asks for one.

    It is at most a day. `Expires` counts only if there is no `max-age` (RFC 9111, 5.3), from the server's
    `Date`, else from `now`.
    """
    control = response.headers.get("Cache-Control", "").lower()
    max_age = re.search(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,9})", control)
    if max_age:
        header_seconds = int(max_age[1])
    else:
        expires = _parse_http_date(response.headers.get("Expires", ""))
        sent = _parse_http_date(response.headers.get("Date", "")) or now
        header_seconds = int((expires - sent).total_seconds()) if expires else 0
    seconds = max(document_seconds, header_seconds)
    return min(timedelta(seconds=seconds), MAX_WAIT) if seconds > 0 else None


def _parse_http_date(value: str) -> datetime | None:
    """Return an HTTP date in UTC, or `None` if it can't be read."""
    try:
        moment = parsedate_to_datetime(value.strip())
        # Python returns a naive datetime for a date whose zone is written "-0000".
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def permanent_address(response: Response, requested: str) -> str:
    """Return the address that permanent redirects led to.

    It is empty if there were no redirects, one of them was temporary or left https, or they led back.
    """
    addresses = [requested, *(url for _, url in response.redirects)]
    if not all(status in PERMANENT_REDIRECTS for status, _ in response.redirects):
        return ""
    is_downgrade = any(
        before.lower().startswith("https:") and not after.lower().startswith("https:")
        for before, after in pairwise(addresses)
    )
    return "" if is_downgrade or response.url == requested or not response.redirects else response.url


_HEADER_LINK: Final = re.compile(r"<([^<>]{1,2048})>([^<>]{0,500})")
_RELATION: Final = re.compile(r"""\brel\s*=\s*(?:"([^"]*)"|([^\s";,]+))""", re.IGNORECASE)


def links_in_headers(response: Response) -> list[tuple[str, str, str]]:
    """Return address, relations and parameters of each link in `Link` headers (RFC 8288)."""
    links = []
    for link in _HEADER_LINK.finditer(response.headers.get("Link", "")[:20_000]):
        relation = _RELATION.search(link[2])
        try:
            address = urljoin(response.url, link[1].strip())
        except ValueError:
            continue
        if relation and address.lower().startswith(("http://", "https://")):
            links.append((address, (relation[1] or relation[2] or "").lower(), link[2]))
    return links


def hub_in_headers(response: Response) -> Hub | None:
    """Return the WebSub hubs in the `Link` headers, which outrank the document's (W3C WebSub, 4), or `None`."""
    links = links_in_headers(response)
    hubs = [address for address, relations, _ in links if "hub" in relations.split()]
    topics = [address for address, relations, _ in links if "self" in relations.split()]
    return Hub(tuple(hubs[:MAX_HUBS]), topics[0] if topics else response.url) if hubs else None


def raise_for_response(response: Response, *, now: datetime) -> NoReturn:
    """Raise `Refused` if the status asks for a login or a payment, else `TryLater` for an answer without a feed."""
    status = response.status
    wait = read_retry_after(response.headers, now=now, longest=MAX_WAIT) or None
    if status in {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
        HTTPStatus.PAYMENT_REQUIRED,
    }:
        message = (
            f"The feed's server asks for a login (status {status}). Give the address of a feed that is open."
        )
        raise Refused(message, code="login_required", field="config.url", platform_status=status)
    # Servers answer 403 to callers whom they take for robots, often for a while only; so it is retried.
    if status == HTTPStatus.FORBIDDEN or "cf-mitigated" in response.headers:
        message = (
            f"The feed's server refuses automatic readers (status {status}). If this continues, ask the "
            "feed's owner to allow this service, or give another address."
        )
        raise TryLater(message, code="forbidden", after=wait or FORBIDDEN_WAIT, platform_status=status)
    if status == HTTPStatus.NOT_FOUND:
        message = (
            "The feed's server has no feed at this address (status 404). If this continues, check the "
            "address."
        )
        raise TryLater(message, code="not_found", after=wait, platform_status=status)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        message = "The feed's server says that it is polled too often (status 429). It is polled again later."
        raise TryLater(message, code="rate_limited", after=wait, platform_status=status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        message = f"The feed's server has an internal error (status {status}). It is polled again later."
        raise TryLater(message, code="server_error", after=wait, platform_status=status)
    message = (
        f"The feed's server answered with status {status} instead of a feed. If this continues, check the "
        "address."
    )
    raise TryLater(message, code="unexpected_status", after=wait, platform_status=status)


def as_plugin_error(error: OutboundError) -> PluginError:
    """Return the plug-in error for a call that failed before there was an answer."""
    if isinstance(error, AddressRefused):
        message = f"{error} Give another address."
        return Refused(message, code=error.code, field="config.url")
    if isinstance(error, ResponseTooLarge):
        megabytes = FEED_BYTES // (1024 * 1024)
        message = f"The feed is larger than {megabytes} MiB. Give the address of a smaller feed."
        return Refused(message, code="feed_too_large", field="config.url")
    message = str(error) if isinstance(error, NameNotFound) else f"The feed could not be fetched: {error}"
    return TryLater(message, code=error.code)
