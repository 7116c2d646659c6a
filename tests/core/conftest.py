"""A workspace to store rows in."""

from __future__ import annotations

import pytest

from accounts import workspaces


@pytest.fixture
def alices(db):
    return workspaces.create("Alice's newsroom", actor="test")
