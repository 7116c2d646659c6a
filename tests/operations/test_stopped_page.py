"""The page where an operator stops and resumes, and the banner on every other page."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from accounts.models import AuditEntry
from pipeline.models import Switch
from pipeline.switches import kill_switch
from tests.factories import UserFactory, WorkspaceFactory

pytestmark = pytest.mark.django_db

LIST = "admin:pipeline_switch_changelist"


def test_stop_shows_a_banner_everywhere_and_resume_takes_it_away(browser):
    workspace = WorkspaceFactory(name="Alice's <newsroom>")
    given = {
        "what": "publishing",
        "platform": "feed",
        "workspace": str(workspace.pk),
        "reason": "They <asked>.",
    }
    assert browser.post(reverse("admin:pipeline_switch_add"), given).status_code == 302
    switch = Switch.everywhere.get()
    assert (switch.what, switch.platform, switch.workspace, switch.set_by) == (
        "publishing",
        "feed",
        workspace,
        "operator@example.test",
    )
    for name in ("admin:index", "admin:accounts_plan_changelist", LIST):
        page = browser.get(reverse(name)).content.decode()
        assert "Publishing is paused: Alice&#x27;s &lt;newsroom&gt;, feed." in page
        assert "They &lt;asked&gt;." in page
    answer = browser.post(reverse(LIST), {"action": "resume", "_selected_action": [switch.pk]}, follow=True)
    assert [str(message) for message in answer.context["messages"]] == ["1 switch resumed."]
    assert 'id="stopped"' not in answer.content.decode()
    assert list(AuditEntry.everywhere.order_by("id").values_list("action", flat=True)) == [
        "publishing.stopped",
        "publishing.resumed",
    ]


def test_stopping_again_renews_the_reason(browser):
    for reason in ("One", "Two"):
        given = {"what": "publishing", "platform": "", "workspace": "", "reason": reason}
        assert browser.post(reverse("admin:pipeline_switch_add"), given).status_code == 302
    assert [row.reason for row in Switch.everywhere.all()] == ["Two"]


def test_what_makes_no_sense_is_said(browser):
    given = {"what": "model_calls", "platform": "feed", "workspace": "", "reason": "x"}
    answer = browser.post(reverse("admin:pipeline_switch_add"), given)
    assert answer.status_code == 200
    assert "Model calls go to no platform; leave it out." in answer.content.decode()
    assert not Switch.everywhere.exists()


def test_nobody_logged_in_is_told_nothing(client):
    kill_switch.stop("publishing", reason="Secret reason", actor="op")
    assert "Secret reason" not in client.get(reverse("admin:login")).content.decode()


def test_seeing_is_not_resuming(client):
    switch = kill_switch.stop("publishing", reason="x", actor="op")
    person = UserFactory(email="looks@example.test", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_switch"))
    client.force_login(person)
    client.post(reverse(LIST), {"action": "resume", "_selected_action": [switch.pk]})
    assert Switch.everywhere.filter(pk=switch.pk).exists()
    assert client.post(reverse("admin:pipeline_switch_add"), {}).status_code == 403
