"""The tables of moves: closed, reachable, and as the contract says them."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db.models import CharField

from config.core import states
from pipeline import states as pipeline_states

TABLES = {
    "pipeline.Source": pipeline_states.SOURCE,
    "pipeline.RawItem": pipeline_states.RAW_ITEM,
    "pipeline.Generation": pipeline_states.GENERATION,
    "pipeline.GeneratedItem": pipeline_states.GENERATED_ITEM,
    "pipeline.Publication": pipeline_states.PUBLICATION,
    "pipeline.Attempt": pipeline_states.ATTEMPT,
    "pipeline.Outlet": pipeline_states.OUTLET,
    "pipeline.InboundDelivery": pipeline_states.INBOUND_DELIVERY,
}
DERIVED = {"scheduled", "publishing", "published", "partially_published", "publish_failed", "removed"}


@pytest.mark.parametrize("label", TABLES)
def test_table_is_the_registered_one(label):
    assert states.tables()[label] == TABLES[label]


@pytest.mark.parametrize("label", TABLES)
def test_table_is_closed_and_names_no_standing_still(label):
    table = TABLES[label]
    assert {target for targets in table.values() for target in targets} - set(table) == set()
    assert [status for status, targets in table.items() if status in targets] == []


@pytest.mark.parametrize("label", TABLES)
def test_every_status_is_reached_from_the_first(label):
    table = TABLES[label]
    first = apps.get_model(label)._meta.get_field("status").default
    reached, left = set(), [first]
    while left:
        status = left.pop()
        if status not in reached:
            reached.add(status)
            left += table[status]
    begun = {"skipped"} if label == "pipeline.RawItem" else set()
    derived = DERIVED if label == "pipeline.GeneratedItem" else set()
    assert reached | begun | derived == set(table)
    assert reached & derived == set()


@pytest.mark.parametrize("label", TABLES)
def test_statuses_fit_their_column(label):
    longest = apps.get_model(label)._meta.get_field("status").max_length
    assert [status for status in TABLES[label] if len(status) > longest] == []


def test_every_status_has_a_table_and_its_choices_are_the_keys():
    for app in ("accounts", "analytics", "pipeline", "webhooks"):
        import_module(f"{app}.states")  # it registers its tables
    fields = {
        model._meta.label: field
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if field.name == "status" and isinstance(field, CharField)
    }
    assert {label: {value for value, _ in field.choices or ()} for label, field in fields.items()} == {
        label: set(table) for label, table in states.tables().items()
    }


def test_what_may_be_on_its_way_is_never_sent_again_unseen():
    """From `unknown` back to `scheduled` only a look-up leads; nothing that is over moves on by itself."""
    assert pipeline_states.PUBLICATION["cancelled"] == frozenset()
    assert pipeline_states.PUBLICATION["removed"] == frozenset()
    assert pipeline_states.PUBLICATION["published"] == {"removed"}
    assert {"scheduled", "publishing", "unknown"} == pipeline_states.OPEN_PUBLICATIONS


def test_publishing_statuses_are_moved_by_nobody():
    assert {status: pipeline_states.GENERATED_ITEM[status] for status in DERIVED} == dict.fromkeys(
        DERIVED, frozenset()
    )
