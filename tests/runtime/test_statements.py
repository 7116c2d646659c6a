"""The second pass runs as few tests as ask every statement of the first."""

from __future__ import annotations

import sys

import pytest

from tests import statements


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('SAVEPOINT "s140_x1"', 'SAVEPOINT "s7_x22"'),
        ("SELECT 1 FROM a WHERE b IN (%s, %s, %s)", "SELECT 1 FROM a WHERE b IN (%s)"),
        ("INSERT INTO a (b) VALUES (%s, %s), (%s, %s)", "INSERT INTO a (b) VALUES (%s, %s)"),
        ("SELECT  a\n FROM b LIMIT 21", "SELECT a FROM b LIMIT 1"),
        ("SELECT 'x' FROM b", "SELECT 'y' FROM b"),
    ],
)
def test_statements_that_differ_in_their_values_have_one_form(one, other):
    assert statements.form_of(one) == statements.form_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM b", "SELECT a FROM c"),
        ("SELECT a FROM b ORDER BY a", "SELECT a FROM b"),
        ("SELECT a FROM b FOR UPDATE", "SELECT a FROM b"),
    ],
)
def test_other_statements_have_other_forms(one, other):
    assert statements.form_of(one) != statements.form_of(other)


def test_every_statement_is_asked_by_a_test_that_is_chosen():
    recorded = {
        "dear": (9.0, {"a", "b", "c"}),
        "cheap": (0.01, {"a", "b"}),
        "same as cheap": (0.02, {"a"}),
        "without a database": (0.01, set()),
        "only one": (5.0, {"c", "d"}),
    }
    assert statements.choose(recorded) == {"cheap", "only one"}


def test_what_a_later_choice_made_needless_is_left_out():
    recorded = {"first": (1.0, {"a", "b", "c"}), "one": (0.9, {"a", "b", "d"}), "two": (1.0, {"c", "e"})}
    assert statements.choose(recorded) == {"one", "two"}


def test_what_was_recorded_is_read_again(tmp_path):
    recorder = statements.Recorder()
    with recorder.test("tests/x.py::one"):
        recorder.note('SELECT 1 FROM "a" LIMIT 5')
    with recorder.test("tests/x.py::skipped"):
        recorder.leave_out("tests/x.py::skipped")
    recorder.write(tmp_path / "gw0.json")
    ((name, (_, asked)),) = statements.read(tmp_path).items()
    assert (name, asked) == ("tests/x.py::one", {'SELECT 0 FROM "a" LIMIT 0'})


@pytest.mark.parametrize(
    ("file", "is_by_a_test"),
    [
        ("pipeline/review/decisions.py", False),
        ("tests/pipeline/steps.py", True),
        # Its rows are read where somebody asks for them.
        ("accounts/tenancy.py", True),
        (".venv/lib/python3.11/site-packages/django/db/models/query.py", True),
    ],
)
def test_what_a_test_asks_is_told_from_what_the_service_asks(file, is_by_a_test):
    code = compile("asked = is_asked_by_a_test(sys._getframe())", str(statements.PROJECT / file), "exec")
    names = {"is_asked_by_a_test": statements.is_asked_by_a_test, "sys": sys}
    exec(code, names)
    assert names["asked"] is is_by_a_test
