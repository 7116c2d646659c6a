"""A server that keeps batches, a source whose runs may wait, and a clock that stands still."""

from __future__ import annotations

import pytest
import time_machine

from pipeline.models import Source
from tests.pipeline.generate.test_generate_with_model import found, written
from tests.pipeline.steps import NOON


@pytest.fixture
def model_server(model_server):
    model_server.answer = lambda request: found() if "You read one document" in request.raw else written()
    return model_server


@pytest.fixture
def source(workspace):
    return Source.everywhere.create(
        workspace=workspace,
        name="A feed",
        type="rss",
        config={"url": "https://example.test/feed.xml", "batch_hours": 4},
    )


@pytest.fixture
def clock(anthropic_sdk):
    with time_machine.travel(NOON, tick=False) as at:
        yield at
