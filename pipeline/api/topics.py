"""/v1/topics: what personas may write about without a source document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses
from config.core.api.etags import conditions_on, respond_with_tag, strong_tag
from config.core.api.fields import (
    BoundedListField,
    Changes,
    PublicIdField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import filter_rows, flag, public_id, read_query
from config.core.api.row_serializers import listing
from config.core.clock import utc_now
from pipeline import limits, resources
from pipeline.api.base import IF_MATCH, NO_CONTENT, POST_PARAMETERS, PipelineResource, as_settings, path_id
from pipeline.api.inputs.fields import PatternField, WebAddressField
from pipeline.models import Topic as TopicRow
from pipeline.personas import topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

FILTERS: Final = {
    **PAGING,
    "persona": public_id("per").on("persona_id"),
    "source": public_id("src").on("source_id"),
    "is_active": flag().on("is_active"),
}
_DAY: Final = (
    "^((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))$"
)
_DAY_MESSAGES: Final = {"pattern": "Give a day of the year as MM-DD, such as 12-01."}


class EvidenceInput(StrictSerializer):
    schema_rules: ClassVar[Mapping[str, Any]] = {
        "anyOf": [{"required": ["url"]}, {"properties": {"text": {"minLength": 1}}, "required": ["text"]}]
    }

    url = WebAddressField(required=False)
    text = StrictCharField(
        max_length=limits.EVIDENCE_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="What it says; it may be said as a fact.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not any(attrs.values()):
            message = "Give an address, a text or both."
            raise serializers.ValidationError(message, code="required")
        return attrs


class SeasonInput(StrictSerializer):
    """From a day of the year to another, both included; it may span the new year."""

    # Its fields can't be attributes: `from` is a keyword of Python.
    def get_fields(self) -> dict[str, Any]:
        return {name: PatternField(_DAY, error_messages=_DAY_MESSAGES) for name in ("from", "to")}


class TopicInput(StrictSerializer):
    notes = StrictCharField(
        max_length=limits.TOPIC_NOTES_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="What may be said about it as a fact.",
    )
    angles = BoundedListField(
        child=StrictCharField(max_length=limits.ANGLE_CHARACTERS),
        max_length=limits.TOPIC_ANGLES,
        required=False,
        help_text="Angles; each has its own cooldown.",
    )
    evidence = BoundedListField(child=EvidenceInput(), max_length=limits.TOPIC_EVIDENCE, required=False)
    weight = StrictIntegerField(min_value=1, max_value=limits.TOPIC_WEIGHT, required=False)
    cooldown_days = StrictIntegerField(min_value=0, max_value=limits.TOPIC_COOLDOWN_DAYS, required=False)
    max_per_month = StrictIntegerField(min_value=1, max_value=31, required=False, allow_null=True)
    season = SeasonInput(required=False, allow_null=True)
    is_active = StrictBooleanField(required=False)
    persona = PublicIdField(
        "per", required=False, allow_null=True, help_text="The only persona that uses it; null: all."
    )
    title = PatternField(r"[\s\S]*\S[\s\S]*", max_length=limits.TOPIC_TITLE_CHARACTERS)


class TopicChanges(Changes, TopicInput):
    pass


class TopicView(PipelineResource):
    """The workspace's topics."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "sources:read",
        "retrieve": "sources:read",
        "create": "sources:write",
        "partial_update": "sources:write",
        "destroy": "sources:write",
    }

    def _rows(self) -> Any:
        return self.rows(TopicRow).filter(deleted_at=None)

    @extend_schema(
        operation_id="topics_list",
        summary="List topics",
        parameters=openapi_parameters(FILTERS),
        responses=openapi_responses(
            {200: listing(resources.Topic), 304: OpenApiResponse(description="Unchanged.")}
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, FILTERS)
        rows = filter_rows(self._rows(), query, FILTERS)
        topic_page = page(request, rows.values(*resources.Topic.columns()), query)
        return topic_page.respond(request, [resources.Topic.serialize(row) for row in topic_page.rows])

    @extend_schema(
        operation_id="topics_create",
        summary="Add a topic to the pool",
        parameters=POST_PARAMETERS,
        request=TopicInput,
        responses=openapi_responses({201: resources.Topic}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        values = self.read_body(request, TopicInput)
        topic = topics.create(
            self.caller.workspace, as_settings(values), test=self.caller.test, now=utc_now()
        )
        answer = resources.Topic.serialize(topic)
        headers = {"Location": f"/v1/topics/{answer['id']}", "ETag": _tag(topic)}
        return Response(answer, status=201, headers=headers)

    @extend_schema(
        operation_id="topics_retrieve",
        summary="Read a topic",
        parameters=[path_id("top")],
        responses=openapi_responses(
            {200: resources.Topic, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "top", id)
        read_query(request, {})
        answer = resources.Topic.serialize(row)
        return respond_with_tag(request, answer, tag=_tag(row))

    @extend_schema(
        operation_id="topics_update",
        summary="Change a topic, switch it off or on",
        parameters=[path_id("top"), IF_MATCH],
        request=TopicChanges,
        responses=openapi_responses({200: resources.Topic}, 404, 409, 412, 413, 415),
    )
    def partial_update(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "top", id)
        values = self.read_body(request, TopicChanges)
        with conditions_on(row, request) as expected_version:
            changed = topics.change(
                row,
                as_settings(values),
                now=utc_now(),
                expected_version=expected_version,
            )
        return Response(resources.Topic.serialize(changed), headers={"ETag": _tag(changed)})

    @extend_schema(
        operation_id="topics_delete",
        summary="Delete a topic; what was made of it stays",
        parameters=[path_id("top"), IF_MATCH],
        responses=openapi_responses({204: NO_CONTENT}, 404, 409, 412),
    )
    def destroy(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "top", id)
        self.refuse_input(request)
        with conditions_on(row, request) as expected_version:
            topics.delete(row, now=utc_now(), expected_version=expected_version)
        return Response(status=204)


def _tag(row: TopicRow) -> str:
    """Return a tag that changes with the topic's use too, because that doesn't change the version."""
    return strong_tag(row.version, row.last_used_at.isoformat() if row.last_used_at else "")
