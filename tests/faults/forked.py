"""A Python module as a process, forked from a server that has loaded what others wrote.

Each of hundreds of killed steps is a process of its own, and without this would spend most of its time in importing the
same packages. The project's own modules, and the settings they read, are loaded anew in every process.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.faults.preloaded"])


def run_module(
    name: str, *arguments: str, cwd: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """What `python -m name arguments` would have done. Raises `subprocess.TimeoutExpired`, with the process killed."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        process = _FORKS.Process(
            target=_run, args=(name, arguments, str(cwd), dict(environment), str(out), str(err))
        )
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([name, *arguments], seconds)
        said = [path.read_text() if path.exists() else "" for path in (out, err)]
        return subprocess.CompletedProcess([name, *arguments], process.exitcode, *said)


def _run(
    name: str, arguments: tuple[str, ...], cwd: str, environment: dict[str, str], out: str, err: str
) -> None:
    for number, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)
