"""What was registered and taken in before the kinds of source were fetched goes on after the upgrade."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from config.ground.ids import uuid7
from pipeline.stages.identity import second_key

BEFORE = ("pipeline", "0013_uploads")
AFTER = ("pipeline", "0014_run_what_was_registered")
PAGE = "https://h.example/rye"


def migrated_to(*targets):
    executor = MigrationExecutor(connection)
    executor.migrate(list(targets))
    return MigrationExecutor(connection).loader.project_state(list(targets)).apps


@pytest.fixture
def apps():
    graph = MigrationExecutor(connection).loader.graph
    accounts = next(key for key in graph.leaf_nodes() if key[0] == "accounts")
    yield migrated_to(BEFORE, accounts)
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.fixture
def workspace(apps):
    plan = apps.get_model("accounts", "Plan").objects.create(name="Old")
    return apps.get_model("accounts", "Workspace").everywhere.create(name="Old", pk=uuid7(), plan=plan)


def source(apps, workspace, kind, **more):
    values = {"status": "active", "config": {}, "created_at": timezone.now(), **more}
    return apps.get_model("pipeline", "Source").everywhere.create(
        pk=uuid7(), workspace=workspace, name=kind, type=kind, **values
    )


@pytest.mark.django_db(transaction=True)
def test_what_was_registered_starts_and_what_feeds_brought_is_known(apps, workspace):
    """Both in one, for it takes a while to go back to where they were."""
    started = started_after(apps, workspace)
    known = known_after(apps, workspace)
    after = migrated_to(AFTER)
    started(after)
    known(after)


def started_after(apps, workspace):
    """Sources of kinds that are new; returns what has to hold of them after the upgrade."""
    kinds = ("scraper", "youtube", "tiktok", "brand")
    rows = [source(apps, workspace, kind) for kind in kinds]
    still = [
        source(apps, workspace, "brand", status="paused"),
        source(apps, workspace, "scraper", deleted_at=timezone.now()),
        source(apps, workspace, "webhook"),
    ]

    def hold(after):
        woken = {row.pk: row for row in after.get_model("pipeline", "Source").everywhere.all()}
        assert [woken[row.pk].wake_at is not None for row in rows] == [True, True, True, False]
        assert all(woken[row.pk].due_at is not None for row in rows)
        assert [(woken[row.pk].wake_at, woken[row.pk].due_at) for row in still] == [(None, None)] * 3
        (slot,) = after.get_model("pipeline", "BrandSlot").everywhere.all()
        assert (slot.source_id, slot.workspace_id, slot.status, slot.wake_at) == (
            rows[3].pk,
            workspace.pk,
            "waiting",
            slot.due_at,
        )
        assert slot.due_at == woken[rows[3].pk].due_at

    return hold


def known_after(apps, workspace):
    """What feeds brought; returns what has to hold of it after the upgrade."""
    feed, pushed = source(apps, workspace, "rss"), source(apps, workspace, "webhook")
    raw = apps.get_model("pipeline", "RawItem").everywhere

    def item(of, key, **more):
        values = {"url": PAGE, "content_hash": key, "created_at": timezone.now(), **more}
        return raw.create(pk=uuid7(), workspace=workspace, source=of, dedup_key=key, **values)

    first, _, bare = item(feed, "a"), item(feed, "b"), item(feed, "c", url="")
    item(feed, "d", url="https://h.example/oats", deleted_at=timezone.now())
    item(feed, "e", url="https://h.example/")
    item(pushed, "f", url="https://h.example/spelt")

    def hold(after):
        prints = after.get_model("pipeline", "RawPrint").everywhere.order_by("id")
        assert list(prints.values_list("id", "workspace_id", "test", "second_key", "bits")) == [
            (first.pk, workspace.pk, False, second_key(feed.pk, url=PAGE, body_hash="a"), None),
            (bare.pk, workspace.pk, False, second_key(feed.pk, url="", body_hash="c"), None),
        ]

    return hold
