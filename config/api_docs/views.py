"""The OpenAPI document is served publicly and to every token, and its reference page shows it to people.

The operator can close what is public.
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
from config.core.api.jsonio import dump
from config.core.api.query_params import read_query
from config.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


def build_openapi() -> Any:
    """The document as a tree of dicts; made anew at each call."""
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


@cache
def openapi_json() -> bytes:
    """The document as JSON; made once in the life of a process."""
    return dump(build_openapi())


@require_safe
def openapi_public(request: HttpRequest) -> HttpResponse:
    """The document for everybody; 404 where the operator has closed it."""
    del request
    if not settings.DOCS_ARE_PUBLIC:
        raise NotFound
    return HttpResponse(openapi_json(), content_type="application/json")


class OpenApiView(WorkspaceResource):
    """The same document for every token, also where the public one is closed."""

    scopes: ClassVar[Mapping[str, str | None]] = {"retrieve": None}
    schema = None

    def retrieve(self, request: Request) -> HttpResponse:
        read_query(request, {})
        return HttpResponse(openapi_json(), content_type="application/json")


class _Reference(SpectacularSwaggerSplitView):
    """Swagger UI with its script at an address of its own, because pages may run no script of their own text (CSP)."""

    template_name = "docs/reference.html"
    url = "/openapi.json"
    permission_classes = ()
    authentication_classes = ()


_reference = _Reference.as_view()


@require_safe
def reference(request: HttpRequest) -> HttpResponseBase:
    """Every operation, to read and to try."""
    guides.refuse_if_closed(request)
    answer: HttpResponseBase = _reference(request)
    return answer
