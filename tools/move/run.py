"""Move modules, tests and templates by the tables beside this file, and rewrite every reference to them.

    python tools/move/run.py --check    says what the tables lack for this tree, and changes nothing
    python tools/move/run.py            on a clean tree: moves, rewrites, sorts imports, formats, and stages all of it

Run it on a clean tree, look at what it reports, commit everything, and delete this folder in the commit after it. It
takes about a minute. It knows Python's imports, attributes, strings and comments, `with_name("child.py")`,
`Path(__file__).parents[n]`, names of templates, and paths in documents and settings. Names that only look like modules
(jobs, salts, groups of limits) stay, and the move stops where one would change. Edits that no table can say stand in
`edits.py`; each is checked for being needed.
"""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import re
import shutil
import subprocess
import sys
import tokenize
from collections import defaultdict
from functools import cache
from multiprocessing import Pool
from pathlib import Path

HERE = Path(__file__).resolve().parent
APPS = ("config", "accounts", "pipeline", "webhooks", "analytics", "tests", "tools", "benchmarks")
_APPS = "|".join(APPS)
DOTTED = re.compile(rf"(?<![\w./@-])(?:{_APPS})(?:\.[A-Za-z_]\w*)+")
PATHS = re.compile(rf"(?<![\w.@-])(?:{_APPS})(?:/[A-Za-z_*][\w*]*)+(?:\.py)?")
IMPORT = re.compile(rf"\bfrom ((?:{_APPS})(?:\.\w+)*) import (\w+(?:, \w+)*)(?! as)\b")
SIBLING = re.compile(r"""^(["'])(\w+)\.py\1$""")
PARENTS = re.compile(r"\.parents\[(\d+)\]")
PARENT_CHAIN = re.compile(r"(Path\(__file__\)(?:\.resolve\(\))?)((?:\.parent)+)\b(?!\()")
TEXTS = (
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".conf",
    ".html",
    ".txt",
    ".service",
    ".timer",
    ".env",
    ".json",
    ".js",
)
NAMED_FILES = ("Makefile", "Dockerfile", ".ci/run", ".gitignore", ".dockerignore")
SKIPPED = ("docs/proofs/", "benchmarks/results/", "tools/move/", "docs/examples/")
STORED = frozenset(
    {"accounts.members.removed", "accounts.notices.off", "pipeline.short_links", "pipeline.inbound"}
)
"""Salts of signed links and groups of limits: they look like modules and must not change."""


def module_of(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def read_table(text: str) -> list[tuple[str, str]]:
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [(line[0], line[1]) for line in lines if line]


class Moves:
    """Where each module, path and template goes."""

    def __init__(
        self, table: str, modules: set[str], data: str = "", templates: dict[str, str] | None = None
    ) -> None:
        self.modules = modules
        self.data = read_table(data)
        self.templates = templates or {}
        self.table: dict[str, str] = {}
        self.unused: list[str] = []
        given = read_table(table)
        named = {old for old, _ in given}
        for old, new in given:
            if old.endswith("_*"):
                stem = old[:-1]
                found = [one for one in modules if one.startswith(stem) and "." not in one[len(stem) :]]
                for module in found:
                    if module not in named:
                        self.table[module] = new[:-1] + module.removeprefix(stem)
            else:
                self.table[old] = new
                found = [one for one in modules if one == old]
            if not found:
                self.unused.append(old)
        self.entries = {old for old, new in self.table.items() if new.endswith(".__init__")}
        self.old_packages = {one.rpartition(".")[0] for one in modules}
        self.new = cache(self._new)

    def _new(self, module: str) -> str:
        parts = module.split(".")
        for length in range(len(parts), 0, -1):
            target = self.table.get(".".join(parts[:length]))
            if target:
                return ".".join([target.removesuffix(".__init__"), *parts[length:]])
        return module

    def new_path(self, path: str) -> str:
        """Of a file of Python."""
        if path.split("/")[0] not in APPS:
            return path
        module = module_of(path)
        is_package = path.endswith("/__init__.py") or module in self.entries
        return self.new(module).replace(".", "/") + ("/__init__.py" if is_package else ".py")

    def new_data_path(self, path: str) -> str:
        """Of any other file: by the table of data, else beside the package that it lies in."""
        for old, new in self.data:
            if path == old or path.startswith(old):
                return new + path[len(old) :]
        if path.startswith("templates/"):
            name = path.removeprefix("templates/")
            return f"templates/{self.templates.get(name, name)}"
        parts = path.split("/")
        for length in range(len(parts) - 1, 0, -1):
            package = ".".join(parts[:length])
            if package in self.modules:
                return "/".join([self.new(package).replace(".", "/"), *parts[length:]])
        return path

    def dotted(self, text: str) -> str:
        """A dotted name that begins with a module, with what stands behind it."""
        if text in STORED:
            return text
        parts = text.split(".")
        for length in range(len(parts), 1, -1):
            module = ".".join(parts[:length])
            if module in self.modules:
                rest = parts[length:]
                if rest and module.split(".")[0] in APPS:
                    rest[0] = member(self, module, rest[0])
                return ".".join([self.new(module), *rest])
        return text

    def path(self, text: str) -> str:
        for old, new in self.data:
            if text == old.rstrip("/") or text.startswith(old):
                return new.rstrip("/") + text[len(old.rstrip("/")) :]
        if text.endswith(".py") and module_of(text) in self.modules:
            return self.new_path(text)
        end = ".py" if text.endswith(".py") else ""
        parts = text.removesuffix(".py").split("/")
        for length in range(len(parts), 1, -1):
            module = ".".join(parts[:length])
            if module in self.modules:
                return "/".join([self.new(module).replace(".", "/"), *parts[length:]]) + end
        return text

    def _imports(self, match: re.Match[str]) -> str:
        """A line of code inside a text, such as a program that a test starts."""
        package, names = match[1], [name.strip() for name in match[2].split(",")]
        if not any(f"{package}.{name}" in self.modules for name in names):
            return match[0]
        groups: dict[str, list[str]] = defaultdict(list)
        for name in names:
            full = f"{package}.{name}"
            new = self.new(full) if full in self.modules and not _is_bound(package, name) else f"{self.new(package)}.{name}"
            parent, _, leaf = new.rpartition(".")
            groups[parent].append(leaf if leaf == name else f"{leaf} as {name}")
        lines = [f"from {parent} import {', '.join(leaves)}" for parent, leaves in groups.items()]
        return "; ".join(lines)

    def text(self, text: str) -> str:
        text = IMPORT.sub(self._imports, text)
        text = DOTTED.sub(lambda match: self.dotted(match[0]), text)
        text = PATHS.sub(lambda match: self.path(match[0]), text)
        if "pages/" in text:
            text = TEMPLATE.sub(lambda match: self.templates.get(match[0], match[0]), text)
        return text


TEMPLATE = re.compile(r"(?<![\w/])pages/\w+\.html")


class Source:
    """One file of Python on its way."""

    def __init__(self, moves: Moves, path: str, source: str) -> None:
        self.moves = moves
        self.path = path
        self.source = source
        self.new_path = moves.new_path(path)
        self.tree = ast.parse(source)
        self.lines = [line.encode() for line in source.split("\n")]
        self.edits: list[tuple[tuple[int, int], tuple[int, int], str]] = []
        self.notes: list[str] = []

    def note(self, line: int, text: str) -> None:
        self.notes.append(f"{self.path}:{line}: {text}")

    def rewritten(self) -> str:
        self.renames = self._renames()
        self.bindings = self._bindings()
        for node in ast.walk(self.tree):
            changed = None
            if isinstance(node, ast.ImportFrom):
                changed = self._import_from(node)
            elif isinstance(node, ast.Import):
                changed = self._import(node)
            elif isinstance(node, ast.Attribute):
                name = _dotted_name(node)
                if name and name in self.moves.modules and self.moves.new(name) != name:
                    changed = self.moves.new(name)
                elif isinstance(node.value, ast.Name) and node.value.id in self.bindings:
                    new = member(self.moves, self.bindings[node.value.id], node.attr)
                    if new != node.attr:
                        changed = f"{self.renames.get(node.value.id, node.value.id)}.{new}"
            elif isinstance(node, ast.Call):
                self._patch(node)
            elif isinstance(node, ast.Name) and node.id in self.renames:
                changed = self.renames[node.id]
            if changed is not None:
                self._edit(node, changed)
        return self._parents(self._tokens(self._applied()))

    def _edit(self, node: ast.AST, text: str) -> None:
        self.edits.append(((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text))

    def _applied(self) -> str:
        """With the outermost of nested edits: `config.ground.sealed` holds `config.ground`."""
        outermost: list[tuple[tuple[int, int], tuple[int, int], str]] = []
        for start, end, text in sorted(self.edits, key=lambda one: (one[0], (-one[1][0], -one[1][1]))):
            if not outermost or start >= outermost[-1][1]:
                outermost.append((start, end, text))
        lines = list(self.lines)
        for (first, begin), (last, stop), text in reversed(outermost):
            whole = lines[first - 1][:begin] + text.encode() + lines[last - 1][stop:]
            lines[first - 1 : last] = whole.split(b"\n")
        return b"\n".join(lines).decode()

    # --- imports ---

    def _absolute(self, node: ast.ImportFrom) -> str | None:
        if not node.level:
            return node.module
        package = self.path.split("/")[: -node.level]
        return ".".join([*package, *([node.module] if node.module else [])])

    def _targets(self, node: ast.ImportFrom) -> list[tuple[ast.alias, str, str]]:
        """Each alias with the new package to import from and the new name in it."""
        module = self._absolute(node)
        if not module or module.split(".")[0] not in APPS:
            return []
        found = []
        for alias in node.names:
            full = f"{module}.{alias.name}"
            if full in self.moves.modules and not _is_bound(module, alias.name):
                parent, _, leaf = self.moves.new(full).rpartition(".")
            else:
                parent, leaf = self.moves.new(module), alias.name
            found.append((alias, parent, leaf))
        return found

    def _import_from(self, node: ast.ImportFrom) -> str | None:
        module = self._absolute(node)
        groups: dict[str, list[str]] = defaultdict(list)
        is_changed = False
        for alias, parent, leaf in self._targets(node):
            as_name = alias.asname
            if leaf != alias.name and not as_name and self.renames.get(alias.name) != leaf:
                as_name = alias.name
            is_changed |= parent != module or leaf != alias.name
            groups[parent].append(leaf + (f" as {as_name}" if as_name and as_name != leaf else ""))
        if not is_changed:
            return None
        indent = "\n" + " " * node.col_offset
        end = self.lines[node.end_lineno - 1][node.end_col_offset :].decode()
        noqa = end if "noqa" in end else ""
        texts = [f"from {parent} import {', '.join(names)}" for parent, names in groups.items()]
        return (noqa + indent).join(texts)

    def _import(self, node: ast.Import) -> str | None:
        names = []
        for alias in node.names:
            new = self.moves.new(alias.name) if alias.name in self.moves.modules else alias.name
            names.append(new + (f" as {alias.asname}" if alias.asname else ""))
        if all(alias.name == name.split(" ")[0] for alias, name in zip(node.names, names, strict=True)):
            return None
        return f"import {', '.join(names)}"

    def _renames(self) -> dict[str, str]:
        """Names of imported modules that change with their module, where nothing else in the file has either name."""
        wanted: dict[str, set[str]] = defaultdict(set)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for alias, _, leaf in self._targets(node):
                    if leaf != alias.name and not alias.asname:
                        wanted[alias.name].add(leaf)
        if not wanted:
            return {}
        bound: dict[str, int] = defaultdict(int)
        loaded: dict[str, list[ast.Name]] = defaultdict(list)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    loaded[node.id].append(node)
                else:
                    bound[node.id] += 1
            elif isinstance(node, ast.arg):
                bound[node.arg] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or (
                isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name
            ):
                bound[node.name] += 1
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    # The import that is renamed is no other meaning of its name.
                    if not (isinstance(node, ast.ImportFrom) and not alias.asname and alias.name in wanted):
                        bound[name] += 1
        renames = {}
        for old, leaves in wanted.items():
            new = next(iter(leaves))
            is_safe = (
                len(leaves) == 1
                and not bound[old]
                and not bound[new]
                and not loaded[new]
                and not hasattr(builtins, new)
                and not keyword.iskeyword(new)
                and not re.search(rf"""["']{old}(\.\w+)*["']""", self.source)
                and all(self._stands_there(node) for node in loaded[old])
            )
            if is_safe and new not in renames.values():
                renames[old] = new
        return renames

    def _bindings(self) -> dict[str, str]:
        """Names that this file gives to modules of ours, and which modules those are."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                module = self._absolute(node)
                for alias, _, _ in self._targets(node):
                    if f"{module}.{alias.name}" in self.moves.modules and not _is_bound(module, alias.name):
                        found[alias.asname or alias.name] = f"{module}.{alias.name}"
        return found

    def _patch(self, node: ast.Call) -> None:
        """`monkeypatch.setattr(module, "name", …)`, where the module calls another one by that name."""
        if len(node.args) < 2 or not isinstance(node.args[0], ast.Name) or node.args[0].id not in self.bindings:
            return
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier():
            new = member(self.moves, self.bindings[node.args[0].id], name.value)
            if new != name.value:
                self._edit(name, f'"{new}"')

    def _stands_there(self, node: ast.Name) -> bool:
        line = self.lines[node.lineno - 1]
        return line[node.col_offset : node.end_col_offset] == node.id.encode()

    # --- strings, comments, places ---

    def _tokens(self, source: str) -> str:
        """Strings and comments, once the code is rewritten: an f-string holds some of it."""
        lines = [line.encode() for line in source.split("\n")]
        module = module_of(self.path)
        folder = module if self.path.endswith("__init__.py") else module.rpartition(".")[0]
        edits = []
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in {tokenize.STRING, tokenize.COMMENT}:
                continue
            text = self.moves.text(token.string)
            sibling = SIBLING.match(token.string)
            if sibling and f"{folder}.{sibling[2]}" in self.moves.modules:
                moved = self.moves.new_path(f"{folder}.{sibling[2]}".replace(".", "/") + ".py")
                text = f'"{moved.rpartition("/")[2]}"'
                if moved.rpartition("/")[0] != self.new_path.rpartition("/")[0]:
                    self.note(token.start[0], f"{sibling[2]}.py doesn't move with it")
            if text != token.string:
                edits.append((token.start, token.end, text))
        for (first, begin), (last, stop), text in reversed(edits):
            head = lines[first - 1].decode()[:begin]
            tail = lines[last - 1].decode()[stop:]
            lines[first - 1 : last] = f"{head}{text}{tail}".encode().split(b"\n")
        return b"\n".join(lines).decode()

    def _parents(self, source: str) -> str:
        """`Path(__file__).parents[2]`, where that is the project's folder and the file now lies deeper or higher."""
        depth, new_depth = self.path.count("/"), self.new_path.count("/")
        if depth == new_depth:
            return source

        def by_number(match: re.Match[str]) -> str:
            if int(match[1]) != depth:
                self.note(0, f"{match[0]} isn't the project's folder: look at it")
                return match[0]
            return f".parents[{new_depth}]"

        def by_chain(match: re.Match[str]) -> str:
            if match[2].count(".parent") != depth + 1:
                if match[2].count(".parent") > 1:
                    self.note(0, f"{match[0]} isn't the project's folder: look at it")
                return match[0]
            return match[1] + ".parent" * (new_depth + 1)

        source = PARENTS.sub(by_number, source)
        return PARENT_CHAIN.sub(by_chain, source)


@cache
def _renames_of(moves: Moves, module: str) -> dict[str, str]:
    path = next((one for one in (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__init__.py") if (ROOT / one).exists()), None)
    return Source(moves, path, (ROOT / path).read_text())._renames() if path else {}  # noqa: SLF001


def member(moves: Moves, module: str, name: str) -> str:
    """What `module.name` is called from now on: a module in a package, or one that the module imports."""
    full = f"{module}.{name}"
    if full in moves.modules and not _is_bound(module, name):
        new, package = moves.new(full), moves.new(module)
        return new.removeprefix(f"{package}.") if new.startswith(f"{package}.") else name
    return _renames_of(moves, module).get(name, name)


def _dotted_name(node: ast.expr) -> str | None:
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in APPS:
        return None
    return ".".join([node.id, *reversed(names)])


ROOT = Path()
MOVES: Moves


@cache
def _bound_in(package: str) -> frozenset[str]:
    """Names that a package's entry gives away: `generate.recheck` is a function, not the module of that name."""
    path = ROOT / package.replace(".", "/") / "__init__.py"
    if not path.exists():
        return frozenset()
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if f"{node.module}.{alias.name}" != f"{package}.{alias.name}":
                    names.add(alias.asname or alias.name)
    return frozenset(names)


def _is_bound(package: str, name: str) -> bool:
    return name in _bound_in(package)


def _start(root: Path, moves: Moves) -> None:
    global ROOT, MOVES
    ROOT, MOVES = root, moves


def _rewrite(path: str) -> tuple[str, str, bytes | None, list[str]]:
    """Old path, new path, new bytes (None where they stay), and what to look at."""
    raw = (ROOT / path).read_bytes()
    if path.endswith(".py"):
        source = Source(MOVES, path, raw.decode())
        new = (
            source.rewritten()
            if re.search(rf"\b(?:{_APPS})\b", source.source) or "__file__" in source.source
            else source.source
        )
        return path, source.new_path, new.encode(), source.notes
    new_path = MOVES.new_data_path(path)
    if (path.endswith(TEXTS) or path in NAMED_FILES) and not path.startswith(SKIPPED):
        text = MOVES.text(raw.decode())
        return path, new_path, (_document(text) if path.endswith(".md") else text).encode(), []
    return path, new_path, None, []


def _document(text: str) -> str:
    """Paths from inside `pipeline/`, and modules that are named by their last name alone, where only one has it."""
    text = INSIDE.sub(lambda match: MOVES.path(f"pipeline/{match[0]}").removeprefix("pipeline/"), text)
    text = LEAF.sub(lambda match: f"`{_leaves().get(match[1], match[1])}.py", text)
    return MEMBER.sub(_member, text)


INSIDE = re.compile(r"(?<![\w/])(?:stages|sources|platforms|engines|writers|voices|render|pages)/\w+(?:/\w+)*(?:\.py|/)?")
LEAF = re.compile(r"`(\w+)\.py(?=`)")
MEMBER = re.compile(r"`(\w+)\.(\w+)(?=[`(])")


@cache
def _leaves() -> dict[str, str]:
    """Last names that one module of the service has alone, and its new one."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in MOVES.modules:
        if module.split(".")[0] in {"config", "accounts", "pipeline", "webhooks", "analytics"}:
            found[module.rpartition(".")[2]].append(module)
    return {leaf: MOVES.new(few[0]).rpartition(".")[2] for leaf, few in found.items() if len(few) == 1}


def _member(match: re.Match[str]) -> str:
    new = _leaves().get(match[1], match[1])
    if new == match[1] or match[2] == "py":
        return match[0]
    path = next(one for one in MOVES.modules if one.rpartition(".")[2] == match[1] and not one.startswith("tests"))
    file = ROOT / f"{path.replace('.', '/')}.py"
    is_there = file.exists() and re.search(rf"^(?:def |class |async def )?{match[2]}\b", file.read_text(), re.MULTILINE)
    return f"`{new}.{match[2]}" if is_there else match[0]


def template_moves(names: list[str], prefixes: list[tuple[str, str, str | None]]) -> dict[str, str]:
    """`item_checks.html` stands in `pages/items/` as `checks.html`; what begins with no known thing stays."""
    moved = {}
    for name in names:
        stem = name.removeprefix("pages/").removesuffix(".html")
        for prefix, folder, own in sorted(prefixes, key=lambda one: -len(one[0])):
            if stem == prefix or stem.startswith(f"{prefix}_"):
                leaf = stem if own is None else stem.removeprefix(prefix).lstrip("_") or own
                moved[name] = f"pages/{folder}/{leaf}.html"
                break
    return moved


def jobs_in(root: Path) -> set[str]:
    """Names of Celery tasks: stored, and labels of metrics."""
    found = set()
    for path in (*root.glob("*/tasks.py"), root / "config/retention.py"):
        if path.exists():
            found |= set(re.findall(r'name="([\w.]+)"', path.read_text()))
    return found


def check(moves: Moves, files: list[str]) -> list[str]:
    problems = []
    targets: dict[str, list[str]] = defaultdict(list)
    for name in files:
        target = moves.new_path(name) if name.endswith(".py") else moves.new_data_path(name)
        targets[target].append(name)
    for target, names in targets.items():
        if len(names) > 1 and not all(_is_empty(name) for name in names if name.endswith("__init__.py")):
            problems.append(f"{target} comes from {', '.join(names)}")
    problems += [
        f"{module} has no place"
        for module in sorted(moves.modules)
        if moves.new(module).startswith("pipeline.stages.")
    ]
    for job in jobs_in(ROOT) | STORED:
        if moves.text(job) != job:
            problems.append(f"the name {job} would change")
    problems += hidden(moves)
    for module in moves.modules:
        parent, _, leaf = moves.new(module).rpartition(".")
        old_package = next(
            (one for one in moves.modules if moves.new(one) == parent and _bound_in(one)), None
        )
        if old_package and leaf in _bound_in(old_package) and module != f"{old_package}.{leaf}":
            problems.append(f"{module}: {parent} gives away another thing called {leaf}")
    return problems


def hidden(moves: Moves) -> list[str]:
    """Names of a package's entry that a module in the package would take: importing it sets them on the package."""
    inside: dict[str, set[str]] = defaultdict(set)
    for module in moves.modules:
        parent, _, leaf = moves.new(module).rpartition(".")
        inside[parent].add(leaf)
    problems = []
    for module in sorted(moves.entries):
        path = f"{module.replace('.', '/')}.py"
        if not (ROOT / path).exists():
            continue
        source = Source(moves, path, (ROOT / path).read_text())
        renames, package = source._renames(), moves.new(module)  # noqa: SLF001
        for node in source.tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias, parent, leaf in source._targets(node):  # noqa: SLF001
                    name = alias.asname or renames.get(alias.name, alias.name)
                    if name in inside[package] and f"{parent}.{leaf}" != f"{package}.{name}":
                        problems.append(f"{package}: {name} is {parent}.{leaf} and a module in it")
            elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in inside[package]:
                problems.append(f"{package}: {node.name} is defined there and a module in it")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and target.id in inside[package]:
                        problems.append(f"{package}: {target.id} is set there and a module in it")
    return problems


def _is_empty(name: str) -> bool:
    tree = ast.parse((ROOT / name).read_text())
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in tree.body)


def main() -> int:
    from edits import AFTER, EDITS, PACKAGES, TEMPLATES  # noqa: PLC0415

    root = Path(next((one for one in sys.argv[1:] if not one.startswith("--")), HERE.parents[1])).resolve()

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True
        ).stdout

    if git("status", "--porcelain", "--untracked-files=no").strip():
        sys.exit("The tree has changes; commit them first.")
    files = [name for name in git("ls-files").splitlines() if not name.startswith("tools/move/")]
    python = [name for name in files if name.endswith(".py")]
    modules = {module_of(name) for name in python}
    # A folder of tests without an `__init__.py` is a package for those who move it.
    modules |= {one.rpartition(".")[0] for one in modules if "." in one}
    tables = "\n".join((HERE / name).read_text() for name in ("modules.txt", "tests.txt"))
    pages = [name.removeprefix("templates/") for name in files if name.startswith("templates/pages/")]
    moves = Moves(tables, modules, (HERE / "data.txt").read_text(), template_moves(pages, TEMPLATES))
    _start(root, moves)
    for old in moves.unused:
        print(f"?? {old}: no such module; take it out of the table")
    problems = check(moves, files)
    for problem in problems:
        print("!!", problem)
    if "--check" in sys.argv or (problems and "--anyway" not in sys.argv):
        return 1 if problems else 0

    with Pool(2, _start, (root, moves)) as pool:
        done = pool.map(_rewrite, files, chunksize=40)
    gone = [old for old, new, _, _ in done if old != new]
    contents = {old: (root / old).read_bytes() for old, new, raw, _ in done if old != new and raw is None}
    for old in gone:
        (root / old).unlink()
    written = set()
    moved = 0
    # Where two entries of packages become one, the one that says something comes first.
    for old, new, raw, notes in sorted(done, key=lambda one: (-len(one[2] or b""), one[0])):
        for note in notes:
            print("??", note)
        if new in written:
            continue  # Two empty entries of packages that became one.
        written.add(new)
        if raw is not None or old != new:
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            (root / new).write_bytes(contents[old] if raw is None else raw)
        moved += old != new
    for new in sorted(written):
        if not new.endswith(".py") or new.split("/")[0] not in APPS:
            continue
        for folder in Path(new).parents[:-1]:
            entry = root / folder / "__init__.py"
            if not entry.exists() and folder.parts[0] in {
                "config",
                "accounts",
                "pipeline",
                "webhooks",
                "analytics",
                "tests",
            }:
                name = ".".join(folder.parts)
                entry.write_text(f'"""{PACKAGES[name]}"""\n' if name in PACKAGES else "")
                if name not in PACKAGES and folder.parts[0] != "tests":
                    print("?? no docstring for", name)
    _remove_empty_packages({(root / old).parent for old in gone}, root)
    for name, old, new in EDITS:
        path = root / name
        text = path.read_text() if path.exists() else ""
        if old not in text:
            print(f"!! {name}: nothing to edit: {old[:70]!r}")
            continue
        path.write_text(text.replace(old, new))
    for act in AFTER:
        act(root)
    ruff = [str(root / ".venv/bin/python"), "-m", "ruff"]
    subprocess.run([*ruff, "check", "--select", "I,TC", "--fix", "-q", "--exclude", "tools/move", "."], cwd=root, check=False)
    subprocess.run([*ruff, "format", "-q", "--exclude", "tools/move", "."], cwd=root, check=False)
    git("add", "-A")
    git("reset", "-q", "--", ".venv", "tools/move")
    lines = len(re.findall(r"^\+\s*(?:from|import) ", git("diff", "--cached", "-M30%"), re.MULTILINE))
    print(f"{moved} files moved, {lines} lines of imports changed, {len(moves.templates)} templates")
    report_left(root)
    report_sizes(root)
    return 0


def _remove_empty_packages(folders: set[Path], root: Path) -> None:
    """The deepest first, and then those above them that have become empty."""
    waiting = set(folders)
    while waiting:
        folder = max(waiting, key=lambda one: len(one.parts))
        waiting.discard(folder)
        if folder == root or not folder.exists():
            continue
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        left = list(folder.iterdir())
        if [one.name for one in left] == ["__init__.py"] and not left[0].read_bytes():
            left.pop().unlink()
        if not left:
            folder.rmdir()
            waiting.add(folder.parent)


def report_left(root: Path) -> None:
    """Old names that nothing has rewritten."""
    pattern = r"pipeline[./]stages\b|config[./]ground\b|tests[./]stages\b|tests[./]ground\b"
    found = subprocess.run(
        [
            "git",
            "-C",
            str(root),
            "grep",
            "-nE",
            pattern,
            "--",
            ":!tools/move",
            ":!docs/proofs",
            ":!CHANGELOG.md",
        ],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    for line in found.splitlines():
        print("left:", line[:180])


def report_sizes(root: Path) -> None:
    sizes: dict[str, int] = defaultdict(int)
    for path in root.rglob("*.py"):
        name = str(path.relative_to(root))
        if (
            name.split("/", maxsplit=1)[0] in {"config", "accounts", "pipeline", "webhooks", "analytics"}
            and "/migrations/" not in name
        ):
            sizes[str(Path(name).parent)] += path.name != "__init__.py"
    for name, size in sorted(sizes.items(), key=lambda one: -one[1]):
        if size > 20:
            print(f"{name}: {size} modules")


if __name__ == "__main__":
    sys.exit(main())
