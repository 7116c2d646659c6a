"""The old five sections become the new ones: nothing that a person wrote is lost, in rows and in kept versions."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from config.ground.ids import uuid7

AFTER = ("pipeline", "0010_persona_sections")
OLD = {
    "voice": "Dry.",
    "audience": "Bakers.",
    "rules": "One idea each.",
    "facts": "Founded in 1987.",
    "examples": "Rye is patient.\n\nSo are we.",
}
NEW = {
    "who_you_are": "Founded in 1987.\n\nBakers.",
    "voice": "Dry.",
    "banned_words": [],
    "required_structures": [{"kind": "other", "text": "One idea each."}],
    "reference_posts": ["Rye is patient.\n\nSo are we."],
    "approved_lines": [],
}


def migrated_to(*targets):
    executor = MigrationExecutor(connection)
    executor.migrate(list(targets))
    return MigrationExecutor(connection).loader.project_state(list(targets)).apps


@pytest.fixture
def back_at_the_end():
    yield
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.mark.django_db(transaction=True)
def test_sections_carry_over_and_back(back_at_the_end):
    graph = MigrationExecutor(connection).loader.graph
    (before,) = [one.key for one in graph.node_map[AFTER].parents if one.key[0] == "pipeline"]
    accounts = next(key for key in graph.leaf_nodes() if key[0] == "accounts")
    apps = migrated_to(before, accounts)
    plan = apps.get_model("accounts", "Plan").objects.create(name="Old")
    workspace = apps.get_model("accounts", "Workspace").everywhere.create(name="Old", pk=uuid7(), plan=plan)
    persona = apps.get_model("pipeline", "Persona").everywhere.create(workspace=workspace, name="Ada", **OLD)
    bare = apps.get_model("pipeline", "Persona").everywhere.create(workspace=workspace, name="Bare")
    content = {"name": "Ada", "handle": "", "language": "en", "links": [], "brand": {}, "sections": OLD}
    apps.get_model("pipeline", "PersonaVersion").everywhere.create(
        workspace=workspace, persona=persona, number=1, content=content, created_at=timezone.now()
    )

    apps = migrated_to(AFTER)
    moved = apps.get_model("pipeline", "Persona").everywhere.get(pk=persona.pk)
    assert {name: getattr(moved, name) for name in NEW} == NEW
    empty = apps.get_model("pipeline", "Persona").everywhere.get(pk=bare.pk)
    assert (empty.who_you_are, empty.required_structures, empty.reference_posts) == ("", [], [])
    kept = apps.get_model("pipeline", "PersonaVersion").everywhere.get(persona_id=persona.pk)
    assert kept.content == {**{name: content[name] for name in content if name != "sections"}, **NEW}

    apps = migrated_to(before)
    again = apps.get_model("pipeline", "Persona").everywhere.get(pk=persona.pk)
    assert {name: getattr(again, name) for name in OLD} == {
        "voice": "Dry.",
        "audience": "",
        "rules": "One idea each.",
        "facts": "Founded in 1987.\n\nBakers.",
        "examples": "Rye is patient.\n\nSo are we.",
    }
    kept = apps.get_model("pipeline", "PersonaVersion").everywhere.get(persona_id=persona.pk)
    assert set(kept.content["sections"]) == set(OLD)
