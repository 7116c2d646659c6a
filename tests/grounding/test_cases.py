"""Hand-made cases: what has to be stopped, what has to pass, and what a person should look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.grounding.deciding import checks_of, outcome_of

CASES = Path(__file__).parent / "cases"
OWN: list[dict[str, Any]] = json.loads((CASES / "own.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("case", OWN, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_case_ends_as_it_has_to(case: dict[str, Any]) -> None:
    assert (outcome_of(case), checks_of(case)) == (case["expect"], checks_of(case))
