"""Makes mutants: the small faults that the source of a module can have."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

OPPOSITES = {"Lt": "LtE", "Gt": "GtE", "Eq": "NotEq", "Is": "IsNot", "In": "NotIn", "And": "Or"}
OPPOSITES |= {opposite: name for name, opposite in OPPOSITES.items()}
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
# Statements with these names aren't mutated: logs and crash points are no behaviour, and the calls for the present time
# differ between the commits that are compared.
IGNORED_NAMES = frozenset({"log", "crash_point", "utc_now", ".now"})
MAX_CHARACTERS_SHOWN = 90
# No promise is about these: words in names, calls whose arguments simulated histories replace, and names of texts.
UNPROMISED_WORDS = frozenset({"ahead", "audit", "connections", "counters", "log", "pause", "vendor"})
REPLACED_CALLS = frozenset({"atomic", "on_commit", "request", "select_for_update", "select_related"})
PRESENT = frozenset({"monotonic", "now"})
TEXTS = frozenset({"message", "text", "title"})


@dataclass(frozen=True)
class Mutant:
    """A fault in a statement, which is identified by its text, so that it is found again if lines have moved."""

    file: str
    function: str
    statement: str
    nth: int
    """The position of the statement among those with the same text in the function."""
    number: int
    """The position of the change among those that the statement can have."""
    after: str

    def __str__(self) -> str:
        before, after = " ".join(self.statement.split()), " ".join(self.after.split())
        different = (index for index, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
        # For a long statement, the part around the change.
        start = max(next(different, 0) - MAX_CHARACTERS_SHOWN // 2, 0)
        return f"{self.function or 'module'}: {before[start:][:MAX_CHARACTERS_SHOWN]} => {after[start:][:MAX_CHARACTERS_SHOWN]}"


@dataclass(frozen=True)
class Change:
    """A mutant, the line and the node of its statement, and the nodes that are exchanged for it."""

    mutant: Mutant
    line: int
    statement: ast.stmt
    old: ast.AST
    new: ast.AST


def changes_of(file: str, tree: ast.Module) -> Iterator[Change]:
    """Yield every mutant of a file, with the node of its tree and the replacement; the tree stays as it is."""
    statement_counts: Counter[tuple[str, str]] = Counter()
    for statement, function, is_last in _statements(tree):
        text = ast.unparse(_without_blocks(statement))
        for number, (old, new) in enumerate(list(_replacements(statement, is_last=is_last))):
            _ReplaceNode(old, new).visit(statement)
            after = "deleted" if old is statement else ast.unparse(_without_blocks(statement))
            _ReplaceNode(new, old).visit(statement)
            mutant = Mutant(file, function, text, statement_counts[function, text], number, after)
            yield Change(mutant, statement.lineno, statement, old, new)
        statement_counts[function, text] += 1


def is_of_a_promise(change: Change) -> bool:
    """Return whether a simulated history should notice what the change breaks; see `tools.mutation_test`."""
    head = _without_blocks(change.statement)
    names = {*_names(head), change.mutant.function.rpartition(".")[2]}
    words = {word for name in names for word in name.lower().split("_")}
    targets = {target.id for target in getattr(head, "targets", ()) if isinstance(target, ast.Name)}
    if words & UNPROMISED_WORDS or targets & TEXTS or _is_of_an_instant(change.old):
        return False
    return not any(
        change.old in ast.walk(part)
        for node in ast.walk(head)
        if isinstance(node, ast.JoinedStr | ast.Slice | ast.Call)
        for part in _unpromised_parts(node)
    )


def _is_of_an_instant(node: ast.AST) -> bool:
    """Return whether a node compares the present with a moment, so that a mutant differs only if both are equal."""
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        and bool(_names(node) & PRESENT)
    )


def _unpromised_parts(node: ast.JoinedStr | ast.Slice | ast.Call) -> list[ast.AST]:
    """Return the parts of a node that no promise is about: a text or slice, some calls' arguments, `strict`."""
    if not isinstance(node, ast.Call):
        return [node]
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if name in REPLACED_CALLS:
        return [*node.args, *node.keywords]
    return [keyword for keyword in node.keywords if keyword.arg == "strict"]


def _names(node: ast.AST) -> set[str]:
    """Return the names below a node, of variables and of attributes."""
    return {getattr(child, "id", None) or getattr(child, "attr", "") for child in ast.walk(node)}


def apply(mutant: Mutant, source: str) -> tuple[int, str] | None:
    """Return the mutant's line and the mutated source, or `None` if the source lacks the statement."""
    tree = ast.parse(source)
    for change in changes_of(mutant.file, tree):
        if change.mutant == mutant:
            return change.line, ast.unparse(_ReplaceNode(change.old, change.new).visit(tree))
    return None


def _statements(block: ast.AST, function: str = "") -> Iterator[tuple[ast.stmt, str, bool]]:
    """Yield the statements that can be changed, each with its function; `True` marks the function's last one."""
    for child in [child for field in BLOCKS for child in _block(block, field)]:
        name = function
        if isinstance(child, ast.stmt):
            nodes = list(ast.walk(_without_blocks(child)))
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            names |= {f".{node.attr}" for node in nodes if isinstance(node, ast.Attribute)}
            if "TYPE_CHECKING" in names:
                continue
            if not names & IGNORED_NAMES:
                yield child, function, isinstance(block, ast.FunctionDef) and child is block.body[-1]
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{function}.{child.name}".removeprefix(".")
        yield from _statements(child, name)


def _block(node: ast.AST, field: str) -> list[ast.AST]:
    """Return the nodes of a block; none for a lambda, whose body is an expression."""
    value = getattr(node, field, None)
    return value if isinstance(value, list) else []


def _without_blocks(statement: ast.stmt) -> ast.stmt:
    """Return the statement without the blocks below it and without decorators."""
    head = copy.copy(statement)
    for field in (*BLOCKS, "decorator_list"):
        if _block(head, field):
            setattr(head, field, [])
    return head


def _replacements(statement: ast.stmt, *, is_last: bool) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node of a statement that can be changed, with its replacement.

    A call, and a `return`, `raise` or `continue` that isn't the function's last statement, can be deleted.
    """
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    if is_call or (isinstance(statement, ast.Return | ast.Raise | ast.Continue) and not is_last):
        yield statement, ast.Pass()
    for node in _expressions(_without_blocks(statement)):
        match node:
            case ast.Compare(ops=[operator]):
                yield node, ast.Compare(node.left, [_opposite(operator)], node.comparators)
            case ast.UnaryOp(op=ast.Not()):
                yield node, node.operand
            case ast.BoolOp():
                yield node, ast.BoolOp(_opposite(node.op), node.values)
            case ast.BinOp(op=ast.Add()):
                yield node, ast.BinOp(node.left, ast.Sub(), node.right)
            case ast.Constant(value=bool(value)):
                yield node, ast.Constant(not value)
            case ast.Constant(value=int(value) | float(value)):
                yield node, ast.Constant(value + 1)


def _opposite(operator: Any) -> Any:
    return getattr(ast, OPPOSITES[type(operator).__name__])()


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all expressions below a node, without annotations."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in {"annotation", "returns"}:
                yield child
                yield from _expressions(child)


class _ReplaceNode(ast.NodeTransformer):
    """Exchanges one node of a tree."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)
