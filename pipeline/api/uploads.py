"""/v1/uploads: hand a file over, to name it in a raw item's media."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import UploadFileException
from django.http.multipartparser import MultiPartParserError
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from accounts.access import idempotency
from accounts.api.base import answers
from config.core.api.fields import unknown_names
from config.core.api.jsonio import PayloadTooLarge
from config.core.api.query_params import read_query
from config.core.errors import AppError, Detail, Invalid
from pipeline import limits, payloads
from pipeline.api import response_schemas
from pipeline.api.pipeline_resource import POST_PARAMETERS, PipelineResource
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
    body_limit: ClassVar[int] = limits.UPLOAD_BODY_BYTES
    scopes: ClassVar[Mapping[str, str | None]] = {"create": "raw:write"}

    judged: SniffedFile | None = None

    def sent(self, request: Request) -> bytes:
        """The file and its name: each sending has another boundary, and a video has no place in memory.

        It is judged here, before the transaction of the answer begins: a child takes its time with a video. A replay
        needs no judgement.
        """
        given = _read_file(request, self.body_limit)
        if not idempotency.has_answer(self.caller, request.META.get("HTTP_IDEMPOTENCY_KEY")):
            self.judged = uploads.inspect_file(given)
        return json.dumps([given.name, given.digest()]).encode()

    @extend_schema(
        operation_id="uploads_create",
        summary="Hand a file over",
        parameters=POST_PARAMETERS,
        request=_BODY,
        responses=answers({201: response_schemas.Upload}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        """One file as `multipart/form-data`, in the field `file`; what it is, is seen from its bytes."""
        given = _read_file(request, self.body_limit)
        row = uploads.store_upload(
            self.caller.workspace,
            given,
            test=self.caller.test,
            actor=self.caller.actor,
            inspected=self.judged,
        )
        shown = payloads.upload(payloads.row_of(row))
        # There is no address to read it from: whoever has the id names it in a raw item.
        return Response(shown, status=201)


def _read_file(request: Request, most: int) -> uploads.ReceivedFile:
    """The one file of the form. The order is the contract's: 413, 415, 400."""
    django_request = request._request  # noqa: SLF001  DRF's own would parse it as JSON
    announced = request.META.get("CONTENT_LENGTH") or ""
    if announced.isdecimal() and int(announced) > most:
        raise PayloadTooLarge(Detail(None, "payload_too_large", f"The body may have {most} bytes at most."))
    kind = (request.content_type or "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data" and announced not in {"", "0"}:
        message = "Send the file as multipart/form-data, in the field file."
        raise AppError(Detail(None, "unsupported_media_type", message), code="unsupported_media_type")
    read_query(request, {})
    if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower() and not announced:
        raise Invalid.one(None, "length_required", "Send the body with its Content-Length.")
    return _only_file(django_request)


def _only_file(request: HttpRequest) -> uploads.ReceivedFile:
    try:
        fields, sent = request.POST, request.FILES
    except RequestDataTooBig as error:
        raise PayloadTooLarge(
            Detail(None, "payload_too_large", "The form holds more than a file.")
        ) from error
    except (MultiPartParserError, SuspiciousOperation, UploadFileException) as error:
        message = "The form can't be read; send multipart/form-data with one file in the field file."
        raise Invalid.one(None, "malformed_form", message) from error
    details = unknown_names([*fields, *sent], [_FIELD], what="field")
    if details:
        raise Invalid(*details)
    found: list[Any] = sent.getlist(_FIELD)
    if len(found) != 1:
        message = "Send one file in the field file." if found else "Send a file in the field file."
        raise Invalid.one(_FIELD, "one_file" if found else "required", message)
    one: UploadedFile[Any] = found[0]
    return uploads.ReceivedFile(cast("BinaryIO", one.file), one.size or 0, one.name or "")
