"""/v1/events: the events in a feed without gaps, and their envelopes as the OpenAPI document's webhooks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiResponse, OpenApiWebhook, extend_schema
from rest_framework import serializers

from accounts.api.base import openapi_parameters, openapi_responses
from config.core.api.etags import respond_with_tag, weak_tag
from config.core.api.fields import MomentField, PublicIdField
from config.core.api.pagination import PAGING, open_position, seal_position
from config.core.api.query_params import Parameter, choices, filter_rows, read_query
from config.core.errors import Invalid
from config.core.limits import PAGE_ROWS_DEFAULT
from pipeline import events, resources
from pipeline.api.base import PipelineResource
from pipeline.models import Event

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.response import Response

FILTERS: Mapping[str, Parameter] = {
    "limit": PAGING["limit"],
    "cursor": Parameter(
        str, description="The `next_cursor` of the previous page; without it, from the beginning."
    ),
    "after": Parameter(str, description="Another name of `cursor`."),
    "type": choices(*events.TYPES).on("type__in"),
}
_FEED_KIND = "events"
_SERIALIZERS_BY_PREFIX: Final[dict[str, dict[str, type[serializers.Serializer[Any]]]]] = {
    "raw": {"raw_item": resources.RawItem},
    "generated": {"generated_item": resources.GeneratedItem},
    "published": {
        "generated_item": resources.GeneratedItem,
        "publication": resources.Publication,
    },
    "source": {"source": resources.Source},
    "outlet": {"outlet": resources.Outlet},
    "engine": {"raw_item": resources.RawItem, "outcome": resources.Outcome},
}
_SUMMARIES: Final = {
    "raw.ingested": "A new raw item entered the queue.",
    "raw.failed": "Nothing could be made from a raw item.",
    "raw.skipped": (
        "A raw item is stored but nothing is made from it; its reason says why. A new one emits this "
        "instead of raw.ingested."
    ),
    "generated.ready": "A variant is ready for review; once per item.",
    "generated.failed": "A variant failed; the error says why.",
    "engine.skipped": "A requested format can't be made from a raw item; its reason says why.",
    "published.success": "The item was published on one outlet.",
    "published.failed": "One attempt failed; `will_retry` says whether another follows.",
    "published.overdue": "A publication is still waiting 15 minutes after its scheduled time. Sent once per scheduled time.",
    "source.failing": "A source could not be read several times in a row, or is gone.",
    "outlet.needs_reconnect": "An outlet's permission has expired.",
    "webhook.test": "A test of the endpoint.",
}


TEST: Final = "webhook.test"
"""The event that the test button sends; it isn't in the feed, so it isn't one of `events.TYPES`."""


class EventView(PipelineResource):
    """The event feed."""

    scopes: ClassVar[Mapping[str, str | None]] = {"list": "generated:read"}

    @extend_schema(
        operation_id="events_list",
        summary="Read events in order, without gaps",
        parameters=openapi_parameters(FILTERS),
        responses=openapi_responses(
            {200: resources.EventList, 304: OpenApiResponse(description="Unchanged.")}
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, FILTERS)
        size = query.get("limit", PAGE_ROWS_DEFAULT)
        # The position in the feed doesn't depend on the filter, so that a receiver may change the filter and go on.
        if "cursor" in query and "after" in query:
            raise Invalid.one("after", "conflicting", "Give either cursor or after: they are the same.")
        cursor = query.get("cursor", query.get("after"))
        after = 0 if cursor is None else open_position(request, cursor, _FEED_KIND)
        own_rows = self.rows(Event).filter(position__gt=after, body__isnull=False)
        rows = filter_rows(own_rows, query, FILTERS)
        rows_read = list(rows.order_by("position").values_list("position", "body")[: size + 1])
        rows_shown = rows_read[:size]
        last = rows_shown[-1][0] if rows_shown else after
        body = {
            "data": [json.loads(bytes(envelope)) for _, envelope in rows_shown],
            "has_more": len(rows_read) > size,
            "next_cursor": seal_position(request, last, _FEED_KIND) if last else None,
        }
        return respond_with_tag(request, body, tag=weak_tag(body))


def _data_fields(event_type: str) -> dict[str, Any]:
    """Return the fields of the `data` of this type of event."""
    if event_type == TEST:
        return {"endpoint": PublicIdField("whe"), "message": serializers.CharField()}
    return {
        key: serializer() for key, serializer in _SERIALIZERS_BY_PREFIX[event_type.partition(".")[0]].items()
    }


def _envelope_serializer(event_type: str) -> type[serializers.Serializer[Any]]:
    """Return the serializer of an event's envelope, for the OpenAPI document."""
    name = "".join(part.title() for part in event_type.replace("_", ".").split("."))
    data = _data_fields(event_type)
    if event_type == "published.failed":
        data |= {
            "error": resources.PublicationError(allow_null=True),
            "will_retry": serializers.BooleanField(),
            "next_attempt_at": MomentField(allow_null=True),
        }
    members: dict[str, Any] = {
        "id": PublicIdField("evt", help_text="The same for every attempt and every endpoint: `webhook-id`."),
        "type": serializers.ChoiceField(choices=(event_type,)),
        "timestamp": MomentField(),
        "workspace": PublicIdField("ws"),
        "data": type(f"{name}Data", (serializers.Serializer,), data)(),
    }
    return type(f"{name}Event", (serializers.Serializer,), members)


def _describe_webhook(event_type: str) -> OpenApiWebhook:
    """Return the OpenAPI description of an event as a webhook."""
    default = "Sent by default." if events.TYPES.get(event_type) else "Sent to endpoints that ask for it."
    if event_type == TEST:
        default = "Sent on request."
    return OpenApiWebhook(
        name=event_type,
        decorator=extend_schema(
            summary=_SUMMARIES[event_type],
            description=f"{default} Signed by Standard Webhooks: webhook-id, webhook-timestamp, webhook-signature.",
            tags=["webhooks"],
            request=_envelope_serializer(event_type),
            responses={"2XX": OpenApiResponse(description="Accepted; any other answer is retried.")},
        ),
    )


WEBHOOKS: Final = [_describe_webhook(event_type) for event_type in (*events.TYPES, TEST)]
