"""Workspaces: created whole or not at all, whitelisted, limited, changed; each time with its audit entry."""

from datetime import UTC, datetime

import pytest

from accounts import plans, users, workspaces
from accounts.ledger import reports
from accounts.models import AuditEntry, CreditBalance, LedgerEntry, Membership, Plan, Workspace
from config.core.errors import Invalid
from tests.factories import PlanFactory, UserFactory, WorkspaceFactory

pytestmark = pytest.mark.django_db


def furnish(workspace, _language):
    """A furnisher of these tests: it leaves a trace, and fails on demand."""
    if workspace.name == "Unlucky":
        raise RuntimeError
    workspace.audit.create(action="furnished", actor="furnisher")


def notes():
    return [
        (note.action, note.workspace and note.workspace.name, note.actor, note.details)
        for note in AuditEntry.everywhere.select_related("workspace").order_by("id")
    ]


def test_create_gives_everything_that_a_workspace_needs(settings, alice):
    settings.WORKSPACE_FURNISHERS = ["tests.accounts.test_workspaces.furnish"]
    workspace = workspaces.create("  Newsroom ", owner=alice, timezone="Europe/Berlin")

    row = Workspace.everywhere.get(pk=workspace.pk)
    assert (row.name, row.timezone, row.plan.name, row.is_whitelisted) == (
        "Newsroom",
        "Europe/Berlin",
        "Standard",
        False,
    )
    assert CreditBalance.everywhere.get(workspace=row).available == 5000
    assert LedgerEntry.objects.of(row).get().kind == "grant"
    member = Membership.objects.of(row).get()
    assert (member.user, member.role) == (alice, "owner")
    assert notes() == [
        ("furnished", "Newsroom", "furnisher", {}),
        (
            "workspace.created",
            "Newsroom",
            "alice@example.test",
            {"name": "Newsroom", "timezone": "Europe/Berlin", "plan": "Standard"},
        ),
    ]


def test_create_is_all_or_nothing(settings):
    settings.WORKSPACE_FURNISHERS = ["tests.accounts.test_workspaces.furnish"]
    with pytest.raises(RuntimeError):
        workspaces.create("Unlucky")
    assert (Workspace.everywhere.count(), LedgerEntry.everywhere.count(), notes()) == (0, 0, [])


@pytest.mark.parametrize(("actor", "noted"), [(None, "system"), ("manage.py", "manage.py")])
def test_create_without_an_owner_names_its_actor(actor, noted):
    workspaces.create("Newsroom", actor=actor)
    assert AuditEntry.everywhere.get().actor == noted


def test_create_takes_a_plan(db):
    plan = PlanFactory(credits_per_month=7)
    assert reports.usage(workspaces.create("Newsroom", plan=plan), datetime.now(UTC)).limit == 7


@pytest.mark.parametrize(
    ("name", "zone", "field", "code"),
    [
        ("", "UTC", "name", "length"),
        ("   ", "UTC", "name", "length"),
        ("x" * 121, "UTC", "name", "length"),
        ("Newsroom", "Mars/Olympus", "timezone", "unknown_timezone"),
        ("Newsroom", "../etc/passwd", "timezone", "unknown_timezone"),
    ],
)
def test_create_refuses_what_makes_no_workspace(name, zone, field, code):
    with pytest.raises(Invalid) as refused:
        workspaces.create(name, timezone=zone)
    assert [(one.field, one.code) for one in refused.value.detail] == [(field, code)]
    assert Workspace.everywhere.count() == 0


def test_default_plan_is_made_once_and_then_found():
    first = plans.default_plan()
    assert (first.name, first.is_default, plans.default_plan()) == ("Standard", True, first)
    other = PlanFactory(name="Other")
    assert [plans.make_default(other, "operator") for _ in range(2)] == [True, False]
    assert plans.default_plan() == other
    assert Plan.objects.filter(is_default=True).count() == 1


def test_plan_of_that_name_serves_where_none_is_default():
    plan = PlanFactory(name="Standard", is_default=False)
    assert plans.default_plan() == plan


@pytest.mark.parametrize(
    ("there", "back", "actions", "read"),
    [
        (
            workspaces.whitelist,
            workspaces.delist,
            ("workspace.whitelisted", "workspace.delisted"),
            lambda row: row.is_whitelisted,
        ),
        (
            workspaces.lift_limits,
            workspaces.restore_limits,
            ("workspace.limits_lifted", "workspace.limits_restored"),
            lambda row: row.is_unlimited,
        ),
    ],
)
def test_switches_are_noted_once(there, back, actions, read):
    workspace = WorkspaceFactory(name="Newsroom", whitelisted_at=None)
    other = WorkspaceFactory(name="Other", whitelisted_at=None)
    assert [there(workspace, "operator"), there(workspace, "operator")] == [True, False]
    assert read(workspace)
    assert read(Workspace.everywhere.get(pk=workspace.pk))
    assert not read(Workspace.everywhere.get(pk=other.pk))
    assert [back(workspace, "operator"), back(workspace, "operator")] == [True, False]
    assert not read(workspace)
    assert not read(Workspace.everywhere.get(pk=workspace.pk))
    assert notes() == [(action, "Newsroom", "operator", {}) for action in actions]


def test_change_writes_only_what_is_named(workspace):
    workspace.name, workspace.timezone = "Renamed", "Asia/Tokyo"
    workspaces.change(workspace, ["name"], "operator")
    row = Workspace.everywhere.get(pk=workspace.pk)
    assert (row.name, row.timezone) == ("Renamed", "UTC")
    assert notes() == [
        ("workspace.changed", "Renamed", "operator", {"name": ["Alice's newsroom", "Renamed"]}),
    ]


def test_change_of_nothing_is_nothing(workspace, django_assert_num_queries):
    with django_assert_num_queries(0):
        workspaces.change(workspace, [], "operator")


def test_change_refuses_an_unknown_timezone(workspace):
    workspace.timezone = "Mars/Olympus"
    with pytest.raises(Invalid):
        workspaces.change(workspace, ["timezone"], "operator")
    assert Workspace.everywhere.get(pk=workspace.pk).timezone == "UTC"


def usage(workspace):
    report = reports.usage(
        Workspace.everywhere.select_related("plan").get(pk=workspace.pk), datetime.now(UTC)
    )
    return report.limit, report.available


def test_another_allowance_holds_for_this_month(workspace):
    workspace.credits_per_month = 1500
    workspaces.change(workspace, ["credits_per_month"], "operator")
    assert usage(workspace) == (1500, 1500)
    workspace.plan, workspace.credits_per_month = PlanFactory(name="Big", credits_per_month=5000), None
    workspaces.change(workspace, ["plan", "credits_per_month"], "operator")
    assert usage(workspace) == (5000, 5000)
    assert [note[0] for note in notes()] == [
        "credits.adjusted",
        "workspace.changed",
        "credits.adjusted",
        "workspace.changed",
    ]
    assert notes()[-1][3] == {"credits_per_month": [1500, None], "plan": ["Small", "Big"]}
    assert reports.check() == []


def test_another_allowance_in_a_month_that_nobody_has_turned_is_given_once():
    workspace = WorkspaceFactory(credits_per_month=100, opened_at=datetime(2026, 1, 5, tzinfo=UTC))
    workspace.credits_per_month = 150
    workspaces.change(workspace, ["credits_per_month"], "operator")
    assert usage(workspace) == (150, 150)
    assert reports.check() == []


def test_keep_plan_stores_new_and_named_fields():
    plan = Plan(name="New", credits_per_month=5)
    plans.save_plan(plan, ["name", "credits_per_month"], "operator")
    plan.credits_per_month, plan.active_sources_most = 6, 99
    plans.save_plan(plan, ["credits_per_month"], "operator")
    row = Plan.objects.get(pk=plan.pk)
    assert (row.credits_per_month, row.active_sources_most) == (6, 20)
    assert [(action, details) for action, _, _, details in notes()] == [
        ("plan.changed", {"credits_per_month": 5, "name": "New"}),
        ("plan.changed", {"credits_per_month": 6}),
    ]


def test_keep_user_notes_no_password():
    user = UserFactory(email="bob@example.test", password="correct horse")
    user.name = "Bob"
    user.set_password("battery staple")
    users.save_user(user, ["name", "password"], "operator")
    user.refresh_from_db()
    assert (user.name, user.check_password("battery staple")) == ("Bob", True)
    assert notes() == [("user.changed", None, "operator", {"name": "Bob"})]
