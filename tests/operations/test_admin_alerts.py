"""The first block of the admin: what needs the operator, each line with where to go."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from accounts import whitelist_requests, workspaces
from accounts.models import Workspace
from config.core import work_leases
from config.operations import needs_attention, plugin_checks
from pipeline.models import Generation
from pipeline.switches import kill_switch
from tests.factories import UserFactory
from tests.operations.test_dead_letters import dead_source
from tests.operations.test_overview import call
from tests.pipeline.steps import push_raw

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_media")]


@pytest.fixture(autouse=True)
def current_platforms(monkeypatch):
    """Whenever the tests run: the documents of the platforms grow older by the day."""
    monkeypatch.setattr(plugin_checks, "aging_apis", list)


@pytest.fixture
def workspace(db):
    made = workspaces.create("Alice's <newsroom>")
    workspaces.whitelist(made, "operator")
    return made


def texts(operator):
    kill_switch._cache.clear()
    return [need.text for need in needs_attention.visible_needs(operator)]


def test_nothing_needs_you(client, operator, workspace):
    client.force_login(operator)
    assert "Nothing needs attention." in client.get("/admin/").content.decode()
    assert needs_attention.visible_needs(operator) == []


def test_everything_that_needs_somebody_is_a_line_with_its_page(client, operator, workspace, settings):
    settings.MODEL_DAILY_CAP_USD = 1
    whitelist_requests.request_whitelisting(workspaces.create("Charlie's"), "Please", "carol@example.test")
    kill_switch.stop("publishing", reason="Trial", actor="op")
    Workspace.everywhere.filter(pk=workspace.pk).update(model_cap_micro_usd=1_000_000)
    call(workspace, 800_000)
    push_raw(workspace)
    Generation.everywhere.filter(workspace=workspace).update(wake_at=timezone.now() - timedelta(minutes=3))
    count = Generation.everywhere.filter(workspace=workspace).count()
    dead_source(workspace)
    work_leases.note_worker("one", settings.QUEUE_SLOTS)
    assert texts(operator) == [
        "1 workspace requests access",
        "Publishing is paused: on the whole instance",
        "Alice's <newsroom> has spent $0.80 of its $1.00 for the model this month",
        "Your key for the model has cost $0.80 of the $1.00 for today",
        f"{count} generations wait for a worker, the oldest for 3 min",
        "1 source fails or is gone",
    ]
    client.force_login(operator)
    page = client.get("/admin/")
    assert "Nothing needs attention." not in page.content.decode()
    assert "Alice&#x27;s &lt;newsroom&gt; has spent" in page.content.decode()
    for need in needs_attention.visible_needs(operator):
        assert client.get(need.page).status_code == 200, need.page


@pytest.mark.parametrize(("spent", "is_near"), [(799_999, False), (800_000, True), (3_000_000, True)])
def test_a_cap_is_near_from_80_percent_on(operator, workspace, spent, is_near):
    Workspace.everywhere.filter(pk=workspace.pk).update(model_cap_micro_usd=1_000_000)
    call(workspace, spent)
    call(workspace, 5_000_000, created_at=timezone.now() - timedelta(days=32))
    call(workspaces.create("Without a cap"), 9_000_000)
    assert bool(texts(operator)) is is_near


def test_only_what_a_person_may_see_is_told(workspace):
    dead_source(workspace)
    kill_switch.stop("publishing", reason="Trial", actor="op")
    person = UserFactory(email="looks@example.test", is_staff=True)
    assert texts(person) == []
    person.user_permissions.add(Permission.objects.get(codename="view_source"))
    again = type(person).objects.get(pk=person.pk)
    assert [need.page for need in needs_attention.visible_needs(again)] == [
        f"{reverse('admin_dead_rows')}#sources"
    ]
