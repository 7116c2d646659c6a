"""GET /usage/ledger."""

from __future__ import annotations

from datetime import UTC, datetime

from config.core import task_runner
from tests.contracts.conftest import normal


def _entry(kind, amount, reserved, used, reason="", generation="gnr_*"):
    return {
        "id": "led_*",
        "kind": kind,
        "amount": amount,
        "reserved_change": reserved,
        "used_change": used,
        "generation": generation,
        "reason": reason,
        "created_at": "<moment>",
    }


def test_ledger_holds_every_entry_and_its_sum_is_the_balance(alice):
    alice.push()
    task_runner.work_all_due("generate.run_item")
    alice.partly_failed()
    answer = alice.api.read("/usage/ledger")
    assert normal(answer) == {
        "data": [
            _entry("settle", 2, -3, 1),
            _entry("reserve", -3, 3, 0),
            _entry("settle", 0, -1, 1),
            _entry("reserve", -1, 1, 0),
            _entry("grant", 1000, 0, 0, f"credits of {datetime.now(UTC):%Y-%m}", None),
        ],
        "has_more": False,
        "next_cursor": None,
    }
    usage = alice.api.read("/usage")
    sums = [
        sum(entry[name] for entry in answer["data"]) for name in ("amount", "reserved_change", "used_change")
    ]
    assert sums == [usage["available"], usage["reserved"], usage["used"]] == [998, 0, 2]


def test_ledger_of_another_workspace_shows_nothing_of_it(alice, charlie):
    alice.push()
    assert [entry["kind"] for entry in charlie.api.read("/usage/ledger")["data"]] == ["grant"]
