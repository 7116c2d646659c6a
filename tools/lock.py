"""The lock files: `write` makes them from pyproject.toml, `upgrade` with the newest versions that it allows, `check` says
whether they still belong to it.
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
class Lock:
    """What a lock file pins: extras of pyproject.toml, with the project's own dependencies or without."""

    extras: tuple[str, ...] = ()
    is_whole: bool = True

    def declared(self) -> list[str]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        chosen: list[str] = list(project["dependencies"]) if self.is_whole else []
        for extra in self.extras:
            chosen += project["optional-dependencies"][extra]
        return sorted(chosen)

    def header(self) -> str:
        digest = hashlib.sha256(json.dumps(self.declared()).encode()).hexdigest()
        return f"# Written by `make lock` for the dependencies of pyproject.toml with sha256 {digest}.\n"


# In this order: each file takes its versions from those before it.
LOCKS = {
    "requirements.lock": Lock(),
    "requirements-dev.lock": Lock(("dev",)),
    "requirements-extras.lock": Lock(("video", "voice"), is_whole=False),
}
PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^ ;\\]+)", re.MULTILINE)


def pins(text: str) -> dict[str, set[str]]:
    """One package may have several versions, each under its own marker."""
    found: dict[str, set[str]] = {}
    for name, version in PINNED.findall(text):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def faults(name: str, lock: Lock) -> list[str]:
    text = (ROOT / name).read_text()
    held = pins(text)
    found = []
    if not text.startswith(lock.header()):
        found.append("it was not written for these dependencies of pyproject.toml")
    for line in lock.declared():
        wanted = Requirement(line)
        versions = held.get(canonicalize_name(wanted.name), set())
        if not any(wanted.specifier.contains(version) for version in versions):
            found.append(f"{line} is not what it pins ({', '.join(sorted(versions)) or 'nothing'})")
    blocks = [block for block in re.split(r"\n(?=[A-Za-z0-9])", text) if PINNED.match(block)]
    found += [f"{block.split()[0]} has no hash" for block in blocks if "--hash=sha256:" not in block]
    if "://" in text or "--index-url" in text or "--extra-index-url" in text:
        found.append("it names a package index")
    return [f"{name}: {fault}" for fault in found]


def check() -> int:
    found = [fault for name, lock in LOCKS.items() for fault in faults(name, lock)]
    held = {name: pins((ROOT / name).read_text()) for name in LOCKS}
    found += [
        f"requirements-dev.lock: {name} of requirements.lock is missing"
        for name in held["requirements.lock"]
        if name not in held["requirements-dev.lock"]
    ]
    found += [
        f"{second}: {name} differs from {first}"
        for first, second in combinations(LOCKS, 2)
        for name in held[first].keys() & held[second].keys()
        if held[first][name] != held[second][name]
    ]
    for fault in found:
        print(fault)
    if found:
        print("Write them anew: make lock")
        return 1
    print("The lock files belong to pyproject.toml.")
    return 0


def uv() -> str:
    on_path = shutil.which("uv")
    if on_path:
        return on_path
    if not (UV_VENV / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", str(UV_VENV)], check=True)
        subprocess.run([str(UV_VENV / "bin" / "pip"), "install", "--quiet", UV_REQUIREMENT], check=True)
    return str(UV_VENV / "bin" / "uv")


def write(*, upgrade: bool = False) -> int:
    before = {name: pins((ROOT / name).read_text()) for name in LOCKS if (ROOT / name).exists()}
    command = [uv(), "pip", "compile", "--quiet", "--generate-hashes", "--universal", "--no-emit-index-url"]
    command += ["--no-header", "--python-version", "3.11"]
    # Without it, what a lock file pins already stays where it can.
    command += ["--upgrade"] if upgrade else []
    constraints: list[str] = []
    for name, lock in LOCKS.items():
        chosen = (
            ["pyproject.toml", *(f"--extra={extra}" for extra in lock.extras)] if lock.is_whole else ["-"]
        )
        subprocess.run(
            [*command, *constraints, *chosen, "--output-file", name],
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
        for line in moved(before.get(name, {}), pins(path.read_text())):
            print(f"{name}: {line}")
    return check()


def moved(before: dict[str, set[str]], after: dict[str, set[str]]) -> list[str]:
    """What differs, a line for each package."""
    return [
        f"{name} {said(before.get(name, set()))} -> {said(after.get(name, set()))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def said(versions: set[str]) -> str:
    return ", ".join(sorted(versions)) or "nothing"


if __name__ == "__main__":
    commands = {"write": write, "upgrade": lambda: write(upgrade=True), "check": check}
    sys.exit(commands[sys.argv[1]]())
