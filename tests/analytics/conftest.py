"""What the tests of analytics stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analytics import factories
from tests.analytics.factories import Ask

if TYPE_CHECKING:
    from pipeline.models import Outlet


@pytest.fixture
def alice(db) -> Outlet:
    """The outlet of a workspace of Alice's."""
    return factories.make_outlet(factories.make_workspace())


@pytest.fixture
def charlie(db) -> Outlet:
    """The outlet of a workspace that Alice must never see anything of."""
    return factories.make_outlet(factories.make_workspace("Charlie's"), name="Charlie's stage")


@pytest.fixture
def ask(alice: Outlet) -> Ask:
    return Ask(alice.workspace)
