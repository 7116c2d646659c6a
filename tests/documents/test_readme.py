"""What README.md, CONTRIBUTING.md and SECURITY.md name is there, and the pictures are small."""

from __future__ import annotations

import ast
import re
from io import BytesIO

import pytest
from PIL import Image

from tests.documents.text import DOCS, ROOT, read, rows, section

# The name under which a package is imported, where it isn't its own.
IMPORTED_AS = {
    "djangorestframework": "rest_framework",
    "drf-spectacular": "drf_spectacular",
    "django-ratelimit": "django_ratelimit",
    "factory-boy": "factory",
}
# Django loads psycopg by the scheme of DATABASE_URL, and pytest loads its plug-ins.
NOT_IMPORTED = {"psycopg", "pytest-django"}
PACKAGES = rows(section(read("README.md"), "## Where each package is used"))


@pytest.mark.parametrize(("name", "most"), [("README.md", 120), ("CONTRIBUTING.md", 90), ("SECURITY.md", 60)])
def test_it_can_be_read_in_one_go(name, most):
    assert len(read(name).splitlines()) <= most


def test_each_picture_is_shown_once_and_is_small():
    shown = re.findall(r"!\[[^\]]+\]\((docs/pictures/[^)]+)\)", read("README.md"))
    files = sorted(DOCS.glob("pictures/*"))
    assert sorted(shown) == [str(path.relative_to(ROOT)) for path in files]
    assert [path.name for path in files if path.stat().st_size > 200_000] == []
    assert {Image.open(BytesIO(path.read_bytes())).size for path in files} == {(1280, 800)}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_named_files_exist(name):
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", read(name))
    made_by_commands = ("var/", ".venv/")
    assert [
        path for path in named if not path.startswith(made_by_commands) and not (ROOT / path).exists()
    ] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_named_tests_exist(name):
    named = re.findall(r"-m pytest (\S+)", read(name))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_named_settings_are_documented():
    named = [cells[0].strip("`") for cells in rows(section(read("README.md"), "## Start it"))]
    documented = {cells[0].strip("`") for cells in rows(read("settings.md"))}
    assert named
    assert set(named) - documented == set()


def test_a_package_is_used_where_it_is_said_to_be():
    lock = (ROOT / "requirements-dev.lock").read_text()
    unknown, unused = [], []
    for packages, _, where in PACKAGES:
        # A row may name several packages: each is used in one of its files.
        imported = {name for path in re.findall(r"`([\w/.]+\.py|\w+/api/)`", where) for name in imports(path)}
        for package in re.findall(r"`([\w-]+)`", packages):
            unknown += [] if re.search(rf"^{package}(\[.*\])?==", lock, re.MULTILINE) else [package]
            is_imported = IMPORTED_AS.get(package, package) in imported
            unused += [] if is_imported or package in NOT_IMPORTED else [package]
    assert (unknown, unused) == ([], [])
    assert len(PACKAGES) == 11


def imports(path):
    """The top-level packages that a file, or one of a folder, imports."""
    found = set()
    for file in [ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found
