"""/v1/outlets, /v1/engines and /v1/source-types: what one can publish to, generate and import from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiResponse, extend_schema

from accounts.api.base import openapi_parameters, openapi_responses
from config.core.api.etags import respond_with_tag, strong_tag, weak_tag
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import read_query
from config.core.api.row_serializers import listing
from config.core.ids import encode
from pipeline import plugins, resources
from pipeline.api.base import PipelineResource, path_id
from pipeline.engines.base import Engine
from pipeline.models import Outlet
from pipeline.sources.base import Source as SourceKind
from pipeline.switches import availability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response


class OutletView(PipelineResource):
    """The workspace's outlets."""

    scopes: ClassVar[Mapping[str, str | None]] = {"list": "generated:read", "retrieve": "generated:read"}

    def _rows(self) -> QuerySet[Any]:
        rows = Outlet.objects.of(self.caller.workspace).filter(deleted_at=None)
        # A test token reaches only simulated outlets, so it sees no others.
        return rows.filter(is_simulated=True) if self.caller.test else rows

    def _default_ids(self) -> list[str]:
        defaults = self.defaults()
        return list(defaults.test_outlets if self.caller.test else defaults.outlets)

    @extend_schema(
        operation_id="outlets_list",
        summary="List outlets",
        parameters=openapi_parameters(PAGING),
        responses=openapi_responses(
            {
                200: listing(resources.Outlet),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, PAGING)
        default_ids = self._default_ids()
        outlet_page = page(request, self._rows().values(*resources.Outlet.columns()), query)
        return outlet_page.respond(
            request,
            [
                resources.Outlet.serialize(row, is_default=encode("out", row["id"]) in default_ids)
                for row in outlet_page.rows
            ],
        )

    @extend_schema(
        operation_id="outlets_retrieve",
        summary="Read an outlet",
        parameters=[path_id("out")],
        responses=openapi_responses(
            {200: resources.Outlet, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "out", id)
        read_query(request, {})
        is_default = id in self._default_ids()
        return respond_with_tag(
            request,
            resources.Outlet.serialize(row, is_default=is_default),
            tag=strong_tag(row.version, int(is_default)),
        )


class EngineView(PipelineResource):
    """The engine outputs of this service."""

    scopes: ClassVar[Mapping[str, str | None]] = {"list": None}

    @extend_schema(
        operation_id="engines_list",
        summary="List engine outputs, their prices, and whether they can be run here",
        responses=openapi_responses(
            {
                200: listing(resources.Engine),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        data = [
            resources.Engine.serialize(
                engine,
                unavailability=availability.of_engine(engine),
                restrictions=availability.restrictions_of(engine),
            )
            for engine in plugins.every("engines", Engine)
        ]
        return _respond_whole_list(request, data)


class SourceTypeView(PipelineResource):
    """The types of sources of this service."""

    scopes: ClassVar[Mapping[str, str | None]] = {"list": None}

    @extend_schema(
        operation_id="source_types_list",
        summary="List types of sources, and whether they can work here",
        responses=openapi_responses(
            {
                200: listing(resources.SourceType),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        data = [
            resources.SourceType.serialize(
                kind,
                unavailability=availability.of_source(kind),
                restrictions=availability.settings_of_source(kind).values(),
            )
            for kind in plugins.every("sources", SourceKind)
        ]
        return _respond_whole_list(request, data)


def _respond_whole_list(request: Request, data: list[dict[str, Any]]) -> Response:
    """Return a list that is always one page."""
    read_query(request, {})
    body = {"data": data, "has_more": False, "next_cursor": None}
    return respond_with_tag(request, body, tag=weak_tag(body))
