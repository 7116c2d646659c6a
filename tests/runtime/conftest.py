"""The runtime's own tests let looks travel."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_looks_leave_the_test():
    """Overrides the suite's: what travels, and how, is what these tests are about."""
