"""A migration on SQLite leaves what other migrations made by SQL: the triggers that keep the search, and indexes."""

from __future__ import annotations

import pytest
from django.db import connection, connections, migrations, models
from django.db.migrations.loader import MigrationLoader

from config.core.database.sqlite.base import DatabaseWrapper
from config.core.ids import uuid7
from tests import migrated

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

ALIAS = "changed"


@pytest.fixture
def file(tmp_path):
    """A migrated database of its own, in a file, with the real triggers."""
    assert migrated.make_file(tmp_path)
    opened = DatabaseWrapper({**connection.settings_dict, "NAME": str(tmp_path / "db.sqlite3")}, alias=ALIAS)
    connections[ALIAS] = opened
    yield opened
    opened.close()
    del connections[ALIAS]


def made(opened, kind):
    with opened.cursor() as cursor:
        cursor.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = %s AND sql IS NOT NULL ORDER BY name", [kind]
        )
        return cursor.fetchall()


def migrate(opened, *operations):
    """Apply operations as a migration of the pipeline's that comes after all others."""
    state = MigrationLoader(opened).project_state()
    migration = migrations.Migration("9999_change", "pipeline")
    migration.operations = list(operations)
    with opened.schema_editor() as editor:
        return migration.apply(state, editor)


def run(opened, sql):
    with opened.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def titles(opened, table):
    return [title for (title,) in run(opened, f"SELECT title FROM {table} ORDER BY title")]


def add(model):
    return migrations.AddField(model, "mood", models.CharField(max_length=20, default="calm"))


def alter(model):
    return migrations.AlterField(model, "title", models.TextField(default="An untitled one"))


@pytest.mark.parametrize("change", [add, alter])
def test_new_rows_are_found_after_a_migration(file, change):
    before = made(file, "trigger")
    after = migrate(file, *(change(model) for model in ("GeneratedItem", "RawItem", "RawBody"))).apps

    assert made(file, "trigger") == before
    assert len(before) == 6
    item, raw, body = (after.get_model("pipeline", name) for name in ("GeneratedItem", "RawItem", "RawBody"))
    workspace, key = uuid7(), uuid7()
    file.disable_constraint_checking()
    item.everywhere.using(ALIAS).create(
        workspace_id=workspace, title="Tram", engine_version=1, variant_group=workspace, generation_id=key
    )
    raw.everywhere.using(ALIAS).create(
        id=key, workspace_id=workspace, source_id=key, title="Ferry", content_version=1
    )
    body.everywhere.using(ALIAS).create(workspace_id=workspace, raw_item_id=key, number=1, body="It sails.")
    assert titles(file, "generated_item_words") == ["tram"]
    assert titles(file, "raw_item_words") == ["ferry"]
    raw.everywhere.using(ALIAS).filter(id=key).delete()
    item.everywhere.using(ALIAS).update(title="Bus")
    assert titles(file, "generated_item_words") == ["bus"]
    assert titles(file, "raw_item_words") == []


def test_an_index_that_was_made_by_sql_is_kept(file):
    run(file, "CREATE INDEX by_mood ON generated_item (title) WHERE title LIKE '%s%%'")
    before = made(file, "index")
    migrate(file, add("GeneratedItem"))

    assert made(file, "index") == before


def test_an_index_that_a_field_no_longer_has_is_gone(file):
    before = made(file, "index")
    indexed = models.CharField(max_length=20, default="calm", db_index=True)
    plain = models.CharField(max_length=20, default="calm")
    migrate(
        file,
        migrations.AddField("GeneratedItem", "mood", indexed),
        migrations.AlterField("GeneratedItem", "mood", plain),
    )

    assert made(file, "index") == before


def test_what_it_would_run_is_told_whole(file):
    """`sqlmigrate` shows the triggers too, though nothing is changed."""
    before = made(file, "trigger")
    state = MigrationLoader(file).project_state()
    with file.schema_editor(collect_sql=True) as editor:
        new = state.clone()
        operation = add("GeneratedItem")
        operation.state_forwards("pipeline", new)
        operation.database_forwards("pipeline", editor, state, new)

    assert sum(line.startswith("CREATE TRIGGER keep_item_words") for line in editor.collected_sql) == 3
    assert made(file, "trigger") == before
