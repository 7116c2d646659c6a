"""The errors of calls to other servers."""

from __future__ import annotations

from typing import ClassVar


class OutboundError(Exception):
    """A call that brought no usable response; `str()` is a sentence for people.

    `may_have_reached` is False only when provably no byte of the request was sent.
    """

    code: ClassVar[str] = "outbound_error"

    def __init__(self, message: str, *, may_have_reached: bool = False) -> None:
        super().__init__(message)
        self.may_have_reached = may_have_reached


class AddressRefused(OutboundError):
    """The URL is malformed, or it leads to an address that may not be called."""

    code = "address_refused"


class TimedOut(OutboundError):
    code = "timed_out"


class ResponseTooLarge(OutboundError):
    code = "response_too_large"


class ConnectFailed(OutboundError):
    """The name did not resolve, no address took the connection, or TLS failed."""

    code = "connect_failed"


class NameNotFound(ConnectFailed):
    """DNS has no such name, or no address for it: most often a typing error."""

    def __init__(self, host: str) -> None:
        super().__init__(f"No site was found under {host}. Check the address for typing errors.")


class TooManyRedirects(OutboundError):
    code = "too_many_redirects"


class BadResponse(OutboundError):
    """The server broke the connection, or what it sent isn't a complete HTTP response."""

    code = "bad_response"
