"""/v1/sources: where raw content comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses, secret_answer
from config.core.api.etags import conditions_on, respond_with_tag, strong_tag
from config.core.api.fields import NoFields
from config.core.api.jsonio import flatten_errors
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import choice, choices, filter_rows, read_query
from config.core.api.row_serializers import listing
from config.core.clock import utc_now
from config.core.errors import AppError, Invalid
from pipeline import resources, search
from pipeline.api import search_pages
from pipeline.api.base import (
    ACT_PARAMETERS,
    IF_MATCH,
    NO_CONTENT,
    POST_PARAMETERS,
    PipelineResource,
    as_settings,
    path_id,
)
from pipeline.api.inputs.sources import SourceChanges, SourceInput, config_advice, source_as_meant
from pipeline.ingest import collect
from pipeline.ingest.inbound_deliveries import secrets
from pipeline.models import BrandSlot, Source, SourceEntry, SourceEntryDecision, SourceStatus
from pipeline.personas.lane_slots import with_picks
from pipeline.switches import availability

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rest_framework.request import Request

    from config.core.errors import Detail

FILTERS = {
    **PAGING,
    "q": search_pages.search_parameter("name and address"),
    "type": choice(*resources.SOURCE_TYPES).on("type"),
    "status": choices(*SourceStatus.values).on("status__in"),
}
ENTRY_FILTERS = {**PAGING, "decision": choices(*SourceEntryDecision.values).on("decision__in")}


class SourceView(PipelineResource):
    """The workspace's sources."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "sources:read",
        "retrieve": "sources:read",
        "create": "sources:write",
        "partial_update": "sources:write",
        "destroy": "sources:write",
        "poll": "sources:write",
        "preview": "sources:write",
        "entries": "sources:read",
        "slots": "sources:read",
    }

    without_effect: ClassVar[frozenset[str]] = frozenset({"preview"})

    def _rows(self) -> Any:
        return self.rows(Source).filter(deleted_at=None)

    def _read_settings(self, request: Request) -> collect.SourceSettings:
        """Return the validated body.

        Raises `Invalid` if the body breaks a rule. Settings next to `config`, such as `topics`, are also
        checked as if they stood in it, so that one error reports where they belong and what is wrong with them.
        """
        try:
            return collect.SourceSettings(**as_settings(self.read_body(request, SourceInput)))
        except ValidationError as error:
            data, known = cast("dict[str, Any]", request.data), SourceInput().fields
            remaining = _without_refused(source_as_meant(data, known), error)
            details = list(flatten_errors(error.detail))
            try:
                settings = collect.SourceSettings(**as_settings(SourceInput().run_validation(remaining)))
                collect.validate_source(self.caller.workspace, settings, test=self.caller.test, now=utc_now())
            except ValidationError:
                # Without a type nothing else can be checked.
                pass
            except availability.SourceUnavailable as further_error:
                # The suggested form alone isn't sufficient.
                instruction = "Put it into config, with what is said below of config"
                advice = config_advice(data, known, instruction=instruction)
                details = [*_with_advice(details, advice), *further_error.detail]
            except AppError as further_error:
                details += further_error.detail
            raise Invalid(*details) from error

    def _read_changes(self, request: Request, row: Source) -> dict[str, Any]:
        """Return the validated body of a change. Raises `Invalid`, as `_read_settings`, if it breaks a rule."""
        try:
            return as_settings(self.read_body(request, SourceChanges))
        except ValidationError as error:
            known = SourceChanges().fields
            data = {**cast("dict[str, Any]", request.data), "type": row.type}
            remaining = _without_refused(source_as_meant(data, known, row.config), error)
            advice = config_advice(data, known, row.config)
            details = _with_advice(flatten_errors(error.detail), advice)
            try:
                changes = as_settings(SourceChanges().run_validation(remaining))
                collect.validate_changes(row, changes, workspace=self.caller.workspace)
            except AppError as further_error:
                details += further_error.detail
            raise Invalid(*details) from error

    @extend_schema(
        operation_id="sources_list",
        summary="List sources",
        parameters=openapi_parameters(FILTERS),
        responses=openapi_responses(
            {
                200: listing(resources.Source),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, FILTERS)
        rows = filter_rows(self._rows(), query, FILTERS)
        if "q" in query:
            source_page = search_pages.search_page(
                request,
                query,
                rows,
                is_narrowed=True,
                find=lambda among: search.find_sources(rows if among is None else among, query["q"]),
                read=search_pages.read_values(resources.Source.columns()),
            )
        else:
            source_page = page(request, rows.values(*resources.Source.columns()), query)
        return source_page.respond(request, [resources.Source.serialize(row) for row in source_page.rows])

    @extend_schema(
        operation_id="sources_create",
        summary="Register a source",
        parameters=POST_PARAMETERS,
        request=SourceInput,
        responses=openapi_responses({201: resources.Source}, 402, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        settings = self._read_settings(request)
        registered = secrets.register(self.caller.workspace, settings, test=self.caller.test)
        body = resources.Source.serialize(registered.source, inbound_secret=registered.secret or None)
        response = Response(
            body,
            status=201,
            headers={"Location": f"/v1/sources/{body['id']}", "ETag": _tag(body)},
        )
        return secret_answer(response) if registered.secret else response

    @extend_schema(
        operation_id="sources_retrieve",
        summary="Read a source",
        parameters=[path_id("src")],
        responses=openapi_responses(
            {200: resources.Source, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "src", id)
        read_query(request, {})
        body = resources.Source.serialize(row)
        return respond_with_tag(request, body, tag=_tag(body))

    @extend_schema(
        operation_id="sources_update",
        summary="Change, pause or resume a source",
        parameters=[path_id("src"), IF_MATCH],
        request=SourceChanges,
        responses=openapi_responses({200: resources.Source}, 402, 404, 409, 412, 413, 415),
    )
    def partial_update(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "src", id)
        changes = self._read_changes(request, row)
        with conditions_on(row, request) as expected_version:
            changed = secrets.change(
                row,
                changes,
                workspace=self.caller.workspace,
                now=utc_now(),
                expected_version=expected_version,
            )
        body = resources.Source.serialize(changed.source, inbound_secret=changed.secret or None)
        return Response(body, headers={"ETag": _tag(body)})

    @extend_schema(
        operation_id="sources_delete",
        summary="Delete a source; what was made from it stays",
        parameters=[path_id("src"), IF_MATCH],
        responses=openapi_responses({204: NO_CONTENT}, 404, 409, 412),
    )
    def destroy(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "src", id)
        self.refuse_input(request)
        with conditions_on(row, request) as expected_version:
            collect.delete(row, now=utc_now(), expected_version=expected_version)
        return Response(status=204)

    @extend_schema(
        operation_id="sources_poll",
        summary="Poll a source now",
        parameters=[path_id("src"), *ACT_PARAMETERS],
        request=NoFields,
        responses=openapi_responses({202: resources.Source}, 404, 409, 412, 413, 415, 422),
    )
    def poll(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "src", id)
        self.read_body(request, NoFields)
        with conditions_on(row, request) as expected_version:
            polled = collect.poll_now(row, now=utc_now(), expected_version=expected_version)
        return Response(resources.Source.serialize(polled), status=202)

    @extend_schema(
        operation_id="sources_preview",
        summary="Preview a source; creates nothing",
        parameters=POST_PARAMETERS,
        request=SourceInput,
        responses=openapi_responses({200: resources.SourcePreview}, 409, 413, 415, 422),
    )
    def preview(self, request: Request) -> Response:
        settings = self._read_settings(request)
        source_preview = collect.preview(
            self.caller.workspace, settings, test=self.caller.test, now=utc_now()
        )
        return Response(resources.SourcePreview.serialize(source_preview))

    @extend_schema(
        operation_id="sources_entries",
        summary="The log of a source: what was done with each of its entries",
        parameters=[path_id("src"), *openapi_parameters(ENTRY_FILTERS)],
        responses=openapi_responses(
            {
                200: listing(resources.SourceEntry),
                304: OpenApiResponse(description="Unchanged."),
            },
            404,
        ),
    )
    def entries(self, request: Request, id: str) -> Response:
        source = self.find(self._rows(), "src", id)
        query = read_query(request, ENTRY_FILTERS)
        own_rows = SourceEntry.objects.of(self.caller.workspace).filter(source=source)
        rows = filter_rows(own_rows, query, ENTRY_FILTERS)
        entry_page = page(request, rows.values(*resources.SourceEntry.columns()), query)
        return entry_page.respond(request, [resources.SourceEntry.serialize(row) for row in entry_page.rows])

    @extend_schema(
        operation_id="sources_slots",
        summary="The log of a brand source: what each of its slots took, discarded and made",
        parameters=[path_id("src"), *openapi_parameters(PAGING)],
        responses=openapi_responses(
            {
                200: listing(resources.BrandSlot),
                304: OpenApiResponse(description="Unchanged."),
            },
            404,
        ),
    )
    def slots(self, request: Request, id: str) -> Response:
        source = self.find(self._rows(), "src", id)
        query = read_query(request, PAGING)
        slot_page = page(request, BrandSlot.objects.of(self.caller.workspace).filter(source=source), query)
        slots_with_picks = with_picks(self.caller.workspace.pk, slot_page.rows)
        return slot_page.respond(
            request,
            [resources.BrandSlot.serialize(entry.slot, picks=entry.picks) for entry in slots_with_picks],
        )


def _without_refused(as_meant: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
    """Return the fields of a refused body that have no error; `config` is kept, as its type checks it."""
    refused = cast("dict[str, Any]", error.detail)
    return {name: value for name, value in as_meant.items() if name == "config" or name not in refused}


def _with_advice(details: Iterable[Detail], advice: dict[str, str]) -> list[Detail]:
    """Return the details, with the advice in those of fields that `advice` names."""
    return [
        replace(detail, message=f"There is no field {detail.field}. {advice[detail.field]}")
        if detail.field in advice
        else detail
        for detail in details
    ]


def _tag(body: Mapping[str, Any]) -> str:
    """Return a tag that changes with polls too, because they don't change the version."""
    poll_values = (body["last_polled_at"], body["next_poll_at"], (body["last_error"] or {}).get("at"))
    return strong_tag(body["version"], body["status"], *(moment or "" for moment in poll_values))
