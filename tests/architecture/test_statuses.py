"""A status is written in one place: `config.core.states`."""

from __future__ import annotations

import ast
from pathlib import Path

from django.apps import apps

from config.core import jobs, states
from tests.architecture.code import Module, calls, chain_of, keywords, method_of, modules

THE_WRITER = "config/core/states.py"
WRITES = frozenset(
    {"create", "update", "get_or_create", "update_or_create", "bulk_create", "acreate", "aupdate"}
)
NOT_A_STATUS = {
    "accounts/access/idempotency.py:run_once": "IdempotencyKey.status is the HTTP status of a stored answer",
}
"""Where a column of that name is something else."""
ASKS = frozenset({"filter", "exclude", "get", "get_or_create", "Q", "Count", "count", "When"})
CLOSED = frozenset({"status", "held", "flagged", "step", "decision", "outcome", "bucket"})
"""Columns whose values are a `TextChoices` of their model."""
READ = frozenset({"status", "held", "flagged"})
"""Those of them that no value of a plain function has."""
OF_THE_VALUES = ("*/models/*.py", "*/states.py")
"""Where the values are said: beside the models, and in the tables of moves."""
PURE = ("sources", "engines", "platforms", "writers", "voices", "render", "grounding", "text")
"""Packages that import no models: what they call a status is a vendor's."""


def _models_with_a_status() -> set[str]:
    jobs.jobs()
    return {label.rpartition(".")[2] for label in states.tables()}


def test_every_model_with_a_status_has_a_table_of_moves():
    jobs.jobs()
    there = {
        model._meta.label
        for model in apps.get_models()
        if model._meta.app_label in {"accounts", "pipeline", "webhooks", "analytics"}
        and any(field.name == "status" for field in model._meta.concrete_fields)
    }
    assert there - {"accounts.IdempotencyKey"} == set(states.tables())


def test_every_move_leads_to_a_status_of_its_own_table():
    jobs.jobs()
    lost = [
        f"{label}: {status} to {target}"
        for label, table in states.tables().items()
        for status, targets in table.items()
        for target in targets
        if target not in table
    ]
    assert lost == []


def test_every_default_status_is_in_its_table():
    jobs.jobs()
    strange = [
        label
        for label, table in states.tables().items()
        if apps.get_model(label)._meta.get_field("status").default not in table
    ]
    assert strange == []


def test_only_the_ground_assigns_a_status():
    found = [
        module.at(node)
        for module in modules()
        if module.path != THE_WRITER
        for _, node in module.functions()
        for target in _targets(node)
        if isinstance(target, ast.Attribute) and target.attr == "status" and not _is_self(target)
    ]
    assert found == []


def test_only_the_ground_writes_a_status_to_the_database():
    models = _models_with_a_status()
    found = [
        f"{module.at(call)} {function}"
        for module in modules()
        if module.path != THE_WRITER
        for function, call in calls(module)
        if _writes_status(call, models) and f"{module.path}:{function}" not in NOT_A_STATUS
    ]
    assert found == []


def test_reasons_are_still_needed():
    models = _models_with_a_status()
    there = {
        f"{module.path}:{name}"
        for module in modules()
        for name, call in calls(module)
        if _writes_status(call, models)
    }
    assert set(NOT_A_STATUS) <= there


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [part for target in node.targets for part in _parts(target)]
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return [node.target]
    return []


def _parts(target: ast.expr) -> list[ast.expr]:
    return (
        [part for one in target.elts for part in _parts(one)]
        if isinstance(target, ast.Tuple | ast.List)
        else [target]
    )


def _is_self(target: ast.Attribute) -> bool:
    """An attribute of an exception or a dataclass of our own; a model's methods go through `move` like all others."""
    return isinstance(target.value, ast.Name) and target.value.id == "self"


def _writes_status(call: ast.Call, models: set[str]) -> bool:
    method, given = method_of(call), keywords(call)
    if method in WRITES and ("status" in given or _names_status(given.get("defaults"))):
        return True
    if method == "setattr" or (isinstance(call.func, ast.Name) and call.func.id == "setattr"):
        return len(call.args) > 1 and _says_status(call.args[1])
    if method in {"save", "asave", "bulk_update"}:
        fields = given.get("update_fields") or given.get("fields") or (call.args[-1] if call.args else None)
        return _names_status(fields)
    # A row that isn't stored yet begins with its model's default, or by `states.begin`.
    return _is_model(call, models) and "status" in given


def _is_model(call: ast.Call, models: set[str]) -> bool:
    return bool(chain_of(call)) and chain_of(call)[-1] in models


def _names_status(node: ast.expr | None) -> bool:
    return node is not None and any(_says_status(one) for one in ast.walk(node))


def _says_status(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "status"


def test_the_rule_sees_what_it_forbids():
    wrong = (
        "row.status = 'ready'",
        "a, row.status = 1, 2",
        "Source.everywhere.filter(pk=1).update(status='paused')",
        "Delivery(status='held')",
        "models.Delivery(status='held')",
        "Source.everywhere.create(status='paused')",
        "row.save(update_fields=['status'])",
        "Event.everywhere.bulk_update(rows, ['status', 'version'])",
        "setattr(row, 'status', 'ready')",
        "Source.everywhere.update_or_create(pk=1, defaults={'status': 'paused'})",
    )
    right = (
        "Source.everywhere.filter(status='paused')",
        "Response(status=202)",
        "states.move(row, 'ready', held='')",
    )
    for text in (*wrong, *right):
        module = Module("x.py", (text,), ast.parse(text))
        hit = any(
            isinstance(target, ast.Attribute) and target.attr == "status"
            for _, node in module.functions()
            for target in _targets(node)
        ) or any(_writes_status(call, {"Source", "Delivery"}) for _, call in calls(module))
        assert hit is (text in wrong), text


def test_no_status_is_asked_for_by_a_string():
    found = [
        module.at(node)
        for module in modules()
        if not _says_the_values(module.path)
        for _, node in module.functions()
        if _asks_by_a_string(node)
    ]
    assert found == []


def _says_the_values(path: str) -> bool:
    of_plugins = path.startswith(tuple(f"pipeline/{name}/" for name in PURE))
    return of_plugins or any(Path(path).match(form) for form in OF_THE_VALUES)


def _asks_by_a_string(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = chain_of(node)[-1:] if chain_of(node) else ()
        return bool(set(name) & ASKS) and any(
            _column_of(lookup) in CLOSED and _has_text(value) for lookup, value in keywords(node).items()
        )
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        return any(_is_read(side) for side in sides) and any(
            _has_text(side) for side in sides if not _is_read(side)
        )
    return False


def _column_of(lookup: str) -> str:
    """`status` of `item__status__in`."""
    return next((part for part in reversed(lookup.split("__")) if part != "in"), "")


def _is_read(node: ast.expr) -> bool:
    """`row.status`, or `row["status"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "status"
    return isinstance(node, ast.Attribute) and node.attr in READ


def _has_text(node: ast.expr) -> bool:
    """A string that isn't empty, alone or in a list, a set or what is added to one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(_has_text(one) for one in node.elts)
    if isinstance(node, ast.BinOp):
        return _has_text(node.left) or _has_text(node.right)
    if isinstance(node, ast.IfExp):
        return _has_text(node.body) or _has_text(node.orelse)
    return isinstance(node, ast.Starred) and _has_text(node.value)


def test_the_rule_sees_who_asks_by_a_string():
    wrong = (
        "rows.filter(status='failed')",
        "Publication.everywhere.exclude(status__in=['failed', 'unknown'])",
        "Q(batch__status__in=OPEN | {'sent'})",
        "rows.filter(step='poll' if late else Step.COMMIT)",
        "row.status == 'failed'",
        "row['status'] in {'failed', *OTHERS}",
        "row.status in EDITABLE_ITEMS - {'ready'}",
        "'source_changed' != item.flagged",
    )
    right = (
        "rows.filter(status=Status.FAILED)",
        "rows.filter(held='')",
        "rows.exclude(held='')",
        "row.status in {Status.FAILED, Status.UNKNOWN}",
        "row.status == stood['status']",
        "Row(status='failed')",
        "status == 'active'",
    )
    for text in (*wrong, *right):
        hit = any(_asks_by_a_string(node) for node in ast.walk(ast.parse(text)))
        assert hit is (text in wrong), text
