"""/v1/queues: the weekly slots of outlets, and what takes the next ones. /v1/hold: hold all publishing."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses
from config.core import ids
from config.core.api.etags import respond_with_tag, weak_tag
from config.core.api.fields import StrictCharField, StrictSerializer
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import read_query
from config.core.api.row_serializers import listing, row_of
from config.core.clock import utc_now
from config.core.datetimes import format_utc
from pipeline import publish, resources
from pipeline.api.base import NO_CONTENT, POST_PARAMETERS, PipelineResource, path_id
from pipeline.models import Outlet, Publication, PublicationStatus, PublishQueue
from pipeline.publish import workspace_hold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rest_framework.request import Request

    from pipeline.models import PublishHold

MAX_SLOTS_SHOWN: Final = 20
"""The most next slots that are shown with a queue."""

OutletsByQueue = dict[UUID | None, list[str]]


class QueueView(PipelineResource):
    """The workspace's queues."""

    scopes: ClassVar[Mapping[str, str | None]] = {"list": "generated:read", "retrieve": "generated:read"}

    @extend_schema(
        operation_id="queues_list",
        summary="List queues",
        parameters=openapi_parameters(PAGING),
        responses=openapi_responses(
            {200: listing(resources.Queue), 304: OpenApiResponse(description="Unchanged.")}
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, PAGING)
        queue_page = page(request, self._rows().values(*resources.Queue.columns()), query)
        outlets_by_queue = self._outlets_by_queue()
        return queue_page.respond(
            request,
            [
                resources.Queue.serialize(row, outlets=_outlets_of(row, outlets_by_queue))
                for row in queue_page.rows
            ],
        )

    @extend_schema(
        operation_id="queues_retrieve",
        summary="Read a queue and its next slots",
        parameters=[path_id("que")],
        responses=openapi_responses(
            {200: resources.QueueWithSlots, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "que", id)
        read_query(request, {})
        outlets = _outlets_of(row_of(row), self._outlets_by_queue())
        next_slots = self._read_next_slots(row, outlets)
        body = resources.QueueWithSlots.serialize(row, outlets=outlets, next_slots=next_slots)
        return respond_with_tag(request, body, tag=weak_tag(body))

    def _rows(self) -> Any:
        return PublishQueue.objects.of(self.caller.workspace)

    def _outlets_by_queue(self) -> OutletsByQueue:
        """Return the public ids of the outlets by the queue that they use; `None` stands for the default queue."""
        ids_by_queue: OutletsByQueue = {}
        rows = Outlet.objects.of(self.caller.workspace).filter(deleted_at=None).order_by("id")
        for key, queue in rows.values_list("id", "queue_id"):
            ids_by_queue.setdefault(queue, []).append(ids.encode("out", key))
        return ids_by_queue

    def _read_next_slots(self, queue: PublishQueue, outlets: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Return the queue's next slots as `NextSlot` takes them, with the publications scheduled for them."""
        now = utc_now()
        slots = tuple(islice(publish.moments_of(queue, after=now), MAX_SLOTS_SHOWN))
        takers: defaultdict[Any, list[Publication]] = defaultdict(list)
        rows = self.rows(Publication).filter(
            status=PublicationStatus.SCHEDULED,
            outlet_id__in=[ids.decode("out", outlet) for outlet in outlets],
            due_at__in=[slot.moment for slot in slots],
        )
        for row in rows.order_by("id"):
            takers[row.due_at].append(row)
        return [
            {"moment": slot.moment, "clock": slot.clock, "taken_by": takers[slot.moment]} for slot in slots
        ]


def _outlets_of(row: Mapping[str, Any], outlets_by_queue: OutletsByQueue) -> list[str]:
    """Return the outlets of a queue; those of the default queue include the outlets without a queue."""
    own_outlets = outlets_by_queue.get(row["id"], [])
    return [*own_outlets, *outlets_by_queue.get(None, [])] if row["is_default"] else own_outlets


class HoldInput(StrictSerializer):
    reason = StrictCharField(max_length=workspace_hold.REASON_CHARACTERS)


class HoldView(PipelineResource):
    """The workspace's hold on all publishing."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "retrieve": "generated:read",
        "create": "generated:publish",
        "destroy": "generated:publish",
    }

    @extend_schema(
        operation_id="hold_retrieve",
        summary="Read the hold and what it affects",
        responses=openapi_responses({200: resources.Hold, 304: OpenApiResponse(description="Unchanged.")}),
    )
    def retrieve(self, request: Request) -> Response:
        read_query(request, {})
        body = self._serialize_hold(workspace_hold.read_hold(self.caller.workspace))
        return respond_with_tag(request, body, tag=weak_tag(body))

    @extend_schema(
        operation_id="hold_create",
        summary="Hold all publishing",
        parameters=POST_PARAMETERS,
        request=HoldInput,
        responses=openapi_responses({200: resources.Hold}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        reason = self.read_body(request, HoldInput)["reason"]
        row = workspace_hold.hold_workspace(self.caller.workspace, reason=reason, by=self.caller.actor)
        return Response(self._serialize_hold(row))

    @extend_schema(
        operation_id="hold_delete",
        summary="Resume publishing",
        responses=openapi_responses({204: NO_CONTENT}, 404),
    )
    def destroy(self, request: Request) -> Response:
        self.refuse_input(request)
        workspace_hold.release_workspace(self.caller.workspace, by=self.caller.actor, now=utc_now())
        return Response(status=204)

    def _serialize_hold(self, row: PublishHold | None) -> dict[str, Any]:
        """Return the hold, or that there is none, with the scheduled publications."""
        coming, has_more = workspace_hold.coming_publications(
            self.caller.workspace, test=self.caller.test, now=utc_now()
        )
        return {
            "held": row is not None,
            "reason": row.reason if row else None,
            "by": row.set_by if row else None,
            "since": format_utc(row.created_at) if row else None,
            "scheduled": [resources.Coming.serialize(entry.publication, then=entry.what) for entry in coming],
            "more": has_more,
        }
