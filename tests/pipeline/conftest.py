"""What the tests of the stages stand on: Alice's furnished workspace, a still clock, and no hands but the test's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts import workspaces
from accounts.ledger import reports
from accounts.models import Plan, User, Workspace
from config.core import work_queue
from pipeline.models import GeneratedItem, Outlet, WorkspaceDefaults
from tests.pipeline import steps
from tests.writers.messages_server import MessagesServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[time_machine.Traveller]:
    # PostgreSQL's clock can't be stopped: what is claimed and leased by it goes by this one too.
    monkeypatch.setattr(work_queue, "database_now", timezone.now)
    with time_machine.travel(steps.NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture(autouse=True)
def with_quick_workspaces(quick_workspaces: None) -> None:
    """What a new workspace makes is looked at in `test_furnish.py`."""


@pytest.fixture
def workspace(alice: User) -> Iterator[Workspace]:
    """Whitelisted and furnished; whatever a test does with it, its ledger adds up in the end."""
    plan = Plan.objects.create(name="Small", credits_per_month=10, active_sources_most=2)
    made = workspaces.create("Alice's newsroom", owner=alice, plan=plan)
    workspaces.whitelist(made, "operator")
    # One item from each push; a test that wants more names more.
    WorkspaceDefaults.everywhere.filter(workspace=made).update(engines=["Short Post"])
    yield Workspace.everywhere.select_related("plan").get(pk=made.pk)
    assert reports.check() == []


@pytest.fixture
def charlies(db) -> Workspace:
    """Nothing of Alice's may ever touch it."""
    made = workspaces.create("Charlie's newsroom")
    workspaces.whitelist(made, "operator")
    return Workspace.everywhere.select_related("plan").get(pk=made.pk)


@pytest.fixture
def model_server(settings: Any, anthropic_sdk: None) -> Iterator[MessagesServer]:
    """Claude, to whom the operator's key leads; it answers as a test tells it."""
    with MessagesServer() as running:
        settings.ANTHROPIC_API_KEY = "key-of-the-operator"
        settings.ANTHROPIC_BASE_URL = running.url
        yield running


@pytest.fixture
def defaults(workspace: Workspace) -> WorkspaceDefaults:
    return WorkspaceDefaults.everywhere.select_related("push_source", "test_push_source").get(
        workspace=workspace
    )


@pytest.fixture
def stage(workspace: Workspace) -> Outlet:
    """The workspace's own simulated outlet; it says ok unless a test gives it a script."""
    return Outlet.everywhere.get(workspace=workspace, platform="simulated")


@pytest.fixture
def feed(workspace: Workspace) -> Outlet:
    return Outlet.everywhere.get(workspace=workspace, platform="feed")


@pytest.fixture
def ready(workspace: Workspace) -> GeneratedItem:
    return steps.make_items(workspace)[0]


@pytest.fixture
def together() -> Callable[..., list[Any]]:
    """Calls things at the same moment, each on a thread and connection of its own; gives results or errors."""

    def run(*things: Callable[[], Any]) -> list[Any]:
        start = Barrier(len(things))

        def one(thing: Callable[[], Any]) -> Any:
            try:
                start.wait(10)
                return thing()
            except Exception as error:
                return error
            finally:
                connection.close()

        with ThreadPoolExecutor(len(things)) as pool:
            return list(pool.map(one, things))

    return run
