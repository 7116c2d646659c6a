"""What a feed's server says beside the feed: validators, waits, permanent moves, hubs, and why there is no feed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import urljoin

from config.core.http_client import AddressRefused, NameNotFound, OutboundError, ResponseTooLarge
from pipeline.limits import FEED_BYTES
from pipeline.plugins import PluginError, Refused, TryLater
from pipeline.sources.base import Hub

if TYPE_CHECKING:
    from config.core.http_client import Response

LONGEST_WAIT: Final = timedelta(hours=24)
# Asking a server that refuses us again sooner only confirms its judgement.
FORBIDDEN_WAIT: Final = timedelta(hours=1)
# Validators come back in a request header, and servers cut off longer ones.
MAX_VALIDATOR_CHARS: Final = 1024
MAX_HUBS: Final = 3
PERMANENT: Final = frozenset({HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.PERMANENT_REDIRECT})


def validators_of(response: Response) -> tuple[str, str]:
    etag = response.headers.get("ETag", "").strip()
    last_modified = response.headers.get("Last-Modified", "").strip()
    usable = [value if _is_sendable(value) else "" for value in (etag, last_modified)]
    return usable[0], usable[1]


def _is_sendable(value: str) -> bool:
    return len(value) <= MAX_VALIDATOR_CHARS and re.fullmatch(r"[\x20-\x7e\x80-\xff]*", value) is not None


def wait_of(response: Response, asked_seconds: int, *, now: datetime) -> timedelta | None:
    """The longest of what the document and the answer ask for, at most a day.

    `Expires` counts only where there is no `max-age` (RFC 9111, 5.3), and from the server's own `Date`.
    """
    control = response.headers.get("Cache-Control", "").lower()
    max_age = re.search(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,9})", control)
    if max_age:
        fresh = int(max_age[1])
    else:
        expires = _moment(response.headers.get("Expires", ""))
        sent = _moment(response.headers.get("Date", "")) or now
        fresh = int((expires - sent).total_seconds()) if expires else 0
    seconds = max(asked_seconds, fresh)
    return min(timedelta(seconds=seconds), LONGEST_WAIT) if seconds > 0 else None


def _moment(written: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(written.strip())
        # Python calls a date naive whose zone is written "-0000".
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def moved_to(response: Response, asked: str) -> str:
    """Where permanent redirects led, or nothing: not where one of them was temporary or left https."""
    addresses = [asked, *(url for _, url in response.redirects)]
    if not all(status in PERMANENT for status, _ in response.redirects):
        return ""
    is_downgrade = any(
        before.lower().startswith("https:") and not after.lower().startswith("https:")
        for before, after in pairwise(addresses)
    )
    return "" if is_downgrade or response.url == asked or not response.redirects else response.url


_HEADER_LINK: Final = re.compile(r"<([^<>]{1,2048})>([^<>]{0,500})")
_RELATION: Final = re.compile(r"""\brel\s*=\s*(?:"([^"]*)"|([^\s";,]+))""", re.IGNORECASE)


def links_in_headers(response: Response) -> list[tuple[str, str, str]]:
    """Of each link in `Link` headers (RFC 8288): address, relations and all its parameters as written."""
    found = []
    for link in _HEADER_LINK.finditer(response.headers.get("Link", "")[:20_000]):
        relation = _RELATION.search(link[2])
        try:
            address = urljoin(response.url, link[1].strip())
        except ValueError:
            continue
        if relation and address.lower().startswith(("http://", "https://")):
            found.append((address, (relation[1] or relation[2] or "").lower(), link[2]))
    return found


def hub_in_headers(response: Response) -> Hub | None:
    """WebSub's hub by `Link` headers, which go before what the document says (W3C WebSub, 4)."""
    links = links_in_headers(response)
    hubs = [address for address, relations, _ in links if "hub" in relations.split()]
    own = [address for address, relations, _ in links if "self" in relations.split()]
    return Hub(tuple(hubs[:MAX_HUBS]), own[0] if own else response.url) if hubs else None


def _retry_after(response: Response, *, now: datetime) -> timedelta | None:
    written = response.headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", written):
        asked = timedelta(seconds=int(written))
    else:
        moment = _moment(written)
        if moment is None:
            return None
        asked = moment - now
    return min(asked, LONGEST_WAIT) if asked > timedelta(0) else None


def fail(response: Response, *, now: datetime) -> NoReturn:
    status = response.status
    after = _retry_after(response, now=now)
    if status in {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
        HTTPStatus.PAYMENT_REQUIRED,
    }:
        message = (
            f"The feed's server asks for a login (status {status}). Give the address of a feed that is open."
        )
        raise Refused(message, code="login_required", field="config.url", platform_status=status)
    # Servers say 403 to callers whom they take for robots, and take it back; so nobody has to do anything yet.
    if status == HTTPStatus.FORBIDDEN or "cf-mitigated" in response.headers:
        message = (
            f"The feed's server refuses automatic readers (status {status}). If it goes on, ask the feed's owner to "
            "let this service in, or give another address."
        )
        raise TryLater(message, code="forbidden", after=after or FORBIDDEN_WAIT, platform_status=status)
    if status == HTTPStatus.NOT_FOUND:
        message = (
            "The feed's server knows no feed at this address (status 404). If it goes on, check the address."
        )
        raise TryLater(message, code="not_found", after=after, platform_status=status)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        message = (
            "The feed's server says that it is asked too often (status 429); it will be asked again later."
        )
        raise TryLater(message, code="rate_limited", after=after, platform_status=status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        message = f"The feed's server has a fault of its own (status {status}); it will be asked again later."
        raise TryLater(message, code="server_error", after=after, platform_status=status)
    message = f"The feed's server answered with status {status} instead of a feed. If it goes on, check the address."
    raise TryLater(message, code="unexpected_status", after=after, platform_status=status)


def from_outbound(error: OutboundError) -> PluginError:
    if isinstance(error, AddressRefused):
        message = f"{error} Give another address."
        return Refused(message, code=error.code, field="config.url")
    if isinstance(error, ResponseTooLarge):
        megabytes = FEED_BYTES // (1024 * 1024)
        message = f"The feed is larger than {megabytes} MiB. Give the address of a smaller feed."
        return Refused(message, code="feed_too_large", field="config.url")
    message = str(error) if isinstance(error, NameNotFound) else f"The feed could not be fetched: {error}"
    return TryLater(message, code=error.code)
