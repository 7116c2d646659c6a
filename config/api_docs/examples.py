"""Shows an example of each body in the OpenAPI document: those of docs/examples, which a test records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from config.api_docs.document import operations
from config.core.json_encoding import dump

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXAMPLES: Final = settings.BASE_DIR / "docs" / "examples"
_ADDRESS: Final = settings.SPECTACULAR_SETTINGS["SERVERS"][0]["url"]
_ROW: Final = ".row"
_MAX_BYTES: Final = 1000
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
    "InboundDelivery": "inbound_deliveries.row",
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
    "RawItem": "raw_list.row",
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
"""The example of an answer, by the name of its schema; `.row` is the first of a list."""
_WITHOUT: Final = frozenset({"SeriesIssue", "SettleInput", "StoryboardInput", "StoryboardShown"})
"""What takes a film, five items of a week, or a post that a person made: no test records those."""


def with_examples(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Give every JSON body an example: short ones are written once, as components, longer ones are linked."""
    used: set[str] = set()
    for _, _, operation in operations(result):
        _add_example(operation, operation.get("requestBody", {}), _REQUESTS, used)
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                _add_example(operation, answer, _ANSWERS, used)
    for event_type, item in result.get("webhooks", {}).items():
        operation = item["post"]
        schema = _schema_name(operation["requestBody"])
        _add_example(operation, operation["requestBody"], {schema: f"event-{event_type}"}, used)
    result["components"]["examples"] = {name: {"value": _read(name)} for name in sorted(used)}
    return result


def _add_example(
    operation: dict[str, Any], body: dict[str, Any], names: Mapping[str, str], used: set[str]
) -> None:
    """Let the body refer to its example, or the operation to its address if it is long."""
    schema = _schema_name(body)
    if not schema or schema in _WITHOUT:
        return
    name = names[schema]
    if len(dump(_read(name))) > _MAX_BYTES and "externalDocs" not in operation:
        # Readers of `externalValue` fetch it while they read the document, and fail without this service.
        operation["externalDocs"] = {"description": "Example", "url": f"{_ADDRESS}/docs/examples/{name}.json"}
        return
    body["content"]["application/json"]["examples"] = {name: {"$ref": f"#/components/examples/{name}"}}
    used.add(name)


def _schema_name(body: dict[str, Any]) -> str:
    """Return the name of the schema of a JSON body, or an empty text for another body or none."""
    content = body.get("content", {}).get("application/json")
    name: str = content["schema"]["$ref"].rpartition("/")[2] if content else ""
    return name


def _read(name: str) -> Any:
    """Return an example; a list of it has the first row, which says as much."""
    file = name.removesuffix(_ROW)
    value = json.loads((_EXAMPLES / f"{file}.json").read_text())
    if file != name:
        return value["data"][0]
    return {**value, "data": value["data"][:1]} if "next_cursor" in value else value
