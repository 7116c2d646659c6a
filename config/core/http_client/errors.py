"""Defines the errors of calls to other servers."""

from __future__ import annotations

from typing import ClassVar


class OutboundError(Exception):
    """Raised for a call that brought no usable response; `str()` is a sentence for people.

    `may_have_reached` is False only if provably no byte of the request was sent.
    """

    code: ClassVar[str] = "outbound_error"

    def __init__(self, message: str, *, may_have_reached: bool = False) -> None:
        super().__init__(message)
        self.may_have_reached = may_have_reached


class AddressRefused(OutboundError):
    """Raised if a URL is malformed, or leads to an address that may not be called."""

    code = "address_refused"


class TimedOut(OutboundError):
    """Raised if the lookup, a connection, the TLS handshake or the response took too long."""

    code = "timed_out"


class ResponseTooLarge(OutboundError):
    """Raised if the body exceeds `max_bytes` and isn't to be cut."""

    code = "response_too_large"


class ConnectFailed(OutboundError):
    """Raised if the name could not be resolved, no address took the connection, or TLS failed."""

    code = "connect_failed"


class NameNotFound(ConnectFailed):
    """Raised if DNS has no such name, or no address for it, most often because of a typing error."""

    def __init__(self, host: str) -> None:
        super().__init__(f"No site was found under {host}. Check the address for typing errors.")


class TooManyRedirects(OutboundError):
    code = "too_many_redirects"


class BadResponse(OutboundError):
    """Raised if the server broke the connection, or sent no complete HTTP response."""

    code = "bad_response"
