"""Defines the requests, responses and limits of the HTTP client."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from config.core.http_client.guard import Deadline, Host

DEFAULT_PORTS = {"http": 80, "https": 443}
# The only headers that another origin may see after a redirect: any other could be a credential or a signature,
# whatever its name.
_HARMLESS_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-encoding",
        "content-language",
        "content-type",
        "if-modified-since",
        "if-none-match",
        "range",
        "user-agent",
    }
)


class Headers(Mapping[str, str]):
    """Response headers, looked up in any case; repeated ones are joined by a comma."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            key = name.lower()
            # A folded value (obsolete, still sent) holds line ends.
            unfolded = " ".join(value.split("\r\n"))
            self._values[key] = f"{self._values[key]}, {unfolded}" if key in self._values else unfolded

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Response:
    """A response, after any redirects that were followed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    """The address that answered last."""
    truncated: bool = False
    """True if the body was cut at `max_bytes`."""
    redirects: tuple[tuple[int, str], ...] = ()
    """The status and target of each redirect that was followed."""


class Options(TypedDict, total=False):
    """The keyword arguments of `Client.request`."""

    headers: Mapping[str, str] | None
    body: bytes | None
    json: object
    form: Mapping[str, str] | None
    timeout: float
    connect_timeout: float
    max_bytes: int
    max_redirects: int
    https_only: bool
    truncate: bool
    keep_alive: bool


@dataclass(frozen=True)
class Target:
    """A parsed and checked URL; `path` includes the query."""

    scheme: str
    host: Host
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """The scheme, host and port."""
        return self.scheme, self.host.bare, self.port

    @property
    def url(self) -> str:
        name = f"[{self.host.bare}]" if ":" in self.host.bare else self.host.bare
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{name}{port}{self.path}"


@dataclass(frozen=True)
class Request:
    """A request without the headers that the client sets itself."""

    method: str
    target: Target
    headers: dict[str, str]
    body: bytes | None

    def after_redirect(self, status: int, target: Target) -> Request:
        """Return the request that a browser would make next.

        Another origin gets the harmless headers alone. After 303, or after 301 or 302 for a POST, it is a GET
        without a body.
        """
        headers = self.headers
        if target.origin != self.target.origin:
            headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS_HEADERS}
        becomes_get = (status == http.HTTPStatus.SEE_OTHER and self.method != "HEAD") or (
            status in (http.HTTPStatus.MOVED_PERMANENTLY, http.HTTPStatus.FOUND) and self.method == "POST"
        )
        if not becomes_get:
            return replace(self, target=target, headers=headers)
        headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
        return Request("GET", target, headers, None)


@dataclass(frozen=True)
class TransferLimits:
    """The limits of one call, which all its redirects share; `Client.request` explains each."""

    deadline: Deadline
    connect_timeout: float
    max_bytes: int
    max_redirects: int
    https_only: bool
    truncate: bool
    keep_alive: bool
