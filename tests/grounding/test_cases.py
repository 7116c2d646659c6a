"""Hand-made cases (`cases/README.md`): what has to be stopped, what has to pass, and what a person should look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.grounding import (
    find_misquotations,
    find_unsupported_names,
    find_unsupported_numbers,
    recompute_sums,
)
from tests.grounding.deciding import checks_of, outcome_of

CASES = Path(__file__).parent / "cases"
OWN: list[dict[str, Any]] = json.loads((CASES / "own.json").read_text(encoding="utf-8"))["cases"]
BLIND: list[dict[str, Any]] = json.loads((CASES / "blind.json").read_text(encoding="utf-8"))
MOST_FALSE_ALARMS = 0.05


@pytest.mark.parametrize("case", OWN, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_case_ends_as_it_has_to(case: dict[str, Any]) -> None:
    assert (outcome_of(case), checks_of(case)) == (case["expect"], checks_of(case))


def found_in(case: dict[str, Any]) -> dict[str, list[str]]:
    """What is told of a case that was written blind."""
    source, language = case["source"], case["language"]
    declared = {
        value
        for one in case["derived"]
        for outcome in recompute_sums(f"{one['written']} = {one['sum']}", source, language=language)
        for value in outcome.values
    }
    numbers = find_unsupported_numbers(case["draft"], source, language=language, declared=declared)
    return {
        "numbers": [one.text for one in numbers],
        "quotations": [one.text for one in find_misquotations(case["draft"], source)],
        "names": list(find_unsupported_names(case["draft"], [source], language=language)),
    }


def is_told(words: str, told: list[str]) -> bool:
    return any(words in one or one in words for one in told)


@pytest.mark.parametrize(
    "case", [case for case in BLIND if case["verdict"] == "bad"], ids=lambda case: case["id"]
)
def test_bad_case_that_was_written_blind_is_told(case: dict[str, Any]) -> None:
    found = found_in(case)

    missed = {
        kind: [words for words in expected if not is_told(words, found[kind])]
        for kind, expected in case["expect"].items()
    }

    assert missed == {"numbers": [], "quotations": [], "names": []}


@pytest.mark.parametrize(
    "case", [case for case in BLIND if case["verdict"] == "good"], ids=lambda case: case["id"]
)
def test_good_case_that_was_written_blind_passes(case: dict[str, Any]) -> None:
    found = found_in(case)

    assert (found["numbers"], found["quotations"]) == ([], [])


def test_false_alarms_are_few() -> None:
    """Names too, which only warn; and every case that the author of the checker wrote."""
    good = [case for case in BLIND if case["verdict"] == "good"]
    warned = [case["id"] for case in good if found_in(case)["names"]]
    own = [case for case in OWN if case["expect"] == "passed"]
    warned += [case["id"] for case in own if outcome_of(case) != "passed"]

    assert len(BLIND) >= 200
    assert len(warned) <= MOST_FALSE_ALARMS * (len(good) + len(own)), warned


def test_numbers_and_quotations_are_hard_stops_and_names_are_not() -> None:
    number, quotation, name = (
        next(case for case in BLIND if any(case["expect"][kind]) and case["language"] == "en")
        for kind in ("numbers", "quotations", "names")
    )
    outcomes = [
        {check.code: check.outcome for check in checks_of({**case, "claims": ()})}
        for case in (number, quotation, name)
    ]

    assert [
        outcomes[0]["numbers"],
        outcomes[1]["quotations"],
        outcomes[2]["names"],
    ] == ["failed", "failed", "warning"]
