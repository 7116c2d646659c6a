"""Sends HTTP requests over guarded connections of urllib3, and checks every redirect like a first address."""

from __future__ import annotations

import http.client
import json as jsonlib
import re
import ssl
import zlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Unpack
from urllib.parse import quote, urlencode, urljoin, urlsplit

import certifi

from config.core.http_client.body import read_body
from config.core.http_client.errors import (
    AddressRefused,
    BadResponse,
    OutboundError,
    TimedOut,
    TooManyRedirects,
)
from config.core.http_client.guard import Deadline, Policy, read_host
from config.core.http_client.messages import (
    DEFAULT_PORTS,
    Headers,
    Options,
    Request,
    Response,
    Target,
    TransferLimits,
)
from config.core.http_client.pool import Connections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client.connection import GuardedConnection

MAX_URL_LENGTH = 8192
"""The most characters of a URL."""
# Of the 3xx codes only these ask for another request; 300, 304, 305 and 306 are answers like any other.
REDIRECTS = frozenset({301, 302, 303, 307, 308})

_CONTROL = re.compile(r"[\x00-\x20\x7f]")
# The host and port of a URL, as in `example.org:8443` or `[::1]:8443`.
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{0,5}))?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# The characters of a path or query that stay as the caller wrote them; others are percent-encoded.
_SAFE = "/%:@!$&'()*+,;=~[]?"

# The headers that say how a message is framed and where it goes, which the client alone decides.
_OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect"}
)


class _Unanswered(BadResponse):
    """The connection broke before the first byte of an answer."""


class Client:
    """An HTTP/1.1 client for addresses that other people chose. Thread-safe.

    Each request opens a connection and checks its address then; with `keep_alive` it may reuse one. The client
    has no cookies, takes no proxies or credentials from the environment, and doesn't retry, except as `request`
    says for `keep_alive`. `tls` replaces the default TLS context.
    """

    def __init__(self, policy: Policy, *, tls: ssl.SSLContext | None = None) -> None:
        self.policy = policy
        self._connections = Connections(tls or _make_tls_context())

    def sweep(self) -> None:
        """Close the idle connections that are idle for too long or too old."""
        self._connections.sweep()

    def get(self, url: str, **options: Unpack[Options]) -> Response:
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Unpack[Options]) -> Response:
        return self.request("POST", url, **options)

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        json: object = None,
        form: Mapping[str, str] | None = None,
        timeout: float = 20.0,
        connect_timeout: float = 5.0,
        max_bytes: int = 5 * 1024 * 1024,
        max_redirects: int = 0,
        https_only: bool = False,
        truncate: bool = False,
        keep_alive: bool = False,
    ) -> Response:
        """Send a request and return the response, whatever its status.

        `timeout` bounds everything from the lookup to the last byte, redirects included; `connect_timeout`
        bounds each attempt to connect to one address; both are seconds. `max_bytes` counts decoded bytes; a
        longer body is cut there with `truncate`, and refused without it. With `max_redirects` 0 a redirect is
        returned like any other response. `https_only` refuses http addresses, redirects' too. A `json` of `None`
        means no body.

        With `keep_alive` the connection stays open for some seconds for the next request to the same origin
        (`pool.py`). If a reused connection breaks before any byte of an answer, the request is sent once more
        on a new one: use it only for requests that may arrive twice.

        Raises a subclass of `OutboundError` if no usable response came. Raises `ValueError`, before anything is
        sent, for a method, a header, a JSON value or a combination of bodies that can't be sent.
        """
        limits = TransferLimits(
            Deadline.after(timeout),
            connect_timeout,
            max_bytes,
            max_redirects,
            https_only,
            truncate,
            keep_alive,
        )
        content, content_type = _encode_body(body, json, form)
        request = Request(
            _check_method(method),
            self._parse_url(url, limits),
            _merge_headers(
                {"User-Agent": self.policy.user_agent, "Accept": "*/*", "Accept-Encoding": "gzip"},
                {"Content-Type": content_type} if content_type else {},
                headers or {},
            ),
            content,
        )
        redirects: list[tuple[int, str]] = []
        is_answered = False
        try:
            while True:
                answer = self._exchange(request, limits)
                is_answered = True
                location = _find_redirect(answer.status, answer.headers, limits)
                if location is None:
                    break
                if len(redirects) == max_redirects:
                    message = f"The server redirected more than {max_redirects} times."
                    raise TooManyRedirects(message)
                target = self._parse_url(location, limits, base=request.target.url)
                redirects.append((answer.status, target.url))
                request = request.after_redirect(answer.status, target)
        except OutboundError as error:
            # A failure at a later hop doesn't undo the request that the first server has answered.
            error.may_have_reached = error.may_have_reached or is_answered
            raise
        return replace(answer, redirects=tuple(redirects)) if redirects else answer

    def _parse_url(self, url: str, limits: TransferLimits, *, base: str = "") -> Target:
        """Return the host, port and path of a URL, which may be relative to `base`.

        Raises `AddressRefused` for a URL that is malformed or may not be called.
        """
        if len(url) > MAX_URL_LENGTH or _CONTROL.search(url):
            message = f"The URL holds spaces or control characters, or is longer than {MAX_URL_LENGTH}."
            raise AddressRefused(message)
        try:
            parts = urlsplit(urljoin(base, url))
        except ValueError as error:
            message = "The URL is malformed."
            raise AddressRefused(message) from error
        if parts.scheme not in DEFAULT_PORTS:
            message = "Only http and https URLs can be called."
            raise AddressRefused(message)
        if parts.scheme == "http" and (limits.https_only or not self.policy.allow_http):
            message = "Only https URLs can be called here."
            raise AddressRefused(message)
        if "@" in parts.netloc:
            message = "A URL with a user name or password in it cannot be called."
            raise AddressRefused(message)
        match = _AUTHORITY.fullmatch(parts.netloc)
        if match is None:
            message = "The URL has no valid host."
            raise AddressRefused(message)
        path = quote(parts.path or "/", safe=_SAFE, errors="replace")
        if parts.query:
            path += "?" + quote(parts.query, safe=_SAFE, errors="replace")
        return Target(
            parts.scheme,
            read_host(match["v6"] or match["name"]),
            int(match["port"]) if match["port"] else DEFAULT_PORTS[parts.scheme],
            path,
        )

    def _exchange(self, request: Request, limits: TransferLimits) -> Response:
        """Send the request over an idle connection if one answers, else over a new one.

        Raises a subclass of `OutboundError` if no usable response came.
        """
        take = self._connections.take if limits.keep_alive else self._connections.make
        connection = take(request.target)
        is_reused = not connection.is_closed
        try:
            return self._exchange_on(connection, request, limits)
        except _Unanswered:
            if not is_reused:
                raise
        # The server closed it just before it was used; now it is opened anew.
        try:
            return self._exchange_on(connection, request, limits)
        except OutboundError as error:
            # The first attempt may have arrived, whatever became of the second.
            error.may_have_reached = True
            raise

    def _exchange_on(
        self, connection: GuardedConnection, request: Request, limits: TransferLimits
    ) -> Response:
        """Send the request over this connection and read the answer.

        The body of a redirect that will be followed isn't read. Raises `_Unanswered` if the connection broke
        before the first byte of an answer, `TimedOut` after the deadline, `ResponseTooLarge` if the body exceeds
        `max_bytes` without `truncate`, and `BadResponse` for any other incomplete or malformed answer.
        """
        is_kept = False
        target = request.target
        try:
            connection.begin(target.host, limits, self.policy)
            # From here on a failure says nothing about what the server has received.
            try:
                connection.request(
                    request.method,
                    target.path,
                    request.body,
                    request.headers if limits.keep_alive else request.headers | {"Connection": "close"},
                )
                answer = connection.receive_head()
                headers = Headers(answer.getheaders())
                if _find_redirect(answer.status, headers, limits) is not None:
                    return Response(answer.status, headers, b"", target.url)
                body, truncated = read_body(answer, max_bytes=limits.max_bytes, truncate=limits.truncate)
            except TimeoutError as error:
                message = (
                    f"{target.host.bare} did not answer in full within {limits.deadline.seconds:g} seconds."
                )
                raise TimedOut(message, may_have_reached=True) from error
            except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
                # http.client lets int() complain about a chunk size, which is the ValueError.
                message = f"{target.host.bare} broke off or sent no valid HTTP response."
                kind = BadResponse if connection.has_received else _Unanswered
                raise kind(message, may_have_reached=True) from error
            if limits.keep_alive and not connection.is_closed and answer.isclosed():
                self._connections.put(connection)
                is_kept = True
            return Response(answer.status, headers, body, target.url, truncated)
        finally:
            if not is_kept:
                connection.drop()


@cache
def _make_tls_context() -> ssl.SSLContext:
    """Return the default TLS context: the system's trust store and certifi's authorities."""
    context = ssl.create_default_context()
    # A slim container may have no trust store of its own; an operator's own authorities are in the system's.
    context.load_verify_locations(certifi.where())
    return context


def _find_redirect(status: int, headers: Mapping[str, str], limits: TransferLimits) -> str | None:
    """Return the address that a redirect leads to, or `None` if the answer isn't to be followed."""
    if limits.max_redirects < 1 or status not in REDIRECTS or "Location" not in headers:
        return None
    # http.client reads headers as latin-1, while servers write UTF-8 and sometimes spaces.
    location = headers["Location"].strip().encode("latin-1").decode("utf-8", errors="replace")
    return location.replace(" ", "%20")


def _check_method(method: str) -> str:
    """Return the method in upper case. Raises `ValueError` if it is no HTTP token."""
    if _TOKEN.fullmatch(method) is None:
        message = "This is not an HTTP method."
        raise ValueError(message)
    return method.upper()


def _encode_body(
    body: bytes | None, json: object, form: Mapping[str, str] | None
) -> tuple[bytes | None, str | None]:
    """Return the body's bytes and content type, each `None` if there is none to send.

    Raises `ValueError` for more than one kind of body, and for JSON with NaN or infinity.
    """
    if sum(part is not None for part in (body, json, form)) > 1:
        message = "Give one of body, json and form."
        raise ValueError(message)
    if json is not None:
        return jsonlib.dumps(json, allow_nan=False).encode(), "application/json"
    if form is not None:
        return urlencode(form).encode(), "application/x-www-form-urlencoded"
    return body, None


def _merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Merge the layers, later ones over earlier ones, ignoring the case of names.

    Raises `ValueError` for a name that is malformed or set by the client alone, or a value that can't be sent.
    """
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            if _TOKEN.fullmatch(name) is None or name.lower() in _OWN_HEADERS:
                message = f"The header {name!r} cannot be set."
                raise ValueError(message)
            if _FIELD_VALUE.fullmatch(value) is None:
                message = f"The value of the header {name!r} holds characters that cannot be sent."
                raise ValueError(message)
            merged[name.lower()] = (name, value)
    return dict(merged.values())
