"""Servers that the world runs, on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real import pds_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def pds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pds_server.Pds]:
    with pds_server.running(tmp_path_factory.mktemp("pds")) as made:
        yield made
