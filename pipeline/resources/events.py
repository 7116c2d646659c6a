"""The envelope of events, and the feed that lists them."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import Answer, ObjectField


class Event(Answer):
    id = PublicIdField("evt")
    type = serializers.CharField()
    timestamp = MomentField()
    workspace = PublicIdField("ws")
    data = ObjectField()  # type: ignore[assignment]  # the contract's name


@extend_schema_serializer(many=False)
class EventList(Answer):
    data = Event(many=True)  # type: ignore[assignment]  # the contract's name
    has_more = serializers.BooleanField()
    next_cursor = serializers.CharField(
        allow_null=True, help_text="Where to continue; given on the last page too, for the next request."
    )
