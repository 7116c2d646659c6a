"""Serves the OpenAPI document publicly and to every token, and its reference page to people.

The operator can close the document and the page to the public.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularSwaggerSplitView

from accounts.api.base import WorkspaceResource
from config.api_docs import guides
from config.api_docs.plain_schemas import as_plain, as_strict
from config.core.api.etags import weak_tag
from config.core.api.jsonio import DumpedJson
from config.core.api.query_params import read_query
from config.core.errors import NotFound
from config.core.json_encoding import dump

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


_MAX_AGE_SECONDS: Final = 300
"""How long a cache may keep the document; it changes with releases alone."""


@cache
def _generated() -> Any:
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


def build_openapi() -> Any:
    """Generate the document and return it as a tree of dicts."""
    return as_plain(_generated())


def build_strict_openapi() -> Any:
    """Return the document with every rule of the server as JSON Schema, for tests that invent requests."""
    return as_strict(_generated())


@dataclass(frozen=True)
class _Document:
    """The document as it is sent: plain, gzipped, and the tag of its bytes."""

    plain: bytes
    zipped: bytes
    tag: str


@cache
def _document() -> _Document:
    """Return the document as it is sent; it is generated once per process."""
    plain = dump(build_openapi())
    # Without a time in it, so that each process sends the same bytes.
    return _Document(plain, gzip.compress(plain, mtime=0), weak_tag(DumpedJson(plain)))


def _respond(request: HttpRequest) -> HttpResponse:
    """Answer the document, gzipped if the client takes that, or 304 if it has it already."""
    document = _document()
    tags = [tag.strip() for tag in request.META.get("HTTP_IF_NONE_MATCH", "").split(",")]
    response = HttpResponse(content_type="application/json")
    if "*" in tags or document.tag in tags:
        response = HttpResponse(status=304)
    elif _takes_gzip(request.META.get("HTTP_ACCEPT_ENCODING", "")):
        response["Content-Encoding"] = "gzip"
        response.content = document.zipped
    else:
        response.content = document.plain
    response["ETag"] = document.tag
    response["Vary"] = "Accept-Encoding"
    return response


def _takes_gzip(accept_encoding: str) -> bool:
    """Return whether the header names gzip, and not with a weight of zero."""
    codings = [coding.replace(" ", "").partition(";q=") for coding in accept_encoding.lower().split(",")]
    return any(name == "gzip" and (not weight or weight.strip("0.") != "") for name, _, weight in codings)


@require_safe
def openapi_public(request: HttpRequest) -> HttpResponse:
    """Answer the document to everybody. Raises `NotFound` if the operator has closed it."""
    if not settings.DOCS_ARE_PUBLIC:
        raise NotFound
    response = _respond(request)
    response["Cache-Control"] = f"public, max-age={_MAX_AGE_SECONDS}"
    # Pages of other origins, such as an editor of OpenAPI documents, may read it: it holds nobody's data.
    response["Access-Control-Allow-Origin"] = "*"
    response["Access-Control-Expose-Headers"] = "ETag"
    return response


class OpenApiView(WorkspaceResource):
    """Returns the same document to every token, also if the public one is closed."""

    scopes: ClassVar[Mapping[str, str | None]] = {"retrieve": None}
    schema = None

    def retrieve(self, request: Request) -> HttpResponse:
        read_query(request, {})
        response = _respond(request)
        response["Cache-Control"] = "private, no-cache"
        return response


class _Reference(SpectacularSwaggerSplitView):
    """Swagger UI with its script at its own URL, because pages may run no inline script (CSP)."""

    template_name = "docs/reference.html"
    url = "/openapi.json"
    permission_classes = ()
    authentication_classes = ()


_reference = _Reference.as_view()


@require_safe
def reference(request: HttpRequest) -> HttpResponseBase:
    """Show every operation, to read and to try."""
    guides.refuse_if_closed(request)
    response: HttpResponseBase = _reference(request)
    return response
