"""The operator's pages: what they show, what they change, and that each change is audited."""

from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, Permission
from django.urls import reverse

from accounts.access import tokens
from accounts.ledger import reports
from accounts.models import ApiToken, AuditEntry, LedgerEntry, Plan, User, Workspace
from tests.factories import PlanFactory, TokenFactory, UserFactory, WorkspaceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls_admin")]


def page(model, name="changelist", *args):
    return reverse(f"admin:accounts_{model.__name__.lower()}_{name}", args=args)


def act(browser, model, action, *rows):
    response = browser.post(
        page(model), {"action": action, "_selected_action": [row.pk for row in rows]}, follow=True
    )
    assert response.status_code == 200
    return [str(message) for message in response.context["messages"]]


def notes(*actions):
    entries = AuditEntry.everywhere.filter(action__in=actions).order_by("id")
    return [(note.action, note.actor, note.subject) for note in entries]


def shown(response):
    return [row.pk for row in response.context["cl"].result_list]


@pytest.mark.parametrize("model", [Workspace, Plan, ApiToken, LedgerEntry, AuditEntry, User])
def test_every_list_and_every_row_opens(browser, token, model):
    response = browser.get(page(model))
    assert response.status_code == 200
    row = model._meta.default_manager.first()
    assert shown(response)[-1] is not None
    assert browser.get(page(model, "change", row.pk)).status_code == 200
    assert browser.get(page(model), {"q": "newsroom"}).status_code == 200


def test_pages_work_under_our_content_security_policy(browser, token):
    for url in (page(Workspace), page(Workspace, "change", token.workspace_id), page(User, "add")):
        response = browser.get(url)
        assert "default-src 'self'" in response["Content-Security-Policy"]
        html = response.content.decode()
        assert "<script>" not in html
        assert " onclick=" not in html


@pytest.mark.parametrize("model", [ApiToken, LedgerEntry, AuditEntry])
def test_histories_are_read_only(browser, token, model):
    row = model.everywhere.first()
    assert browser.get(page(model, "add")).status_code == 403
    assert browser.post(page(model, "change", row.pk), {"name": "x"}).status_code == 403
    assert browser.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("model", [Workspace, Plan, User])
def test_these_are_not_deleted_here(browser, token, model):
    row = model._meta.default_manager.first()
    assert browser.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403


def test_digest_of_a_token_is_not_shown(browser, token):
    html = browser.get(page(ApiToken, "change", token.pk)).content.decode()
    assert "digest" not in html.lower()
    assert token.secret not in html


@pytest.mark.parametrize("model", [Workspace, ApiToken, LedgerEntry])
def test_search_knows_the_public_id(browser, token, model, charlies):
    TokenFactory(workspace=charlies)
    response = browser.get(page(model), {"q": token.workspace.public_id})
    rows = (
        model.everywhere.filter(pk=token.workspace_id)
        if model is Workspace
        else model.objects.of(token.workspace)
    )
    assert sorted(shown(response)) == sorted(row.pk for row in rows)
    assert len(shown(response)) == 1


def test_search_by_name(browser, workspace, charlies):
    assert shown(browser.get(page(Workspace), {"q": "Charlie"})) == [charlies.pk]


def test_whitelisting_is_an_action(browser, charlies):
    waiting = [
        WorkspaceFactory(name="One", whitelisted_at=None),
        WorkspaceFactory(name="Two", whitelisted_at=None),
    ]
    assert act(browser, Workspace, "whitelist", *waiting, charlies) == ["2 workspaces were changed."]
    assert Workspace.everywhere.filter(whitelisted_at=None).count() == 0
    assert sorted(notes("workspace.whitelisted")) == sorted(
        ("workspace.whitelisted", "operator@example.test", row.public_id) for row in waiting
    )
    assert act(browser, Workspace, "delist", waiting[0]) == ["1 workspace was changed."]
    assert Workspace.everywhere.get(whitelisted_at=None) == waiting[0]


def test_limits_are_lifted_and_restored(browser, workspace, charlies):
    act(browser, Workspace, "lift_limits", workspace)
    assert Workspace.everywhere.get(is_unlimited=True) == workspace
    act(browser, Workspace, "restore_limits", workspace)
    assert Workspace.everywhere.filter(is_unlimited=True).count() == 0
    assert [action for action, *_ in notes("workspace.limits_lifted", "workspace.limits_restored")] == [
        "workspace.limits_lifted",
        "workspace.limits_restored",
    ]


def form(plan, **changes):
    values = {
        "name": "Newsroom",
        "timezone": "UTC",
        "plan": plan.pk,
        "credits_per_month": "",
        "active_sources_most": "",
        "poll_interval_minutes_least": "",
    }
    return {**values, **changes}


def test_adding_a_workspace_gives_it_an_account(browser):
    response = browser.post(page(Workspace, "add"), form(PlanFactory(credits_per_month=5), name=" New "))
    assert response.status_code == 302
    workspace = Workspace.everywhere.get()
    assert (workspace.name, reports.usage(workspace, datetime.now(UTC)).available) == ("New", 5)
    assert notes("workspace.created") == [("workspace.created", "operator@example.test", workspace.public_id)]


def test_changing_a_workspace_is_audited_and_adjusts_its_credits(browser, workspace):
    changes = form(workspace.plan, name=workspace.name, credits_per_month="1200", requires_approval="on")
    assert browser.post(page(Workspace, "change", workspace.pk), changes).status_code == 302
    workspace = Workspace.everywhere.get()
    assert (workspace.credits_per_month, workspace.requires_approval) == (1200, True)
    assert reports.usage(workspace, datetime.now(UTC)).available == 1200
    entry = AuditEntry.everywhere.get(action="workspace.changed")
    assert (entry.actor, entry.details) == (
        "operator@example.test",
        {"credits_per_month": [None, 1200], "requires_approval": [False, True]},
    )
    assert reports.check() == []


@pytest.mark.parametrize("where", ["add", "change"])
def test_unknown_timezone_is_an_error_beside_the_field(browser, workspace, where):
    url = page(Workspace, where, *([workspace.pk] if where == "change" else []))
    response = browser.post(url, form(workspace.plan, timezone="Mars/Olympus"))
    assert response.status_code == 200
    assert response.context["adminform"].form.errors == {
        "timezone": ["Give an IANA time zone, such as Europe/Berlin."]
    }


def test_plans_are_added_and_changed_with_an_audit_entry(browser):
    values = {
        "name": "Large",
        "credits_per_month": 9,
        "active_sources_most": 8,
        "poll_interval_minutes_least": 7,
    }
    assert browser.post(page(Plan, "add"), values).status_code == 302
    plan = Plan.objects.get(name="Large")
    assert plan.is_default is False
    assert browser.post(page(Plan, "change", plan.pk), {**values, "credits_per_month": 10}).status_code == 302
    plan.refresh_from_db()
    assert plan.credits_per_month == 10
    assert notes("plan.changed") == [("plan.changed", "operator@example.test", "Large")] * 2


def test_one_plan_is_given_to_new_workspaces(browser):
    former, plan = PlanFactory(is_default=True), PlanFactory(name="Large")
    assert act(browser, Plan, "make_default", former, plan) == ["Choose one plan: new workspaces get one."]
    assert Plan.objects.get(is_default=True) == former
    for _ in range(2):
        assert act(browser, Plan, "make_default", plan) == ["New workspaces now get this plan."]
    assert Plan.objects.get(is_default=True) == plan
    assert notes("plan.made_default") == [("plan.made_default", "operator@example.test", "Large")]


def test_keys_are_revoked(browser, token, operator):
    other = TokenFactory()
    assert act(browser, ApiToken, "revoke", token) == ["1 key was revoked."]
    assert act(browser, ApiToken, "revoke", token) == ["0 keys were revoked."]
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert tokens.find_token(other.secret, datetime.now(UTC)) == other
    assert notes("token.revoked") == [("token.revoked", "operator@example.test", tokens.public_id(token))]


def test_staff_who_may_only_look_cannot_act(client, token):
    helper = UserFactory(email="helper@example.test", is_staff=True)
    helper.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client.force_login(helper)
    assert client.get(page(ApiToken)).status_code == 200
    act(client, ApiToken, "revoke", token)
    act(client, Workspace, "delist", token.workspace)
    token.refresh_from_db()
    assert token.revoked_at is None
    assert Workspace.everywhere.get(pk=token.workspace_id).is_whitelisted


@pytest.mark.parametrize("person", [None, {"is_staff": False}])
def test_others_are_sent_to_the_log_in_page(client, person):
    if person is not None:
        client.force_login(UserFactory(**person))
    response = client.get(page(Workspace))
    assert (response.status_code, response["Location"]) == (
        302,
        f"/admin/login/?next={quote(page(Workspace))}",
    )


def test_people_are_added_with_a_hashed_password(browser):
    values = {
        "email": "bob@example.test",
        "name": "Bob",
        "usable_password": "true",
        "password1": "correct horse battery",
        "password2": "correct horse battery",
    }
    assert browser.post(page(User, "add"), values).status_code == 302
    bob = User.objects.get(email="bob@example.test")
    assert bob.check_password("correct horse battery")
    assert (bob.name, bob.is_staff) == ("Bob", False)
    assert notes("user.changed") == [("user.changed", "operator@example.test", "bob@example.test")]
    assert "battery" not in str(list(AuditEntry.everywhere.values()))


def test_weak_passwords_are_refused(browser):
    values = {
        "email": "bob@example.test",
        "usable_password": "true",
        "password1": "short",
        "password2": "short",
    }
    response = browser.post(page(User, "add"), values)
    assert (response.status_code, list(response.context["adminform"].form.errors)) == (200, ["password2"])


def test_people_are_changed_with_their_groups(browser):
    from django.contrib.auth.models import Group

    bob, group = (
        UserFactory(email="bob@example.test", password="correct horse"),
        Group.objects.create(name="helpers"),
    )
    values = {"email": "bob@example.test", "name": "Robert", "is_staff": "on", "groups": [group.pk]}
    assert browser.post(page(User, "change", bob.pk), values).status_code == 302
    bob.refresh_from_db()
    assert (bob.name, bob.is_staff, bob.is_active, list(bob.groups.all())) == ("Robert", True, False, [group])
    assert bob.check_password("correct horse")
    entry = AuditEntry.everywhere.get(action="user.changed")
    assert entry.details == {"name": "Robert", "is_staff": True, "is_active": False}


def test_password_page_is_audited(browser):
    bob = UserFactory(email="bob@example.test", password="correct horse")
    url = reverse("admin:auth_user_password_change", args=[bob.pk])
    values = {"usable_password": "true", "password1": "battery staple 9", "password2": "battery staple 9"}
    assert browser.post(url, {**values, "set-password": "1"}).status_code == 302
    bob.refresh_from_db()
    assert bob.check_password("battery staple 9")
    assert notes("user.password_changed") == [
        ("user.password_changed", "operator@example.test", "bob@example.test")
    ]


def test_a_lost_second_factor_is_taken_away(browser):
    bob, eve = UserFactory(email="bob@example.test"), UserFactory(email="eve@example.test")
    for user in (bob, eve):
        Authenticator.objects.create(user=user, type="totp", data={"secret": "x"})
    assert act(browser, User, "remove_second_factor", bob) == [
        "Two-factor authentication removed for 1 user."
    ]
    assert list(Authenticator.objects.values_list("user__email", flat=True)) == ["eve@example.test"]
    assert act(browser, User, "remove_second_factor", bob) == [
        "Two-factor authentication removed for 0 users."
    ]
    assert notes("user.second_factor_removed") == [
        ("user.second_factor_removed", "operator@example.test", "bob@example.test")
    ]


def test_an_operator_vouches_for_an_address(browser):
    bob = UserFactory(email="bob@example.test")
    assert act(browser, User, "vouch_for", bob) == ["1 address confirmed."]
    proven = EmailAddress.objects.get()
    assert (proven.user, proven.email, proven.verified, proven.primary) == (bob, bob.email, True, True)
    assert notes("user.address_vouched_for") == [
        ("user.address_vouched_for", "operator@example.test", "bob@example.test")
    ]


# --- Staff who may not everything ------------------------------------------------------------------------------------


@pytest.fixture
def helper(client):
    """May see and change people and groups, and is no superuser."""
    helper = UserFactory(email="helper@example.test", is_staff=True)
    named = ("view_user", "change_user", "view_group", "add_group", "change_group")
    helper.user_permissions.set(Permission.objects.filter(codename__in=named))
    client.force_login(helper)
    return helper


def test_who_may_change_people_gives_no_rights(client, helper):
    bob = UserFactory(email="bob@example.test", password="correct horse")
    values = {"email": bob.email, "name": "Bob", "is_active": "on", "is_staff": "on", "is_superuser": "on"}
    rights = {"user_permissions": list(Permission.objects.values_list("pk", flat=True)[:5])}
    assert client.post(page(User, "change", bob.pk), {**values, **rights}).status_code == 302
    bob.refresh_from_db()
    assert (bob.name, bob.is_staff, bob.is_superuser, bob.user_permissions.count()) == (
        "Bob",
        False,
        False,
        0,
    )


def test_who_may_change_people_takes_over_no_operator(client, helper, operator):
    Authenticator.objects.create(user=operator, type=Authenticator.Type.TOTP, data={})
    new = {"usable_password": "true", "password1": "battery staple 9", "password2": "battery staple 9"}
    for person in (operator, helper):
        values = {"email": "mine@example.test", "name": "", "is_active": "on", "is_superuser": "on"}
        assert client.post(page(User, "change", person.pk), values).status_code == 403
        password = reverse("admin:auth_user_password_change", args=[person.pk])
        assert client.post(password, {**new, "set-password": "1"}).status_code == 403
    for action in ("vouch_for", "remove_second_factor"):
        act(client, User, action, operator)
    operator.refresh_from_db()
    assert (operator.email, operator.check_password("correct horse")) == ("operator@example.test", True)
    assert Authenticator.objects.filter(user=operator).exists()
    assert not EmailAddress.objects.filter(user=operator).exists()


def test_who_may_change_groups_gives_them_nothing(client, helper):
    group = Group.objects.create(name="helpers")
    helper.groups.add(group)
    values = {"name": "helpers", "permissions": list(Permission.objects.values_list("pk", flat=True)[:5])}
    assert client.post(reverse("admin:auth_group_change", args=[group.pk]), values).status_code == 403
    assert client.post(reverse("admin:auth_group_add"), {**values, "name": "mine"}).status_code == 403
    assert group.permissions.count() == 0


def test_no_address_tells_a_hidden_column_letter_by_letter(browser, token):
    del token
    assert browser.get(page(ApiToken), {"name__startswith": "x"}).status_code == 200
    # Django leads away from a filter that isn't allowed.
    answer = browser.get(page(ApiToken), {"digest__startswith": "a"})
    assert answer.status_code == 400
