"""/v1/publications: items on outlets, and actions for those that didn't work."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses
from config.core.api.etags import conditions_on, respond_with_tag, strong_tag
from config.core.api.fields import NoFields
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import choices, filter_rows, public_id, read_query
from config.core.api.row_serializers import listing
from config.core.clock import utc_now
from pipeline import publish, resources
from pipeline.api.base import ACT_PARAMETERS, PipelineResource, path_id
from pipeline.api.inputs.generated_items import SettleInput
from pipeline.models import Attempt, Publication, PublicationStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from rest_framework.request import Request

FILTERS = {
    **PAGING,
    "status": choices(*PublicationStatus.values).on("status__in"),
    "generated_item": public_id("gen").on("item_id"),
    "outlet": public_id("out").on("outlet_id"),
}


class PublicationView(PipelineResource):
    """The publications of the workspace's items."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "generated:read",
        "retrieve": "generated:read",
        "reconcile": "generated:publish",
        "retry": "generated:publish",
        "attempts": "generated:read",
        "remove": "generated:publish",
        "settle": "generated:publish",
    }

    @extend_schema(
        operation_id="publications_list",
        summary="List publications",
        parameters=openapi_parameters(FILTERS),
        responses=openapi_responses(
            {
                200: listing(resources.Publication),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, FILTERS)
        rows = filter_rows(self.rows(Publication), query, FILTERS)
        publication_page = page(request, rows.values(*resources.Publication.columns()), query)
        now = utc_now()
        return publication_page.respond(
            request, [resources.Publication.serialize(row, now=now) for row in publication_page.rows]
        )

    @extend_schema(
        operation_id="publications_retrieve",
        summary="Read a publication",
        parameters=[path_id("pub")],
        responses=openapi_responses(
            {200: resources.Publication, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self.rows(Publication), "pub", id)
        read_query(request, {})
        body = resources.Publication.serialize(row, now=utc_now())
        # The delay changes without a new version, so the tag includes it.
        overdue_seconds = body["overdue_seconds"]
        return respond_with_tag(
            request, body, tag=strong_tag(row.version, *([overdue_seconds] if overdue_seconds else []))
        )

    @extend_schema(
        operation_id="publications_attempts",
        summary="List a publication's calls, and what each sent",
        parameters=[path_id("pub"), *openapi_parameters(PAGING)],
        responses=openapi_responses(
            {
                200: listing(resources.Attempt),
                304: OpenApiResponse(description="Unchanged."),
            },
            404,
        ),
    )
    def attempts(self, request: Request, id: str) -> Response:
        row = self.find(self.rows(Publication), "pub", id)
        query = read_query(request, PAGING)
        calls = Attempt.objects.of(self.caller.workspace).filter(publication=row)
        attempt_page = page(request, calls.values(*resources.Attempt.columns()), query)
        return attempt_page.respond(request, [resources.Attempt.serialize(row) for row in attempt_page.rows])

    @extend_schema(
        operation_id="publications_reconcile",
        summary="Look up an unknown outcome now",
        parameters=[path_id("pub"), *ACT_PARAMETERS],
        request=NoFields,
        responses=openapi_responses({202: resources.Publication}, 404, 409, 412, 413, 415, 422),
    )
    def reconcile(self, request: Request, id: str) -> Response:
        """Have an unknown outcome looked up at once."""
        row = self.find(self.rows(Publication), "pub", id)
        self.read_body(request, NoFields)
        now = utc_now()
        with conditions_on(row, request) as expected_version:
            changed = publish.reconcile_now(row, now=now, expected_version=expected_version)
        return _accepted_response(changed, now)

    @extend_schema(
        operation_id="publications_retry",
        summary="Retry a failed publication",
        parameters=[path_id("pub"), *ACT_PARAMETERS],
        request=NoFields,
        responses=openapi_responses({202: resources.Publication}, 404, 409, 412, 413, 415, 422),
    )
    def retry(self, request: Request, id: str) -> Response:
        """Try a failed publication again at once."""
        row = self.find(self.rows(Publication).select_related("item"), "pub", id)
        self.read_body(request, NoFields)
        now = utc_now()
        with conditions_on(row, request) as expected_version:
            changed = publish.retry(row, by=self.caller.actor, now=now, expected_version=expected_version)
        return _accepted_response(changed, now)

    @extend_schema(
        operation_id="publications_remove",
        summary="Delete a published post",
        parameters=[path_id("pub"), *ACT_PARAMETERS],
        request=NoFields,
        responses=openapi_responses({202: resources.Publication}, 404, 409, 412, 413, 415, 422),
    )
    def remove(self, request: Request, id: str) -> Response:
        """Have the post deleted at its platform; it is `removed` when that has worked, and stays published until then."""
        row = self.find(self.rows(Publication).select_related("item"), "pub", id)
        self.read_body(request, NoFields)
        now = utc_now()
        with conditions_on(row, request) as expected_version:
            changed = publish.request_removal(row, now=now, expected_version=expected_version)
        return _accepted_response(changed, now)

    @extend_schema(
        operation_id="publications_settle",
        summary="Record the outcome of a publication",
        parameters=[path_id("pub"), *ACT_PARAMETERS],
        request=SettleInput,
        responses=openapi_responses({200: resources.Publication}, 404, 409, 412, 413, 415, 422),
    )
    def settle(self, request: Request, id: str) -> Response:
        """Say whether a publication that was handed over, or whose outcome is unknown, is published."""
        row = self.find(self.rows(Publication).select_related("item"), "pub", id)
        report = self.read_body(request, SettleInput)
        now = utc_now()
        with conditions_on(row, request) as expected_version:
            settled = publish.settle_publication(
                row,
                was_sent=report["published"],
                url=report.get("url", ""),
                by=self.caller.actor,
                now=now,
                expected_version=expected_version,
            )
        return Response(resources.Publication.serialize(settled, now=now))


def _accepted_response(row: Publication, now: datetime) -> Response:
    """Return a response with status 202 and the publication."""
    return Response(resources.Publication.serialize(row, now=now), status=202)
