"""Gives every request an id, keeps the pages' middleware off the API, bounds bodies and answers failures."""

from __future__ import annotations

import re
from contextlib import suppress
from http import HTTPStatus
from tempfile import TemporaryFile
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.core.exceptions import BadRequest, DisallowedHost, RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.db import InterfaceError, InternalError, OperationalError
from django.http import HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware

from config.core import errors, limits
from config.core.ids import uuid7
from config.core.json_encoding import dump

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    GetResponse = Callable[[HttpRequest], HttpResponseBase]
    View = TypeVar("View", bound=Callable[..., HttpResponseBase])

log = structlog.get_logger(__name__)
_VALID_ID: Final = re.compile(rf"[A-Za-z0-9._:-]{{1,{limits.REQUEST_ID_CHARACTERS}}}")
_STATUSES_WITHOUT_BODY: Final = (204, 304)
_API_PREFIXES: Final = ("/v1/", "/hooks/", "/healthz", "/readyz", "/feeds/", "/media/", "/openapi.json")
_LOGGED_PREFIXES: Final = ("/v1/", "/hooks/")
_JSON_TYPE: Final = "application/json"
_PAGE_CODES: Final[dict[int, str]] = {
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "payload_too_large",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limited",
    HTTPStatus.INTERNAL_SERVER_ERROR: "internal_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "unavailable",
}
"""The error codes of pages; another status is `invalid_request`, because the API's codes of it say more."""
_READ_ONLY_SQLSTATE: Final = "25006"
"""PostgreSQL's SQLSTATE for a write in a read-only transaction."""
_MAX_LOGGED_PATH: Final = 200
"""Characters of a path that are logged; the query isn't logged."""


def request_id() -> str:
    """Return the id of the request or task that this thread works on, or an empty text if there is none."""
    return str(structlog.contextvars.get_contextvars().get("request_id") or "")


class RequestIdMiddleware:
    """Accepts a valid `X-Request-Id` or makes one, and puts it on every log line and on the response.

    It also logs the answers of the API.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request; after a refusal for its length (413) the rest of an API body is read."""
        client_id = request.META.get("HTTP_X_REQUEST_ID", "")
        chosen_id = client_id if _VALID_ID.fullmatch(client_id) else f"req_{uuid7().hex}"
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=chosen_id)
        started = monotonic()
        try:
            response = self.get_response(request)
            if request.path.startswith(_LOGGED_PREFIXES):
                log.info(
                    "answered",
                    method=request.method,
                    path=request.path[:_MAX_LOGGED_PATH],
                    status=response.status_code,
                    seconds=round(monotonic() - started, 3),
                )
            if response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and is_api(request):
                _read_remaining_body(request)
            response["X-Request-Id"] = chosen_id
            _set_content_length(response)
            return response
        finally:
            structlog.contextvars.clear_contextvars()


def _read_remaining_body(request: HttpRequest) -> None:
    """Read the rest of a body that was refused because of its length.

    If the body is still being sent when the connection ends, a proxy answers its own 502 in place of our response.
    A body that is longer than `REFUSED_BODY_READ_BYTES`, or has no announced length, isn't read.
    """
    content_length = request.META.get("CONTENT_LENGTH") or ""
    if not content_length.isdecimal() or int(content_length) > limits.REFUSED_BODY_READ_BYTES:
        return
    with suppress(OSError):
        while request.read(65_536):
            pass


def _set_content_length(response: HttpResponseBase) -> None:
    """Set the length of a response that isn't streamed; without it the server would send chunks."""
    if isinstance(response, HttpResponse) and response.status_code not in _STATUSES_WITHOUT_BODY:
        response.headers.setdefault("Content-Length", str(len(response.content)))


class LastResortMiddleware:
    """Gives errors the contract's form: all at the API's addresses, elsewhere those of clients that want JSON."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if (
            response.status_code >= 400
            and (is_api(request) or _wants_json(request))
            and not response.get("Content-Type", "").startswith("application/json")
        ):
            kept = {name: response[name] for name in ("Allow", "Retry-After") if name in response}
            if is_api(request):
                return error_response(_code_for(response.status_code), headers=kept)
            return _page_error(response.status_code, headers=kept)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_api(request):
            return None
        return exception_response(exception)


def pages_only(middleware: type[Any]) -> type[Any]:
    """Return the middleware without effect on the API, which needs no sessions, CSRF or messages."""

    class PagesOnly(middleware):  # type: ignore[misc]  # the parent is an argument
        # The type of `get_response()` is unknown here, hence the annotated locals.
        def __call__(self, request: HttpRequest) -> HttpResponseBase:
            if is_api(request):
                unchanged: HttpResponseBase = self.get_response(request)
                return unchanged
            response: HttpResponseBase = super().__call__(request)
            return response

        # Django calls a `process_view` that exists, so it is defined only if the parent has one.
        if hasattr(middleware, "process_view"):

            def process_view(self, request: HttpRequest, *rest: Any) -> HttpResponseBase | None:
                if is_api(request):
                    return None
                response: HttpResponseBase | None = super().process_view(request, *rest)
                return response

    PagesOnly.__name__ = PagesOnly.__qualname__ = f"PagesOnly{middleware.__name__}"
    return PagesOnly


Csp = pages_only(CSPMiddleware)
Common = pages_only(CommonMiddleware)
Csrf = pages_only(CsrfViewMiddleware)
Authentication = pages_only(AuthenticationMiddleware)
Message = pages_only(MessageMiddleware)
XFrameOptions = pages_only(XFrameOptionsMiddleware)


def body_limit(max_bytes: int) -> Callable[[View], View]:
    """Mark a view whose form may have `max_bytes` bytes, with all files, instead of `RAW_BODY_BYTES`."""

    def mark(view: View) -> View:
        vars(view)["body_limit"] = max_bytes
        return view

    return mark


class BodyLimit:
    """Refuses a page's body that is announced as too large (413) or not announced (411), before it is read.

    Otherwise the check of the CSRF token would read a form with all its files, from any sender. A body beyond
    `RAW_BODY_BYTES` is also refused (413) without a login.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], *_rest: Any
    ) -> HttpResponse | None:
        """Return the refusal of a page's body, or `None` to let the view answer."""
        if is_api(request):
            return None
        # Twenty digits are enough for every length; Python refuses to read very long numbers.
        length = request.META.get("CONTENT_LENGTH") or ""
        max_bytes = getattr(view, "body_limit", limits.RAW_BODY_BYTES)
        if length.isdecimal() and limits.RAW_BODY_BYTES < int(length[:20]) <= max_bytes:
            # A body of that size is written to the disk while it arrives, so only people with a login may send one.
            user = getattr(request, "user", None)
            if user is None or not user.is_authenticated:
                message = "Log in first, then send the file again."
                return HttpResponse(f"{message}\n", status=413, content_type="text/plain")
        if length.isdecimal() and int(length[:20]) > max_bytes:
            message = f"This form may have {max_bytes / 2**20:.0f} MiB at most; choose a smaller file, or send less."
            return HttpResponse(f"{message}\n", status=413, content_type="text/plain")
        if not length and request.META.get("HTTP_TRANSFER_ENCODING"):
            message = "Send the form with its Content-Length."
            return HttpResponse(f"{message}\n", status=411, content_type="text/plain")
        return None


class UnnamedFiles(FileUploadHandler):
    """Stores large files of a form on disk without a name, so that a killed process leaves nothing.

    Django's files have names in the system's folder for temporary files, where nobody would look for leftovers.
    """

    file: UploadedFile[Any]

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.file = UploadedFile(
            TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR),  # noqa: SIM115  closed with the form
            self.file_name,
            self.content_type,
            0,
            self.charset,
            self.content_type_extra,
        )

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        del start
        self.file.write(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile[Any]:
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


def is_api(request: HttpRequest) -> bool:
    """Return whether the request is for an address that answers JSON or files, not pages."""
    return request.path_info.startswith(_API_PREFIXES) or request.path_info == "/v1"


def _wants_json(request: HttpRequest) -> bool:
    """Return whether the request sends JSON, or accepts no page and either accepts JSON or has a token."""
    if (request.content_type or "").lower() == _JSON_TYPE:
        return True
    accept = request.META.get("HTTP_ACCEPT", "").lower()
    has_token = request.META.get("HTTP_AUTHORIZATION", "").lower().startswith("bearer ")
    return "text/html" not in accept and (has_token or _JSON_TYPE in accept)


def _page_error(status: int, *, headers: dict[str, str]) -> HttpResponse:
    """Return a page's error as JSON, under its own status."""
    code = _PAGE_CODES.get(status, "invalid_request")
    message = errors.CODES[code].message if status in {404, 405, 500} else f"{HTTPStatus(status).phrase}."
    response = error_response(code, (errors.Detail(None, code, message),), headers=headers)
    response.status_code = status
    return response


def _code_for(status: int) -> str:
    """Return the first error code of a status that Django itself answered, or a general one if it has none."""
    for code, error_code in errors.CODES.items():
        if error_code.status == status:
            return code
    return "invalid_request" if status < 500 else "internal_error"


def _is_read_only(exception: Exception) -> bool:
    """Return whether a standby or read-only database refused a write, which is the driver's internal error."""
    return (
        isinstance(exception, InternalError)
        and getattr(exception.__cause__, "sqlstate", None) == _READ_ONLY_SQLSTATE
    )


def exception_response(exception: Exception) -> HttpResponse:
    """Return the API's answer to an exception, and log those of the database and unexpected ones."""
    if isinstance(exception, errors.AppError):
        return error_response(exception.code, exception.detail, headers=dict(exception.headers))
    if isinstance(exception, OperationalError | InterfaceError) or _is_read_only(exception):
        log.error("database_unavailable", error=str(exception))
        return error_response("unavailable", headers={"Retry-After": "5"})
    if isinstance(exception, RequestDataTooBig):
        return error_response("payload_too_large")
    if isinstance(exception, BadRequest | DisallowedHost | SuspiciousOperation):
        return error_response("invalid_request")
    log.error("unexpected_fault", exc_info=exception)
    return error_response("internal_error")


def error_response(
    code: str, detail: tuple[errors.Detail, ...] = (), *, headers: dict[str, str] | None = None
) -> HttpResponse:
    """Return the API's answer for an error code; `unavailable` always has a `Retry-After`."""
    response = HttpResponse(
        dump(errors.error_body(code, detail)),
        status=errors.CODES[code].status,
        content_type="application/json",
        headers=headers,
    )
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if code == "unavailable":
        response.headers.setdefault("Retry-After", "5")
    return response
