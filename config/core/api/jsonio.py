"""Parses and renders JSON strictly, and answers every exception, for DRF's settings.

The classes that those settings name are apart from the views, which read the settings when they are imported.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from config.core import limits
from config.core.errors import CODES, AppError, Detail, Invalid
from config.core.json_encoding import dump
from config.core.middleware import error_response, exception_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.http import HttpRequest, HttpResponse
    from rest_framework.request import Request

# --- JSON in and out -------------------------------------------------------------------------------------------------


class JsonRenderer(BaseRenderer):
    """Renders compact UTF-8 JSON; `None` becomes an empty body."""

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
    """An answer that is JSON already, because its entity tag was computed from it."""


class PayloadTooLarge(AppError):
    """Raised for a body with more bytes than the view takes (413)."""

    code = "payload_too_large"


class UnsupportedMediaType(AppError):
    """Raised for a body of another content type, charset or encoding than the view takes (415)."""

    code = "unsupported_media_type"

    @classmethod
    def because(cls, message: str) -> UnsupportedMediaType:
        """Return the error with a single detail."""
        return cls(Detail(None, "unsupported_media_type", message))


class MalformedJson(AppError):
    """Raised for a body that isn't UTF-8 or isn't JSON (400)."""

    code = "malformed_json"


class StrictJsonParser(BaseParser):
    """Parses UTF-8 JSON within the limits of size and depth, without NaN, NUL or lone surrogates."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        del stream, media_type
        context = parser_context or {}
        max_bytes = getattr(context["view"], "body_limit", limits.BODY_BYTES)
        return parse_json(unpacked_body(context["request"], max_bytes=max_bytes), has_unique_keys=True)


def raw_body(request: Request, *, max_bytes: int) -> bytes:
    """Return the body's bytes, which are read once.

    Raises `PayloadTooLarge` (413) for more than `max_bytes`, before reading if the length is announced. Raises
    `Invalid` for a chunked body if the server can't tell where it ends.
    """
    announced = request.META.get("CONTENT_LENGTH") or ""
    if announced.isdecimal() and int(announced) > max_bytes:
        raise _too_large(max_bytes)
    django_request = request._request  # noqa: SLF001  the DRF request hides the cached body
    if not announced and "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        _read_chunked(django_request, max_bytes)
    body: bytes = django_request.body
    if len(body) > max_bytes:
        raise _too_large(max_bytes)
    return body


def unpacked_body(request: Request, *, max_bytes: int) -> bytes:
    """Return the body's bytes, unpacked if its `Content-Encoding` is gzip.

    Raises what `raw_body` does, `UnsupportedMediaType` (415) for another encoding, and `MalformedJson` for a body
    that isn't one whole gzip stream.
    """
    body = raw_body(request, max_bytes=max_bytes)
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if body and encoding not in {"", "identity"}:
        body = _unpack(body, encoding, max_bytes)
        # Kept as Django itself keeps it, without the encoding, because this is called several times.
        request._request._body = body  # noqa: SLF001
        request.META["CONTENT_LENGTH"] = str(len(body))
        del request.META["HTTP_CONTENT_ENCODING"]
    return body


def _unpack(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return the unpacked body, or raise as `unpacked_body` says if it would be larger than `max_bytes`, too."""
    if encoding not in {"gzip", "x-gzip"}:
        raise UnsupportedMediaType.because("Send the body as it is, or with Content-Encoding: gzip.")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        unpacked = unpacker.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise _malformed("The body is no gzip stream that can be read.") from error
    if len(unpacked) > max_bytes:
        raise _too_large(max_bytes)
    # Further streams behind the first are refused: to unpack millions of empty ones would take hours.
    if not unpacker.eof or unpacker.unused_data:
        raise _malformed("The body has to be one whole gzip stream.")
    return unpacked


def _malformed(message: str) -> MalformedJson:
    return MalformedJson(Detail(None, "malformed_json", message))


def _read_chunked(request: HttpRequest, max_bytes: int) -> None:
    """Read a chunked body, which Django takes for an empty one; a publish request without a body means at once.

    At most one byte more than `max_bytes` is read. Raises `Invalid` if the server can't tell where the body ends.
    """
    if hasattr(request, "_body"):
        return
    # Without this mark the server's stream doesn't end with the body, and reading it would hang.
    if not request.META.get("wsgi.input_terminated"):
        raise Invalid.one(None, "length_required", "Send the body with its Content-Length.")
    body: bytes = request.META["wsgi.input"].read(max_bytes + 1)
    request._body = body  # noqa: SLF001  as Django itself keeps it
    # DRF parses nothing without a length.
    request.META["CONTENT_LENGTH"] = str(len(body))


def _too_large(max_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(Detail(None, "payload_too_large", f"The body may have {max_bytes} bytes at most."))


def _refuse_constant(name: str) -> Any:
    """Raise `MalformedJson`, for NaN and Infinity, which Python's parser accepts."""
    message = f"{name} is not JSON."
    raise _malformed(message)


def _parse_finite_float(text: str) -> float:
    """Return the number. Raises `Invalid` if it is too large for a float.

    1e999 is well-formed JSON and becomes infinity, which no database and no JSON can hold.
    """
    number = float(text)
    if math.isinf(number):
        raise Invalid.one(None, "number_too_large", f"The number {text[:40]} is too large.")
    return number


BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_ESCAPES_TO_CHECK: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Matches the escapes of NUL and of the halves of surrogate pairs, such as `\\ud83d`."""


def _unique_keys(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Raises `MalformedJson` for a key that stands twice, of which readers take either value."""
    parsed = dict(members)
    if len(parsed) < len(members):
        twice = Counter(key for key, _ in members).most_common(1)[0][0]
        # The name may hold half of a surrogate pair, which no answer can.
        name = twice[:100].encode(errors="replace").decode()
        message = f"The key {name} stands twice in the same object."
        raise _malformed(message)
    return parsed


def parse_json(body: bytes, *, has_unique_keys: bool = False) -> Any:
    """Return the parsed body.

    Raises `MalformedJson` if it isn't UTF-8 or isn't JSON, with `has_unique_keys` also if a key stands twice in an
    object. Raises `Invalid` for numbers that are too large, too many levels, NUL and lone surrogates.
    """
    try:
        text = body.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        raise _malformed("The body is not UTF-8.") from error
    try:
        # Not orjson, which takes the last of two equal keys and makes a float of a whole number beyond 64 bits.
        parsed = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_parse_finite_float,
            object_pairs_hook=_unique_keys if has_unique_keys else None,
        )
    except json.JSONDecodeError as error:
        message = f"The body is not JSON that can be read: {error}."
        raise _malformed(message) from error
    # Python converts no whole number of more than some thousand digits.
    except ValueError as error:
        raise Invalid.one(None, "number_too_large", "A number in the body has too many digits.") from error
    except RecursionError as error:
        raise _too_deep() from error
    # Few bodies have any of these, so most are not walked.
    if (
        text.count("{") + text.count("[") > limits.JSON_DEPTH
        or "\x00" in text
        or _ESCAPES_TO_CHECK.search(text)
    ):
        _check_values(parsed)
    return parsed


_Path = tuple["_Path | None", "str | int"]
"""The path of a value in a document: its parent's path, and its name or index there."""


def _too_deep() -> Invalid:
    return Invalid.one(None, "too_deep", f"JSON may be nested {limits.JSON_DEPTH} levels deep at most.")


def _check_values(parsed: Any) -> None:
    """Raise `Invalid` for values that are nested too deep, and for text that no database stores."""
    # The path is formatted only for the value that is refused: otherwise a long name above many values would be copied
    # for each of them, so that a megabyte becomes a hundred gigabytes.
    pending: list[tuple[Any, _Path | None, int]] = [(parsed, None, 0)]
    while pending:
        value, path, depth = pending.pop()
        if isinstance(value, dict | list):
            if depth >= limits.JSON_DEPTH:
                raise _too_deep()
            members: Iterable[tuple[Any, Any]] = (
                value.items() if isinstance(value, dict) else enumerate(value)
            )
            for key, member in members:
                if isinstance(key, str):
                    _check_text(key, path)
                if isinstance(member, dict | list | str):
                    pending.append((member, (path, key), depth + 1))
        elif isinstance(value, str):
            _check_text(value, path)


def _format_path(path: _Path | None) -> str | None:
    """Return the path as text, such as `media[0].url`, or `None` for the whole document."""
    steps = []
    while path is not None:
        path, key = path
        steps.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(steps)).lstrip(".") or None


def _check_text(text: str, path: _Path | None) -> None:
    if "\x00" in text:
        raise Invalid.one(_format_path(path), "nul_character", "Text may not hold the NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Invalid.one(
            _format_path(path), "lone_surrogate", "Text may not hold half of a surrogate pair."
        ) from error


# --- Errors ----------------------------------------------------------------------------------------------------------


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """Return the API's answer to an exception of a view, also to one that nobody anticipated."""
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
    """Yield DRF's nested errors one by one; for a list of serializers DRF gives a dict keyed by index."""
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


_CHARSET: Final = re.compile(r'charset="?([^\s;"]+)')


def refuse_unless_json(request: Request) -> None:
    """Raise 415 for a body of another content type or charset, even if the view wouldn't have read it."""
    if not request._request.body:  # noqa: SLF001
        return
    content_type, _, parameters = (request.content_type or "").lower().partition(";")
    if content_type.strip() != "application/json":
        raise UnsupportedMediaType.because(CODES["unsupported_media_type"].message)
    charset = _CHARSET.search(parameters)
    if charset is not None and charset[1] not in {"utf-8", "utf8", "us-ascii"}:
        raise UnsupportedMediaType.because("Send the body as UTF-8.")
