"""/v1/events: the same envelopes as the webhooks, in a feed without gaps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import OpenApiResponse, extend_schema

from accounts.api.base import answers, documented
from config.core.api.views import (
    PAGING,
    Parameter,
    choices,
    open_position,
    read_query,
    respond_with_tag,
    seal_position,
    weak_tag,
)
from config.core.limits import PAGE_ROWS_DEFAULT
from pipeline import events
from pipeline.api import documents
from pipeline.api.base import PipelineResource
from pipeline.models import Event

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.response import Response

FILTERS: Mapping[str, Parameter] = {
    "limit": PAGING["limit"],
    "after": Parameter(
        str, description="The `next_cursor` of the page before; without it, from the beginning."
    ),
    "type": choices(*events.TYPES),
}
_KIND = "events"


class EventView(PipelineResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"list": "generated:read"}

    @extend_schema(
        operation_id="events_list",
        summary="Read events in order, without gaps",
        parameters=documented(FILTERS),
        responses=answers({200: documents.EventList, 304: OpenApiResponse(description="Unchanged.")}),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, FILTERS)
        size = query.get("limit", PAGE_ROWS_DEFAULT)
        # The place in the feed doesn't depend on the filter, so that a receiver may widen it and go on.
        after = open_position(request, query["after"], _KIND) if "after" in query else 0
        rows = self.rows(Event).filter(position__gt=after, body__isnull=False)
        if "type" in query:
            rows = rows.filter(type__in=query["type"])
        found = list(rows.order_by("position").values_list("position", "body")[: size + 1])
        shown = found[:size]
        last = shown[-1][0] if shown else after
        body = {
            "data": [json.loads(bytes(envelope)) for _, envelope in shown],
            "has_more": len(found) > size,
            "next_cursor": seal_position(request, last, _KIND) if last else None,
        }
        return respond_with_tag(request, body, tag=weak_tag(body))
