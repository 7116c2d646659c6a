"""Installs code generators and linters, pinned, into var/clients, and runs them; nothing of it is committed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.sizes import IS_PROOF

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
ROUNDS: Final = HERE / "rounds"
_PACKAGES: Final = HERE / "package.json"
_REQUIREMENTS: Final = HERE / ("requirements-proof.txt" if IS_PROOF else "requirements.txt")


class Unusable(Exception):
    """Raised if a tool isn't there and can't be installed, such as without a network."""


@dataclass(frozen=True)
class Toolbox:
    """The installed tools; `folder` has `node_modules`, and `python` of a virtual environment."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "python" / "bin" / "python")

    def npm(self, name: str) -> str:
        """Return the path of a program of an npm package."""
        return str(self.folder / "node_modules" / ".bin" / name)

    @property
    def openapi_generator(self) -> list[str]:
        """Return the command of OpenAPI Generator, which is a Java archive in a Python package."""
        [archive] = (self.folder / "python").rglob("openapi-generator.jar")
        return ["java", "-jar", str(archive)]


def install() -> Toolbox:
    """Return the tools, installed first unless they are there: those of every run, or of the proof all.

    Raises `Unusable` if one can't be installed.
    """
    pins = _PACKAGES.read_bytes() + _REQUIREMENTS.read_bytes()
    digest = hashlib.sha256(pins).hexdigest()[:12]
    folder = ROOT / "var" / "clients" / digest
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Tests may run in several processes, of which only one installs.
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            _install_into(folder)
    return Toolbox(folder)


def _install_into(folder: Path) -> None:
    for program in ("node", "npm", *(["java"] if IS_PROOF else [])):
        if shutil.which(program) is None:
            message = f"{program} isn't installed."
            raise Unusable(message)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(_PACKAGES, folder)
    toolbox = Toolbox(folder)
    needed = [] if IS_PROOF else ["--omit=dev"]
    _install(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *needed], folder)
    _install([sys.executable, "-m", "venv", "python"], folder)
    _install([toolbox.python, "-m", "pip", "install", "-q", "-r", str(_REQUIREMENTS)], folder)
    (folder / "installed").touch()


def _install(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{' '.join(command)}: {done.stderr.strip()[-500:]}"
        raise Unusable(message)


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a tool in a folder; the result holds what it printed, the errors too."""
    # Tools ask their vendors for news otherwise, and say so.
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **quiet, "NO_PROXY": "127.0.0.1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> Any:
    """Return the JSON that a program printed last; it must have ended well."""
    assert done.returncode == 0, done.stdout[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])
