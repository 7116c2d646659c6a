"""Defines every error code of the API with its status and message, and the base of anticipated errors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class ErrorCode:
    """The HTTP status and the default message of an error code."""

    status: int
    message: str


CODES: Final[Mapping[str, ErrorCode]] = {
    "invalid_request": ErrorCode(400, "Something in the request can't be used; detail names each field."),
    "malformed_json": ErrorCode(400, "The body is not JSON that can be read."),
    "invalid_cursor": ErrorCode(400, "This cursor belongs to another list or is broken; start without one."),
    "unauthenticated": ErrorCode(401, "Send a valid token: Authorization: Bearer cpk_live_…"),
    "quota_exceeded": ErrorCode(402, "The workspace's credits don't cover this."),
    "workspace_not_whitelisted": ErrorCode(
        403, "No operator has approved this workspace, or its access was revoked."
    ),
    "insufficient_scope": ErrorCode(403, "This token lacks a scope."),
    "not_found": ErrorCode(404, "There is nothing at this address."),
    "method_not_allowed": ErrorCode(405, "This address does not take this method; see the Allow header."),
    "conflict": ErrorCode(409, "The state of this object does not allow it."),
    "idempotency_in_progress": ErrorCode(
        409, "The first request with this Idempotency-Key is still running."
    ),
    "source_unavailable": ErrorCode(409, "Such a source can't work on this service now; detail says why."),
    "engine_unavailable": ErrorCode(409, "This service can't run such an engine now; detail says why."),
    "version_conflict": ErrorCode(
        412, "The object has changed since the version in If-Match; read it again."
    ),
    "payload_too_large": ErrorCode(413, "The body is larger than this address takes."),
    "unsupported_media_type": ErrorCode(415, "Send the body as application/json."),
    "idempotency_key_reused": ErrorCode(422, "This Idempotency-Key was used with another request."),
    "rate_limited": ErrorCode(429, "Too many requests; wait as long as Retry-After says."),
    "internal_error": ErrorCode(500, "Something failed on our side; the request id finds it in our logs."),
    "unavailable": ErrorCode(503, "The service can't answer right now; try again after Retry-After seconds."),
}


QUOTA_FIELDS: Final = ("limit", "used", "resets_at")
"""The names that an entry of `detail` may have in addition to field, code and message."""


@dataclass(frozen=True)
class Detail:
    """An entry of `detail`; `field` is a dotted path (`a.b[0]`), or `None` for the whole request.

    Answers show only the `QUOTA_FIELDS` of `extra`; the message says everything else.
    """

    field: str | None
    code: str
    message: str
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        quota = {name: self.extra[name] for name in QUOTA_FIELDS if name in self.extra}
        return {"field": self.field, "code": self.code, "message": self.message, **quota}


class AppError(Exception):
    """An anticipated error, which views answer in the API's form, with `headers` added; its code gives the status."""

    code: str = "internal_error"

    def __init__(
        self, *detail: Detail, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        if code is not None:
            self.code = code
        self.detail: tuple[Detail, ...] = detail
        self.headers: Mapping[str, str] = headers or {}
        super().__init__("; ".join(entry.message for entry in detail) or CODES[self.code].message)

    @property
    def status(self) -> int:
        """The HTTP status of the code."""
        return CODES[self.code].status


class Invalid(AppError):
    """Raised for a request with values that can't be used (400)."""

    code = "invalid_request"

    @classmethod
    def one(cls, field: str | None, code: str, message: str) -> Invalid:
        """Return the error with a single detail."""
        return cls(Detail(field, code, message))


class NotFound(AppError):
    """Raised for an object that doesn't exist for the caller (404)."""

    code = "not_found"


class Conflict(AppError):
    """Raised if the object's state doesn't allow an action (409); the message names what is possible."""

    code = "conflict"

    @classmethod
    def because(cls, code: str, message: str, *, field: str | None = "status") -> Conflict:
        """Return the error with a single detail."""
        return cls(Detail(field, code, message))


MAX_DETAILS: Final = 100
"""The most details in an answer: more don't help, and an answer must not be larger than its request."""


def error_body(code: str, detail: Sequence[Detail] = ()) -> dict[str, Any]:
    """Return the body of an error answer, with at most `MAX_DETAILS` entries.

    Without any it has one entry with the code's default message.
    """
    entries = [entry.as_json() for entry in detail[:MAX_DETAILS]] or [
        Detail(None, code, CODES[code].message).as_json()
    ]
    return {"error": code, "detail": entries}
