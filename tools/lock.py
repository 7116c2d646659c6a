"""Writes and checks the lock files.

`write` makes them from pyproject.toml, `upgrade` uses the newest versions that it allows, and `check` reports whether
they still match it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
UV_VENV = ROOT / "var" / "tools" / "uv"
UV_REQUIREMENT = "uv>=0.13.8,<0.14"


@dataclass(frozen=True)
class LockFile:
    """The content of a lock file: extras of pyproject.toml, with or without the project's dependencies."""

    extras: tuple[str, ...] = ()
    has_own_dependencies: bool = True

    def declared(self) -> list[str]:
        """Return the requirements of pyproject.toml that this file pins, sorted."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        requirements: list[str] = list(project["dependencies"]) if self.has_own_dependencies else []
        for extra in self.extras:
            requirements += project["optional-dependencies"][extra]
        return sorted(requirements)

    def header(self) -> str:
        """Return the file's first line, which holds a hash of its requirements."""
        digest = hashlib.sha256(json.dumps(self.declared()).encode()).hexdigest()
        return f"# Written by `make lock` for the dependencies of pyproject.toml with sha256 {digest}.\n"


# The order matters: each file takes its versions from the files before it.
LOCK_FILES = {
    "requirements.lock": LockFile(),
    "requirements-dev.lock": LockFile(("dev",)),
    "requirements-extras.lock": LockFile(("video", "voice"), has_own_dependencies=False),
}
PINNED_PACKAGE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^ ;\\]+)", re.MULTILINE)


def pinned_versions(text: str) -> dict[str, set[str]]:
    """Return the pinned versions by package; a package may have several, each for another environment."""
    versions_by_name: dict[str, set[str]] = {}
    for name, version in PINNED_PACKAGE.findall(text):
        versions_by_name.setdefault(canonicalize_name(name), set()).add(version)
    return versions_by_name


def find_faults(name: str, lock: LockFile) -> list[str]:
    """Return the lock file's differences from pyproject.toml, and what makes it unsafe to install from."""
    text = (ROOT / name).read_text()
    pinned = pinned_versions(text)
    faults = []
    if not text.startswith(lock.header()):
        faults.append("it was not written for these dependencies of pyproject.toml")
    for line in lock.declared():
        requirement = Requirement(line)
        versions = pinned.get(canonicalize_name(requirement.name), set())
        if not any(requirement.specifier.contains(version) for version in versions):
            faults.append(f"{line} is not what it pins ({', '.join(sorted(versions)) or 'nothing'})")
    blocks = [block for block in re.split(r"\n(?=[A-Za-z0-9])", text) if PINNED_PACKAGE.match(block)]
    faults += [f"{block.split()[0]} has no hash" for block in blocks if "--hash=sha256:" not in block]
    if "://" in text or "--index-url" in text or "--extra-index-url" in text:
        faults.append("it names a package index")
    return [f"{name}: {fault}" for fault in faults]


def check() -> int:
    """Print the faults of all lock files and return the exit code."""
    faults = [fault for name, lock in LOCK_FILES.items() for fault in find_faults(name, lock)]
    pinned = {name: pinned_versions((ROOT / name).read_text()) for name in LOCK_FILES}
    faults += [
        f"requirements-dev.lock: {name} of requirements.lock is missing"
        for name in pinned["requirements.lock"]
        if name not in pinned["requirements-dev.lock"]
    ]
    faults += [
        f"{second}: {name} differs from {first}"
        for first, second in combinations(LOCK_FILES, 2)
        for name in pinned[first].keys() & pinned[second].keys()
        if pinned[first][name] != pinned[second][name]
    ]
    for fault in faults:
        print(fault)
    if faults:
        print("Write them anew: make lock")
        return 1
    print("The lock files belong to pyproject.toml.")
    return 0


def find_uv() -> str:
    """Return the path of uv; install it below `var/tools` if it isn't on PATH."""
    on_path = shutil.which("uv")
    if on_path:
        return on_path
    if not (UV_VENV / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", str(UV_VENV)], check=True)
        subprocess.run([str(UV_VENV / "bin" / "pip"), "install", "--quiet", UV_REQUIREMENT], check=True)
    return str(UV_VENV / "bin" / "uv")


def write(*, upgrade: bool = False) -> int:
    """Write the lock files, print what changed, and return the exit code of `check`."""
    before = {
        name: pinned_versions((ROOT / name).read_text()) for name in LOCK_FILES if (ROOT / name).exists()
    }
    command = [find_uv(), "pip", "compile", "--quiet", "--generate-hashes", "--universal"]
    command += ["--no-emit-index-url", "--no-header", "--python-version", "3.11"]
    # Without `--upgrade`, the pinned versions stay if they still fit.
    command += ["--upgrade"] if upgrade else []
    constraints: list[str] = []
    for name, lock in LOCK_FILES.items():
        # "-" reads the requirements from standard input.
        inputs = ["-"]
        if lock.has_own_dependencies:
            inputs = ["pyproject.toml", *(f"--extra={extra}" for extra in lock.extras)]
        subprocess.run(
            [*command, *constraints, *inputs, "--output-file", name],
            cwd=ROOT,
            input="\n".join(lock.declared()),
            text=True,
            check=True,
        )
        constraints += ["--constraint", name]
        path = ROOT / name
        body = "".join(
            line for line in path.read_text().splitlines(keepends=True) if not line.startswith("# Written by")
        )
        path.write_text(lock.header() + body)
        for line in describe_changes(before.get(name, {}), pinned_versions(path.read_text())):
            print(f"{name}: {line}")
    return check()


def describe_changes(before: dict[str, set[str]], after: dict[str, set[str]]) -> list[str]:
    """Return the changed versions, a line for each package."""
    return [
        f"{name} {join_versions(before.get(name, set()))} -> {join_versions(after.get(name, set()))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def join_versions(versions: set[str]) -> str:
    return ", ".join(sorted(versions)) or "nothing"


if __name__ == "__main__":
    commands = {"write": write, "upgrade": lambda: write(upgrade=True), "check": check}
    sys.exit(commands[sys.argv[1]]())
