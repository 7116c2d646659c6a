"""Each resource is declared once, by columns that exist, and what is declared is what is shown."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, Final
from uuid import UUID

import pytest
from rest_framework import serializers

from config.api_docs import views
from config.core import task_runner
from config.core.api.row_serializers import Answer, RowSerializer, compile_serializer
from pipeline import models, resources
from pipeline.api.generated_items import rows
from pipeline.models import Event

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = UUID("0193a3f0-0000-7000-8000-000000000001")

MODELS: Final[dict[str, Any]] = {
    "Asset": models.Asset,
    "Attempt": models.Attempt,
    "BrandPick": models.BrandPick,
    "BrandSlot": models.BrandSlot,
    "Coming": models.Publication,
    "GeneratedItem": models.GeneratedItem,
    "InboundDelivery": models.InboundDelivery,
    "Outlet": models.Outlet,
    "Persona": models.Persona,
    "Publication": models.Publication,
    "PublicationInItem": models.Publication,
    "PublishedItem": models.GeneratedItem,
    "PushedRawItem": models.RawItem,
    "Queue": models.PublishQueue,
    "QueueWithSlots": models.PublishQueue,
    "RawItem": models.RawItem,
    "RawItemDetail": models.RawItem,
    "Recurrence": models.Recurrence,
    "RecurrenceDetail": models.Recurrence,
    "RecurrenceTurn": models.RecurrenceTurn,
    "Series": models.Series,
    "SeriesDetail": models.Series,
    "SeriesIssue": models.SeriesIssue,
    "SlotTaker": models.Publication,
    "Source": models.Source,
    "SourceEntry": models.SourceEntry,
    "Topic": models.Topic,
    "Upload": models.Upload,
}
"""The models of the resources that show a table's rows."""
ADDED: Final = {"InboundDelivery": {"excerpt"}, "SeriesIssue": {"digest_id"}}
"""What a view adds to the columns of a table."""
MADE_IN_MEMORY: Final = {
    "Blocker", "ClearingCall", "Engine", "EngineEstimate", "LateAnswer", "Length", "MappingTrial",
    "MappingTrialPlan", "NextSlot", "PreviewedEntry", "Restriction", "SeriesSlot", "SourcePreview", "SourceType",
}  # fmt: skip
"""The resources that show dataclasses, plug-ins or stored JSON."""


def _declared() -> dict[str, type[RowSerializer]]:
    """Return the resources of every module of the package, without parts of the same row (`source="*"`)."""
    modules = [each for each in vars(resources).values() if isinstance(each, ModuleType)]
    found = {
        name: each
        for module in modules
        for name, each in vars(module).items()
        if inspect.isclass(each) and issubclass(each, RowSerializer) and each.__module__ == module.__name__
    }
    parts = {
        type(field).__name__
        for each in found.values()
        for field in each.declared().values()
        if field.source == "*"
    }
    return {name: each for name, each in found.items() if name not in parts}


def _value(field: Any, *, is_empty: bool) -> Any:
    """Return a value that the column may hold: as little as it may, or something."""
    if is_empty and field.null:
        return None
    kind = field.get_internal_type()
    if "Integer" in kind or kind == "FloatField":
        return 0 if is_empty else 3
    examples = {"UUIDField": KEY, "ForeignKey": KEY, "OneToOneField": KEY, "DateTimeField": NOON}
    if kind in examples:
        return examples[kind]
    if kind == "BooleanField":
        return not is_empty
    if kind == "JSONField":
        return field.get_default()
    return b"" if kind == "BinaryField" else "" if is_empty else "mastodon"


def _row(name: str, *, is_empty: bool) -> dict[str, Any]:
    row = {field.attname: _value(field, is_empty=is_empty) for field in MODELS[name]._meta.concrete_fields}
    if "platform" in row:
        row["platform"] = "mastodon"
    return {**row, **dict.fromkeys(ADDED.get(name, ()))}


CONTEXT: Final = {
    "now": NOON, "requires_approval": True, "is_default": False, "outcomes": [], "picks": [], "outlets": [],
    "generated": [], "complete": True, "duplicate": False, "revised": False, "next_slots": [], "holds_now": [],
    "issues": [], "turns": [], "notes": [], "then": "waits",
}  # fmt: skip


def test_every_resource_is_of_a_model_or_made_in_memory():
    assert set(_declared()) == {*MODELS, *MADE_IN_MEMORY}


@pytest.mark.parametrize("name", MODELS)
def test_every_column_is_in_its_model(name):
    there = {field.attname for field in MODELS[name]._meta.concrete_fields}
    assert set(_declared()[name].columns()) - there == ADDED.get(name, set())


@pytest.mark.parametrize("is_empty", [True, False], ids=["empty", "filled"])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_shown_is_what_rest_framework_shows(name, is_empty):
    resource, row = _declared()[name], _row(name, is_empty=is_empty)
    asked = inspect.signature(compile_serializer(resource, None).serialize).parameters
    shown = resource.serialize(row, **{each: CONTEXT[each] for each in asked if each in CONTEXT})

    declared = resource.declared()
    assert {each for each, field in declared.items() if field.required} <= set(shown)
    assert list(shown) == [each for each in declared if each in shown]
    compared = 0
    for field_name, field in resource().fields.items():
        if hasattr(declared[field_name], "origin") or isinstance(field, Answer | serializers.ListSerializer):
            continue
        value = field.get_attribute(row)
        expected = None if value is None else field.to_representation(value)
        assert shown[field_name] == expected, field_name
        compared += 1
    assert compared


@pytest.fixture
def one_more_field(monkeypatch):
    """A field that is added to the declaration of a generated item, and nowhere else."""
    field = serializers.BooleanField(source="approval_required", help_text="As it was when it was made.")
    monkeypatch.setitem(resources.GeneratedItem._declared_fields, "asked_for_approval", field)
    for query in (rows._PAGE_QUERY, rows._ITEM_QUERY):
        monkeypatch.setattr(query, "_forms", type(query._forms)())
    # The document is kept for the process.
    monkeypatch.setattr(views, "_generated", views._generated.__wrapped__)
    compile_serializer.cache_clear()
    written = compile_serializer(resources.GeneratedItem, None).serialize
    monkeypatch.setattr(resources.GeneratedItem, "serialize", staticmethod(written))
    yield
    monkeypatch.undo()
    compile_serializer.cache_clear()


@pytest.mark.usefixtures("one_more_field")
def test_a_field_is_added_in_one_place(alice):
    raw = alice.push(title="Cranes", body="The harbour of Norden bought 7 new cranes on Monday.")
    task_runner.work_all_due("generate.run_item")

    (listed,) = alice.api.read("/generated")["data"]
    assert listed["asked_for_approval"] is False
    assert "checks" not in listed
    assert alice.generated_of(raw)[0]["asked_for_approval"] is False
    assert alice.api.read(f"/generated/{listed['id']}")["asked_for_approval"] is False

    event = json.loads(bytes(Event.everywhere.get(type="generated.ready").body))
    assert event["data"]["generated_item"]["asked_for_approval"] is False

    schema = views.build_openapi()["components"]["schemas"]["GeneratedItem"]
    assert schema["properties"]["asked_for_approval"] == {
        "type": "boolean",
        "description": "As it was when it was made.",
    }
    assert "asked_for_approval" in schema["required"]
