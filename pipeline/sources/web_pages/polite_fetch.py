"""One page asked for as a guest who reads robots.txt: each hop judged, one request after another, none too soon."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from config.core.http_client import AddressRefused, NameNotFound, OutboundError, ResponseTooLarge
from pipeline.limits import PAGE_BYTES

if TYPE_CHECKING:
    from config.core.http_client import Client, Response
    from pipeline.sources.web_pages.robots import Robots

ACCEPT: Final = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
MAX_REDIRECTS: Final = 5
TIMEOUT_SECONDS: Final = 20.0
RESERVE_SECONDS: Final = 6.0
"""With less time left than this, no further page is asked for."""
SHORTEST_PAUSE: Final = 0.5
"""Seconds between two requests of one origin where it asks for none."""
LONGEST_PAUSE: Final = 10.0
"""Seconds that a worker waits for; where an origin asks for more, each poll makes one request of it."""
LONGEST_WAIT: Final = timedelta(hours=24)
MAX_VALIDATOR_CHARS: Final = 1024

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PERMANENT: Final = frozenset({301, 308})
_READABLE: Final = ("text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml")
_LOGIN: Final = re.compile(
    r"(?i)(?:^|/)(?:log-?in|sign-?in|wp-login\.php|sso|account/login|auth|session/new)(?:[/.?]|$)"
)
_CHALLENGE: Final = re.compile(
    rb"(?i)<title>\s*(?:just a moment|attention required|ddos-guard|checking your browser)"
)

pause = time.sleep
"""Waits between two requests."""


class VisitFailed(Exception):
    """Why a page gives no text, in words.

    `kind` is `gone` (there is no such page), `left_out` (the page, or what leads to it, keeps us from it) or `later`.
    `stops` is True where no further page of this origin should be asked for now.
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
    """What is left of this fetch's time doesn't hold another page; `after` is how long the origin asks us to wait."""

    def __init__(self, after: timedelta | None = None) -> None:
        super().__init__()
        self.after = after


@dataclass(frozen=True)
class Visit:
    """What an address answered. `moved_to` is set where only permanent redirects led there."""

    url: str
    body: bytes
    content_type: str
    robots_header: str
    tdm_header: str
    etag: str
    modified: str
    is_unchanged: bool = False
    moved_to: str = ""
    is_rendered: bool = False


class Visitor:
    """Asks for pages one by one until the time of one fetch is used up."""

    def __init__(
        self, http: Client, robots: Robots, *, seconds: float, now: datetime, more_seconds: float = 0.0
    ) -> None:
        """`more_seconds` is what a page takes after it was had, before the next one is asked for."""
        self._http = http
        self._robots = robots
        self._until = monotonic() + seconds
        self._now = now
        self._last: dict[str, tuple[float, float]] = {}
        self._reserve = RESERVE_SECONDS + more_seconds

    @property
    def seconds_left(self) -> float:
        return self._until - monotonic()

    def visit(
        self,
        url: str,
        *,
        etag: str = "",
        modified: str = "",
        accept: str = ACCEPT,
        max_bytes: int = PAGE_BYTES,
    ) -> Visit:
        """The page behind an address; raises `VisitFailed`, and `OutOfTime` before anything is asked."""
        headers = {"Accept": accept}
        headers |= {"If-None-Match": etag} if etag else {}
        headers |= {"If-Modified-Since": modified} if modified else {}
        statuses: list[int] = []
        target = url
        self._wait_for(url)
        while True:
            answer = self._ask(target, headers, max_bytes)
            location = answer.headers.get("Location", "").strip()
            if answer.status not in _REDIRECTS or not location:
                break
            statuses.append(answer.status)
            if len(statuses) > MAX_REDIRECTS:
                message = f"The page leads from one address to the next more than {MAX_REDIRECTS} times."
                raise VisitFailed(message, code="redirect_loop", kind="left_out", status=answer.status)
            target = _join(target, location)
        _check_login(url, target)
        moved = target if statuses and set(statuses) <= _PERMANENT and target != url else ""
        if answer.status == HTTPStatus.NOT_MODIFIED and (etag or modified):
            return _visit_of(answer, target, moved, is_unchanged=True)
        _check_status(answer, now=self._now)
        return _visit_of(answer, target, moved)

    def delay_of(self, url: str) -> float:
        """Seconds between two requests that the origin asks for; raises `VisitFailed`."""
        self._check_robots(url)
        return self._robots.delay_of(url)

    def _wait_for(self, url: str) -> None:
        origin = urlsplit(url).netloc.lower()
        if self.seconds_left < self._reserve:
            raise OutOfTime
        self._check_robots(url)
        if origin not in self._last:
            return
        ended, took = self._last[origin]
        asked = self._robots.delay_of(url)
        rest = ended + max(asked, SHORTEST_PAUSE, took) - monotonic()
        if rest > LONGEST_PAUSE or rest > self.seconds_left - self._reserve:
            raise OutOfTime(timedelta(seconds=asked) if asked else None)
        if rest > 0:
            pause(rest)

    def _check_robots(self, url: str) -> None:
        try:
            is_allowed = self._robots.allows(url)
        except (AddressRefused, NameNotFound) as error:
            raise _from_outbound(error, PAGE_BYTES) from error
        if not is_allowed:
            raise _disallowed(self._robots, url)

    def _ask(self, url: str, headers: dict[str, str], max_bytes: int) -> Response:
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
            raise _from_outbound(error, max_bytes) from error
        finally:
            ended = monotonic()
            self._last[urlsplit(url).netloc.lower()] = (ended, ended - started)


def _join(base: str, location: str) -> str:
    try:
        return urljoin(
            base, location.encode("latin-1", errors="replace").decode("utf-8", errors="replace")
        ).replace(" ", "%20")
    except ValueError:
        message = "The page leads to an address that is none."
        raise VisitFailed(message, code="redirect_broken", kind="left_out") from None


def _visit_of(answer: Response, url: str, moved: str, *, is_unchanged: bool = False) -> Visit:
    headers = answer.headers
    return Visit(
        url=url.partition("#")[0],
        body=answer.body,
        content_type=headers.get("Content-Type", ""),
        robots_header=headers.get("X-Robots-Tag", "")[:1000],
        tdm_header=headers.get("tdm-reservation", "")[:10],
        etag=_usable(headers.get("ETag", "")),
        modified=_usable(headers.get("Last-Modified", "")),
        is_unchanged=is_unchanged,
        moved_to=moved,
    )


def _usable(validator: str) -> str:
    """Validators come back in a request header, and servers cut off longer ones."""
    text = validator.strip()
    is_sendable = (
        len(text) <= MAX_VALIDATOR_CHARS and re.fullmatch(r"[\x20-\x7e\x80-\xff]*", text) is not None
    )
    return text if is_sendable else ""


def _disallowed(robots: Robots, url: str) -> VisitFailed:
    if robots.is_closed(url):
        return VisitFailed(
            robots.note_on(url).message, code="robots_unreachable", kind="later", after=timedelta(hours=1)
        )
    message = f"robots.txt of {urlsplit(url).netloc} disallows this address to automatic readers."
    return VisitFailed(message, code="robots_disallow", kind="left_out")


def _check_login(asked: str, answered: str) -> None:
    if (
        answered != asked
        and _LOGIN.search(urlsplit(answered).path)
        and not _LOGIN.search(urlsplit(asked).path)
    ):
        message = "The page leads to a login. Only open pages can be read."
        raise VisitFailed(message, code="login_required", kind="left_out")


def _check_status(answer: Response, *, now: datetime) -> None:
    status = answer.status
    after = _retry_after(answer, now=now)
    if _is_challenge(answer):
        message = f"The server shows a challenge that only a person in a browser passes (status {status})."
        raise VisitFailed(message, code="challenge", kind="later", status=status, after=after, stops=True)
    if status in {HTTPStatus.OK, HTTPStatus.NON_AUTHORITATIVE_INFORMATION}:
        check_type(answer.headers.get("Content-Type", ""), sitemaps=True)
        return
    raise _problem_of(status, after)


def check_type(content_type: str, *, sitemaps: bool = False) -> None:
    """Raises `VisitFailed` for what is neither a page nor, where `sitemaps` counts, may be a sitemap."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind and kind not in _READABLE and not (sitemaps and _is_sitemap_type(kind)):
        message = f"The address leads to a file of type {kind[:80]}, not to a page."
        raise VisitFailed(message, code="not_html", kind="left_out")


def _is_sitemap_type(kind: str) -> bool:
    return kind.endswith("+xml") or kind in {
        "application/gzip",
        "application/x-gzip",
        "application/octet-stream",
    }


def _is_challenge(answer: Response) -> bool:
    if "cf-mitigated" in answer.headers:
        return True
    is_suspect = answer.status in {
        HTTPStatus.FORBIDDEN,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
    return is_suspect and _CHALLENGE.search(answer.body[:20_000]) is not None


def _problem_of(status: int, after: timedelta | None) -> VisitFailed:
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
        return VisitFailed(message, code="forbidden", kind="later", status=status, after=after)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        message = "The server says that it is asked too often (status 429)."
        return VisitFailed(message, code="rate_limited", kind="later", status=status, after=after, stops=True)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        message = f"The server has a fault of its own (status {status})."
        return VisitFailed(
            message, code="server_error", kind="later", status=status, after=after, stops=after is not None
        )
    message = f"The server answered with status {status} instead of a page."
    return VisitFailed(message, code="unexpected_status", kind="later", status=status, after=after)


def _retry_after(answer: Response, *, now: datetime) -> timedelta | None:
    written = answer.headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", written):
        asked = timedelta(seconds=int(written))
    else:
        try:
            moment = parsedate_to_datetime(written)
            # Python calls a date naive whose zone is written "-0000".
            asked = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now
        except (ValueError, OverflowError):
            return None
    return min(asked, LONGEST_WAIT) if asked > timedelta(0) else None


def _from_outbound(error: OutboundError, max_bytes: int) -> VisitFailed:
    if isinstance(error, AddressRefused):
        return VisitFailed(str(error), code=error.code, kind="left_out")
    if isinstance(error, ResponseTooLarge):
        message = f"The page is larger than {max_bytes // (1024 * 1024)} MiB."
        return VisitFailed(message, code="page_too_large", kind="left_out")
    message = str(error) if isinstance(error, NameNotFound) else f"The page could not be fetched: {error}"
    return VisitFailed(message, code=error.code, kind="later")
