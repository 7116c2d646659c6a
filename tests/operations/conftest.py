"""What the tests of operators' tools stand on."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def with_quick_workspaces(quick_workspaces):
    """What a new workspace makes is looked at in tests/pipeline/workspace/test_provision.py."""
