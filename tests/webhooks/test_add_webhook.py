"""manage.py add_webhook."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry
from config.core.ids import encode, uuid7
from tests.webhooks.factories import NOON, make_workspace
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("add_webhook", *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("by", ["name", "public_id"])
def test_prints_id_and_secret_as_its_last_line(by):
    workspace = make_workspace(name="Radio Nord")
    make_workspace()
    given = "Radio Nord" if by == "name" else workspace.public_id
    arguments = ["--workspace", given, "--url", "https://example.com/", "--event", "raw.failed"]
    lines = run(*arguments, "--event", "raw.ingested", "--test", "--json")
    endpoint = Endpoint.everywhere.get()
    assert json.loads(lines[-1]) == {"id": encode("whe", endpoint.pk), "secret": endpoint.secret}
    assert (endpoint.workspace_id, endpoint.test) == (workspace.pk, True)
    assert endpoint.events == ["raw.failed", "raw.ingested"]
    assert AuditEntry.everywhere.get().actor == "manage.py add_webhook"


def test_prints_for_people():
    workspace = make_workspace()
    lines = run("--workspace", workspace.name, "--url", "https://example.com/")
    endpoint = Endpoint.everywhere.get()
    assert lines == [
        f"Endpoint: {encode('whe', endpoint.pk)}",
        f"Secret:   {endpoint.secret}",
        "The secret is not shown again.",
    ]


def test_complains_clearly():
    make_workspace(name="Twin")
    make_workspace(name="Twin")
    make_workspace(name="Gone", deleted_at=NOON)
    url = ("--url", "https://example.com/")
    for given in ("Nobody", "Gone", encode("ws", uuid7())):
        with pytest.raises(CommandError, match=f"There is no workspace '{given}'"):
            run("--workspace", given, *url)
    with pytest.raises(CommandError, match="Several workspaces are named Twin"):
        run("--workspace", "Twin", *url)
    workspace = make_workspace(name="One")
    with pytest.raises(
        CommandError, match=r"url: Use a whole address(.|\n)*events\[0\]: 'x' is not an event"
    ):
        run("--workspace", workspace.public_id, "--url", "nowhere", "--event", "x")
    assert Endpoint.everywhere.count() == 0
