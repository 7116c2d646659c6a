"""manage.py issue_token and check_credits."""

import json
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.access import tokens
from accounts.models import ApiToken, AuditEntry, CreditBalance, Workspace
from tests.factories import WorkspaceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls")]


def run(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().splitlines()


def issue(*arguments):
    return run("issue_token", *arguments)


def test_last_line_is_json_and_the_token_works():
    printed = json.loads(issue("--workspace", "Newsroom", "--create", "--whitelist", "--json")[-1])
    workspace = Workspace.everywhere.get(name="Newsroom")
    assert printed == {"workspace": workspace.public_id, "token": printed["token"]}
    assert printed["token"].startswith("cpk_live_")
    response = Client(headers={"Authorization": f"Bearer {printed['token']}"}).get("/v1/workspace")
    assert (response.status_code, response.json()["name"]) == (200, "Newsroom")
    assert [(note.action, note.actor) for note in AuditEntry.everywhere.order_by("id")] == [
        ("workspace.created", "manage.py issue_token"),
        ("workspace.whitelisted", "manage.py issue_token"),
        ("token.issued", "manage.py issue_token"),
    ]


def test_text_for_people_shows_the_token_and_what_is_missing():
    lines = issue("--workspace", "Newsroom", "--create")
    workspace = Workspace.everywhere.get()
    assert lines[0] == f"Workspace Newsroom ({workspace.public_id})"
    secret = lines[1].split()[-1]
    assert tokens.find_token(secret, datetime.now(UTC)).workspace == workspace
    assert lines[2:] == [
        "It is shown only now; keep it in a safe place.",
        "The workspace is not approved: run this again with --whitelist.",
    ]
    assert len(issue("--workspace", "Newsroom", "--whitelist")) == 3


def test_existing_workspace_is_found_by_name_and_by_id():
    workspace = WorkspaceFactory(name="Newsroom")
    WorkspaceFactory(name="Other")
    for name in ("Newsroom", workspace.public_id):
        issue("--workspace", name, "--create")
    assert ApiToken.objects.of(workspace).count() == 2
    assert Workspace.everywhere.count() == 2


def test_options_make_the_token_that_they_say():
    issue(
        "--workspace",
        "N",
        "--create",
        "--unlimited",
        "--test",
        "--name",
        "CI",
        "--scopes",
        "raw:write, raw:read",
    )
    token = ApiToken.everywhere.select_related("workspace").get()
    assert (token.name, token.is_test, token.scopes, token.workspace.is_unlimited) == (
        "CI",
        True,
        ["raw:read", "raw:write"],
        True,
    )


@pytest.mark.parametrize("preset", list(tokens.PRESETS))
def test_presets_are_scopes(preset):
    issue("--workspace", "N", "--create", "--scopes", preset)
    assert ApiToken.everywhere.get().scopes == list(tokens.PRESETS[preset])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Newsroom"], "There is no workspace Newsroom. Add --create and its name to create one."),
        (
            ["ws_01jd4t5v7yf8zr3m6n2q9k0hcx", "--create"],
            "There is no workspace ws_01jd4t5v7yf8zr3m6n2q9k0hcx. Add --create and its name to create one.",
        ),
        (["Twins"], "Several workspaces are named Twins; give the ws_ id instead."),
        (["Gone"], "There is no workspace Gone. Add --create and its name to create one."),
        (["New", "--create", "--scopes", "raw:shred"], None),
        (["x" * 121, "--create"], "Give a name of 1 to 120 characters."),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(arguments, message):
    WorkspaceFactory(name="Twins")
    WorkspaceFactory(name="Twins")
    WorkspaceFactory(name="Gone", deleted_at=datetime.now(UTC))
    message = message or f"There is no scope raw:shred; known are: {', '.join(tokens.SCOPES)}."
    with pytest.raises(CommandError) as refused:
        issue("--workspace", *arguments)
    assert str(refused.value) == message
    assert (Workspace.everywhere.count(), ApiToken.everywhere.count()) == (3, 0)


def test_check_credits_is_content(workspace):
    assert run("check_credits") == ["Every balance is the sum of its ledger."]


def test_check_credits_names_what_is_off(workspace, charlies, capsys):
    CreditBalance.everywhere.filter(workspace=workspace).update(available=5, reserved=1)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_credits", stdout=out)
    assert ended.value.code == 1
    assert out.getvalue().splitlines() == [
        f"{workspace.public_id} available: ledger 1000, balance 5",
        f"{workspace.public_id} reserved: ledger 0, balance 1",
    ]


def test_check_credits_names_a_missing_balance(workspace):
    CreditBalance.everywhere.all().delete()
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("check_credits", stdout=out)
    assert out.getvalue().splitlines()[0] == f"{workspace.public_id} available: ledger 1000, balance no row"
