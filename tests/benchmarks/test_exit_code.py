"""When a run of the benchmarks counts as failed."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import NOT_RUN_PREFIX, exit_code
from benchmarks.table import Row

MISSING = [
    f"{NOT_RUN_PREFIX} on postgres: there is no redis-server.",
    f"{NOT_RUN_PREFIX} on sqlite: there is none.",
]
FAILED = "FAILED on sqlite: api, as told above."


@pytest.mark.parametrize(
    ("failures", "is_required", "code"),
    [
        ([], False, 0),
        ([], True, 0),
        (MISSING[:1], False, 0),
        # Each group of scripts tells of the same missing service.
        (MISSING, False, 0),
        (MISSING, True, 1),
        ([FAILED], False, 1),
        ([*MISSING, FAILED], False, 1),
    ],
)
def test_a_missing_service_fails_only_where_services_are_required(monkeypatch, failures, is_required, code):
    monkeypatch.setenv("REQUIRE_SERVICES", "1" if is_required else "")
    assert exit_code([], failures) == code


def test_what_was_measured_wrongly_fails():
    assert exit_code([Row("lists", "/s", [1.0], unsound="2 rows are lost")], []) == 1
    assert exit_code([Row("lists", "/s", [1.0], maximum=0.5)], []) == 0
