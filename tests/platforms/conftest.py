"""What the tests of platforms stand on."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.platforms.servers.base import LedgerServer


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[LedgerServer]:
    """The stand-in of the platform after which the file is named: `test_slack.py` has Slack's."""
    kind = request.module.__name__.rpartition(".test_")[2].removesuffix("_fake")
    with importlib.import_module(f"tests.platforms.servers.{kind}").Server() as running:
        yield running
