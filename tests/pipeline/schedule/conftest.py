"""What the tests of schedules stand on."""

from __future__ import annotations

import pytest

from accounts.ledger import credits
from accounts.models import Workspace
from tests.pipeline.steps import NOON


@pytest.fixture
def rich(workspace: Workspace) -> Workspace:
    """Its workspace, with credits for everything."""
    credits.adjust(workspace, 1000, "for the tests", "operator", now=NOON)
    return Workspace.everywhere.select_related("plan").get(pk=workspace.pk)
