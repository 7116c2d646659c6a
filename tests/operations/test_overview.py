"""The operator's page of one workspace: what it tells, to whom, at what price, and what can be done there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import model_keys, whitelist_requests, workspaces
from accounts.access import tokens
from accounts.models import ApiToken, Workspace
from analytics.models import Outcome
from config.core.ids import encode, uuid7
from pipeline.models import GeneratedItem, Generation, ModelCall, Outlet, Publication, RawItem, Source
from pipeline.switches import kill_switch
from tests.factories import MembershipFactory, TokenFactory, UserFactory
from tests.operations.test_dead_letters import dead_publication, dead_source
from tests.pipeline.steps import make_items
from tests.webhooks.factories import make_delivery, make_endpoint

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace(db):
    made = workspaces.create("Alice's <newsroom>")
    workspaces.whitelist(made, "operator")
    return made


@pytest.fixture
def charlies(db):
    return workspaces.create("Charlie's newsroom")


def page_of(workspace):
    return reverse("workspace_overview", args=[workspace.public_id])


def call(workspace, cost, **changes):
    given = {
        "stage": "draft",
        "is_own_key": False,
        "asked_model": "claude-haiku-5-5",
        "prompt_version": "1",
        "mode": "live",
        "outcome": "answered",
        "cost_micro_usd": cost,
        **changes,
    }
    return ModelCall.everywhere.create(workspace=workspace, **given)


def do(browser, workspace, act, **more):
    answer = browser.post(page_of(workspace), {"act": act, **more}, follow=True)
    return [str(message) for message in answer.context["messages"]]


def test_money_is_told_by_model_and_engine_beside_the_cap(browser, workspace, charlies):
    make_items(workspace)
    run = Generation.everywhere.filter(workspace=workspace).first()
    month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    call(workspace, 1_200_000, generation=run)
    call(workspace, 300_000, generation=run, created_at=month)
    call(workspace, 500_000, is_own_key=True, asked_model="claude-sonnet-5-5")
    call(workspace, 9_000_000, created_at=month - timedelta(seconds=1))
    call(charlies, 7_000_000)
    Workspace.everywhere.filter(pk=workspace.pk).update(model_cap_micro_usd=2_500_000)
    money = browser.get(page_of(workspace)).context["told"].money
    today = 1_200_000 if datetime.now(UTC).day > 1 else 1_500_000
    assert [
        (one.model, one.engine, one.is_own_key, one.calls, one.today, one.month) for one in money.rows
    ] == [
        ("claude-haiku-5-5", run.engine, False, 2, today, 1_500_000),
        ("claude-sonnet-5-5", "", True, 1, 500_000, 500_000),
    ]
    assert (money.month, money.today, money.cap, money.percent) == (2_000_000, today + 500_000, 2_500_000, 80)
    page = browser.get(page_of(workspace)).content.decode()
    assert ("$2.00" in page, "$2.50" in page, "80 % of the cap" in page, "$7.00" in page) == (
        True,
        True,
        True,
        False,
    )


def test_counts_are_of_this_month_and_of_live_rows(browser, workspace, charlies):
    item = make_items(workspace)[0]
    make_items(charlies)
    make_items(workspace, test=True)
    told = browser.get(page_of(workspace)).context["told"]
    made = GeneratedItem.everywhere.filter(workspace=workspace, test=False)
    for table, column in ((told.items_by_status, "status"), (told.items_by_bucket, "bucket")):
        values = list(made.values_list(column, flat=True))
        assert table.figures == sorted((value, values.count(value)) for value in set(values))
        assert table.of_test == GeneratedItem.everywhere.filter(workspace=workspace, test=True).count()
    assert (told.raw_items.figures, told.raw_items.of_test) == ([("processed", 1)], 1)
    assert told.publications.figures == []

    old = datetime.now(UTC) - timedelta(days=40)
    outlet = Outlet.everywhere.filter(workspace=workspace).first()
    for is_published, at in ((True, datetime.now(UTC)), (False, datetime.now(UTC)), (True, old)):
        Outcome.everywhere.create(
            workspace=workspace,
            event_id=uuid7(),
            publication_id=uuid7(),
            is_published=is_published,
            at=at,
            outlet=outlet,
            content_type="text",
            engine_output="Short Post",
        )
    RawItem.everywhere.filter(workspace=workspace).exclude(pk=item.raw_item_id).update(status="failed")
    told = browser.get(page_of(workspace)).context["told"]
    assert told.publications.figures == [("failed", 1), ("published", 1)]


def test_failures_are_told_with_their_reason_and_the_way_to_requeue(browser, workspace, charlies):
    mine, theirs = dead_source(workspace), dead_source(charlies)
    dead_publication(workspace, "reject")
    page = browser.get(page_of(workspace)).content.decode()
    assert "410 &lt;Gone&gt;" in page
    assert encode("src", mine.pk) in page
    assert encode("src", theirs.pk) not in page
    dead = f"{reverse('admin_dead_rows')}?workspace={workspace.public_id}"
    assert f'href="{dead}#sources"' in page
    assert f'href="{dead}#publications"' in page
    assert f'href="{dead}#deliveries"' not in page
    listed = browser.get(dead)
    assert {one["name"]: one["count"] for one in listed.context["sections"]} == {
        "sources": 1,
        "raw_items": 0,
        "generated_items": 0,
        "persona_drafts": 0,
        "publications": 1,
        "deliveries": 0,
    }
    assert encode("src", theirs.pk) not in listed.content.decode()
    assert browser.get(f"{reverse('admin_dead_rows')}?workspace=ws_nonsense").status_code == 404


def test_endpoints_tell_their_backlog(browser, workspace, charlies):
    busy, off = make_endpoint(workspace, url="https://a.example/"), make_endpoint(workspace, is_on=False)
    make_delivery(make_endpoint(charlies))
    make_delivery(busy)
    make_delivery(busy)
    make_delivery(busy, status="delivered", wake_at=None)
    make_delivery(off, status="held", wake_at=None)
    lines = browser.get(page_of(workspace)).context["told"].endpoints
    assert {line.endpoint: (line.waiting, line.held) for line in lines} == {busy: (2, 0), off: (0, 1)}


def test_secrets_stay_where_they_are(browser, workspace):
    token = TokenFactory(workspace=workspace)
    endpoint = make_endpoint(workspace)
    model_keys.set_model_key(workspace, "sk-ant-api03-A1b2C3d4E5f6-wxyz", "op")
    Outlet.everywhere.filter(workspace=workspace, platform="feed").update(
        credentials={"password": "hunter22"}
    )
    outlet = Outlet.everywhere.get(workspace=workspace, platform="feed")
    page = browser.get(page_of(workspace)).content.decode()
    secrets = (token.secret, token.digest.hex(), endpoint.secret, "A1b2C3d4E5f6", "hunter22", outlet.secret)
    assert [secret for secret in secrets if secret in page] == []
    assert (f"{token.prefix}…{token.last_four}" in page, "ending in wxyz" in page) == (True, True)


def test_what_is_not_there_is_said(browser, charlies):
    Outlet.everywhere.filter(workspace=charlies).delete()
    page = browser.get(page_of(charlies)).content.decode()
    said = (
        "No model calls this month.",
        "No raw items this month.",
        "No items this month.",
        "No publications this month.",
        "No outlets.",
        "No webhook endpoints.",
        "No tokens.",
        "No members.",
        "not approved",
    )
    assert [text for text in said if text not in page] == []


def _fill(workspace):
    dead_source(workspace)
    dead_publication(workspace, "reject")
    TokenFactory(workspace=workspace)
    MembershipFactory(workspace=workspace)
    endpoint = make_endpoint(workspace)
    make_delivery(endpoint, status="failed", wake_at=None)
    make_delivery(make_endpoint(workspace, is_on=False), status="held", wake_at=None)
    make_items(workspace, url=f"https://news.example/{uuid7()}")
    call(workspace, 5, outcome="refused")


def test_number_of_queries_is_the_same_for_one_and_for_many(browser, workspace):
    def asked():
        kill_switch._cache.clear()
        with CaptureQueriesContext(connection) as queries:
            assert browser.get(page_of(workspace)).status_code == 200
        return len(queries)

    _fill(workspace)
    once = asked()
    Source.everywhere.filter(workspace=workspace, name="Old").update(name="Older")
    _fill(workspace)
    _fill(workspace)
    assert (asked(), once <= 45) == (once, True)


def test_tokens_are_revoked_one_by_one_and_all_at_once(browser, workspace, charlies):
    first, second, third = (TokenFactory(workspace=workspace) for _ in range(3))
    theirs = TokenFactory(workspace=charlies)
    assert do(browser, workspace, "revoke_token", token=tokens.public_id(first)) == [
        f"{first} no longer works."
    ]
    assert set(ApiToken.everywhere.filter(revoked_at=None)) == {second, third, theirs}
    answer = browser.post(page_of(workspace), {"act": "revoke_token", "token": tokens.public_id(theirs)})
    assert answer.status_code == 404
    assert browser.post(page_of(workspace), {"act": "revoke_token", "token": "x"}).status_code == 404
    assert do(browser, workspace, "revoke_all") == ["2 keys were revoked."]
    assert list(ApiToken.everywhere.filter(revoked_at=None)) == [theirs]


def test_it_is_let_in_and_out_and_its_limits_are_lifted(browser, charlies):
    whitelist_requests.request_whitelisting(charlies, "Please <b>", "carol@example.test")
    page = browser.get(page_of(charlies)).content.decode()
    assert "Please &lt;b&gt;" in page
    assert do(browser, charlies, "whitelist") == ["Access approved."]
    assert do(browser, charlies, "whitelist") == ["No change."]
    assert Workspace.everywhere.get(pk=charlies.pk).is_whitelisted is True
    assert do(browser, charlies, "lift_limits") == ["Limits lifted."]
    assert Workspace.everywhere.get(pk=charlies.pk).is_unlimited is True
    assert do(browser, charlies, "restore_limits") == ["Limits restored."]
    assert do(browser, charlies, "delist") == ["Access revoked."]
    assert do(browser, charlies, "nonsense") == ["You don't have permission."]


def test_seeing_is_not_acting_and_each_part_has_its_own_right(client, workspace):
    token = TokenFactory(workspace=workspace)
    dead_source(workspace)
    person = UserFactory(email="looks@example.test", is_staff=True)
    client.force_login(person)
    assert client.get(page_of(workspace)).status_code == 403
    person.user_permissions.add(Permission.objects.get(codename="view_workspace"))
    page = client.get(page_of(workspace)).content.decode()
    assert (str(token) in page, "410" in page, "Revoke" in page, "Delist" in page) == (False,) * 4
    assert do(client, workspace, "revoke_all") == ["You don't have permission."]
    assert do(client, workspace, "delist") == ["You don't have permission."]
    assert ApiToken.everywhere.get(pk=token.pk).revoked_at is None
    assert Workspace.everywhere.get(pk=workspace.pk).is_whitelisted is True


@pytest.mark.parametrize("person", [None, {"is_staff": False}])
def test_nobody_else_sees_it(client, workspace, person):
    if person is not None:
        client.force_login(UserFactory(**person))
    answer = client.get(page_of(workspace))
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/admin/login/")


@pytest.mark.parametrize("public_id", ["ws_nonsense", "src_01jbx000000000000000000000"])
def test_no_such_workspace(browser, public_id):
    assert browser.get(f"/admin/workspaces/{public_id}/").status_code == 404


def test_lists_lead_to_the_page_and_back(browser, workspace):
    link = f'href="{page_of(workspace)}"'
    change = reverse("admin:accounts_workspace_change", args=[workspace.pk])
    assert link in browser.get(reverse("admin:accounts_workspace_changelist")).content.decode()
    assert link in browser.get(change).content.decode()
    assert f'href="{change}"' in browser.get(page_of(workspace)).content.decode()


def test_what_is_stopped_is_told_here_too(browser, workspace, charlies):
    kill_switch.stop("publishing", workspace=charlies, reason="Not this one", actor="op")
    kill_switch.stop("model_calls", reason="Of all", actor="op")
    kill_switch.stop("publishing", workspace=workspace, reason="This one", actor="op")
    switches = browser.get(page_of(workspace)).context["told"].switches
    assert [switch.reason for switch in switches] == ["Of all", "This one"]


def test_publications_that_wait_are_counted(browser, workspace):
    row = dead_publication(workspace, "reject")
    Publication.everywhere.filter(pk=row.pk).update(status="unknown", wake_at=datetime.now(UTC))
    table = browser.get(page_of(workspace)).context["told"].publications
    assert table.figures == [("waiting: unknown", 1)]


@pytest.mark.parametrize("path", ["mfa/authenticator", "usersessions/usersession", "account/emailaddress"])
def test_secrets_of_peoples_log_ins_have_no_page(browser, path):
    assert browser.get(f"/admin/{path}/").status_code == 404
    assert f"/admin/{path}/" not in browser.get("/admin/").content.decode()
