"""The OpenAPI document and its pages; the operator can close the public ones."""

from __future__ import annotations

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
    from rest_framework.response import Response

_document: dict[str, bytes] = {}


def document() -> Any:
    """The document as a tree of dicts; made anew at each call."""
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


def document_bytes() -> bytes:
    """The document as JSON; made once in the life of a process."""
    if "json" not in _document:
        _document["json"] = dump(document())
    return _document["json"]


@require_safe
def public_document(request: HttpRequest) -> HttpResponse:
    del request
    if not settings.DOCS_ARE_PUBLIC:
        raise NotFound
    return HttpResponse(document_bytes(), content_type="application/json")


class DocumentView(WorkspaceResource):
    """The same document for every token, also where the public one is closed."""

    scopes: ClassVar[Mapping[str, str | None]] = {"retrieve": None}
    schema = None

    def retrieve(self, request: Request) -> HttpResponse:
        read_query(request, {})
        return HttpResponse(document_bytes(), content_type="application/json")


class _Reference(SpectacularSwaggerSplitView):
    """The split view keeps to `script-src 'self'`."""

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


class NoSuchAddress(WorkspaceResource):
    """Under /v1 even "there is nothing here" is only said to a token."""

    scopes: ClassVar[Mapping[str, str | None]] = {"any": None}
    schema = None

    def any(self, request: Request, path: str = "") -> Response:
        del request, path
        raise NotFound

    def http_method_not_allowed(  # type: ignore[override]  # DRF hands in its own request
        self, request: Request, *args: Any, **kwargs: Any
    ) -> Response:
        """There is nothing here for any method, so none is named as allowed."""
        del request, args, kwargs
        raise NotFound


ANY_METHOD: dict[str, Any] = dict.fromkeys(("get", "post", "patch", "delete", "put", "options"), "any")
