"""A machine of an operator's own: a data folder, a database, and manage.py in processes of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from django.conf import settings

from tests import migrated
from tests.documents.text import ROOT

if TYPE_CHECKING:
    from pathlib import Path

OURS = frozenset(
    {"DATABASE_URL", "REDIS_URL", "MEDIA_ROOT", "DJANGO_SETTINGS_MODULE", "CRASH_AT", "BACKUP_DIR"}
)
KILLED = -9


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@dataclass
class Machine:
    data: Path
    database: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        kept = {key: value for key, value in os.environ.items() if key not in OURS}
        self.environment = {**kept, "MODE": "development", "DATA_DIR": str(self.data), "LOG_LEVEL": "ERROR"}
        # Nobody listens there.
        self.environment["PORT"] = "9"
        if self.database:
            self.environment["DATABASE_URL"] = migrated.url_of(self.database)

    def start(self, *command, **environment):
        return subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            # Migrations forth and back take a minute on a busy machine.
            timeout=250,
            check=False,
        )

    def manage(self, *arguments, crash_at="", **environment):
        if crash_at:
            environment["CRASH_AT"] = crash_at
        done = self.start("manage.py", *arguments, **environment)
        assert (done.returncode == KILLED) == bool(crash_at), done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def does(self, *arguments, **environment):
        """Of a command that must succeed: what it said."""
        done = self.manage(*arguments, **environment)
        assert done.code == 0, done.err
        return done.out

    def shell(self, code):
        """The last line of what the code prints."""
        return (self.does("shell", "-v", "0", "-c", code).splitlines() or [""])[-1]

    @property
    def media(self):
        return self.data / "media"

    def files(self):
        return {
            str(path.relative_to(self.media)): path.read_bytes()
            for path in sorted(self.media.rglob("*"))
            if path.is_file()
        }

    def copy(self, data):
        """Another machine with the same keys and the same data."""
        shutil.copytree(self.data, data)
        if not self.database:
            return Machine(data)
        name = _name()
        migrated.administer(f"CREATE DATABASE {name} TEMPLATE {self.database}")
        return Machine(data, name)

    def drop(self):
        if self.database:
            migrated.administer(f"DROP DATABASE {self.database} WITH (FORCE)")


def make(data, *, is_empty=False):
    """With the tables, but nothing in them; `is_empty` without tables."""
    data.mkdir()
    name = _name() if settings.IS_POSTGRES else ""
    if is_empty:
        if name:
            migrated.administer(f"CREATE DATABASE {name}")
        return Machine(data, name)
    is_migrated = migrated.make_database(name) if name else migrated.make_file(data)
    made = Machine(data, name)
    if not is_migrated:
        made.does("migrate", "--no-input")
    return made


def _name():
    return f"machine_{uuid4().hex[:12]}"
