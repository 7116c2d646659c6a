"""The page of dead rows: what it lists, what it takes up again, and who may."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from accounts import workspaces
from accounts.access import tokens
from accounts.models import ApiToken, AuditEntry
from config.admin_site import views as config_admin
from config.core.ids import encode
from config.operations import failures as dead_rows_act
from config.operations import queue_stats
from pipeline import publish
from pipeline.generate import run as generation_run
from pipeline.models import GeneratedItem, Generation, Publication, RawItem, Source
from pipeline.publish import steps as publish_steps
from tests.factories import TokenFactory, UserFactory
from tests.pipeline.steps import claimed, make_items, make_stage, push_raw, reread
from tests.webhooks.factories import make_delivery, make_endpoint

pytestmark = pytest.mark.django_db


def dead_source(workspace, status="gone"):
    row = Source(
        workspace=workspace, name="Old", type="rss", last_error={"code": "x", "message": "410 <Gone>"}
    )
    row.status = status
    row.save(force_insert=True)
    return row


def dead_publication(workspace, word):
    item = make_items(workspace)[0]
    outlet = make_stage(workspace, word)
    row = publish.request(item, publish.PublishWish(outlets=[encode("out", outlet.pk)]), by="alice")[1][0]
    publish_steps.advance_publication(claimed(row))
    return reread(row)


def requeue(browser, kind, *ids):
    answer = browser.post(reverse("admin_dead_rows"), {"kind": kind, "id": ids}, follow=True)
    return [str(message) for message in answer.context["messages"]]


def notes():
    found = AuditEntry.everywhere.filter(action="row.requeued").order_by("id")
    return list(found.values_list("actor", "subject", "details"))


def test_the_page_lists_what_is_dead_and_why(browser, workspace):
    dead_source(workspace)
    dead_source(workspace, "active")
    page = browser.get(reverse("admin_dead_rows"))
    counts = {section["name"]: section["count"] for section in page.context["sections"]}
    assert counts == {
        "sources": 1,
        "raw_items": 0,
        "generated_items": 0,
        "persona_drafts": 0,
        "publications": 0,
        "deliveries": 0,
    }
    assert "410 &lt;Gone&gt;" in page.content.decode()
    assert f'href="{reverse("admin_dead_rows")}"' in browser.get(reverse("admin:index")).content.decode()


def test_a_gone_source_is_polled_again(browser, workspace):
    row = dead_source(workspace)
    name = encode("src", row.pk)
    assert requeue(browser, "sources", name) == ["1 row requeued."]
    again = reread(row)
    assert (again.status, again.wake_at is not None, again.last_error) == ("active", True, None)
    assert notes() == [("operator@example.test", name, {"kind": "sources"})]


def test_a_failed_raw_item_is_made_again(browser, workspace):
    raw = push_raw(workspace).raw_item
    RawItem.everywhere.filter(pk=raw.pk).update(status="failed")
    assert requeue(browser, "raw_items", encode("raw", raw.pk)) == ["1 row requeued."]
    assert reread(raw).status == "queued"


def test_a_failed_publication_is_tried_again(browser, workspace):
    row = dead_publication(workspace, "reject")
    assert row.status == "failed"
    assert requeue(browser, "publications", encode("pub", row.pk)) == ["1 row requeued."]
    assert reread(row).status == "scheduled"


def test_an_unknown_publication_is_asked_for_and_not_sent(browser, workspace):
    row = dead_publication(workspace, "ok")
    Publication.everywhere.filter(pk=row.pk).update(status="unknown", wake_at=None)
    assert requeue(browser, "publications", encode("pub", row.pk)) == ["1 row requeued."]
    again = reread(row)
    assert (again.status, again.attempt_count, again.wake_at is not None) == ("unknown", 1, True)


def test_what_is_not_dead_is_left_alone(browser, workspace):
    row = dead_source(workspace, "paused")
    name = encode("src", row.pk)
    said = requeue(browser, "sources", name, "src_nonsense")
    assert [text.partition(":")[0] for text in said] == [name, "src_nonsense"]
    assert reread(row).status == "paused"
    assert notes() == []


def test_seeing_is_not_requeueing(client, workspace):
    row = dead_source(workspace)
    person = UserFactory(email="looks@example.test", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_source"))
    client.force_login(person)
    assert [one["name"] for one in client.get(reverse("admin_dead_rows")).context["sections"]] == ["sources"]
    assert requeue(client, "sources", encode("src", row.pk)) == [
        "You don't have permission to requeue these."
    ]
    assert reread(row).status == "gone"


def test_nobody_else_sees_it(client):
    answer = client.get(reverse("admin_dead_rows"))
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/admin/login/")


def test_all_tokens_of_a_workspace_are_revoked_at_once(browser, workspace):
    mine = [TokenFactory(workspace=workspace) for _ in range(2)]
    charlies = TokenFactory(workspace=workspaces.create("Charlie's newsroom"))
    page = reverse("admin:accounts_workspace_changelist")
    given = {"action": "revoke_tokens", "_selected_action": [workspace.pk]}
    answer = browser.post(page, given, follow=True)
    assert [str(message) for message in answer.context["messages"]] == ["2 keys were revoked."]
    assert set(ApiToken.everywhere.filter(revoked_at=None)) == {charlies}

    assert [tokens.find_token(token.secret, datetime.now(UTC)) for token in mine] == [None, None]
    found = AuditEntry.everywhere.filter(action="token.all_revoked")
    assert list(found.values_list("actor", "subject", "details")) == [
        ("operator@example.test", workspace.public_id, {"tokens": 2})
    ]


def test_a_failed_generated_item_is_made_again(browser, workspace):
    raw = push_raw(workspace).raw_item
    run = Generation.everywhere.filter(raw_item=raw).order_by("id").first()
    item = GeneratedItem.everywhere.get(generation=run)
    error = {"code": "engine_failed", "message": "It <broke>."}
    GeneratedItem.everywhere.filter(pk=item.pk).update(status="failed", error=error)
    Generation.everywhere.filter(pk=run.pk).update(status="failed", error=error, wake_at=None)
    assert "It &lt;broke&gt;." in browser.get(reverse("admin_dead_rows")).content.decode()
    name = encode("gen", item.pk)
    assert requeue(browser, "generated_items", name) == ["1 row requeued."]
    again = reread(item)
    assert (again.status, again.error, again.generation_id == run.pk) == ("queued", None, False)
    generation_run.run_generation(claimed(again.generation))
    assert reread(item).status == "ready"
    assert notes() == [("operator@example.test", name, {"kind": "generated_items"})]


def test_a_failed_delivery_is_sent_again(browser, workspace):
    endpoint = make_endpoint(workspace)
    row = make_delivery(endpoint, status="failed", wake_at=None, last_error="It answered 500.")
    assert "It answered 500." in browser.get(reverse("admin_dead_rows")).content.decode()
    name = encode("dlv", row.pk)
    assert requeue(browser, "deliveries", name) == ["1 row requeued."]
    again = reread(row)
    assert (again.status, again.wake_at is not None, again.lease_token) == (
        "pending",
        True,
        row.lease_token + 1,
    )
    assert notes() == [("operator@example.test", name, {"kind": "deliveries"})]


def test_a_delivery_to_an_endpoint_that_is_off_stays_and_says_why(browser, workspace):
    row = make_delivery(make_endpoint(workspace, is_on=False), status="failed", wake_at=None)
    said = requeue(browser, "deliveries", encode("dlv", row.pk))
    assert [text.partition(": ")[2] for text in said] == [
        "Switch the endpoint on first. Its held events can be sent with it."
    ]
    assert (reread(row).status, notes()) == ("failed", [])


def test_every_kind_of_dead_row_has_its_prefix_its_act_and_its_words():
    assert (
        set(queue_stats.DEAD)
        == set(dead_rows_act.PREFIXES)
        == set(dead_rows_act._RETRIES)
        == set(config_admin.LABELS)
    )
