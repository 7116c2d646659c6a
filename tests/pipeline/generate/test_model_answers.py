"""What becomes of an item, and what its people are told, whatever a model answers; `docs/plugins.md` has the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.generate.model_answers import ORDER, ROWS, TARGET
from tests.pipeline.steps import TEXT, items_of, push_raw, run_generations
from tests.writers.messages_server import material_of

if TYPE_CHECKING:
    from tests.pipeline.generate.model_answers import Row

pytestmark = pytest.mark.usefixtures("anthropic_sdk")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.model)
def test_what_becomes_of_an_item(workspace: Any, model_server: Any, row: Row) -> None:
    model_server.script = list(row.script)
    raw = push_raw(workspace, body=f"{TEXT}\n\n{ORDER}" if row.is_hostile else TEXT).raw_item
    run_generations(raw)
    item = items_of(raw)[0]

    assert len(model_server.requests) == len(row.script)
    # Every word of the source that is no order is there for the model to read.
    assert TEXT in material_of(model_server.requests[0])
    checks = {check["code"]: check for check in item.checks}
    if row.error:
        assert (item.status, item.error["code"], item.error["message"]) == ("failed", row.error, row.message)
    else:
        assert (item.status, item.error) == ("ready", None)
        warned = {code for code, check in checks.items() if check["outcome"] != "passed"}
        assert warned == set(row.warns)
        assert item.generator["offline"] is ("reading" in row.warns)
        assert TARGET not in item.body
    if "reading" in row.warns:
        assert checks["reading"]["message"] == row.message
