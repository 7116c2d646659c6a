"""Reads a request body as one JSON object, from JSON or from either kind of form."""

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

_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_MULTIPART_TYPE: Final = "multipart/form-data"
_MAX_FIELDS: Final = 1000


class UnreadableForm(Invalid):
    """Raised for a form that breaks off or has too many fields."""


def read(body: bytes, content_type: str) -> dict[str, Any]:
    """Return JSON of any content type, or a form's fields by name, repeated ones as a list.

    A form whose only field is `payload` with a JSON object in it, as GitHub, Slack and IFTTT send it, is that
    object. Files of a form are skipped. Raises `MalformedJson` if the JSON can't be parsed, `UnreadableForm` if
    the form can't, and `Invalid` if the JSON is no object or breaks the rules of every other body.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == _FORM_TYPE:
        return _to_object(_parse_urlencoded(body))
    if media_type == _MULTIPART_TYPE:
        return _to_object(_parse_multipart(body, content_type))
    payload = parse_json(body)
    if not isinstance(payload, dict):
        raise Invalid.one(None, "not_an_object", "Send a JSON object.")
    return payload


def _parse_urlencoded(body: bytes) -> Iterable[tuple[str, str]]:
    """Return the pairs of an urlencoded form. Raises `UnreadableForm` if it isn't UTF-8 or has too many fields."""
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except UnicodeDecodeError as error:
        raise _unreadable_form("The form is not UTF-8.") from error
    except ValueError as error:
        message = f"The form may have {_MAX_FIELDS} fields at most."
        raise _unreadable_form(message) from error


def _parse_multipart(body: bytes, content_type: str) -> Iterable[tuple[str, str]]:
    """Return the pairs of a multipart form, without files. Raises `UnreadableForm` if it can't be parsed."""
    # The parser would accept a form that breaks off as complete.
    if not body.rstrip().endswith(b"--"):
        raise _unreadable_form("The form breaks off.")
    head = {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(len(body))}
    try:
        fields, _ = MultiPartParser(head, io.BytesIO(body), [_SkipFilesHandler()], "utf-8").parse()
    except (MultiPartParserError, SuspiciousOperation, RequestDataTooBig) as error:
        raise _unreadable_form("The form can't be read to its end.") from error
    return [(name, value) for name, values in fields.lists() for value in values]


def _to_object(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the fields as an object, or the JSON object in a sole `payload` field."""
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
            # The field is a text that only begins like a JSON object.
            pass
        else:
            return payload
    # Apply the same rules as to JSON: no NUL, no half of a surrogate pair.
    checked: dict[str, Any] = parse_json(json.dumps(fields).encode())
    return checked


class _SkipFilesHandler(FileUploadHandler):
    """An upload handler that skips every file."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        raise SkipFile

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        del raw_data, start

    def file_complete(self, file_size: int) -> None:
        del file_size


def _unreadable_form(message: str) -> AppError:
    return UnreadableForm.one(None, "malformed_form", message)
