"""/v1/generated: the generated items, people's decisions about them, and publishing them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses
from config.core.api.etags import conditions_on, respond_with_tag, weak_tag
from config.core.api.pagination import page_by
from config.core.api.query_params import read_query
from config.core.api.row_serializers import listing
from config.core.clock import utc_now
from pipeline import resources, search
from pipeline.api import search_pages
from pipeline.api.base import ACT_PARAMETERS, IF_MATCH, NO_CONTENT, PipelineResource, path_id
from pipeline.api.generated_items.filters import FILTERS, JOINED_FILTERS, expand_aliases
from pipeline.api.generated_items.rows import (
    assets_by_item,
    filter_items,
    items_by_key,
    publications_by_item,
    read_item_page,
    read_progress,
    validate_alt_texts,
)
from pipeline.api.generated_items.serialize import (
    item_response,
    item_tag,
    notes_on,
    serialize_explanation,
    serialize_rehearsal,
    serialize_whole,
)
from pipeline.api.inputs.generated_items import (
    GeneratedItemChanges,
    PublishInput,
    RegenerateInput,
    RejectInput,
    RevisionInput,
    read_moment,
    refuse_unless_schedulable,
)
from pipeline.generate import generation_plan, recoverable_failures
from pipeline.models import GeneratedItem, GeneratedItemStatus, runs_using
from pipeline.publish import requests as publish_requests
from pipeline.publish.validation import PublishWish, dry_run
from pipeline.review import decisions, explanation, regenerate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request


class GeneratedItemView(PipelineResource):
    """The workspace's generated items."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "generated:read",
        "retrieve": "generated:read",
        "partial_update": "generated:write",
        "destroy": "generated:write",
        "retry": "generated:write",
        "regenerate": "generated:write",
        "approve": "generated:approve",
        "reject": "generated:approve",
        "restore": "generated:approve",
        "publish": "generated:publish",
        "explain": "generated:read",
        "cancel": "generated:publish",
    }

    def _rows(self) -> Any:
        return self.rows(GeneratedItem).filter(deleted_at=None)

    @extend_schema(
        operation_id="generated_list",
        summary="List generated items",
        parameters=openapi_parameters(FILTERS),
        responses=openapi_responses(
            {
                200: listing(resources.GeneratedItem),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        query = expand_aliases(read_query(request, FILTERS))
        include = tuple(query.get("include", ()))
        filters = {
            name: value for name, value in query.items() if FILTERS[name].lookup or name in JOINED_FILTERS
        }

        caller = self.caller
        raw_item = filters.get("raw_item")
        runs = runs_using(raw_item, workspace_id=caller.workspace.pk) if raw_item else []
        conditions = {"workspace": caller.workspace.pk, "test": caller.test, "runs": runs, **filters}
        rows = filter_items(**conditions)
        if "q" in query:
            result_page = search_pages.search_page(
                request,
                query,
                rows,
                is_narrowed=bool(filters),
                find=lambda among: search.find_items(
                    caller.workspace.pk, query["q"], test=caller.test, among=among
                ),
                read=lambda rows, keys: items_by_key(rows, keys, include=include),
            )
        else:
            result_page = page_by(
                request,
                partial(read_item_page, **conditions, include=include),
                query,
                key_of=lambda row: row["id"],
            )
        now = utc_now()
        keys = [row["id"] for row in result_page.rows]
        publications, assets = publications_by_item(keys), assets_by_item(keys)
        progress = read_progress(
            [row["id"] for row in result_page.rows if row["status"] == GeneratedItemStatus.GENERATING]
        )
        item_rows = recoverable_failures.with_current_errors(self.caller.workspace, result_page.rows)
        data = [
            resources.GeneratedItem.serialize(
                row,
                publications=publications.get(row["id"], ()),
                assets=assets.get(row["id"], ()),
                requires_approval=self.caller.workspace.requires_approval,
                now=now,
                include=include,
                progress=progress.get(row["id"]),
            )
            for row in item_rows
        ]
        return result_page.respond(request, data)

    @extend_schema(
        operation_id="generated_retrieve",
        summary="Read a generated item",
        parameters=[path_id("gen")],
        responses=openapi_responses(
            {200: resources.GeneratedItem, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "gen", id)
        read_query(request, {})
        body = serialize_whole(row)
        return respond_with_tag(request, body, tag=item_tag(row, body))

    @extend_schema(
        operation_id="generated_update",
        summary="Edit a generated item",
        parameters=[path_id("gen"), IF_MATCH],
        request=GeneratedItemChanges,
        responses=openapi_responses({200: resources.GeneratedItem}, 404, 409, 412, 413, 415),
    )
    def partial_update(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "gen", id)
        changes = dict(self.read_body(request, GeneratedItemChanges))
        with conditions_on(row, request) as expected_version:
            if "assets" in changes:
                changes["alt_texts"] = validate_alt_texts(row, changes.pop("assets"))
            edited = decisions.edit(
                row, changes, by=self.caller.actor, now=utc_now(), expected_version=expected_version
            )
        return self._answer(edited, 200)

    @extend_schema(
        operation_id="generated_delete",
        summary="Erase a generated item's content",
        parameters=[path_id("gen"), IF_MATCH],
        responses=openapi_responses({204: NO_CONTENT}, 404, 409, 412),
    )
    def destroy(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "gen", id)
        self.refuse_input(request)
        with conditions_on(row, request) as expected_version:
            decisions.erase(row, now=utc_now(), expected_version=expected_version)
        return Response(status=204)

    @extend_schema(
        operation_id="generated_approve",
        summary="Approve the newest revision",
        parameters=[path_id("gen"), *ACT_PARAMETERS],
        request=RevisionInput,
        responses=openapi_responses({200: resources.GeneratedItem}, 404, 409, 412, 413, 415, 422),
    )
    def approve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "gen", id)
        revision = self.read_body(request, RevisionInput).get("revision")
        with conditions_on(row, request, revision=revision) as expected_version:
            approved = decisions.approve(
                row, by=self.caller.actor, now=utc_now(), expected_version=expected_version
            )
        return self._answer(approved, 200)

    @extend_schema(
        operation_id="generated_reject",
        summary="Reject a generated item",
        parameters=[path_id("gen"), *ACT_PARAMETERS],
        request=RejectInput,
        responses=openapi_responses({200: resources.GeneratedItem}, 404, 409, 412, 413, 415, 422),
    )
    def reject(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "gen", id)
        values = self.read_body(request, RejectInput)
        with conditions_on(row, request, revision=values.get("revision")) as expected_version:
            rejected = decisions.reject(
                row,
                reason=values.get("reason", ""),
                by=self.caller.actor,
                now=utc_now(),
                expected_version=expected_version,
            )
        return self._answer(rejected, 200)

    @extend_schema(
        operation_id="generated_restore",
        summary="Undo a rejection",
        parameters=[path_id("gen"), *ACT_PARAMETERS],
        request=RevisionInput,
        responses=openapi_responses({200: resources.GeneratedItem}, 404, 409, 412, 413, 415, 422),
    )
    def restore(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "gen", id)
        revision = self.read_body(request, RevisionInput).get("revision")
        with conditions_on(row, request, revision=revision) as expected_version:
            restored = decisions.restore(row, now=utc_now(), expected_version=expected_version)
        return self._answer(restored, 200)

    @extend_schema(
        operation_id="generated_retry",
        summary="Retry a failed item",
        parameters=[path_id("gen"), *ACT_PARAMETERS],
        request=RevisionInput,
        responses=openapi_responses({202: resources.GeneratedItem}, 402, 404, 409, 412, 413, 415, 422),
    )
    def retry(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "gen", id)
        revision = self.read_body(request, RevisionInput).get("revision")
        price = generation_plan.engine_named(row.engine_output).credits
        with (
            conditions_on(row, request, revision=revision) as expected_version,
            self.quota_before_conflict(price),
        ):
            queued = regenerate.retry(
                row, workspace=self.caller.workspace, now=utc_now(), expected_version=expected_version
            )
        return self._answer(queued, 202)

    @extend_schema(
        operation_id="generated_regenerate",
        summary="Make another variant",
        parameters=[path_id("gen"), *ACT_PARAMETERS],
        request=RegenerateInput,
        responses=openapi_responses({202: resources.GeneratedItem}, 402, 404, 409, 412, 413, 415, 422),
    )
    def regenerate(self, request: Request, id: str) -> Response:
        """A new variant of the same group; the answer is the new item."""
        row = self.find(self._rows(), "gen", id)
        values = self.read_body(request, RegenerateInput)
        price = generation_plan.engine_named(row.engine_output).credits
        with (
            conditions_on(row, request, revision=values.get("revision")) as expected_version,
            self.quota_before_conflict(price),
        ):
            variant = regenerate.regenerate(
                row,
                workspace=self.caller.workspace,
                now=utc_now(),
                hint=values.get("hint", ""),
                expected_version=expected_version,
            )
        return self._answer(variant, 202)

    @extend_schema(
        operation_id="generated_publish",
        summary="Publish now, schedule or reschedule",
        parameters=[path_id("gen"), *ACT_PARAMETERS],
        request=PublishInput,
        responses=openapi_responses(
            {202: resources.PublishedItem, 200: resources.DryRun}, 404, 409, 412, 413, 415, 422
        ),
    )
    def publish(self, request: Request, id: str) -> Response:
        """Publish now, schedule or re-time; `dry_run` runs every rule and stores nothing."""
        row = self.find(self._rows().select_related("workspace"), "gen", id)
        values = self.read_body(request, PublishInput)
        now = utc_now()
        wish = self._read_wish(values, now)
        with conditions_on(row, request, revision=values.get("revision")) as expected_version:
            if values.get("dry_run"):
                rehearsal = serialize_rehearsal(row, dry_run(row, wish, now=now))
                return Response({**rehearsal, "notes": notes_on(wish)})
            item, _ = publish_requests.request(
                row, wish, by=self.caller.actor, now=now, expected_version=expected_version
            )
        body = serialize_whole(item)
        return Response({**body, "notes": notes_on(wish)}, status=202, headers={"ETag": item_tag(item, body)})

    @extend_schema(
        operation_id="generated_cancel",
        summary="Cancel a schedule",
        parameters=[path_id("gen"), IF_MATCH],
        responses=openapi_responses({200: resources.GeneratedItem}, 404, 409, 412),
    )
    def cancel(self, request: Request, id: str) -> Response:
        """Cancel what is scheduled."""
        row = self.find(self._rows(), "gen", id)
        self.refuse_input(request)
        with conditions_on(row, request) as expected_version:
            cancelled = publish_requests.cancel(row, now=utc_now(), expected_version=expected_version)
        return self._answer(cancelled, 200)

    @extend_schema(
        operation_id="generated_explain",
        summary="Explain why it isn't published",
        parameters=[path_id("gen")],
        responses=openapi_responses(
            {200: resources.Explanation, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def explain(self, request: Request, id: str) -> Response:
        """Everything in the way, in order, each with the call that takes it away; nothing where it is about to go out."""
        row = self.find(self._rows().select_related("workspace", "raw_item"), "gen", id)
        read_query(request, {})
        body = serialize_explanation(row, explanation.explain(row, now=utc_now()))
        return respond_with_tag(request, body, tag=weak_tag(body))

    def _read_wish(self, values: dict[str, Any], now: Any) -> PublishWish:
        """Return the request to publish that the body describes.

        Raises `ValidationError` if a time doesn't exist, is past or is too far ahead.
        """
        overrides = values.get("overrides", {})
        for key, override in overrides.items():
            if "publish_at" in override:
                refuse_unless_schedulable(override["publish_at"], now, f"overrides.{key}.publish_at")
        zone = self.caller.workspace.timezone
        publish_at, clock = read_moment(values, workspace_zone=zone, now=now)
        return PublishWish(
            outlets=values.get("outlets"),
            publish_at=publish_at,
            clock=clock,
            is_queued="queue" in values,
            overrides=overrides,
            keep_siblings=values.get("keep_siblings", False),
            late_policy=values.get("late_policy"),
            max_lateness_minutes=values.get("max_lateness_minutes"),
        )

    def _answer(self, item: GeneratedItem, status: int) -> Response:
        return item_response(item, status)
