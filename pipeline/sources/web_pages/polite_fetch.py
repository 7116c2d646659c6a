"""Fetches pages as robots.txt allows: one request at a time, after a pause, with each redirect checked.

Redirects wait too, but no longer than the time left allows.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from config.core.http_client import (
    AddressRefused,
    NameNotFound,
    OutboundError,
    ResponseTooLarge,
    read_retry_after,
)
from pipeline.limits import PAGE_BYTES

if TYPE_CHECKING:
    from config.core.http_client import Client, Response
    from pipeline.sources.web_pages.robots import Robots

ACCEPT: Final = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
MAX_REDIRECTS: Final = 5
TIMEOUT_SECONDS: Final = 20.0
RESERVE_SECONDS: Final = 6.0
"""The time left below which no further page is fetched."""
MIN_PAUSE_SECONDS: Final = 0.5
"""The pause between two requests to an origin that asks for none; redirects count as requests."""
MAX_PAUSE_SECONDS: Final = 10.0
"""The longest pause that a worker waits; if an origin asks for more, each poll fetches one page only."""
MAX_RETRY_WAIT: Final = timedelta(hours=24)
MAX_VALIDATOR_CHARACTERS: Final = 1024
"""Validators go back in a request header, and servers cut off longer headers."""

_REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_PERMANENT_STATUSES: Final = frozenset({301, 308})
_READABLE_TYPES: Final = ("text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml")
_LOGIN_PATH: Final = re.compile(
    r"(?i)(?:^|/)(?:log-?in|sign-?in|wp-login\.php|sso|account/login|auth|session/new)(?:[/.?]|$)"
)
_CHALLENGE_TITLE: Final = re.compile(
    rb"(?i)<title>\s*(?:just a moment|attention required|ddos-guard|checking your browser)"
)

pause = time.sleep
"""Waits between two requests; tests replace it."""


class VisitFailed(Exception):
    """Raised if a page gives no text; `message` is the reason for people.

    `kind` is `gone` (there is no such page), `left_out` (page, server or robots.txt don't let us read it) or
    `later`. `after` is the wait that the server asks for. `stops` is `True` if no further page of this origin
    should be fetched now.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        kind: str,
        status: int | None = None,
        after: timedelta | None = None,
        stops: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.kind = kind
        self.status = status
        self.after = after
        self.stops = stops


class OutOfTime(Exception):
    """Raised if the time left of this fetch doesn't suffice for another page.

    `after` is the pause between two requests that the origin asks for, if that is the reason.
    """

    def __init__(self, after: timedelta | None = None) -> None:
        super().__init__()
        self.after = after


@dataclass(frozen=True)
class Visit:
    """The answer of an address. `moved_to` is the last address if only permanent redirects led there, else empty."""

    url: str
    body: bytes
    content_type: str
    robots_header: str
    tdm_header: str
    etag: str
    last_modified: str
    is_unchanged: bool = False
    moved_to: str = ""
    is_rendered: bool = False


class PoliteFetcher:
    """Fetches pages one by one until the time of one fetch is used up."""

    def __init__(
        self, http: Client, robots: Robots, *, seconds: float, now: datetime, processing_seconds: float = 0.0
    ) -> None:
        """Begin a fetch of `seconds`; a page takes `processing_seconds` more after it was fetched."""
        self._http = http
        self._robots = robots
        self._deadline = monotonic() + seconds
        self._now = now
        self._last_requests: dict[str, tuple[float, float]] = {}
        self._reserve = RESERVE_SECONDS + processing_seconds

    @property
    def seconds_left(self) -> float:
        """The seconds left of this fetch's time."""
        return self._deadline - monotonic()

    def visit(
        self,
        url: str,
        *,
        etag: str = "",
        last_modified: str = "",
        accept: str = ACCEPT,
        max_bytes: int = PAGE_BYTES,
    ) -> Visit:
        """Fetch a page, and follow its redirects.

        With the `etag` and `last_modified` of an earlier visit the answer may be unchanged, without a body. Raises
        `OutOfTime` before any request if the time doesn't suffice, and `VisitFailed` if there is no page to read.
        """
        headers = {"Accept": accept}
        headers |= {"If-None-Match": etag} if etag else {}
        headers |= {"If-Modified-Since": last_modified} if last_modified else {}
        statuses: list[int] = []
        target = url
        self._wait_for(url)
        while True:
            answer = self._ask(target, headers, max_bytes)
            location = answer.headers.get("Location", "").strip()
            if answer.status not in _REDIRECT_STATUSES or not location:
                break
            statuses.append(answer.status)
            if len(statuses) > MAX_REDIRECTS:
                message = f"The page redirects more than {MAX_REDIRECTS} times."
                raise VisitFailed(message, code="redirect_loop", kind="left_out", status=answer.status)
            target = _resolve_location(target, location)
            self._wait_for_hop(target)
        _check_login(url, target)
        moved_to = target if statuses and set(statuses) <= _PERMANENT_STATUSES and target != url else ""
        if answer.status == HTTPStatus.NOT_MODIFIED and (etag or last_modified):
            return _visit_of(answer, target, moved_to, is_unchanged=True)
        _check_status(answer, now=self._now)
        return _visit_of(answer, target, moved_to)

    def delay_of(self, url: str) -> float:
        """Return the seconds between two requests to an origin. Raises `VisitFailed` if it disallows `url`."""
        self._check_robots(url)
        return self._robots.delay_of(url)

    def _wait_for(self, url: str) -> None:
        """Wait until the origin may be called again.

        Raises `OutOfTime` if that takes too long, and `VisitFailed` if robots.txt disallows the address or
        can't be read.
        """
        if self.seconds_left < self._reserve:
            raise OutOfTime
        self._check_robots(url)
        remaining = self._remaining_pause(url)
        if remaining <= 0:
            return
        if remaining > MAX_PAUSE_SECONDS or remaining > self.seconds_left - self._reserve:
            requested_delay = self._robots.delay_of(url)
            raise OutOfTime(timedelta(seconds=requested_delay) if requested_delay else None)
        pause(remaining)

    def _wait_for_hop(self, url: str) -> None:
        """Wait before a redirect is followed, at most `MAX_PAUSE_SECONDS` and what the time left allows.

        It doesn't raise `OutOfTime`, because a page that redirects would be begun, and given up, at every
        poll. Raises `VisitFailed` if robots.txt disallows the address or can't be read.
        """
        self._check_robots(url)
        pause_seconds = min(self._remaining_pause(url), MAX_PAUSE_SECONDS, self.seconds_left - self._reserve)
        if pause_seconds > 0:
            pause(pause_seconds)

    def _remaining_pause(self, url: str) -> float:
        """Return the seconds until the origin may be called again, or 0 or less if it may be called now."""
        origin = urlsplit(url).netloc.lower()
        if origin not in self._last_requests:
            return 0.0
        ended_at, duration = self._last_requests[origin]
        # A server that takes long to answer is given as long before the next request.
        wait_seconds = max(self._robots.delay_of(url), MIN_PAUSE_SECONDS, duration)
        return ended_at + wait_seconds - monotonic()

    def _check_robots(self, url: str) -> None:
        """Raise `VisitFailed` if robots.txt disallows the address or can't be read, or its host is refused."""
        try:
            is_allowed = self._robots.allows(url)
        except (AddressRefused, NameNotFound) as error:
            raise _failure_of_error(error, PAGE_BYTES) from error
        if not is_allowed:
            raise _robots_refusal(self._robots, url)

    def _ask(self, url: str, headers: dict[str, str], max_bytes: int) -> Response:
        """Make one request, without following redirects. Raises `VisitFailed` if there is no answer."""
        self._check_robots(url)
        started = monotonic()
        try:
            return self._http.get(
                url,
                headers=headers,
                timeout=max(1.0, min(TIMEOUT_SECONDS, self.seconds_left)),
                max_bytes=max_bytes,
            )
        except OutboundError as error:
            raise _failure_of_error(error, max_bytes) from error
        finally:
            ended = monotonic()
            self._last_requests[urlsplit(url).netloc.lower()] = (ended, ended - started)


def _resolve_location(base: str, location: str) -> str:
    """Return the absolute address of a redirect. Raises `VisitFailed` for an invalid one."""
    try:
        # Python decodes headers as Latin-1, but servers write UTF-8 into them, and blanks.
        location = location.encode("latin-1", errors="replace").decode("utf-8", errors="replace")
        return urljoin(base, location).replace(" ", "%20")
    except ValueError:
        message = "The page redirects to an invalid address."
        raise VisitFailed(message, code="redirect_broken", kind="left_out") from None


def _visit_of(answer: Response, url: str, moved_to: str, *, is_unchanged: bool = False) -> Visit:
    """Return the answer as a visit."""
    headers = answer.headers
    return Visit(
        url=url.partition("#")[0],
        body=answer.body,
        content_type=headers.get("Content-Type", ""),
        robots_header=headers.get("X-Robots-Tag", "")[:1000],
        tdm_header=headers.get("tdm-reservation", "")[:10],
        etag=_usable_validator(headers.get("ETag", "")),
        last_modified=_usable_validator(headers.get("Last-Modified", "")),
        is_unchanged=is_unchanged,
        moved_to=moved_to,
    )


def _usable_validator(validator: str) -> str:
    """Return the validator, or an empty string if it can't be sent back in a request header."""
    text = validator.strip()
    is_sendable = (
        len(text) <= MAX_VALIDATOR_CHARACTERS and re.fullmatch(r"[\x20-\x7e\x80-\xff]*", text) is not None
    )
    return text if is_sendable else ""


def _robots_refusal(robots: Robots, url: str) -> VisitFailed:
    """Return the failure for an address that robots.txt disallows, or whose robots.txt can't be read."""
    if robots.is_closed(url):
        return VisitFailed(
            robots.note_on(url).message, code="robots_unreachable", kind="later", after=timedelta(hours=1)
        )
    message = f"robots.txt of {urlsplit(url).netloc} disallows this address to automatic readers."
    return VisitFailed(message, code="robots_disallow", kind="left_out")


def _check_login(requested_url: str, final_url: str) -> None:
    """Raise `VisitFailed` if redirects led from another page to a login page."""
    if (
        final_url != requested_url
        and _LOGIN_PATH.search(urlsplit(final_url).path)
        and not _LOGIN_PATH.search(urlsplit(requested_url).path)
    ):
        message = "The page leads to a login. Only open pages can be read."
        raise VisitFailed(message, code="login_required", kind="left_out")


def _check_status(answer: Response, *, now: datetime) -> None:
    """Raise `VisitFailed` for an answer that is neither a page nor a sitemap."""
    status = answer.status
    wait = read_retry_after(answer.headers, now=now, longest=MAX_RETRY_WAIT) or None
    if _is_challenge(answer):
        message = f"The server shows a challenge that only a person in a browser passes (status {status})."
        raise VisitFailed(message, code="challenge", kind="later", status=status, after=wait, stops=True)
    if status in {HTTPStatus.OK, HTTPStatus.NON_AUTHORITATIVE_INFORMATION}:
        check_type(answer.headers.get("Content-Type", ""), sitemaps=True)
        return
    raise _failure_of_status(status, wait)


def check_type(content_type: str, *, sitemaps: bool = False) -> None:
    """Raise `VisitFailed` for a type of no page and, with `sitemaps`, of no sitemap; an empty type passes."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type and media_type not in _READABLE_TYPES and not (sitemaps and _is_sitemap_type(media_type)):
        message = f"The address leads to a file of type {media_type[:80]}, not to a page."
        raise VisitFailed(message, code="not_html", kind="left_out")


def _is_sitemap_type(media_type: str) -> bool:
    """Return whether a sitemap may have this content type."""
    return media_type.endswith("+xml") or media_type in {
        "application/gzip",
        "application/x-gzip",
        "application/octet-stream",
    }


def _is_challenge(answer: Response) -> bool:
    """Return whether the answer is a challenge that only a person in a browser passes."""
    if "cf-mitigated" in answer.headers:
        return True
    is_suspect = answer.status in {
        HTTPStatus.FORBIDDEN,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
    return is_suspect and _CHALLENGE_TITLE.search(answer.body[:20_000]) is not None


def _failure_of_status(status: int, wait: timedelta | None) -> VisitFailed:
    """Return the failure that a status means."""
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return VisitFailed(
            f"There is no page at this address (status {status}).", code="gone", kind="gone", status=status
        )
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}:
        message = f"The page asks for a login (status {status}). Only open pages can be read."
        return VisitFailed(message, code="login_required", kind="left_out", status=status)
    if status == HTTPStatus.PAYMENT_REQUIRED:
        message = "The page asks for payment (status 402). Only open pages can be read."
        return VisitFailed(message, code="paywall", kind="left_out", status=status)
    if status == HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS:
        message = "The page may not be shown here for legal reasons (status 451)."
        return VisitFailed(message, code="legal_reasons", kind="left_out", status=status)
    if status == HTTPStatus.FORBIDDEN:
        message = "The server refuses automatic readers (status 403)."
        return VisitFailed(message, code="forbidden", kind="later", status=status, after=wait)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        message = "The server says that it is polled too often (status 429)."
        return VisitFailed(message, code="rate_limited", kind="later", status=status, after=wait, stops=True)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        message = f"The server has an internal error (status {status})."
        return VisitFailed(
            message, code="server_error", kind="later", status=status, after=wait, stops=wait is not None
        )
    message = f"The server answered with status {status} instead of a page."
    return VisitFailed(message, code="unexpected_status", kind="later", status=status, after=wait)


def _failure_of_error(error: OutboundError, max_bytes: int) -> VisitFailed:
    """Return the failure for a call that failed before there was an answer."""
    if isinstance(error, AddressRefused):
        return VisitFailed(str(error), code=error.code, kind="left_out")
    if isinstance(error, ResponseTooLarge):
        message = f"The page is larger than {max_bytes // (1024 * 1024)} MiB."
        return VisitFailed(message, code="page_too_large", kind="left_out")
    message = str(error) if isinstance(error, NameNotFound) else f"The page could not be fetched: {error}"
    return VisitFailed(message, code=error.code, kind="later")
