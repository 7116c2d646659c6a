"""Serves the OpenAPI document publicly and to every token, and its reference page to people.

The operator can close the document and the page to the public.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularSwaggerSplitView

from accounts.api.base import WorkspaceResource
from config.api_docs import guides
from config.api_docs.plain_schemas import as_plain, as_strict
from config.core.api.jsonio import dump
from config.core.api.query_params import read_query
from config.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


@cache
def _generated() -> Any:
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


def build_openapi() -> Any:
    """Generate the document and return it as a tree of dicts."""
    return as_plain(_generated())


def build_strict_openapi() -> Any:
    """Return the document with every rule of the server as JSON Schema, for tests that invent requests."""
    return as_strict(_generated())


@cache
def openapi_json() -> bytes:
    """Return the document as JSON; it is generated once per process."""
    return dump(build_openapi())


@require_safe
def openapi_public(request: HttpRequest) -> HttpResponse:
    """Answer the document to everybody. Raises `NotFound` if the operator has closed it."""
    del request
    if not settings.DOCS_ARE_PUBLIC:
        raise NotFound
    return HttpResponse(openapi_json(), content_type="application/json")


class OpenApiView(WorkspaceResource):
    """Returns the same document to every token, also if the public one is closed."""

    scopes: ClassVar[Mapping[str, str | None]] = {"retrieve": None}
    schema = None

    def retrieve(self, request: Request) -> HttpResponse:
        read_query(request, {})
        return HttpResponse(openapi_json(), content_type="application/json")


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
