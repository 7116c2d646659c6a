"""Shows an example of each body in the OpenAPI document: those of docs/examples, which a test records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from config.api_docs.document import operations
from config.core.api.jsonio import dump

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXAMPLES: Final = settings.BASE_DIR / "docs" / "examples"
_MAX_BYTES: Final = 1100
"""Longer examples are linked, so that the document stays short."""
_REQUESTS: Final[Mapping[str, str]] = {
    "EstimateInput": "raw_item.request",
    "GeneratedItemChanges": "generated_item-edit.request",
    "HoldInput": "hold.request",
    "MappingTrialInput": "dry_run.request",
    "NoFields": "no_fields.request",
    "PersonaChanges": "persona-edit.request",
    "PersonaInput": "persona.request",
    "PlanInput": "plan.request",
    "PublishInput": "publish.request",
    "RawPush": "raw_item.request",
    "RecurrenceChanges": "recurrence-edit.request",
    "RecurrenceInput": "recurrence.request",
    "RegenerateInput": "revision.request",
    "RejectInput": "reject.request",
    "RevisionInput": "revision.request",
    "RotateInput": "rotate.request",
    "SeriesChanges": "series-edit.request",
    "SeriesInput": "series.request",
    "SourceChanges": "source-paused.request",
    "SourceInput": "source.request",
    "TopicChanges": "topic-edit.request",
    "TopicInput": "topic.request",
}
"""The example of a body that is sent, by the name of its schema."""
_ANSWERS: Final[Mapping[str, str]] = {
    "Analytics": "analytics",
    "AttemptList": "publication-attempts",
    "Batch": "raw_batch",
    "BrandSlotList": "source-slots",
    "DryRun": "publish-dry_run",
    "EngineList": "engines",
    "Estimate": "estimate",
    "EventList": "events",
    "Explanation": "explanation",
    "GeneratedItem": "generated_item",
    "GeneratedItemList": "generated_list",
    "Hold": "hold",
    "InboundDelivery": "inbound_deliveries[0]",
    "InboundDeliveryList": "inbound_deliveries",
    "InboundSecret": "inbound_secret",
    "Ledger": "ledger",
    "MappingTrial": "dry_run",
    "Outlet": "outlet",
    "OutletList": "outlets",
    "Persona": "persona",
    "PersonaList": "personas",
    "PlanRehearsal": "plan.rehearsal",
    "Publication": "publication",
    "PublicationList": "publications",
    "PublishedItem": "publish",
    "PushedRawItem": "raw_item-pushed",
    "QueueList": "queues",
    "QueueWithSlots": "queue",
    "RawItem": "raw_list[0]",
    "RawItemDetail": "raw_item",
    "RawItemList": "raw_list",
    "Recurrence": "recurrence",
    "RecurrenceDetail": "recurrence-detail",
    "RecurrenceList": "recurrences",
    "Series": "series",
    "SeriesDetail": "series-detail",
    "SeriesList": "series_list",
    "Source": "source",
    "SourceEntryList": "source-entries",
    "SourceList": "sources",
    "SourcePreview": "source-preview",
    "SourceTypeList": "source_types",
    "Topic": "topic",
    "TopicList": "topics",
    "Upload": "upload",
    "Usage": "usage",
    "WeekPlanMade": "plan",
    "WeekPlanShown": "plan-read",
    "WeekPlanUndone": "plan-undone",
    "Workspace": "workspace",
}
"""The example of an answer, by the name of its schema; `[0]` is the first row of a list."""
_WITHOUT: Final = frozenset({"SeriesIssue", "SettleInput", "StoryboardInput", "StoryboardShown"})
"""What takes a film, five items of a week, or a post that a person made: no test records those."""


def with_examples(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Give every JSON body an example: short ones are written once, as components, longer ones are linked."""
    used: set[str] = set()
    for _, _, operation in operations(result):
        bodies = [(_REQUESTS, operation.get("requestBody", {}))]
        bodies += [
            (_ANSWERS, answer) for status, answer in operation["responses"].items() if status.startswith("2")
        ]
        for names, body in bodies:
            content = body.get("content", {}).get("application/json")
            schema = content["schema"]["$ref"].rpartition("/")[2] if content else ""
            if schema and schema not in _WITHOUT:
                _refer(content, names[schema])
                used.add(names[schema])
    for event_type, item in result.get("webhooks", {}).items():
        name = f"event-{event_type}"
        _refer(item["post"]["requestBody"]["content"]["application/json"], name)
        used.add(name)
    result["components"]["examples"] = {_component_name(name): _example(name) for name in sorted(used)}
    return result


def _refer(content: dict[str, Any], name: str) -> None:
    component = _component_name(name)
    content["examples"] = {component: {"$ref": f"#/components/examples/{component}"}}


def _component_name(name: str) -> str:
    return name.replace("[0]", ".row")


def _example(name: str) -> dict[str, Any]:
    """Return the example, or where it is if it is long."""
    file = name.removesuffix("[0]")
    value = json.loads((_EXAMPLES / f"{file}.json").read_text())
    if file != name:
        value = value["data"][0]
    elif len(dump(value)) > _MAX_BYTES:
        return {"externalValue": f"/docs/examples/{file}.json"}
    return {"value": value}
