"""A PostgreSQL server of its own for one test, which can be stopped and started again."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.faults.instance import free_port

_BIN = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql"))
IS_POSSIBLE = (_BIN / "initdb").exists()
USER = "postgres"


class OwnPostgres:
    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is one that its own user may enter, as those of pytest aren't; left out, one is made for it."""
        self._is_made = folder is None
        self._folder = folder or Path(tempfile.mkdtemp(prefix="own-postgres-"))
        self.data = self._folder / "data"
        self.port = free_port()
        self.url = f"postgres://{USER}@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        # It refuses to run as root.
        if os.geteuid() == 0:
            shutil.chown(self._folder, USER)
        self._run("initdb", "-U", USER, "-A", "trust", "--no-sync", "-D", str(self.data))
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n"
                "max_connections = 300\nfsync = off\n"
            )
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if (self.data / "postmaster.pid").exists():
            self.stop()
        if self._is_made:
            shutil.rmtree(self._folder)

    def start(self) -> None:
        self._run("pg_ctl", "start", "-w", "-D", str(self.data), "-l", str(self._folder / "log"))

    def stop(self) -> None:
        """As when it crashes: nobody who is connected hears of it."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(self.data))

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(_BIN / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", USER, "--", *command]
        done = subprocess.run(
            command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        assert done.returncode == 0, f"{program} ended with {done.returncode}"
