"""Each row of docs/security.md names tests, and they exist."""

from __future__ import annotations

import ast
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
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
                path,
                name,
            )
