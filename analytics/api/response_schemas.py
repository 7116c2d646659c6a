"""Serializers that document the answer of GET /analytics in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from analytics.aggregate import NULLABLE, REASONS
from analytics.calendar_periods import INTERVALS
from config.core.api.fields import MomentField, PublicIdField
from pipeline.models import Bucket


@extend_schema_field(
    {
        "type": "object",
        "propertyNames": {"enum": list(NULLABLE)},
        "additionalProperties": {
            "type": "string",
            "description": f"One of {', '.join(REASONS)}; there may be more.",
        },
    }
)
class AvailabilityField(serializers.DictField):
    """By metric that is null: why."""


class AnalyticsOutletSerializer(serializers.Serializer[Any]):
    id = PublicIdField("out")
    platform = serializers.CharField()
    name = serializers.CharField()


class MetricsSerializer(serializers.Serializer[Any]):
    published = serializers.IntegerField(help_text="Publications that were published.")
    failed = serializers.IntegerField(
        help_text="Publications that ended failed and were not published by a later retry or found after all."
    )
    impressions = serializers.IntegerField(allow_null=True)
    views = serializers.IntegerField(allow_null=True)
    likes = serializers.IntegerField(allow_null=True)
    comments = serializers.IntegerField(allow_null=True)
    shares = serializers.IntegerField(allow_null=True)
    clicks = serializers.IntegerField(allow_null=True)
    engagements = serializers.IntegerField(
        allow_null=True, help_text="Likes, comments, shares and clicks, as far as they are known."
    )
    engagement_rate = serializers.FloatField(
        allow_null=True,
        help_text="Engagements by impressions, rounded to four places; null without impressions.",
    )


class FirstPartySerializer(serializers.Serializer[Any]):
    clicks = serializers.IntegerField(
        allow_null=True,
        help_text="Clicks of people on short links of this service; null where no outlet counted them by then.",
    )
    feed_fetches = serializers.IntegerField(
        allow_null=True,
        help_text="How often readers requested the workspace feed, unchanged answers included; null "
        "without a request, and where rows are split by more than outlet and date.",
    )


class FiguresSerializer(serializers.Serializer[Any]):
    metrics = MetricsSerializer()
    availability = AvailabilityField(
        help_text="For every metric that is null the reason: unavailable (not provided), delayed (not "
        "counted yet, or not within these dates), unsupported (this platform never gives it)."
    )
    coverage = serializers.FloatField(
        allow_null=True,
        help_text="The share, 0 to 1, of the publications published here of which a number is known by now; null "
        "where none was published.",
    )
    first_party = FirstPartySerializer(
        help_text="What the service counted itself, at the time at which it came; no part of `metrics`."
    )


class AnalyticsRowSerializer(FiguresSerializer):
    """Has the dimensions that `group_by` names."""

    outlet = AnalyticsOutletSerializer(required=False)
    content_type = serializers.CharField(required=False, help_text=f"The bucket: {', '.join(Bucket.values)}.")
    date = serializers.CharField(
        required=False,
        help_text="The bucket's first day in the time zone asked for; of hours the first moment, with its offset.",
    )
    source = PublicIdField("src", required=False, allow_null=True)  # type: ignore[assignment]
    engine_output = serializers.CharField(required=False)
    persona = PublicIdField("per", required=False, allow_null=True)


class RangeSerializer(serializers.Serializer[Any]):
    to = MomentField(help_text="The first moment that is no longer in it.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # `from` is a keyword of Python.
        return {"from": MomentField(), **super().get_fields()}


@extend_schema_serializer(many=False)
class AnalyticsSerializer(serializers.Serializer[Any]):
    data = AnalyticsRowSerializer(  # type: ignore[assignment]
        many=True, help_text="By date, outlet and content type; only what has something."
    )
    totals = FiguresSerializer()
    range = RangeSerializer()
    interval = serializers.ChoiceField(choices=INTERVALS)
    timezone = serializers.CharField()
    fresh_at = MomentField(
        allow_null=True,
        help_text="The newest moment that any count tells of; null where nothing was counted.",
    )
