"""/v1/outlets, /v1/engines and /v1/source-types: what there is to publish to, to make and to take from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiResponse, extend_schema

from accounts.api.base import answers, documented
from config.core.api.etags import respond_with_tag, strong_tag, weak_tag
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import read_query
from config.core.ids import encode
from pipeline import payloads, plugins
from pipeline.api import response_schemas
from pipeline.api.pipeline_resource import PipelineResource, path_id
from pipeline.engines.base import Engine
from pipeline.models import Outlet
from pipeline.sources.base import Source as SourceKind
from pipeline.switches import availability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response

    from pipeline.plugins import Unavailability


class OutletView(PipelineResource):
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
        parameters=documented(PAGING),
        responses=answers(
            {
                200: response_schemas.listing(response_schemas.Outlet),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, PAGING)
        default_ids = self._default_ids()
        found = page(request, self._rows().values(*payloads.OUTLET_FIELDS), query)
        return found.respond(
            request,
            [payloads.outlet(row, is_default=encode("out", row["id"]) in default_ids) for row in found.rows],
        )

    @extend_schema(
        operation_id="outlets_retrieve",
        summary="Read an outlet",
        parameters=[path_id("out")],
        responses=answers(
            {200: response_schemas.Outlet, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "out", id)
        read_query(request, {})
        is_default = id in self._default_ids()
        return respond_with_tag(
            request,
            payloads.outlet(payloads.row_of(row), is_default=is_default),
            tag=strong_tag(row.version, int(is_default)),
        )


class EngineView(PipelineResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"list": None}

    @extend_schema(
        operation_id="engines_list",
        summary="List engine outputs, their prices, and whether they can be run here",
        responses=answers(
            {
                200: response_schemas.listing(response_schemas.Engine),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        data = [
            {
                "name": engine.name,
                "bucket": engine.bucket,
                "credits": engine.credits,
                "made_from": list(engine.made_from),
                "version": engine.version,
                **_standing(availability.of_engine(engine)),
                "restrictions": [_restriction(one) for one in availability.restrictions_of(engine)],
            }
            for engine in plugins.every("engines", Engine)
        ]
        return _whole(request, data)


class SourceTypeView(PipelineResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"list": None}

    @extend_schema(
        operation_id="source_types_list",
        summary="List types of sources, and whether they can work here",
        responses=answers(
            {
                200: response_schemas.listing(response_schemas.SourceType),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        data = [
            {
                "type": kind.kind,
                "label": kind.label,
                "fetches": kind.fetches,
                **_standing(availability.of_source(kind)),
                "restrictions": [_restriction(one) for one in availability.settings_of_source(kind).values()],
                "config_schema": kind.config_schema,
            }
            for kind in plugins.every("sources", SourceKind)
        ]
        return _whole(request, data)


def _whole(request: Request, data: list[dict[str, Any]]) -> Response:
    """A list that is always one page."""
    read_query(request, {})
    body = {"data": data, "has_more": False, "next_cursor": None}
    return respond_with_tag(request, body, tag=weak_tag(body))


def _standing(why: Unavailability | None) -> dict[str, Any]:
    return {
        "available": why is None,
        "reason": why.reason if why is not None else None,
        "remedy": why.remedy if why is not None else None,
    }


def _restriction(why: Unavailability) -> dict[str, Any]:
    return {"code": why.code, "field": why.field, "reason": why.reason, "remedy": why.remedy}
