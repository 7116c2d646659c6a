"""/v1/uploads: upload a file, to name it in a raw item's media."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import UploadFileException
from django.http.multipartparser import MultiPartParserError
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from accounts.access import idempotency
from accounts.api.base import openapi_responses
from config.core.api.fields import unknown_names
from config.core.api.jsonio import PayloadTooLarge, UnsupportedMediaType
from config.core.api.query_params import read_query
from config.core.errors import Detail, Invalid
from pipeline import limits, resources
from pipeline.api.base import POST_PARAMETERS, PipelineResource
from pipeline.media import uploads

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from django.core.files.uploadedfile import UploadedFile
    from django.http import HttpRequest
    from rest_framework.request import Request

    from pipeline.media.uploads.file_types import SniffedFile

_FIELD = "file"
_BODY = {
    "multipart/form-data": {
        "type": "object",
        "properties": {_FIELD: {"type": "string", "format": "binary"}},
        "required": [_FIELD],
        "additionalProperties": False,
    }
}


class UploadView(PipelineResource):
    """Takes uploads."""

    body_limit: ClassVar[int] = limits.UPLOAD_BODY_BYTES
    scopes: ClassVar[Mapping[str, str | None]] = {"create": "raw:write"}

    inspected: SniffedFile | None = None

    def request_fingerprint(self, request: Request) -> bytes:
        """Return the file's name and digest, by which a repeated request is recognized.

        The body can't be used, because each request has another boundary and a video doesn't fit into memory.
        The file is inspected here, because that takes long for a video and the transaction of the answer hasn't
        begun yet; a replay needs no inspection. Raises as `_read_file` and `uploads.inspect_file` do.
        """
        received = _read_file(request, self.body_limit)
        if not idempotency.has_answer(self.caller, request.META.get("HTTP_IDEMPOTENCY_KEY")):
            self.inspected = uploads.inspect_file(received)
        return json.dumps([received.name, received.digest()]).encode()

    @extend_schema(
        operation_id="uploads_create",
        summary="Upload a file",
        parameters=POST_PARAMETERS,
        request=_BODY,
        responses=openapi_responses({201: resources.Upload}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        """One file as `multipart/form-data`, in the field `file`; what it is, is seen from its bytes."""
        received = _read_file(request, self.body_limit)
        row = uploads.store_upload(
            self.caller.workspace,
            received,
            test=self.caller.test,
            actor=self.caller.actor,
            inspected=self.inspected,
        )
        body = resources.Upload.serialize(row)
        # No Location header: an upload can't be read, only named in a raw item by its id.
        return Response(body, status=201)


def _read_file(request: Request, max_bytes: int) -> uploads.ReceivedFile:
    """Return the form's only file.

    Raises, in the contract's order of errors, `PayloadTooLarge` (413) for a body over `max_bytes`, `AppError`
    (415) for another content type or encoding, and `Invalid` (400) for query parameters, a chunked body without a length,
    or a form that isn't one file.
    """
    django_request = request._request  # noqa: SLF001  DRF's own would parse it as JSON
    content_length = request.META.get("CONTENT_LENGTH") or ""
    if content_length.isdecimal() and int(content_length) > max_bytes:
        raise PayloadTooLarge(
            Detail(None, "payload_too_large", f"The body may have {max_bytes} bytes at most.")
        )
    content_type = (request.content_type or "").partition(";")[0].strip().lower()
    if content_type != "multipart/form-data" and content_length not in {"", "0"}:
        raise UnsupportedMediaType.because("Send the file as multipart/form-data, in the field file.")
    if request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower() not in {"", "identity"}:
        raise UnsupportedMediaType.because("Send the form as it is, without Content-Encoding.")
    read_query(request, {})
    if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower() and not content_length:
        raise Invalid.one(None, "length_required", "Send the body with its Content-Length.")
    return _read_form(django_request)


def _read_form(request: HttpRequest) -> uploads.ReceivedFile:
    """Return the file of the form.

    Raises `PayloadTooLarge` if the other fields are too large, and `Invalid` if the form can't be read or
    isn't exactly one file.
    """
    try:
        fields, files = request.POST, request.FILES
    except RequestDataTooBig as error:
        raise PayloadTooLarge(
            Detail(None, "payload_too_large", "The form holds more than a file.")
        ) from error
    except (MultiPartParserError, SuspiciousOperation, UploadFileException) as error:
        message = "The form can't be read; send multipart/form-data with one file in the field file."
        raise Invalid.one(None, "malformed_form", message) from error
    details = unknown_names([*fields, *files], [_FIELD], noun="field")
    if details:
        raise Invalid(*details)
    files_in_field: list[Any] = files.getlist(_FIELD)
    if len(files_in_field) != 1:
        message = "Send one file in the field file." if files_in_field else "Send a file in the field file."
        raise Invalid.one(_FIELD, "one_file" if files_in_field else "required", message)
    file: UploadedFile[Any] = files_in_field[0]
    return uploads.ReceivedFile(cast("BinaryIO", file.file), file.size or 0, file.name or "")
