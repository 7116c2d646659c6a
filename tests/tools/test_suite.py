"""A test that a busy machine starved is tried once more, alone; one that is broken stays broken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tools import suite

if TYPE_CHECKING:
    from pathlib import Path

STARVED = """
from pathlib import Path

def test_starved():
    seen = Path({seen!r})
    first = not seen.exists()
    seen.touch()
    assert not first
"""
# Nothing of this project's is loaded, so that each pass is short.
APART = {"DJANGO_SETTINGS_MODULE": "", "PYTEST_ADDOPTS": "-p no:django -p no:xdist", "STATEMENTS": ""}
BROKEN = "def test_broken():\n    assert False\n"


@pytest.fixture
def one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run one pass over the source of a test file: its exit code."""

    def run(source: str) -> int:
        file = tmp_path / "test_it.py"
        file.write_text(source)
        monkeypatch.setattr("sys.argv", ["suite.py", "fast"])
        monkeypatch.setattr(suite, "ROOT", tmp_path)
        return suite.pytest([str(file)], {**os.environ, "DATA_DIR": str(tmp_path / "data"), **APART})

    return run


def test_starved_test_gets_its_second_try_and_is_named(one_pass, tmp_path, capfd):
    assert one_pass(STARVED.format(seen=str(tmp_path / "seen"))) == 0
    assert "== UNSTEADY, passed only alone: test_it.py::test_starved" in capfd.readouterr().out


def test_broken_test_fails_the_pass(one_pass, capfd):
    assert one_pass(BROKEN) == 1
    assert "UNSTEADY" not in capfd.readouterr().out


def test_many_failures_are_not_tried_again(one_pass, capfd):
    many = "\n".join(f"def test_{number}():\n    assert False\n" for number in range(4))

    assert one_pass(many) == 1
    assert "once more" not in capfd.readouterr().out
