"""The workspace's own key for the model and its cap: set, replaced and removed, and shown to nobody."""

from __future__ import annotations

import pickle

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import model_keys, plans, workspaces
from accounts.models import AuditEntry, Workspace
from config.core.encrypted_fields import Sealed
from config.core.errors import Invalid
from config.core.logs import redact
from pipeline.generate.model.keys import key_for
from pipeline.models import Generation
from pipeline.switches import kill_switch
from tests.factories import TokenFactory
from tests.pipeline.steps import push_raw

pytestmark = pytest.mark.django_db

KEY = "sk-ant-api03-A1b2C3d4E5f6G7h8-wxyz"
OTHER = "sk-ant-api03-Z9y8X7w6V5u4T3s2-abcd"


def page_of(workspace):
    return reverse("admin:accounts_workspace_change", args=[workspace.pk])


def save(browser, workspace, **changes):
    given = {"name": workspace.name, "timezone": "UTC", "plan": workspace.plan_id, **changes}
    return browser.post(page_of(workspace), given)


def key_of_a_run(workspace):
    raw = push_raw(workspace).raw_item
    run = Generation.everywhere.select_related("workspace").filter(raw_item=raw).first()
    return key_for(run)


def notes():
    found = AuditEntry.everywhere.filter(action__startswith="workspace.model_key").order_by("id")
    return list(found.values_list("actor", "action", "subject", "details"))


def test_a_key_is_set_replaced_and_removed(browser, workspace, settings):
    settings.ANTHROPIC_API_KEY = "key-of-the-operator"
    assert "No own key" in browser.get(page_of(workspace)).content.decode()
    for key, last_four in ((KEY, "wxyz"), (OTHER, "abcd")):
        assert save(browser, workspace, new_model_key=f" {key} ").status_code == 302
        shown = browser.get(page_of(workspace)).content.decode()
        assert f"Own key ending in {last_four}" in shown
        assert key not in shown
    assert key_of_a_run(workspace) == OTHER
    assert save(browser, workspace, is_key_removed="on").status_code == 302
    assert "No own key" in browser.get(page_of(workspace)).content.decode()
    stored = Workspace.everywhere.get(pk=workspace.pk)
    assert (stored.model_key, stored.model_key_last_four) == (None, "")
    set_note = ("operator@example.test", "workspace.model_key_set", workspace.public_id, {})
    assert notes() == [set_note, set_note, (set_note[0], "workspace.model_key_removed", set_note[2], {})]


def test_saving_the_page_without_a_key_keeps_it(browser, workspace):
    model_keys.set_model_key(workspace, KEY, "op")
    assert save(browser, workspace, name="Renamed").status_code == 302
    assert key_of_a_run(workspace) == KEY
    assert [note[1] for note in notes()] == ["workspace.model_key_set"]


@pytest.mark.parametrize(
    "wrong", ["short", "has spaces in the middle", "sk-ant-žluťoučký-kůň-xxxx", "x" * 401]
)
def test_what_can_be_no_key_is_refused(browser, workspace, wrong):
    answer = save(browser, workspace, new_model_key=wrong)
    assert answer.context["adminform"].form.errors == {
        "new_model_key": ["Paste the whole key as its vendor shows it: 16 to 400 characters without spaces."]
    }
    assert wrong not in answer.content.decode()
    with pytest.raises(Invalid):
        model_keys.set_model_key(workspace, wrong, "op")
    assert Workspace.everywhere.get(pk=workspace.pk).model_key is None


def test_set_and_remove_at_once_is_refused(browser, workspace):
    answer = save(browser, workspace, new_model_key=KEY, is_key_removed="on")
    assert answer.context["adminform"].form.errors == {
        "is_key_removed": ["Either set a new key or remove it."]
    }
    assert KEY not in answer.content.decode()
    assert Workspace.everywhere.get(pk=workspace.pk).model_key is None


@pytest.mark.parametrize(("given", "kept"), [("12.5", 12_500_000), ("0", 0), ("", None)])
def test_the_cap_is_given_in_dollars(browser, workspace, given, kept):
    Workspace.everywhere.filter(pk=workspace.pk).update(model_cap_micro_usd=1_000_000)
    assert save(browser, workspace, model_cap_usd=given).status_code == 302
    assert Workspace.everywhere.get(pk=workspace.pk).model_cap_micro_usd == kept
    assert AuditEntry.everywhere.get(action="workspace.changed").details == {
        "model_cap_micro_usd": [1_000_000, kept]
    }
    shown = browser.get(page_of(workspace)).context["adminform"].form["model_cap_usd"].value()
    assert shown == (None if kept is None else kept / 1_000_000)


def test_a_new_workspace_can_have_both_at_once(browser):
    plan = plans.default_plan()
    given = {"name": "New", "timezone": "UTC", "plan": plan.pk, "model_cap_usd": "3", "new_model_key": KEY}
    assert browser.post(reverse("admin:accounts_workspace_add"), given).status_code == 302
    made = Workspace.everywhere.get(name="New")
    assert (made.model_cap_micro_usd, made.model_key.open()) == (3_000_000, KEY)


def test_the_key_is_told_nowhere(browser, client, workspace, caplog, capfd):
    token = TokenFactory(workspace=workspace)
    save(browser, workspace, new_model_key=KEY, model_cap_usd="5", name="Renamed")
    workspaces.change(Workspace.everywhere.select_related("plan").get(pk=workspace.pk), ["model_key"], "op")
    told = AuditEntry.everywhere.filter(action="workspace.changed").order_by("-id").first()
    assert told.details == {"model_key": ["[sealed]", "[sealed]"]}
    row = Workspace.everywhere.get(pk=workspace.pk)
    said = [
        repr(row.model_key),
        str(row.model_key),
        f"{row.model_key}",
        repr(vars(row)),
        str(redact({"workspace": vars(row), "text": f"refused {KEY}"})),
        str(list(AuditEntry.everywhere.values())),
        caplog.text,
        *capfd.readouterr(),
    ]
    authorized = {"Authorization": f"Bearer {token.secret}"}
    said += [
        client.get(f"/v1/{name}", headers=authorized).content.decode() for name in ("workspace", "usage")
    ]
    pages = [page_of(workspace), "/admin/", reverse("admin:accounts_workspace_changelist")]
    pages += [reverse("admin:accounts_workspace_history", args=[workspace.pk])]
    pages += [reverse("admin:accounts_auditentry_changelist")]
    pages += [reverse("admin:accounts_auditentry_change", args=[told.pk])]
    said += [browser.get(page).content.decode() for page in pages]
    assert [text for text in said if KEY in text] == []
    assert KEY.encode() not in pickle.dumps(row)


def test_what_is_stored_is_sealed(workspace):
    model_keys.set_model_key(workspace, KEY, "op")
    with connection.cursor() as cursor:
        cursor.execute("SELECT model_key FROM workspace WHERE model_key IS NOT NULL")
        stored = cursor.fetchone()[0]
    assert KEY not in stored
    assert isinstance(workspace.model_key, Sealed)
    # Saving a row that was read writes the same sealed text, not a seal around it.
    row = Workspace.everywhere.get(pk=workspace.pk)
    row.save(update_fields=["model_key"])
    assert Workspace.everywhere.get(pk=workspace.pk).model_key.open() == KEY


def test_what_reads_workspaces_does_not_open_their_keys(browser, workspace, settings):
    """With a key that nothing can open, only the run that needs it fails."""
    model_keys.set_model_key(workspace, KEY, "op")
    with CaptureQueriesContext(connection), connection.cursor() as cursor:
        cursor.execute("UPDATE workspace SET model_key = 'gone:x'")
    kill_switch.stop("publishing", workspace=workspace, reason="Trial", actor="op")
    kill_switch._cache.clear()
    assert [switch.workspace for switch in kill_switch.read_switches()] == [workspace]
    assert browser.get("/admin/").status_code == 200
    assert browser.get(page_of(workspace)).status_code == 200
