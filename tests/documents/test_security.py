"""The rows of docs/security.md name tests, and they exist."""

from __future__ import annotations

import re

from tests.documents.text import ROOT, read


def test_every_test_that_is_named_is_there():
    _, _, table = read("security.md").partition("## What was tried")
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for path, name in named:
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (
                path,
                name,
            )


def test_each_attacker_is_held_by_tests_that_are_there():
    _, _, rest = read("security.md").partition("## Threat model")
    model, _, _ = rest.partition("## What was tried")
    rows = [line for line in model.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 9
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)`", row)
        assert named, row
        assert [path for path in named if not (ROOT / path).is_file()] == []
