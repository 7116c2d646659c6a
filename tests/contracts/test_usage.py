"""GET /usage."""

from __future__ import annotations

from datetime import UTC, datetime

from accounts import workspaces
from config.core import task_runner
from tests.contracts.test_workspace import LIMITS


def _resets_at() -> str:
    now = datetime.now(UTC)
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return f"{year}-{month:02}-01T00:00:00.000Z"


def _usage(**changes):
    fresh = {
        "limits": LIMITS,
        "limit": 1000,
        "used": 0,
        "reserved": 0,
        "available": 1000,
        "resets_at": _resets_at(),
    }
    return {**fresh, **changes}


def test_usage_of_a_new_workspace(alice):
    assert alice.api.read("/usage") == _usage()


def test_usage_reserves_at_the_push_and_settles_when_it_is_made(alice):
    alice.push(variants=2)
    assert alice.api.read("/usage") == _usage(reserved=2, available=998)
    task_runner.work_all_due("generate.run_item")
    assert alice.api.read("/usage") == _usage(used=2, available=998)


def test_usage_counts_nothing_of_a_test_token(alice):
    alice.push(alice.client(is_test=True))
    task_runner.work_all_due("generate.run_item")
    assert alice.api.read("/usage") == _usage()


def test_usage_without_limits(alice):
    workspaces.lift_limits(alice.workspace, "operator")
    alice.push()
    lifted = {
        **LIMITS,
        "unlimited": True,
        "requests_at_once": None,
        "requests_per_minute": None,
        "credits_per_month": None,
    }
    assert alice.api.read("/usage") == _usage(limits=lifted, limit=None, reserved=1, available=None)


def test_usage_of_another_workspace_is_its_own(alice, charlie):
    alice.push()
    assert charlie.api.read("/usage") == _usage()
