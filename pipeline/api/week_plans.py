"""/v1/plans: a week of ready items in free slots; proposed first, scheduled together, undone together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.base import openapi_responses
from config.core import ids
from config.core.api.etags import respond_with_tag, weak_tag
from config.core.api.fields import (
    BoundedListField,
    MomentField,
    NoFields,
    PublicIdField,
    StrictBooleanField,
    StrictIntegerField,
    StrictSerializer,
)
from config.core.api.query_params import read_query
from config.core.clock import utc_now
from config.core.datetimes import format_utc, format_utc_or_none
from config.core.errors import Conflict
from pipeline import limits
from pipeline.api.base import POST_PARAMETERS, PipelineResource, path_id
from pipeline.api.inputs.generated_items import refuse_unless_schedulable
from pipeline.models import WeekPlan
from pipeline.schedule import planning

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from rest_framework.request import Request

MAX_PER_DAY: Final = 24


class PlanEntryInput(StrictSerializer):
    generated_item = PublicIdField("gen")
    version = StrictIntegerField(min_value=1, max_value=2**31 - 1, help_text="Of the item, as it was shown.")
    outlet = PublicIdField("out")
    at = MomentField(help_text="A slot of the outlet's queue.")


class PlanInput(StrictSerializer):
    """Either what to fill, or the `entries` of a dry run to schedule just these."""

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "dependentSchemas": {
            "entries": {
                "properties": dict.fromkeys(("starts_at", "days", "outlets", "a_day", "dry_run"), False)
            }
        }
    }

    starts_at = MomentField(required=False, help_text="Now.")
    days = StrictIntegerField(min_value=1, max_value=limits.PLAN_DAYS, required=False, help_text="7.")
    outlets = BoundedListField(
        child=PublicIdField("out"),
        min_length=1,
        max_length=limits.PLAN_LANES,
        required=False,
        help_text="All that are connected.",
    )
    a_day = StrictIntegerField(
        min_value=1,
        max_value=MAX_PER_DAY,
        required=False,
        help_text="Posts per day on one outlet; default: as many as there are slots.",
    )
    dry_run = StrictBooleanField(required=False)
    entries = BoundedListField(
        child=PlanEntryInput(), min_length=1, max_length=limits.PLAN_ENTRIES, required=False
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in attrs:
            if "entries" in attrs and name != "entries":
                raise serializers.ValidationError({name: f"Give entries or {name}, not both."}, code="both")
        return attrs


class ProposedEntry(serializers.Serializer[Any]):
    generated_item = PublicIdField("gen")
    version = serializers.IntegerField()
    outlet = PublicIdField("out")
    at = MomentField()
    local_time = serializers.CharField(help_text="On the clocks of the outlet's queue.")
    alike = serializers.ListField(
        child=serializers.ChoiceField(choices=("source", "topic", "engine", "bucket")),
        help_text="What it has in common with the post before or after it.",
    )


class LeftItem(serializers.Serializer[Any]):
    generated_item = PublicIdField("gen")
    code = serializers.CharField()
    message = serializers.CharField()


class PlanRehearsal(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    starts_at = MomentField()
    ends_at = MomentField()
    entries = ProposedEntry(many=True)
    left = LeftItem(many=True, help_text="Ready items that are left out, each with the reason.")
    free_slots = serializers.IntegerField(help_text="Slots that stay free.")


class PlanEntry(serializers.Serializer[Any]):
    generated_item = PublicIdField("gen")
    outlet = PublicIdField("out")
    publication = PublicIdField("pub")
    at = MomentField()


class WeekPlanShown(serializers.Serializer[Any]):
    id = PublicIdField("pln")
    entries = PlanEntry(many=True)
    by = serializers.CharField()
    test = serializers.BooleanField()
    created_at = MomentField()
    undone_at = MomentField(allow_null=True)


class RefusedEntry(serializers.Serializer[Any]):
    generated_item = PublicIdField("gen")
    outlet = PublicIdField("out")
    at = MomentField()
    code = serializers.CharField()
    message = serializers.CharField()


class WeekPlanMade(WeekPlanShown):
    refused = RefusedEntry(many=True, help_text="What changed since it was shown.")


class KeptEntry(PlanEntry):
    reason = serializers.ChoiceField(choices=("gone", "out", "changed"))


class WeekPlanUndone(WeekPlanShown):
    kept = KeptEntry(many=True, help_text="What stays because it was published, changed or cancelled since.")


class PlanView(PipelineResource):
    """Plans for the workspace's ready items."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "create": "generated:publish",
        "retrieve": "generated:read",
        "undo": "generated:publish",
    }

    @extend_schema(
        operation_id="plans_create",
        summary="Fill free slots with ready items",
        parameters=POST_PARAMETERS,
        request=PlanInput,
        responses=openapi_responses({201: WeekPlanMade, 200: PlanRehearsal}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        """Best first, neighbours as different as can be, within every cap, gap, rest and blackout."""
        values, now = self.read_body(request, PlanInput), utc_now()
        if "entries" in values:
            entries = [
                planning.PlanEntry(entry["generated_item"], entry["version"], entry["outlet"], entry["at"])
                for entry in values["entries"]
            ]
            return self._commit(entries, now, is_proposed=False)
        starts_at: datetime = values.get("starts_at", now)
        refuse_unless_schedulable(starts_at, now, "starts_at")
        plan_request = planning.PlanRequest(
            starts_at, values.get("days", planning.DAYS), values.get("outlets"), values.get("a_day")
        )
        proposal = planning.propose(self.caller.workspace, plan_request, test=self.caller.test, now=now)
        if values.get("dry_run"):
            return Response(_serialize_proposal(proposal))
        return self._commit([entry.entry for entry in proposal.entries], now, is_proposed=True)

    @extend_schema(
        operation_id="plans_retrieve",
        summary="Read a plan",
        parameters=[path_id("pln")],
        responses=openapi_responses(
            {200: WeekPlanShown, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self.rows(WeekPlan), "pln", id)
        read_query(request, {})
        answer = _serialize_plan(row)
        return respond_with_tag(request, answer, tag=weak_tag(answer))

    @extend_schema(
        operation_id="plans_undo",
        summary="Undo what a plan scheduled",
        parameters=[path_id("pln"), *POST_PARAMETERS],
        request=NoFields,
        responses=openapi_responses({200: WeekPlanUndone}, 404, 409, 413, 415, 422),
    )
    def undo(self, request: Request, id: str) -> Response:
        """What went out, or was changed since, stays and is told."""
        row = self.find(self.rows(WeekPlan), "pln", id)
        self.read_body(request, NoFields)
        result = planning.undo(row, by=self.caller.actor, now=utc_now())
        kept_entries = [{**_serialize_entry(entry), "reason": reason} for entry, reason in result.kept]
        return Response({**_serialize_plan(result.plan), "kept": kept_entries})

    def _commit(self, entries: list[planning.PlanEntry], now: datetime, *, is_proposed: bool) -> Response:
        """Schedule the entries and return the plan. Raises `Conflict` if there are none."""
        if not entries:
            message = "There is nothing to schedule: no ready item fits a free slot. A dry run says why."
            raise Conflict.because(code="nothing_to_plan", message=message)
        result = planning.commit(
            self.caller.workspace,
            entries,
            test=self.caller.test,
            by=self.caller.actor,
            now=now,
            is_proposed=is_proposed,
        )
        answer = _serialize_plan(result.plan)
        headers = {"Location": f"/v1/plans/{answer['id']}"}
        return Response(
            {**answer, "refused": [_serialize_refusal(refusal) for refusal in result.refused]},
            status=201,
            headers=headers,
        )


def _serialize_plan(row: WeekPlan) -> dict[str, Any]:
    return {
        "id": ids.encode("pln", row.pk),
        "entries": [_serialize_entry(entry) for entry in row.entries],
        "by": row.made_by,
        "test": row.test,
        "created_at": format_utc(row.created_at),
        "undone_at": format_utc_or_none(row.undone_at),
    }


def _serialize_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "generated_item": entry["item"],
        "outlet": entry["outlet"],
        "publication": entry["publication"],
        "at": entry["at"],
    }


def _serialize_refusal(refusal: planning.Refusal) -> dict[str, Any]:
    return {
        "generated_item": ids.encode("gen", refusal.entry.item_id),
        "outlet": ids.encode("out", refusal.entry.outlet_id),
        "at": format_utc(refusal.entry.at),
        "code": refusal.code,
        "message": refusal.message,
    }


def _serialize_proposal(proposal: planning.Proposal) -> dict[str, Any]:
    """Return a dry run's proposal, with the ready items that it leaves out."""
    return {
        "dry_run": True,
        "starts_at": format_utc(proposal.asked.starts_at),
        "ends_at": format_utc(proposal.asked.ends_at),
        "entries": [
            {
                "generated_item": ids.encode("gen", proposed.item.pk),
                "version": proposed.item.version,
                "outlet": ids.encode("out", proposed.outlet.pk),
                "at": format_utc(proposed.slot.moment),
                "local_time": proposed.slot.clock.text,
                "alike": list(proposed.alike),
            }
            for proposed in proposal.entries
        ],
        "left": [
            {
                "generated_item": ids.encode("gen", left_item.item.pk),
                "code": left_item.code,
                "message": left_item.message,
            }
            for left_item in proposal.left
        ],
        "free_slots": proposal.free,
    }
