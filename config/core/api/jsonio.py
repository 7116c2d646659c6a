"""Strict JSON in and out, and every exception as the contract's answer: what DRF's settings name.

Apart from `api`, whose views read those settings when they are made.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from config.core import limits
from config.core.errors import CODES, AppError, Detail, Invalid
from config.core.middleware import error_response, exception_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse
    from rest_framework.request import Request

# --- JSON in and out -------------------------------------------------------------------------------------------------


class JsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        del accepted_media_type, renderer_context
        if isinstance(data, DumpedJson):
            return data
        return b"" if data is None else dump(data)


class DumpedJson(bytes):
    """The JSON of an answer whose entity tag was made of it: it isn't written twice."""


def dump(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


class JsonOnly(BaseContentNegotiation):
    """Answers JSON whatever `Accept` says: an API client's default `*/*` and a browser's list get the same."""

    def select_parser(self, request: Request, parsers: Sequence[BaseParser]) -> BaseParser | None:  # type: ignore[override]
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        for parser in parsers:
            if parser.media_type == kind:
                return parser
        return None

    def select_renderer(  # type: ignore[override]
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        del format_suffix
        wanted = request.META.get("HTTP_ACCEPT", "")
        for renderer in renderers[1:]:
            if renderer.media_type in wanted:
                return renderer, renderer.media_type
        return renderers[0], renderers[0].media_type


class PayloadTooLarge(AppError):
    code = "payload_too_large"


class MalformedJson(AppError):
    code = "malformed_json"


class StrictJsonParser(BaseParser):
    """UTF-8 JSON within the limits of size and depth; no NaN, no NUL, no lone surrogates."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        del stream, media_type
        context = parser_context or {}
        return parse_json(
            raw_body(context["request"], most=getattr(context["view"], "body_limit", limits.BODY_BYTES))
        )


def raw_body(request: Request, *, most: int) -> bytes:
    """The body's bytes, read once; 413 by the announced length, before anything is read."""
    announced = request.META.get("CONTENT_LENGTH") or ""
    if announced.isdecimal() and int(announced) > most:
        raise _too_large(most)
    django_request = request._request  # noqa: SLF001  the DRF request hides the cached body
    if not announced and "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        _read_chunked(django_request, most)
    body: bytes = django_request.body
    if len(body) > most:
        raise _too_large(most)
    return body


def _read_chunked(request: HttpRequest, most: int) -> None:
    """Django takes a body without an announced length for an empty one, and an empty body publishes at once."""
    if hasattr(request, "_body"):
        return
    # The server says that its stream ends with the body; from another one nothing can be read without hanging.
    if not request.META.get("wsgi.input_terminated"):
        raise Invalid.one(None, "length_required", "Send the body with its Content-Length.")
    body: bytes = request.META["wsgi.input"].read(most + 1)
    request._body = body  # noqa: SLF001  as Django itself keeps it
    # DRF parses nothing where no length is told.
    request.META["CONTENT_LENGTH"] = str(len(body))


def _too_large(most: int) -> PayloadTooLarge:
    return PayloadTooLarge(Detail(None, "payload_too_large", f"The body may have {most} bytes at most."))


def _no_constants(name: str) -> Any:
    raise MalformedJson(Detail(None, "malformed_json", f"{name} is not JSON."))


def _finite(text: str) -> float:
    """1e999 is well-formed JSON and becomes infinity, which no database and no JSON can hold."""
    number = float(text)
    if math.isinf(number):
        raise Invalid.one(None, "number_too_large", f"The number {text[:40]} is too large.")
    return number


_ESCAPES_TO_CHECK: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def parse_json(body: bytes) -> Any:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise MalformedJson(Detail(None, "malformed_json", "The body is not UTF-8.")) from error
    try:
        parsed = json.loads(text, parse_constant=_no_constants, parse_float=_finite)
    except json.JSONDecodeError as error:
        message = f"The body is not JSON that can be read: {error}."
        raise MalformedJson(Detail(None, "malformed_json", message)) from error
    # Python converts no whole number of more than some thousand digits.
    except ValueError as error:
        raise Invalid.one(None, "number_too_large", "A number in the body has too many digits.") from error
    except RecursionError as error:
        raise _too_deep() from error
    # Few bodies have either, so most are not walked.
    if (
        text.count("{") + text.count("[") > limits.JSON_DEPTH
        or "\x00" in text
        or _ESCAPES_TO_CHECK.search(text)
    ):
        _refuse_strange_values(parsed)
    return parsed


_Place = tuple["_Place | None", "str | int"]
"""Of a value in a document: the place of what holds it, and its name or number there."""


def _too_deep() -> Invalid:
    return Invalid.one(None, "too_deep", f"JSON may be nested {limits.JSON_DEPTH} levels deep at most.")


def _refuse_strange_values(parsed: Any) -> None:
    # Where a value stands is spelled out for the one that is refused: a long name above many values would be copied for
    # each of them, a megabyte that becomes a hundred gigabytes.
    waiting: list[tuple[Any, _Place | None, int]] = [(parsed, None, 0)]
    while waiting:
        value, place, depth = waiting.pop()
        if isinstance(value, dict | list):
            if depth >= limits.JSON_DEPTH:
                raise _too_deep()
            members: Iterable[tuple[Any, Any]] = (
                value.items() if isinstance(value, dict) else enumerate(value)
            )
            for key, member in members:
                if isinstance(key, str):
                    _refuse_strange_text(key, place)
                if isinstance(member, dict | list | str):
                    waiting.append((member, (place, key), depth + 1))
        elif isinstance(value, str):
            _refuse_strange_text(value, place)


def _spelled(place: _Place | None) -> str | None:
    """The way to a value, such as `media[0].url`."""
    steps = []
    while place is not None:
        place, key = place
        steps.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(steps)).lstrip(".") or None


def _refuse_strange_text(text: str, place: _Place | None) -> None:
    if "\x00" in text:
        raise Invalid.one(_spelled(place), "nul_character", "Text may not hold the NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Invalid.one(
            _spelled(place), "lone_surrogate", "Text may not hold half of a surrogate pair."
        ) from error


# --- Errors ----------------------------------------------------------------------------------------------------------


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """Every exception of a view as the contract's answer."""
    del context
    if isinstance(exception, AppError | OperationalError | InterfaceError):
        return exception_response(exception)
    if isinstance(exception, serializers.ValidationError):
        return error_response("invalid_request", tuple(flatten_errors(exception.detail)))
    if isinstance(exception, Http404 | exceptions.NotFound):
        return error_response("not_found")
    if isinstance(exception, exceptions.MethodNotAllowed):
        return error_response("method_not_allowed")
    if isinstance(exception, exceptions.UnsupportedMediaType):
        return error_response("unsupported_media_type")
    if isinstance(exception, exceptions.ParseError):
        return error_response("malformed_json")
    if isinstance(exception, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        return error_response("unauthenticated", headers={"WWW-Authenticate": "Bearer"})
    if isinstance(exception, exceptions.PermissionDenied | PermissionDenied):
        return error_response("insufficient_scope")
    return exception_response(exception)


def flatten_errors(detail: Any, path: str = "") -> Iterable[Detail]:
    """DRF's nested errors as a flat list; lists of serializers come as a dict keyed by index."""
    if isinstance(detail, dict):
        for key, member in detail.items():
            if key == "non_field_errors":
                yield from flatten_errors(member, path)
            elif isinstance(key, int):
                yield from flatten_errors(member, f"{path}[{key}]")
            else:
                yield from flatten_errors(member, f"{path}.{key}".lstrip("."))
    elif isinstance(detail, list):
        for member in detail:
            yield from flatten_errors(member, path)
    else:
        yield Detail(path or None, getattr(detail, "code", "invalid"), str(detail))


def refuse_unless_json(request: Request) -> None:
    """A body in another form is 415, also where the view would not have looked at it."""
    kind = (request.content_type or "").partition(";")[0].strip().lower()
    if request._request.body and kind != "application/json":  # noqa: SLF001
        raise AppError(
            Detail(None, "unsupported_media_type", CODES["unsupported_media_type"].message),
            code="unsupported_media_type",
        )
