"""/v1/outlets, /v1/personas and /v1/engines: what there is to publish to, to speak as and to make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiResponse, extend_schema

from accounts.api.base import answers, documented
from config.ground.api import PAGING, page, read_query, respond_with_tag, strong_tag, weak_tag
from config.ground.ids import encode
from pipeline import payloads, plugins
from pipeline.api import documents
from pipeline.api.base import PipelineResource, path_id
from pipeline.engines.base import Engine
from pipeline.models import Outlet, Persona

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response


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
            {200: documents.listing(documents.Outlet), 304: OpenApiResponse(description="Unchanged.")}
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
        responses=answers({200: documents.Outlet, 304: OpenApiResponse(description="Unchanged.")}, 404),
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


class PersonaView(PipelineResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"list": "generated:read", "retrieve": "generated:read"}

    def _rows(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = Persona.objects.of(self.caller.workspace).filter(deleted_at=None)
        return rows

    @extend_schema(
        operation_id="personas_list",
        summary="List personas",
        parameters=documented(PAGING),
        responses=answers(
            {200: documents.listing(documents.Persona), 304: OpenApiResponse(description="Unchanged.")}
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, PAGING)
        default_id = self.defaults().persona_id
        found = page(request, self._rows().values(*payloads.PERSONA_FIELDS), query)
        return found.respond(
            request, [payloads.persona(row, is_default=row["id"] == default_id) for row in found.rows]
        )

    @extend_schema(
        operation_id="personas_retrieve",
        summary="Read a persona",
        parameters=[path_id("per")],
        responses=answers({200: documents.Persona, 304: OpenApiResponse(description="Unchanged.")}, 404),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "per", id)
        read_query(request, {})
        is_default = row.pk == self.defaults().persona_id
        return respond_with_tag(
            request,
            payloads.persona(payloads.row_of(row), is_default=is_default),
            tag=strong_tag(row.version, int(is_default)),
        )


class EngineView(PipelineResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"list": None}

    @extend_schema(
        operation_id="engines_list",
        summary="List engine outputs and their prices",
        responses=answers(
            {200: documents.listing(documents.Engine), 304: OpenApiResponse(description="Unchanged.")}
        ),
    )
    def list(self, request: Request) -> Response:
        read_query(request, {})
        data = [
            {
                "name": engine.name,
                "bucket": engine.bucket,
                "credits": engine.credits,
                "made_from": list(engine.made_from),
                "version": engine.version,
            }
            for engine in plugins.every("engines", Engine)
        ]
        body = {"data": data, "has_more": False, "next_cursor": None}
        return respond_with_tag(request, body, tag=weak_tag(body))
