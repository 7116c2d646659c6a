"""Every crash point is listed, stands in the code, and is killed at by some test."""

from __future__ import annotations

import ast
import re
from collections import Counter

from config.core.crash_points import POINTS
from tests.architecture.code import ROOT, calls, chain_of, modules


def _in_code() -> Counter[str]:
    names: Counter[str] = Counter()
    for module in modules():
        for _, call in calls(module):
            # A step names the point behind it; the loop that works the steps passes that.
            points = [one.value for one in call.keywords if one.arg == "checkpoint"]
            if chain_of(call)[-1:] == ("crash_point",) and call.args:
                point = call.args[0]
                points += [] if isinstance(point, ast.Attribute) and point.attr == "checkpoint" else [point]
            for point in points:
                assert isinstance(point, ast.Constant), f"{module.at(call)}: name the point as a literal"
                names[str(point.value)] += 1
    return names


def test_points_are_those_that_the_code_passes():
    assert set(_in_code()) == set(POINTS)


def test_every_point_is_named_in_a_test():
    """Of the tests that kill, patch or count at it; the lists of `tests/architecture` and `tests/documents` don't count."""
    said = "\n".join(
        path.read_text()
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if not {"architecture", "documents"} & set(path.relative_to(ROOT).parts)
    )
    walks_all = re.search(
        r"\bcrash_points\.POINTS\b|from config\.core\.crash_points import [^\n]*\bPOINTS\b", said
    )
    missing = [point for point in sorted(POINTS) if f'"{point}"' not in said and f'"{point}#' not in said]
    assert walks_all or missing == []
