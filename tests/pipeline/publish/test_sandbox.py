"""A workspace that isn't approved yet publishes to its feed and the simulated outlet alone, without the operator's model."""

from __future__ import annotations

import importlib

import pytest
from django.apps import apps

from accounts import audit, workspaces
from accounts.models import Workspace
from config.core import task_runner
from config.core.encrypted_fields import Sealed, seal
from pipeline import resources
from pipeline.generate.model import keys
from pipeline.models import Outlet, Publication
from pipeline.publish import blockers
from tests.pipeline.steps import NOON, make_items, promise, reread, send


@pytest.fixture
def sandbox(workspace):
    """As somebody has just made it; nobody has approved it."""
    Workspace.everywhere.filter(pk=workspace.pk).update(whitelisted_at=None)
    return reread(workspace)


def outlet_of(workspace, platform):
    found = Outlet.everywhere.filter(workspace=workspace, platform=platform).first()
    return found or Outlet.everywhere.create(workspace=workspace, platform=platform, name=platform)


def make_item(workspace, number=0):
    body = (
        f"The harbour opens quay {number} on Monday. Ferries leave from it every ten minutes in the morning."
    )
    made = {"title": f"Quay {number} opens", "url": f"https://news.example/{number}", "body": body}
    return make_items(workspace, **made)[0]


def why(publication):
    """What is shown to people of a post that waits."""
    return next(blockers.find_blockers(publication, NOON)).message


def feed(client, workspace):
    secret = outlet_of(workspace, "feed").secret
    return client.get(resources.feed_addresses(secret)["json"].partition("8000")[2])


@pytest.mark.parametrize("platform", ["feed", "simulated"])
def test_it_publishes_to_what_came_with_it(sandbox, platform):
    publication = send(promise(make_item(sandbox), outlet_of(sandbox, platform)))
    assert publication.status == "published"


@pytest.mark.parametrize("platform", ["mastodon", "email_newsletter", "signed_webhook", "gone"])
def test_nothing_else_is_published_before_approval(sandbox, platform):
    waiting = promise(make_item(sandbox), outlet_of(sandbox, "simulated"))
    # A kind that no plug-in serves any more can't be promised to.
    Publication.everywhere.filter(pk=waiting.pk).update(platform=platform)
    publication = send(reread(waiting))
    assert (publication.status, publication.attempts) == ("scheduled", 0)
    assert "isn't approved yet" in why(publication)


def test_approval_lets_what_waits_go_out(sandbox):
    waiting = promise(make_item(sandbox), outlet_of(sandbox, "simulated"))
    Publication.everywhere.filter(pk=waiting.pk).update(platform="mastodon")
    assert send(reread(waiting)).status == "scheduled"
    workspaces.whitelist(sandbox, "operator")
    Publication.everywhere.filter(pk=waiting.pk).update(platform="simulated")
    assert send(reread(waiting)).status == "published"


@pytest.mark.parametrize("platform", ["feed", "simulated"])
def test_who_lost_access_publishes_nothing(workspace, platform):
    waiting = promise(make_item(workspace), outlet_of(workspace, platform))
    workspaces.delist(workspace, "operator")
    publication = send(waiting)
    assert (publication.status, publication.attempts) == ("scheduled", 0)
    assert "revoked" in why(publication)
    workspaces.whitelist(workspace, "operator")
    assert reread(workspace).delisted_at is None
    assert send(publication).status == "published"


@pytest.mark.parametrize("change", ["deletes_at", "deleted_at"])
def test_who_is_being_deleted_is_in_no_sandbox(sandbox, change, clock):
    waiting = promise(make_item(sandbox), outlet_of(sandbox, "feed"))
    Workspace.everywhere.filter(pk=sandbox.pk).update(**{change: sandbox.created_at})
    assert send(waiting).status == "scheduled"


def test_its_feed_is_short_and_in_no_search_engine(sandbox, client, monkeypatch):
    monkeypatch.setattr("pipeline.pages.public_feed.SANDBOX_FEED_PUBLISHED", 2)
    for number in range(3):
        send(promise(make_item(sandbox, number), outlet_of(sandbox, "feed")))
    answer = feed(client, sandbox)
    assert (len(answer.json()["items"]), answer["X-Robots-Tag"]) == (2, "noindex")
    workspaces.whitelist(sandbox, "operator")
    answer = feed(client, sandbox)
    assert len(answer.json()["items"]) == 3
    assert "X-Robots-Tag" not in answer


def test_the_operator_s_key_pays_for_approved_workspaces_alone(sandbox, settings):
    settings.ANTHROPIC_API_KEY = "sk-ant-operator"
    assert keys.workspace_has_key(sandbox) is False
    sandbox.model_key = Sealed(seal("sk-ant-own"))
    assert keys.workspace_has_key(sandbox) is True
    sandbox.model_key = None
    workspaces.whitelist(sandbox, "operator")
    assert keys.workspace_has_key(sandbox) is True


def test_an_item_is_made_without_the_operator_s_model(sandbox, settings):
    settings.ANTHROPIC_API_KEY = "sk-ant-operator"
    item = make_item(sandbox)
    task_runner.work_all_due("generate.run_item")
    assert (reread(item).status, reread(item).generation.model_calls.count()) == ("ready", 0)


def test_the_migration_tells_who_lost_access_from_who_is_new(sandbox, charlies):
    workspaces.delist(charlies, "operator")
    at = charlies.delisted_at
    Workspace.everywhere.update(delisted_at=None)
    audit.note("workspace.delisted", workspace=None, actor="operator", subject="ws_gone")
    migration = importlib.import_module("accounts.migrations.0002_workspace_delisted_at")
    migration.fill(apps, None)
    assert abs(reread(charlies).delisted_at - at).total_seconds() < 1
    assert reread(sandbox).delisted_at is None
