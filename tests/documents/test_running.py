"""Commands, options and addresses that the documents name are there."""

from __future__ import annotations

import re

import pytest
from django.core.management import get_commands, load_command_class
from django.urls import resolve

from tests.documents.text import DOCUMENTS, ROOT, read, rows, section
from tools.suite import PROOFS

OWN = ("accounts", "config", "pipeline", "webhooks", "analytics")
STOCK = frozenset(
    {"help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color"}
)


def test_named_commands_exist():
    named = {name for path in DOCUMENTS for name in re.findall(r"manage\.py ([a-z_]+)", path.read_text())}
    assert named <= set(get_commands())


def test_every_command_of_ours_is_documented():
    ours = {name for name, app in get_commands().items() if app in OWN}
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    assert {name for name in ours if f"manage.py {name}" not in text} == set()


@pytest.mark.parametrize(
    ("command", "heading"), [("issue_token", "## Tokens"), ("add_webhook", "## Webhook endpoints")]
)
def test_every_option_is_documented(command, heading):
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    options = {
        action.option_strings[-1] for action in parser._actions if action.dest not in STOCK | {"skip_checks"}
    }
    listed = {cells[0].strip("`") for cells in rows(section(read("running.md"), heading))}
    assert listed == options


def test_named_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    named = {
        name
        for path in DOCUMENTS
        for name in re.findall(r"(?:`|^|&& )make ([a-z][a-z-]+)", path.read_text(), re.MULTILINE)
    }
    assert named
    proofs = {f"prove-{name}" for name in PROOFS}
    assert {name for name in named - proofs if not re.search(rf"^{name}:", makefile, re.MULTILINE)} == set()


@pytest.mark.parametrize("address", ["/healthz", "/readyz", "/docs", "/openapi.json", "/admin/"])
def test_named_addresses_exist(address):
    assert address in read("running.md") + read("api/README.md") + read("settings.md")
    assert resolve(address)
