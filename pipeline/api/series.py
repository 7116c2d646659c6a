"""/v1/series: digests that are made regularly, each time from what came in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses
from config.core import ids
from config.core.api.etags import (
    conditions_on,
    respond_with_tag,
    strong_tag,
    weak_tag,
)
from config.core.api.fields import (
    BoundedListField,
    Changes,
    NoFields,
    PublicIdField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
)
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import read_query
from config.core.api.row_serializers import listing, row_of
from config.core.clock import utc_now
from pipeline import limits, resources
from pipeline.api.base import ACT_PARAMETERS, IF_MATCH, NO_CONTENT, POST_PARAMETERS, PipelineResource, path_id
from pipeline.api.inputs.fields import PatternField
from pipeline.engines.newsletter_digest import MAX_STORIES, MIN_STORIES
from pipeline.engines.newsletter_digest import PLUGIN as DIGEST
from pipeline.models import GeneratedItem, OverlapChoice, SlotGapChoice
from pipeline.models import Series as SeriesRow
from pipeline.schedule import series
from pipeline.schedule.queues import MAX_NAME_CHARACTERS, MAX_SLOTS_PER_WEEK
from pipeline.text.local_time import CLOCK_PATTERN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rest_framework.request import Request

    from accounts.models import Workspace
    from pipeline.models import SeriesIssue as IssueRow

MAX_LISTED: Final = 50
"""The most sources, and the most outlets, that a series may name."""


class WeeklySlotInput(StrictSerializer):
    weekday = StrictIntegerField(min_value=0, max_value=6, help_text="0 is Monday.")
    time = PatternField(CLOCK_PATTERN, help_text="HH:MM on the clocks of `timezone`.")


class SeriesInput(StrictSerializer):
    timezone = StrictCharField(max_length=64, required=False, help_text="An IANA zone; the workspace's.")
    on_gap = StrictChoiceField(
        choices=SlotGapChoice.values, required=False, help_text="For a time that a clock change skips."
    )
    on_overlap = StrictChoiceField(
        choices=OverlapChoice.values, required=False, help_text="For a time that a clock change repeats."
    )
    window_days = StrictIntegerField(min_value=1, max_value=limits.SERIES_WINDOW_DAYS, required=False)
    items_least = StrictIntegerField(min_value=MIN_STORIES, max_value=MAX_STORIES, required=False)
    items_most = StrictIntegerField(min_value=MIN_STORIES, max_value=MAX_STORIES, required=False)
    sources = BoundedListField(
        child=PublicIdField("src"), max_length=MAX_LISTED, required=False, help_text="Empty: all."
    )
    persona = PublicIdField("per", required=False, allow_null=True, help_text="null: the workspace's.")
    outlets = BoundedListField(
        child=PublicIdField("out"),
        max_length=MAX_LISTED,
        required=False,
        help_text="Empty: the workspace's.",
    )
    paused = StrictBooleanField(required=False)
    name = PatternField(r"[\s\S]*\S[\s\S]*", max_length=MAX_NAME_CHARACTERS)
    slots = BoundedListField(child=WeeklySlotInput(), min_length=1, max_length=MAX_SLOTS_PER_WEEK)


class SeriesChanges(Changes, SeriesInput):
    pass


class SeriesView(PipelineResource):
    """The workspace's series of digests."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "generated:read",
        "retrieve": "generated:read",
        "create": "generated:write",
        "partial_update": "generated:write",
        "destroy": "generated:write",
        "make": "generated:write",
    }

    @extend_schema(
        operation_id="series_list",
        summary="List series",
        parameters=openapi_parameters(PAGING),
        responses=openapi_responses(
            {200: listing(resources.Series), 304: OpenApiResponse(description="Unchanged.")}
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, PAGING)
        series_page = page(request, self.rows(SeriesRow).filter(deleted_at=None), query)
        return series_page.respond(request, [resources.Series.serialize(row) for row in series_page.rows])

    @extend_schema(
        operation_id="series_create",
        summary="Create a series of digests",
        parameters=POST_PARAMETERS,
        request=SeriesInput,
        responses=openapi_responses({201: resources.Series}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        values = _as_settings(self.read_body(request, SeriesInput))
        row = series.create(
            self.caller.workspace, values, test=self.caller.test, now=utc_now(), by=self.caller.actor
        )
        answer = resources.Series.serialize(row)
        headers = {"Location": f"/v1/series/{answer['id']}", "ETag": _tag(row)}
        return Response(answer, status=201, headers=headers)

    @extend_schema(
        operation_id="series_retrieve",
        summary="Read a series: its next times, preview and history",
        parameters=[path_id("ser")],
        responses=openapi_responses(
            {200: resources.SeriesDetail, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self._find(id)
        read_query(request, {})
        now = utc_now()
        slots = series.next_slots(row, after=now, most=limits.SERIES_SHOWN)
        issues = list(row.issues.order_by("-id")[: limits.SERIES_SHOWN])
        answer = resources.SeriesDetail.serialize(
            row,
            next_slots=slots,
            holds_now=[
                ids.encode("raw", raw_item.pk) for raw_item in series.select_items(row, now=now).raw_items
            ],
            issues=_with_digests(self.caller.workspace, issues),
        )
        return respond_with_tag(request, answer, tag=_tag(row, answer))

    @extend_schema(
        operation_id="series_update",
        summary="Change, pause or resume a series",
        parameters=[path_id("ser"), IF_MATCH],
        request=SeriesChanges,
        responses=openapi_responses({200: resources.Series}, 404, 409, 412, 413, 415),
    )
    def partial_update(self, request: Request, id: str) -> Response:
        row = self._find(id)
        values = _as_settings(self.read_body(request, SeriesChanges))
        with conditions_on(row, request) as expected_version:
            changed = series.change(
                row, values, now=utc_now(), by=self.caller.actor, expected_version=expected_version
            )
        return Response(resources.Series.serialize(changed), headers={"ETag": _tag(changed)})

    @extend_schema(
        operation_id="series_delete",
        summary="End a series; its digests stay",
        parameters=[path_id("ser"), IF_MATCH],
        responses=openapi_responses({204: NO_CONTENT}, 404, 412),
    )
    def destroy(self, request: Request, id: str) -> Response:
        row = self._find(id)
        self.refuse_input(request)
        with conditions_on(row, request) as expected_version:
            series.delete(row, by=self.caller.actor, expected_version=expected_version)
        return Response(status=204)

    @extend_schema(
        operation_id="series_make",
        summary="Make a digest of the series now",
        parameters=[path_id("ser"), *ACT_PARAMETERS],
        request=NoFields,
        responses=openapi_responses({202: resources.SeriesIssue}, 402, 404, 409, 412, 413, 415, 422),
    )
    def make(self, request: Request, id: str) -> Response:
        """Beside those of its times; 409 `too_few_items` where there is too little to tell."""
        row = self._find(id)
        self.read_body(request, NoFields)
        with conditions_on(row, request) as expected_version, self.quota_before_conflict(DIGEST.credits):
            issue = series.make_now(row, by=self.caller.actor, expected_version=expected_version)
        (row_of_issue,) = _with_digests(self.caller.workspace, [issue])
        return Response(resources.SeriesIssue.serialize(row_of_issue), status=202)

    def _find(self, id: str) -> SeriesRow:
        row: SeriesRow = self.find(
            self.rows(SeriesRow).filter(deleted_at=None).select_related("workspace"), "ser", id
        )
        return row


def _with_digests(workspace: Workspace, rows: Sequence[IssueRow]) -> list[dict[str, Any]]:
    """Return the issues as `SeriesIssue` takes them, each with its digest if that still exists."""
    runs = [row.generation_id for row in rows if row.generation_id is not None]
    items_of_runs = GeneratedItem.objects.of(workspace).filter(generation_id__in=runs, deleted_at=None)
    items = items_of_runs.order_by("-variant_index")
    digests = dict(items.values_list("generation_id", "id"))
    return [{**row_of(row), "digest_id": digests.get(row.generation_id)} for row in rows]


def _tag(row: SeriesRow, answer: Mapping[str, Any] | None = None) -> str:
    """Return a tag of the version and of the answer, whose times and content change without the version."""
    digest = () if answer is None else (weak_tag(answer).removeprefix('W/"').removesuffix('"'),)
    return strong_tag(row.version, *digest)


def _as_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body's values by the model's names, with public ids."""
    settings = dict(values)
    for name, prefix in (("sources", "src"), ("outlets", "out")):
        if name in settings:
            settings[name] = [ids.encode(prefix, key) for key in settings[name]]
    for name, column in (("persona", "persona_id"), ("paused", "is_paused")):
        if name in settings:
            settings[column] = settings.pop(name)
    return settings
