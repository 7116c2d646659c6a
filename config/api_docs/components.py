"""Writes response headers, error answers and parameters once, as components that operations refer to."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from config.api_docs.document import operations
from config.api_docs.openapi import answered_properties
from config.core.errors import CODES

_HEADERS: Final[dict[str, tuple[str, str]]] = {
    "X-Request-Id": ("Names this request in the logs, on the work that it queued and on its webhooks.", ".+"),
    "RateLimit-Policy": ("The workspace's limit.", r'^"workspace";q=[0-9]+;w=[0-9]+$'),
    "RateLimit": (
        "What remains of it, and in how many seconds it is full again.",
        r'^"workspace";r=[0-9]+;t=[0-9]+$',
    ),
    "Retry-After": ("Seconds to wait before asking again.", "^[0-9]+$"),
    "WWW-Authenticate": ("How to send the token.", "^Bearer"),
    "Location": ("The address of the created object.", "^/v1/"),
    "ETag": ("For If-None-Match; that of an object also for If-Match.", '^(W/)?".+"$'),
    "Link": ("The next page, where there is one.", '^<.+>; rel="next"$'),
    "Idempotency-Replayed": ("The answer is the first one to this Idempotency-Key.", "^true$"),
}
_SOMETIMES: Final = frozenset({"Link", "Idempotency-Replayed"})
"""The headers that a response of their kind may be without."""
# Responses with these statuses are sent before the limiter has counted the request.
_STATUSES_BEFORE_LIMITER: Final = frozenset({"401", "403", "503"})
_NAMES: Final = {
    "304": "Unchanged",
    "400": "InvalidRequest",
    "401": "Unauthenticated",
    "402": "QuotaExceeded",
    "403": "Forbidden",
    "404": "NotFound",
    "406": "NotAcceptable",
    "409": "Conflict",
    "412": "VersionConflict",
    "413": "PayloadTooLarge",
    "415": "UnsupportedMediaType",
    "422": "IdempotencyKeyReused",
    "429": "RateLimited",
    "503": "Unavailable",
}
"""The name of the component by status: of these an answer is the same for every operation."""


def with_headers(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Document the headers of every response; those that it always has are required."""
    result["components"]["headers"] = {
        name: _header(name, is_required=name not in _SOMETIMES) for name in _HEADERS
    }
    for method, _, operation in operations(result):
        is_list = "next_cursor" in answered_properties(result, operation, "200")
        for status, answer in operation["responses"].items():
            names = _header_names(method, status, is_list=is_list)
            # An upload can't be read again, so it has no address.
            is_created = status == "201" and operation["operationId"] != "uploads_create"
            if is_created or (status == "202" and operation["operationId"] == "raw_push"):
                names.append("Location")
            answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
            if status == "429":
                # An IP address that sends many bad tokens gets its 429 before any workspace is known.
                answer["headers"] |= {
                    name: _header(name, is_required=False) for name in ("RateLimit-Policy", "RateLimit")
                }
    return result


def _header(name: str, *, is_required: bool) -> dict[str, Any]:
    description, pattern = _HEADERS[name]
    return {
        "description": description,
        "required": is_required,
        "schema": {"type": "string", "pattern": pattern},
    }


def _header_names(method: str, status: str, *, is_list: bool) -> list[str]:
    """Return the names of the headers that a response has or may have."""
    names = ["X-Request-Id"]
    if status not in _STATUSES_BEFORE_LIMITER:
        names += ["RateLimit-Policy", "RateLimit"]
    if status == "401":
        names.append("WWW-Authenticate")
    if status in {"429", "503"}:
        names.append("Retry-After")
    if method == "get" and status in {"200", "304"}:
        names.append("ETag")
    if method == "get" and status == "200" and is_list:
        names.append("Link")
    if method == "post" and status.startswith("2"):
        names.append("Idempotency-Replayed")
    return names


def with_shared_answers(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Write the answers that are the same everywhere once, and say what each status means.

    Raises `ValueError` for an operation with an answer of its own.
    """
    answers: dict[str, Any] = {}
    for _, _, operation in operations(result):
        for status, answer in operation["responses"].items():
            name = _NAMES.get(status)
            if name is None:
                answer["description"] = answer["description"] or f"{HTTPStatus(int(status)).phrase}."
                continue
            if status != "304":
                answer["description"] = _describe_error(int(status))
            if answers.setdefault(name, answer) != answer:
                message = f"{operation['operationId']} answers {status} otherwise than the others."
                raise ValueError(message)
            operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    result["components"]["responses"] = dict(sorted(answers.items()))
    return result


def _describe_error(status: int) -> str:
    """Return the codes of a status, each with what it says."""
    lines = [f"- `{code}`: {error.message}" for code, error in CODES.items() if error.status == status]
    return "\n".join(lines)


def with_shared_parameters(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Write each parameter once that several operations have in the same words."""
    shared: dict[str, dict[str, Any]] = {}
    seen: list[dict[str, Any]] = []
    for _, _, operation in operations(result):
        for parameter in operation.get("parameters", ()):
            # Two that are called alike and differ, such as `status`, aren't the same everywhere.
            if parameter in seen:
                shared.setdefault(_parameter_name(parameter), parameter)
            seen.append(parameter)
    for _, _, operation in operations(result):
        for number, parameter in enumerate(operation.get("parameters", ())):
            name = _parameter_name(parameter)
            if shared.get(name) == parameter:
                operation["parameters"][number] = {"$ref": f"#/components/parameters/{name}"}
    result["components"]["parameters"] = dict(sorted(shared.items()))
    return result


def _parameter_name(parameter: dict[str, Any]) -> str:
    """Return the name of its component: for an id that of the kind of object, such as `SrcId`."""
    name: str = parameter["name"]
    if name == "id":
        prefix = parameter["schema"]["pattern"].removeprefix("^").partition("_")[0]
        return f"{prefix.title()}Id"
    return "".join(part[:1].upper() + part[1:] for part in name.replace("-", "_").split("_"))
