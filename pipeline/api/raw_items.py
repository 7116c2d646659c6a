"""/v1/raw and /v1/estimate: push raw content, see what became of it, ask what it would cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiResponse, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses
from accounts.ledger import reports
from config.core import limits as core_limits
from config.core.api.etags import conditions_on, respond_with_tag, strong_tag, weak_tag
from config.core.api.fields import NoFields
from config.core.api.jsonio import flatten_errors, refuse_unless_json, unpacked_body
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import (
    EXCLUSIVE_END_DESCRIPTION,
    choices,
    filter_rows,
    moment_or_date,
    plain_text,
    public_id,
    read_query,
)
from config.core.api.row_serializers import listing
from config.core.clock import utc_now
from config.core.errors import CODES, AppError, Detail, Invalid
from config.core.ids import encode
from pipeline import limits, resources, search
from pipeline.api import search_pages
from pipeline.api.base import ACT_PARAMETERS, IF_MATCH, NO_CONTENT, POST_PARAMETERS, PipelineResource, path_id
from pipeline.api.inputs.raw_items import EstimateInput, RawBatchInput, RawItemInput
from pipeline.generate import generation_plan, raw_item_outcomes
from pipeline.ingest import erase_raw_item, plan_and_estimate, raw_content, replan, store_raw_item
from pipeline.media import uploads
from pipeline.models import (
    GeneratedItem,
    Generation,
    Persona,
    RawItem,
    RawItemStatus,
    Source,
    items_made_from,
)
from pipeline.states import OPEN_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from rest_framework.request import Request

    from pipeline.generate.generation_plan import GenerationPlan
    from pipeline.models import WorkspaceDefaults

FILTERS = {
    **PAGING,
    "q": search_pages.search_parameter(),
    "source": public_id("src").on("source_id"),
    "status": choices(*RawItemStatus.values).on("status__in"),
    "external_id": plain_text(limits.EXTERNAL_ID_CHARACTERS).on("external_id"),
    "created_after": moment_or_date().on("created_at__gte"),
    "created_before": moment_or_date(EXCLUSIVE_END_DESCRIPTION).on("created_at__lt"),
}
_SAMPLE_SENTENCE = "A sentence that an item of this source may well begin with."
_SAMPLE_BODY = " ".join([_SAMPLE_SENTENCE] * 12)
"""A body that is long enough for every text engine."""
_PUSH_BODY = PolymorphicProxySerializer(
    component_name="RawPush", serializers=[RawItemInput, RawBatchInput], resource_type_field_name=None
)


class RawItemView(PipelineResource):
    """The raw items of the workspace."""

    body_limit: ClassVar[int] = core_limits.RAW_BODY_BYTES
    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "raw:read",
        "retrieve": "raw:read",
        "create": "raw:write",
        "retry": "raw:write",
        "destroy": "raw:delete",
    }

    @extend_schema(
        operation_id="raw_list",
        summary="List raw items",
        parameters=openapi_parameters(FILTERS),
        responses=openapi_responses(
            {
                200: listing(resources.RawItem),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, FILTERS)
        rows = filter_rows(self.rows(RawItem).filter(deleted_at=None), query, FILTERS)
        if "q" in query:
            caller = self.caller
            item_page = search_pages.search_page(
                request,
                query,
                rows,
                is_narrowed=not query.keys() <= {*PAGING, "q"},
                find=lambda among: search.find_raw_items(
                    caller.workspace.pk, query["q"], test=caller.test, among=among
                ),
                read=search_pages.read_values(raw_item_outcomes.COLUMNS),
            )
        else:
            item_page = page(request, rows.values(*raw_item_outcomes.COLUMNS), query)
        return item_page.respond(
            request, raw_item_outcomes.serialize_raw_items(self.caller.workspace, item_page.rows)
        )

    @extend_schema(
        operation_id="raw_push",
        summary="Push raw content, one item or a batch",
        parameters=POST_PARAMETERS,
        request=_PUSH_BODY,
        responses=openapi_responses(
            {
                202: resources.PushedRawItem,
                200: resources.PushedRawItem,
                207: resources.Batch,
            },
            402,
            409,
            413,
            415,
            422,
        ),
    )
    def create(self, request: Request) -> Response:
        body = unpacked_body(request, max_bytes=self.body_limit)
        refuse_unless_json(request)
        data = request.data if body else {}
        if isinstance(data, dict) and "items" in data:
            return self._push_batch(self.read_body(request, RawBatchInput)["items"])
        if isinstance(data, list):
            raise Invalid.one(None, "not_an_object", 'Send a JSON object; several go as {"items": [...]}.')
        values = self.read_body(request, RawItemInput)
        pushed = self._push(values, self.defaults())
        answer = _serialize_pushed(pushed)
        headers = {"Location": f"/v1/raw/{answer['id']}"}
        return Response(answer, status=202 if pushed.outcome == "new" else 200, headers=headers)

    def _push_batch(self, items: Sequence[Any]) -> Response:
        """Push each item separately, so that a refused item doesn't stop the others."""
        defaults = self.defaults()
        entries = []
        for index, item in enumerate(items):
            try:
                pushed = self._push(_validate_item(item), defaults)
            except AppError as error:
                detail = error.detail or (Detail(None, error.code, CODES[error.code].message),)
                refusal = {"error": error.code, "detail": [entry.as_json() for entry in detail]}
                entries.append({"index": index, "status": error.status, **refusal})
            else:
                status = 202 if pushed.outcome == "new" else 200
                entries.append({"index": index, "status": status, "raw_item": _serialize_pushed(pushed)})
        return Response({"data": entries}, status=207)

    def _push(self, values: Mapping[str, Any], defaults: WorkspaceDefaults) -> store_raw_item.PushResult:
        source, content = _find_source_and_content(self, values, defaults)
        return store_raw_item.push(self.caller.workspace, source, content, defaults=defaults)

    @extend_schema(
        operation_id="raw_retrieve",
        summary="Read a raw item and its items",
        parameters=[path_id("raw")],
        responses=openapi_responses(
            {200: resources.RawItemDetail, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self.rows(RawItem), "raw", id)
        read_query(request, {})
        items = (
            GeneratedItem.objects.of(self.caller.workspace)
            .filter(items_made_from(row.pk, workspace_id=row.workspace_id), deleted_at=None)
            .order_by("id")
        )
        runs = Generation.objects.of(self.caller.workspace).filter(raw_item=row)
        open_runs = runs.filter(status__in=sorted(OPEN_RUNS)).exists()
        answer = {
            **raw_item_outcomes.serialize_raw_item(row),
            "generated": [encode("gen", item_id) for item_id in items.values_list("id", flat=True)],
            "complete": not open_runs
            and row.status
            not in {RawItemStatus.QUEUED, RawItemStatus.PROCESSING, RawItemStatus.WAITING_QUOTA},
        }
        # Outcomes change without the raw item's version.
        outcome = weak_tag(answer["outcomes"])[3:-1]
        tag = strong_tag(row.version, len(answer["generated"]), int(answer["complete"]), outcome)
        return respond_with_tag(request, answer, tag=tag)

    @extend_schema(
        operation_id="raw_retry",
        summary="Retry a failed, skipped or waiting raw item",
        parameters=[path_id("raw"), *ACT_PARAMETERS],
        request=NoFields,
        responses=openapi_responses({202: resources.RawItem}, 402, 404, 409, 412, 413, 415, 422),
    )
    def retry(self, request: Request, id: str) -> Response:
        row = self.find(self.rows(RawItem), "raw", id)
        self.read_body(request, NoFields)
        price = sum(generation_plan.engine_named(name).credits for name in row.engines) * row.variants
        with conditions_on(row, request) as expected_version, self.quota_before_conflict(price):
            queued = replan.retry(
                row, workspace=self.caller.workspace, now=utc_now(), expected_version=expected_version
            )
        return Response(raw_item_outcomes.serialize_raw_item(queued), status=202)

    @extend_schema(
        operation_id="raw_delete",
        summary="Erase a raw item's content",
        parameters=[path_id("raw"), IF_MATCH],
        responses=openapi_responses({204: NO_CONTENT}, 404, 412),
    )
    def destroy(self, request: Request, id: str) -> Response:
        row = self.find(self.rows(RawItem).filter(deleted_at=None), "raw", id)
        self.refuse_input(request)
        with conditions_on(row, request) as expected_version:
            erase_raw_item.erase(row, now=utc_now(), expected_version=expected_version)
        return Response(status=204)


class EstimateView(PipelineResource):
    """Estimates what a push would cost."""

    body_limit: ClassVar[int] = core_limits.RAW_BODY_BYTES
    scopes: ClassVar[Mapping[str, str | None]] = {"create": None}

    @extend_schema(
        operation_id="estimate",
        summary="Estimate what pushing it would cost; spends nothing",
        parameters=POST_PARAMETERS,
        request=EstimateInput,
        responses=openapi_responses({200: resources.Estimate}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        values = self.read_body(request, EstimateInput)
        defaults = self.defaults()
        source, content = _find_source_and_content(self, values, defaults)
        now = utc_now()
        estimate: Callable[..., GenerationPlan] = plan_and_estimate.estimate
        if not any(values.get(name) for name in ("title", "body", "url", "media")):
            # A source alone: estimate one item with text.
            content = replace(content, title=_SAMPLE_SENTENCE, body=_SAMPLE_BODY)
            estimate = plan_and_estimate.estimate_any
        plan = estimate(self.caller.workspace, source, content, defaults=defaults, now=now)
        usage = reports.usage(self.caller.workspace, now)
        return Response(
            {
                "credits": 0 if self.caller.test else plan.price,
                "engines": [
                    resources.EngineEstimate.serialize(share.engine, variants=share.variants)
                    for share in plan.shares
                ],
                "not_possible": list(plan.why_not),
                "available": None if self.caller.workspace.is_unlimited else usage.available,
            }
        )


def _validate_item(item: Any) -> dict[str, Any]:
    """Return the validated item of a batch. Raises `Invalid` if it breaks a rule of `RawItemInput`."""
    checked = RawItemInput(data=item)
    try:
        checked.is_valid(raise_exception=True)
    except serializers.ValidationError as error:
        raise Invalid(*flatten_errors(error.detail)) from error
    return dict(checked.validated_data)


def _find_source_and_content(
    view: PipelineResource, values: Mapping[str, Any], defaults: WorkspaceDefaults
) -> tuple[Source, raw_content.RawContent]:
    """Return the source and the content that a body names.

    Raises `Invalid` if the source, the persona or an upload doesn't exist.
    """
    source = defaults.test_push_source if view.caller.test else defaults.push_source
    if "source" in values:
        chosen = view.rows(Source).filter(pk=values["source"], deleted_at=None).first()
        if chosen is None:
            raise Invalid.one(
                "source", "unknown_source", "This workspace has no such source; GET /v1/sources."
            )
        source = chosen
    persona = values.get("persona")
    if (
        persona is not None
        and not Persona.objects.of(view.caller.workspace).filter(pk=persona, deleted_at=None).exists()
    ):
        raise Invalid.one(
            "persona", "unknown_persona", "This workspace has no such persona; GET /v1/personas."
        )
    content = content_of(values, persona_id=persona)
    return source, replace(
        content, media=uploads.add_mime_types(view.caller.workspace, content.media, test=view.caller.test)
    )


def content_of(values: Mapping[str, Any], *, persona_id: UUID | None) -> raw_content.RawContent:
    """Return the content that a validated body of `POST /raw` describes."""
    return raw_content.RawContent(
        external_id=values.get("external_id", ""),
        url=values.get("url", ""),
        title=values.get("title", ""),
        body=values.get("body", ""),
        body_format=values.get("body_format", ""),
        language=values.get("language", ""),
        author=values.get("author", ""),
        published_at=values.get("published_at"),
        media=values.get("media", ()),
        metadata=values.get("metadata", {}),
        engines=values.get("engines"),
        variants=values.get("variants"),
        persona_id=persona_id,
    )


def _serialize_pushed(pushed: store_raw_item.PushResult) -> dict[str, Any]:
    """Return the raw item of a push, and whether it is a duplicate or a revision."""
    return {
        **pushed.as_json(),
        "duplicate": pushed.outcome == "duplicate",
        "revised": pushed.outcome == "revised",
    }
