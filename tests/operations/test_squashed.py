"""A database of before the squash is brought over by `migrate`, or refused before anything is changed."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from config.operations import migration_state

APPS = ("accounts", "pipeline", "webhooks", "analytics")


@pytest.fixture
def unsquashed(db):
    """This database as the last unsquashed commit left it: the same tables, the former names."""
    recorder = MigrationRecorder(connection)
    for (app, name), former in migration_state.replaced().items():
        recorder.record_unapplied(app, name)
        for one in former:
            recorder.record_applied(*one)
    return recorder


def test_every_app_has_one_initial_migration_that_names_its_former_ones():
    assert {app: len(former) for (app, _), former in migration_state.replaced().items()} == {
        "accounts": 7,
        "pipeline": 37,
        "webhooks": 6,
        "analytics": 6,
    }


def test_migrate_brings_a_database_of_the_last_unsquashed_commit_over(unsquashed):
    call_command("migrate", verbosity=0, interactive=False)
    applied = unsquashed.applied_migrations()
    assert [app for app in APPS if (app, "0001_initial") not in applied] == []
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_until_then_nothing_counts_as_missing(unsquashed):
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


@pytest.mark.parametrize("app", APPS)
def test_half_of_the_former_ones_is_refused_with_what_to_do(unsquashed, app):
    *_, last = sorted(migration_state.replaced()[app, "0001_initial"])
    unsquashed.record_unapplied(*last)
    before = set(unsquashed.applied_migrations())
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0, interactive=False)
    assert str(refused.value) == (
        "This database can't be migrated. It was made by an unreleased version and lacks 1 of its migrations "
        f"({app}.{last[1]}). Check out commit 4431311, run its manage.py migrate, then come back to this version "
        "and run manage.py migrate. Nothing was changed."
    )
    assert set(unsquashed.applied_migrations()) == before
