"""Habits that keep the code readable and its clocks, texts and faults honest."""

from __future__ import annotations

import ast
import re

from tests.architecture.code import Module, calls, chain_of, keywords, modules

BROAD = frozenset({"Exception", "BaseException"})
COMMANDS = "/management/commands/"


def test_every_module_says_what_lives_here():
    assert [module.path for module in modules() if not ast.get_docstring(module.tree)] == []


def test_a_broad_except_has_its_reason_beside_it():
    found = [
        module.at(node)
        for module in modules()
        for _, node in module.functions()
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _has_comment(module, node)
    ]
    assert found == []


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in kinds)


def _has_comment(module: Module, handler: ast.ExceptHandler) -> bool:
    """Above it, on its line after any lint mark, or as the first line of its body."""
    on_line = module.line(handler.lineno).partition("#")[2].removeprefix(" noqa: BLE001").strip()
    beside = (module.line(handler.lineno - 1), module.line(handler.lineno + 1))
    return bool(on_line) or any(line.startswith("# ") for line in beside)


def test_nothing_prints_but_commands():
    found = [
        module.at(call)
        for module in modules()
        if COMMANDS not in f"/{module.path}"
        for _, call in calls(module)
        if isinstance(call.func, ast.Name) and call.func.id in {"print", "pprint"}
    ]
    assert found == []


def test_no_moment_is_naive():
    found = [
        f"{module.at(call)} {'.'.join(chain_of(call))}"
        for module in modules()
        for _, call in calls(module)
        if _is_naive(call)
    ]
    assert found == []


def test_the_present_moment_is_asked_of_the_clock():
    # What looks at the machine itself, or at another clock, must not be handed a moment.
    by_the_machine = {"config/core/clock.py", "config/operations/doctor.py", "config/operations/db_dump.py"}
    found = [
        f"{module.at(call)} {'.'.join(chain_of(call))}"
        for module in modules()
        if module.path not in by_the_machine
        for _, call in calls(module)
        if chain_of(call)[-2:] in {("datetime", "now"), ("timezone", "now")}
    ]
    assert found == []


def _is_naive(call: ast.Call) -> bool:
    chain = chain_of(call)
    if chain[-1:] == ("utcnow",) or chain[-1:] == ("utcfromtimestamp",):
        return True
    if chain[-2:] == ("datetime", "now"):
        return not call.args and "tz" not in keywords(call)
    if chain[-2:] == ("datetime", "fromtimestamp"):
        return len(call.args) < 2 and "tz" not in keywords(call)
    return chain[-2:] in {("date", "today"), ("datetime", "today")}


def test_secrets_are_compared_in_a_time_that_tells_nothing():
    """With `hmac.compare_digest`, or looked up by their hash or index; `==` ends at the first letter that differs."""
    found = [
        f"{module.path}: {ast.unparse(node)}"
        for module in modules()
        for _, node in module.functions()
        if isinstance(node, ast.Compare)
        and any(isinstance(one, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for one in node.ops)
        and any(_is_secret(one) for one in (node.left, *node.comparators))
    ]
    assert found == COMPARED


COMPARED = [
    # Whether its owner gave the same one again.
    "pipeline/ingest/inbound_deliveries/secrets.py: stored.secret.open() == secret",
]
SECRET = re.compile(r"(?:^|_)(?:secret|signature|mac|hmac|password|api_key|bearer)s?$")


def _is_secret(node: ast.expr) -> bool:
    """A name or attribute that is called so, however it is wrapped in calls: not a text with that word in it."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return bool(SECRET.search(name))


def test_nobody_asks_for_all_rows():
    found = [
        module.at(call)
        for module in modules()
        for _, call in calls(module)
        if chain_of(call)[-2:] == ("objects", "all")
    ]
    assert found == []


def test_no_existing_row_is_saved_whole():
    """`save()` without `update_fields` or `force_insert` writes back columns that somebody else changed meanwhile."""
    found = [
        f"{module.at(call)} {function}"
        for module in modules()
        if not module.path.startswith(PURE)
        for function, call in calls(module)
        if chain_of(call)[-1:] == ("save",)
        and chain_of(call)[:1] != ("super",)
        and not {"update_fields", "force_insert"} & set(keywords(call))
        and f"{module.path}:{function}" not in NEW_ROWS
    ]
    assert found == []


PURE = tuple(f"pipeline/{name}/" for name in ("sources", "engines", "writers", "platforms", "render"))
"""An import contract keeps rows out of these; what is saved there is a picture."""
NEW_ROWS = {
    "accounts/models/user.py:UserManager.create_user": "the row was made two lines above",
}


def test_the_rules_see_what_they_forbid():
    broad = Module("x.py", *_source("try:\n    pass\nexcept Exception:  # noqa: BLE001\n    pass\n"))
    reasoned = Module(
        "x.py", *_source("try:\n    pass\n# The edge of the task.\nexcept Exception:\n    pass\n")
    )
    assert [_has_comment(one, _handler(one)) for one in (broad, reasoned)] == [False, True]
    naive = [
        ast.parse(text).body[0].value for text in ("datetime.now()", "datetime.utcnow()", "datetime.now(UTC)")
    ]
    assert [_is_naive(call) for call in naive] == [True, True, False]


def _source(text: str) -> tuple[tuple[str, ...], ast.Module]:
    return tuple(text.splitlines()), ast.parse(text)


def _handler(module: Module) -> ast.ExceptHandler:
    return next(node for _, node in module.functions() if isinstance(node, ast.ExceptHandler))
