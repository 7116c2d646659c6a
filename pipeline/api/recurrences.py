"""/v1/recurrences: evergreen items that recur every so many days, each time as a fresh variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses
from config.core.api.etags import (
    conditions_on,
    respond_with_tag,
    strong_tag,
    weak_tag,
)
from config.core.api.fields import (
    Changes,
    PublicIdField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
)
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import filter_rows, public_id, read_query
from config.core.api.row_serializers import listing
from config.core.clock import utc_now
from config.core.errors import Invalid
from pipeline import limits, resources
from pipeline.api.base import IF_MATCH, POST_PARAMETERS, PipelineResource, path_id
from pipeline.api.inputs.fields import PatternField
from pipeline.models import GeneratedItem, RecurrenceStatus
from pipeline.models import Recurrence as RecurrenceRow
from pipeline.schedule import recurring
from pipeline.text.local_time import CLOCK_PATTERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

_FILTERS: Final = {**PAGING, "generated_item": public_id("gen").on("item_id")}


class RecurrenceInput(StrictSerializer):
    time = PatternField(CLOCK_PATTERN, required=False, help_text="HH:MM on the workspace's clocks; 09:00.")
    generated_item = PublicIdField("gen")
    every_days = StrictIntegerField(min_value=1, max_value=limits.RECURRING_DAYS_MOST)


class RecurrenceChanges(Changes, RecurrenceInput):
    generated_item = None  # type: ignore[assignment]  # left out
    status = StrictChoiceField(
        choices=RecurrenceStatus.values, required=False, help_text="Stops or resumes it."
    )


class RecurrenceView(PipelineResource):
    """The recurrences of the workspace's items."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "generated:read",
        "retrieve": "generated:read",
        "create": "generated:write",
        "partial_update": "generated:write",
    }

    @extend_schema(
        operation_id="recurrences_list",
        summary="List the items that repeat",
        parameters=openapi_parameters(_FILTERS),
        responses=openapi_responses(
            {200: listing(resources.Recurrence), 304: OpenApiResponse(description="Unchanged.")}
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, _FILTERS)
        rows = filter_rows(self.rows(RecurrenceRow), query, _FILTERS)
        recurrence_page = page(request, rows, query)
        return recurrence_page.respond(
            request, [resources.Recurrence.serialize(row) for row in recurrence_page.rows]
        )

    @extend_schema(
        operation_id="recurrences_create",
        summary="Repeat an item",
        parameters=POST_PARAMETERS,
        request=RecurrenceInput,
        responses=openapi_responses({201: resources.Recurrence}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        """One that has stopped begins anew; 409 where it comes back already, or can't."""
        values = dict(self.read_body(request, RecurrenceInput))
        items = self.rows(GeneratedItem).filter(deleted_at=None)
        item = items.filter(pk=values.pop("generated_item")).first()
        if item is None:
            message = "This workspace has no such item."
            raise Invalid.one(field="generated_item", code="unknown_item", message=message)
        row = recurring.begin(item, **values, by=self.caller.actor, now=utc_now())
        answer = resources.Recurrence.serialize(row)
        headers = {"Location": f"/v1/recurrences/{answer['id']}", "ETag": strong_tag(row.version)}
        return Response(answer, status=201, headers=headers)

    @extend_schema(
        operation_id="recurrences_retrieve",
        summary="Read when an item repeats, and its last times",
        parameters=[path_id("rec")],
        responses=openapi_responses(
            {200: resources.RecurrenceDetail, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self._find(id)
        read_query(request, {})
        turns = row.turns.order_by("-id")[: limits.RECURRING_SHOWN]
        answer = resources.RecurrenceDetail.serialize(row, turns=turns)
        return respond_with_tag(request, answer, tag=_tag(row, answer))

    @extend_schema(
        operation_id="recurrences_update",
        summary="Change how often an item repeats, stop or resume it",
        parameters=[path_id("rec"), IF_MATCH],
        request=RecurrenceChanges,
        responses=openapi_responses({200: resources.Recurrence}, 404, 409, 412, 413, 415),
    )
    def partial_update(self, request: Request, id: str) -> Response:
        row = self._find(id)
        values = self.read_body(request, RecurrenceChanges)
        with conditions_on(row, request) as expected_version:
            changed = recurring.change(
                row, values, now=utc_now(), by=self.caller.actor, expected_version=expected_version
            )
        return Response(
            resources.Recurrence.serialize(changed), headers={"ETag": strong_tag(changed.version)}
        )

    def _find(self, id: str) -> RecurrenceRow:
        row: RecurrenceRow = self.find(self.rows(RecurrenceRow), "rec", id)
        return row


def _tag(row: RecurrenceRow, answer: Mapping[str, Any]) -> str:
    """Return a tag of the version and of the answer, whose times change without the version."""
    return strong_tag(row.version, weak_tag(answer).removeprefix('W/"').removesuffix('"'))
