"""A body as one JSON object, whatever form a bridge sends it in."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler, SkipFile
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from config.core.api.jsonio import MalformedJson, parse_json
from config.core.errors import AppError, Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_FIELDS_MOST: Final = 1000


class UnreadableForm(Invalid):
    """A form that breaks off, or that has too many fields."""


def read(body: bytes, content_type: str) -> dict[str, Any]:
    """JSON whatever its type is called, or a form's fields by name, a repeated one as a list.

    A form whose only field is `payload` with a JSON object in it, as GitHub, Slack and IFTTT send it, is that object.
    Files of a form are passed over. Raises `MalformedJson` and `Invalid`, with the rules of every other body.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _FORM:
        return _object_of(_urlencoded(body))
    if kind == _MULTIPART:
        return _object_of(_multipart(body, content_type))
    payload = parse_json(body.removeprefix(_BYTE_ORDER_MARK))
    if not isinstance(payload, dict):
        raise Invalid.one(None, "not_an_object", "Send a JSON object.")
    return payload


def _urlencoded(body: bytes) -> Iterable[tuple[str, str]]:
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MOST, errors="strict")
    except UnicodeDecodeError as error:
        raise _unreadable("The form is not UTF-8.") from error
    except ValueError as error:
        message = f"The form may have {_FIELDS_MOST} fields at most."
        raise _unreadable(message) from error


def _multipart(body: bytes, content_type: str) -> Iterable[tuple[str, str]]:
    # The parser would take a form that breaks off for a whole one.
    if not body.rstrip().endswith(b"--"):
        raise _unreadable("The form breaks off.")
    head = {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(len(body))}
    try:
        fields, _ = MultiPartParser(head, io.BytesIO(body), [_NoFiles()], "utf-8").parse()
    except (MultiPartParserError, SuspiciousOperation, RequestDataTooBig) as error:
        raise _unreadable("The form can't be read to its end.") from error
    return [(name, value) for name, values in fields.lists() for value in values]


def _object_of(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    inner = fields.get("payload")
    if len(fields) == 1 and isinstance(inner, str) and inner.lstrip().startswith("{"):
        try:
            payload: dict[str, Any] = parse_json(inner.encode())
        except MalformedJson:
            # Then it is a text that begins like one.
            pass
        else:
            return payload
    # The same rules as for JSON: no NUL, no half of a surrogate pair.
    checked: dict[str, Any] = parse_json(json.dumps(fields).encode())
    return checked


class _NoFiles(FileUploadHandler):
    def new_file(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        raise SkipFile

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        del raw_data, start

    def file_complete(self, file_size: int) -> None:
        del file_size


def _unreadable(message: str) -> AppError:
    return UnreadableForm.one(None, "malformed_form", message)
