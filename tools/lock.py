"""The lock files: `write` makes them from pyproject.toml, `check` says whether they still belong to it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
UV_VENV = ROOT / "var" / "tools" / "uv"
UV_REQUIREMENT = "uv>=0.13.8,<0.14"
LOCKS = {"requirements.lock": (), "requirements-dev.lock": ("dev",)}
PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^ ;\\]+)", re.MULTILINE)


def declared(extras: tuple[str, ...]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chosen: list[str] = list(project["dependencies"])
    for extra in extras:
        chosen += project["optional-dependencies"][extra]
    return sorted(chosen)


def header(extras: tuple[str, ...]) -> str:
    digest = hashlib.sha256(json.dumps(declared(extras)).encode()).hexdigest()
    return f"# Written by `make lock` for the dependencies of pyproject.toml with sha256 {digest}.\n"


def pins(text: str) -> dict[str, set[str]]:
    """One package may have several versions, each under its own marker."""
    found: dict[str, set[str]] = {}
    for name, version in PINNED.findall(text):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def faults(name: str, extras: tuple[str, ...]) -> list[str]:
    text = (ROOT / name).read_text()
    held = pins(text)
    found = []
    if not text.startswith(header(extras)):
        found.append("it was not written for these dependencies of pyproject.toml")
    for line in declared(extras):
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
    found = [fault for name, extras in LOCKS.items() for fault in faults(name, extras)]
    runtime, development = (pins((ROOT / name).read_text()) for name in LOCKS)
    found += [
        f"requirements-dev.lock: {name} differs from requirements.lock"
        for name, versions in runtime.items()
        if development.get(name) != versions
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


def write() -> int:
    command = [uv(), "pip", "compile", "--quiet", "--generate-hashes", "--universal", "--no-emit-index-url"]
    command += ["--no-header", "--python-version", "3.11", "pyproject.toml"]
    for name, extras in LOCKS.items():
        chosen = [f"--extra={extra}" for extra in extras]
        if extras:
            chosen += ["--constraint", "requirements.lock"]
        subprocess.run([*command, *chosen, "--output-file", name], cwd=ROOT, check=True)
        path = ROOT / name
        body = "".join(
            line for line in path.read_text().splitlines(keepends=True) if not line.startswith("# Written by")
        )
        path.write_text(header(extras) + body)
    return check()


if __name__ == "__main__":
    sys.exit(write() if sys.argv[1:] == ["write"] else check())
