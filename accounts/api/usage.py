"""Serves GET /usage and GET /usage/ledger: the month's credits, and the ledger entries behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from accounts.api.base import WorkspaceResource, openapi_parameters, openapi_responses
from accounts.api.workspace import LimitsSerializer, limits_of
from accounts.ledger import reports
from accounts.ledger.entries import LedgerEntrySerializer
from accounts.models import LedgerEntry
from config.core.api.etags import respond_with_tag, weak_tag
from config.core.api.fields import MomentField
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import read_query
from config.core.api.row_serializers import listing
from config.core.clock import utc_now
from config.core.datetimes import format_utc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.response import Response


class UsageSerializer(serializers.Serializer[Any]):
    limits = LimitsSerializer()
    limit = serializers.IntegerField(
        allow_null=True,
        help_text="Credits of this month, adjustments included; null where they are not limited.",
    )
    used = serializers.IntegerField()
    reserved = serializers.IntegerField(help_text="Reserved by work in progress.")
    available = serializers.IntegerField(allow_null=True)
    resets_at = MomentField(help_text="The first moment of the next calendar month in UTC.")


class UsageView(WorkspaceResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"retrieve": None}

    @extend_schema(
        operation_id="get_usage",
        summary="Credits of this month",
        tags=["usage"],
        responses=openapi_responses({200: UsageSerializer}),
    )
    def retrieve(self, request: Request) -> Response:
        read_query(request, {})
        workspace = self.caller.workspace
        report = reports.usage(workspace, utc_now())
        is_limited = not workspace.is_unlimited
        body = {
            "limits": limits_of(workspace),
            "limit": report.limit if is_limited else None,
            "used": report.used,
            "reserved": report.reserved,
            "available": report.available if is_limited else None,
            "resets_at": format_utc(report.resets_at),
        }
        return respond_with_tag(request, body, tag=weak_tag(body))


class LedgerView(WorkspaceResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"list": "analytics:read"}

    @extend_schema(
        operation_id="list_ledger",
        summary="Every entry of the credit ledger, newest first",
        tags=["usage"],
        parameters=openapi_parameters(PAGING),
        responses=openapi_responses({200: listing(LedgerEntrySerializer, "Ledger")}),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, PAGING)
        rows = LedgerEntry.objects.of(self.caller.workspace)
        ledger_page = page(request, rows.values(*LedgerEntrySerializer.columns()), query)
        return ledger_page.respond(
            request, [LedgerEntrySerializer.serialize(entry) for entry in ledger_page.rows]
        )
