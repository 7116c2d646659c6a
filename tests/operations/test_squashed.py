"""A database of before the squash is brought over by `migrate`, or refused before anything is changed."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from config.operations import unmigrated_database
from tests.factories import GeneratedItemFactory

FORMER = {"accounts": 2, "pipeline": 9, "webhooks": 1}
"""How many migrations an app's two or one of today stand for, besides the initial one of the same name."""
WORDS = ("pipeline", "0002_item_words")


@pytest.fixture
def unsquashed(db):
    """This database as the last unsquashed commit left it: the same tables, the former names."""
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied(*WORDS)
    for former in unmigrated_database.replaced_migrations().values():
        for one in former:
            recorder.record_applied(*one)
    return recorder


def plan():
    executor = MigrationExecutor(connection)
    return executor.migration_plan(executor.loader.graph.leaf_nodes())


def test_the_migrations_name_their_former_ones():
    counted = dict.fromkeys(FORMER, 0)
    for (app, _), former in unmigrated_database.replaced_migrations().items():
        counted[app] += len(former)
    assert counted == FORMER


def test_migrate_brings_a_database_of_the_last_unsquashed_commit_over(unsquashed):
    assert plan() == []
    call_command("migrate", verbosity=0, interactive=False)
    assert WORDS in unsquashed.applied_migrations()
    assert plan() == []


@pytest.mark.parametrize("app", FORMER)
def test_half_of_the_former_ones_is_refused_with_what_to_do(unsquashed, app):
    *_, last = sorted(unmigrated_database.replaced_migrations()[app, "0001_initial"])
    unsquashed.record_unapplied(*last)
    before = set(unsquashed.applied_migrations())
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0, interactive=False)
    assert str(refused.value) == (
        "This database can't be migrated. It was made by an unreleased version and lacks 1 of its "
        f"migrations ({app}.{last[1]}). Check out commit f15c1bd3, run its manage.py migrate, then check "
        "out this version again and run manage.py migrate. Nothing was changed."
    )
    assert set(unsquashed.applied_migrations()) == before


@pytest.mark.parametrize("app", ["accounts", "analytics", "pipeline", "webhooks"])
def test_a_database_of_before_every_initial_one_is_refused(unsquashed, app):
    unsquashed.record_unapplied(app, "0001_initial")
    unsquashed.record_applied(app, "0001_ground")
    with pytest.raises(CommandError, match=f"{app}.0001_initial"):
        call_command("migrate", verbosity=0, interactive=False)


def test_a_database_of_before_the_search_gets_its_words(unsquashed):
    loader = MigrationExecutor(connection).loader
    since = sorted(name for app, name in loader.disk_migrations if (app, name) > WORDS and app == "pipeline")
    for name in ("0010_item_words", *since):
        unsquashed.record_unapplied("pipeline", name)
    assert unmigrated_database.why_not(unsquashed.applied_migrations()) is None
    assert [migration.name for migration, _ in plan()] == [WORDS[1], *since]


def test_one_that_was_killed_while_it_filled_the_words_runs_again(db):
    GeneratedItemFactory(title="A bridge of glass")
    migration = import_module(".".join(["pipeline.migrations", WORDS[1]]))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM generated_item_words")
        for again in (migration.create, migration.fill):
            again(apps, SimpleNamespace(connection=connection))
        cursor.execute("SELECT count(*) FROM generated_item_words")
        assert cursor.fetchone() == (1,)
