"""A command that finds a database without tables, or none, says which one and what to do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.documents.text import ROOT


@pytest.fixture
def issue_token(tmp_path):
    """Run `issue_token` with these settings: what it did."""

    def run(**settings: str) -> subprocess.CompletedProcess[str]:
        kept = {
            name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}
        }
        return subprocess.run(
            [sys.executable, "manage.py", "issue_token", "--workspace", "Demo"],
            cwd=ROOT,
            env={**kept, "ENV_FILE": "tests/settings.env", "DATA_DIR": str(tmp_path), **settings},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_database_without_tables_is_named_and_no_file_is_left(issue_token, tmp_path):
    done = issue_token()

    assert done.returncode == 1
    assert done.stderr.startswith(f"The database {tmp_path / 'db.sqlite3'} has no tables.")
    assert "make token DATA_DIR=" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.glob("db.sqlite3*")) == []
