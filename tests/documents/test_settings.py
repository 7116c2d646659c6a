"""Every setting that is read from the environment is in docs/settings.md, and nothing else is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.architecture.code import chain_of
from tests.documents.text import ROOT, read, rows, section

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READERS = frozenset(
    {
        "text",
        "one_of",
        "flag",
        "whole_number",
        "comma_list",
        "pairs",
        "database",
        "web_address",
        "redis_address",
        "sealing_keys",
        "mail_settings",
    }
)
SERVICE = "## The service"
TOOLS = "## Commands of the Makefile"
SWITCHES = "## Switches of tests"


def _names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        name = _name_in(node)
        if name is not None:
            yield name


def _name_in(node: ast.AST) -> str | None:
    """The name in `env.text("X")`, `os.environ.get("X")` and `os.environ["X"]`; a write is none."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        chain = chain_of(node)
        is_reader = len(chain) == 2 and chain[0] == "env" and chain[1] in READERS
        if is_reader or chain[-2:] in {("environ", "get"), ("os", "getenv")}:
            return str(node.args[0].value)
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.slice, ast.Constant)
    ):
        value = node.value
        if isinstance(value, ast.Attribute) and value.attr == "environ":
            return str(node.slice.value)
    return None


def _read_by(*patterns: str) -> set[str]:
    return {name for pattern in patterns for path in sorted(ROOT.glob(pattern)) for name in _names(path)}


def _documented(heading: str) -> list[str]:
    return [cells[0].strip("`") for cells in rows(section(read("settings.md"), heading))]


def test_readers_are_those_of_the_module():
    tree = ast.parse((ROOT / "config/env.py").read_text())
    there = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert there == READERS


def test_every_setting_of_the_service_is_documented():
    read_there = _read_by(
        "config/**/*.py", "gunicorn.conf.py", "manage.py", "accounts/**/*.py", "pipeline/**/*.py"
    )
    read_there |= _read_by("webhooks/**/*.py", "analytics/**/*.py")
    assert sorted(_documented(SERVICE)) == sorted(read_there)


def test_every_setting_of_the_tools_is_documented():
    read_there = _read_by("tools/*.py", "benchmarks/**/*.py")
    assert set(_documented(TOOLS)) >= read_there - set(_documented(SERVICE))
    # PYTHON is make's own.
    assert set(_documented(TOOLS)) - read_there <= {"PYTHON"}


def test_switches_of_the_documents_tests_are_documented():
    # PATH is handed on to a shell.
    switches = _read_by("tests/documents/*.py", "tests/contracts/test_recorded.py") - {"PATH"}
    assert set(_documented(SWITCHES)) == switches


def test_no_setting_is_documented_twice():
    for heading in (SERVICE, TOOLS, SWITCHES):
        names = _documented(heading)
        assert len(names) == len(set(names))


def test_every_setting_has_its_four_columns():
    for cells in rows(section(read("settings.md"), SERVICE)):
        assert len(cells) == 5, cells
        assert all(cells), cells
