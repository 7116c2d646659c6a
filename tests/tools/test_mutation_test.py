"""The mutation check changes what it says, and chooses the same again."""

from __future__ import annotations

import ast

import pytest

from tools import mutation_test
from tools.mutants import apply, changes_of

EACH = [
    ("x = a < b", ["x = a <= b"]),
    ("x = a >= b", ["x = a > b"]),
    ("x = a == b", ["x = a != b"]),
    ("x = a is None", ["x = a is not None"]),
    ("x = a not in b", ["x = a in b"]),
    ("x = not a", ["x = a"]),
    ("x = a and b", ["x = a or b"]),
    ("x = a + b", ["x = a - b"]),
    ("x = 3", ["x = 4"]),
    ("x = 0.5", ["x = 1.5"]),
    ("x = True", ["x = False"]),
    ("send(a)", ["pass"]),
    ("x: Final[Literal[3]] = None", []),
    ("'A docstring.'", []),
    ("log.info('sent', tries=3)", []),
    ("crash_point('publish.sent')", []),
    ("x = timezone.now() < a", []),
    ("x = utc_now() < a", []),
    ("if TYPE_CHECKING:\n    x = 3", []),
    ("@cache(3)\ndef f(a=1):\n    return a", ["@cache(3)\ndef f(a=2):\n    return a"]),
    (
        "def f():\n    if a:\n        return b\n    raise C",
        ["def f():\n    if a:\n        pass\n    raise C"],
    ),
    ("for a in b:\n    continue", ["for a in b:\n    pass"]),
    ("if a:\n    raise B", ["if a:\n    pass"]),
    ("f = lambda a: a + 1", ["f = lambda a: a - 1", "f = lambda a: a + 2"]),
]


@pytest.mark.parametrize(("source", "expected"), EACH, ids=[source for source, _ in EACH])
def test_statement_has_these_mutants(source, expected):
    changes = list(changes_of("a.py", ast.parse(source)))
    assert [apply(change.mutant, source)[1] for change in changes] == expected


def test_mutant_is_found_again_where_lines_have_moved():
    before = "def f(a):\n    a = 1\n    a = 1\n    return a\n"
    after = 'def g(a):\n    a = 1\n\ndef f(a):\n    """Another."""\n    b = 2\n    a = 1\n    a = 1\n    return a\n'
    _, second = [change.mutant for change in changes_of("a.py", ast.parse(before))]
    assert str(second) == "f: a = 1 => a = 2"
    assert apply(second, before) == (3, "def f(a):\n    a = 1\n    a = 2\n    return a")
    line, mutated = apply(second, after)
    assert (line, mutated.splitlines()[-3:]) == (8, ["    a = 1", "    a = 2", "    return a"])
    assert apply(second, before.replace("f(", "h(")) is None
    assert apply(second, "def f(a):\n    a = 1\n    return a\n") is None


@pytest.mark.parametrize("package", mutation_test.SOURCES_BY_PACKAGE)
def test_choice_is_the_same_by_seed(package):
    chosen = mutation_test.choose_mutants(mutation_test.ROOT, package, 8, 1)
    assert len(set(chosen)) == 8
    assert chosen == mutation_test.choose_mutants(mutation_test.ROOT, package, 8, 1)
    assert chosen != mutation_test.choose_mutants(mutation_test.ROOT, package, 8, 2)
    for mutant in chosen:
        _, mutated = apply(mutant, (mutation_test.ROOT / mutant.file).read_text())
        assert mutated != ast.unparse(ast.parse((mutation_test.ROOT / mutant.file).read_text()))


def test_every_pattern_finds_files():
    assert set(mutation_test.SOURCES_BY_PACKAGE) == set(mutation_test.TESTS_BY_PACKAGE)
    sources = [
        one
        for table in (mutation_test.SOURCES_BY_PACKAGE, mutation_test.SIMULATED_SOURCES)
        for patterns in table.values()
        for one in patterns.split()
    ]
    tests = [
        f"tests/{one}" for patterns in mutation_test.TESTS_BY_PACKAGE.values() for one in patterns.split()
    ]
    assert [one for one in sources + tests if not mutation_test.find_files(mutation_test.ROOT, one)] == []
