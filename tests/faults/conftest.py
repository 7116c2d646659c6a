"""What the tests of faults stand on."""

from __future__ import annotations

import pytest

from tests.faults.world import make_world


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A fresh instance, of which each test takes a copy."""
    made = make_world(tmp_path_factory.mktemp("prepared") / "data", "http://127.0.0.1:9")
    yield made
    made.drop()
