"""/v1/sources/:id/deliveries: what came to a webhook source, and what its mapping makes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models.functions import Substr
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from accounts import limits as accounts_limits
from accounts.api.base import openapi_parameters, openapi_responses, secret_answer
from config.core import limits as core_limits
from config.core.api.etags import conditions_on
from config.core.api.fields import (
    NoFields,
    PublicIdField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import choices, filter_rows, read_query
from config.core.api.row_serializers import listing, row_of
from config.core.clock import utc_now
from config.core.errors import Conflict
from config.core.ids import encode
from pipeline import limits, resources
from pipeline.api.base import ACT_PARAMETERS, POST_PARAMETERS, PipelineResource, path_id
from pipeline.api.inputs.fields import JsonObjectField, OpenObjectField
from pipeline.ingest.inbound_deliveries import secrets, try_and_replay
from pipeline.models import InboundDelivery, InboundDeliveryStatus, Source
from pipeline.sources.webhook import DEFAULTS, MAPPING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

FILTERS = {**PAGING, "status": choices(*InboundDeliveryStatus.values).on("status__in")}
DELIVERY_ID = OpenApiParameter(
    "delivery",
    {"type": "string", "pattern": "^ind_[0-7][0-9a-hjkmnp-tv-z]{25}$"},
    OpenApiParameter.PATH,
)
MappingField = extend_schema_field(MAPPING.schema())(type("MappingField", (JsonObjectField,), {}))
DefaultsField = extend_schema_field(DEFAULTS.schema())(type("DefaultsField", (JsonObjectField,), {}))


class MappingTrialInput(StrictSerializer):
    """A body, or a delivery that is kept with its own; and what isn't stored yet of the settings."""

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "oneOf": [{"required": ["payload"]}, {"required": ["delivery"]}]
    }

    payload = OpenObjectField(
        most_bytes=core_limits.BODY_BYTES, required=False, help_text="A body as it is sent."
    )
    delivery = PublicIdField("ind", required=False)
    mapping = MappingField(most_bytes=limits.METADATA_BYTES, required=False)
    defaults = DefaultsField(most_bytes=limits.METADATA_BYTES, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("payload" in attrs) == ("delivery" in attrs):
            message = "Give either payload or delivery."
            raise serializers.ValidationError(message, code="one_of")
        return attrs


class RotateInput(StrictSerializer):
    secret = StrictCharField(
        max_length=300, required=False, help_text="Default: we make one, if the sender allows it."
    )
    overlap_seconds = StrictIntegerField(
        min_value=0,
        max_value=int(accounts_limits.TOKEN_OVERLAP_MOST.total_seconds()),
        required=False,
        help_text="How long the old one keeps working; default a day.",
    )


class InboundDeliveryView(PipelineResource):
    """The deliveries of a webhook source, trials of its mapping, and its secret."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "sources:read",
        "replay": "sources:write",
        "dry_run": "sources:read",
        "rotate": "sources:write",
    }

    def _find_source(self, public_id: str) -> Source:
        source: Source = self.find(self.rows(Source).filter(deleted_at=None), "src", public_id)
        return source

    def _find_delivery(self, source: Source, public_id: str) -> InboundDelivery:
        delivery: InboundDelivery = self.find(
            self.rows(InboundDelivery).filter(source=source), "ind", public_id
        )
        return delivery

    @extend_schema(
        operation_id="inbound_deliveries_list",
        summary="List a webhook source's deliveries",
        parameters=[path_id("src"), *openapi_parameters(FILTERS)],
        responses=openapi_responses(
            {200: listing(resources.InboundDelivery), 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def list(self, request: Request, id: str) -> Response:
        source = self._find_source(id)
        query = read_query(request, FILTERS)
        rows = filter_rows(self.rows(InboundDelivery).filter(source=source), query, FILTERS)
        rows = rows.annotate(excerpt=Substr("body", 1, limits.INBOUND_EXCERPT)).values(
            *resources.InboundDelivery.columns()
        )
        delivery_page = page(request, rows, query)
        return delivery_page.respond(
            request, [resources.InboundDelivery.serialize(row) for row in delivery_page.rows]
        )

    @extend_schema(
        operation_id="inbound_deliveries_replay",
        summary="Process a delivery again with the current mapping",
        parameters=[path_id("src"), DELIVERY_ID, *POST_PARAMETERS],
        request=NoFields,
        responses=openapi_responses({200: resources.InboundDelivery}, 404, 409, 413, 415, 422),
    )
    def replay(self, request: Request, id: str, delivery: str) -> Response:
        row = self._find_delivery(self._find_source(id), delivery)
        self.read_body(request, NoFields)
        replayed = try_and_replay.replay(row, now=utc_now()).delivery
        return Response(resources.InboundDelivery.serialize(_row_of(replayed)) if replayed else None)

    @extend_schema(
        operation_id="inbound_deliveries_dry_run",
        summary="Preview a mapping on a body",
        parameters=[path_id("src"), *POST_PARAMETERS],
        request=MappingTrialInput,
        responses=openapi_responses({200: resources.MappingTrial}, 404, 409, 413, 415, 422),
    )
    def dry_run(self, request: Request, id: str) -> Response:
        source = self._find_source(id)
        trial_input = self.read_body(request, MappingTrialInput)
        if source.type != "webhook":
            message = "Only webhook sources have a mapping."
            raise Conflict.because("not_a_webhook", message, field="type")
        delivery = trial_input.get("delivery")
        trial = try_and_replay.try_settings(
            source,
            payload=trial_input.get("payload"),
            delivery=self._find_delivery(source, encode("ind", delivery)) if delivery else None,
            wishes={name: trial_input[name] for name in try_and_replay.TRIAL_SETTINGS if name in trial_input},
            now=utc_now(),
        )
        return Response(resources.MappingTrial.serialize(trial))

    @extend_schema(
        operation_id="sources_rotate_secret",
        summary="Rotate a webhook source's secret",
        parameters=[path_id("src"), *ACT_PARAMETERS],
        request=RotateInput,
        responses=openapi_responses({200: resources.InboundSecret}, 404, 409, 412, 413, 415, 422),
    )
    def rotate(self, request: Request, id: str) -> Response:
        source = self._find_source(id)
        rotation = self.read_body(request, RotateInput)
        seconds = rotation.get("overlap_seconds")
        overlap = accounts_limits.TOKEN_OVERLAP_DEFAULT if seconds is None else timedelta(seconds=seconds)
        with conditions_on(source, request) as expected_version:
            new_secret = secrets.rotate(
                source,
                secret=rotation.get("secret"),
                overlap=overlap,
                actor=self.caller.actor,
                expected_version=expected_version,
            )
        return secret_answer(Response({"secret": new_secret}))


def _row_of(delivery: InboundDelivery) -> dict[str, Any]:
    """Return a delivery's columns as the list reads them."""
    excerpt = None if delivery.body is None else bytes(delivery.body)[: limits.INBOUND_EXCERPT]
    return {**row_of(delivery), "excerpt": excerpt}
