"""Serves GET /workspace: the workspace behind the token, its limits, and the token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from accounts import limits
from accounts.access import tokens
from accounts.api.base import WorkspaceResource, openapi_responses
from accounts.ledger import credits
from config.core.api.etags import respond_with_tag, weak_tag
from config.core.api.fields import MomentField, PublicIdField
from config.core.api.query_params import read_query
from config.core.datetimes import format_utc_or_none

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.response import Response

    from accounts.models import Workspace


class LimitsSerializer(serializers.Serializer[Any]):
    unlimited = serializers.BooleanField(help_text="True: neither rate nor credits are limited.")
    requests_at_once = serializers.IntegerField(allow_null=True)
    requests_per_minute = serializers.IntegerField(allow_null=True)
    credits_per_month = serializers.IntegerField(allow_null=True)
    active_sources = serializers.IntegerField(help_text="Sources that may be active at a time.")
    poll_interval_minutes = serializers.IntegerField(help_text="The shortest poll interval of a source.")


class TokenSerializer(serializers.Serializer[Any]):
    id = PublicIdField("tok")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=tokens.SCOPES))
    expires_at = MomentField(allow_null=True)
    test = serializers.BooleanField()


class WorkspaceSerializer(serializers.Serializer[Any]):
    id = PublicIdField("ws")
    name = serializers.CharField()
    timezone = serializers.CharField(help_text="An IANA name, such as Europe/Berlin.")
    plan = serializers.CharField()
    whitelisted_at = MomentField(allow_null=True)
    limits = LimitsSerializer()
    token = TokenSerializer()


def limits_of(workspace: Workspace) -> dict[str, Any]:
    """Return the limits as `LimitsSerializer` describes them, or `None` for what isn't limited."""
    plan_limits = credits.plan_limits(workspace)
    is_limited = not workspace.is_unlimited
    return {
        "unlimited": workspace.is_unlimited,
        "requests_at_once": limits.RATE_BURST if is_limited else None,
        "requests_per_minute": limits.RATE_PER_MINUTE if is_limited else None,
        "credits_per_month": plan_limits.credits_per_month if is_limited else None,
        "active_sources": plan_limits.active_sources_most,
        "poll_interval_minutes": plan_limits.poll_interval_minutes_least,
    }


class WorkspaceView(WorkspaceResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"retrieve": None}

    @extend_schema(
        operation_id="get_workspace",
        summary="Read the calling workspace and token",
        tags=["workspace"],
        responses=openapi_responses({200: WorkspaceSerializer}),
    )
    def retrieve(self, request: Request) -> Response:
        read_query(request, {})
        caller = self.caller
        workspace = caller.workspace
        body = {
            "id": workspace.public_id,
            "name": workspace.name,
            "timezone": workspace.timezone,
            "plan": workspace.plan.name,
            "whitelisted_at": format_utc_or_none(workspace.whitelisted_at),
            "limits": limits_of(workspace),
            "token": {
                "id": caller.actor,
                "scopes": [scope for scope in tokens.SCOPES if scope in caller.scopes],
                "expires_at": format_utc_or_none(caller.expires_at),
                "test": caller.test,
            },
        }
        return respond_with_tag(request, body, tag=weak_tag(body))
