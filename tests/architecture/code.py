"""The project's own code as syntax trees, for the rules that read it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("config", "accounts", "pipeline", "webhooks", "analytics")
DOORS = (
    "*/api/*.py",
    "*/api/*/*.py",
    "*/pages/*.py",
    "*/pages/*/*.py",
    "*/inbound/*.py",
    "*/inbound.py",
    "*/tasks.py",
    "*/admin.py",
    "*/admin/*.py",
)


@dataclass(frozen=True)
class Module:
    """One file of ours: its path from the root, its lines and its tree."""

    path: str
    lines: tuple[str, ...]
    tree: ast.Module

    def at(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)}"

    def line(self, number: int) -> str:
        """Counted from 1, as people and compilers do; empty beyond the ends."""
        return self.lines[number - 1].strip() if 1 <= number <= len(self.lines) else ""

    def functions(self) -> Iterator[tuple[str, ast.AST]]:
        """Every node together with the name of the function that it stands in, empty at the top."""
        waiting: list[tuple[str, ast.AST]] = [("", self.tree)]
        while waiting:
            name, node = waiting.pop()
            yield name, node
            inner = f"{name}.{node.name}".lstrip(".") if isinstance(node, _NAMED) else name
            waiting += [(inner, child) for child in ast.iter_child_nodes(node)]


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@cache
def read(path: Path) -> Module:
    text = path.read_text()
    return Module(str(path.relative_to(ROOT)), tuple(text.splitlines()), ast.parse(text))


@cache
def modules() -> tuple[Module, ...]:
    """Every file of the five packages that isn't empty, without the migrations that Django wrote."""
    files = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return tuple(read(path) for path in files if "migrations" not in path.parts and path.read_text().strip())


def door_modules() -> tuple[Module, ...]:
    return tuple(module for module in modules() if any(Path(module.path).match(form) for form in DOORS))


def calls(module: Module) -> Iterator[tuple[str, ast.Call]]:
    for name, node in module.functions():
        if isinstance(node, ast.Call):
            yield name, node


def method_of(call: ast.Call) -> str | None:
    """`update` of `rows.filter(…).update(…)`; None for a call of a bare name."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def chain_of(call: ast.Call) -> tuple[str, ...]:
    """Every name of the expression that a method is called on: `Source`, `everywhere`, `filter` of a query."""
    names: list[str] = []
    node: ast.AST = call.func
    while True:
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            break
    if isinstance(node, ast.Name):
        names.append(node.id)
    return tuple(reversed(names))


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {one.arg: one.value for one in call.keywords if one.arg}
